"""The job runner: runs one job with a model, from the claim to the stored result.

    claim ──▶ ask the model: seconds, no lock, no transaction ──▶ settle() ──▶ one short transaction: check that what
    the step read is unchanged, write the result, count the cost, remove the job

A step that fails is repeated later. After five failures it is done without the model, and the job is set aside. If the
model is unavailable, this is no failure of the step: all jobs wait.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial

from ...errors import CeilingReached, ModelUnavailable, StorageError
from ...llm.model import ChatModel
from ..owner import Conflict, Owner, Session
from ..repository.job_queue import TRIES, Job, JobQueue
from ..repository.store import OwnerKey
from ..repository.usage_ledger import Meter, UsageLedger
from ..tiers.events import day_of
from .maintenance import STEPS, schedule
from .step import Step, StepRun

_LOG = logging.getLogger(__name__)


def run_job(session: Session, chat: ChatModel, settle: Callable[[], None], ceiling: int | None = None) -> bool:
    """Run one job that is due, and return whether another one is due. O(its calls of the model).

    *settle* is called before anything is written, and returns when no other call uses the context. *ceiling*: tokens
    that the model may cost in a UTC day; None: no limit. If the memory can't be read or written, the job runs later.
    """
    store = session.store
    if store.read_only or not store.there:
        return False
    with store.lock:
        owner = session.owner
        owner.refresh()
        key = OwnerKey(store, owner.name, owner.nr)
    now, jobs = session.clock(), JobQueue(key)
    left = None if ceiling is None else ceiling - UsageLedger(key).on(day_of(now))
    job = jobs.claim(now) if left is None or left > 0 else None
    if job is None:
        return False
    meter = Meter(chat, session.count, left, session.rules.prompts)
    _Trial(session, owner, key, jobs, job, meter, settle).run(STEPS.get(job.kind))
    schedule(session, now)
    return jobs.due(session.clock())


@dataclass(slots=True)
class _Trial:
    """One attempt at a job."""

    session: Session
    owner: Owner
    key: OwnerKey  # names the owner of the job, who may be erased meanwhile
    jobs: JobQueue
    job: Job
    meter: Meter
    settle: Callable[[], None]

    def run(self, step: Step | None) -> None:
        """Do the job with the model; if that failed too often, do it without, and set the job aside."""
        job, jobs, undone = self.job, self.jobs, True
        if step is not None and job.tries <= TRIES:
            try:
                return self._do(step, self.meter, partial(jobs.finish, job))
            except (ModelUnavailable, CeilingReached) as away:
                _LOG.debug("jobs wait for the model: %s", type(away).__name__)
                return self._note(partial(jobs.hold, job, self.session.clock()))
            except StorageError:
                with suppress(StorageError), self.session.store.change():
                    jobs.release(job, self.session.clock())
                raise
            except Exception as failure:  # noqa: BLE001 -- a model may raise anything, and nothing was changed
                _LOG.debug("a job of the kind %r failed: %s", job.kind, type(failure).__name__)
                if job.tries < TRIES:
                    at_once = isinstance(failure, Conflict)
                    return self._note(partial(jobs.fail, job, self.session.clock(), at_once=at_once))
        if step is not None and job.tries <= TRIES + 1:  # else the job itself may be what kills the process
            try:
                return self._do(step, None, partial(jobs.set_aside, job))
            except StorageError:
                raise
            except Conflict:  # another job does the rest
                undone = False
            except Exception as failure:  # noqa: BLE001 -- a step may raise anything, and other jobs go on
                _LOG.debug("a job of the kind %r can't be done: %s", job.kind, type(failure).__name__)
        return self._note(partial(jobs.set_aside, job, undone=undone))

    def _do(self, step: Step, chat: Meter | None, over: Callable[[], None]) -> None:
        """Perform *step*. The transaction in which it writes, or one of its own, notes that it is *over*."""
        written = False

        @contextmanager
        def change() -> Iterator[None]:
            nonlocal written
            self.settle()
            with self.owner.change():
                if self.owner.nr != self.key.nr:  # the owner was erased, and this must not add it again
                    raise Conflict
                yield
                over()
                self._count()
            written = True

        step.perform(StepRun(self.session, self.session.clock(), change, self.job.subject, self.job.body, chat))
        if not written:
            self._note(over)

    def _note(self, outcome: Callable[[], None]) -> None:
        """Write the *outcome* of the job in a transaction of its own."""
        self.settle()
        with self.session.store.change():
            self._count()  # first: that the model answered before it was away must not end the wait
            outcome()

    def _count(self) -> None:
        if self.key.exists:
            if self.meter.answered:
                self.jobs.answered()
            UsageLedger(self.key).add(self.meter, day_of(self.session.clock()))
