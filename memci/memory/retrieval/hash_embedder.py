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
_PLACES = 1 << 18
"""places that are counted at once, for the same reason"""
_BLOCK = 128
_BASE = np.uint32(0x01000193)
_BASE_INVERSE = np.uint32(pow(0x01000193, -1, 1 << 32))

_Hashes = NDArray[np.uint32]
_Rows = NDArray[np.int64]


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
        counted = np.zeros((len(texts), self.dimension), np.float32)
        for rows, pieces in _batches(texts, max(1, _PLACES // (2 * self.dimension))):
            counted[rows] += self._counted(pieces)  # no text has two pieces in a batch
        for start in range(0, len(counted), _BLOCK):
            _damp(counted[start : start + _BLOCK])
        return counted

    def _counted(self, pieces: Sequence[str]) -> NDArray[np.float32]:
        rows, hashes = _features(pieces)
        mixed = _mixed(hashes).astype(np.uint64)
        mixed *= np.uint64(2 * self.dimension)
        mixed >>= np.uint64(32)
        places = mixed.view(np.int64)
        rows *= 2 * self.dimension
        places += rows
        counts = np.bincount(places, minlength=len(pieces) * 2 * self.dimension).reshape(len(pieces), -1, 2)
        return (counts[:, :, 0] - counts[:, :, 1]).astype(np.float32)


def _damp(counted: NDArray[np.float32]) -> None:
    """Bring rows to unit length; the square root keeps frequent parts from hiding rare ones."""
    sizes = np.abs(counted)
    lengths = sizes.sum(axis=1, keepdims=True, dtype=np.float64)
    lengths[lengths == 0] = 1.0
    sizes /= lengths.astype(np.float32)
    np.sqrt(sizes, out=sizes)
    np.copysign(sizes, counted, out=counted)


def _batches(texts: Sequence[str], at_most: int) -> Iterator[tuple[list[int], list[str]]]:
    """Yield texts, folded and cut, with their rows, in portions that need little memory."""
    rows: list[int] = []
    pieces: list[str] = []
    size = 0
    for row, text in enumerate(texts):
        folded = _folded(text)
        for start in range(0, len(folded), _PIECE):
            piece = folded[start : start + _PIECE]
            if pieces and (size + len(piece) > _PIECE or len(pieces) == at_most):
                yield rows, pieces
                rows, pieces, size = [], [], 0
            rows.append(row)
            pieces.append(piece)
            size += len(piece)
    if pieces:
        yield rows, pieces


def _folded(text: str) -> str:
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()


def _features(pieces: Sequence[str]) -> tuple[_Rows, _Hashes]:
    """Return the hash of each feature, and the number of the piece that it is of. O(characters)."""
    codes, kinds, piece_of = _read(pieces)
    found = [*_of_words(codes, kinds == _WORD, piece_of)]
    alone = kinds == _ALONE
    if alone.any():
        found += _of_single(codes, alone, piece_of)
    return np.concatenate([rows for rows, _ in found]), np.concatenate([hashes for _, hashes in found])


def _read(pieces: Sequence[str]) -> tuple[_Hashes, NDArray[np.uint8], _Rows]:
    """Return the number, the kind and the piece of each character; a separator stands around each piece."""
    joined = "\0".join(["", *pieces, ""])
    codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint32)
    kinds = _kinds()[codes]
    codes *= np.uint32(0x9E3779B1)
    codes ^= codes >> np.uint32(15)
    return codes, kinds, np.repeat(np.arange(-1, len(pieces)), [1, *(len(piece) + 1 for piece in pieces)])


def _of_words(codes: _Hashes, inside: NDArray[np.bool_], piece_of: _Rows) -> Iterator[tuple[_Rows, _Hashes]]:
    """Whole words, and the parts of those that are no function words."""
    letters = codes * inside
    starts, ends, whole = _whole_words(letters, inside)
    yield piece_of[ends], whole
    within = inside[1:] & ~_covered(starts, ends, np.isin(whole, _function_words()), len(inside))[1:]
    grams = letters[:-1] * _BASE + letters[1:]
    for length in _GRAMS:
        grams = grams[:-1] * _BASE + letters[length - 1 :]
        # Only the first and the last place of a part may be an end of the word; the second belongs to the word.
        within = within[: len(grams)] & inside[length - 2 : -1]
        chosen = np.flatnonzero(within)
        yield piece_of[chosen + 1], grams[chosen]


def _whole_words(letters: _Hashes, inside: NDArray[np.bool_]) -> tuple[_Rows, _Rows, _Hashes]:
    """Return where each word begins (the place before it) and ends (its last place), and its hash."""
    starts = np.flatnonzero(inside[1:] & ~inside[:-1])
    ends = np.flatnonzero(inside[:-1] & ~inside[1:])
    sums = np.cumsum(letters * _powers(_BASE)[: len(letters)], dtype=np.uint32)
    return starts, ends, (sums[ends] - sums[starts]) * _powers(_BASE_INVERSE)[starts] ^ np.uint32(0x51ED270B)


def _covered(starts: _Rows, ends: _Rows, chosen: NDArray[np.bool_], size: int) -> NDArray[np.bool_]:
    steps = np.zeros(size, np.int8)
    steps[starts[chosen] + 1] += 1
    steps[ends[chosen] + 1] -= 1
    return np.cumsum(steps, dtype=np.int8).view(np.bool_)


def _of_single(codes: _Hashes, inside: NDArray[np.bool_], piece_of: _Rows) -> Iterator[tuple[_Rows, _Hashes]]:
    """One, two and three characters of writing without spaces."""
    grams, within = codes, inside
    for length in (1, 2, 3):
        if length > 1:
            grams = grams[:-1] * _BASE + codes[length - 1 :]
            within = within[:-1] & inside[length - 1 :]
        chosen = np.flatnonzero(within)
        yield piece_of[chosen], grams[chosen] ^ np.uint32(0x68E31DA4 * length & 0xFFFFFFFF)


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
    # no batch is longer than this, separators and all
    return np.cumprod(np.full(_PIECE + _PLACES, base, np.uint32), dtype=np.uint32)


@cache
def _function_words() -> _Hashes:
    codes, kinds, _ = _read(sorted(STOP_WORDS))
    return _whole_words(codes * (kinds == _WORD), kinds == _WORD)[2]


@cache
def _kinds() -> NDArray[np.uint8]:
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
