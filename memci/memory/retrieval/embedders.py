"""Embedders turn texts into vectors: texts with similar meanings have vectors that are near.

`HashEmbedder` (`hash_embedder`) compares words and needs no model. `SentenceEmbedder` (`sentence_embedder`) compares
meanings with a model in a folder. Any other callable of this form is allowed. `embed` checks the results of all
embedders, so that a broken endpoint cannot spoil the store.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import EmbeddingFailed, MemciError


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors. It is called from any thread. Equal texts should have equal vectors."""

    @property
    def name(self) -> str:
        """The name under which its vectors are stored. Vectors of different names are never compared."""

    @property
    def dimension(self) -> int:
        """The number of numbers in a vector."""

    @property
    def semantic(self) -> bool:
        """Whether it compares meanings; False: only words."""

    def __call__(self, texts: Sequence[str], /) -> ArrayLike:
        """Return a vector for each text, in order. There is at least one text, and none is blank."""


def embed(embedder: Embedder, texts: Sequence[str]) -> NDArray[np.float32]:
    """Return the vectors of *texts* as rows: of unit length, or zeros for a blank text.

    Raise EmbeddingFailed if the embedder raises (retryable then), or returns another shape than its dimension, or a
    number that is not finite.
    """
    rows = np.zeros((len(texts), embedder.dimension), np.float32)
    spoken = [position for position, text in enumerate(texts) if text.strip()]
    if not spoken:
        return rows
    try:
        given = np.asarray(embedder([texts[position] for position in spoken]))
    except MemciError:
        raise
    except Exception as error:  # an embedder of a caller may raise anything
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
