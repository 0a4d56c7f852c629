"""The runner: all harnesses in turn, within a box of time, and what they found.

    python -m tests.faults                       the short tier: two minutes at most
    python -m tests.faults --tier long           an hour; --times 8 makes it a night
    python -m tests.faults --only power --seed 7 one harness again, as it was

The seed comes from the commit, so that the same commit meets the same faults. What one harness leaves of its time goes
to those after it. A harness that breaks a promise, or can't be started, makes the exit code 1; the others still run. A
Ctrl-C ends the run, with the figures of those that are over.
This module knows nothing of what a harness does.
"""

import argparse
import importlib
import json
import os
import platform
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from .display import Display, table, told
from .tally import Harness, Order, Tally

ROOT = Path(__file__).parent.parent.parent
MINUTES = {"short": 2.0, "long": 60.0}
HOURS = "MEMCI_TORTURE_HOURS"
"""the variable that says how long the long tier takes"""


INTERRUPTED = 130
"""the exit code after a Ctrl-C, as shells have it"""


class Slot(NamedTuple):
    """Where a harness is, and how much of the time is for it."""

    module: str
    kind: str
    share: float


SLOTS = {
    "mutants": Slot("mutants", "Mutants", 0.22),
    "syscalls": Slot("syscalls", "Syscalls", 0.20),
    "power": Slot("power", "PowerCuts", 0.10),
    "double": Slot("power", "PowerCutsAfterFaults", 0.06),
    "bombs": Slot("bombs", "Bombs", 0.12),
    "consolidations": Slot("consolidating", "Consolidations", 0.10),
    "nemesis": Slot("nemesis", "Nemesis", 0.08),
    "forks": Slot("forks", "Forks", 0.06),
    "fuzz": Slot("fuzz", "Fuzz", 0.07),
    "door": Slot("door", "Door", 0.14),
    "natives": Slot("door", "Natives", 0.12),
    "machine": Slot("steps", "MachineSteps", 0.15),
}
"""in the order in which they run; shares of the box of time"""


class Outcome(NamedTuple):
    """What one harness showed."""

    tally: Tally
    aim: int
    seconds: float
    failure: str = ""
    """why it could not be started, or did not come to its end"""

    @property
    def idle(self) -> bool:
        """Whether it had time, and an aim, and made no run."""
        return not self.tally.runs and not self.failure

    @property
    def bad(self) -> bool:
        return bool(self.failure or self.idle or self.tally.violations)


class Run(NamedTuple):
    """What was asked for, and where: all that a figure depends on."""

    tier: str
    times: int
    minutes: float
    seed: int
    commit: str
    workers: int

    def __str__(self) -> str:
        return (
            f"{self.tier} tier × {self.times}, seed {self.seed}, commit {self.commit}, "
            f"at most {self.minutes:g} minutes; {machine()}"
        )


def main(
    arguments: Sequence[str] | None = None, slots: Mapping[str, Slot] = SLOTS, console: Console | None = None
) -> int:
    """Run what the command line asks for; return 1 if a promise was broken, or a harness could not run."""
    asked = _asked(arguments, slots)
    run, names = _run(asked), [name for name in slots if not asked.only or name in asked.only]
    console = console or Console(highlight=False, width=None if sys.stdout.isatty() else 160)
    console.print(str(run), markup=False, soft_wrap=True)
    outcomes: list[Outcome] = []
    until = time.monotonic() + run.minutes * 60
    interrupted = ""
    with Display(console) as display:
        for at, name in enumerate(names):
            left = sum(slots[each].share for each in names[at:])
            seconds = max(until - time.monotonic(), 1.0) * slots[name].share / left
            try:
                outcomes.append(_one(name, slots[name], run, seconds, display))
            except KeyboardInterrupt:
                interrupted = name
                break
            display.say(told(outcomes[-1]))
            if asked.json:
                # After each one: a night that is cut short leaves the figures of those that are over.
                Path(asked.json).write_text(json.dumps(figures(outcomes, run), indent=1) + "\n", "utf-8")
    code = _concluded(outcomes, run, console)
    if interrupted:
        console.print(f"interrupted: {interrupted} did not come to its end, and what follows did not begin")
        return INTERRUPTED
    return code


def _concluded(outcomes: Sequence[Outcome], run: Run, console: Console) -> int:
    console.print(table(outcomes, str(run)))
    broken = [violation for outcome in outcomes for violation in outcome.tally.violations]
    for violation in broken[:40]:
        first, _, more = violation.partition("\n")
        console.print(f"✗ {first:.1000}{' … (--json has all of it)' * bool(more)}", markup=False, soft_wrap=True)
    for outcome in outcomes:
        if outcome.failure or outcome.idle:
            why = outcome.failure or "it had no time for a single run"
            console.print(f"✗ {outcome.tally.name} did not run: {why}", markup=False, soft_wrap=True)
    console.print(f"{len(broken)} promises broken" if broken else "no promise broken")
    return 1 if any(outcome.bad for outcome in outcomes) else 0


def _one(name: str, slot: Slot, run: Run, seconds: float, display: Display) -> Outcome:
    begin, aim, tally = time.monotonic(), 0, Tally(name, "")
    try:
        harness: Harness = getattr(importlib.import_module(f"tests.faults.{slot.module}"), slot.kind)()
        aim = (harness.short if run.tier == "short" else harness.long) * run.times
        tally.unit = harness.unit
        with display.shown(name, harness.unit, aim, seconds) as tell:
            tally = harness.run(Order(run.seed, aim, seconds, run.workers), tell)
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        return Outcome(tally, aim, time.monotonic() - begin, f"{error!r:.500}")
    return Outcome(tally, aim, time.monotonic() - begin)


def figures(outcomes: Sequence[Outcome], run: Run) -> dict[str, Any]:
    """Return *outcomes* as JSON values, with all that is needed to see them again."""
    return {
        **run._asdict(),
        "machine": machine(),
        "harnesses": [
            {
                "name": tally.name,
                "unit": tally.unit,
                "runs": tally.runs,
                "aim": aim,
                "seconds": round(seconds, 1),
                "counts": dict(sorted(tally.counts.items())),
                "violations": tally.violations,
                "failure": failure,
            }
            for tally, aim, seconds, failure in outcomes
        ],
    }


def machine() -> str:
    """Return what the figures depend on."""
    import apsw

    cores = os.cpu_count() or 1
    return f"{cores} cores, Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}, {platform.system()}"


def _run(asked: argparse.Namespace) -> Run:
    minutes = asked.minutes
    if minutes is None:
        hours = os.environ.get(HOURS) if asked.tier == "long" else None
        minutes = float(hours) * 60 if hours else MINUTES[asked.tier]
    commit = _git("rev-parse", "HEAD")
    seed = asked.seed if asked.seed is not None else int(commit[:8] or "0", 16)
    changed = " and changes" if commit and _git("status", "--porcelain", "--", "memci", "tests") else ""
    return Run(asked.tier, asked.times, minutes * asked.times, seed, (commit[:7] or "unknown") + changed, asked.workers)


def _asked(arguments: Sequence[str] | None, slots: Mapping[str, Slot]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description="Make things go wrong, and count.")
    parser.add_argument("--tier", choices=MINUTES, default="short")
    parser.add_argument("--minutes", type=float, help=f"the box of time; default: 2, or 60 (or ${HOURS}) for long")
    parser.add_argument("--times", type=int, default=1, help="multiply aims and time")
    parser.add_argument("--seed", type=int, help="default: from the commit")
    parser.add_argument("--only", nargs="+", choices=slots, help="these harnesses only")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--json", help="write the figures to this file")
    return parser.parse_args(arguments)


def _git(*command: str) -> str:
    try:
        done = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:  # no git here
        return ""
    return done.stdout.strip()
