"""The runner: all harnesses in turn, within a box of time, and what they found.

    python -m tests.faults                       the short tier: two minutes at most
    python -m tests.faults --tier long           an hour; --times 8 makes it a night
    python -m tests.faults --only power --seed 7 one harness again, as it was

The seed comes from the commit, so that the same commit runs the same faults. What one harness leaves of its time goes
to those after it. This module knows nothing of what a harness does.
"""

import argparse
import importlib
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from .tally import Harness, Order, Tally

ROOT = Path(__file__).parent.parent.parent
SECONDS = {"short": 120.0, "long": 3_600.0}


class Slot(NamedTuple):
    """Where a harness is, and how much of the time is for it."""

    module: str
    kind: str
    share: float


SLOTS = {
    "mutants": Slot("mutants", "Mutants", 0.26),
    "syscalls": Slot("syscalls", "Syscalls", 0.20),
    "power": Slot("power", "PowerCuts", 0.10),
    "double": Slot("power", "PowerCutsAfterFaults", 0.04),
    "bombs": Slot("bombs", "Bombs", 0.12),
    "nemesis": Slot("nemesis", "Nemesis", 0.08),
    "fuzz": Slot("fuzz", "Fuzz", 0.07),
    "machine": Slot("steps", "MachineSteps", 0.15),
}
"""in the order in which they run; shares of the box of time"""


class Outcome(NamedTuple):
    """What one harness showed."""

    tally: Tally
    aim: int
    seconds: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; return 1 if a promise was broken, or a harness could not run."""
    asked = _asked(arguments)
    console = Console(highlight=False)
    commit = _commit()
    seed = asked.seed if asked.seed is not None else int(commit[:8], 16)
    seconds = (asked.minutes * 60 if asked.minutes else SECONDS[asked.tier]) * asked.times
    names = asked.only or list(SLOTS)
    _say(
        console, f"tier {asked.tier}, seed {seed}, commit {commit[:7]}, at most {seconds / 60:.0f} minutes: {machine()}"
    )
    outcomes = []
    until = time.monotonic() + seconds
    with _progress(console) as progress:
        for at, name in enumerate(names):
            left = sum(SLOTS[each].share for each in names[at:])
            share = (until - time.monotonic()) * SLOTS[name].share / left
            outcomes.append(_one(name, asked, seed, share, progress))
            _say(console, line(outcomes[-1]))
    if asked.json:
        Path(asked.json).write_text(json.dumps(figures(outcomes, asked, seed, commit), indent=1) + "\n", "utf-8")
    console.print(table(outcomes))
    broken = [violation for outcome in outcomes for violation in outcome.tally.violations]
    for violation in broken[:40]:
        console.print(f"✗ {violation}", markup=False)
    idle = [outcome.tally.name for outcome in outcomes if not outcome.tally.runs]
    if idle:
        console.print(f"✗ no run at all: {', '.join(idle)}", markup=False)
    console.print(f"{len(broken)} promises broken" if broken else "no promise broken")
    return 1 if broken or idle else 0


def _one(name: str, asked: argparse.Namespace, seed: int, seconds: float, progress: Progress | None) -> Outcome:
    slot = SLOTS[name]
    harness: Harness = getattr(importlib.import_module(f"tests.faults.{slot.module}"), slot.kind)()
    aim = (harness.short if asked.tier == "short" else harness.long) * asked.times
    begin = time.monotonic()
    task = progress.add_task(name, total=aim) if progress is not None else None

    def tell(runs: int) -> None:
        if progress is not None and task is not None:
            progress.update(task, completed=runs)

    tally = harness.run(Order(seed, aim, seconds, asked.workers), tell)
    return Outcome(tally, aim, time.monotonic() - begin)


def line(outcome: Outcome) -> str:
    """Return what *outcome* is in one line."""
    tally = outcome.tally
    counts = ", ".join(f"{name} {number:,}" for name, number in sorted(tally.counts.items())[:12])
    return (
        f"{tally.name}: {tally.runs:,} of {outcome.aim:,} {tally.unit}, {len(tally.violations)} broken promises, "
        f"{outcome.seconds:.0f} s ({counts})"
    )


def table(outcomes: Sequence[Outcome]) -> Table:
    """Return *outcomes* as a table."""
    made = Table("harness", "runs", "aim", "what a run is", "broken", "seconds")
    for tally, aim, seconds in outcomes:
        made.add_row(
            tally.name, f"{tally.runs:,}", f"{aim:,}", tally.unit, str(len(tally.violations)), f"{seconds:.0f}"
        )
    return made


def figures(outcomes: Sequence[Outcome], asked: argparse.Namespace, seed: int, commit: str) -> dict[str, object]:
    """Return *outcomes* as JSON values, with all that is needed to see them again."""
    return {
        "tier": asked.tier,
        "times": asked.times,
        "seed": seed,
        "commit": commit,
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
            }
            for tally, aim, seconds in outcomes
        ],
    }


def machine() -> str:
    """Return what the figures depend on."""
    import apsw

    cores = os.cpu_count() or 1
    return f"{cores} cores, Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}, {platform.system()}"


def _asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description="Make things go wrong, and count.")
    parser.add_argument("--tier", choices=SECONDS, default="short")
    parser.add_argument("--minutes", type=float, help="the box of time; default: 2, or 60 for the long tier")
    parser.add_argument("--times", type=int, default=1, help="multiply aims and time")
    parser.add_argument("--seed", type=int, help="default: from the commit")
    parser.add_argument("--only", nargs="+", choices=SLOTS, help="these harnesses only")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--json", help="write the figures to this file")
    return parser.parse_args(arguments)


def _commit() -> str:
    found = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "0" * 40


def _progress(console: Console) -> AbstractContextManager[Progress | None]:
    if not console.is_terminal or console.is_dumb_terminal:
        return nullcontext()
    return Progress(
        TextColumn("{task.description:>9}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
    )


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, soft_wrap=True)
    sys.stdout.flush()
