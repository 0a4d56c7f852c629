"""Measure how fair a lock is: `python -m benchmarks.locks [--seconds 60] [--processes 8] [--store files]`.

    process 0   open(wait=60) · append · close ── open(wait=60) · append · close ── …      turns, longest wait
    process 7   the same, on the same context

The processes begin at the same moment. The figures are printed, and appended to results/locks.jsonl. This module knows
nothing of how a store keeps a lock.
"""

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memci import Context, EphemeralStorage, SQLiteStorage
from memci.memory import NullMemory
from memci.storage.filesystem.store import FilesystemStorage
from memci.storage.protocol import Storage

from .results import CONSOLE, HERE, headline, keep, record, table

STORES: dict[str, Callable[[Path], Storage]] = {
    "sqlite": lambda folder: SQLiteStorage(folder / "agent.db", busy_timeout_seconds=30),
    "files": lambda folder: FilesystemStorage(folder / "agent", busy_timeout_seconds=30),
}


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Measure what the *arguments* say (default: those of the command line), print it, keep it and return it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.locks")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--store", choices=STORES, default="sqlite")
    parser.add_argument("--discard", action="store_true", help="do not keep the figures")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        figures = measured(options.store, Path(folder), options.processes, options.seconds)
    result = record({key: getattr(options, key) for key in ("store", "processes", "seconds")}, figures)
    keep(result, log=None if options.discard else HERE / "locks.jsonl", file=None)
    CONSOLE.print(headline(result))
    rows = [[str(i), str(turns), f"{wait:.2f}"] for i, (turns, wait) in enumerate(figures["processes"])]
    note = f"largest share / smallest: {figures['factor']:.2f}"
    table("turns under one lock", ["process", "turns", "longest wait, s"], rows, note=note)
    return result


def measured(store: str, folder: Path, processes: int, seconds: float) -> dict[str, Any]:
    """Return the turns and the longest wait of each process, and how far their shares are apart.

    Turns are counted from when each process had its first one until the first process has had its last one.
    """
    spawn = multiprocessing.get_context("spawn")
    ready = spawn.Barrier(processes)
    with spawn.Pool(processes, initializer=_begin, initargs=(ready,)) as pool:
        found = pool.starmap(_turns, [(store, folder, seconds)] * processes, chunksize=1)
    first, last = max(turns[0][0] for turns in found), min(turns[-1][0] for turns in found)
    rows = [(sum(first <= at <= last for at, _ in turns), max(waited for _, waited in turns)) for turns in found]
    counts = [count for count, _ in rows]
    return {"processes": rows, "turns": sum(counts), "factor": max(counts) / max(1, min(counts))}


_ready: Any = None


def _begin(ready: Any) -> None:
    global _ready  # noqa: PLW0603 -- a barrier can't be sent to a process that runs already
    _ready = ready


def _turns(store: str, folder: Path, seconds: float) -> list[tuple[float, float]]:
    """Return when each turn of this process began, and how long it had waited."""
    storage = STORES[store](folder)
    given = {"window": 8_000, "memory": NullMemory(), "clock": None}
    Context.open(EphemeralStorage(), "warm", wait=1, **given).append_turn("Hello")  # what is loaded at first use
    _ready.wait()
    turns, until = [], time.monotonic() + seconds
    while (began := time.monotonic()) < until:
        with Context.open(storage, "alice", wait=600, **given) as context:
            turns.append((time.monotonic(), time.monotonic() - began))
            context.append_turn("Is it my turn?", {"role": "assistant", "content": "It is."})
    storage.close()
    return turns


if __name__ == "__main__":
    main()
