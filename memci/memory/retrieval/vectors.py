"""An index of vectors by id: what is near a query, and how near everything is.

    ids        [ 7,  3, 12,  9 | free … ]      remove(3): the last row, of 9, moves to its place
    matrix     [ ▒,  ▒,  ▒,  ▒ | free … ]      full: both grow to twice their size

One product of the matrix with the query is exact, and fast up to some 50,000 rows. Above, where faiss is installed, a
graph of near neighbours is grown bit by bit (`settle`), proposes, and the matrix decides: cosines are exact always.
All of it is a cache of what is stored: cheap to build, bounded by four times its rows. Not thread-safe.
This module knows nothing of texts, models or where vectors are stored.
"""

import sys
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import InvalidSetting
from .hnsw import NeighbourGraph, faiss_is_there

GRAPH_FROM = 50_000
"""rows from which on a graph pays"""
_SMALLEST = 16
_DEAD = 0.2
"""share of a graph's nodes that may be removed ones before it is grown anew"""
_WAITING = 0.1
"""share of the rows that may be outside the graph, and are looked at one by one, before all are"""
_GATHERED = 8
"""one row of so many is copied to be compared; of more of them, all are compared in place"""
_FEW = 32
"""ids that are looked up one by one"""

Ids = NDArray[np.int64]
Cosines = NDArray[np.float32]


class VectorIndex:
    """Rows of unit length by id, searched by cosine."""

    def __init__(self, dimension: int, *, graph_from: int | None = GRAPH_FROM) -> None:
        """Make an empty index.

        Args:
            dimension: Of each vector.
            graph_from: The number of rows above which a graph may be used; None: never.
        """
        if dimension < 1:
            raise InvalidSetting("dimension", f"at least 1, not {dimension!r}")
        self.dimension = dimension
        self._graph_from = sys.maxsize if graph_from is None else graph_from
        self._row_of: dict[int, int] = {}
        self._ids: Ids = np.empty(0, np.int64)
        self._matrix: NDArray[np.float32] = np.empty((0, dimension), np.float32)
        self._sorted: tuple[Ids, Ids] | None = None
        self._graph: NeighbourGraph | None = None

    def __len__(self) -> int:
        return len(self._row_of)

    def __contains__(self, id: object) -> bool:  # noqa: A002 -- the word of the trade
        return id in self._row_of

    @property
    def ids(self) -> Ids:
        """The ids, in the order of the rows; a copy."""
        return self._ids[: len(self)].copy()

    @property
    def nbytes(self) -> int:
        """Bytes of the matrix and the graph, without the ids."""
        return self._matrix.nbytes + (self._graph.nbytes if self._graph else 0)

    def add(self, ids: Sequence[int] | Ids, rows: ArrayLike) -> None:
        """Put *rows* under *ids*. An id that is there gets its new row; the last of equal ids counts.

        Raises:
            InvalidSetting: If there is not a row of finite numbers per id, of this dimension. Nothing is changed then.
        """
        given = np.asarray(rows, np.float32)
        if given.shape != (len(ids), self.dimension) or not np.isfinite(given).all():
            raise InvalidSetting("rows", f"finite, of shape {(len(ids), self.dimension)}, not {given.shape}")
        numbers = [int(each) for each in ids]
        self._reserve(len(self._row_of.keys() | set(numbers)))
        for id_, row in zip(numbers, given, strict=True):
            at = self._row_of.get(id_)
            if at is None:
                at = self._row_of[id_] = len(self._row_of)
                self._ids[at] = id_
                self._sorted = None
            elif np.array_equal(self._matrix[at], row):
                continue
            elif self._graph is not None:
                self._graph.forget(at)
            self._matrix[at] = row

    def remove(self, ids: Collection[int] | Ids) -> int:
        """Remove what is under *ids*, and return how many were there. O(number of ids)."""
        removed = 0
        for id_ in ids:
            at = self._row_of.pop(int(id_), None)
            if at is None:
                continue
            last = len(self._row_of)
            if self._graph is not None:
                self._graph.forget(at)
                self._graph.move(last, at)
            if at != last:
                self._matrix[at] = self._matrix[last]
                self._ids[at] = self._ids[last]
                self._row_of[int(self._ids[at])] = at
            removed += 1
        if removed:
            self._sorted = None
            if len(self) < len(self._ids) // 4:
                self._resize(max(_SMALLEST, 2 * len(self)))
        return removed

    def search(
        self,
        query: ArrayLike,
        k: int,
        *,
        allowed: Collection[int] | Ids | None = None,
        excluded: Collection[int] | Ids = (),
    ) -> tuple[Ids, Cosines]:
        """Return the ids and cosines of the *k* rows nearest to *query*, best first, equal ones by id.

        Args:
            query: A vector of unit length.
            k: How many at most.
            allowed: Only these; None: all. With it, the search is exact.
            excluded: But not these.
        """
        vector = self._vector(query)
        rows = self._candidates(vector, k, allowed, excluded)
        cosines = self._cosines(vector, rows)
        if rows is None:
            rows = np.arange(len(self))
        if 0 < k < len(rows):
            least = np.partition(cosines, len(rows) - k)[len(rows) - k]
            good = np.flatnonzero(cosines >= least)
            rows, cosines = rows[good], cosines[good]
        ids = self._ids[rows]
        order = np.lexsort((ids, -cosines))[: max(k, 0)]
        return ids[order], cosines[order]

    def scores(self, query: ArrayLike, ids: Sequence[int] | Ids, *, missing: float = 0.0) -> Cosines:
        """Return the cosine of *query* with the row of each of *ids*, in their order; *missing* for one without a row.

        O(rows + ids · log rows).
        """
        rows = self._rows(ids)
        there = np.flatnonzero(rows >= 0)
        found = np.full(len(rows), missing, np.float32)
        found[there] = self._cosines(self._vector(query), rows[there])
        return found

    def settle(self, rows: int = 256) -> int:
        """Take up to *rows* rows into the graph, and return how many wait. About 0.3 to 1 ms per row.

        Without faiss, or with few rows, there is no graph: nothing waits. Until all is settled, search stays right: it
        looks at what waits one by one.
        """
        if len(self) <= self._graph_from or not faiss_is_there():
            self._graph = None
            return 0
        if self._graph is None or self._graph.dead > _DEAD * self._graph.nodes:
            self._graph = NeighbourGraph(self.dimension)
        waiting = self._graph.waiting(len(self))
        self._graph.add(waiting[:rows], self._matrix[waiting[:rows]])
        return max(0, len(waiting) - rows)

    def _candidates(
        self, vector: Cosines, k: int, allowed: Collection[int] | Ids | None, excluded: Collection[int] | Ids
    ) -> Ids | None:
        """Return the rows to look at, without those excluded; None: all."""
        without = self._rows(excluded)
        without = without[without >= 0]
        rows: Ids | None = None
        if allowed is not None:
            rows = np.unique(self._rows(allowed))
            rows = rows[rows >= 0]
        elif self._graph is not None and len(self) > self._graph_from and k + len(without) <= len(self) // 100:
            waiting = self._graph.waiting(len(self))
            if len(waiting) <= _WAITING * len(self):
                rows = np.union1d(self._graph.near(vector, k + len(without)), waiting)
        if not len(without):
            return rows
        chosen = np.ones(len(self), np.bool_)
        chosen[without] = False
        return np.flatnonzero(chosen) if rows is None else rows[chosen[rows]]

    def _cosines(self, vector: Cosines, rows: Ids | None) -> Cosines:
        if rows is not None and len(rows) * _GATHERED < len(self):
            return self._matrix[rows] @ vector
        cosines: Cosines = self._matrix[: len(self)] @ vector
        return cosines if rows is None else cosines[rows]

    def _rows(self, ids: Collection[int] | Ids) -> Ids:
        """Return the row of each of *ids*, -1 for one that has none."""
        if len(ids) <= _FEW:
            return np.array([self._row_of.get(int(each), -1) for each in ids], np.int64)
        wanted = np.fromiter(ids, np.int64, len(ids)) if not isinstance(ids, np.ndarray) else ids
        if self._sorted is None:
            order = np.argsort(self._ids[: len(self)], kind="stable")  # fast on what is nearly in order
            self._sorted = self._ids[order], order
        known, order = self._sorted
        if not len(known):
            return np.full(len(wanted), -1, np.int64)
        places = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return np.where(known[places] == wanted, order[places], -1)

    def _vector(self, query: ArrayLike) -> Cosines:
        vector = np.asarray(query, np.float32)
        if vector.shape != (self.dimension,) or not np.isfinite(vector).all():
            raise InvalidSetting("query", f"finite, of shape ({self.dimension},), not {vector.shape}")
        return np.ascontiguousarray(vector)

    def _reserve(self, rows: int) -> None:
        if rows > len(self._ids):
            self._resize(max(_SMALLEST, rows, 2 * len(self._ids)))

    def _resize(self, rows: int) -> None:
        # Memory that was not written to is not taken: what is free costs addresses, not bytes.
        ids, matrix = np.empty(rows, np.int64), np.empty((rows, self.dimension), np.float32)
        ids[: len(self)], matrix[: len(self)] = self._ids[: len(self)], self._matrix[: len(self)]
        self._ids, self._matrix = ids, matrix

    def _check(self) -> None:
        assert len(self) <= len(self._ids) == len(self._matrix), "there is room for each row"
        assert len(self._ids) <= max(_SMALLEST, 4 * len(self) + 3), "there is no room for many more"
        assert all(self._ids[row] == id_ for id_, row in self._row_of.items()), "ids and rows mirror each other"
        assert sorted(self._row_of.values()) == list(range(len(self))), "rows are numbered without a gap"
        if self._graph is not None:
            self._graph._check(len(self))
