"""Kills in a consolidation: the jobs of a memory's model, ended at any line, are all done afterwards, each once.

    13 pages wait for their model     describe · hand over · notice · tell · analyse · relate · day · conversation
    line 1 · 2 · … · 60,000           SIGKILL, or Ctrl-C and the same handle goes on
    ten minutes later                 the jobs that were under way are due again: what is known in the end is what an
                                      undisturbed run knows, to the byte, but for the times at which it was learned

This module knows nothing of what the lines say.
"""

import json
import os
import random
import re
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import closing
from functools import cache
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

from memci import SQLiteStorage
from memci.memory import TieredMemory
from memci.storage import FilesystemStorage, Storage

from .bombs import Bomb
from .tally import Order, Tally, Tell
from .worker import end_if_hung, room

sys.path.insert(0, str(Path(__file__).parent.parent / "memory"))
from machine_kit import check, items, rows
from model_kit import DAY, NOON, Clock, drained, modelled, page, tell

KINDS = ("killed", "KeyboardInterrupt")
DERIVED = ("note", "episode", "chain", "fact", "profile", "event", "day", "relation")
_LATER = 1_000.0
_TIMES = re.compile(r'"(?:retrieved|last_visit|learned)": -?[\d.e+]+')
_CHUNK = 10


def stored(store: str, folder: Path) -> Storage:
    """Open a store in *folder*."""
    if store == "sqlite":
        return SQLiteStorage(folder / "agent.db", durability="fast")
    return FilesystemStorage(folder / "agent", durability="fast")


def filled(storage: Storage) -> None:
    """Make a memory in which much is to be done."""
    memory, _ = modelled(storage)
    for index in range(1, 14):
        tell(memory, page(index, at=NOON + DAY * (index > 6) + 60 * index), maintain=False)
    memory.learn("Anna's sister lives in Oslo.", context="alice", index=3)


def consolidated(storage: Storage, clock: Clock) -> None:
    """Do all that is to be done, and what comes of it."""
    memory, _ = modelled(storage, clock=clock)
    for _ in range(4):
        memory.maintain()
        while memory.run_job():
            pass
        memory.search("violins quokka03", k=3)
    memory.close()


class Known(NamedTuple):
    """What a consolidation does without a bomb."""

    lines: int
    firsts: tuple[int, ...]
    """those of its lines that it had not executed before"""
    state: str


class Case(NamedTuple):
    """One bomb."""

    store: str
    kind: str
    line: int


@cache
def known(store: str) -> Known:
    """Return what a consolidation does on *store*."""
    _counted(store)  # what is imported or cached by the first one is executed once: that one does not count
    return _counted(store)


def _counted(store: str) -> Known:
    with room() as folder:
        shutil.copytree(template(store), folder, dirs_exist_ok=True)
        bomb = Bomb()
        with closing(stored(store, Path(folder))) as storage:
            if error := bomb.around(lambda: consolidated(storage, Clock())):
                raise RuntimeError("it fails without a bomb") from error
            return Known(bomb.lines, tuple(sorted(bomb.firsts.values())), state(storage)[0])


def state(storage: Storage) -> tuple[str, list[str]]:
    """Return all that is known in the end, and what is wrong with it."""
    found: list[str] = []
    memory = TieredMemory(storage, owner="anna", read_only=False)
    try:
        try:
            check(memory)
        except AssertionError as broken:
            found.append(f"{broken}")
        left = rows(memory, "SELECT kind, tries FROM memory_job")
        found += [f"a job is left: {each}" for each in left]
        told = {kind: sorted(_timeless(each) for each in items(memory, kind).values()) for kind in DERIVED}
        pages = rows(
            memory,
            "SELECT context, page, tier, marks, title, keywords, episode IS NULL FROM memory_page ORDER BY id",
        )
        evidence = rows(
            memory,
            "SELECT i.kind, g.page, count(*) FROM memory_evidence AS e JOIN memory_item AS i ON i.id = e.item "
            "JOIN memory_page AS g ON g.id = e.page GROUP BY i.kind, g.page ORDER BY 1, 2",
        )
    finally:
        memory.close()
    return json.dumps([told, pages, evidence], indent=1), found


def _timeless(value: dict[str, Any]) -> str:
    """Return an item without the times at which it was learned, made or found."""
    if "previous" in value:
        value = value | {"at": 0, "previous": [each | {"at": 0} for each in value["previous"]]}
    if "warmth" in value:  # a visit that a kill came before was made by nobody
        value = value | {"warmth": value["warmth"]["length"]}
        value = {name: each for name, each in value.items() if name != "version"}
    return _TIMES.sub('"time": 0', json.dumps(value, sort_keys=True))


def exploded(case: Case) -> tuple[str, list[str]]:
    """Set off one bomb; return what happened, and the promises that it broke."""
    try:
        with room() as name:
            folder = Path(name)
            shutil.copytree(template(case.store), folder, dirs_exist_ok=True)
            happened, place = _killed(case, folder) if case.kind == "killed" else _raised(case, folder)
            with closing(stored(case.store, folder)) as storage:
                _go_on(storage)
                seen, found = state(storage)
            expected = known(case.store).state
            if seen != expected:
                found.append(f"something is known twice, or not at all: {_difference(expected, seen)}")
    except BaseException as error:  # a harness goes on: this is what it looks for
        happened, place, found = "an error", "", [f"{error!r}"]
    return happened, [f"{case} {place}: {each}" for each in found]


def _killed(case: Case, folder: Path) -> tuple[str, str]:
    child = os.fork()
    if not child:
        end_if_hung()
        try:
            Bomb(case.line).around(lambda: consolidated(stored(case.store, folder), Clock()))
        finally:
            os._exit(0)
    signalled = os.waitpid(child, 0)[1] & 0x7F
    return ("killed" if signalled == signal.SIGKILL else f"ended by {signalled}"), ""


def _raised(case: Case, folder: Path) -> tuple[str, str]:
    bomb = Bomb(case.line, KeyboardInterrupt)
    with closing(stored(case.store, folder)) as storage:
        error = bomb.around(lambda: consolidated(storage, Clock()))
        _go_on(storage)
    if not isinstance(error, KeyboardInterrupt):
        return ("it was swallowed" if bomb.went_off else "did not go off"), bomb.place
    return "KeyboardInterrupt", bomb.place


def _go_on(storage: Storage) -> None:
    """Do what is left, ten minutes later."""
    clock = Clock(NOON + _LATER)
    consolidated(storage, clock)
    memory, _ = modelled(storage, clock=clock)
    drained(memory, clock)
    memory.close()


def _difference(expected: str, seen: str) -> str:
    some, other = Counter(expected.splitlines()), Counter(seen.splitlines())
    return f"missing {list((some - other).elements())[:3]!s:.600}, besides {list((other - some).elements())[:3]!s:.600}"


@cache
def template(store: str) -> Path:
    """Return a folder with a memory in which much is to be done."""
    made = room()
    _ROOMS.append(made)
    with closing(stored(store, Path(made.name))) as storage:
        filled(storage)
    return Path(made.name)


_ROOMS: list[Any] = []
"""folders that are to stay until the process ends"""


class Consolidations:
    """Sets off bombs at the lines of a consolidation."""

    name = "consolidations"
    unit = "kills in a consolidation"
    short = 40
    long = 4_000

    def __init__(self, stores: Sequence[str] = ("sqlite", "files")) -> None:
        self._stores = tuple(stores)

    def run(self, order: Order, tell: Tell) -> Tally:
        """Set bombs off, spread over stores, kinds and lines, until *order* is done."""
        tally = Tally(self.name, self.unit)
        until = monotonic() + order.seconds
        cases = spread(order.seed, self._stores)
        with ProcessPoolExecutor(order.workers) as pool:
            left = order.aim
            running = set()
            while running or left > 0:
                while left > 0 and len(running) <= order.workers and monotonic() < until:
                    chunk = [next(cases) for _ in range(min(_CHUNK, left))]
                    left -= len(chunk)
                    running.add(pool.submit(_several, chunk, until))
                if not running:
                    break
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for each in done:
                    runs, counts, violations = each.result()
                    tally.runs += runs
                    tally.counts.update(counts)
                    tally.violations += violations
                tell(tally.runs)
        return tally


def spread(seed: int, stores: Sequence[str]) -> Iterator[Case]:
    """Yield cases for ever: most at lines that are executed for the first time, in any order."""
    rng = random.Random(seed)
    while True:
        for store in stores:
            for kind in KINDS:
                lines, firsts, _ = known(store)
                line = rng.choice(firsts) if rng.random() < 0.7 else rng.randint(1, lines)
                yield Case(store, kind, line)


def _several(cases: Sequence[Case], until: float) -> tuple[int, Counter[str], list[str]]:
    counts: Counter[str] = Counter()
    violations: list[str] = []
    done = 0
    for case in cases:
        if monotonic() > until:
            break
        done += 1
        happened, broken = exploded(case)
        counts[f"{happened}, {case.store}"] += 1
        violations += broken
    return done, counts, violations
