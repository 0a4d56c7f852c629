"""Searching: the first search after a start, all later ones, and what they need in RAM; beside a scan of vectors.

    a new process  ──▶  opens the store, asks        first: nothing is in RAM      again: the same questions once more
                   ──▶  numpy: as many rows of 1,024 numbers as there are pages, one product and the best ten

The wall clock, of a file that is in the system's cache. This module knows nothing of how the pages came there.
"""

import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import numpy as np

from memci import Context, EphemeralStorage, SQLiteStorage
from memci.memory import TieredMemory
from memci.memory.repository.home import tables_of
from memci.memory.retrieval.hash_embedder import HashEmbedder

from .telling import Asked

_DIMENSION = 1_024
_SCANS = 30
_K = 10
_PAGE = 4_096
_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


def searched(path: Path, asked: Asked, pages: int) -> dict[str, Any]:
    """Return what `measured` does, from a process of its own."""
    for name in _THREADS:  # it is inherited, and read when numpy is imported: one thread scans, as one searches
        os.environ.setdefault(name, "1")
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(measured, path, asked, pages).result()


def measured(path: Path, asked: Asked, pages: int) -> dict[str, Any]:
    """Return milliseconds and bytes of searches for *asked* in the store at *path*.

    Args:
        path: A store with memories.
        asked: Owners and questions, each once per round.
        pages: How many pages there are in all.
    """
    embedder = HashEmbedder(256)
    _warmed_up(embedder)
    resting = resident()
    began = time.perf_counter()
    store = SQLiteStorage(path, durability="fast")
    first = TieredMemory(store, owner=asked[0][0], embedder=embedder)
    first.search(asked[0][1], k=_K)
    cold = time.perf_counter() - began
    many = len({owner for owner, _ in asked}) > 1

    def search(owner: str, question: str) -> bool:
        if not many:
            return bool(first.search(question, k=_K).pages)
        memory = TieredMemory(store, owner=owner, embedder=embedder)
        found = bool(memory.search(question, k=_K).pages)
        memory.close()
        return found

    rounds = []
    found = 0
    for number in range(3):
        order = Random(number).sample(asked, len(asked))
        times = []
        for owner, question in order:
            began = time.perf_counter()
            found += search(owner, question)
            times.append(1e3 * (time.perf_counter() - began))
        rounds.append(sorted(times))
    held = resident()
    kept = len(tables_of(store).owners)
    first.close()
    store.close()
    scan = _scan(pages)
    again = sorted(rounds[1] + rounds[2])
    return {
        "pages": pages,
        "cold_ms": round(1e3 * cold, 2),
        "first_ms": round(median(rounds[0]), 3),
        "ms": round(median(again), 3),
        "p99_ms": round(again[len(again) * 99 // 100], 3),
        "numpy_ms": round(scan, 3),
        "times_numpy": round(median(again) / scan, 3),
        "answered": round(found / (3 * len(asked)), 3),
        "ram_per_page": round((held - resting) / pages, 1),
        "owners_in_ram": kept,
    }


def _warmed_up(embedder: HashEmbedder) -> None:
    """Search once somewhere else, so that imports and vocabularies are paid for."""
    store = EphemeralStorage()
    with Context.open(store, id="0", system="You remember.", window=4_000) as context:
        context.append_turn("The ferry to Oslo leaves at nine.", {"role": "assistant", "content": "Noted."})
        context.append_turn("When does it leave?")
        context.archive(keep=0)
        context.flush()
        memory = TieredMemory(store, owner="0", embedder=embedder)
        memory.search("When does the ferry leave?", k=_K)
        memory.close()


def resident() -> int:
    """Return the bytes of RAM that this process holds; 0 where the system does not say."""
    told = Path("/proc/self/statm")
    return int(told.read_text(encoding="ascii").split()[1]) * _PAGE if told.is_file() else 0


def _scan(rows: int) -> float:
    """Return the milliseconds of an exhaustive search of so many vectors: a product, and the best of it."""
    random = np.random.default_rng(1)
    matrix = random.standard_normal((rows, _DIMENSION), np.float32)
    times = []
    for _ in range(_SCANS):
        query = random.standard_normal(_DIMENSION, np.float32)
        began = time.perf_counter()
        cosines = matrix @ query
        best = np.argpartition(-cosines, min(_K, rows - 1))[:_K]
        best[np.argsort(-cosines[best])]
        times.append(1e3 * (time.perf_counter() - began))
    return median(times)
