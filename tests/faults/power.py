"""The power is cut at any moment, and takes whatever was not synced.

    the scenario, once   ──▶  a log of its calls, with what it acknowledged between them
    a cut                ──▶  what is left of the disk (`disk`)  ──▶  a folder  ──▶  opened by memci, every row compared

What was acknowledged must be there; with durability="fast" the newest changes may be missing, but none in the middle.
Most cuts are glanced at; some are examined through, and go on. Two faults: before the power is cut, a sync failed or
the program was killed, and it went on. This module knows nothing of failing calls.
"""

import itertools
import os
import random
import shutil
import signal
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from memci.errors import MemciError

from .disk import Disk, Image, put
from .flawed import FLAWED
from .model import Found, Model, modelled
from .oracle import examine, illegal, listen, seen
from .scenario import FAST, STORES, Play, Store
from .shim import COUNTED, FAULTS, Call, Fault, Shim
from .surviving import Acks, Program
from .syscalls import spread
from .tally import Order, Tally, Tell
from .worker import Run, Share, forked, frozen, room, shared_out

_EXAMINED = 64
"""each so many-th cut is examined through"""
_CUTS_PER_FAULT = 16
_STEPS_RESUMED = 3
_AFTER = " after faults"
_REMEMBERED = 200_000


class PowerCuts:
    """Cuts the power."""

    name = "power"
    unit = "power cuts"
    short = 5_000
    long = 200_000

    def __init__(self, stores: Sequence[str] = (*STORES, *FAST)) -> None:
        self.stores = stores

    def run(self, order: Order, tell: Tell) -> Tally:
        """Cut the power until *order* is done, and return what was seen."""
        return shared_out(__name__, self.stores, order, tell, Tally(self.name, self.unit))


class PowerCutsAfterFaults:
    """Cuts the power some time after a sync has failed, or the program was killed, and it went on."""

    name = "double"
    unit = "power cuts after another fault"
    short = 500
    long = 20_000

    def __init__(self, stores: Sequence[str] = tuple(STORES)) -> None:
        self._stores = stores

    def run(self, order: Order, tell: Tell) -> Tally:
        """Cut the power until *order* is done, and return what was seen."""
        stores = [f"{each}{_AFTER}" for each in self._stores]
        return shared_out(__name__, stores, order, tell, Tally(self.name, self.unit))


def runs(share: Share) -> Iterator[Run]:
    """Yield the runs of a worker's *share*."""
    known = STORES | FAST | FLAWED
    model = modelled(STORES["sqlite"].make)
    frozen()
    with room() as base:
        rows: list[Iterator[Run]] = []
        for each in share.stores:
            name = each.removesuffix(_AFTER)
            recorded = Recorded(Shim(), model, name, known[name], Path(base).resolve())
            rows.append(recorded.cuts(share) if name == each else recorded.cuts_after_faults(share))
        while True:
            for row in rows:
                yield next(row)


class Recorded:
    """The scenario on one store, to be cut anywhere."""

    def __init__(self, shim: Shim, model: Model, name: str, store: Store, base: Path) -> None:
        self.store = store
        self._shim = shim
        self._model = model
        self._name = name
        self._folder = base / "store"
        self._log = base / "log"
        self._found: dict[int, Found] = {}
        self._disk, self._acks = self._recorded(COUNTED, 0)
        self._calls = dict(zip(Call, map(int, self._disk.notes[-1][1].split()[1:]), strict=True))

    def cuts_after_faults(self, share: Share) -> Iterator[Run]:
        """Yield runs without end: a sync failed or the program was killed, it went on, and later the power is cut.

        What it was told then must be as safe as what it was told before.
        """
        draw = random.Random(f"{share.seed} {self._name} {share.worker} faults")
        modes = ["eio_sync", "kill_before", "kill_after"] + ["eio_sync_folder"] * self.store.folders_told
        while True:
            mode = draw.choice(modes)
            calls = sum(self._calls[kind] for kind in Call if kind & FAULTS[mode].calls)
            number = draw.randint(1, calls)
            disk, acks = self._recorded(FAULTS[mode], number)
            for _ in range(_CUTS_PER_FAULT):
                at = draw.randint(disk.first("failed", "resume") or disk.end, disk.end)
                self._empty()
                put(disk.cut(at, draw), self._folder)
                low, high = self._model.span(acks[at].done, started=acks[at].started)
                legal = [state.said for state in self._model.states[low : high + 1]]
                wrong = [*acks[at].broken, *listen(self.store.make, self._folder, legal)]
                where = f"{self._name}: {mode} at call {number}, then a power cut before call {at}, in {acks[at].where}"
                said = [f"{where} (seed {share.seed}, worker {share.worker}): {'; '.join(wrong)}"] if wrong else []
                yield Run([self._name, f"after {mode}"], said)

    def _recorded(self, fault: Fault, number: int) -> tuple[Disk, list[Acks]]:
        """Play the scenario; return what happened to the disk, and what was acknowledged before each call."""
        self._empty()
        self._log.write_bytes(b"")
        ended = forked(lambda: self._played(fault, number))
        if ended == signal.SIGKILL and fault.kills:
            acks = self._told(self._disk_now())[-1]
            ended = forked(lambda: self._resumed(acks))
        if ended:
            raise RuntimeError(f"the scenario on {self._name!r} ended with {ended} while it was recorded")
        disk = self._disk_now()
        return disk, self._told(disk)

    def _program(self, fault: Fault, number: int) -> Program:
        self._shim.arm(str(self._folder), fault, number)
        self._shim.log(os.open(self._log, os.O_WRONLY | os.O_APPEND))
        play = Play(self.store.make, self._folder)
        return Program(play, self._shim, fault, self._model, self._shim.note, self.store.folders_told)

    def _played(self, fault: Fault, number: int) -> None:
        self._program(fault, number).run()
        self._shim.note(f"counted {' '.join(map(str, self._shim.counted().values()))}")

    def _resumed(self, acks: Acks) -> None:
        program = self._program(COUNTED, 0)
        self._shim.note("resume")
        if acks.step is not None:
            program.resume(acks.done, _STEPS_RESUMED)

    def _disk_now(self) -> Disk:
        return Disk(self._log.read_bytes(), str(self._folder))

    def _told(self, disk: Disk) -> list[Acks]:
        notes, acks = dict(disk.notes), [Acks()]
        for at in range(disk.end):
            acks.append(acks[-1].after(notes[at]) if at in notes else acks[-1])
        return acks

    def cuts(self, share: Share) -> Iterator[Run]:
        """Yield the share of a worker, without end: each pass cuts at every moment."""
        draw = random.Random(f"{share.seed} {self._name}")
        numbers = itertools.chain.from_iterable(self._moments(draw) for _ in itertools.count())
        for number, at in enumerate(itertools.islice(numbers, share.worker, None, share.workers)):
            seed = f"{share.seed} {self._name} {share.worker} {number}"
            image = self._disk.cut(at, random.Random(seed))
            sentences = self._look(at, image, thorough=number % _EXAMINED == 0)
            where = f"{self._name}: power cut before call {at}, in {self._acks[at].where} (draw {seed!r})"
            yield Run([self._name], [f"{where}: {'; '.join(sentences)}"] if sentences else [])

    def _moments(self, draw: random.Random) -> Iterator[int]:
        end = self._disk.end
        shift = draw.randrange(end)
        return ((number + shift) % end + 1 for number in spread(end))

    def _look(self, at: int, image: Image, *, thorough: bool) -> Sequence[str]:
        acks = self._acks[at]
        low, high = self._model.span(acks.done, started=acks.started)
        step = acks.step
        if not self.store.full:
            low, step = 0, None
        if thorough:
            self._empty()
            put(image, self._folder)
            sentences = examine(self.store.make, self._folder, self._model, low, high, step)
            return list(sentences)
        # Two cuts often leave the same bytes: what is found in them is the same.
        key = hash(tuple(image.items()))
        found = self._found.get(key)
        if found is None:
            found = self._open(image)
            if len(self._found) < _REMEMBERED:
                self._found[key] = found
        return illegal(found, self._model, low, high)

    def _open(self, image: Image) -> Found:
        self._empty()
        put(image, self._folder)
        try:
            with closing(self.store.make(self._folder)) as store:
                return seen(store, self._model)
        except MemciError as error:
            return Found((), {}, (f"the store can't be used: {type(error).__name__}: {error}",))

    def _empty(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir()
