"""A graph of near neighbours, which proposes rows that may be near a query. It needs faiss.

    rows    0   1   2   3          node_of   [0, 1, −, 2]      row 2 waits: it is not in the graph yet
    nodes   0   1   2              row_of    [0, 1, 3]         a removed row leaves a dead node, −, behind

HNSW can't remove a node: dead ones are stepped over, and the owner grows a new graph when there are too many. Its nodes
are half as precise as the rows (float16), for half the memory; who asks compares the rows themselves.
`pip install "memci[faiss]"`. This module knows nothing of ids.
"""

import importlib.util
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LINKS = 32
_BUILD_EFFORT = 80
_SEARCH_EFFORT = 64
_NONE = -1

Rows = NDArray[np.int64]


@cache
def faiss_is_there() -> bool:
    """Tell whether faiss can be imported, without importing it."""
    return importlib.util.find_spec("faiss") is not None


class NeighbourGraph:
    """A graph over rows of unit length. Fewer neighbours may be found than there are; never wrong rows."""

    def __init__(self, dimension: int) -> None:
        faiss = _faiss()
        self._index = faiss.IndexHNSWSQ(dimension, faiss.ScalarQuantizer.QT_fp16, _LINKS, faiss.METRIC_INNER_PRODUCT)
        self._index.hnsw.efConstruction = _BUILD_EFFORT
        self._bytes = 2 * dimension + 2 * _LINKS * 4 + 24
        self._node_of = np.empty(0, np.int32)
        self._row_of = np.empty(0, np.int32)
        self._dead = 0

    @property
    def nodes(self) -> int:
        """How many nodes there are, dead ones included."""
        return int(self._index.ntotal)

    @property
    def dead(self) -> int:
        """How many nodes have lost their row."""
        return self._dead

    @property
    def nbytes(self) -> int:
        """Bytes in all, about."""
        return self.nodes * self._bytes + self._node_of.nbytes + self._row_of.nbytes

    def waiting(self, rows: int) -> Rows:
        """Return which of the first *rows* rows have no node, in order. O(rows), fast."""
        if len(self._node_of) < rows:
            self._node_of = _grown(self._node_of, rows)
        return np.flatnonzero(self._node_of[:rows] == _NONE)

    def add(self, rows: Rows, vectors: NDArray[np.float32]) -> None:
        """Make nodes for *rows*, which wait. About 0.2 ms per row of 384 numbers, 0.5 of 1,024."""
        first = self.nodes
        if first + len(rows) > len(self._row_of):
            self._row_of = _grown(self._row_of, first + len(rows))
        with _one_thread():
            self._index.add(np.ascontiguousarray(vectors))
        self._node_of[rows] = np.arange(first, first + len(rows))
        self._row_of[first : first + len(rows)] = rows

    def forget(self, row: int) -> None:
        """Take *row* out: its node is dead, and the row waits."""
        if row < len(self._node_of) and self._node_of[row] != _NONE:
            self._row_of[self._node_of[row]] = _NONE
            self._node_of[row] = _NONE
            self._dead += 1

    def move(self, row: int, to: int) -> None:
        """Let the node of *row* be that of row *to*, which has none."""
        if row == to or row >= len(self._node_of):
            return
        node = self._node_of[row]
        self._node_of[row] = _NONE
        self._node_of[to] = node
        if node != _NONE:
            self._row_of[node] = to

    def near(self, vector: NDArray[np.float32], count: int) -> Rows:
        """Return at least *count* rows near *vector*, in no order; fewer only if there are no more."""
        asked = 2 * count + _SEARCH_EFFORT // 4
        while True:
            asked = min(asked, self.nodes)
            effort = _faiss().SearchParametersHNSW(efSearch=max(_SEARCH_EFFORT, asked))
            with _one_thread():
                nodes = self._index.search(vector[None], asked, params=effort)[1][0]
            rows = self._row_of[nodes[nodes >= 0]]
            found: Rows = rows[rows != _NONE].astype(np.int64)
            if len(found) >= count or asked == self.nodes:
                return found
            asked *= 4

    def _check(self, rows: int) -> None:
        nodes = np.flatnonzero(self._row_of[: self.nodes] != _NONE)
        assert (self._node_of[self._row_of[nodes]] == nodes).all(), "rows and nodes must mirror each other"
        assert len(nodes) + len(self.waiting(rows)) == rows, "each row has one node, or waits"
        assert len(nodes) + self._dead == self.nodes, "each node has a row, or is dead"
        assert (self._node_of[rows:] == _NONE).all(), "there are no nodes of rows that are not there"


def _grown(numbers: NDArray[np.int32], size: int) -> NDArray[np.int32]:
    grown = np.full(max(size, 2 * len(numbers)), _NONE, np.int32)
    grown[: len(numbers)] = numbers
    return grown


@cache
def _faiss() -> Any:
    with warnings.catch_warnings():  # its generated types are called deprecated by newer interpreters
        warnings.simplefilter("ignore", DeprecationWarning)
        import faiss  # type: ignore[import-untyped, unused-ignore]

    return faiss


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let faiss work in this thread alone: to wait for others takes longer than one search, on a busy machine."""
    # The number belongs to the calling thread, so that no other user of faiss is disturbed.
    faiss = _faiss()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
