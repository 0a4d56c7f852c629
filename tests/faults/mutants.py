"""Mutants: the package with one promise taken out of its code, and the test that has to notice.

    split transaction     COMMIT between the entries and the pages of one append      caught by: syscalls
    sync left out         synchronous = OFF where "full" is asked for                 caught by: power

A harness that catches nothing proves nothing. Each mutant is a copy of the package with one text replaced; its killer,
a harness for a short while or one test, runs over the copy in a process of its own and has to fail. A text that is no
longer in the code is a violation too: a mutant that changes nothing would pass as caught by a killer that is broken.
This module knows nothing of what the harnesses do.
"""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from .mutations import MUTANTS, Mutant
from .tally import Order, Tally, Tell

ROOT = Path(__file__).parent.parent.parent
HARNESS_MINUTES = 1.0
"""how long a harness may look for a mutant"""


CAUGHT, SURVIVED, UNTRIED = "caught", "survived", "not tried: no time left"


class Outcome(NamedTuple):
    """What became of one mutant."""

    mutant: Mutant
    verdict: str
    """ "caught", "survived", or what went wrong"""
    seconds: float


class Mutants:
    """Runs each killer over its mutant."""

    name = "mutants"
    unit = "mutants"
    short = 6
    long = len(MUTANTS)

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []

    def run(self, order: Order, tell: Tell) -> Tally:
        """Return how many were caught, by what; each that survived is a violation, as is a killer that always fails."""
        tally = Tally(self.name, self.unit)
        until = time.monotonic() + order.seconds
        mutants = chosen(order.aim)
        tests = sorted({mutant.killer for mutant in mutants if mutant.killer.startswith("tests/")})
        if order.aim <= self.short:  # there the whole suite has just run: that is the control
            tests = []
        with ThreadPoolExecutor(order.workers) as pool:
            controls = pool.map(lambda killer: killed(Mutant("", "", "", "", killer), order.seed, until), tests)
            outcomes = pool.map(lambda mutant: killed(mutant, order.seed, until), mutants)
            for outcome in outcomes:
                self.outcomes.append(outcome)
                tally.runs += outcome.verdict != UNTRIED
                tell(tally.runs)
                tally.counts[f"{outcome.verdict[:40]} by {outcome.mutant.killer.split()[0]}"] += 1
                if outcome.verdict not in {CAUGHT, UNTRIED}:
                    tally.violations.append(f"mutant {outcome.mutant.name!r}: {outcome.verdict}")
            for control in controls:
                if control.verdict not in {SURVIVED, UNTRIED}:
                    tally.violations.append(f"{control.mutant.killer} fails without any mutant")
        return tally


def chosen(aim: int) -> Sequence[Mutant]:
    """Return *aim* mutants: those with one quick test first."""
    quick = [mutant for mutant in MUTANTS if mutant.quick]
    return [*quick, *(mutant for mutant in MUTANTS if not mutant.quick)][:aim]


def killed(mutant: Mutant, seed: int, until: float) -> Outcome:
    """Return what the killer of *mutant* says of it, in a process of its own."""
    begin = time.monotonic()
    left = until - begin
    if left < 1:
        return Outcome(mutant, UNTRIED, 0.0)
    with tempfile.TemporaryDirectory(prefix="mutant-") as made:
        folder = copied(Path(made))
        problem = applied(mutant, folder) if mutant.path else None
        if problem is not None:
            return Outcome(mutant, problem, time.monotonic() - begin)
        try:
            done = subprocess.run(
                list(command(mutant.killer, seed)),
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
                capture_output=True,
                text=True,
                timeout=left,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Outcome(mutant, UNTRIED, time.monotonic() - begin)
    verdict = {0: SURVIVED, 1: CAUGHT}.get(
        done.returncode, f"its killer broke: {done.stdout[-300:]}{done.stderr[-300:]}"
    )
    return Outcome(mutant, verdict, time.monotonic() - begin)


def copied(folder: Path) -> Path:
    """Copy the package into *folder*, beside the tests, and return the folder."""
    folder.chmod(0o755)  # some tests go on as another user, who imports the package, too
    shutil.copytree(ROOT / "memci", folder / "memci", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "tests").symlink_to(ROOT / "tests")
    (folder / "pyproject.toml").symlink_to(ROOT / "pyproject.toml")
    return folder


def applied(mutant: Mutant, folder: Path) -> str | None:
    """Change the copy in *folder*; return what is wrong if it can't be."""
    path = folder / mutant.path
    text = path.read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        return f"{mutant.old!r} is {text.count(mutant.old)} times in {mutant.path}: adapt the mutant"
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    return None


def command(killer: str, seed: int) -> Iterator[str]:
    """Yield the command that runs *killer*."""
    yield sys.executable
    if killer.startswith("tests/"):
        yield from ("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *shlex.split(killer))
    else:
        yield from ("-m", "tests.faults", "--only", killer, "--minutes", str(HARNESS_MINUTES))
        yield from ("--tier", "long", "--seed", str(seed))
