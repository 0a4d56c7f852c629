"""One step of consolidation: the same function does it by rule, or with a model.

    step(StepRun(session, now, owner.change), subject)                 by rule, at once, in maintenance
    step(StepRun(session, now, change, chat), job.subject, job.body)   with a model, as a job

A step reads, computes without any lock, and writes in one transaction that first checks whether what it read is
unchanged. This module knows nothing of what the steps are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ..backend import PageRecord
from ..owner import Change, Owner, Session, Tiers
from ..repository.usage_ledger import Meter
from ..tiers.rules import Rules


@dataclass(frozen=True, slots=True)
class StepRun:
    """One run of a step."""

    session: Session
    now: float
    """seconds since 1970 UTC"""
    change: Change
    """the transaction in which the step writes, once at most"""
    chat: Meter | None = None
    """the model; None: the step is done by rule"""

    @property
    def owner(self) -> Owner:
        """The owner's rows, and what was read of them."""
        return self.session.owner

    @property
    def rules(self) -> Rules:
        """Sizes and thresholds."""
        return self.session.rules

    def tiers(self) -> Tiers:
        """Return what is known now."""
        return self.session.tiers()

    def raw(self, ids: Sequence[int]) -> list[tuple[int, PageRecord]]:
        """Return pages (their ids) with their messages. O(messages)."""
        return self.session.raw(ids)


class Step(Protocol):
    """A step of consolidation."""

    def __call__(self, run: StepRun, subject: int, body: str, /) -> int:
        """Do the step, and return how many pages it handled; 0 if there was nothing to do.

        Args:
            run: What it works with.
            subject: The id of what it is about, as its kind of job has one.
            body: More of that, as JSON.

        Raises:
            Conflict: If the data that it read has changed meanwhile: retry.
            ModelError: If the model gave no usable answer.
        """
        ...


def by_rule(session: Session, step: Step, now: float, subject: int = 0) -> int:
    """Do *step* without a model. Arguments and errors are those of `Step`."""
    return step(StepRun(session, now, session.owner.change), subject, "")
