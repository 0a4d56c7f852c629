"""Searching: an index of so many rows, with numpy alone and with faiss, on the same rows and questions.

    product      the matrix times the question: what no exact search by numpy is faster than
    numpy        `VectorIndex.search` of the ten nearest, without faiss
    faiss        `VectorIndex.search` of the ten nearest, with faiss
    scores       `VectorIndex.scores` of all rows: the product, by id

Numpy and faiss take turns, question by question, so that other work on the machine slows both. This module knows
nothing of embedders.
"""

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from memci.memory.retrieval.vectors import VectorIndex, load_faiss

_K = 10
_QUERIES = 200
_GROUPS = 500


def searching(rows: int, dimension: int) -> dict[str, Any]:
    """Return the milliseconds of each kind of search, and the microseconds of adding a row; None without faiss."""
    rng = np.random.default_rng(1)
    centres = rng.standard_normal((_GROUPS, dimension), np.float32)
    matrix, queries = (_near(centres, count, rng) for count in (rows, _QUERIES))
    plain, index = VectorIndex(dimension, faiss_from=rows + 1), VectorIndex(dimension, faiss_from=1)
    began = time.perf_counter()
    for start in range(0, rows, 100):
        plain.add(range(start, min(start + 100, rows)), matrix[start : start + 100])
    found: dict[str, Any] = {"rows": rows, "dimension": dimension, "add_us": (time.perf_counter() - began) / rows * 1e6}
    index.add(range(rows), matrix)
    everything = np.arange(rows)
    ways: dict[str, Callable[[Any], object]] = {
        "product_ms": lambda query: matrix @ query,
        "numpy_ms": lambda query: plain.search(query, _K),
        "faiss_ms": lambda query: index.search(query, _K),
        "scores_ms": lambda query: plain.scores(query, everything),
    }
    if load_faiss() is None:
        del ways["faiss_ms"]
        found["faiss_ms"] = found["same"] = None
    else:
        found["same"] = all(
            plain.search(query, _K)[0].tolist() == index.search(query, _K)[0].tolist() for query in queries
        )
    times: dict[str, list[float]] = {name: [] for name in ways}
    for query in queries:
        for name, search in ways.items():
            began = time.perf_counter()
            search(query)
            times[name].append(time.perf_counter() - began)
    found |= {name: median(taken) * 1e3 for name, taken in times.items()}
    return {key: round(value, 4) if isinstance(value, float) else value for key, value in found.items()}


def _near(centres: Any, count: int, rng: np.random.Generator) -> Any:
    rows = centres[rng.integers(0, len(centres), count)] + rng.standard_normal((count, centres.shape[1]), np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
