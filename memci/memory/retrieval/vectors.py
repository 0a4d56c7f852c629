"""An index of vectors by id: tells how near each row is to a query.

    ids        [ 7,  3, 12,  9 | free … ]
    matrix     [ ▒,  ▒,  ▒,  ▒ | free … ]      full: both grow to twice their size

The result is exact: one product of the matrix and the query. The index is a cache of stored rows: cheap to build, at
most twice the size of its rows, and built again when rows are removed. It is not thread-safe.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

_SMALLEST = 16  # rows for which there is room at least

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

    def __init__(self, dimension: int) -> None:
        """Make an empty index for rows of *dimension* numbers."""
        self.dimension = dimension
        self._row_of: dict[int, int] = {}
        self._ids: Ids = np.empty(0, np.int64)
        self._matrix: NDArray[np.float32] = np.empty((0, dimension), np.float32)
        self._positions: Positions | None = None
        """positions of the ids; None after a change"""

    def __len__(self) -> int:
        return len(self._row_of)

    def add(self, ids: Sequence[int] | Ids, rows: ArrayLike) -> None:
        """Store *rows* under *ids*, in place of earlier rows; of equal ids the last one counts. O(rows), amortised."""
        kept = len(self._row_of)
        places = [self._row_of.setdefault(int(id_), len(self._row_of)) for id_ in ids]
        if len(self) > len(self._ids):
            # The system provides memory on the first write: free rows cost only addresses.
            room = max(_SMALLEST, len(self), 2 * len(self._ids))
            ids_, matrix = np.empty(room, np.int64), np.empty((room, self.dimension), np.float32)
            ids_[:kept], matrix[:kept] = self._ids[:kept], self._matrix[:kept]
            self._ids, self._matrix = ids_, matrix
        self._ids[places], self._matrix[places] = ids, rows
        self._positions = None

    def scores(self, query: ArrayLike, ids: Sequence[int] | Ids, *, missing: float = 0.0) -> Cosines:
        """Return the cosine of *query* and the row of each of *ids*, in their order; *missing* for an unknown id.

        O(rows · dimension + ids · log rows).
        """
        cosines = self._matrix[: len(self)] @ np.ascontiguousarray(query, np.float32)
        if self._positions is None:
            self._positions = Positions(self._ids[: len(self)])
        return np.append(cosines, np.float32(missing))[self._positions.of(np.asarray(ids, np.int64))]
