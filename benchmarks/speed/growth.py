"""Growth: what a turn costs when the context has reached 1,000, 10,000 and 100,000 of them.

    turns      0 ─────────── 1k ─────────────────── 10k ─────────────── … ── 100k
    measured   └─ the 1,000 ─┘        the 1,000 ─────┘          the 1,000 ────┘

A turn is `append_turn` of the new messages and `render()`; its time is CPU time of the thread, and apart from that the
wall clock, since an fsync is the disk's. With pauses, what the worker prepares for the next compaction is done between
two turns, as in the pauses of a real agent, and its time counted apart. This module knows nothing of memory or opening.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any, Literal

from memci import Context, EphemeralStorage, SQLiteStorage
from memci.history.events import Event
from memci.storage import Storage

from ..conversation import Conversation, Message
from .floor import Floor, clock_cost

STORES = ("ephemeral", "sqlite", "sqlite-full")
LAST = 1_000


@dataclass(frozen=True, slots=True)
class Mark:
    """What the last turns before a mark took. In microseconds, but where the name says otherwise."""

    turns: int
    median: float
    mean: float
    """compactions included"""
    p99: float
    wall_median: float
    wall_p99: float
    append: float
    """the median of append_turn alone"""
    render: float
    """the median of render() alone"""
    floor: float
    """the median of the floor, on the same turns"""
    times_floor: float
    """median / floor"""
    compactions: int
    """how many compactions fell among these turns"""
    idle: float
    """what was prepared between two turns, the mean; 0 without pauses"""


def growth(
    conversation: Conversation,
    folder: Path,
    *,
    store: str,
    marks: Sequence[int],
    window: int,
    pauses: bool = False,
    last: int = LAST,
    played: Callable[[int], object] = lambda _turns: None,
) -> dict[str, Any]:
    """Play *conversation* up to the highest of *marks*, and return what was measured before each of them.

    Args:
        folder: Where a store may put its file.
        store: One of `STORES`. With "sqlite-full", only the turns that are measured are synced one by one.
        pauses: Whether there is a pause before each turn, which the worker uses.
        last: How many turns before a mark are measured.
        played: Called with the number of turns played, every 500.
    """
    course = _Course(conversation, folder, store, window)
    floor, cost = Floor(), clock_cost()
    found = []
    for mark in sorted(marks):
        while course.played < max(0, mark - last):
            course.play()
            if course.played % 500 == 0:
                played(course.played)
        course.measure_from_here()
        found.append(_mark(course, floor, cost, mark, pauses=pauses))
        played(course.played)
    course.close()
    first = found[0]
    return {
        "store": store,
        "marks": [asdict(mark) for mark in found],
        "growth": {str(mark.turns): round(mark.median / first.median, 3) for mark in found[1:]},
        "growth_over_floor": {str(mark.turns): round(mark.times_floor / first.times_floor, 3) for mark in found[1:]},
    }


def opened(store: Storage, conversation: Conversation, window: int, on_event: Callable[[Event], None]) -> Context:
    """Open the context that is measured."""
    return Context.open(store, id="bench", system=conversation.system, window=window, on_event=on_event)


class _Course:
    """One context and the turns that it has still to take."""

    def __init__(self, conversation: Conversation, folder: Path, store: str, window: int) -> None:
        self._conversation = conversation
        self._path = folder / f"{store}.db"
        self._full = store == "sqlite-full"
        self._synced = False
        self._window = window
        self._turns: Iterator[list[Message]] = conversation.turns()
        self.played = 0
        self.compactions = 0
        self._open(EphemeralStorage() if store == "ephemeral" else SQLiteStorage(self._path, durability="fast"))

    def _open(self, store: Storage) -> None:
        self._store = store
        self.context = opened(store, self._conversation, self._window, self._noticed)

    def _noticed(self, event: Event) -> None:
        self.compactions += event.kind == "compaction"

    def next(self) -> list[Message]:
        self.played += 1
        return next(self._turns)

    def play(self) -> None:
        self.context.append_turn(*self.next())
        self.context.render()
        if self._synced:
            self._reopen("fast")

    def pause(self) -> int:
        """Let the next compaction be prepared, and return the CPU time of that, in nanoseconds."""
        began = time.thread_time_ns()
        while self.context._parts.compactor.step():
            pass
        return time.thread_time_ns() - began

    def measure_from_here(self) -> None:
        self.compactions = 0
        if self._full and not self._synced:
            self._reopen("full")

    def _reopen(self, durability: Literal["full", "fast"]) -> None:
        self.close()
        self._open(SQLiteStorage(self._path, durability=durability))
        self._synced = durability == "full"

    def close(self) -> None:
        self.context.close()
        self._store.close()


def _mark(course: _Course, floor: Floor, cost: int, mark: int, *, pauses: bool) -> Mark:
    appends, renders, walls, floors, idle = [], [], [], [], [0]
    while course.played < mark:
        messages = course.next()
        if pauses:
            idle.append(course.pause())
        # the second one finds the caches warm: they take turns
        if course.played % 2:
            floors.append(floor.turn(messages))
        append, render = course.context.append_turn, course.context.render
        wall = time.perf_counter_ns()
        began = time.thread_time_ns()
        append(*messages)
        between = time.thread_time_ns()
        render()
        ended = time.thread_time_ns()
        walls.append(time.perf_counter_ns() - wall)
        appends.append(between - began - cost)
        renders.append(ended - between - cost)
        if not course.played % 2:
            floors.append(floor.turn(messages))
    both = [append + render for append, render in zip(appends, renders, strict=True)]
    lowest = median(floors) - cost
    return Mark(
        turns=mark,
        median=_micro(median(both)),
        mean=_micro(fmean(both)),
        p99=_micro(_p99(both)),
        wall_median=_micro(median(walls)),
        wall_p99=_micro(_p99(walls)),
        append=_micro(median(appends)),
        render=_micro(median(renders)),
        floor=_micro(lowest),
        times_floor=round(median(both) / lowest, 3),
        compactions=course.compactions,
        idle=_micro(sum(idle) / len(both)),
    )


def _micro(nanoseconds: float) -> float:
    return round(nanoseconds / 1_000, 2)


def _p99(values: Sequence[int]) -> int:
    return sorted(values)[len(values) * 99 // 100]
