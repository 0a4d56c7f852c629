"""Embedders: texts in, one row of numbers per text out; texts with a like meaning have rows that are near.

    embed(HashEmbedder(), ["Mel plays the violin", ""])      float32 (2, 1024): a row of length 1, a row of zeros

`HashEmbedder` (`hash_embedder`) knows words only and needs nothing. `SentenceEmbedder` (`sentence_embedder`) knows
meanings and needs a model in a folder. Any other callable of this form will do. `embed` checks what an embedder
returns, for all of them: an endpoint that is down, or that returns nonsense, must not spoil what is stored.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import EmbeddingFailed, InvalidSetting, MemciError, brief


@runtime_checkable
class Embedder(Protocol):
    """What turns texts into vectors. It is called from any thread; equal texts should have equal rows."""

    @property
    def name(self) -> str:
        """What its vectors are stored under: vectors of different names are never compared."""

    @property
    def dimension(self) -> int:
        """How many numbers a row has."""

    @property
    def semantic(self) -> bool:
        """Whether it knows meanings; False: shared words and parts of words only."""

    def __call__(self, texts: Sequence[str], /) -> ArrayLike:
        """Return a row per text, in their order. It is never given a blank text, nor an empty list."""


def embed(embedder: Embedder, texts: Sequence[str]) -> NDArray[np.float32]:
    """Return the vectors of *texts*: a row of unit length for each, a row of zeros for a blank one.

    EmbeddingFailed if the embedder raises (it is retryable then), or returns another shape than it says, or a number
    that is not finite.
    """
    if isinstance(texts, str):
        raise InvalidSetting("texts", f"a list of texts, not the text {brief(texts)}")
    rows = np.zeros((len(texts), embedder.dimension), np.float32)
    spoken = [position for position, text in enumerate(texts) if text.strip()]
    if not spoken:
        return rows
    try:
        given = np.asarray(embedder([texts[position] for position in spoken]))
    except MemciError:
        raise
    except Exception as error:  # a caller's embedder may raise anything: its endpoint is down, its answer is no table
        raise EmbeddingFailed(embedder.name, f"{type(error).__name__}: {error}"[:300], retryable=True) from error
    expected = len(spoken), embedder.dimension
    if given.shape != expected or given.dtype.kind not in "fiu":
        raise EmbeddingFailed(embedder.name, f"gave {given.dtype} of shape {given.shape}, not floats of {expected}")
    with np.errstate(all="ignore"):
        squares = np.einsum("ij,ij->i", given, given, dtype=np.float64)
    if not np.isfinite(squares).all():
        raise EmbeddingFailed(embedder.name, "gave numbers that are not finite")
    lengths = np.sqrt(squares)
    lengths[(lengths == 0) | (np.abs(lengths - 1) < 1e-5)] = 1
    rows[spoken] = given / lengths[:, None]
    return rows
