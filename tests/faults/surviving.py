"""A program that plays the scenario, says what it did, and goes on after a call that failed.

    start 7            the step begins                         done 7      it was acknowledged
    failed 7 StorageFull    it raised that                     broken …    it was not what it should have been

After an error the store is as it was before the step, or as it is after it. A full disk: then there is room again, and
the same handle must do it. Otherwise the store is opened again, and the step repeated if it was not done.
This module knows nothing of who reads that.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from memci.errors import CommitUnknown, HandlePoisoned, StorageError, StorageFull
from memci.history.erasures import ErasureReceipt

from .model import Model, told
from .scenario import MAIN, STEPS, Play, Step
from .shim import Action, Call, Fault, Shim

_LOST = (CommitUnknown, HandlePoisoned)


@dataclass
class Program:
    """A run of the scenario while *fault* happens."""

    play: Play
    shim: Shim
    fault: Fault
    model: Model
    say: Callable[[str], object]
    folders_told: bool

    def run(self, steps: Sequence[int] = range(len(STEPS))) -> None:
        """Play *steps*, by number."""
        silent: int | None = None
        for number in steps:
            step = STEPS[number]
            fired = self.shim.fired
            self.say(f"start {number}")
            raised = self._step(number, step)
            if raised or step.restarts:
                silent = None
            elif silent is not None and self.play.contexts:
                self.say(f"broken a sync failed in {STEPS[silent].name!r}, and nobody was told")
                silent = None
            elif self.shim.fired and not fired and self._must_tell and number:
                silent = number  # it may have been in a compaction, which the next call tells of
            self.say(f"done {number}")

    def resume(self, number: int, more: int) -> None:
        """Go on in another process: step *number* was begun by one that died, then some *more*."""
        self.play.pages.update(self.model.pages)
        self.play.answers = self.model.answers
        self._again(number, STEPS[number])
        self.say(f"done {number}")
        self.run(range(number + 1, min(number + 1 + more, len(STEPS))))

    @property
    def _must_tell(self) -> bool:
        calls = self.fault.calls
        return bool(calls & Call.SYNC) or (bool(calls & Call.SYNC_FOLDER) and self.folders_told)

    def _step(self, number: int, step: Step) -> bool:
        """Make one step, whatever it takes; tell whether it failed at first."""
        try:
            outcome = step.act(self.play)
        except StorageError as error:
            self.say(f"failed {number} {type(error).__name__}")
            if not error.data_safe:
                self.say(f"broken {type(error).__name__} says that data is not safe: {error}")
            self._mend(number, step, error)
            return True
        except Exception as error:  # any other is what no caller expects
            self.say(f"failed {number} {type(error).__name__}")
            self.say(f"broken a bare {type(error).__name__}: {error!s:.100}")
            self._again(number, step)
            return True
        return isinstance(outcome, ErasureReceipt) and not outcome.done  # the receipt tells what is left to do

    def _mend(self, number: int, step: Step, error: StorageError) -> None:
        if self.fault.action not in {Action.FAIL_FROM, Action.SHORT_THEN_FAIL}:
            self._again(number, step)
            return
        if not isinstance(error, (StorageFull, *_LOST)):
            self.say(f"broken a full disk is told as {type(error).__name__}: {error!s:.100}")
        if isinstance(error, _LOST) or step.restarts or not number:
            self.shim.disarm()
            self._again(number, step)
            return
        try:
            if told(self.play.store) != self._said(number - 1):
                self.say("broken the call failed and changed something")
        except StorageError as unread:
            # Where each write takes room, as on a disk that copies on write, there is none to roll back with; and a
            # store that was opened just now may need a file to read.
            spared = self.fault.calls & Call.WRITE or STEPS[number - 1].restarts
            if isinstance(error, StorageFull) and not spared:
                self.say(f"broken on a full disk nothing can be read: {type(unread).__name__}: {unread!s:.100}")
        self.shim.disarm()
        try:
            step.act(self.play)
        except _LOST:
            self._again(number, step)
        except Exception as again:
            self.say(f"broken there is room again, but {type(again).__name__}: {again!s:.100}")
            self._again(number, step)

    def _again(self, number: int, step: Step) -> None:
        """Open the store again, and repeat the step if it was not done, or has an op_id."""
        self.shim.disarm()
        try:
            self.play.close()
        except StorageError:
            self.play.forget()
        before, after, found = self._said(number - 1), self._said(number), told(self.play.store)
        if found not in (before, after):
            self.say("broken the store, opened again, has neither what was before nor what is afterwards")
        if step.op_id is not None or before in (after, found):
            step.act(self.play)
        elif step.messages:
            self.play.pages[step.name.removeprefix("append ")] = max(
                page.index for page in self.play.context(step.context or MAIN).pages()
            )

    def _said(self, number: int) -> dict[str, str]:
        return self.model.states[self.model.after[number] if number >= 0 else 0].said


class Acks(NamedTuple):
    """What a program said of itself."""

    done: int = 0
    """steps that were acknowledged"""
    started: bool = False
    """whether one more was begun"""
    failed: tuple[str, ...] = ()
    """errors, by name"""
    broken: tuple[str, ...] = ()
    """sentences"""

    def after(self, line: str) -> "Acks":
        """Return what is known after one more *line*."""
        word, _, rest = line.partition(" ")
        if word == "start":
            return self._replace(started=True)
        if word == "done":
            return self._replace(done=int(rest) + 1, started=False)
        if word == "failed":
            return self._replace(failed=(*self.failed, rest.partition(" ")[2]))
        if word != "broken":
            return self
        return self._replace(broken=(*self.broken, f"step {self.done}, {STEPS[self.done].name!r}: {rest}"))

    @property
    def where(self) -> str:
        """The step that was under way, by name."""
        return repr(STEPS[self.done].name) if self.done < len(STEPS) else "the end"

    @property
    def step(self) -> Step | None:
        """The step that was under way."""
        return STEPS[self.done] if self.started and self.done < len(STEPS) else None


def read_acks(text: str, done: int) -> Acks:
    """Return what the lines of *text* say of a program that begins after *done* steps."""
    acks = Acks(done)
    for line in text.splitlines():
        acks = acks.after(line)
    return acks
