"""Cycles of a server on one store: open a context, render, append, search, close. What stays in RAM after each?

    one     one owner, a conversation of 800 turns; each cycle repeats an append under its op_id, so nothing grows
    grows   the same, and each cycle appends a new turn: its index grows by what the turn says
    many    2,000 owners in turn, of which 8 MB stay in RAM

The slope is the median slope between any two samples of the second half, in bytes of the process (resident) per
cycle: caches of SQLite and of words fill in the first half, and a table that grows once is no slope. This module knows
nothing of how long a cycle takes under load.
"""

import gc
import os
import time
from array import array
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

from memci import Context, SQLiteStorage
from memci.storage.protocol import CACHE_BYTES

from ..memory.talks import Talks

TURNS = 800
OWNERS = 2_000
_SAMPLES = 200
_FEW = 3
"""turns of each of many owners at first"""
_FEW_BYTES = 8 * 2**20
"""of many owners, in RAM"""


def cycles(
    folder: Path, talks: Talks, kind: str, count: int, *, turns: int, owners: int, played: Callable[[int], None]
) -> dict[str, Any]:
    """Run *count* cycles of a *kind*, and return the slopes and the time of a cycle (median, ms)."""
    pages = talks.pages()
    most = _FEW_BYTES if kind == "many" else CACHE_BYTES
    store = SQLiteStorage(folder / f"{kind}.db", durability="fast", cache_bytes=most)
    names = [f"user-{number}" for number in range(owners)] if kind == "many" else ["user"]
    for name in names:
        with Context.open(store, name, window=8_000, clock=None) as context:
            for _ in range(_FEW if kind == "many" else turns):
                context.append_turn(next(pages)[1])
            context.flush()
    samples: list[tuple[int, int, int, int]] = []
    times = array("d", bytes(8 * count))  # its own growth is no slope
    again = next(pages)[1]
    for number in range(count):
        page, op_id = (again, "again") if kind == "one" else (next(pages)[1], f"request-{number}")
        began = time.perf_counter()
        with Context.open(store, names[number % len(names)], wait=5, clock=None) as context:
            context.render(page[0])
            context.append_turn(page, op_id=op_id)
            context.search_memory(talks.question(page))
        times[number] = time.perf_counter() - began
        if number % max(1, count // _SAMPLES) == 0:
            gc.collect()
            samples.append((number, resident(), _count("/proc/self/fd"), _count("/proc/self/task")))
        played(number + 1)
    store.close()
    gc.collect()
    warm = samples[len(samples) // 10 :]
    slope = median((b[1] - a[1]) / (b[0] - a[0]) for a, b in combinations(samples[len(samples) // 2 :], 2))
    return {
        "kind": kind,
        "cycles": count,
        "ms": round(1e3 * median(times), 2),
        "slope": round(slope, 1),
        "first_mb": round(warm[0][1] / 2**20, 1),
        "last_mb": round(warm[-1][1] / 2**20, 1),
        "closed_mb": round(resident() / 2**20, 1),
        "files": [warm[0][2], warm[-1][2]],
        "threads": [warm[0][3], warm[-1][3]],
    }


def resident() -> int:
    """Return the bytes of this process that are in RAM."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _count(folder: str) -> int:
    return sum(1 for _ in Path(folder).iterdir())
