"""Line bombs: an exception, or death, at every line that a call executes.

    lines of append_turn      1 · 2 · 3 · … · 214      at each: Ctrl-C, no memory, an exit; in a child: SIGKILL
    afterwards                the same handle goes on, or says that it has to be refreshed or opened again
                              a fresh one shows the state before the call, or the one after it

What happens between "stored" and "taken in" is what this is for. Lines that say `with` and `try` are left
out: a tracer may raise there between taking a lock and guarding it, where the interpreter itself never does. This
module knows nothing of what the other lines say.
"""

import itertools
import linecache
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import Any, NamedTuple

import memci
from memci import Context, EphemeralStorage, SQLiteStorage
from memci.errors import HandlePoisoned, LeaseLost, MemciError
from memci.storage.protocol import Storage
from memci.verifying import problems

from .tally import Order, Tally, Tell

PACKAGE = str(Path(memci.__file__).parent)
WINDOW = 700
STUCK_SECONDS = 20
_CHUNK = 40


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

    def around(self, act: Callable[[], object]) -> BaseException | None:
        """Call *act* and return what it raised."""
        sys.settrace(self._entered)
        try:
            act()
        except BaseException as error:  # whatever it is: it is what the test is about
            return error
        finally:
            sys.settrace(None)
        return None

    def _entered(self, frame: FrameType, _event: str, _argument: object) -> Any:
        return self._line if frame.f_code.co_filename.startswith(PACKAGE) else None

    def _line(self, frame: FrameType, event: str, _argument: object) -> Any:
        if event == "line" and not _guards(frame):
            self.lines += 1
            if self.lines == self._at:
                if self._raises is None:
                    os.kill(os.getpid(), signal.SIGKILL)
                else:
                    raise self._raises()
        return self._line


def _guards(frame: FrameType) -> bool:
    return linecache.getline(frame.f_code.co_filename, frame.f_lineno).lstrip().startswith(("with ", "try:"))


def count(text: str) -> int:
    """Count tokens as quarters of characters."""
    return len(text) // 4


def opened(storage: Storage, **more: Any) -> Context:
    """Open the context of the scenario."""
    return Context.open(
        storage, id="alice", system="Be brief.", window=WINDOW, reply=100, counter=count, nonce="1f9a03c2", **more
    )


def talk(context: Context, number: int) -> None:
    """Append one interaction."""
    context.append_turn(
        f"Question {number}: what does the flight to Oslo cost?",
        {"role": "assistant", "content": f"Flight HAT{number:03} costs ${100 + number}. " * 3},
        op_id=f"turn-{number}",
    )


def group(context: Context) -> None:
    """Append a call and its result, which is large."""
    call = {"id": "c1", "type": "function", "function": {"name": "fares", "arguments": '{"to": "Oslo"}'}}
    result = {"role": "tool", "tool_call_id": "c1", "content": "row of fares " * 200}
    context.append_turn("And tomorrow?", {"role": "assistant", "content": None, "tool_calls": [call]}, result)


ACTS: dict[str, Callable[[Context], object]] = {
    "append": lambda context: talk(context, 90),
    "append a group": group,
    "append, edition": lambda context: [talk(context, 91 + i) for i in range(3)],
    "archive": lambda context: context.archive(keep=0),
    "recall": lambda context: context.recall_page(2),
    "pin": lambda context: context.pin(3),
    "undo": lambda context: context.undo(),
    "render": lambda context: context.render("What else? " * 40),
    "fork": lambda context: context.fork("bob").close(),
    "fork at": lambda context: context.fork("bob", at=4).close(),
    "erase": lambda context: context.erase(4),
    "erase entry": lambda context: context.erase(2, 1),
    "refresh": lambda context: context.refresh(),
}
UNLOADING = {"contents_tokens": 90, "never_recalled": 2}
"""settings by which pages are unloaded all the time"""


class Site:
    """A store in which a bomb goes off."""

    def __init__(self, store: str, folder: Path) -> None:
        self.path = folder / "context.db"
        self.storage: Storage = EphemeralStorage() if store == "ephemeral" else SQLiteStorage(self.path)
        self.context = opened(self.storage, **UNLOADING)
        for number in range(9):
            talk(self.context, number)

    def again(self) -> Storage:
        """Return a fresh handle on what is there."""
        if isinstance(self.storage, EphemeralStorage):
            return self.storage
        return SQLiteStorage(self.path)

    def close(self) -> None:
        """Let go of the files."""
        self.storage.close()


class State(NamedTuple):
    """What is stored."""

    said: str
    pages: str


def state(context: Context) -> State:
    """Return what the store of *context* has of it."""
    pages = [(page.index, page.where, page.entries, page.pinned, page.recall_count) for page in context.pages()]
    return State(repr(list(context.messages())), repr(pages))


class Case(NamedTuple):
    """One bomb."""

    store: str
    act: str
    kind: str
    line: int


def lines_of(store: str, act: str) -> tuple[int, tuple[State, ...]]:
    """Return how many lines *act* executes, and the states that may be seen afterwards."""
    with tempfile.TemporaryDirectory(dir=_ram()) as folder:
        site = Site(store, Path(folder))
        states = [state(site.context)]
        bomb = Bomb()
        if act == "append, edition":
            error = None
            for number in range(3):
                error = error or bomb.around(lambda number=number: talk(site.context, 91 + number))
                states.append(state(site.context))
        else:
            error = bomb.around(lambda: ACTS[act](site.context))
            states.append(state(site.context))
        site.close()
        if error is not None:
            raise RuntimeError(f"{act} on {store} fails without a bomb: {error!r}")
        # an edition after an append is a transaction of its own: the state between the two is as good
        return bomb.lines, tuple(states)


def exploded(case: Case, legal: tuple[State, ...]) -> list[str]:
    """Set off one bomb, and return the promises that it broke."""
    folder = Path(tempfile.mkdtemp(dir=_ram()))
    try:
        site = Site(case.store, folder)
        if KINDS[case.kind] is None:
            site.close()
            _in_a_child(case, folder)
            return [f"{case}: {each}" for each in _fresh(SQLiteStorage(folder / "context.db"), legal)]
        bomb = Bomb(case.line, KINDS[case.kind])
        error = bomb.around(lambda: ACTS[case.act](site.context))
        found = []
        if error is not None and not isinstance(error, (KeyboardInterrupt, MemoryError, SystemExit, MemciError)):
            found.append(f"it became {error!r}")
        found += _same_handle(site, legal)
        try:
            found += _fresh(site.again(), None)
        except HandlePoisoned:
            if case.store != "ephemeral":  # in RAM a transition that was cut short takes the store with it, and says so
                raise
        site.close()
        return [f"{case}: {each}" for each in found]
    except BaseException as problem:  # a harness goes on: this is what it looks for
        return [f"{case}: {problem!r}"]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _in_a_child(case: Case, folder: Path) -> None:
    child = os.fork()
    if not child:
        try:
            context = opened(SQLiteStorage(folder / "context.db"))
            Bomb(case.line).around(lambda: ACTS[case.act](context))
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def _same_handle(site: Site, legal: tuple[State, ...]) -> list[str]:
    """Return what is wrong with the handle in whose call the bomb went off."""
    context, found = site.context, []
    answer: list[BaseException | None] = []

    def go_on() -> None:
        try:
            seen = state(context)
            if seen.said not in {each.said for each in legal}:
                found.append("the handle shows neither the state before nor the one after")
            context.render(strict=False)
            talk(context, 99)
            answer.append(None)
        except BaseException as error:  # told to whoever waits
            answer.append(error)

    other = threading.Thread(target=go_on, daemon=True)  # a lock that was left behind stops another thread only
    other.start()
    other.join(STUCK_SECONDS)
    if not answer:
        return ["the handle is stuck: a lock was left behind"]
    error = answer[0]
    if isinstance(error, LeaseLost):
        context.refresh()
        talk(context, 99)
    elif isinstance(error, HandlePoisoned):
        return found
    elif error is not None:
        return [*found, f"the handle raises {error!r}"]
    context.render(strict=False)  # starts what is due
    with opened(site.storage, read_only=True) as fresh:
        if fresh.render(strict=False) != context.render(strict=False):
            found.append("the handle renders other bytes than a fresh one")
    return found


def _fresh(storage: Storage, legal: tuple[State, ...] | None) -> list[str]:
    """Return what is wrong with what a fresh handle finds."""
    found = [each for record in storage.contexts() for each in problems(storage, record.id)]
    with opened(storage) as context:
        if legal is not None and state(context) not in legal and _visible(context, legal) is False:
            found.append("a fresh handle shows neither the state before nor the one after")
        report = context.report()
        context.render(strict=False)
        if context.report().total > report.budget:
            found.append("a fresh handle renders more than the budget")
        talk(context, 100)
    storage.close()
    return found


def _visible(context: Context, legal: tuple[State, ...]) -> bool:
    """Tell whether the messages are those of a legal state: where pages are may be in between, after an append."""
    return repr(list(context.messages())) in {each.said for each in legal}


def _ram() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


class Bombs:
    """Sets off bombs at the lines of each act."""

    name = "bombs"
    unit = "line bombs"
    short = 400
    long = 6_000

    def run(self, order: Order, tell: Tell) -> Tally:
        """Set bombs off, spread over acts, kinds and lines, until *order* is done."""
        tally = Tally(self.name, self.unit)
        until = monotonic() + order.seconds
        with ProcessPoolExecutor(order.workers) as pool:
            cases = itertools.islice(spread(order.seed), order.aim)
            running = {pool.submit(_several, chunk) for chunk in itertools.islice(_chunks(cases), order.workers * 2)}
            rest = _chunks(cases)
            while running:
                done = next(iter(running))
                counts, violations = done.result()
                running.remove(done)
                tally.counts.update(counts)
                tally.violations += violations
                tally.runs += counts.total()
                tell(tally.runs)
                following = next(rest, None) if monotonic() < until else None
                if following is not None:
                    running.add(pool.submit(_several, following))
        return tally


def spread(seed: int) -> Iterator[Case]:
    """Yield every case once, in an order that meets all acts and kinds early, all lines in the end."""
    rng = random.Random(seed)
    waiting = []
    for store, act in itertools.product(("ephemeral", "sqlite"), ACTS):
        lines, _ = _known(store, act)
        kinds = [kind for kind in KINDS if kind != "killed" or store == "sqlite"]
        places = [Case(store, act, kind, line) for kind in kinds for line in range(1, lines + 1)]
        rng.shuffle(places)
        waiting.append(places)
    while waiting:
        for places in waiting:
            yield places.pop()
        waiting = [places for places in waiting if places]


_STATES: dict[tuple[str, str], tuple[int, tuple[State, ...]]] = {}


def _known(store: str, act: str) -> tuple[int, tuple[State, ...]]:
    if (store, act) not in _STATES:
        _STATES[store, act] = lines_of(store, act)
    return _STATES[store, act]


def _chunks(cases: Iterator[Case]) -> Iterator[list[Case]]:
    while chunk := list(itertools.islice(cases, _CHUNK)):
        yield chunk


def _several(cases: list[Case]) -> tuple[Counter[str], list[str]]:
    counts: Counter[str] = Counter()
    violations: list[str] = []
    for case in cases:
        counts[f"{case.kind}, {case.store}"] += 1
        violations += exploded(case, _known(case.store, case.act)[1])
    return counts, violations
