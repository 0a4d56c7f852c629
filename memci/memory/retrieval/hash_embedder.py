"""An embedder of spelling: texts that share words, or parts of words, are near. It knows no meanings.

    "violin lessons"   ▁vi vio iol oli lin in▁  ▁vio …  ▁viol …  violin, and the same of "lessons"
    "小提琴课"           小 提 琴 课   小提 提琴 琴课   小提琴 提琴课
    each of them is hashed to +1 or -1 in one of `dimension` places, and all are summed

So "violin" finds "violins" and "voilin", never "fiddle": that is why `semantic` is False. Everything is computed in
whole numbers, so that a text has the same vector on every machine. This module knows nothing of models.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidSetting
from ...text.language.terms import STOP_WORDS

_SEPARATOR, _WORD, _ALONE = 0, 1, 2
_GRAMS = (3, 4, 5)
"""characters of the parts of a word; its two ends count as one each"""
_PIECE = 1 << 15
"""characters that are hashed at once, so that the numbers stay in the processor's cache"""
_BASE = np.uint32(0x01000193)
_BASE_INVERSE = np.uint32(pow(0x01000193, -1, 1 << 32))

_Hashes = NDArray[np.uint32]
_Kinds = NDArray[np.uint8]


class HashEmbedder:
    """Embeds texts by the words and parts of words that they are spelled with."""

    semantic = False

    def __init__(self, dimension: int = 1024) -> None:
        if isinstance(dimension, bool) or not isinstance(dimension, int) or not 8 <= dimension <= 1 << 16:
            raise InvalidSetting("dimension", f"a whole number from 8 to 65,536, not {dimension!r}")
        self.dimension = dimension
        self.name = f"memci-hash-1-{dimension}"

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a row of unit length per text; a text without a letter, digit or symbol has a row of zeros."""
        rows = np.empty((len(texts), self.dimension), np.float32)
        for row, text in zip(rows, texts, strict=True):
            counts = self._counts(text)
            # The square root keeps frequent parts from hiding rare ones, and brings the row to unit length.
            shares = np.abs(counts).astype(np.float32) / np.float32(np.abs(counts).sum() or 1)
            row[:] = np.copysign(np.sqrt(shares), counts)
        return rows

    def _counts(self, text: str) -> NDArray[np.int64]:
        """Return how much the features of *text* add to each place."""
        folded = text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()
        counts = np.zeros(2 * self.dimension, np.int64)
        for start in range(0, len(folded), _PIECE):
            hashes = _mixed(np.concatenate([*_features(folded[start : start + _PIECE])])).astype(np.uint64)
            places = (hashes * np.uint64(len(counts))) >> np.uint64(32)
            counts += np.bincount(places.astype(np.int64), minlength=len(counts))
        return counts[::2] - counts[1::2]


def _features(piece: str) -> Iterator[_Hashes]:
    """Yield the hashes of words, of parts of words, and of characters that stand alone. O(characters)."""
    codes, kinds = _read(piece)
    inside = kinds == _WORD
    letters = codes * inside
    starts, ends, whole = _whole_words(letters, inside)
    yield whole
    steps = np.zeros(len(inside), np.int8)  # up where a function word begins, and down behind it
    functional = np.isin(whole, _function_words())
    steps[starts[functional] + 1] += 1
    steps[ends[functional] + 1] -= 1
    within = inside[1:] & (np.cumsum(steps, dtype=np.int8) == 0)[1:]
    grams = letters[:-1] * _BASE + letters[1:]
    for length in _GRAMS:
        grams = grams[:-1] * _BASE + letters[length - 1 :]
        # Only the first and the last place of a part may be an end of the word; the second belongs to the word.
        within = within[: len(grams)] & inside[length - 2 : -1]
        yield grams[within]
    grams, within = codes, kinds == _ALONE
    for length in (1, 2, 3):
        if length > 1:
            grams = grams[:-1] * _BASE + codes[length - 1 :]
            within = within[:-1] & (kinds == _ALONE)[length - 1 :]
        yield grams[within] ^ np.uint32(0x68E31DA4 * length & 0xFFFFFFFF)


def _read(piece: str) -> tuple[_Hashes, _Kinds]:
    """Return the number and the kind of each character; a separator stands at both ends."""
    codes = np.frombuffer(f"\0{piece}\0".encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint32)
    kinds = _kinds()[codes]
    codes *= np.uint32(0x9E3779B1)
    codes ^= codes >> np.uint32(15)
    return codes, kinds


def _whole_words(letters: _Hashes, inside: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64], _Hashes]:
    """Return where each word begins (the place before it) and ends (its last place), and its hash."""
    starts = np.flatnonzero(inside[1:] & ~inside[:-1])
    ends = np.flatnonzero(inside[:-1] & ~inside[1:])
    sums = np.cumsum(letters * _powers(_BASE)[: len(letters)], dtype=np.uint32)
    return starts, ends, (sums[ends] - sums[starts]) * _powers(_BASE_INVERSE)[starts] ^ np.uint32(0x51ED270B)


def _mixed(hashes: _Hashes) -> _Hashes:
    """Spread what differs in any bit over all bits (the finalizer of MurmurHash3)."""
    hashes ^= hashes >> np.uint32(16)
    hashes *= np.uint32(0x85EBCA6B)
    hashes ^= hashes >> np.uint32(13)
    hashes *= np.uint32(0xC2B2AE35)
    hashes ^= hashes >> np.uint32(16)
    return hashes


@cache
def _powers(base: np.uint32) -> _Hashes:
    return np.cumprod(np.full(_PIECE + 2, base, np.uint32), dtype=np.uint32)  # a piece and its two separators


@cache
def _function_words() -> _Hashes:
    codes, kinds = _read("\0".join(sorted(STOP_WORDS)))
    return _whole_words(codes * (kinds == _WORD), kinds == _WORD)[2]


@cache
def _kinds() -> _Kinds:
    """What each code point is: a letter of a word, a word of its own, or between words."""
    kinds = np.zeros(0x110000, np.uint8)
    kinds[:0x20000] = [_kind(code) for code in range(0x20000)]
    kinds[0x20000:0x40000] = _ALONE
    return kinds


def _kind(code: int) -> int:
    if 0x3005 <= code <= 0x30FF or 0x3400 <= code <= 0x9FFF or 0xAC00 <= code <= 0xD7A3 or 0xF900 <= code <= 0xFAFF:
        return _ALONE if unicodedata.category(chr(code))[0] in "LNS" else _SEPARATOR
    category = unicodedata.category(chr(code))
    if category == "So":
        return _ALONE
    return _WORD if category[0] in "LNM" and not 0xFE00 <= code <= 0xFE0F else _SEPARATOR
