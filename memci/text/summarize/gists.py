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

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Sequence
from math import inf, log
from operator import itemgetter
from typing import NamedTuple

from ..language.patterns import STOPS, alternatives
from ..language.scopes import AFTER, BEFORE, Turn
from ..language.sentences import SMALL_TALK, lower_case
from ..language.telling import EVERYDAY_SHARE, FACT_SHARE, WORD_SHARE, Word, telling_words
from ..sanitize import is_narrow, width
from .bounds import Bounds

_PRICE = 0.2  # The weight that pays for a column, at first: a lower price rarely leaves a gist that fits.
_SHORT = 60  # columns of a line on which everything stands as it was said; a longer line has to be worth its room
_FEW = 2  # pages that may begin with one label before it counts as a speaker of all of them
_ANSWER = "¬"  # the key of a negator that answers
_NEGATOR = 4.0  # the weight of a negator in a text that is short enough to stand as it was said
_OPENING = 6  # columns that a further span costs: without it, a gist is many single words
_PRIOR = 100
"""texts that the shares of `language.telling` count as, beside the given ones: a few pages do not outweigh them"""
_ARTICLES = alternatives("words", "articles")
_ARTICLE = re.compile(rf"[^\w'’](?P<out>(?:(?:{_ARTICLES})\s++)++)")
_CHATTER = re.compile(rf"[.!?。！？{STOPS}\n](?:(?P<out>[\s,、，]*+{SMALL_TALK.pattern})|[\s,、，]{{2,}}+)")
"""the end of a sentence, and small talk behind it; or blanks before something else, so that each is read once"""
_BLANKS = re.compile(r"\s\s")
_ENGLISH = (" the ", " I ", " you ", " is ", " my ", " to ")  # words that show that "a" is an article
_CAPTION = re.compile(
    r"[\[(](?:(?:shared|shares|sends|sent|attached|attaches|shows|showing)\s{1,4})?(?:an? )?"
    r"(?:image|images|photo|photos|picture|pictures|pic|gif|video|screenshot|图片|照片|画像|写真|사진)\b[^\[\]()\n]{0,300}[\])]",
    re.IGNORECASE,
)
"""what a picture shows, in words that nobody said"""
_ASKED = re.compile(rf"(?:[^.!?;()\n。！？；…{STOPS}]|\.(?=\w)){{0,200}}(?:[？؟፧]|\?(?![A-Za-z0-9_]))")
"""the rest of a question"""
_BULLET = re.compile(r"\n[ \t]*(?:\d{1,2}[.)]|[-*#>]+)[ \t]")


_Taken = tuple["_Taken", int, int] | None
"""a linked list of spans: the earlier ones, and first and last word of the last"""


class Gist(NamedTuple):
    """The gist of some texts, and its weight."""

    spans: tuple[str, ...]  # one for each text, its parts joined by commas; "" if no part is worth its room
    weight: float  # of its words, or of all words if they are worth a gist, and none fits


class Reading(NamedTuple):
    """A text that was read for a gist."""

    text: str  # without articles, bullets and small talk
    words: Sequence[Word]
    even: bool  # whether each character takes one column, and no two blanks follow each other
    firsts: Sequence[int] = ()  # for each word, where a span begins that has it as its first; -1 where none may
    lasts: Sequence[int] = ()  # for each word, where a span ends that has it as its last; -1 where none may
    flat: str = ""  # all that was said on one line, if it has few enough columns
    negators: int = 0
    label: str = ""  # the key of a label at the beginning: "Mel: …"


def read_text(text: str, columns: int = 0, *, printed: bool = False) -> Reading:
    """Return *text*, read for a gist, and all of it if it has at most *columns*. O(characters).

    In output that a machine *printed*, ids and numbers count like other words: there are too many.
    """
    flat = " ".join(text.split()) if len(text) <= columns else ""
    text = _strip(text)
    turns: list[Turn] = []
    words = telling_words(text, turns)
    bounds = Bounds(text, words, turns)
    if printed:
        words = [(*word[:3], max(word[3], WORD_SHARE), *word[4:]) for word in words]
    known = {word[0] for word in words} if flat else ()
    negators = sum([start not in known for start, _, role in turns if role & BEFORE]) if flat else 0
    _weigh_negator(words, bounds, turns)
    even = is_narrow(text) and not _BLANKS.search(text)
    label = words[0][2] if words and text[words[0][1] : words[0][1] + 2] == ": " else ""
    return Reading(text, words, even, bounds.firsts, bounds.lasts, flat, negators, label)


def _weigh_negator(words: list[Word], bounds: Bounds, turns: Sequence[Turn]) -> None:
    """Let a negator before all *words* that tell something count as one: "No, …" answers by it alone. O(words)."""
    start, end = min([turn[:2] for turn in turns if turn[2] & (BEFORE | AFTER)], default=(-1, -1))
    at = bisect_left(words, start, key=itemgetter(0))
    if start < 0 or any(word[3] < EVERYDAY_SHARE for word in words[:at]) or bounds.has_mark(0, start):
        return
    told = at + (at < len(words) and words[at][0] < end)
    negator = (start, end, _ANSWER, FACT_SHARE, _NEGATOR / -log(FACT_SHARE), end - start, inf)
    words[at:told], bounds.firsts[at:told], bounds.lasts[at:told] = [negator], [start], [end]
    for word in words[at + 1 : at + 2]:
        words[at + 1] = (*word[:6], inf if bounds.has_mark(end, word[0]) else word[0] - end)


def _strip(text: str) -> str:
    """Return *text* without small talk, bullets, captions of pictures and English articles. O(characters)."""
    # each line has a break before it, and each sentence a mark, by which a search skips quickly
    bare = _replace(_CHATTER, _BULLET.sub("\n", f"\n{text}"), " ")
    if "[" in bare or "(" in bare:
        told = _CAPTION.sub(" ", bare)
        bare = told if told.strip() else bare
    return (_replace(_ARTICLE, bare, "") if any(word in bare for word in _ENGLISH) else bare)[1:]


def _replace(pattern: re.Pattern[str], text: str, new: str) -> str:
    """Return *text* with *new* for what *pattern*, which is in lower case, names "out". O(characters)."""
    kept, place = [], 0
    for each in pattern.finditer(lower_case(text)):
        start, end = each.span("out")
        if end > place:
            kept.append(text[place:start])
            place = end
    return new.join([*kept, text[place:]]) if kept else text


def weight(text: str) -> float:
    """Return the weight of all words of *text*, beside no other. O(characters)."""
    words = telling_words(_strip(text))
    return sum(_weights([Reading(text, words, even=True)], Counter({word[2] for word in words}), 1, set()))


def gists(
    pages: Sequence[Sequence[Reading]], columns: Sequence[int], shown: Sequence[Collection[str]] = ()
) -> list[Gist]:
    """Return the gist of the texts of each page, within so many *columns* for all of them. O(words).

    *shown* has, for each page, keys of words that weigh nothing there.
    """
    counts = Counter(key for page in pages for key in {word[2] for each in page for word in each.words})
    speakers = {key for page in pages for each in page if (key := each.label) and _FEW < counts[key] > len(pages) // 8}
    return [
        _gist(page, _weights(page, counts, len(pages), {*known}), room, speakers)
        for page, known, room in zip(pages, shown or [()] * len(pages), columns, strict=True)
    ]


def _gist(page: Sequence[Reading], weights: Sequence[float], room: int, speakers: Collection[str]) -> Gist:
    if whole := _whole(page, sum(weights), room, speakers):
        return whole
    words = [word for each in page for word in each.words]
    texts = [at for at, each in enumerate(page) for _ in each.words]  # the position of each word's text
    firsts, lasts = [at for each in page for at in each.firsts], [at for each in page for at in each.lasts]
    items = [
        (weight, cost, gap, start - first + _OPENING if first >= 0 else inf, last - end if last >= 0 else inf)
        for weight, (start, end, _, _, _, cost, gap), first, last in zip(weights, words, firsts, lasts, strict=True)
    ]
    even = all(each.even for each in page)
    says = [
        share <= FACT_SHARE or (share < EVERYDAY_SHARE and not each.text[start].isdigit())
        for each in page
        for start, _, _, share, _, _, _ in each.words
    ]  # whether a span may be this word alone: everyday words and numbers say nothing alone

    def marks(taken: Sequence[tuple[int, int]]) -> list[str]:
        ends = [*((texts[first], firsts[first]) for first, _ in taken[1:]), (inf, 0)]
        asked = [_ASKED.match(page[texts[last]].text, lasts[last]) for _, last in taken]
        return [
            "?" if found and (texts[last], found.end()) <= then else ""
            for (_, last), found, then in zip(taken, asked, ends, strict=True)
        ]

    def spans(taken: Sequence[tuple[int, int]]) -> tuple[str, ...]:
        parts: list[list[str]] = [[] for _ in page]
        for (first, last), asked in zip(taken, marks(taken), strict=True):
            at = texts[first]
            parts[at].append(" ".join(page[at].text[firsts[first] : lasts[last]].split()) + asked)
        return tuple(map(", ".join, parts))

    price, worth = _PRICE, 0.0
    while taken := [span for span in _best(items, price) if any(says[span[0] : span[1] + 1])]:
        if even:  # most prices are too low: measure the spans without making them
            wide = sum([lasts[last] - firsts[first] + 2 for first, last in taken]) + sum(map(len, marks(taken)))
            wide += len({texts[first] for first, _ in taken}) - 3
        else:
            wide = sum([width(each) + 3 for each in spans(taken) if each]) - 3
        if wide <= room:
            return Gist(spans(taken), sum([sum(weights[first : last + 1]) for first, last in taken]))
        worth = worth or sum(weights)
        price *= 1.05 + 0.35 * (1 - room / wide)
    return Gist(("",) * len(page), worth)


def _whole(page: Sequence[Reading], weight: float, room: int, speakers: Collection[str]) -> Gist | None:
    """Return all that *page* says, if it is short; not what only acknowledges, and no transcript of *speakers*."""
    said = [each.flat if each.words or each.negators else "" for each in page]
    if not all(each.flat and each.label not in speakers for each in page):
        return None
    wide = sum([width(each) + 3 for each in said if each]) - 3
    weight += _NEGATOR * sum([each.negators for each in page])
    return Gist(tuple(said), weight) if wide <= room and (weight >= _PRICE * wide or wide <= _SHORT) else None


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
            weights.append(size * log(whole / ((counts[key] if share > FACT_SHARE else 0) + share * whole)))
    return weights


def _best(items: Sequence[tuple[float, int, float, float, float]], price: float) -> list[tuple[int, int]]:
    """Return the spans (first and last word) with the highest value at *price* a column. O(words).

    *items* has, for each word, its weight, its columns, the columns between it and the word before, and those that a
    span costs before and behind it, if it begins and ends with it.
    """
    outside, inside = 0.0, -inf
    """the highest value of the words so far, if the last one is in no span, and if it is in one"""
    first = 0
    """where the open span begins"""
    spans: _Taken = None
    """the spans of `outside`"""
    before: _Taken = None
    """the spans of `inside`, without its open one"""
    behind = inf
    for at, (weight, cost, gap, ahead, after) in enumerate(items):
        closed = inside - behind * price
        if closed > outside:
            outside, spans = closed, (before, first, at - 1)
        inside -= gap * price
        opened = outside - ahead * price
        if inside < opened:
            inside, before, first = opened, spans, at
        inside = inside + weight - cost * price
        behind = after
    if inside - behind * price > outside:
        spans = before, first, len(items) - 1
    found: list[tuple[int, int]] = []
    while spans is not None:
        spans, first, last = spans
        found.append((first, last))
    return found[::-1]
