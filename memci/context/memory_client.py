"""Remembering: the memory of one open context. It is made when it is first needed, told, searched and looked after.

    append_turn … append_turn        the worker tells it of a few pages, when the context is left alone
    search_memory("Oslo")            what is still to be told is told first, then it is searched

A memory that fails is no failure of the context: what it was not told stays in the outbox. This module knows nothing
of how things are found.
"""

import logging
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ..errors import StorageError
from ..memory.backend import FoundPage, JobRunner, MemoryBackend, NullMemory, Recollection, Work
from ..storage import Storage
from ..storage.protocol import PageState
from ..text.summarize import Summary
from ..tools.search_memory import SearchQuery
from ..window.window import Window
from ..workers import QUIET_SECONDS, model_worker, worker
from .memory_feed import Handover

BATCH = 8
"""closed pages that wait before the worker is asked to tell of them; with a model it is asked at once"""
ALONE_SECONDS = 0.25
"""how long the context is left alone before less than a batch is told: while it waits for its own model"""
PATIENCE_SECONDS = 2.0
"""how long what a model said waits for a moment in which the context is left alone"""
_LOG = logging.getLogger("memci")
_ALL = 2**62


def load_numpy(memory: MemoryBackend | None, *, read_only: bool) -> None:
    """Import numpy in the calling thread, if the worker is going to use it. About 0.1 s, once in a process.

    Two threads can't import numpy at the same time: if one imports `numpy` while another one imports a part of it first
    (`numpy.linalg`), both fail with an ImportError. So it is loaded before there is a worker.
    """
    if not read_only and not isinstance(memory, NullMemory):
        import numpy  # noqa: F401, ICN001


class Remembering:
    """What stands between a context and its memory."""

    def __init__(
        self,
        memory: MemoryBackend | None,
        made: Callable[[], MemoryBackend],
        lock: threading.RLock,
        *,
        read_only: bool,
        past: bool,
        models: bool = False,
    ) -> None:
        load_numpy(memory, read_only=read_only)
        self._models = models
        self._memory = memory
        self._jobs: JobRunner | None = memory if isinstance(memory, JobRunner) else None
        """the memory, if it may have a model"""
        self._made = made
        self._owned = memory is None
        self._lock = lock
        self._read_only = read_only
        self._past = past
        self._closed = False
        self._handover: Handover | None = None
        self._place: tuple[Storage, Window] | None = None
        self._pages = 0
        """the next page of the window when the worker was asked last"""
        self._first = 0
        """the next page of the window when all was told last"""
        self._owed = 0
        """pages that were told since the memory was looked after"""
        self.touched = time.monotonic()
        self._job_worker = JobWorker(self)

    @property
    def off(self) -> bool:
        """Whether nothing is remembered."""
        return isinstance(self._memory, NullMemory)

    def follows(self, storage: Storage, window: Window) -> None:
        """Tell the memory of the pages of *window* from now on: it was read anew."""
        self._place, self._handover = (storage, window), None
        self._pages = self._first = window.record.next_page

    def used(self) -> None:
        """Note that the context is in use just now, and let the worker know if there is enough to tell."""
        self.touched = time.monotonic()
        if self.off or self._read_only or self._place is None:
            return
        following = self._place[1].record.next_page
        if following - self._pages >= (1 if self.has_model else BATCH):
            self._pages = following
            worker().submit(self)

    @property
    def patience(self) -> float:
        """How long the context must be left alone: longer for a page that is told by itself, for a model."""
        if self.has_model and self._place is not None and self._place[1].record.next_page - self._first < BATCH:
            return ALONE_SECONDS
        return QUIET_SECONDS

    def step(self) -> bool:
        """Tell the memory of one page, or look after it once all is told; return whether there is more to do."""
        if self._memory is None:  # loading takes 0.2 s: a call of the context must not wait for it
            from ..memory import tiered_memory  # noqa: F401
        with self._lock:
            if self._closed or self._place is None:
                return False
            storage, window = self._place
            storage.revision(window.record.id)  # a store that was closed is not opened again for this
            if self._told().tell(1):
                self._owed += 1
                return True
            memory, self._first = self._told().memory, window.record.next_page
        if self._owed >= BATCH or not self.has_model:  # with a model each page is told at once, and looked after later
            self._owed = 0
            memory.maintain()
        if self.has_model:
            model_worker().submit(self._job_worker)
        return False

    def search(self, query: SearchQuery, *, k: int, budget: int | None = None) -> Recollection:
        """Return what the memory knows of *query*, without the pages that stand whole in the window.

        Raises:
            StorageError: If the memory can't be read, or what it was not told yet can't be told.
        """
        if self.off:
            return Recollection(query.text)
        handover = self._told()
        if not self._read_only:
            handover.tell(_ALL)
        window = handover.window
        shown = {
            handover.key(window.rows[page.index])
            for page in window.active
            if page is window.active.open or not any(node.clip for node in page)
        }
        found = handover.memory.search(
            query.text, k=k, budget=budget, since=query.since, until=query.until, exclude=shown
        )
        pages = tuple(page for each in found.pages if (page := self._seen(each)) is not None)
        return replace(found, pages=pages, pending=handover.unheard)

    def tell_fates(self) -> bool:
        """Tell the memory what became of pages, and return whether that is done: else it is done later."""
        if self.off or self._read_only:
            return True
        try:
            self._told().tell_fates()
        except StorageError:
            return False
        return True

    def flush(self) -> None:
        """Tell the memory all there is to tell. O(pages that wait).

        Raises:
            StorageError: If it can't keep it; it is told again then.
        """
        if not self.off and not self._read_only:
            self._told().tell(_ALL)

    def look_after(self) -> None:
        """Let the memory do what is due, with its model if it has one. O(pages and jobs that wait).

        Raises:
            StorageError: If it can't keep it.
        """
        if self.off or self._read_only:
            return
        self.memory.maintain()
        if self._jobs is not None and self._jobs.has_model:
            while self._jobs.run_job():
                pass
            self.memory.maintain()

    @property
    def has_model(self) -> bool:
        """Whether a model makes better what the memory knows."""
        if self._memory is None:
            return self._models
        return self._jobs is not None and self._jobs.has_model

    def run_job(self) -> bool:
        """Let the memory's model do one job; return whether another one is due. Called while nobody waits."""
        if self._closed or self._jobs is None:
            return False
        return self._jobs.run_job(self._settle)

    def summaries(self, indexes: Sequence[int]) -> Mapping[int, Summary]:
        """Return what a model made of some pages of the window or the Contents Page, as far as it is there."""
        if not indexes or self._jobs is None or not self._jobs.has_model:
            return {}
        try:
            handover = self._told()
            names: dict[str, dict[int, int]] = {}
            for index in indexes:
                row = handover.row(index)
                if row is not None:
                    context, known = handover.key(row)
                    names.setdefault(context, {})[known] = index
            return {
                own[index]: summary
                for context, own in names.items()
                for index, summary in self._jobs.summaries(context, list(own)).items()
            }
        except StorageError as error:
            _LOG.debug("pages are listed as they were extracted: %s", type(error).__name__)
            return {}

    @property
    def work(self) -> Work | None:
        """What the memory's model did, and what waits for it; None without one."""
        memory = self.memory if self.has_model else None
        return memory.work() if isinstance(memory, JobRunner) and memory.has_model else None

    @property
    def memory(self) -> MemoryBackend:
        """The memory itself, made now if it was not needed yet."""
        if self._memory is None:
            self._memory = self._made()
            self._jobs = self._memory if isinstance(self._memory, JobRunner) else None
        return self._memory

    def close(self) -> None:
        """Let go of the memory; it is closed if it was made here."""
        self._closed = True
        if self._owned and self._memory is not None:
            self._memory.close()

    def _settle(self) -> None:
        """Return when the context is left alone, or after a while."""
        until = time.monotonic() + PATIENCE_SECONDS
        while (left := self.touched + QUIET_SECONDS - time.monotonic()) > 0 and time.monotonic() < until:
            time.sleep(left)

    def _told(self) -> Handover:
        assert self._place is not None, "a context is read before it remembers"
        if self._handover is None:
            self._handover = Handover(*self._place, self.memory, past=self._past)
        return self._handover

    def _seen(self, page: FoundPage) -> FoundPage | None:
        """Return *page* as this context knows it: a page that it shares is its own; None if it was taken back here.

        A context that is shown as it was knows its own pages of then only.
        """
        handover = self._told()
        if not handover.own(page.context, page.index):
            return None if self._past else page
        row = handover.row(page.index)
        if row is None or row.state in (PageState.UNDONE, PageState.ERASED):
            return None
        return replace(page, context=handover.window.record.id)


class JobWorker:
    """The jobs of a memory's model, as the worker knows them: they wait for the model, not for the context."""

    def __init__(self, remembering: Remembering) -> None:
        self._remembering = weakref.ref(remembering)
        self.touched = self.patience = 0.0

    def step(self) -> bool:
        """Do one job, and return whether another one is due."""
        remembering = self._remembering()
        return remembering is not None and remembering.run_job()
