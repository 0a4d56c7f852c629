"""Fuzz: hostile values, texts, calls and files, each from a seed of its own, and what they broke.

    seed 7 ──▶ input 0: seed 7000000, codec      ──▶ exact, or refused
               input 1: seed 7000001, graphs     ──▶ refused, or what three providers accept
               input 2: seed 7000002, sqlite     ──▶ a file with one bit flipped: the same, or an error, or found

Which target an input goes to comes from its seed too: `Fuzz.again(7000002)` is that input again. This
module knows nothing of what is tried: texts and calls (`fuzz_targets`), graphs (`fuzz_graphs`), files (`fuzz_files`).
"""

import signal
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from itertools import chain, islice
from multiprocessing import get_context
from pathlib import Path
from random import Random
from time import monotonic

from . import fuzz_files, fuzz_graphs, fuzz_targets
from .tally import Order, Tally, Tell

HANGS_SECONDS = 20
BATCH = 250
"""inputs that a worker tries at a time"""
_SEEDS = 10**6


class Hang(BaseException):
    """An input took too long; nothing that catches exceptions may catch it."""


class Fuzz:
    """Tries one hostile input after another."""

    name = "fuzz"
    unit = "fuzzed inputs"
    short = 20_000
    long = 1_000_000

    def run(self, order: Order, tell: Tell) -> Tally:
        """Try inputs until *order* is done, and return what they broke."""
        tally = Tally(self.name, self.unit)
        until = monotonic() + order.seconds
        first = order.seed * _SEEDS
        starts = iter(range(first, first + order.aim, BATCH))
        with ProcessPoolExecutor(order.workers, mp_context=get_context("spawn")) as pool:
            running = [
                pool.submit(_batch, at, min(at + BATCH, first + order.aim), until)
                for at in islice(starts, order.workers * 2)
            ]
            while running:
                runs, counts, violations = running.pop(0).result()
                tally.runs += runs
                tally.counts.update(counts)
                tally.violations += violations
                tell(tally.runs)
                if monotonic() < until and (at := next(starts, None)) is not None:
                    running.append(pool.submit(_batch, at, min(at + BATCH, first + order.aim), until))
        return tally

    @staticmethod
    def again(seed: int) -> str | None:
        """Try the one input with *seed* again."""
        return tried(seed)[1]


Target = Callable[[Random], str | None]

TARGETS: Mapping[str, tuple[Target, int]] = {
    "codec": (fuzz_targets.codec, 300),
    "lines": (fuzz_targets.lines, 250),
    "frames": (fuzz_targets.frames, 200),
    "replies": (fuzz_targets.replies, 156),
    "recalls": (fuzz_targets.recalls, 50),
    "graphs": (fuzz_graphs.graphs, 30),
    "sqlite": (fuzz_files.sqlite, 10),
    "files": (fuzz_files.files, 4),
}
"""each target, and how many of a thousand inputs go to it"""

_NAMES = list(chain.from_iterable([name] * weight for name, (_, weight) in TARGETS.items()))


def tried(seed: int) -> tuple[str, str | None]:
    """Return the target that the input with *seed* goes to, and what it broke there."""
    rng = Random(seed)
    name = rng.choice(_NAMES)
    signal.setitimer(signal.ITIMER_REAL, HANGS_SECONDS)
    try:
        broken = TARGETS[name][0](rng)
    except Hang:
        broken = f"it took more than {HANGS_SECONDS} s"
    except Exception as error:
        broken = f"{type(error).__name__} {str(error)[:300]!r} at {_place(error)}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return name, f"{name}, seed {seed}: {broken}".encode("utf-8", "backslashreplace").decode() if broken else None


def _place(error: Exception) -> str:
    return " ← ".join(
        f"{Path(at.filename).name}:{at.lineno}" for at in traceback.extract_tb(error.__traceback__)[:-7:-1]
    )


def _hangs(*_: object) -> None:
    raise Hang


def _batch(first: int, end: int, until: float) -> tuple[int, Counter[str], list[str]]:
    """Try the inputs with the seeds from *first* to *end*, as far as the time goes."""
    signal.signal(signal.SIGALRM, _hangs)
    counts: Counter[str] = Counter()
    violations = []
    for seed in range(first, end):
        if monotonic() > until:
            break
        name, broken = tried(seed)
        counts[name] += 1
        if broken is not None:
            violations.append(broken)
    runs = counts.total()
    counts.update(fuzz_files.outcomes)
    fuzz_files.outcomes.clear()
    return runs, counts, violations
