"""An index of vectors by id: finds the rows nearest to a query, and how near each row is.

    ids        [ 7,  3, 12,  9 | free … ]      remove(3): the last row, of 9, moves to its place
    matrix     [ ▒,  ▒,  ▒,  ▒ | free … ]      full: both grow to twice their size

Both results are exact. `scores` is one product of the matrix and the query. `search` chooses the best of it. From
`FAISS_FROM` rows on, faiss proposes rows, if it is installed (`pip install "memci[faiss]"`). It uses a copy in half
precision (float16), which the first search after a change makes. That takes half the time, and the proposals are
compared again in full precision. If the copy cannot decide, the full product does, so that the result is the same. The
index is a cache of stored rows: cheap to build, at most six times the size of its rows. It is not thread-safe.
"""

import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import InvalidSetting

FAISS_FROM = 10_000
"""rows from which faiss is faster than the product with numpy: see benchmarks/vectors"""
_SPARE = 32
"""rows that faiss proposes beyond k, so that rounding rarely hides one of the k"""
_ERROR = 1e-3
"""upper bound of the error of a cosine in float16 (at most 2 ** -11)"""
_SMALLEST = 16
"""rows for which there is room at least"""

Ids = NDArray[np.int64]
Cosines = NDArray[np.float32]


class Positions:
    """Finds the positions of ids in an array of different *ids*. O(ids · log ids)."""

    def __init__(self, ids: Ids) -> None:
        self._order = np.argsort(ids, kind="stable")
        self._sorted = ids[self._order]

    def of(self, ids: Ids) -> Ids:
        """Return the position of each of *ids*, -1 for an unknown one. O(ids · log of all)."""
        if not len(self._sorted):
            return np.full(len(ids), -1)
        at = np.minimum(np.searchsorted(self._sorted, ids), len(self._sorted) - 1)
        return np.where(self._sorted[at] == ids, self._order[at], -1)


class VectorIndex:
    """Rows of unit length by id, compared with a query by cosine."""

    def __init__(self, dimension: int, *, faiss_from: int = FAISS_FROM) -> None:
        """Make an empty index for rows of *dimension* numbers; from *faiss_from* rows on, `search` uses faiss.

        Raises:
            InvalidSetting: If the dimension is less than 1.
        """
        if dimension < 1:
            raise InvalidSetting("dimension", f"at least 1, not {dimension!r}")
        self.dimension = dimension
        self._faiss_from = faiss_from
        self._row_of: dict[int, int] = {}
        self._ids: Ids = np.empty(0, np.int64)
        self._matrix: NDArray[np.float32] = np.empty((0, dimension), np.float32)
        self._positions: Positions | None = None
        """positions of the ids; None after a change"""
        self._copy: Any = None
        """the faiss index of the rows; None after a change"""

    def __len__(self) -> int:
        return len(self._row_of)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + (0 if self._copy is None else 2 * self.dimension * len(self))

    def add(self, ids: Sequence[int] | Ids, rows: ArrayLike) -> None:
        """Store *rows* under *ids*, in place of earlier rows; of equal ids the last one counts. O(rows), amortised.

        Raise InvalidSetting, and change nothing, unless there is one finite row of this dimension per id.
        """
        given = np.asarray(rows, np.float32)
        if given.shape != (len(ids), self.dimension) or not np.isfinite(given).all():
            raise InvalidSetting("rows", f"finite, of shape {(len(ids), self.dimension)}, not {given.shape}")
        kept = len(self._row_of)
        places = [self._row_of.setdefault(int(id_), len(self._row_of)) for id_ in ids]
        if len(self) > len(self._ids):
            self._resize(max(_SMALLEST, len(self), 2 * len(self._ids)), kept)
        self._ids[places], self._matrix[places] = ids, given
        self._positions = self._copy = None

    def remove(self, ids: Collection[int] | Ids) -> None:
        """Remove the rows of *ids*, if there are any. O(number of ids), amortised."""
        for id_ in ids:
            at = self._row_of.pop(int(id_), None)
            last = len(self._row_of)
            if at is not None and at != last:
                self._ids[at], self._matrix[at] = self._ids[last], self._matrix[last]
                self._row_of[int(self._ids[at])] = at
        self._positions = self._copy = None
        if len(self) < len(self._ids) // 4:
            self._resize(max(_SMALLEST, 2 * len(self)), len(self))

    def search(self, query: ArrayLike, k: int) -> tuple[Ids, Cosines]:
        """Return the ids and cosines of the *k* rows nearest to *query*, of unit length; best first, equal ones by id.

        Raise InvalidSetting if the query is not finite, or of another dimension. O(rows · dimension).
        """
        vector = self._vector(query)
        k = min(max(k, 0), len(self))
        rows = self._candidates(vector, k)
        cosines, ids = self._matrix[rows] @ vector, self._ids[rows]
        if 0 < k < len(ids):
            near = np.flatnonzero(cosines >= np.partition(cosines, len(ids) - k)[len(ids) - k])
            cosines, ids = cosines[near], ids[near]
        order = np.lexsort((ids, -cosines))[:k]
        return ids[order], cosines[order]

    def scores(self, query: ArrayLike, ids: Sequence[int] | Ids, *, missing: float = 0.0) -> Cosines:
        """Return the cosine of *query* and the row of each of *ids*, in their order; *missing* for an unknown id.

        Raise as `search` does. O(rows · dimension + ids · log rows).
        """
        cosines = self._matrix[: len(self)] @ self._vector(query)
        if self._positions is None:
            self._positions = Positions(self._ids[: len(self)])
        return np.append(cosines, np.float32(missing))[self._positions.of(np.asarray(ids, np.int64))]

    def _candidates(self, vector: Cosines, k: int) -> Ids | slice:
        """Return rows that certainly contain the *k* nearest ones, and those as near as the last of them."""
        everything, asked = slice(0, len(self)), k + _SPARE
        if k < 1 or len(self) < max(self._faiss_from, asked) or (faiss := load_faiss()) is None:
            return everything
        with one_thread(faiss):
            if self._copy is None:
                half = faiss.ScalarQuantizer.QT_fp16
                self._copy = faiss.IndexScalarQuantizer(self.dimension, half, faiss.METRIC_INNER_PRODUCT)
                self._copy.add(self._matrix[everything])
            (proposed,), (rows,) = self._copy.search(vector[None], asked)
        worst = np.partition(self._matrix[rows] @ vector, asked - k)[asked - k]
        return rows if worst > proposed[-1] + _ERROR else everything

    def _vector(self, query: ArrayLike) -> Cosines:
        vector = np.asarray(query, np.float32)
        if vector.shape != (self.dimension,) or not np.isfinite(vector).all():
            raise InvalidSetting("query", f"finite, of shape ({self.dimension},), not {vector.shape}")
        return np.ascontiguousarray(vector)

    def _resize(self, rows: int, kept: int) -> None:
        # The system provides memory on the first write: free rows cost only addresses.
        ids, matrix = np.empty(rows, np.int64), np.empty((rows, self.dimension), np.float32)
        ids[:kept], matrix[:kept] = self._ids[:kept], self._matrix[:kept]
        self._ids, self._matrix = ids, matrix

    def _check(self) -> None:
        assert len(self) <= len(self._ids) == len(self._matrix), "there is room for each row"
        assert len(self._ids) <= max(_SMALLEST, 4 * len(self) + 3), "there is no room for many more"
        assert all(self._ids[row] == id_ for id_, row in self._row_of.items()), "ids and rows mirror each other"
        assert sorted(self._row_of.values()) == list(range(len(self))), "rows are numbered without a gap"
        assert self._copy is None or self._copy.ntotal == len(self), "the copy has each row"


@cache
def load_faiss() -> Any:
    """Return the faiss module, None if it is not installed. The first call takes half a second."""
    with warnings.catch_warnings():  # newer interpreters warn about its generated types
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            import faiss
        except ImportError:
            return None
    return faiss


@contextmanager
def one_thread(faiss: Any) -> Iterator[None]:
    """Make faiss use only the calling thread: on a busy machine, waiting for others takes longer than a search."""
    before = faiss.omp_get_max_threads()  # a setting of the calling thread, not of other users of faiss
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
