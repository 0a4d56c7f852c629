"""Every system call that changes a store's files fails once, in every way: killed, torn, no room, an error.

    kill_before      ×  call 1, 2, 3, … of the scenario   ×  sqlite, truncate, files    ──▶  examined (`oracle`)
    kill_after, torn (half of a write is there)
    enospc           from this call on nothing grows; then there is room again, and the same handle must go on
    enospc_all       no write at all succeeds, after half of this one
    eio_…            this one write or sync fails; it must be told, and the store goes on when opened again
    nested           killed; killed again while it is opened again

Runs come in an order that spreads over all ways and all calls from the first one on, and each at most once; when all
are done, nested ones go on. This module knows nothing of power cuts.
"""

import itertools
import os
import random
import shutil
import signal
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

from .disk import Image, put, taken
from .flawed import FLAWED
from .model import Model, modelled
from .oracle import examine, examine_said
from .scenario import FAST, STEPS, STORES, Play, Store, opened
from .shim import COUNTED, FAULTS, Call, Fault, Shim
from .surviving import Program, read_acks
from .tally import Order, Tally, Tell
from .worker import Run, Share, forked, frozen, room, shared_out

_OPENINGS = 64
"""calls at most that are tried while a store is opened again"""


class Syscalls:
    """Fails system calls, each by its number."""

    name = "syscalls"
    unit = "failing system calls"
    short = 300
    long = 12_000

    def __init__(self, stores: Sequence[str] = tuple(STORES)) -> None:
        self._stores = stores

    def run(self, order: Order, tell: Tell) -> Tally:
        """Fail calls until *order* is done, and return what was seen."""
        return shared_out(__name__, self._stores, order, tell, Tally(self.name, self.unit))


class Case(NamedTuple):
    """One run: the *number*-th call that *mode* may happen to."""

    store: str
    mode: str
    number: int
    kill: str = ""
    """nested: how it is killed at first"""
    again: int = 0
    """nested: the call of the next opening that it is killed at"""

    def __str__(self) -> str:
        nested = f", then at call {self.again} of the next opening" if self.again else ""
        return f"{self.store}: {self.kill or self.mode} at call {self.number}{nested}"


def runs(share: Share) -> Iterator[Run]:
    """Yield the runs of a worker's *share*."""
    shim = Shim()
    known = STORES | FAST | FLAWED
    stores = {name: known[name] for name in share.stores}
    model = modelled(STORES["sqlite"].make)
    frozen()
    with room() as base:
        site = Site(shim, model, stores, Path(base).resolve())
        for case in itertools.islice(site.cases(share.seed), share.worker, None, share.workers):
            yield site.run(case)


class Session(NamedTuple):
    """The part of the scenario from one opening of a store to its closing."""

    steps: range
    image: Image
    """what is in the folder before"""
    pages: dict[str, int]
    """those that the program remembers"""


class Site:
    """Where runs are made: a process with the shim, and a folder."""

    def __init__(self, shim: Shim, model: Model, stores: dict[str, Store], base: Path) -> None:
        self._shim = shim
        self._model = model
        self._stores = stores
        self._folder = base / "store"
        self._said = base / "said"
        self._sessions = {name: list(self._played(store)) for name, store in stores.items()}
        self._totals = {name: [self._counted(name, each) for each in self._sessions[name]] for name in stores}

    def cases(self, seed: int) -> Iterator[Case]:
        """Yield all cases, in an order that *seed* draws; then nested ones without end."""
        draw = random.Random(seed)
        rows: list[Iterator[Case]] = []
        for name, totals in self._totals.items():
            calls = {mode: sum(each[mode] for each in totals) for mode in FAULTS}
            rows += [_once(name, mode, total, draw.randrange(total)) for mode, total in calls.items() if total]
            rows.append(_nested(name, calls, random.Random(draw.random())))
        while rows:
            draw.shuffle(rows)
            for row in list(rows):
                case = next(row, None)
                if case is None:
                    rows.remove(row)
                else:
                    yield case

    def run(self, case: Case) -> Run:
        """Make one run."""
        store, mode = self._stores[case.store], case.kill or case.mode
        session, number = self._placed(case.store, mode, case.number)
        ended = forked(lambda: self._perform(store, session, FAULTS[mode], number))
        acks = read_acks(self._said.read_text(), session.steps.start)
        counts = [case.store, case.mode, *(f"told: {error}" for error in acks.failed)]
        wrong = [*acks.broken]
        if ended == signal.SIGKILL:
            counts.append("killed")
            if case.again:
                again = [forked(lambda: self._open_again(store, case.again)) for _ in range(2)]
                counts.append("killed while opening" if signal.SIGKILL in again else "opened before it was killed")
            span = self._model.span(acks.done, started=acks.started)
            wrong += examine(store.make, self._folder, self._model, *span, acks.step)
        elif ended == 0 and acks.done == session.steps.stop:
            counts.append("survived")
            wrong += examine_said(store.make, self._folder, self._model.states[self._model.after[acks.done - 1]].said)
        else:
            wrong.append("it hung" if ended == signal.SIGALRM else f"it ended with {ended}")
        return Run(counts, [f"{case}, in {acks.where}: {'; '.join(wrong)}"] if wrong else [])

    def _placed(self, store: str, mode: str, number: int) -> tuple[Session, int]:
        """Return the session that call *number* of the scenario is in, and its number there."""
        sessions = iter(zip(self._sessions[store], self._totals[store], strict=True))
        session, totals = next(sessions)
        while number > totals[mode]:
            number -= totals[mode]
            session, totals = next(sessions)
        return session, number

    def _played(self, store: Store) -> Iterator[Session]:
        """Play the scenario with nothing wrong, and yield its sessions."""
        self._begin({})
        play, first = Play(store.make, self._folder), 0
        image, pages = taken(self._folder), dict(play.pages)
        for number, step in enumerate(STEPS, 1):
            step.act(play)
            if step.restarts:
                yield Session(range(first, number), image, pages)
                first, image, pages = number, taken(self._folder), dict(play.pages)

    def _counted(self, name: str, session: Session) -> dict[str, int]:
        """Return how many calls of *session* each mode may happen to."""

        def count() -> None:
            self._perform(self._stores[name], session, COUNTED, 0)
            counted = self._shim.counted()
            self._said.write_text(" ".join(str(counted[kind]) for kind in Call))

        if ended := forked(count):
            raise RuntimeError(f"the scenario on {name!r} ended with {ended}, with nothing wrong")
        counts = dict(zip(Call, map(int, self._said.read_text().split()), strict=True))
        return {mode: sum(counts[kind] for kind in Call if kind & fault.calls) for mode, fault in FAULTS.items()}

    def _begin(self, image: Image) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir()
        put(image, self._folder)

    def _perform(self, store: Store, session: Session, fault: Fault, number: int) -> None:
        self._begin(session.image)
        file = os.open(self._said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        self._shim.arm(str(self._folder), fault, number)
        play = Play(store.make, self._folder)
        play.pages.update(session.pages)
        program = Program(play, self._shim, fault, self._model, partial(_say, file), store.folders_told)
        program.run(session.steps)
        self._shim.disarm()

    def _open_again(self, store: Store, number: int) -> None:
        self._shim.arm(str(self._folder), FAULTS["kill_before"], number)
        with closing(store.make(self._folder)) as found:
            for record in found.contexts():
                opened(found, record.id).close()


def _once(store: str, mode: str, total: int, shift: int) -> Iterator[Case]:
    return (Case(store, mode, (number + shift) % total + 1) for number in spread(total))


def _nested(store: str, calls: dict[str, int], draw: random.Random) -> Iterator[Case]:
    kills = [mode for mode, fault in FAULTS.items() if fault.kills]
    while True:
        kill = draw.choice(kills)
        yield Case(store, "nested", draw.randint(1, calls[kill]), kill, round(_OPENINGS ** draw.random()))


def spread(total: int) -> Iterator[int]:
    """Yield 0 to *total* - 1, each once: the first few lie far apart, the next ones between them."""
    bits = max(total - 1, 0).bit_length()
    for number in range(1 << bits):
        place = int(f"{number:0{bits}b}"[::-1], 2) if bits else 0
        if place < total:
            yield place


def _say(file: int, line: str) -> None:
    os.write(file, f"{line}\n".encode())
