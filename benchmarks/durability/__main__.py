"""Measure durability: `python -m benchmarks.durability [--folder DISK] [--turns N]`.

    floor            4 KiB appended to a file, and one fsync
    sqlite wal full  append_turn returned: on disk              … and the other modes, in turn with the floor

All stores are measured in turn in one process, a turn each, so that a busy disk slows all of them: trust the ratio to
the floor. The figures are printed, and appended to results/durability.jsonl. This module knows nothing of faults.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memci import Context, EphemeralStorage, SQLiteStorage
from memci.storage.filesystem.store import FilesystemStorage
from memci.storage.protocol import Storage

from ..conversation import airline, synthetic
from ..results import CONSOLE, HERE, headline, keep, line, progress, record, table

STORES: dict[str, Callable[[Path], Storage]] = {
    "ephemeral": lambda _folder: EphemeralStorage(),
    "sqlite, wal, full": lambda folder: SQLiteStorage(folder / "wal.db"),
    "sqlite, wal, fast": lambda folder: SQLiteStorage(folder / "fast.db", durability="fast"),
    "sqlite, truncate, full": lambda folder: SQLiteStorage(folder / "truncate.db", journal="truncate"),
    "files, full": lambda folder: FilesystemStorage(folder / "files"),
    "files, fast": lambda folder: FilesystemStorage(folder / "files-fast", durability="fast"),
}


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Measure what the *arguments* say (default: those of the command line), print it, keep it and return it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.durability")
    parser.add_argument("--folder", help="on the disk to measure; default: where temporary files go")
    parser.add_argument("--turns", type=int, default=1_000)
    parser.add_argument("--discard", action="store_true", help="do not keep the figures")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as name, progress() as bar:
        figures = measured(Path(name), options.turns, line(bar, "turns", options.turns))
    result = record({"turns": options.turns}, figures)
    keep(result, log=None if options.discard else HERE / "durability.jsonl", file=None)
    CONSOLE.print(headline(result))
    rows = [
        [name, f"{row['p50_us']:,.0f}", f"{row['p99_us']:,.0f}", f"{row['ratio']:.2f}", f"{row['render_p50_us']:,.0f}"]
        for name, row in figures.items()
    ]
    table(
        "append_turn, returned",
        ["store", "p50 µs", "p99 µs", "p50 / floor", "render p50 µs"],
        rows,
        note="wall clock; window 32k",
    )
    return result


def measured(folder: Path, turns: int, played: Callable[[int], None]) -> dict[str, dict[str, float]]:
    """Return microseconds per store: median and 99th percentile of an append, median of a rendering."""
    conversation = airline() or synthetic()
    contexts = {name: Context.open(make(folder), id="alice", window=32_000) for name, make in STORES.items()}
    appends: dict[str, list[float]] = {name: [] for name in ("floor", *STORES)}
    renders: dict[str, list[float]] = {name: [] for name in ("floor", *STORES)}
    file = os.open(folder / "floor", os.O_WRONLY | os.O_CREAT)
    page = bytes(4096)
    for number, turn in enumerate(conversation.turns()):
        if number == turns:
            break
        begin = time.perf_counter()
        os.write(file, page)
        os.fsync(file)
        appends["floor"].append(time.perf_counter() - begin)
        renders["floor"].append(0.0)
        for name, context in contexts.items():
            begin = time.perf_counter()
            context.append_turn(*turn)
            middle = time.perf_counter()
            context.render(strict=False)
            appends[name].append(middle - begin)
            renders[name].append(time.perf_counter() - middle)
        played(number + 1)
    os.close(file)
    floor = _quantile(appends["floor"], 0.5)
    return {
        name: {
            "p50_us": round(_quantile(times, 0.5) * 1e6, 1),
            "p99_us": round(_quantile(times, 0.99) * 1e6, 1),
            "ratio": round(_quantile(times, 0.5) / floor, 2),
            "render_p50_us": round(_quantile(renders[name], 0.5) * 1e6, 1),
        }
        for name, times in appends.items()
    }


def _quantile(times: list[float], share: float) -> float:
    return sorted(times)[int(share * (len(times) - 1))]


if __name__ == "__main__":
    main()
