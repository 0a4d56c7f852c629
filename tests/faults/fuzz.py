"""Fuzz: hostile values, texts, calls and files, each from a seed of its own, and what they broke.

    seed 7 ──▶ input 0: seed 7000000, codec      ──▶ exact, or refused
               input 1: seed 7000001, graphs     ──▶ refused, or what three providers accept
               input 2: seed 7000002, sqlite     ──▶ a file with one bit flipped: the same, or an error, or found

Which target an input goes to comes from its seed too: `Fuzz.again(7000002)` is that input again. Most inputs go where
they cost least. This module knows nothing of what is tried: messages, lines and frames (`fuzz_targets`), replies and
recalls (`fuzz_calls`), names (`fuzz_names`), graphs of calls (`fuzz_graphs`), imports (`fuzz_imports`), files
(`fuzz_files`).
"""

import faulthandler
import signal
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from random import Random
from time import monotonic
from typing import NamedTuple

from . import fuzz_calls, fuzz_files, fuzz_graphs, fuzz_imports, fuzz_names, fuzz_targets, fuzz_texts
from .tally import Order, Tally, Tell

HANGS_SECONDS = 20
"""of CPU: an input that waits for a full machine does not hang"""
DIES_SECONDS = 600
"""after which a worker that hears no signal, or waits, is ended"""
BATCH = 250
_SEEDS = 10**6
_DIED = "workers that died"
_MOST_DEATHS = 10
"""after which no other worker is started"""


class Hang(BaseException):
    """An input took too long; nothing that catches exceptions may catch it."""


class Fuzz:
    """Tries one hostile input after another."""

    name = "fuzz"
    unit = "fuzzed inputs"
    short = 10_000  # in some 5 seconds on two cores
    long = 1_000_000
    size = BATCH
    """inputs that a worker tries at a time"""

    def __init__(self, batch: "Callable[[range, float], Tried] | None" = None) -> None:
        self._batch = batch or tried_all

    def run(self, order: Order, tell: Tell) -> Tally:
        """Try inputs until *order* is done, and return what they broke."""
        tally = Tally(self.name, self.unit)
        until = monotonic() + order.seconds
        first = order.seed * _SEEDS
        waiting = iter(range(first, first + order.aim, self.size))
        while tally.counts[_DIED] < _MOST_DEATHS and (start := next(waiting, None)) is not None and monotonic() < until:
            # A worker that dies takes its pool with it: what the others were at is lost as well, the rest goes on.
            starts = chain([start], waiting)
            running: list[tuple[range, Future[Tried]]] = []
            with ProcessPoolExecutor(order.workers, mp_context=get_context("spawn")) as pool:
                try:
                    for at in starts:
                        seeds = range(at, min(at + self.size, first + order.aim))
                        running.append((seeds, pool.submit(self._batch, seeds, until)))
                        if len(running) >= order.workers * 2:
                            _take(running, tally, tell)
                        if monotonic() > until:
                            break
                    while running:
                        _take(running, tally, tell)
                except BrokenProcessPool:
                    lost = ", ".join(f"{seeds[0]} to {seeds[-1]}" for seeds, _ in running)
                    tally.violations.append(f"a worker died, or hung, at one of the inputs with the seeds {lost}")
                    tally.counts[_DIED] += 1
        return tally

    @staticmethod
    def again(seed: int) -> str | None:
        """Try the one input with *seed* again."""
        return tried(seed)[1]


def _take(running: "list[tuple[range, Future[Tried]]]", tally: Tally, tell: Tell) -> None:
    done = running[0][1].result()
    del running[0]
    tally.runs += done.runs
    tally.counts.update(done.counts)
    tally.violations += done.violations
    tell(tally.runs)


class Tried(NamedTuple):
    """What a batch of inputs showed."""

    runs: int
    counts: Counter[str]
    violations: list[str]


Target = Callable[[Random], str | None]

Targets = Mapping[str, tuple[Target, int]]

TARGETS: Targets = {
    "codec": (fuzz_targets.codec, 371),
    "lines": (fuzz_targets.lines, 200),
    "frames": (fuzz_targets.frames, 180),
    "replies": (fuzz_calls.replies, 160),
    "recalls": (fuzz_calls.recalls, 40),
    "names": (fuzz_names.names, 15),
    "graphs": (fuzz_graphs.graphs, 20),
    "imports": (fuzz_imports.imports, 6),
    "sqlite": (fuzz_files.sqlite, 5),
    "logs": (fuzz_files.logs, 2),
    "files": (fuzz_files.files, 1),
}
"""each target, and how many of a thousand inputs go to it"""


def tried(seed: int, targets: Targets = TARGETS) -> tuple[str, str | None]:
    """Return the target that the input with *seed* goes to, and what it broke there."""
    rng = Random(seed)
    [name] = rng.choices(list(targets), [weight for _, weight in targets.values()])
    signal.setitimer(signal.ITIMER_PROF, HANGS_SECONDS)
    try:
        broken = targets[name][0](rng)
    except Hang:
        broken = f"it took more than {HANGS_SECONDS} s of CPU"
    except Exception as error:
        broken = f"{type(error).__name__} {str(error)[:300]!r} at {_place(error)}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return name, f"{name}, seed {seed}: {broken}".encode("utf-8", "backslashreplace").decode() if broken else None


def _place(error: Exception) -> str:
    return " ← ".join(
        f"{Path(at.filename).name}:{at.lineno}" for at in traceback.extract_tb(error.__traceback__)[:-7:-1]
    )


def _hangs(*_: object) -> None:
    raise Hang


def tried_all(seeds: range, until: float, targets: Targets = TARGETS) -> Tried:
    """Try the inputs with *seeds*, as far as the time goes."""
    before = signal.signal(signal.SIGPROF, _hangs)
    faulthandler.dump_traceback_later(DIES_SECONDS, exit=True)  # what hangs in C hears no signal
    counts: Counter[str] = Counter()
    violations = []
    for seed in seeds:
        if monotonic() > until:
            break
        name, broken = tried(seed, targets)
        counts[name] += 1
        if broken is not None:
            violations.append(broken)
    faulthandler.cancel_dump_traceback_later()
    signal.signal(signal.SIGPROF, before)
    runs = counts.total()
    counts.update(fuzz_texts.outcomes)
    fuzz_texts.outcomes.clear()
    return Tried(runs, counts, violations)
