"""One step of consolidation: the same function does it by rule, or with a model.

    step(StepRun(session, now, owner.change, subject))                 by rule, at once, in maintenance
    step(StepRun(session, now, change, job.subject, job.body, chat))   with a model, as a job

A step reads, computes without any lock, and writes in one transaction that first checks whether what it read is
unchanged. This module knows nothing of what the steps are.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from ..owner import Change, Conflict, Owner, Session
from ..repository.usage_ledger import Meter


class StepRun(NamedTuple):
    """One run of a step."""

    session: Session
    now: float
    """seconds since 1970 UTC"""
    change: Change
    """the transaction in which the step writes, once at most"""
    subject: int = 0
    """the id of what the step is about, as its kind of job has one"""
    body: str = ""
    """more of that, as JSON"""
    chat: Meter | None = None
    """the model; None: the step is done by rule"""

    @property
    def owner(self) -> Owner:
        """The owner's rows, and what was read of them."""
        return self.session.owner


Step = Callable[[StepRun], int]
"""Does the step, and returns how many pages it handled; 0 if there was nothing to do. Raises `Conflict` if the data
that it read has changed meanwhile (retry), and ModelError if the model gave no usable answer."""


def by_rule(session: Session, step: Step, now: float, subject: int = 0) -> int:
    """Do *step* without a model, again while another process is faster. Other errors are those of `Step`."""
    while True:
        with suppress(Conflict):
            return step(StepRun(session, now, session.owner.change, subject))
