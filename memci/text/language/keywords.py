"""Keywords: what a text is about, by counting.

    ("We adopted a puppy from the Oslo Dog Shelter.", "The puppy chews shoes.")
    →  puppy (said twice) · oslo dog shelter (a name) · adopted · chews · shoes

    "我想预订上海外国语学院的房间，上海外国语学院很远"
    →  上海外国语学院: cut at grammar (我想 的 很); what is repeated is taken as one word

A word counts by its stem and is shown in its most frequent form, case-folded. Names count more, everyday words less.
(In the paper, arXiv 2506.06326, a model writes the keywords.)

This module knows nothing of pages, episodes or stored statistics.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from ...workers import yield_to_calls
from .patterns import GRAMMAR, HAN, HIRAGANA, LETTER, PARTICLE, PREDICATE, words
from .terms import is_single, terms

SCANNED = 20_000
_LONGEST = 40
_CACHED = 80
"""characters of a word that the cache keeps; longer ones are rare, and would make it large"""
_PHRASE = 4
_NAME, _ID, _PLAIN, _COMMON = 1.5, 1.25, 1.0, 0.35

_RUN = re.compile(
    rf"(?P<han>[{HAN}]+)|(?P<kata>[\u30a1-\u30ff]{{2,}})|(?P<hangul>[\uac00-\ud7a3]{{2,}})"
    rf"|(?P<word>{LETTER}+(?>['’.@+&-]{LETTER}+)*)"
)
_SENTENCE_END = re.compile(r"[.!?:;\n。！？|>*•\"“(\[-]\s*$")


@dataclass(slots=True)
class _Tally:
    first: int
    weight: float = 0.0
    count: float = 0.0
    surfaces: Counter[str] = field(default_factory=Counter)


def keywords(texts: Iterable[str], limit: int = 10) -> tuple[str, ...]:
    """Return at most *limit* words and names that *texts* are about, weightiest first, case-folded. O(characters)."""
    tallies: dict[str, _Tally] = {}
    scanned = [unicodedata.normalize("NFKC", text[:SCANNED]) for text in texts]
    grams = _grams(scanned)
    for text in scanned:
        yield_to_calls()
        for surface, count, weight in _candidates(text, grams):
            key = folded(surface)
            if key:
                tally = tallies.setdefault(key, _Tally(len(tallies)))
                tally.count += count
                tally.weight = max(tally.weight, weight) if weight != _COMMON else tally.weight or weight
                tally.surfaces[surface.casefold()] += 1
    scores = {key: (1 + math.log(max(1.0, each.count))) * each.weight for key, each in tallies.items()}
    ranked = sorted(tallies, key=lambda key: (-scores[key], tallies[key].first))
    best = (
        max(tally.surfaces, key=lambda one: (tally.surfaces[one], one)) for tally in map(tallies.get, ranked) if tally
    )
    return tuple(dict.fromkeys(best))[: max(0, limit)]


def jaccard(some: Iterable[str], others: Iterable[str]) -> float:
    """Return the share of the keywords of both that both have, by their stems: 0 to 1, and 0 if there are none."""
    one, two = {folded(each) for each in some} - {""}, {folded(each) for each in others} - {""}
    return len(one & two) / len(one | two) if one and two else 0.0


def folded(word: str) -> str:
    """Return the stems of *word*, by which keywords are compared; "" if it has no meaning of its own. O(length)."""
    return _folded_often(word) if len(word) <= _CACHED else _folded(word)


def _folded(word: str) -> str:
    return " ".join(term for term in terms(word) if not is_single(term))


_folded_often = lru_cache(maxsize=16_384)(_folded)


def _candidates(text: str, grams: Counter[str]) -> Iterator[tuple[str, float, float]]:
    """Yield each word of *text*, how often it counts and what it weighs."""
    name: list[str] = []
    end = 0
    kanji = HIRAGANA.search(text) is not None
    for match in _RUN.finditer(text):
        word = match[0]
        if match.lastgroup != "word":
            if match.lastgroup == "hangul":
                found = _noun(word)
                yield from [(found, 1.0, _PLAIN)] if found else []
            else:
                pieces = [word] if match.lastgroup == "kata" else _cut(word, grams, kanji=kanji)
                yield from ((piece, 1.0, _PLAIN) for piece in pieces)
            end = match.end()
            continue
        bare = word.removesuffix("'s").removesuffix("’s")
        follows = text[end : match.start()] in (" ", "-") and name
        begins = not end or _SENTENCE_END.search(text, max(0, match.start() - 4), match.start())
        capital = word[0].isupper() and not word.isupper() and bool(folded(bare))
        if name and not (capital and follows and len(name) < _PHRASE):
            yield from _named(name)
            name = []
        if capital and (follows or not begins):
            name.append(bare)
        elif _telling(bare):
            yield bare, 1.0, _weight(bare)
            if capital:
                # a sentence may begin with a name
                name = [bare] if _follows_capital(text, match.end()) else []
        end = match.end()
    yield from _named(name)


def _named(name: Sequence[str]) -> Iterator[tuple[str, float, float]]:
    if len(name) > 1:
        yield " ".join(name), 1.0, _NAME
    for word in name:
        if _telling(word):
            yield word, 1.0 / len(name), _NAME if folded(word) not in _EVERYDAY_STEMS else _COMMON


def _follows_capital(text: str, end: int) -> bool:
    return text[end : end + 1] == " " and text[end + 1 : end + 2].isupper() and text[end + 2 : end + 3].islower()


def _telling(word: str) -> bool:
    if not 2 <= len(word) <= _LONGEST or word.isdigit():
        return False
    return word.isalpha() or any(letter.isalpha() for letter in word)


def _weight(word: str) -> float:
    if not word.isalpha() and any(letter.isdigit() for letter in word):
        return _ID
    return _COMMON if folded(word) in _EVERYDAY_STEMS else _PLAIN


def _noun(word: str) -> str:
    bare = PARTICLE.sub("", word)
    return "" if len(bare) < 2 or (bare == word and PREDICATE.search(word)) else bare


def _grams(texts: Sequence[str]) -> Counter[str]:
    """Count the runs of 2 to 8 Han characters: one that is repeated is taken as a word."""
    found: Counter[str] = Counter()
    for text in texts:
        if text.isascii():
            continue
        yield_to_calls()
        for match in re.finditer(f"[{HAN}]{{2,}}", text):
            for piece in GRAMMAR.split(match[0]):
                for start in range(len(piece) - 1):
                    found.update(piece[start:end] for end in range(start + 2, min(start + 8, len(piece)) + 1))
    return found


def _cut(run: str, grams: Counter[str], *, kanji: bool) -> list[str]:
    # between kana, grammar is not written in Han characters
    pieces = [run] if kanji and len(run) <= 4 else GRAMMAR.split(run)
    found: list[str] = []
    for piece in pieces:
        found += _words_of(piece, grams) if len(piece) > 2 and not kanji else [piece] if len(piece) >= 2 else []
    return found


def _words_of(piece: str, grams: Counter[str]) -> list[str]:
    """Cut *piece* into the most frequent words; among equals, into words of two and three characters. O(length)."""
    best: list[tuple[float, int]] = [(0.0, 0)]
    for end in range(1, len(piece) + 1):
        choices = [(best[end - 1][0], 1)]
        for length in range(2, min(8, end) + 1):
            word = piece[end - length : end]
            again = (grams[word] - 1) * (length - 1)
            choices.append((best[end - length][0] + again + (0.2, 0.24, 0.26)[min(length, 4) - 2], length))
        best.append(max(choices))
    found: list[str] = []
    end = len(piece)
    while end:
        length = best[end][1]
        if length > 1:
            found.append(piece[end - length : end])
        end -= length
    return found[::-1]


_EVERYDAY_STEMS = frozenset(map(folded, words("words", "everyday")))
