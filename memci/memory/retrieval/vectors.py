"""An index of vectors by id: tells how near each row is to a query.

    parts      [ 7, 3, 12, 9, 4, 1 | 2, 8 | 5 ]      each larger than the next one: few are joined when a row is added

The result is exact: a product of each part and the query. The index is a cache of stored rows: cheap to build, and
built again when rows are removed. It is not thread-safe.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from .layout import Floats, Integers


class Positions:
    """Finds the positions of ids in an array of *ids*; of equal ones, that of the last. O(ids · log ids)."""

    def __init__(self, ids: Integers) -> None:
        self._order = np.argsort(ids, kind="stable")
        self._sorted = ids[self._order]

    def of(self, ids: Integers) -> Integers:
        """Return the position of each of *ids*, -1 for an unknown one. O(ids · log of all)."""
        if not len(self._sorted):
            return np.full(len(ids), -1)
        at = np.maximum(np.searchsorted(self._sorted, ids, "right") - 1, 0)
        return np.where(self._sorted[at] == ids, self._order[at], -1)


class VectorIndex:
    """Rows of unit length by id, compared with a query by cosine."""

    def __init__(self, dimension: int) -> None:
        """Make an empty index for rows of *dimension* numbers."""
        self.dimension = dimension
        self._parts: list[tuple[Integers, Floats]] = [(np.empty(0, np.int64), np.empty((0, dimension), np.float32))]
        """ids and rows"""
        self._positions: Positions | None = None
        """positions of the ids of all parts; None after a change"""

    def __len__(self) -> int:
        return sum(len(ids) for ids, _ in self._parts)

    def add(self, ids: Sequence[int] | Integers, rows: ArrayLike) -> None:
        """Store *rows* under *ids*; of equal ids the last one counts. O(rows · log of all), amortised."""
        part = np.array(ids, np.int64), np.array(rows, np.float32).reshape(-1, self.dimension)
        while self._parts and len(self._parts[-1][0]) <= len(part[0]):
            before = self._parts.pop()
            part = np.concatenate((before[0], part[0])), np.concatenate((before[1], part[1]))
        self._parts.append(part)
        self._positions = None

    def scores(self, query: ArrayLike, ids: Sequence[int] | Integers, *, missing: float = 0.0) -> Floats:
        """Return the cosine of *query* and the row of each of *ids*, in their order; *missing* for an unknown id.

        O(rows · dimension + ids · log rows).
        """
        if self._positions is None:
            self._positions = Positions(np.concatenate([known for known, _ in self._parts]))
        asked = np.ascontiguousarray(query, np.float32)
        cosines = np.concatenate([*(rows @ asked for _, rows in self._parts), np.array([missing], np.float32)])
        return cosines[self._positions.of(np.asarray(ids, np.int64))]
