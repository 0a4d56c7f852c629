"""Many processes on one store, killed and stopped at random: nothing acknowledged is lost, nothing is there twice.

    writer 0   start 0-17 · acked 0-17 · start 0-18 · SIGKILL        ──▶ started again
    writer 1   start 1-40 · LeaseLost, refresh · acked 1-40 · …      stopped and continued

Each append has an `op_id` and a text of its own, and each writer a log of its own, which it only appends to. Contexts
are shared by several writers; some of them ask for the turn. At the end the history is checked. This module knows
nothing of how a store keeps its promises.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import memci
from memci import Context, SQLiteStorage
from memci.errors import CommitUnknown, LeaseLost, StorageBusy
from memci.storage.protocol import Storage
from memci.verifying import problems

from .tally import Order, Tally, Tell

WRITERS = 8
CONTEXTS = 3
ROUND_KILLS = 50
"""kills after which the store is examined and a new one begun"""

Make = Callable[[Path], Storage]


def sqlite(path: Path) -> Storage:
    """Open the store that the writers share."""
    return SQLiteStorage(path, busy_timeout_seconds=30)


def count(text: str) -> int:
    """Count tokens as quarters of characters."""
    return len(text) // 4


def opened(storage: Storage, name: str, wait: float = 0) -> Context:
    """Open one of the contexts that the writers share."""
    return Context.open(storage, id=name, window=900, reply=100, counter=count, nonce="1f9a03c2", wait=wait)


def write(folder: Path, writer: int, seed: int) -> None:
    """Append until killed. What was in flight when an earlier life of this writer ended is done first."""
    rng = random.Random(seed)
    log = os.open(folder / f"writer-{writer}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    started, acked = history(folder, writer)
    number = max((int(op.split("-")[1]) for op in started), default=0)
    pending = [op for op in started if op not in acked]
    storage = sqlite(folder / "shared.db")
    patient = writer % 4 == 3
    while True:
        if pending:
            op = pending.pop(0)
            name = started[op]
        else:
            number += 1
            op, name = f"{writer}-{number}", f"context {rng.randrange(CONTEXTS)}"
            os.write(log, f"start {op} {name}\n".encode())
        append(storage, name, op, wait=20 if patient else 0)
        os.write(log, f"acked {op}\n".encode())


def append(storage: Storage, name: str, op: str, wait: float) -> None:
    """Append the turn *op* to the context *name*, whatever other writers do meanwhile."""
    context = None
    while True:
        try:
            if context is None:
                context = opened(storage, name, wait)
            else:
                context.refresh()
            context.append_turn(f"{op} asks", {"role": "assistant", "content": f"{op} answers"}, op_id=op)
            context.close()
        except (LeaseLost, StorageBusy):
            continue
        except CommitUnknown:
            context = None
            continue
        return


def history(folder: Path, writer: int) -> tuple[dict[str, str], set[str]]:
    """Return what *writer* started, with its context, and what was acknowledged to it."""
    started: dict[str, str] = {}
    acked = set()
    path = folder / f"writer-{writer}.log"
    for line in path.read_text("utf-8").splitlines() if path.exists() else []:
        word, op, *rest = line.split(" ", 2)
        if word == "start":
            started[op] = rest[0]
        else:
            acked.add(op)
    return started, acked


def examined(folder: Path) -> tuple[Counter[str], list[str]]:
    """Return what the history counts, and which promises it broke."""
    counts: Counter[str] = Counter()
    found = []
    storage = sqlite(folder / "shared.db")
    said: dict[str, list[str]] = {}
    for record in storage.contexts():
        found += problems(storage, record.id)
        with opened(storage, record.id) as context:
            messages = [str(message["content"]) for message in context.messages()]
            context.render()
        said[record.id] = messages
        counts["entries"] += len(messages)
        asked = [text.removesuffix(" asks") for text in messages[::2]]
        answered = [text.removesuffix(" answers") for text in messages[1::2]]
        if asked != answered:
            found.append(f"{record.id}: an append is torn or interleaved")
        if len(set(asked)) < len(asked):
            found.append(f"{record.id}: an append is there twice")
        for writer in range(WRITERS):
            own = [int(op.split("-")[1]) for op in asked if op.startswith(f"{writer}-")]
            if own != sorted(own):
                found.append(f"{record.id}: the order of writer {writer} is lost")
    everything = {text for messages in said.values() for text in messages}
    expected = set()
    for writer in range(WRITERS):
        started, acked = history(folder, writer)
        expected |= {f"{op} asks" for op in started} | {f"{op} answers" for op in started}
        counts["appends acknowledged"] += len(acked)
        for op in sorted(acked):
            if f"{op} asks" not in said.get(started[op], []):
                found.append(f"{started[op]}: {op} was acknowledged, and is lost")
    if foreign := everything - expected:
        found.append(f"nobody said {sorted(foreign)[:3]}")
    storage.close()
    return counts, found


class Nemesis:
    """Kills and stops writers."""

    name = "nemesis"
    unit = "kills"
    short = 40
    long = 1_000

    def run(self, order: Order, tell: Tell) -> Tally:
        """Kill until *order* is done, and return what the histories show."""
        tally = Tally(self.name, self.unit)
        until = time.monotonic() + order.seconds
        number = 0
        while tally.runs < order.aim and (time.monotonic() < until or not tally.runs):
            number += 1
            with tempfile.TemporaryDirectory(dir=_ram()) as folder:
                kills = min(ROUND_KILLS, order.aim - tally.runs)
                self._round(Path(folder), random.Random(order.seed + number), kills, until, tally, tell)
                counts, found = examined(Path(folder))
            tally.counts.update(counts)
            tally.violations += [f"seed {order.seed}, round {number}: {each}" for each in found]
        return tally

    def _round(self, folder: Path, rng: random.Random, kills: int, until: float, tally: Tally, tell: Tell) -> None:
        writers = [_started(folder, writer, rng.randrange(2**32)) for writer in range(WRITERS)]
        stopped: dict[int, Any] = {}
        begun = tally.runs
        try:
            time.sleep(1.0)
            while tally.runs < begun + kills and (time.monotonic() < until or tally.runs == begun):
                time.sleep(rng.uniform(0.005, 0.12))
                writer = rng.randrange(WRITERS)
                if writers[writer].poll() is not None:
                    tally.violations.append(f"writer {writer} ended by itself with {writers[writer].returncode}")
                    return
                if writer in stopped:
                    writers[writer].send_signal(signal.SIGCONT)
                    del stopped[writer]
                elif len(stopped) < 2 and rng.random() < 0.2:
                    writers[writer].send_signal(signal.SIGSTOP)
                    stopped[writer] = True
                    tally.counts["stops"] += 1
                else:
                    writers[writer].kill()
                    writers[writer].wait()
                    writers[writer] = _started(folder, writer, rng.randrange(2**32))
                    tally.runs += 1
                    tell(tally.runs)
        finally:
            for process in writers:
                process.kill()
                process.wait()


def main(arguments: list[str]) -> None:
    """Be one writer."""
    folder, writer, seed = arguments
    write(Path(folder), int(writer), int(seed))


def _started(folder: Path, writer: int, seed: int) -> subprocess.Popen[bytes]:
    code = "import sys; from tests.faults.nemesis import main; main(sys.argv[1:])"
    roots = [str(Path(memci.__file__).parents[1]), str(Path(__file__).parents[2])]
    return subprocess.Popen(
        [sys.executable, "-c", code, str(folder), str(writer), str(seed)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(roots)},
    )


def _ram() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
