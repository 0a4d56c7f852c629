"""Line bombs: an exception, or death, at every line that a call executes.

    lines of append_turn      1 · 2 · 3 · … · 549      at each: Ctrl-C, no memory, an exit; in a child: SIGKILL
    the same handle           goes on, or says that it has to be refreshed or opened again
    a fresh one               shows the state before the call or the one after it, and all that was done since, once

What happens between "stored" and "taken in" is what this is for. Lines that say `with` and `try` are left out: a tracer
may raise there between taking a lock and guarding it, where the interpreter itself never does. Lines that a call
executes for the first time come before those that it repeats. This module knows nothing of what the lines say.
"""

import gc
import itertools
import linecache
import os
import random
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from time import monotonic
from types import CodeType, FrameType
from typing import Any, NamedTuple

import memci
from memci.errors import HandlePoisoned, MemciError, WriteConflict
from memci.history.verify import problems
from memci.storage.protocol import Storage

from .acts import ACTS, ON_DISK, Site, State, opened, state, talk, turn
from .scenario import MAIN
from .tally import Order, Tally, Tell
from .worker import end_if_hung, room

PACKAGE = str(Path(memci.__file__).parent)
_HANGS_SECONDS = 20
_CHUNK = 20

KINDS: dict[str, Callable[[], BaseException] | None] = {
    "KeyboardInterrupt": KeyboardInterrupt,
    "MemoryError": MemoryError,
    "SystemExit": SystemExit,
    "killed": None,
}


class Bomb:
    """Counts the lines of the package that a call executes, and goes off at one of them.

    Args:
        line: The line at which it goes off; 0 never.
        raises: What it raises; None kills the process.
    """

    def __init__(self, line: int = 0, raises: Callable[[], BaseException] | None = None) -> None:
        self._at = line
        self._raises = raises
        self.lines = 0
        """executed so far"""
        self.firsts: dict[tuple[str, int], int] = {}
        """which of them was the first to execute a line of a file"""
        self.place = ""
        """where it went off"""
        self.dropped = False
        """whether it went off in a finalizer: Python drops what that raises, and no code can pass it on"""

    @property
    def went_off(self) -> bool:
        return 0 < self._at <= self.lines

    def around(self, act: Callable[[], object]) -> BaseException | None:
        """Call *act* and return what it raised.

        What others left is not collected meanwhile: lines of its finalizers would be counted, now and then.
        """
        collects = gc.isenabled()
        gc.disable()
        watch = _monitored if sys.version_info >= (3, 12) else _traced
        unraisable, sys.unraisablehook = sys.unraisablehook, self._ignored
        try:
            watch(act, self._executed)
        except BaseException as error:  # whatever it is: it is what the test is about
            return error
        finally:
            sys.unraisablehook = unraisable
            if collects:
                gc.enable()
        return None

    def _ignored(self, unraisable: Any) -> None:
        if self.went_off and unraisable.exc_type is self._raises:
            self.dropped = True
        else:
            sys.__unraisablehook__(unraisable)

    def _executed(self, code: CodeType, line: int) -> None:
        if line in _guards(code.co_filename):
            return
        self.lines += 1
        self.firsts.setdefault((code.co_filename, line), self.lines)
        if self.lines == self._at:
            self.place = f"{code.co_filename.removeprefix(PACKAGE)}:{line}"
            if self._raises is None:
                os.kill(os.getpid(), signal.SIGKILL)
            else:
                raise self._raises()


@cache
def _guards(file: str) -> frozenset[int]:
    lines = enumerate(linecache.getlines(file), 1)
    return frozenset(number for number, line in lines if line.lstrip().startswith(("with ", "try:")))


def _traced(act: Callable[[], object], executed: Callable[[CodeType, int], None]) -> None:
    def entered(frame: FrameType, _event: str, _argument: object) -> Any:
        return line if frame.f_code.co_filename.startswith(PACKAGE) else None

    def line(frame: FrameType, event: str, _argument: object) -> Any:
        if event == "line":
            executed(frame.f_code, frame.f_lineno)
        return line

    sys.settrace(entered)
    try:
        act()
    finally:
        sys.settrace(None)


def _monitored(act: Callable[[], object], executed: Callable[[CodeType, int], None]) -> None:
    watching: Any = sys.monitoring  # type: ignore[attr-defined]  # since 3.12
    tool, lines = watching.DEBUGGER_ID, watching.events.LINE

    def line(code: CodeType, number: int) -> object:
        if not code.co_filename.startswith(PACKAGE):
            return watching.DISABLE
        executed(code, number)
        return None

    watching.use_tool_id(tool, "bombs")
    watching.register_callback(tool, lines, line)
    watching.set_events(tool, lines)
    try:
        act()
    finally:
        watching.set_events(tool, 0)
        watching.register_callback(tool, lines, None)
        watching.free_tool_id(tool)


class Known(NamedTuple):
    """What an act does without a bomb."""

    lines: int
    firsts: frozenset[int]
    """those of its lines that it had not executed before"""
    legal: tuple[State, ...]
    """the state before it, and after each of its calls"""


class Case(NamedTuple):
    """One bomb."""

    store: str
    act: str
    kind: str
    line: int


@cache
def known(store: str, act: str) -> Known:
    """Return what *act* does on *store*."""
    _counted(store, act)  # what is imported or cached by the first call is executed once: that one does not count
    return _counted(store, act)


def _counted(store: str, act: str) -> Known:
    with room() as folder:
        site, bomb = Site(store, act, Path(folder)), Bomb()
        with closing(site.storage):
            legal = [state(site.storage)]
            for call in site.act.calls:
                if error := bomb.around(partial(call, site.context)):
                    raise RuntimeError(f"{act!r} on {store!r} fails without a bomb") from error
                legal.append(state(site.storage))
    return Known(bomb.lines, frozenset(bomb.firsts.values()), tuple(legal))


def exploded(case: Case) -> tuple[list[str], list[str]]:
    """Set off one bomb; return what happened, and the promises that it broke."""
    happened, found = [f"{case.kind}, {case.store}"], []
    legal = known(case.store, case.act).legal
    try:
        with room() as folder:
            broken = _killed if KINDS[case.kind] is None else _raised
            found = broken(case, Path(folder), legal, happened)
    except BaseException as error:  # a harness goes on: this is what it looks for
        found = [f"{error!r}"]
    return happened, [f"{case}: {each}" for each in found]


def _killed(case: Case, folder: Path, legal: Sequence[State], happened: list[str]) -> list[str]:
    child = os.fork()
    if not child:
        end_if_hung()
        try:
            Bomb(case.line).around(Site(case.store, case.act, folder).play)
        finally:
            os._exit(0)
    signalled = os.waitpid(child, 0)[1] & 0x7F
    if signalled != signal.SIGKILL:
        happened.append(f"ended by {signalled}, not by the bomb")
        return ["it hangs"] if signalled else []
    storage = ON_DISK[case.store](folder)
    if not ACTS[case.act].appends:
        return _fresh(storage, legal, exact=True)
    found = _before_or_after(state(storage), legal, exact=False)
    with opened(storage) as context:
        for call in ACTS[case.act].calls:
            call(context)
    return found + _fresh(storage, legal[-1:], exact=False)


def _raised(case: Case, folder: Path, legal: Sequence[State], happened: list[str]) -> list[str]:
    site, bomb, found = Site(case.store, case.act, folder), Bomb(case.line, KINDS[case.kind]), []
    error = bomb.around(site.play)
    if not bomb.went_off:
        happened.append("did not go off")
    elif error is None and bomb.dropped:  # that of a store of an earlier case, perhaps, which is collected just now
        happened.append(f"{case.kind} in a finalizer")
    elif error is None:
        happened.append(f"{case.kind} went no further")
        if case.kind != "MemoryError":  # a compaction that fails after its append was stored is tried again later
            found.append("it was swallowed")
    elif not isinstance(error, (KeyboardInterrupt, MemoryError, SystemExit, MemciError)):
        found.append(f"it became {error!r}")
    after = _Afterwards(site, legal, repeats=site.act.appends and case.line % 2 == 0)
    found += after.found
    happened.append(after.outcome)
    try:
        fresh = site.again()
        expected = [after.state] if after.state is not None else legal
        found += _fresh(fresh, expected, exact=after.state is None and not site.act.appends)
    except HandlePoisoned:  # in RAM a transition that was cut short takes the store with it, and says so
        if case.store != "ephemeral" or after.outcome != _POISONED:
            raise
    except MemciError as problem:
        found.append(f"a fresh handle raises {problem!r}")
    site.storage.close()
    return [f"{bomb.place}: {each}" for each in found]


_POISONED = "the handle says that it has to be opened again"


class _Afterwards:
    """What the handle in whose call the bomb went off does then."""

    def __init__(self, site: Site, legal: Sequence[State], *, repeats: bool) -> None:
        self._site, self._legal, self._repeats = site, legal, repeats
        self.found: list[str] = []
        self.outcome = "the handle goes on"
        self.state: State | None = None
        """what a fresh handle has to find then; None: any legal state"""
        self._error: BaseException | None = None
        # A lock that was left behind stops another thread only.
        other = threading.Thread(target=self._ask, daemon=True)
        other.start()
        other.join(_HANGS_SECONDS)
        if other.is_alive():
            self.found.append("the handle is stuck: a lock was left behind")
            self.outcome = "stuck"
        elif isinstance(self._error, WriteConflict):
            self.outcome = "the handle goes on after refresh()"
            site.context.refresh()
            self._go_on()
        elif isinstance(self._error, HandlePoisoned):
            self.outcome = _POISONED
        elif self._error is not None:
            self.found.append(f"the handle raises {self._error!r}")

    def _ask(self) -> None:
        try:
            self._go_on()
        except BaseException as error:  # reported to the waiting thread
            self._error = error

    def _go_on(self) -> None:
        context, site = self._site.context, self._site
        seen = list(context.messages())
        if seen != site.stale and seen not in [each.said[MAIN] for each in self._legal]:
            self.found.append("the handle shows neither the state before nor the one after")
        context.render(strict=False)
        if self._repeats:
            site.play()
            seen = self._legal[-1].said[MAIN]
        talk(99, context)
        seen = [*seen, *turn(99)]
        if list(context.messages()) != seen:
            self.found.append("the handle lost or repeated what it appended")
        rendered = context.render(strict=False)  # starts what is due
        with opened(site.storage, read_only=True) as fresh:
            if fresh.render(strict=False) != rendered:
                self.found.append("the handle renders other bytes than a fresh one")
        self.state = State({MAIN: seen}, "")


def _fresh(storage: Storage, expected: Sequence[State], *, exact: bool) -> list[str]:
    """Return what is wrong with what a fresh handle finds: one of *expected*, with its pages if it is to be *exact*."""
    with closing(storage):
        found = [each for record in storage.contexts() for each in problems(storage, record.id)]
        seen = state(storage)
        found += _before_or_after(seen, expected, exact=exact)
        for record in storage.contexts():
            with opened(storage, record.id) as context:
                context.render(strict=False)
                if context.report().total > context.report().budget:
                    found.append(f"{record.id} renders more than the budget")
                talk(100, context)
                if list(context.messages()) != [*seen.said[record.id], *turn(100)]:
                    found.append(f"{record.id} can't be appended to")
    return found


def _before_or_after(seen: State, expected: Sequence[State], *, exact: bool) -> list[str]:
    if seen in expected or (not exact and seen.said[MAIN] in [each.said[MAIN] for each in expected]):
        return []
    return [f"a fresh handle shows {len(seen.said[MAIN])} messages, not as before or after, or as appended"]


class Bombs:
    """Sets off bombs at the lines of each act."""

    name = "bombs"
    unit = "line bombs"
    short = 400
    long = 12_000
    """of about 90,000: all lines of all acts, each at its first execution, with each kind, on each store"""

    def __init__(self, stores: Sequence[str] = ("ephemeral", "sqlite", "files")) -> None:
        self._stores = tuple(stores)

    def run(self, order: Order, tell: Tell) -> Tally:
        """Set bombs off, spread over stores, acts, kinds and lines, until *order* is done."""
        tally = Tally(self.name, self.unit)
        until = monotonic() + order.seconds
        with ProcessPoolExecutor(order.workers, initializer=_unmoved) as pool:
            cases = itertools.islice(spread(order.seed, self._stores), order.aim)
            chunks = iter(lambda: list(itertools.islice(cases, _CHUNK)), [])
            running = {pool.submit(_several, chunk, until) for chunk in itertools.islice(chunks, order.workers + 1)}
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for each in done:
                    self._take(each, tally)
                    if monotonic() < until and (chunk := next(chunks, None)):
                        running.add(pool.submit(_several, chunk, until))
                tell(tally.runs)
        return tally

    def _take(self, done: "Future[tuple[int, Counter[str], list[str]]]", tally: Tally) -> None:
        runs, counts, violations = done.result()
        tally.runs += runs
        tally.counts.update(counts)
        tally.violations += violations


def spread(seed: int, stores: Sequence[str]) -> Iterator[Case]:
    """Yield every case once: all stores, acts and kinds early, then all lines, those that are executed again last."""
    rng = random.Random(seed)
    waiting = []
    for store, act, kind in itertools.product(stores, ACTS, KINDS):
        if kind == "killed" and store == "ephemeral":
            continue
        lines, firsts, _ = known(store, act)
        order = rng.sample(range(1, lines + 1), lines)
        order.sort(key=firsts.__contains__)
        waiting.append([Case(store, act, kind, line) for line in order])
    rng.shuffle(waiting)
    while waiting:
        for cases in waiting:
            yield cases.pop()
        waiting = [cases for cases in waiting if cases]


def _unmoved() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C of ours is no bomb


def _several(cases: list[Case], until: float) -> tuple[int, Counter[str], list[str]]:
    counts: Counter[str] = Counter()
    violations: list[str] = []
    done = 0
    for case in cases:
        if monotonic() > until:
            break
        done += 1
        happened, broken = exploded(case)
        counts.update(happened)
        violations += broken
    return done, counts, violations
