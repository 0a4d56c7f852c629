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
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import NamedTuple

from ..language.patterns import GRAMMAR, HAN, HIRAGANA, LETTER, PARTICLE, PREDICATE, alternatives, words
from ..language.salience import FACT, ID, rank_of
from ..language.sentences import SMALL_TALK
from ..sanitize import is_narrow, width

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

_WIDE = rf"(?P<han>[{HAN}]+)|(?P<kata>[\u30a1-\u30ff]{{2,}})|(?P<hangul>[\uac00-\ud7a3]+)|"
_RUN, _ASCII_RUN = (
    re.compile(
        rf"{wide}(?P<word>{letters}|(?:[$€£¥₩]|(?<!#)#){letters})"
        r"|[.!?;:()\n—–\"“”「」『』。！？；：…|]|(?<=\s)-(?=\s)"
    )
    for wide, letter in ((_WIDE, LETTER), ("", "[A-Za-z0-9]"))
    for letters in [rf"{letter}++(?:(?:[_'’.@&:/+-]|(?<=\d),(?=\d)){letter}++)*+%?"]
)
"""words, and the marks at which a span ends; in a text that is ASCII the second one finds the same, sooner"""
_ENDING = re.compile("(?:(?<=..)n['’]t|['’](?:s|re|ve|ll|d|m|t)|(?<=..)(?:(?<!s)s|es|ed|e|y|ies|ied|ing|ly))$")
_ARTICLES = alternatives("words", "articles")
_BEGINS = "".join(sorted({each[0] for each in _ARTICLES.split("|")}))
_ARTICLE = re.compile(rf"\b(?=[{_BEGINS}])(?:{_ARTICLES})\s+", re.IGNORECASE)
_CHATTER = re.compile(rf"(?<![^.!?。！？\n])[\s,、，]*{SMALL_TALK.pattern}", re.IGNORECASE)
_BLANKS = re.compile(r"\s\s")
_BULLET = re.compile(r"(?:^|(?<=\n))[ \t]*(?:\d{1,2}[.)]|[-*#>]+)[ \t]")


_Taken = tuple["_Taken", int, int] | None
"""the first and the last word of the last of some spans, and those before it"""


class Gist(NamedTuple):
    """What some texts say, and how much that is."""

    spans: tuple[str, ...]
    """one for each text, its parts joined by commas; "" if nothing of it is worth its room"""
    weight: float


_Word = tuple[int, int, str, float, float, int, float]
"""start and end in its text, the key by which it is counted, the share of texts that have it as far as none were
counted, how many words it stands for, its columns, and the columns between it and the one before: infinite where no
span goes on"""


class Reading(NamedTuple):
    """A text as a gist is made of it."""

    text: str
    """without articles, bullets and small talk"""
    words: Sequence[_Word]
    even: bool
    """whether each of its characters takes a column, as no two blanks follow each other"""


def reading(text: str, *, printed: bool = False) -> Reading:
    """Return *text*, read for a gist. O(characters).

    In what a machine *printed* ids and figures count like other words: it has more of them than anybody needs.
    """
    bare = _ARTICLE.sub("", _CHATTER.sub(" ", _BULLET.sub("", text))) if text else ""
    words = _words(bare)
    if printed:
        words = [(*word[:3], max(word[3], _WORD), *word[4:]) for word in words]
    return Reading(bare, words, is_narrow(bare) and not _BLANKS.search(bare))


def gists(
    pages: Sequence[Sequence[Reading]], columns: Sequence[int], shown: Sequence[Collection[str]] = ()
) -> list[Gist]:
    """Return the gist of the texts of each page, within so many *columns* for all of them. O(words).

    Words of whose keys *shown* has some for a page weigh nothing there.
    """
    counts = Counter(key for page in pages for key in {word[2] for each in page for word in each.words})
    return [
        _gist(page, _weights(page, counts, len(pages), {*known}), room)
        for page, known, room in zip(pages, shown or [()] * len(pages), columns, strict=True)
    ]


def telling(text: str) -> set[str]:
    """Return the keys of the words of *text* that have a meaning of their own. O(characters)."""
    return {word[2] for word in _words(text)}


def _gist(page: Sequence[Reading], weights: Sequence[float], room: int) -> Gist:
    words = [word for each in page for word in each.words]
    texts = [at for at, each in enumerate(page) for _ in each.words]
    """the text in which each word stands"""
    items = [(weight, word[5], word[6]) for weight, word in zip(weights, words, strict=True)]
    even = all(each.even for each in page)

    def spans(taken: Sequence[tuple[int, int]]) -> tuple[str, ...]:
        parts: list[list[str]] = [[] for _ in page]
        for first, last in taken:
            at = texts[first]
            parts[at].append(" ".join(page[at].text[words[first][0] : words[last][1]].split()))
        return tuple(map(", ".join, parts))

    price = _PRICE
    while taken := _best(items, price):
        if even:  # most prices are too low, and what they leave is only measured
            wide = sum([words[last][1] - words[first][0] + 2 for first, last in taken])
            wide += len({texts[first] for first, _ in taken}) - 3
        else:
            wide = sum([width(each) + 3 for each in spans(taken) if each]) - 3
        if wide <= room:
            return Gist(spans(taken), sum([sum(weights[first : last + 1]) for first, last in taken]))
        price *= 1.05 + 0.35 * (1 - room / wide)
    return Gist(("",) * len(page), 0.0)


def _weights(page: Sequence[Reading], counts: Counter[str], pages: int, seen: set[str]) -> list[float]:
    """Return what each word weighs: nothing where it was *seen* before."""
    weights = []
    whole = pages + _PRIOR
    for each in page:
        for _, _, key, share, size, _, _ in each.words:
            if key in seen:
                weights.append(0.0)
                continue
            seen.add(key)
            weights.append(size * math.log(whole / ((counts[key] if share > _FACT else 0) + share * whole)))
    return weights


def _best(items: Sequence[tuple[float, int, float]], price: float) -> list[tuple[int, int]]:
    """Return the spans (first and last word) that are worth most at *price* a column. O(words).

    Of each word *items* has its weight, its columns and the columns between it and the one before.
    """
    outside, inside = 0.0, -math.inf
    """what the words so far are worth at most, if the last one is in no span, and if it is in one"""
    first = 0
    """where that span begins"""
    spans: _Taken = None
    """behind which `outside` stands"""
    before: _Taken = None
    """in front of the span that `inside` stands in"""
    opening = _OPENING * price
    for at, (weight, cost, gap) in enumerate(items):
        if inside > outside:
            outside, spans = inside, (before, first, at - 1)
        inside -= gap * price
        opened = outside - opening
        if inside < opened:
            inside, before, first = opened, spans, at
        inside = inside + weight - cost * price
    if inside > outside:
        spans = before, first, len(items) - 1
    found: list[tuple[int, int]] = []
    while spans is not None:
        spans, first, last = spans
        found.append((first, last))
    return found[::-1]


def _words(text: str) -> list[_Word]:
    """Return the words of *text* that have a meaning of their own. O(characters)."""
    found: list[_Word] = []
    before = 0
    gap = math.inf
    narrow = is_narrow(text)
    kanji = not narrow and HIRAGANA.search(text) is not None
    for match in (_ASCII_RUN if text.isascii() else _RUN).finditer(text):
        kind = match.lastgroup
        if kind is None:
            gap = math.inf
            continue
        run = match[0]
        if kind == "word":
            key, share = _read(run)
            if not key:
                continue
            start, end = match.span()
            if narrow:  # all words of most texts
                found.append((start, end, key, share, 1.0, end - start, gap or start - before))
                before, gap = end, 0
                continue
            pieces = [(start, end, key, share, 1.0)]
        elif kind == "han":
            start = match.start()
            pieces = [(start + a, start + b, *_of_han(run[a:b])) for a, b in _cut(run, kanji=kanji)]
        else:
            bare = run if kind == "kata" else PARTICLE.sub("", run)
            verb = bare == run and kind == "hangul" and PREDICATE.search(run)
            pieces = [(*match.span(), bare or run, 3 * _SHORT if verb or len(bare) < 2 else _WORD, 1.0)]
        for first, last, key, share, size in pieces:
            between = gap or width(text[before:first])
            found.append((first, last, key, share, size, width(text[first:last]), between))
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
