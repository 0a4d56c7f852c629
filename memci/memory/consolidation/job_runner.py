"""Improving: one job of a model, from its claim to what is kept of it.

    claim ──▶ ask the model: seconds, no lock, no transaction ──▶ settle() ──▶ one short transaction: the ground is as
    it was, what came of it is written, what it cost is counted, the job goes

A step that fails is tried again later, five times; then its form without a model is done, so that nothing stays undone
for ever, and the job is set aside. A model that is away is no failure: all wait for it. This module knows nothing of
what the steps are.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import apsw

from ...errors import CeilingReached, ModelUnavailable, StorageError
from ...llm.model import ChatModel
from ...storage import Storage
from ..owner import Change, Conflict, Owner, owner_of
from ..repository import job_queue as jobs
from ..repository.job_queue import Job
from ..repository.store import MemoryStore, fetched
from ..repository.usage_ledger import Meter, spent_on, today
from ..retrieval.embedders import Embedder
from ..tiers.rules import Rules
from .maintenance import schedule

_LOG = logging.getLogger("memci")


@dataclass(frozen=True, slots=True)
class Means:
    """What a memory works with."""

    storage: Storage
    store: MemoryStore
    name: str
    """of the owner"""
    embedder: Embedder
    rules: Rules
    count: Callable[[str], int]
    """tokens of a text"""
    clock: Callable[[], float]
    """seconds since 1970 UTC"""
    ceiling: int | None = None
    """tokens that a model may cost in a UTC day; None: no bound"""


@dataclass(frozen=True, slots=True)
class Bench:
    """What one step works with."""

    means: Means
    owner: Owner
    chat: Meter | None
    """the model; None: the step is to be done without it"""
    now: float
    change: Change
    """the transaction in which it writes, once at most"""


Step = Callable[[Bench, Job], None]
"""Does a job: writes what came of it, or nothing if there is nothing to do."""


def improve(means: Means, chat: ChatModel, steps: Mapping[str, Step], settle: Callable[[], None]) -> bool:
    """Do one job that is due, and return whether another one is. O(its calls of the model).

    Args:
        means: What the memory works with.
        chat: The model.
        steps: How a job of each kind is done.
        settle: Called before anything is written.

    Raises:
        StorageError: If the memory can't be read or written; the job is done later.
    """
    store = means.store
    if store.read_only or not store.has_jobs:
        return False
    owner = owner_of(store, means.name)
    with store.lock:
        owner.refresh()
        number = owner.nr
    now = means.clock()
    left = None if means.ceiling is None else means.ceiling - spent_on(store, number, today(now))
    job = jobs.claim(store, number, now) if left is None or left > 0 else None
    if job is None:
        return False
    _Trial(means, owner, number, job, Meter(chat, means.count, left), settle).run(steps.get(job.kind))
    schedule(store, owner, means.rules, now)
    return jobs.due(store, number, means.clock())


class _Trial:
    """One try of a job."""

    def __init__(
        self, means: Means, owner: Owner, number: int, job: Job, meter: Meter, settle: Callable[[], None]
    ) -> None:
        self._means, self._owner, self._number, self._job = means, owner, number, job
        self._meter = meter
        self._settle = settle
        self._written = False

    def run(self, step: Step | None) -> None:
        error = "" if step is not None else "an unknown kind"
        if step is not None and self._job.tries <= jobs.TRIES:
            error = self._tried(step)
            if not error:
                return
        self._set_aside(step, error)

    def _tried(self, step: Step) -> str:
        """Do the job with the model; return "" if it needs no more for now, else what failed for the last time."""
        job, at_once = self._job, False
        try:
            self._do(step, self._meter, lambda connection: jobs.finish(connection, job))
        except Conflict:
            error, at_once = "Conflict", True
        except (ModelUnavailable, CeilingReached) as away:
            _LOG.debug("jobs wait for the model: %s", type(away).__name__)
            with self._noted() as connection:
                jobs.hold(connection, self._number, job, self._means.clock())
            return ""
        except StorageError:
            with suppress(StorageError), self._means.store.change() as connection:
                jobs.release(connection, job, self._means.clock())
            raise
        except Exception as failure:  # noqa: BLE001 -- a model may be anybody's: its failure changes nothing
            error = type(failure).__name__
            _LOG.debug("a job of the kind %r failed: %s", job.kind, error)
        else:
            return ""
        if job.tries >= jobs.TRIES:
            return error
        with self._noted() as connection:
            jobs.fail(connection, job, self._means.clock(), error, at_once=at_once)
        return ""

    def _set_aside(self, step: Step | None, error: str) -> None:
        """Do the job without the model, and let it be."""
        job, undone = self._job, True
        if step is not None and job.tries <= jobs.TRIES + 1:  # else doing it is what ends the process
            try:
                self._do(step, None, lambda connection: jobs.set_aside(connection, job, error))
            except StorageError:
                raise
            except Conflict:  # what is left to do is left to another job
                undone = False
            except Exception as failure:  # noqa: BLE001 -- likewise
                _LOG.debug("a job of the kind %r can't be done: %s", job.kind, type(failure).__name__)
                error = type(failure).__name__
            else:
                return
        with self._noted() as connection:
            jobs.set_aside(connection, job, error, undone=undone)

    def _do(self, step: Step, chat: Meter | None, over: Callable[[apsw.Connection], None]) -> None:
        @contextmanager
        def change() -> Iterator[apsw.Connection]:
            self._settle()
            with self._owner.change() as connection:
                if self._owner.nr != self._number:  # the owner was erased, and is not to come back by this
                    raise Conflict
                yield connection
                over(connection)
                self._count(connection)
            self._written = True

        self._written = False
        step(Bench(self._means, self._owner, chat, self._means.clock(), change), self._job)
        if not self._written:
            with self._noted() as connection:
                over(connection)

    @contextmanager
    def _noted(self) -> Iterator[apsw.Connection]:
        """Give the connection to note what became of the job, which changes nothing of what is known."""
        self._settle()
        with self._means.store.change() as connection:
            yield connection
            self._count(connection)

    def _count(self, connection: apsw.Connection) -> None:
        if fetched(connection, "SELECT 1 FROM memory_owner WHERE nr = ?", self._number):
            if self._meter.answered:
                jobs.answered(connection, self._number)
            self._meter.keep(connection, self._number, today(self._means.clock()))
