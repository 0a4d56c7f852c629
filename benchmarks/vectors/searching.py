"""Searching: an index of so many rows, beside numpy and faiss on the same rows.

This module knows nothing of embedders.
"""

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from memci.memory.retrieval.hnsw import faiss_is_there
from memci.memory.retrieval.vectors import VectorIndex

_K = 10
_QUERIES = 50
_GROUPS = 500
_MEGABYTE = 1e6


def searching(rows: int, dimension: int, *, settled: Callable[[int], None]) -> dict[str, Any]:
    """Return milliseconds of each kind of search, microseconds of each change, and megabytes."""
    rng = np.random.default_rng(1)
    centres = rng.standard_normal((_GROUPS, dimension), np.float32)
    matrix, queries = (_near(centres, count, rng) for count in (rows, _QUERIES))
    index = VectorIndex(dimension, graph_from=rows // 2)
    began = time.perf_counter()
    for start in range(0, rows, 100):
        index.add(range(start, min(start + 100, rows)), matrix[start : start + 100])
    found: dict[str, Any] = {"rows": rows, "dimension": dimension, "add_us": (time.perf_counter() - began) / rows * 1e6}
    found |= {"flat_ms": None, "graph_ms": None, "settle_us": None, "recall": None}
    some = rng.permutation(rows)[: rows // 100]
    everything = np.arange(rows)
    found["numpy_ms"] = _timed(lambda query: _plain(matrix, query), queries)
    found["index_ms"] = _timed(lambda query: index.search(query, _K), queries)
    found["scores_ms"] = _timed(lambda query: index.scores(query, everything), queries)
    found["one_percent_ms"] = _timed(lambda query: index.search(query, _K, allowed=some), queries)
    found["matrix_mb"] = index.nbytes / _MEGABYTE
    exact = [set(index.search(query, _K)[0].tolist()) for query in queries]
    if faiss_is_there():
        found["flat_ms"] = _flat(matrix, queries)
        began = time.perf_counter()
        while waiting := index.settle():
            settled(rows - waiting)
        found["settle_us"] = (time.perf_counter() - began) / rows * 1e6
        found["graph_ms"] = _timed(lambda query: index.search(query, _K), queries)
        hits = [set(index.search(query, _K)[0].tolist()) & best for query, best in zip(queries, exact, strict=True)]
        found["recall"] = sum(map(len, hits)) / (_K * _QUERIES)
    found["graph_mb"] = index.nbytes / _MEGABYTE - found["matrix_mb"]
    return {key: round(value, 4) if isinstance(value, float) else value for key, value in found.items()}


def _near(centres: Any, count: int, rng: np.random.Generator) -> Any:
    rows = centres[rng.integers(0, len(centres), count)] + rng.standard_normal((count, centres.shape[1]), np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _plain(matrix: Any, query: Any) -> Any:
    cosines = matrix @ query
    best = np.argpartition(cosines, -_K)[-_K:]
    return best[np.argsort(-cosines[best])]


def _flat(matrix: Any, queries: Any) -> float:
    import faiss

    faiss.omp_set_num_threads(1)
    flat = faiss.IndexFlatIP(matrix.shape[1])
    flat.add(matrix)
    return _timed(lambda query: flat.search(query[None], _K), queries)


def _timed(search: Callable[[Any], object], queries: Any) -> float:
    taken = []
    for query in queries:
        began = time.perf_counter()
        search(query)
        taken.append(time.perf_counter() - began)
    return median(taken) * 1e3
