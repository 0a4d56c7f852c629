"""The processes that a harness runs in: each with the shim in it, warm, and with its share of the runs.

    harness ──▶ worker 0   runs 0, 2, 4, …   ──▶ what they showed, a line of JSON each now and then  ──▶ Tally
            ──▶ worker 1   runs 1, 3, 5, …

A worker imports everything once; what is to fail does so in a child that it forks. This module knows nothing of the
faults themselves: a harness names the module whose `runs` makes them.
"""

import gc
import importlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple

import memci

from .shim import library, preloaded
from .tally import Order, Tally, Tell

_RAM = "/dev/shm"
"""a disk in RAM, where there is one: its syncs cost nothing"""
_REPORT_SECONDS = 0.2
_HANGS_SECONDS = 30


class Run(NamedTuple):
    """What one run showed."""

    counts: Sequence[str]
    """what happened"""
    violations: Sequence[str] = ()
    runs: int = 1


class Share(NamedTuple):
    """Which runs a worker makes."""

    seed: int
    worker: int
    workers: int
    stores: Sequence[str]


def room() -> tempfile.TemporaryDirectory[str]:
    """Return a temporary folder, in RAM where that can be had."""
    return tempfile.TemporaryDirectory(prefix="faults-", dir=_RAM if os.access(_RAM, os.W_OK) else None)


def shared_out(module: str, stores: Sequence[str], order: Order, tell: Tell, tally: Tally) -> Tally:
    """Let workers make the runs of *module* on *stores*, and return *tally* with what they showed.

    Raises:
        RuntimeError: If there is no way to make calls fail here, or a worker ends with an error.
    """
    with tempfile.TemporaryDirectory() as folder:
        environment = preloaded(library(folder))
        # The memci under test may be a copy, with these tests linked beside it.
        roots = [str(Path(memci.__file__).parents[1]), str(Path(__file__).parents[2])]
        environment["PYTHONPATH"] = os.pathsep.join([*roots, os.environ.get("PYTHONPATH", "")])
        workers: list[subprocess.Popen[str]] = []
        try:
            for worker in range(order.workers):
                aim = order.aim // order.workers + (worker < order.aim % order.workers)
                share = Share(order.seed, worker, order.workers, stores)
                command = [sys.executable, "-m", __name__, module, json.dumps([aim, order.seconds, share])]
                workers.append(
                    subprocess.Popen(command, env=environment, cwd=folder, stdout=subprocess.PIPE, text=True)
                )
            _collect(workers, tell, tally)
        finally:
            for process in workers:
                process.kill()
                process.communicate()
    return tally


def frozen() -> None:
    """Keep what is there out of garbage collection: a child that is forked copies no page of it then."""
    gc.collect()
    gc.freeze()


def end_if_hung() -> None:
    """Let this process end if it uses 30 s of CPU, or stands still for ten minutes: on a busy machine it only waits."""
    signal.setitimer(signal.ITIMER_PROF, _HANGS_SECONDS)
    signal.setitimer(signal.ITIMER_REAL, 20 * _HANGS_SECONDS)


def forked(act: Callable[[], None]) -> int:
    """Call *act* in a child, and return the number of the signal that ended it; 0 if none did, -1 for an error."""
    child = os.fork()
    if not child:
        gc.disable()
        end_if_hung()
        try:
            act()
        except BaseException:  # whatever it is, the child must not go on as its parent
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else -os.WEXITSTATUS(status)


def _collect(workers: Sequence[subprocess.Popen[str]], tell: Tell, tally: Tally) -> None:
    with selectors.DefaultSelector() as waiting:
        for process in workers:
            waiting.register(_output(process), selectors.EVENT_READ, process)
        while waiting.get_map():
            for key, _ in waiting.select():
                line = _output(key.data).readline()
                if line:
                    runs, counts, violations = json.loads(line)
                    tally.runs += runs
                    tally.counts.update(counts)
                    tally.violations += violations
                    tell(tally.runs)
                    continue
                waiting.unregister(key.fileobj)
                if key.data.wait():
                    raise RuntimeError(f"a worker ended with {key.data.returncode}: its output says why")


def _output(process: subprocess.Popen[str]) -> IO[str]:
    assert process.stdout is not None, "it was opened with a pipe"
    return process.stdout


def _main(module: str, job: str) -> None:
    begun = time.monotonic()
    aim, seconds, share = json.loads(job)
    runs: Iterator[Run] = importlib.import_module(module).runs(Share(*share))
    done, fresh, reported = 0, 0, begun
    counts: Counter[str] = Counter()
    violations: list[str] = []
    while done < aim and time.monotonic() - begun < seconds:
        run = next(runs)
        done, fresh = done + run.runs, fresh + run.runs
        counts.update(run.counts)
        violations += run.violations
        if time.monotonic() - reported > _REPORT_SECONDS:
            print(json.dumps([fresh, counts, violations]), flush=True)  # noqa: T201 -- that is how it reports
            fresh, counts, violations, reported = 0, Counter(), [], time.monotonic()
    print(json.dumps([fresh, counts, violations]), flush=True)  # noqa: T201
    runs.close()  # type: ignore[attr-defined]  # a generator, which removes its folder


if __name__ == "__main__":
    _main(*sys.argv[1:])
