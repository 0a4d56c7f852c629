"""Many processes on one store, killed and stopped at random: nothing acknowledged is lost, nothing is there twice.

    conductor ──▶ writer 0   start 0-17 · acked 0-17 · start 0-18 · SIGKILL      forked again, does 0-18 again
              ──▶ writer 1   start 1-40 · lost 1-40, refresh · acked 1-40        stopped, and continued later
              ──▶ …          each append has an op_id and a text of its own, each writer a log of its own

Some contexts are shared, by writers that refresh and by writers that open again; in one they take turns; and each
writer has one to itself. When all are dead the history is examined (`histories`). The conductor is a process that has
imported everything: a writer that is forked from it appends at once. This module knows nothing of how a store keeps its
promises.
"""

import contextlib
import importlib
import json
import os
import random
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn

import memci
from memci import Context, SQLiteStorage
from memci.errors import CommitUnknown, LeaseLost, StorageBusy
from memci.storage.protocol import Storage

from .histories import examined, history, said
from .scenario import count
from .tally import Order, Tally, Tell
from .worker import room

WRITERS = 8
PATIENT = 6
"""the first writer of those that take turns; those before it share without asking"""
SHARED = ("shared a", "shared b")
TURNS = "in turns"
ROUND_KILLS = 50
"""kills after which the store is examined and a new one begun"""
WAIT_SECONDS = 30.0
THOUGHT_SECONDS = 0.004

Make = Callable[[Path], Storage]


def sqlite(folder: Path) -> Storage:
    """Open the store that the writers share."""
    return SQLiteStorage(folder / "shared.db", busy_timeout_seconds=WAIT_SECONDS)


class Life(NamedTuple):
    """One life of a writer, from its start to its death."""

    folder: Path
    writer: int
    number: int
    """lives of all writers are numbered through"""
    seed: int


class Writer:
    """Appends until it is killed; what an earlier life of it left in flight is done first."""

    def __init__(self, life: Life, make: Make) -> None:
        self._life, self._make = life, make
        self._random = random.Random(life.seed)
        self._log = os.open(life.folder / f"writer-{life.writer}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._storage = make(life.folder)
        self._open: dict[str, Context] = {}
        self._runs = 0
        self._run: dict[str, str] = {}
        """the run of appends that each handle is in: it ends where another writer was first"""

    def live(self) -> NoReturn:
        """Append, in bursts to one context after the other."""
        past = history(self._life.folder, self._life.writer)
        for op in past.pending:
            self._say(f"again {op}")
            self._append(op, past.started[op])
            self._leave(past.started[op])
        parent, number = os.getppid(), len(past.started)
        while True:
            name = self._chosen()
            for _ in range(self._random.randint(1, 5)):
                number += 1
                op = f"{self._life.writer}-{number}"
                self._say(f"start {op} {name}")
                self._append(op, name)
                self._look_around(name)
            self._leave(name)
            if os.getppid() != parent:
                os._exit(0)

    def _chosen(self) -> str:
        if self._random.random() < 0.2:
            return f"of writer {self._life.writer}"
        return TURNS if self._life.writer >= PATIENT else self._random.choice(SHARED)

    def _append(self, op: str, name: str) -> None:
        while True:
            try:
                context = self._context(name)
                self._think()
                receipt = context.append_turn(*said(op), op_id=op)
            except LeaseLost:
                self._say(f"lost {op}")
                self._read_again(name)
            except StorageBusy:
                continue
            except CommitUnknown:
                self._storage = self._make(self._life.folder)
                self._open.clear()
            else:
                self._say(f"{'known' if receipt.duplicate else 'acked'} {op} {self._run[name]}")
                return

    def _think(self) -> None:
        """Let others be first: a model takes its time between what it reads and what it says."""
        if self._random.random() < 0.5:
            time.sleep(self._random.random() * THOUGHT_SECONDS)

    def _look_around(self, name: str) -> None:
        what = self._random.random()
        while True:
            try:
                context = self._context(name)
                self._think()
                if what < 0.1:
                    context.recall_page(1)
                elif what < 0.2:
                    context.pin(1)
                elif what < 0.3:
                    context.unpin(1)
                elif what < 0.4:
                    context.archive()
                if what < 0.6:
                    self._compare(context)
            except LeaseLost:
                self._say(f"lost {name}")
                self._read_again(name)
            except StorageBusy:
                continue
            else:
                return

    def _compare(self, context: Context) -> None:
        shown = context.render()
        self._think()
        revision = self._storage.revision(context.id)
        with opened(self._storage, context.id, read_only=True) as fresh:
            stored = fresh.render()
        with contextlib.suppress(LeaseLost):
            if context.render() == shown != stored and self._storage.revision(context.id) == revision:
                self._say(f"stale {context.id}")

    def _context(self, name: str) -> Context:
        if name not in self._open:
            self._open[name] = opened(self._storage, name, wait=WAIT_SECONDS if name == TURNS else 0)
            self._begin_run(name)
        return self._open[name]

    def _read_again(self, name: str) -> None:
        if self._life.writer % 2:
            self._open.pop(name).close()
            return
        with contextlib.suppress(StorageBusy):  # others change it all the time: the next append loses, and comes here
            self._open[name].refresh()
        self._begin_run(name)

    def _begin_run(self, name: str) -> None:
        self._runs += 1
        self._run[name] = f"{self._life.number}.{self._runs}"

    def _leave(self, name: str) -> None:
        if name == TURNS and name in self._open:
            self._open.pop(name).close()

    def _say(self, line: str) -> None:
        os.write(self._log, f"{line}\n".encode())


def opened(storage: Storage, name: str, wait: float = 0, *, read_only: bool = False) -> Context:
    """Open one of the contexts: so small that editions come all the time."""
    while True:
        try:
            return Context.open(storage, id=name, window=900, reply=100, counter=count, nonce="1f9a03c2", wait=wait,
                                read_only=read_only)  # fmt: skip
        except (LeaseLost, StorageBusy):  # another one made it, or changes it all the time
            continue


class Conductor:
    """Starts writers, and ends them."""

    def __init__(self, seed: int, make: Make) -> None:
        self._seed, self._make = seed, make
        self._lives = 0

    def rounds(self, kills: int, seconds: float) -> Iterator[tuple[int, Counter[str], list[str]]]:
        """Yield what happened since the last time: kills, counts, broken promises."""
        until = time.monotonic() + seconds
        number = 0
        while kills > 0 and (time.monotonic() < until or not number):
            number += 1
            with room() as folder:
                for killed, counts in self._round(Path(folder), number, min(kills, ROUND_KILLS), until):
                    kills -= killed
                    yield killed, counts, []
                counts, found = examined(Path(folder), self._make, opened, apart={TURNS}, writers=WRITERS)
                yield 0, counts, [f"seed {self._seed}, round {number}: {each}" for each in found]

    def _round(self, folder: Path, number: int, kills: int, until: float) -> Iterator[tuple[int, Counter[str]]]:
        rng = random.Random(f"{self._seed} {number}")
        stopped: set[int] = set()
        writers: dict[int, int] = {}
        try:
            for writer in range(WRITERS):
                writers[writer] = self._begun(folder, writer, rng)
            time.sleep(0.5)
            done = 0
            while done < kills and (time.monotonic() < until or not done):
                time.sleep(rng.uniform(0.005, 0.12))
                writer, what = rng.randrange(WRITERS), rng.random()
                if writer in stopped and what < 0.7:
                    os.kill(writers[writer], signal.SIGCONT)
                    stopped.discard(writer)
                elif writer not in stopped and len(stopped) < 2 and what < 0.25:
                    os.kill(writers[writer], signal.SIGSTOP)
                    stopped.add(writer)
                    yield 0, Counter({"stops": 1})
                else:
                    _end(writers.pop(writer))
                    stopped.discard(writer)
                    writers[writer] = self._begun(folder, writer, rng)
                    done += 1
                    yield 1, Counter({"restarts": 1})
        finally:
            for process in writers.values():
                _end(process)

    def _begun(self, folder: Path, writer: int, rng: random.Random) -> int:
        self._lives += 1
        life = Life(folder, writer, self._lives, rng.randrange(2**32))
        process = os.fork()
        if process:
            return process
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            Writer(life, self._make).live()
        except BaseException:  # whatever it is, the child must not go on as its parent
            (folder / f"error-{life.number}.txt").write_text(traceback.format_exc(), "utf-8")
        os._exit(1)


def _end(process: int) -> None:
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)


class Nemesis:
    """Kills and stops writers.

    Args:
        store: The module and the function that opens the store in a folder.
    """

    name = "nemesis"
    unit = "kills"
    short = 40
    long = 1_000

    def __init__(self, store: str = "tests.faults.nemesis:sqlite") -> None:
        self._store = store

    def run(self, order: Order, tell: Tell) -> Tally:
        """Kill until *order* is done, and return what the histories show."""
        tally = Tally(self.name, self.unit)
        # The memci under test may be a copy, with these tests linked beside it.
        roots = [str(Path(memci.__file__).parents[1]), str(Path(__file__).parents[2])]
        conductor = subprocess.Popen(
            [sys.executable, "-m", __name__, json.dumps([self._store, order.seed, order.aim, order.seconds])],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([*roots, os.environ.get("PYTHONPATH", "")])},
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert conductor.stdout is not None, "it was opened with a pipe"
            for line in conductor.stdout:
                kills, counts, violations = json.loads(line)
                tally.runs += kills
                tally.counts.update(counts)
                tally.violations += violations
                tell(tally.runs)
            if conductor.wait():
                raise RuntimeError(f"the conductor ended with {conductor.returncode}: its output says why")
        finally:
            conductor.terminate()
            conductor.communicate()
        return tally


def _main(job: str) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that it ends its writers
    store, seed, kills, seconds = json.loads(job)
    module, _, function = store.partition(":")
    make = getattr(importlib.import_module(module), function)
    for happened in Conductor(seed, make).rounds(kills, seconds):
        print(json.dumps(happened), flush=True)  # noqa: T201 -- that is how it reports


if __name__ == "__main__":
    _main(*sys.argv[1:])
