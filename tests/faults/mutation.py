"""A mutation run: small mistakes all over the core, each before the tests that reach its function.

    make mutation                                   120 mistakes, drawn by the seed of the commit; an hour at most
    python -m tests.faults.mutation --seed 7 --aim 30 --only memci/window

    120 tried: 109 caught, 3 of them by the limit of time, 11 survived
    survived   memci/window/window.py:131 > → >=: if self.tokens > self.limits.budget:    312 tests

First all tests run once without any mistake: which functions does each call, and how long does it take? Then each
mistake is made in a copy of the package, and the tests that call its function run there, the quickest first, until one
fails. What survives is a line of code that no test needs: it gets a test, or goes, or makes no difference. This module
knows nothing of how a mistake is made.
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console

from .mutants import CAUGHT, ROOT, SURVIVED, applied, copied
from .reach import ONLY, OUT
from .sites import Site, sites

CORE = (
    *("memci/window", "memci/chapters", "memci/segments", "memci/history", "memci/context", "memci/storage"),
    *("memci/tools/recall_page.py", "memci/tools/search_memory.py"),
    *("memci/memory/tiers/heat.py", "memci/memory/tiers/rules.py", "memci/memory/tiers/episodes.py"),
)
TESTS = (
    *("tests/chapters", "tests/segments", "tests/window", "tests/tools", "tests/storage", "tests/context"),
    *("tests/async_context", "tests/bad_input", "tests/trust", "tests/memory", "tests/golden", "tests/machine"),
    *("tests/peers", "tests/test_context_regressions.py", "tests/test_messages.py", "tests/test_settings.py"),
)
TEST_SECONDS = 15.0
"""what the tests of one mistake may take, as they took without it: the quickest are chosen"""
MEMORY_BYTES = 4 * 2**30
"""of a process: a mistake may be a loop that fills it"""
HUNG = "caught by the limit of time"
UNREACHED = "survived: no test reaches it"

Reach = Mapping[str, tuple[float, Sequence[str]]]
"""seconds and functions, by test"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; return 1 if something survived."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.mutation", description="Make small mistakes.")
    parser.add_argument("--seed", type=int, help="default: from the commit")
    parser.add_argument("--aim", type=int, default=120, help="how many")
    parser.add_argument("--minutes", type=float, default=60.0, help="for all")
    parser.add_argument("--only", nargs="+", default=CORE, help="these modules and folders")
    parser.add_argument("--reach", type=Path, help="keep which test reaches what in this file, or take it from there")
    asked = parser.parse_args(arguments)
    until = time.monotonic() + asked.minutes * 60
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    seed = asked.seed if asked.seed is not None else int(commit[:8] or "0", 16)
    say = partial(Console(highlight=False).print, markup=False, soft_wrap=True)
    say(f"commit {commit[:7]}, seed {seed}, {asked.aim} mistakes, at most {asked.minutes:g} minutes")
    reach = reached(TESTS, asked.reach)
    counts: Counter[str] = Counter()
    for site in drawn(asked.only, seed, asked.aim):
        if time.monotonic() > until:
            break
        begin = time.monotonic()
        tests = chosen(reach, site.function)
        verdict = tried(site, tests, reach)
        counts[verdict] += 1
        seconds = time.monotonic() - begin
        say(f"{verdict:<9}  {site.mutant.name}  {len(tests)} tests, {seconds:.0f} s")
    say(f"{sum(counts.values())} tried: {', '.join(f'{times} {verdict}' for verdict, times in counts.items())}")
    return int(any(verdict not in {CAUGHT, HUNG} for verdict in counts))


def drawn(paths: Sequence[str], seed: int, aim: int) -> Iterator[Site]:
    """Yield *aim* places in the modules at *paths*, in an order that *seed* says: more of them go on as fewer do."""
    modules = sorted({each for path in paths for each in ([ROOT / path] if path.endswith(".py") else _modules(path))})
    found = [site for module in modules for site in sites(ROOT, module.relative_to(ROOT).as_posix())]
    random.Random(seed).shuffle(found)
    yield from found[:aim]


def _modules(folder: str) -> Iterator[Path]:
    return (ROOT / folder).rglob("*.py")


def reached(tests: Sequence[str], kept: Path | None = None) -> Reach:
    """Return which functions each of *tests* calls, from a run without any mistake, or as it is *kept* in a file.

    Raises:
        SystemExit: If a test fails without any mistake.
    """
    if kept is None or not kept.exists():
        with tempfile.TemporaryDirectory(prefix="reach-") as folder:
            out = kept or Path(folder) / "reach.json"
            done = _pytest(ROOT, tests, {OUT: str(out)}, seconds=None)
            if done != 0:
                raise SystemExit("tests fail without any mistake: make test")
            return dict(json.loads(out.read_text("utf-8")))
    return dict(json.loads(kept.read_text("utf-8")))


def chosen(reach: Reach, function: str) -> list[str]:
    """Return the tests that call *function*, the quickest first; outside of functions, those that call its module's."""
    module = function if function.endswith(":") else None
    tests = [
        (seconds, test)
        for test, (seconds, functions) in reach.items()
        if (any(each.startswith(module) for each in functions) if module else function in functions)
    ]
    found, left = [], TEST_SECONDS
    for seconds, test in sorted(tests):
        left -= seconds
        if left < 0:
            break
        found.append(test)
    return found


def tried(site: Site, tests: Sequence[str], reach: Reach) -> str:
    """Return what becomes of the mistake at *site* when *tests* run over it."""
    if not tests:
        return UNREACHED
    with tempfile.TemporaryDirectory(prefix="mutation-") as made:
        folder = copied(Path(made))
        problem = applied(site.mutant, folder)
        if problem is not None:
            return problem
        only = folder / "only.json"
        only.write_text(json.dumps(tests), "utf-8")
        files = sorted({test.partition("::")[0] for test in tests})
        seconds = 60 + 10 * sum(reach[test][0] for test in tests)
        code = _pytest(folder, files, {ONLY: str(only)}, seconds)
    if code is None:
        return HUNG
    return SURVIVED if code == 0 else CAUGHT


def _pytest(folder: Path, tests: Sequence[str], variables: Mapping[str, str], seconds: float | None) -> int | None:
    """Return the exit code of pytest over *tests* in *folder*, None if it took longer than *seconds*."""
    options = ("-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "tests.faults.reach")
    paths = {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *tests],
            cwd=folder,
            env={**os.environ, **paths, **variables},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES)),
        )
    except subprocess.TimeoutExpired:
        return None
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
