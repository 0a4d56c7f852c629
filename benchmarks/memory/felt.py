"""Felt: whether an agent notices its memory. `append_turn` + `render`, with the memory and with `NullMemory`.

    turns         null │ memory │ null │ memory …                    in blocks, so that a busy machine slows both
    without a pause    the worker waits for its moment               with one: it is at work when the next turn comes

Wall clock, since what would be felt is waiting: for a lock, for the interpreter, for the file. Between two blocks the
memory is told of all, so that nothing of one block is done in the other. This module knows nothing of searching.
"""

import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from statistics import fmean, median
from typing import Any

from memci import Context, SQLiteStorage
from memci.errors import StorageBusy
from memci.memory import NullMemory

from ..conversation import Message
from .talks import Talks

_BLOCK = 40
_SETTLING = 60
"""turns that fill the window first"""
WINDOW = 4_000
Turns = Iterator[tuple[Any, list[Message]]]


def felt(folder: Path, *, turns: int, pause: float, played: Callable[[int], object] = lambda _: None) -> dict[str, Any]:
    """Return microseconds of a turn with `NullMemory` and with the memory, over *turns* each, *pause* seconds apart."""
    sides: list[tuple[str, SQLiteStorage, Context, Turns, list[float]]] = []
    for name, memory in (("null", NullMemory()), ("memory", None)):
        store = SQLiteStorage(folder / f"{name}-{pause}.db", durability="fast")
        context = Context.open(store, id="a", system="You remember.", window=WINDOW, memory=memory)
        source = Talks().pages()
        for at, page in islice(source, _SETTLING):
            context.append_turn(*page, at=at)
            context.render()
        context.flush()
        sides.append((name, store, context, source, []))
    done = refused = 0
    while done < turns:
        for _, _, context, source, times in sides:
            for at, page in islice(source, min(_BLOCK, turns - done)):
                if pause:
                    time.sleep(pause)
                began = time.perf_counter()
                try:
                    context.append_turn(*page, at=at)
                    context.render()
                except StorageBusy:
                    refused += 1
                times.append(1e6 * (time.perf_counter() - began))
            context.flush()
        done += _BLOCK
        played(min(done, turns))
    figures: dict[str, Any] = {"pause": pause, "turns": turns, "refused": refused}
    for name, store, context, _, times in sides:
        context.close()
        store.close()
        times.sort()
        figures[name] = {
            "median": round(median(times), 1),
            "mean": round(fmean(times), 1),
            "p99": round(times[len(times) * 99 // 100], 1),
        }
    for key in ("median", "mean", "p99"):
        figures[f"{key}_ratio"] = round(figures["memory"][key] / figures["null"][key], 3)
    return figures
