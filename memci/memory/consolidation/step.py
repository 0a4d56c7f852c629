"""Steps of consolidation: one function does a step, by rule or with a model.

    Step("analysis", learn, hot_episodes)      the kind of its jobs · the function · the subjects that are due

    run_by_rule(session, step, now)                                           at once, in maintenance
    step.perform(StepRun(session, now, change, job.subject, job.body, chat))  with a model, as a job

A step reads, computes without any lock, and writes in one transaction (`StepRun.write`). If the owner has changed since
the step began, the transaction first checks whether what the step read is unchanged.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from ..owner import Change, Conflict, Owner, Session
from ..repository.usage_ledger import Meter


@dataclass(slots=True)
class StepRun:
    """One run of a step."""

    session: Session
    now: float  # seconds since 1970 UTC
    change: Change  # opens the transaction in which the step writes, at most once
    subject: int = 0  # id of the row that the step is about, if its jobs have one
    body: str = ""  # further arguments, as JSON
    chat: Meter | None = None  # the model; None: do the step by rule
    revision: int = field(init=False)  # revision of the owner when the step began

    def __post_init__(self) -> None:
        self.revision = self.owner.revision

    @property
    def owner(self) -> Owner:
        """The owner's rows and their copy in RAM."""
        return self.session.owner

    @contextmanager
    def write(self, unchanged: Callable[[], bool]) -> Iterator[None]:
        """Write in one transaction; `Conflict` if the owner changed meanwhile, and what was read is not *unchanged*."""
        with self.change():
            if self.owner.revision != self.revision + 1 and not unchanged():
                raise Conflict
            yield


@dataclass(frozen=True, slots=True)
class Step:
    """A step: the kind of its jobs, the function that does it, and the subjects that are due."""

    kind: str
    perform: Callable[[StepRun], int]
    """Does the step, and returns the number of pages that it handled. Raises `Conflict` if the data that it read has
    changed meanwhile, so that it must be repeated, and ModelError if the model gave no usable answer."""
    due: Callable[[Session, float], Iterable[int]] = lambda _session, _now: ()
    """Returns the subjects for which jobs must be queued; other steps queue the jobs of a step without it."""


def run_by_rule(session: Session, perform: Callable[[StepRun], int], now: float, subject: int = 0) -> int:
    """Do a step without a model; repeat it after a `Conflict`. Other errors are those of `Step.perform`."""
    while True:
        with suppress(Conflict):
            return perform(StepRun(session, now, session.owner.change, subject))
