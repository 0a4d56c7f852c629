"""Memory: what an archived page costs in RAM and on disk, beside its raw JSON.

    10k pages ── what Python has allocated ──┐
                                             ├──▶  bytes per page that was archived in between
    100k pages ── what Python has allocated ─┘

The window holds as much at both ends (what varies with its filling is left out by taking the least of many turns), so
the difference is what the archive costs. Bounded caches stay out of it once they are full, by the first mark;
what SQLite allocates is its page cache, bounded, and told apart.
This module knows nothing of time.
"""

import gc
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw
import orjson

from memci import Context, EphemeralStorage, SQLiteStorage

from ..conversation import Conversation, Message
from .growth import opened

SETTLING = 500
"""turns over which the least is taken: some compactions"""


def memory(
    conversation: Conversation,
    path: Path,
    *,
    pages: tuple[int, int],
    window: int,
    settling: int = SETTLING,
    played: Callable[[int], object] = lambda _pages: None,
) -> dict[str, Any]:
    """Archive pages into a SQLite file at *path*, and return what they cost; the file stays.

    Args:
        pages: The numbers of pages between which the difference is taken.
        settling: Over how many turns the least is taken.
        played: Called with the number of pages, now and then.
    """
    store = SQLiteStorage(path, durability="fast")
    player = _Player(opened(store, conversation, window, lambda _event: None), conversation, played)
    player.play(pages[0] // 2)
    # from here on, so that what stands in the window at the first mark was allocated under its eyes
    tracemalloc.start()
    player.play(pages[0])
    before = player.least(settling)
    pages_before = player.pages
    player.play(pages[1])
    after = player.least(settling)
    tracemalloc.stop()
    sqlite = apsw.memory_used()
    report = player.context.report()
    player.context.close()
    store.close()
    disk = sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))
    return {
        "pages": player.pages,
        "turns": player.turns,
        "messages": report.messages,
        "ram_per_page": round((after - before) / (player.pages - pages_before), 2),
        "ram_of_window": after,
        "ram_of_sqlite": sqlite,
        "disk_per_page": round(disk / player.pages, 1),
        "json_per_page": round(player.json / player.pages, 1),
        "disk_times_json": round(disk / player.json, 3),
    }


def ephemeral(conversation: Conversation, *, pages: int, window: int) -> dict[str, Any]:
    """Return what *pages* pages in an `EphemeralStorage` cost, the window and the context included."""
    gc.collect()
    before = apsw.memory_used()
    tracemalloc.start()
    player = _Player(opened(EphemeralStorage(), conversation, window, lambda _event: None), conversation)
    player.play(pages)
    gc.collect()
    allocated = tracemalloc.get_traced_memory()[0] + apsw.memory_used() - before
    tracemalloc.stop()
    player.context.close()
    return {
        "pages": player.pages,
        "ram_per_page": round(allocated / player.pages, 1),
        "json_per_page": round(player.json / player.pages, 1),
        "ram_times_json": round(allocated / player.json, 3),
    }


class _Player:
    """Plays turns, and counts pages and bytes."""

    def __init__(
        self, context: Context, conversation: Conversation, played: Callable[[int], object] = lambda _pages: None
    ) -> None:
        self.context = context
        self._turns: Iterator[list[Message]] = conversation.turns()
        self._played = played
        self.pages = 0
        self.turns = 0
        self.json = 0

    def turn(self) -> None:
        messages: Sequence[Message] = next(self._turns)
        self.pages = self.context.append_turn(*messages).page
        self.context.render()
        self.turns += 1
        self.json += sum(len(orjson.dumps(message)) for message in messages)
        if self.turns % 500 == 0:
            self._played(self.pages)

    def play(self, pages: int) -> None:
        while self.pages < pages:
            self.turn()

    def least(self, turns: int) -> int:
        """Return the least that was allocated after any of so many turns, in bytes."""
        gc.collect()
        least = tracemalloc.get_traced_memory()[0]
        for number in range(turns):
            self.turn()
            if number % 50 == 0:
                gc.collect()
            least = min(least, tracemalloc.get_traced_memory()[0])
        return least
