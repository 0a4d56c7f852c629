"""An embedder that compares words: texts that share words are near.

    "violin lessons"   ▶  violin, lesson            the terms of a search, without function words
    "小提琴课"           ▶  小提, 提琴, 琴课, 小, 提, 琴, 课
    each of them is hashed to +1 or -1 in one of `dimension` places, and all are summed

So "violin" is near "violins", but not near "fiddle": therefore `semantic` is False. A text has the same vector on every
machine.
"""

import zlib
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidSetting
from ...text.language.terms import terms


class HashEmbedder:
    """Embeds texts by their words."""

    semantic = False

    def __init__(self, dimension: int = 1024) -> None:
        if isinstance(dimension, bool) or not isinstance(dimension, int) or not 8 <= dimension <= 1 << 16:
            raise InvalidSetting("dimension", f"a whole number from 8 to 65,536, not {dimension!r}")
        self.dimension = dimension
        self.name = f"memci-words-5-{dimension}"

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a row of unit length for each text, or zeros for a text without terms. O(characters)."""
        rows = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in zip(rows, texts, strict=True):
            counts = Counter(terms(text))
            hashes = np.array([zlib.crc32(term.encode("utf-8", "surrogatepass")) for term in counts], np.int64)
            times = np.array(list(counts.values()), np.float32)
            # The square root limits the effect of frequent words.
            np.add.at(row, hashes % self.dimension, np.sqrt(times) * np.where(hashes >> 31, 1, -1))
            row[:] = row / (np.linalg.norm(row) or 1)
        return rows
