"""Gists: the most important spans of a text for their width, verbatim.

    Hey! Since we last spoke I signed up for a pottery class. It's like therapy to me!
    ──  ────────────────────   ───── ── ───   ─────── ─────   ──── ────    ───────
    small talk                 signed up for pottery class,   like therapy

Rare words (`language.telling`) weigh much, everyday words little, and what most of the texts have that are given
together nearly nothing; ids and facts weigh as much however often they were said. A column has its price, and so has
the beginning of a span: a few long spans are easier to read than many words. Where there is too much, the price rises
until the gist fits.

Beyond the texts that are given there is only the list of everyday words: the same texts give the same gists in every
process.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

from ..language.patterns import alternatives
from ..language.sentences import SMALL_TALK
from ..language.telling import FACT_SHARE, WORD_SHARE, Word, telling_words
from ..sanitize import is_narrow, width

_PRICE = 0.2
"""The weight that pays for a column, at first: a lower price rarely leaves a gist that fits."""
_OPENING = 6
"""columns that a further span costs: without it, a gist is many single words"""
_PRIOR = 100
"""texts that the shares of `language.telling` count as, beside the given ones: a few pages do not outweigh them"""
_ARTICLES = alternatives("words", "articles")
_BEGINS = "".join(sorted({each[0] for each in _ARTICLES.split("|")}))
_ARTICLE = re.compile(rf"\b(?=[{_BEGINS}])(?:{_ARTICLES})\s+", re.IGNORECASE)
_CHATTER = re.compile(
    rf"(?<![^.!?。！？\n])(?:(?P<chatter>[\s,、，]*+{SMALL_TALK.pattern})|[\s,、，]{{2,}}+)", re.IGNORECASE
)
"""small talk at the beginning of a sentence; or blanks before something else, so that each is read once"""
_BLANKS = re.compile(r"\s\s")
_BULLET = re.compile(r"(?:^|(?<=\n))[ \t]*(?:\d{1,2}[.)]|[-*#>]+)[ \t]")


_Taken = tuple["_Taken", int, int] | None
"""a linked list of spans: the earlier ones, and first and last word of the last"""


class Gist(NamedTuple):
    """The gist of some texts, and its weight."""

    spans: tuple[str, ...]
    """one for each text, its parts joined by commas; "" if no part is worth its room"""
    weight: float


class Reading(NamedTuple):
    """A text that was read for a gist."""

    text: str
    """without articles, bullets and small talk"""
    words: Sequence[Word]
    even: bool
    """whether each character takes one column, and no two blanks follow each other"""


def read_text(text: str, *, printed: bool = False) -> Reading:
    """Return *text*, read for a gist. O(characters).

    In output that a machine *printed*, ids and numbers count like other words: there are too many.
    """
    bare = _ARTICLE.sub("", _CHATTER.sub(_without_chatter, _BULLET.sub("", text))) if text else ""
    words = telling_words(bare)
    if printed:
        words = [(*word[:3], max(word[3], WORD_SHARE), *word[4:]) for word in words]
    return Reading(bare, words, is_narrow(bare) and not _BLANKS.search(bare))


def _without_chatter(found: re.Match[str]) -> str:
    return found[0] if found["chatter"] is None else " "


def gists(
    pages: Sequence[Sequence[Reading]], columns: Sequence[int], shown: Sequence[Collection[str]] = ()
) -> list[Gist]:
    """Return the gist of the texts of each page, within so many *columns* for all of them. O(words).

    *shown* has, for each page, keys of words that weigh nothing there.
    """
    counts = Counter(key for page in pages for key in {word[2] for each in page for word in each.words})
    return [
        _gist(page, _weights(page, counts, len(pages), {*known}), room)
        for page, known, room in zip(pages, shown or [()] * len(pages), columns, strict=True)
    ]


def _gist(page: Sequence[Reading], weights: Sequence[float], room: int) -> Gist:
    words = [word for each in page for word in each.words]
    texts = [at for at, each in enumerate(page) for _ in each.words]
    """the position of each word's text"""
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
        if even:  # most prices are too low: measure the spans without making them
            wide = sum([words[last][1] - words[first][0] + 2 for first, last in taken])
            wide += len({texts[first] for first, _ in taken}) - 3
        else:
            wide = sum([width(each) + 3 for each in spans(taken) if each]) - 3
        if wide <= room:
            return Gist(spans(taken), sum([sum(weights[first : last + 1]) for first, last in taken]))
        price *= 1.05 + 0.35 * (1 - room / wide)
    return Gist(("",) * len(page), 0.0)


def _weights(page: Sequence[Reading], counts: Counter[str], pages: int, seen: set[str]) -> list[float]:
    """Return the weight of each word; 0 if it was *seen* before."""
    weights = []
    whole = pages + _PRIOR
    for each in page:
        for _, _, key, share, size, _, _ in each.words:
            if key in seen:
                weights.append(0.0)
                continue
            seen.add(key)
            weights.append(size * math.log(whole / ((counts[key] if share > FACT_SHARE else 0) + share * whole)))
    return weights


def _best(items: Sequence[tuple[float, int, float]], price: float) -> list[tuple[int, int]]:
    """Return the spans (first and last word) with the highest value at *price* a column. O(words).

    *items* has, for each word, its weight, its columns and the columns between it and the word before.
    """
    outside, inside = 0.0, -math.inf
    """the highest value of the words so far, if the last one is in no span, and if it is in one"""
    first = 0
    """where the open span begins"""
    spans: _Taken = None
    """the spans of `outside`"""
    before: _Taken = None
    """the spans of `inside`, without its open one"""
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
