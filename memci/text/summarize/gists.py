"""Gists: the spans of a text that say most for their width, in its own words.

    Hey! Since we last spoke I signed up for a pottery class. It's like therapy to me!
    ──  ────────────────────   ───── ── ───   ─────── ─────   ──── ────    ───────
    small talk                 signed up for pottery class,   like therapy

Rare words, names, ids, figures and dates weigh much, everyday words little, and what most of the texts have that are
given together nearly nothing. A column has its price, and so has the beginning of a span: a few long spans are easier
to read than many words. Where there is too much, the price rises until the gist fits.

Beyond the texts that are given there is only the list of everyday words: the same texts give the same gists in every
process. This module knows nothing of messages, of pages' numbers or of tokens.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from ..language.patterns import GRAMMAR, HAN, HIRAGANA, LETTER, PARTICLE, PREDICATE, alternatives, words
from ..language.salience import FACT, ID, rank_of
from ..language.sentences import SMALL_TALK
from ..sanitize import width

_PRICE = 0.2
"""what a column must be worth"""
_OPENING = 6
"""columns that the beginning of a span counts as"""
_PRIOR = 100
"""texts for which the shares below stand, beside those that are given"""
_ID, _FACT, _WORD, _SHORT, _EVERYDAY = 0.00001, 0.004, 0.01, 0.05, 0.3
"""the share of texts that have such a word; ids and facts count in full, however often they were said"""
_LONGEST = 6
"""of characters in one piece of Han writing, those that count"""

_RUN = re.compile(
    rf"(?P<han>[{HAN}]+)|(?P<kata>[\u30a1-\u30ff]{{2,}})|(?P<hangul>[\uac00-\ud7a3]+)"
    rf"|(?P<word>(?:[$€£¥₩]|(?<!#)#)?{LETTER}+(?>(?:[_'’.@&:/+-]|(?<=\d),(?=\d)){LETTER}+)*%?)"
    r"|[.!?;:()\n—–\"“”「」『』。！？；：…|]|(?<=\s)-(?=\s)"
)
"""words, and the marks at which a span ends"""
_ENDING = re.compile("(?:(?<=..)n['’]t|['’](?:s|re|ve|ll|d|m|t)|(?<=..)(?:(?<!s)s|es|ed|e|y|ies|ied|ing|ly))$")
_ARTICLE = re.compile(rf"\b(?:{alternatives('words', 'articles')})\s+", re.IGNORECASE)
_CHATTER = re.compile(rf"(?:\A|(?<=[.!?。！？\n]))[\s,、，]*{SMALL_TALK.pattern}", re.IGNORECASE)
_BULLET = re.compile(r"(?:^|(?<=\n))[ \t]*(?:\d{1,2}[.)]|[-*#>]+)[ \t]")


class Gist(NamedTuple):
    """What some texts say, and how much that is."""

    spans: tuple[str, ...]
    """one for each text, its parts joined by commas; "" if nothing of it is worth its room"""
    weight: float


_Word = tuple[int, int, str, float, float, int, float]
"""start and end in its text, the key by which it is counted, the share of texts that have it as far as none were
counted, how many words it stands for, its columns, and the columns between it and the one before: infinite where no
span goes on"""


def gists(
    pages: Sequence[Sequence[str]], columns: Sequence[int], shown: Sequence[str] = (), printed: Sequence[bool] = ()
) -> list[Gist]:
    """Return the gist of the texts of each page, within so many *columns* for all of them. O(characters).

    Words that *shown* has for a page weigh nothing. The first text of a page that is *printed* is a machine's: its ids
    and figures count like other words, since it has more of them than anybody needs.
    """
    bare = [
        [_ARTICLE.sub("", _CHATTER.sub(" ", _BULLET.sub("", text))) if text else "" for text in texts]
        for texts in pages
    ]
    read = [[_words(text) for text in texts] for texts in bare]
    for found, machine in zip(read, printed, strict=False):
        if machine:
            found[0] = [(*word[:3], max(word[3], _WORD), *word[4:]) for word in found[0]]
    counts = Counter(key for found in read for key in {word[2] for words in found for word in words})
    seen = [telling(each) for each in shown] or [set() for _ in pages]
    return [
        _gist(texts, found, _weights(found, counts, len(pages), known), room)
        for texts, found, known, room in zip(bare, read, seen, columns, strict=True)
    ]


def telling(text: str) -> set[str]:
    """Return the keys of the words of *text* that have a meaning of their own. O(characters)."""
    return {word[2] for word in _words(text)}


def _gist(texts: Sequence[str], found: Sequence[Sequence[_Word]], weights: Sequence[float], room: int) -> Gist:
    words = [word for each in found for word in each]
    starts = [len(each) for each in found]
    costs, gaps = [word[5] for word in words], [word[6] for word in words]
    price = _PRICE
    while taken := _best(weights, costs, gaps, price):
        spans: list[str] = []
        end = 0
        for text, size in zip(texts, starts, strict=True):
            parts = [text[words[first][0] : words[last][1]] for first, last in taken if end <= first < end + size]
            spans.append(", ".join([" ".join(part.split()) for part in parts]))
            end += size
        wide = sum(width(each) + 3 for each in spans if each) - 3
        if wide <= room:
            return Gist(tuple(spans), sum(sum(weights[first : last + 1]) for first, last in taken))
        price *= 1.05 + 0.35 * (1 - room / wide)
    return Gist(("",) * len(texts), 0.0)


def _weights(found: Sequence[Sequence[_Word]], counts: Counter[str], pages: int, seen: set[str]) -> list[float]:
    """Return what each word weighs: nothing where it was *seen* before."""
    weights = []
    whole = pages + _PRIOR
    for each in found:
        for _, _, key, share, size, _, _ in each:
            if key in seen:
                weights.append(0.0)
                continue
            seen.add(key)
            weights.append(size * math.log(whole / ((counts[key] if share > _FACT else 0) + share * whole)))
    return weights


def _best(weights: Sequence[float], costs: Sequence[int], gaps: Sequence[float], price: float) -> list[tuple[int, int]]:
    """Return the spans (first and last word) that are worth most at *price* a column. O(words)."""
    outside, inside = 0.0, -math.inf
    bridges: list[bool] = []
    closes: list[bool] = []
    opening = _OPENING * price
    for weight, cost, gap in zip(weights, costs, gaps, strict=True):
        closed = inside > outside
        if closed:
            outside = inside
        inside -= gap * price
        opened = outside - opening
        bridged = inside >= opened
        inside = (inside if bridged else opened) + weight - cost * price
        bridges.append(bridged)
        closes.append(closed)
    spans: list[tuple[int, int]] = []
    taking, last = inside > outside, len(bridges) - 1
    for at in range(len(bridges) - 1, -1, -1):
        if taking and bridges[at]:
            continue
        if taking:
            spans.append((at, last))
        taking = closes[at]
        last = at - 1
    return spans[::-1]


def _words(text: str) -> list[_Word]:
    """Return the words of *text* that have a meaning of their own. O(characters)."""
    found: list[_Word] = []
    before = 0
    gap = math.inf
    narrow = text.isascii()
    kanji = not narrow and HIRAGANA.search(text) is not None
    for match in _RUN.finditer(text):
        kind = match.lastgroup
        start, end = match.span()
        if kind is None:
            gap = math.inf
            continue
        run = match[0]
        if kind == "word":
            key, share = _read(run)
            pieces = [(start, end, key, share, 1.0)] if key else []
        elif kind == "han":
            pieces = [(start + a, start + b, *_of_han(run[a:b])) for a, b in _cut(run, kanji=kanji)]
        else:
            bare = run if kind == "kata" else PARTICLE.sub("", run)
            verb = bare == run and kind == "hangul" and PREDICATE.search(run)
            pieces = [(start, end, bare or run, 3 * _SHORT if verb or len(bare) < 2 else _WORD, 1.0)]
        for first, last, key, share, size in pieces:
            between = gap or (first - before if narrow else width(text[before:first]))
            found.append((first, last, key, share, size, last - first if narrow else width(text[first:last]), between))
            before, gap = last, 0
    return found


def _cut(run: str, *, kanji: bool) -> list[tuple[int, int]]:
    """Return where the pieces of *run* begin and end: between kana, grammar is not written in Han characters."""
    if kanji:
        return [(0, len(run))]
    cuts = [(cut.start(), cut.end()) for cut in GRAMMAR.finditer(run)]
    starts, ends = [0, *(end for _, end in cuts)], [*(start for start, _ in cuts), len(run)]
    return [(start, end) for start, end in zip(starts, ends, strict=True) if start < end]


def _of_han(piece: str) -> tuple[str, float, float]:
    return (piece, _WORD, min(len(piece), _LONGEST) / 2) if len(piece) > 1 else (piece, _EVERYDAY, 1.0)


@lru_cache(maxsize=16_384)
def _read(word: str) -> tuple[str, float]:
    """Return the key of *word* and its share; "" if it has no meaning of its own."""
    lower = word.lower()
    key = _key(lower)
    if lower in _FUNCTION or key in _FUNCTION:
        return "", 1.0
    rank = rank_of(word)
    if rank in (ID, FACT):
        return key, _ID if rank == ID else _FACT
    if key in _EVERYDAY_KEYS:
        return key, _EVERYDAY
    return key, _SHORT if len(word) < 3 or (len(word) == 3 and word.islower()) else _WORD


def _key(lower: str) -> str:
    """Return what the forms of a word share, roughly: a table of stems would take long to load."""
    return _ENDING.sub("", lower)


_FUNCTION = frozenset(words("words", "function"))
_EVERYDAY_KEYS = frozenset(map(_key, words("words", "everyday")))
