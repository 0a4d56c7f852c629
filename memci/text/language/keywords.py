"""Keywords: the telling words of texts, by how often they occur.

    ("We adopted a puppy from the Oslo Dog Shelter.", "The puppy chews shoes.")
    →  puppy (said twice) · oslo dog shelter (a name) · adopted · chews · shoes

    "我想预订上海外国语学院的房间，上海外国语学院很远"
    →  上海外国语学院: what is repeated is taken as one word

A word counts by its stem and is shown in its most frequent form, case-folded. Names count more, everyday words less.
(In the paper, arXiv 2506.06326, a model writes the keywords.)
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from ...workers import yield_to_calls
from .marks import normalize
from .patterns import GRAMMAR, HAN, HIRAGANA, STOPS, WIDE
from .telling import EVERYDAY_SHARE, FACT_SHARE, WORD_SHARE, telling_words
from .terms import is_single, terms

SCANNED = 20_000  # characters of a text that are read, a bound on its cost
_LONGEST = 40  # characters of a keyword; longer ones are hashes and encoded data
_CACHED = 80  # characters of a word that the cache keeps; longer words are rare and would fill it
_PHRASE = 4  # words of a name at most
_NAME, _ID, _PLAIN, _COMMON = 1.5, 1.25, 1.0, 0.35
"""Weights of a name, an id, any other word, and an everyday word. Chosen so that a name said once comes before a word
said once, and an everyday word must be said often."""
_HAN = re.compile(f"[{HAN}]+")
_SENTENCE_END = re.compile(rf"[.!?:;\n。！？{STOPS}|>*•\"“(\[-]\s*$")


def keywords(texts: Iterable[str], limit: int = 10) -> tuple[str, ...]:
    """Return the *limit* most important words and names of *texts*, case-folded. O(characters)."""
    counts: dict[str, float] = {}
    weights: dict[str, float] = {}
    forms: dict[str, dict[str, int]] = {}
    """how often each key was said in which form"""
    scanned = [normalize("NFKC", text[:SCANNED]) for text in texts]
    grams = _count_runs(scanned)
    for text in scanned:
        yield_to_calls()
        for surface, count, weight in _candidates(text, grams):
            if key := stems_of(surface):
                counts[key] = counts.get(key, 0.0) + count
                known = weights.get(key, 0.0)
                weights[key] = max(known, weight) if weight != _COMMON else known or weight
                shown, form = forms.setdefault(key, {}), surface.casefold()
                shown[form] = shown.get(form, 0) + 1
    scores = {key: (1 + math.log(max(1.0, count))) * weights[key] for key, count in counts.items()}
    best: dict[str, None] = {}
    for key in sorted(scores, key=scores.__getitem__, reverse=True):  # of equals, what was said first
        if len(best) >= limit:
            break
        shown = forms[key]
        best[max(shown, key=lambda one: (shown[one], one))] = None
    return tuple(best)


def jaccard(some: Iterable[str], others: Iterable[str]) -> float:
    """Return the Jaccard index of two lists of keywords, by their stems: 0 to 1, and 0 if one has none."""
    one, two = {stems_of(each) for each in some} - {""}, {stems_of(each) for each in others} - {""}
    return len(one & two) / len(one | two) if one and two else 0.0


def stems_of(word: str) -> str:
    """Return the stems of *word*, by which keywords are compared; "" for function words. O(length)."""
    return _join_stems_often(word) if len(word) <= _CACHED else _join_stems(word)


def _join_stems(word: str) -> str:
    return " ".join(term for term in terms(word) if not is_single(term))


_join_stems_often = lru_cache(maxsize=16_384)(_join_stems)


def _candidates(text: str, grams: Counter[str]) -> Iterator[tuple[str, float, float]]:
    """Yield the words of *text*, each with how often it counts and its weight."""
    name: list[tuple[str, float]] = []
    end = 0
    narrow = text.isascii()
    kanji = not narrow and HIRAGANA.search(text) is not None
    for start, stop, key, share, _, _, _ in telling_words(text):
        said = text[start:stop]
        if not narrow and WIDE.match(said):
            if share <= WORD_SHARE:
                pieces = _cut_words(said, grams) if len(said) > 2 and not kanji and _HAN.match(said) else [key]
                yield from ((piece, 1.0, _PLAIN) for piece in pieces)
            continue
        bare = said.removesuffix("'s").removesuffix("’s")
        weight = _COMMON if share >= EVERYDAY_SHARE else _ID if share < FACT_SHARE else _PLAIN
        follows = bool(name) and text[end:start] == " "
        capital = said[0].isupper() and not said.isupper()
        if name and not (capital and follows and len(name) < _PHRASE):
            yield from _name_words(name)
            name = []
        if capital and (follows or (start and not _SENTENCE_END.search(text, max(0, start - 4), start))):
            name.append((bare, weight))
        elif _is_word(bare):
            yield bare, 1.0, weight
            if capital and text[stop : stop + 1] == " " and text[stop + 1 : stop + 3].istitle():
                name = [(bare, weight)]  # a sentence may begin with a name
        end = stop
    yield from _name_words(name)


def _name_words(name: Sequence[tuple[str, float]]) -> Iterator[tuple[str, float, float]]:
    if len(name) > 1:
        yield " ".join(word for word, _ in name), 1.0, _NAME
    yield from (
        (word, 1.0 / len(name), _COMMON if weight == _COMMON else _NAME) for word, weight in name if _is_word(word)
    )


def _is_word(word: str) -> bool:
    return 2 <= len(word) <= _LONGEST and (word.isalpha() or any(map(str.isalpha, word)))


def _count_runs(texts: Sequence[str]) -> Counter[str]:
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


def _cut_words(piece: str, grams: Counter[str]) -> list[str]:
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
