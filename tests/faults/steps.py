"""Machine steps: the context machine (`tests/machine`) for as long as there is time, with fresh seeds.

    seed 7 ──▶ 12 lives of 30 steps in RAM, on SQLite, on files ──▶ seed 8 ──▶ …

What a batch met is counted too: compactions, undos, crashes, takeovers. This module knows nothing of what the machine
does.
"""

import importlib
import io
import itertools
import os
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import redirect_stdout, suppress
from pathlib import Path
from pkgutil import walk_packages
from time import monotonic
from typing import Any, ClassVar, NamedTuple

import memci

from .tally import Order, Tally, Tell

FOLDER = Path(__file__).parent.parent / "machine"
MACHINES = tuple(f"test_context_machine:{store}Machine" for store in ("Ephemeral", "SQLite", "Filesystem"))
_RAM = "/dev/shm"
"""a disk in RAM, where there is one: its syncs cost nothing"""
LIVES = 12
STEPS = 30
SHRINKING_SECONDS = 300
"""what a failing example may take to become small, at most; with less time left it is told as it was met"""
ENOUGH = 5
"""broken promises after which no new seed is begun"""


class Batch(NamedTuple):
    """One machine with one seed."""

    machine: str
    """where it is: module, class"""
    seed: int
    until: float
    """when the time is over"""
    lives: int = LIVES


class MachineSteps:
    """Drives the machine with one seed after another.

    Args:
        machines: Module and class of each; the module stands in tests/machine, or can be imported.
    """

    name = "machine"
    unit = "machine steps"
    short = 3_000
    long = 500_000

    def __init__(self, machines: Sequence[str] = MACHINES) -> None:
        self._machines = machines

    def run(self, order: Order, tell: Tell) -> Tally:
        """Take steps until *order* is done, and return how many, and which seeds failed."""
        tally = Tally(self.name, self.unit)
        until = monotonic() + order.seconds
        batches = self._batches(order.seed, until)
        with ProcessPoolExecutor(order.workers, initializer=_prepared) as pool:
            running = {pool.submit(lived, next(batches)) for _ in range(order.workers)}
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for each in done:
                    steps, met, violations = each.result()
                    tally.runs += steps
                    tally.counts.update(met)
                    tally.violations += violations
                    if tally.runs < order.aim and monotonic() < until and len(tally.violations) < ENOUGH:
                        running.add(pool.submit(lived, next(batches)))
                tell(tally.runs)
        return tally

    def _batches(self, seed: int, until: float) -> Iterator[Batch]:
        for number in itertools.count(seed):
            for machine in self._machines:
                yield Batch(machine, number, until)


def lived(batch: Batch) -> tuple[int, Counter[str], list[str]]:
    """Return how many steps a batch took, what it met, and what failed."""
    from hypothesis import HealthCheck, Phase, settings
    from hypothesis import seed as seeded
    from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

    module, _, name = batch.machine.partition(":")
    counted = _counting(getattr(importlib.import_module(module), name), batch.until)
    machine: type[RuleBasedStateMachine] = seeded(batch.seed)(counted)
    patient = batch.until - monotonic() > SHRINKING_SECONDS
    how = settings(
        max_examples=batch.lives,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        print_blob=True,
        phases=[Phase.generate, Phase.shrink] if patient else [Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    violations: list[str] = []
    told = io.StringIO()
    try:
        with redirect_stdout(told):
            run_state_machine_as_test(machine, settings=how)
    except BaseException as error:  # a failing example, whatever it raises
        if counted.over and not patient:  # hypothesis takes an example that ends by the clock for a flaky one
            return counted.steps, _met(name, counted), []
        failures = getattr(error, "exceptions", (error,))  # several ways to fail come as a group
        violations = [f"{name}, seed {batch.seed}: {_sentence(each, told.getvalue())}" for each in failures]
    return counted.steps, _met(name, counted), violations


def _sentence(error: BaseException, told: str) -> str:
    """Return what *error* is and where it came from, and then the steps that lead to it."""
    steps = "\n".join([*getattr(error, "__notes__", []), told])
    places = " ← ".join(
        f"{Path(at.filename).name}:{at.lineno}" for at in traceback.extract_tb(error.__traceback__)[:-7:-1]
    )
    return f"{error!r:.1000} at {places}\n{steps:.4000}"


def _met(name: str, counted: Any) -> Counter[str]:
    met = Counter({f"steps in {name}": counted.steps})
    met.update({f"met: {what}": times for what, times in counted.seen.items()})
    return met


def _prepared() -> None:
    if os.access(_RAM, os.W_OK):
        tempfile.tempdir = _RAM
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.path.insert(0, str(FOLDER))
    for each in walk_packages(memci.__path__, "memci."):  # hypothesis draws constants of the modules that are loaded:
        if not each.name.endswith("__main__"):  # a seed repeats a batch only where these are the same
            with suppress(ImportError):  # of a framework that is not installed
                importlib.import_module(each.name)


class _TimeOver(BaseException):
    """Ends a batch: hypothesis lets it pass, as it does KeyboardInterrupt."""


def _counting(kind: Any, until: float) -> Any:
    """Return *kind* with its steps counted, which ends when its time is over."""

    class Counting(kind):  # type: ignore[misc]  # whatever machine it is
        steps = 0
        over = False
        seen: ClassVar[Counter[str]] = Counter()

        def __init__(self) -> None:
            Counting.steps -= 1  # what holds is checked once before the first step
            super().__init__()

        def check_invariants(self, *args: Any, **kw: Any) -> None:
            Counting.steps += 1
            super().check_invariants(*args, **kw)
            if monotonic() > until:
                Counting.over = True
                raise _TimeOver

    Counting.__name__ = Counting.__qualname__ = kind.__name__
    return Counting
