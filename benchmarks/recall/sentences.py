"""Vectors that are made once per text, however many systems ask for them.

This module knows nothing of what they are for.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memci.memory.retrieval.embedders import Embedder
from memci.memory.retrieval.sentence_embedder import SentenceEmbedder

Floats = NDArray[np.float32]


class Remembered:
    """An embedder that remembers."""

    def __init__(self, embed: Embedder) -> None:
        self._embed = embed
        self.name, self.dimension, self.semantic = embed.name, embed.dimension, embed.semantic
        self._known: dict[str, Floats] = {}

    def __call__(self, texts: Sequence[str], /) -> Floats:
        fresh = [text for text in dict.fromkeys(texts) if text not in self._known]
        if fresh:
            self._known.update(zip(fresh, np.asarray(self._embed(fresh), np.float32), strict=True))
        return np.array([self._known[text] for text in texts])


def sentences(folder: Path) -> Remembered:
    """Return the model in *folder*, as an embedder that remembers."""
    return Remembered(SentenceEmbedder(folder))
