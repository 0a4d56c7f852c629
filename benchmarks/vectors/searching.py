"""Searching: an index of so many rows beside one product, on the same rows and questions, in turn.

product      the matrix times the question: the floor of an exact search by numpy
scores       `VectorIndex.scores` of all rows: the product, by id
"""

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from memci.memory.retrieval.vectors import VectorIndex

_QUERIES = 200
_GROUPS = 500


def searching(rows: int, dimension: int) -> dict[str, Any]:
    """Return the milliseconds of each kind of search, and the microseconds of adding a row."""
    rng = np.random.default_rng(1)
    centres = rng.standard_normal((_GROUPS, dimension), np.float32)
    matrix, queries = (_near(centres, count, rng) for count in (rows, _QUERIES))
    index = VectorIndex(dimension)
    began = time.perf_counter()
    for start in range(0, rows, 100):
        index.add(range(start, min(start + 100, rows)), matrix[start : start + 100])
    found: dict[str, Any] = {"rows": rows, "dimension": dimension, "add_us": (time.perf_counter() - began) / rows * 1e6}
    everything = np.arange(rows)
    ways: dict[str, Callable[[Any], object]] = {
        "product_ms": lambda query: matrix @ query,
        "scores_ms": lambda query: index.scores(query, everything),
    }
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
