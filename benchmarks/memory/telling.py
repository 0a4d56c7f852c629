"""Telling: how long a page takes to be kept, when the memory holds 1,000, 10,000 and 100,000 of one owner.

    observe(page)   its words are found        ─┐
    admit(page)     it is in the queue          ├─▶  CPU time of the thread, per page, over the last ones before a mark
    maintain()        every eight pages           ─┘
    floor           the same texts into a plain full-text table of SQLite, a transaction for each page, in turn

The pages are in the store first, as a context puts them there: what is told is read from it. So many go through all
tiers; beyond, they are observed, which is what a search goes through. This module knows nothing of searching.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import apsw

from memci import Context, SQLiteStorage
from memci.memory import NullMemory, PageRecord, TieredMemory
from memci.memory.repository.page_source import record_of
from memci.memory.retrieval.hash_embedder import HashEmbedder

from ..conversation import Message
from .talks import Talks

LAST = 500
"""pages before a mark that are measured"""
ADMITTED = 10_000
"""pages that go through all tiers, from the first on"""
BATCH = 8
"""pages after which there is maintenance, as the worker does"""

Asked = list[tuple[str, str]]
"""an owner, and a question whose answer is there"""


class Telling:
    """One owner in a store, whose memory grows."""

    def __init__(self, path: Path, told: Callable[[int], object] = lambda _pages: None) -> None:
        self._talks = Talks()
        self._pages = self._talks.pages()
        self._told = told
        self._said: list[list[Message]] = []
        self._store = SQLiteStorage(path, durability="fast")
        self._context = Context.open(
            self._store, id="0", owner="0", system="You remember.", window=4_000, memory=NullMemory()
        )
        self._memory = TieredMemory(self._store, owner="0")
        self._floor = apsw.Connection(str(path.with_suffix(".floor")))
        self._floor.pragma("journal_mode", "wal")
        self._floor.pragma("synchronous", "normal")
        self._floor.execute("CREATE VIRTUAL TABLE said USING fts5(text)")
        self._count = 0

    def up_to(self, mark: int, *, last: int = LAST, admitted: int = ADMITTED) -> dict[str, Any]:
        """Tell of pages until there are *mark*, and return milliseconds per page of the *last* ones.

        The tiers have no figures (None) at a mark beyond the pages that are *admitted*.
        """
        whole = mark <= admitted
        for page in self._records(max(0, mark - last)):
            self._memory.observe(page)
            if self._count <= admitted:
                self._memory.admit(page)
                if self._count % BATCH == 0:
                    self._memory.maintain()
        times: dict[str, list[float]] = {"observe": [], "admit": [], "maintain": [], "floor": []}
        for page in self._records(mark):
            _timed(times["observe"], partial(self._memory.observe, page))
            if whole:
                _timed(times["admit"], partial(self._memory.admit, page))
            if whole and self._count % BATCH == 0:
                _timed(times["maintain"], self._memory.maintain)
            _timed(times["floor"], partial(self._plain, page))
        return _figures(mark, times)

    def questions(self, count: int) -> Asked:
        """Return questions of pages from all over."""
        step = max(1, len(self._said) // count)
        return [("0", self._talks.question(page)) for page in self._said[::step][:count]]

    def close(self) -> None:
        """Close all that was opened."""
        self._memory.close()
        self._context.close()
        self._store.close()
        self._floor.close()

    def _records(self, mark: int) -> Iterator[PageRecord]:
        """Append pages until *mark*, and yield them as a memory is told of them."""
        while self._count < mark:
            for at, page in islice(self._pages, 1):
                self._said.append(page)
                index = self._context.append_turn(*page, at=at).page
            self._count += 1
            for row in self._store.pages("0", first=index, last=index):
                yield record_of(self._store, "0", row, 2 * self._count + 1)
            if self._count % 500 == 0:
                self._told(self._count)

    def _plain(self, page: PageRecord) -> None:
        with self._floor:
            texts = [(str(message.get("content") or ""),) for _, message in page.entries]
            self._floor.executemany("INSERT INTO said VALUES (?)", texts)


def owners(path: Path, count: int, pages: int, told: Callable[[int], object] = lambda _owners: None) -> Asked:
    """Put *count* owners of *pages* pages each into the store at *path*, and return a question for each.

    Their memories observe them; so few are in the window or listed still, and enter no tier.
    """
    talks = Talks()
    source = talks.pages()
    asked = []
    store = SQLiteStorage(path, durability="fast")
    embedder = HashEmbedder(256)
    open_one = TieredMemory(store, owner="0")  # so that the tables stay open
    for number in range(count):
        name = str(number)
        memory = TieredMemory(store, owner=name, embedder=embedder)
        context = Context.open(store, id=name, owner=name, system="You remember.", window=4_000, memory=NullMemory())
        said = list(islice(source, pages))
        for at, page in said:
            context.append_turn(*page, at=at)
        context.close()
        for row in list(store.pages(name)):
            memory.observe(record_of(store, name, row, 2 * pages + 1))
        memory.close()
        asked.append((name, talks.question(said[number % pages][1])))
        told(number + 1)
    open_one.close()
    store.close()
    return asked


def _timed(times: list[float], work: Callable[[], object]) -> None:
    began = time.thread_time()
    work()
    times.append(time.thread_time() - began)


def _figures(pages: int, times: dict[str, list[float]]) -> dict[str, Any]:
    count = len(times["observe"])
    each = {name: 1e3 * sum(taken) / count if taken else None for name, taken in times.items()}
    observe, floor = each["observe"] or 0.0, each["floor"] or 1.0
    whole = None if each["maintain"] is None else observe + (each["admit"] or 0.0) + each["maintain"]
    return {
        "pages": pages,
        **{f"{name}_ms": None if taken is None else round(taken, 3) for name, taken in each.items()},
        "observed_per_second": round(1e3 / observe, 1),
        "admitted_per_second": None if whole is None else round(1e3 / whole, 1),
        "observe_times_floor": round(observe / floor, 2),
        "whole_times_floor": None if whole is None else round(whole / floor, 2),
        "longest_maintenance_ms": round(1e3 * max(times["maintain"]), 1) if times["maintain"] else None,
    }


def size(path: Path) -> dict[str, int]:
    """Return the bytes of the file at *path*, and of the memory's tables in it."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    rows = connection.execute("SELECT name LIKE '%memory\\_%' ESCAPE '\\', pgsize FROM dbstat").fetchall()
    connection.close()
    return {"file": sum(int(row[1] or 0) for row in rows), "memory": sum(int(row[1] or 0) for row in rows if row[0])}
