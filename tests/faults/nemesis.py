"""Many processes on one store, killed and stopped at random: nothing acknowledged is lost, nothing is there twice.

    conductor ──▶ writer 0   start 0-17 · acked 0-17 · start 0-18 · SIGKILL      forked again, does 0-18 again
              ──▶ writer 1   start 1-40 · lost 1-40, refresh · acked 1-40        stopped, and continued later
              ──▶ …          each append has an op_id and a text of its own, each writer a log of its own

Some contexts are shared, by writers that refresh and by writers that open again; in one they take a lock; and each
writer has one to itself. When all are dead the history is examined (`histories`), and the next store has its round. The
conductor has done all of this itself before: a writer that is forked from it appends at once. It waits for appends
rather than for time, so that a busy machine sees as many of them between two kills as an idle one. This module knows
nothing of how a store keeps its promises.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import NamedTuple, NoReturn

import memci
from memci import Context, SQLiteStorage
from memci.errors import CommitUnknown, StorageBusy, StorageFull, WriteConflict
from memci.memory import NullMemory
from memci.storage.filesystem.store import FilesystemStorage
from memci.storage.protocol import Storage

from .histories import examined, history, said
from .scenario import count
from .tally import Order, Tally, Tell
from .worker import frozen, room

WRITERS = 8
PATIENT = 6
"""the first writer of those that take the lock; those before it share without asking"""
SHARED = ("shared a", "shared b", "shared c")
LOCKED = "locked"
ROUND_KILLS = 50
"""kills after which the store is examined and a new one begun"""
KILL_BYTES = 1_000
"""what the logs grow by between two kills, on average: an append and its acknowledgement are some 40"""
PATIENCE_SECONDS = 0.4
"""how long the conductor waits for that: who is stopped may hold up all the others"""
MANY = 50
"""appends that a store has refused, when nobody could append: it can't be that it had no time"""
WAIT_SECONDS = 30.0
THOUGHT_SECONDS = 0.004

Make = Callable[[Path], Storage]


def sqlite(folder: Path) -> Storage:
    """Open the store that the writers share."""
    return SQLiteStorage(folder / "shared.db", busy_timeout_seconds=WAIT_SECONDS)


def truncate(folder: Path) -> Storage:
    """Open one that has a rollback journal."""
    return SQLiteStorage(folder / "shared.db", journal="truncate", busy_timeout_seconds=WAIT_SECONDS)


def files(folder: Path) -> Storage:
    """Open one that is a folder."""
    return FilesystemStorage(folder / "shared", busy_timeout_seconds=WAIT_SECONDS)


STORES = ("tests.faults.nemesis:sqlite", "tests.faults.nemesis:truncate", "tests.faults.nemesis:files")


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
            for _ in range(self._random.randint(2, 9)):
                number += 1
                self.append(f"{self._life.writer}-{number}", name)
                self._look_around(name)
            self._leave(name)
            if os.getppid() != parent:
                os._exit(0)

    def append(self, op: str, name: str) -> None:
        """Append the turn of *op* to the context *name*, however often another one is first."""
        self._say(f"start {op} {name}")
        self._append(op, name)

    def _chosen(self) -> str:
        if self._random.random() < 0.35:
            return f"of writer {self._life.writer}"
        return LOCKED if self._life.writer >= PATIENT else self._random.choice(SHARED)

    def _append(self, op: str, name: str) -> None:
        while True:
            try:
                context = self._context(name)
                self._think()
                receipt = context.append_turn(*said(op), op_id=op)
            except WriteConflict:
                self._say(f"lost {op}")
                self._read_again(name)
            except (StorageBusy, StorageFull):
                self._say(f"refused {op}")
            except CommitUnknown:
                self._storage = self._make(self._life.folder)
                self._open.clear()
            else:
                self._say(f"{'known' if receipt.duplicate else 'acked'} {op} {self._run[name]}")
                return

    def _think(self) -> None:
        """Let others be first: a model takes its time between what it reads and what it says."""
        if self._random.random() < 0.25:
            time.sleep(self._random.random() * THOUGHT_SECONDS)

    def _look_around(self, name: str) -> None:
        what = self._random.random()
        while True:
            try:
                context = self._context(name)
                self._think()
                if what < 0.05:
                    context.recall_page(1)
                elif what < 0.1:
                    context.pin(1)
                elif what < 0.15:
                    context.unpin(1)
                elif what < 0.2:
                    context.archive(keep=2)
                if what < 0.3:
                    self._compare(context)
            except WriteConflict:
                self._say(f"lost {name}")
                self._read_again(name)
            except (StorageBusy, StorageFull):
                continue
            else:
                return

    def _compare(self, context: Context) -> None:
        shown = context.render()
        self._think()
        revision = self._storage.revision(context.id)
        with opened(self._storage, context.id, read_only=True) as fresh:
            stored = fresh.render()
        with contextlib.suppress(WriteConflict):
            if context.render() == shown != stored and self._storage.revision(context.id) == revision:
                self._say(f"stale {context.id}")

    def _context(self, name: str) -> Context:
        if name not in self._open:
            self._open[name] = opened(self._storage, name, wait=WAIT_SECONDS if name == LOCKED else 0)
            self._begin_run(name)
        return self._open[name]

    def _read_again(self, name: str) -> None:
        if self._life.writer % 2:
            self._open.pop(name).close()
            return
        with contextlib.suppress(
            StorageBusy, StorageFull
        ):  # others change it all the time: the next append loses, and comes here
            self._open[name].refresh()
        self._begin_run(name)

    def _begin_run(self, name: str) -> None:
        self._runs += 1
        self._run[name] = f"{self._life.number}.{self._runs}"

    def _leave(self, name: str) -> None:
        if name == LOCKED and name in self._open:
            self._open.pop(name).close()

    def _say(self, line: str) -> None:
        os.write(self._log, f"{line}\n".encode())


def opened(storage: Storage, name: str, wait: float = 0, *, read_only: bool = False) -> Context:
    """Open one of the contexts: so small that compactions come all the time."""
    while True:
        try:
            if read_only:
                return Context.view(storage, name, counter=count, memory=NullMemory())
            return Context.open(storage, name, memory=NullMemory(), window=1_500, reply=100, counter=count,
                nonce="1f9a03c2", clock=None, wait=wait)  # fmt: skip
        except WriteConflict:  # another one made it, or changes it all the time
            continue


class Conductor:
    """Starts writers, and ends them."""

    def __init__(self, seed: int, stores: Mapping[str, Make]) -> None:
        self._seed, self._stores = seed, stores
        self._lives = 0

    def rounds(self, kills: int, seconds: float) -> Iterator[tuple[int, Counter[str], list[str]]]:
        """Yield what happened since the last time: kills, counts, broken promises."""
        until = time.monotonic() + seconds
        size = min(ROUND_KILLS, -(-kills // len(self._stores)))
        for store in self._stores.values():
            _warmed(store)
        for number, (name, store) in enumerate(cycle(self._stores.items()), 1):
            with room() as made:
                folder, rng, pace = Path(made), random.Random(f"{self._seed} {number}"), _Pace(kills, size, until)
                for killed, counts in self._round(folder, store, rng, pace):
                    kills -= killed
                    yield killed, counts, []
                counts, found = examined(folder, store, opened, apart={LOCKED}, writers=WRITERS)
                acknowledged = counts.pop("appends acknowledged")
                counts[f"appends acknowledged, {name}"] = acknowledged
                if not acknowledged and counts["refused"] >= MANY:
                    found.append("nobody could append")
                yield 0, counts, [f"{name}, seed {self._seed}, round {number}: {each}" for each in found]
            if kills <= 0 or time.monotonic() > until:
                return

    def _round(self, folder: Path, make: Make, rng: random.Random, pace: "_Pace") -> Iterator[tuple[int, Counter[str]]]:
        stopped: set[int] = set()
        writers: dict[int, int] = {}
        try:
            for writer in range(WRITERS):
                writers[writer] = self._begun(folder, writer, make, rng)
            _begin(folder)
            while pace.on:
                pace.wait(folder, rng)
                writer, what = rng.randrange(WRITERS), rng.random()
                if stopped and what < 0.4:
                    os.kill(writers[stopped.pop()], signal.SIGCONT)
                elif writer not in stopped and len(stopped) < 2 and 0.3 < what < 0.55:
                    os.kill(writers[writer], signal.SIGSTOP)
                    stopped.add(writer)
                    yield 0, Counter({"stops": 1})
                else:
                    _end(writers.pop(writer))
                    stopped.discard(writer)
                    writers[writer] = self._begun(folder, writer, make, rng)
                    pace.done += 1
                    yield 1, Counter()
        finally:
            for process in writers.values():
                _end(process)

    def _begun(self, folder: Path, writer: int, make: Make, rng: random.Random) -> int:
        self._lives += 1
        life = Life(folder, writer, self._lives, rng.randrange(2**32))
        process = os.fork()
        if process:
            return process
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            Writer(life, make).live()
        except BaseException:  # whatever it is, the child must not go on as its parent
            (folder / f"error-{life.number}.txt").write_text(traceback.format_exc(), "utf-8")
        os._exit(1)


class _Pace:
    """When it is time for the next death.

    Args:
        left: Kills that are to fit into the time.
        kills: Those of one round.
        until: When the time is over.
    """

    def __init__(self, left: int, kills: int, until: float) -> None:
        self.kills = min(kills, left)
        self._left, self._until = left, until
        self.done = 0

    @property
    def on(self) -> bool:
        """Whether this round has another one."""
        return self.done < self.kills and (time.monotonic() < self._until or not self.done)

    def wait(self, folder: Path, rng: random.Random) -> None:
        """Return when the writers have appended, or can't; at any point of what they do next."""
        now = time.monotonic()
        share = (self._until - now) / max(self._left - self.done, 1)
        until = now + min(PATIENCE_SECONDS, max(share / 2, 0.01))  # there are stops between the kills
        wanted = _logged(folder) + rng.uniform(0, 2 * KILL_BYTES)
        while time.monotonic() < until and _logged(folder) < wanted:
            time.sleep(0.003)
        time.sleep(rng.uniform(0, 0.006))


def _logged(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("writer-*.log"))


def _begin(folder: Path) -> None:
    """Return when a writer has appended, or the store has refused all."""
    until = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < until:
        told = [history(folder, writer) for writer in range(WRITERS)]
        if any(each.acknowledged for each in told) or sum(each.refused for each in told) >= MANY:
            return
        time.sleep(0.003)


def _warmed(make: Make) -> None:
    """Do all that a writer does, so that those that are forked have it imported."""
    with room() as folder, contextlib.closing(make(Path(folder))) as storage:
        for wait in (0, 1):
            with opened(storage, LOCKED, wait=wait) as context:
                for number in range(5):
                    context.append_turn(*said(f"{wait}-{number}"), op_id=f"{wait}-{number}")
                context.archive(keep=2)
                context.recall_page(1)
                context.pin(1)
                context.unpin(1)
                context.refresh()
                context.render()
                opened(storage, LOCKED, read_only=True).close()
    frozen()


def _end(process: int) -> None:
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)


class Nemesis:
    """Kills and stops writers.

    Args:
        stores: For each store its module and the function that opens it in a folder.
    """

    name = "nemesis"
    unit = "kills"
    short = 40
    long = 1_000

    def __init__(self, stores: Sequence[str] = STORES) -> None:
        self._stores = tuple(stores)

    def run(self, order: Order, tell: Tell) -> Tally:
        """Kill until *order* is done, and return what the histories show."""
        tally = Tally(self.name, self.unit)
        # The memci under test may be a copy, with these tests linked beside it.
        roots = [str(Path(memci.__file__).parents[1]), str(Path(__file__).parents[2])]
        conductor = subprocess.Popen(
            [sys.executable, "-m", __name__, json.dumps([self._stores, order.seed, order.aim, order.seconds])],
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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the runner, which ends this with a SIGTERM
    stores, seed, kills, seconds = json.loads(job)
    makes = {}
    for store in stores:
        module, _, function = store.partition(":")
        makes[function] = getattr(importlib.import_module(module), function)
    for happened in Conductor(seed, makes).rounds(kills, seconds):
        print(json.dumps(happened), flush=True)  # noqa: T201 -- that is how it reports


if __name__ == "__main__":
    _main(*sys.argv[1:])
