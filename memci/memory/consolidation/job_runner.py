"""The job runner: runs one job with a model, from the claim to the stored result.

    claim ──▶ ask the model: seconds, no lock, no transaction ──▶ settle() ──▶ one short transaction: check that what
    the step read is unchanged, write the result, count the cost, remove the job

A step that fails is repeated later. After five failures it is done without the model, and the job is set aside. If the
model is unavailable, this is no failure of the step: all jobs wait.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from ...errors import CeilingReached, ModelUnavailable, StorageError
from ...llm.model import ChatModel
from ..owner import Conflict, Owner, Session
from ..repository.job_queue import TRIES, Job, JobQueue
from ..repository.store import OwnerKey
from ..repository.usage_ledger import Meter, UsageLedger, utc_day
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
    now = session.clock()
    left = None if ceiling is None else ceiling - UsageLedger(key).on(utc_day(now))
    job = JobQueue(key).claim(now) if left is None or left > 0 else None
    if job is None:
        return False
    _Trial(session, owner, key, job, Meter(chat, session.count, left, session.rules.prompts), settle).run(
        STEPS.get(job.kind)
    )
    schedule(session, now)
    return JobQueue(key).due(session.clock())


class _Trial:
    """One attempt at a job. *key* names the owner of the job, who may be erased meanwhile."""

    def __init__(
        self, session: Session, owner: Owner, key: OwnerKey, job: Job, meter: Meter, settle: Callable[[], None]
    ) -> None:
        self._session, self._owner, self._key, self._job = session, owner, key, job
        self._jobs = JobQueue(key)
        self._meter = meter
        self._settle = settle
        self._written = False

    def run(self, step: Step | None) -> None:
        """Do the job with the model; if that failed too often, do it without, and set the job aside."""
        job, jobs, error, undone = self._job, self._jobs, "", True
        if step is None:
            error = "an unknown kind"
        elif job.tries <= TRIES:
            try:
                self._do(step, self._meter, lambda: jobs.finish(job))
            except (ModelUnavailable, CeilingReached) as away:
                _LOG.debug("jobs wait for the model: %s", type(away).__name__)
                with self._noted():
                    jobs.hold(job, self._session.clock())
                return
            except StorageError:
                with suppress(StorageError), self._session.store.change():
                    jobs.release(job, self._session.clock())
                raise
            except Exception as failure:  # noqa: BLE001 -- a model may raise anything, and nothing was changed
                error = type(failure).__name__
                _LOG.debug("a job of the kind %r failed: %s", job.kind, error)
                if job.tries < TRIES:
                    with self._noted():
                        jobs.fail(job, self._session.clock(), error, at_once=isinstance(failure, Conflict))
                    return
            else:
                return
        if step is not None and job.tries <= TRIES + 1:  # else the job itself may be what kills the process
            try:
                self._do(step, None, lambda: jobs.set_aside(job, error))
            except StorageError:
                raise
            except Conflict:  # another job does the rest
                undone = False
            except Exception as failure:  # noqa: BLE001 -- a step may raise anything, and other jobs go on
                _LOG.debug("a job of the kind %r can't be done: %s", job.kind, type(failure).__name__)
                error = type(failure).__name__
            else:
                return
        with self._noted():
            jobs.set_aside(job, error, undone=undone)

    def _do(self, step: Step, chat: Meter | None, over: Callable[[], None]) -> None:
        @contextmanager
        def change() -> Iterator[None]:
            self._settle()
            with self._owner.change():
                if self._owner.nr != self._key.nr:  # the owner was erased, and this must not add it again
                    raise Conflict
                yield
                over()
                self._count()
            self._written = True

        self._written = False
        step.perform(StepRun(self._session, self._session.clock(), change, self._job.subject, self._job.body, chat))
        if not self._written:
            with self._noted():
                over()

    @contextmanager
    def _noted(self) -> Iterator[None]:
        """Write the outcome of the job in a transaction of its own."""
        self._settle()
        with self._session.store.change():
            yield
            self._count()

    def _count(self) -> None:
        if self._key.exists:
            if self._meter.answered:
                self._jobs.answered()
            UsageLedger(self._key).add(self._meter, utc_day(self._session.clock()))
