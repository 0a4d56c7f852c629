"""The memory of one open context: created when first needed, fed with pages, searched, and maintained.

    append_turn … append_turn        the worker feeds it a few pages while the context is idle
    search_memory("Oslo")            pages that wait are fed first, then the memory is searched

If the memory fails, the context goes on: the pages that the memory did not get wait.
"""

import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from ..errors import StorageError
from ..memory.backend import (
    Forgetful,
    FoundPage,
    HasTiers,
    JobRunner,
    Learned,
    Learns,
    MemoryBackend,
    NullMemory,
    Recollection,
    Shown,
    Work,
)
from ..rows import ContextRecord, PageState
from ..storage import Storage
from ..text.summarize import Summary
from ..tools.search_memory import SearchQuery
from ..window.window import Window
from ..workers import QUIET_SECONDS, model_worker, worker
from .memory_feed import ALL, MemoryFeed

BATCH = 8  # closed pages that wait before the worker is asked to feed them; with a model it is asked at once
ALONE_SECONDS = 0.25
"""how long the context must be idle before less than a batch is fed: usually while it waits for its own model"""
PATIENCE_SECONDS = 2.0
"""how long the result of a job waits for an idle moment of the context: about as long as a model takes for an answer"""
_LOG = logging.getLogger(__name__)


def load_numpy(memory: MemoryBackend | None, *, read_only: bool) -> None:
    """Import numpy in the calling thread, if the worker is going to use it. About 0.1 s, once in a process.

    Two threads can't import numpy at the same time: if one imports `numpy` while another one imports a part of it first
    (`numpy.linalg`), both fail with an ImportError. So it is loaded before there is a worker.
    """
    if not read_only and not isinstance(memory, NullMemory):
        import numpy  # noqa: F401, ICN001


class MemoryClient:
    """The connection between a context and its memory.

    *made* creates the default memory, *lock* is the context's; *note* stores a fact with the context, *today* returns
    the day of a question in its zone. `follow` is called before anything else is used.
    """

    def __init__(
        self,
        memory: MemoryBackend | None,
        made: Callable[[], MemoryBackend],
        lock: threading.RLock,
        *,
        read_only: bool,
        as_of: bool,
        models: bool,
        note: Callable[[Learned], None],
        today: Callable[[], date | None],
    ) -> None:
        load_numpy(memory, read_only=read_only)
        self._memory, self._made, self._lock, self._today = memory, made, lock, today
        self._models, self._as_of = models, as_of
        self._note, self._noted = note, False
        self._owned = memory is None
        self.off = isinstance(memory, NullMemory)
        """whether there is no memory"""
        self._feeds = not (self.off or read_only)
        self._closed = False
        self._feed: MemoryFeed | None = None
        self._record: ContextRecord | None = None
        """that of the window when it was read; None: it was not"""
        self.due = ALL
        """the number of the next page at which the worker is to be asked to feed pages"""
        self._part: tuple[int, int] | None = None
        """what had left the open page when the worker was asked last (`Window.part_left`)"""
        self._first = 0
        """the next page of the window when no page waited last"""
        self._owed = 0
        """pages that were fed since the last maintenance"""
        self.touched = time.monotonic()
        self._job_worker = JobWorker(self)

    def follow(self, storage: Storage, window: Window) -> None:
        """Feed the pages of *window* from now on: the context was reloaded."""
        self._storage, self._window, self._record = storage, window, window.record
        self._feed, self._noted = None, False
        self._first = window.record.next_page
        self._postpone()

    def submit(self) -> None:
        """Ask the worker to feed the pages that wait, once the context is idle."""
        self._postpone()
        worker.submit(self)

    def _postpone(self) -> None:
        self._part = self._window.part_left
        if self._feeds:
            every = 1 if self.has_model else BATCH  # of the page numbers: a context may be open for one page only
            self.due = (self._window.record.next_page // every + 1) * every

    @property
    def part_waits(self) -> bool:
        """Whether more has left the open page than when the worker was asked last. O(1)."""
        return self._feeds and self._window.part_left != self._part

    @property
    def patience(self) -> float:
        """Seconds for which the context must be idle: longer for a page that is fed alone, for a model."""
        if self.has_model and self._window.record.next_page - self._first < BATCH:
            return ALONE_SECONDS
        return QUIET_SECONDS

    def step(self) -> bool:
        """Feed the memory one page, or maintain it once no page waits; return whether there is more to do."""
        if self._memory is None:  # loading takes 0.2 s: a call of the context must not wait for it
            from ..memory import tiered_memory  # noqa: F401
        with self._lock:
            if self._closed:
                return False
            self._storage.revision(self._window.record.id)  # raises if the store was closed: it is not opened again
            feed = self._open_feed()
            if feed.send(1):
                self._owed += 1
                return True
            self._first = self._window.record.next_page
            if self._owed >= BATCH:
                feed.retry()
        if self._owed >= BATCH or not self.has_model:  # with a model each page is fed at once, and maintenance waits
            self._owed = 0
            feed.memory.maintain()
        if self.has_model:
            model_worker.submit(self._job_worker)
        return False

    def search(self, query: SearchQuery, *, k: int, budget: int | None = None, seen: bool = True) -> Recollection:
        """Search the memory for *query*. If the window is *seen*, messages that are shown whole are left out."""
        if self.off:
            return Recollection(query.text)
        feed = self._open_feed()
        shown = (feed.catch_up() if self._feeds else set()) | (set(_shown(feed)) if seen else set())
        given: dict[str, Any] = {"wall": query.wall, "skip": query.skip, "now": self._today()}
        bounds = {"since": query.since, "until": query.until} | {name: each for name, each in given.items() if each}
        found = feed.memory.search(query.text, k=k, budget=budget, exclude=shown, **bounds)
        user, assistant = (
            tuple(fact for fact in facts if (fact.context, fact.index) not in shown)
            for facts in (found.user_facts, found.assistant_facts)
        )
        waiting, pages = feed.unsent + len(feed.aside), [*self._known_here(found.pages)]
        standing = seen and "standing" in [page.source for page in pages]
        for index, text in feed.window.contents.instructions if standing else ():
            own = (feed.window.record.id, index, text, "standing")
            pages = [page for page in pages if (page.context, page.index, page.text, page.source) != own]
        return replace(found, pages=tuple(pages), user_facts=user, assistant_facts=assistant, pending=waiting)

    def removals(self) -> object:
        """Return what changes when the memory forgets pages; of a memory that does not say so, always None."""
        memory = self.memory
        return memory.removals() if isinstance(memory, Forgetful) else None

    def send_state_changes(self) -> bool:
        """Send the state changes of pages to the memory. Return whether that succeeded; if not, they are sent later."""
        try:
            if self._feeds:
                self._open_feed().send_state_changes()
        except StorageError:
            return False
        return True

    def hand_over(self) -> None:
        """Feed the memory all pages that wait, and let those in the window enter its tiers."""
        if self._feeds and (feed := self._open_feed()).hand_over() and feed.tiers is not None and feed.tiers.overdue():
            self.memory.maintain()  # the worker had no time for it

    def end_session(self) -> None:
        """Hand over all pages, and let the memory summarize the conversation. It raises as `MemoryFeed.send`."""
        self.hand_over()
        if isinstance(self._memory, HasTiers):
            self._memory.end_session(self._open_feed().window.record.id)

    def flush(self) -> None:
        """Feed the memory all pages that wait (see `MemoryFeed.send`). O(pages that wait)."""
        if self._feeds:
            self._open_feed().retry()
            self._open_feed().send(ALL)

    @property
    def set_aside(self) -> int:
        """How many pages were set aside, as far as the memory was used since the context was opened."""
        return len(self._feed.aside) if self._feed is not None else 0

    def maintain(self) -> None:
        """Let the memory do what is due, with its model if it has one. O(pages and jobs that wait)."""
        if not self._feeds:
            return
        self.memory.maintain()
        if (jobs := self._jobs) is not None:
            while jobs.run_job():
                pass
            self.memory.maintain()

    @property
    def has_model(self) -> bool:
        """Whether a model improves what the memory knows."""
        return self._models if self._memory is None else self._jobs is not None

    @property
    def _jobs(self) -> JobRunner | None:
        """The memory, if it was created and has a model."""
        memory = self._memory
        return memory if isinstance(memory, JobRunner) and memory.has_model else None

    def run_job(self) -> bool:
        """Let the memory's model do one job; return whether another one is due. No caller waits for it."""
        jobs = None if self._closed else self._jobs
        return jobs is not None and jobs.run_job(self._settle)

    def summaries(self, indexes: Sequence[int]) -> Mapping[int, Summary]:
        """Return the summaries that a model wrote of pages of the window or the Contents Page, where there are any."""
        jobs = self._jobs
        if not indexes or jobs is None:
            return {}
        try:
            feed = self._open_feed()
            names: dict[str, list[int]] = {}
            """the pages by the context under which the memory knows them: a fork keeps their numbers"""
            for context, index in feed.keys(feed.rows(indexes).values()).values():
                names.setdefault(context, []).append(index)
            found = (jobs.summaries(context, own) for context, own in names.items())
            return {index: summary for each in found for index, summary in each.items()}
        except StorageError as error:
            _LOG.debug("pages are listed with extracted summaries: %s", type(error).__name__)
            return {}

    @property
    def work(self) -> Work | None:
        """What the memory's model did, and what waits for it; None without one."""
        memory = self.memory if self.has_model else None
        return memory.work() if isinstance(memory, JobRunner) and memory.has_model else None

    @property
    def memory(self) -> MemoryBackend:
        """The memory itself, created now if it was not needed before."""
        if self._memory is None:
            self._memory = self._made()
        if not self._noted and self._feeds:
            self._noted = True
            if isinstance(self._memory, Learns):
                self._memory.notebooks[self._window.record.id] = self._note
        return self._memory

    def close(self) -> None:
        """Hand over the pages if this context was used, and release the memory; close it if it was created here."""
        try:
            if self._record is not None and (self._feed is not None or self._window.record is not self._record):
                self.hand_over()
        except Exception as error:  # noqa: BLE001 -- whatever it is: the context closes, and they are fed another time
            _LOG.debug("pages are handed over later: %s", type(error).__name__)
        finally:
            self._closed = True
            if self._noted and isinstance(self._memory, Learns):
                self._memory.notebooks.pop(self._window.record.id, None)
            if self._owned and self._memory is not None:
                self._memory.close()

    def _settle(self) -> None:
        """Return when the context is idle, or after `PATIENCE_SECONDS`."""
        until = time.monotonic() + PATIENCE_SECONDS
        while (left := self.touched + QUIET_SECONDS - time.monotonic()) > 0 and time.monotonic() < until:
            time.sleep(left)

    def _open_feed(self) -> MemoryFeed:
        if self._feed is None:
            self._feed = MemoryFeed(self._storage, self._window, self.memory, as_of=self._as_of)
        return self._feed

    def _known_here(self, found: Sequence[FoundPage]) -> Iterator[FoundPage]:
        """Yield pages as this context knows them: a shared page as its own, without those that were taken back here.

        As of an earlier turn, only the context's own pages of that time are known.
        """
        feed = self._open_feed()
        later = [page.later for page in found if page.later is not None]
        own, name = feed.own_rows({(page.context, page.index) for page in (*found, *later)}), feed.window.record.id

        def known(page: FoundPage | None) -> FoundPage | None:
            if page is None:
                return None
            row = own.get((page.context, page.index))
            if row is None:
                return None if self._as_of or (page.context, page.index) in own else page
            here = row.state not in (PageState.UNDONE, PageState.ERASED)
            return (page if page.context == name else replace(page, context=name)) if here else None

        for page in found:
            if (shown := known(page)) is not None:
                yield shown if shown.later is None else replace(shown, later=known(shown.later))


def _shown(feed: MemoryFeed) -> Iterator[Shown]:
    """Yield what the window of *feed* shows whole: pages, or messages of pages that it does not show whole."""
    window = feed.window
    keys = feed.keys(window.rows.values())
    for page in window.active:
        if page.whole and window.rows[page.index].away is None:
            yield keys[page.index]
        else:
            yield from ((*keys[page.index], page.ordinal(node)) for node in page if not node.clip)


class JobWorker:
    """The jobs of a memory's model, as the worker sees them: they wait for the model, not for the context."""

    touched = patience = 0.0

    def __init__(self, client: MemoryClient) -> None:
        self._client = weakref.ref(client)

    def step(self) -> bool:
        """Do one job, and return whether another one is due."""
        client = self._client()
        return client is not None and client.run_job()
