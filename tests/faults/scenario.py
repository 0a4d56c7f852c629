"""What a program does with its contexts while the disk fails: the same calls each time, in the same order.

    play = Play(STORES["sqlite"], folder)
    for step in STEPS:
        step.act(play)

Each step makes one call that changes something, so that a call that fails can be told from one that was done. Small
window: compactions come by themselves, pages are split, results are clipped. All names, times and nonces are given, so
that each play leaves the same bytes. This module knows nothing of faults.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from memci import Context, SQLiteStorage
from memci.errors import Erased
from memci.memory import NullMemory
from memci.storage.filesystem.store import FilesystemStorage
from memci.storage.protocol import Storage

Message = dict[str, object]
Make = Callable[[Path], Storage]


class Store(NamedTuple):
    """A kind of store, and what it promises."""

    make: Make
    """opens the one store in a folder, which may be empty"""
    full: bool = True
    """whether what it acknowledged survives a power cut; else a power cut may take the newest"""
    folders_told: bool = True
    """whether it looks at what comes of syncing a folder; SQLite does not"""


STORES: dict[str, Store] = {
    "sqlite": Store(lambda folder: SQLiteStorage(folder / "agent.db"), folders_told=False),
    "truncate": Store(lambda folder: SQLiteStorage(folder / "agent.db", journal="truncate"), folders_told=False),
    "files": Store(lambda folder: FilesystemStorage(folder / "agent"), folders_told=False),
}
FAST: dict[str, Store] = {
    "sqlite_fast": Store(lambda folder: SQLiteStorage(folder / "agent.db", durability="fast"), full=False),
    "files_fast": Store(lambda folder: FilesystemStorage(folder / "agent", durability="fast"), full=False),
}

MAIN = "alice"
FORK = "alice's other plan"


def count(text: str) -> int:
    """Count tokens as quarters of characters."""
    return len(text) // 4


class Play:
    """One program with one store."""

    def __init__(self, make: Make, folder: Path) -> None:
        self._make = make
        self._folder = folder
        self._store: Storage | None = None
        self.contexts: dict[str, Context] = {}
        self.pages: dict[str, int] = {}
        """the page that each append's last message is on"""
        self.answers: list[Message] = []

    @property
    def store(self) -> Storage:
        """The store; opened if it is not open."""
        if self._store is None:
            self._store = self._make(self._folder)
        return self._store

    def context(self, name: str = MAIN) -> Context:
        """Return a context; opened if it is not open."""
        if name not in self.contexts:
            self.contexts[name] = opened(self.store, name)
        return self.contexts[name]

    def close(self) -> None:
        """Close everything."""
        self.contexts = {}
        if self._store is not None:
            self._store.close()
        self._store = None

    def forget(self) -> None:
        """Let go of everything, after closing has failed."""
        self.contexts = {}
        self._store = None


class Step(NamedTuple):
    """One call."""

    name: str
    act: Callable[[Play], object]
    context: str = MAIN
    op_id: str | None = None
    messages: tuple[Message, ...] = ()
    """what it appends"""
    restarts: bool = False
    """whether it closes the store"""


def opened(store: Storage, name: str = MAIN, *, read_only: bool = False) -> Context:
    """Open a context as the scenario does."""
    if read_only:
        return Context.view(store, id=name, counter=count, memory=NullMemory())
    return Context.open(
        store,
        id=name, memory=NullMemory(), owner="alice", system="You plan journeys.", window=1_600, reply=200,
        counter=count,
        nonce="00000000", clock=None,
    )  # fmt: skip


def user(text: str) -> Message:
    """Return a user's message."""
    return {"role": "user", "content": text}


def assistant(text: str) -> Message:
    """Return a model's answer."""
    return {"role": "assistant", "content": text}


def calling(*names: str, tool: str = "search", arguments: str = "{}") -> Message:
    """Return a model's calls of one tool."""
    calls = [{"id": name, "type": "function", "function": {"name": tool, "arguments": arguments}} for name in names]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(name: str, text: str) -> Message:
    """Return a tool's answer."""
    return {"role": "tool", "tool_call_id": name, "content": text}


def _append(name: str, *messages: Message, op: bool = True, context: str = MAIN) -> Step:
    op_id = f"op-{name}" if op else None

    def act(play: Play) -> object:
        receipt = play.context(context).append_turn(*messages, op_id=op_id, at="2026-01-02T03:04:05+00:00")
        play.pages[name] = receipt.page
        return receipt

    return Step(f"append {name}", act, context, op_id, messages)


def _turn(name: str, size: int = 20, *, op: bool = True, context: str = MAIN) -> Step:
    asked, told = f"{name}: where to? " + "north " * size, f"{name}: to Oslo. é \U0001f600 \x00" + "fjord " * 2 * size
    return _append(name, user(asked), assistant(told), op=op, context=context)


def _recall_by_tool(play: Play) -> object:
    call = calling("r1", tool="recall_page", arguments=f'{{"page_index": {play.pages["first"]}}}')
    play.answers = play.context().answers(call)
    return play.answers


def _quote(play: Play) -> object:
    call = calling("r1", tool="recall_page", arguments=f'{{"page_index": {play.pages["first"]}}}')
    return play.context().append_turn(
        user("What did I say?"), call, *play.answers, assistant("North."), op_id="op-quote"
    )


def _fork(play: Play) -> object:
    if play.store.load(FORK) is None:
        play.contexts[FORK] = play.context().fork(FORK)
    return play.context(FORK)


def _erase(play: Play) -> object:
    try:
        return play.context().erase(play.pages["secret"])
    except Erased:
        return None


def _steps() -> Iterator[Step]:
    yield Step("open", lambda play: play.context())
    yield _turn("first")
    yield _turn("second", op=False)
    yield _append(
        "tools", user("Look it up."), calling("a", "b"), result("a", "ten ferries"), result("b", "rain " * 300),
        assistant("It rains."),
    )  # fmt: skip
    yield _turn("secret")
    yield Step("render", lambda play: play.context().render(user("And now?")))
    yield _turn("third", 48)
    yield _turn("fourth", 48, op=False)
    yield Step("archive", lambda play: play.context().archive(keep=2))
    yield Step("recall", lambda play: play.context().recall_page(play.pages["first"]))
    yield Step("pin", lambda play: play.context().pin(play.pages["second"]))
    yield Step("close early", Play.close, restarts=True)
    yield _turn("fifth", 64)
    yield _append("call", user("Read me the guide."), calling("c"))
    yield _append("guide", result("c", "Chapter one. " * 900))
    yield _append("more", assistant("It is long."), calling("d"), result("d", "ok " * 60), op=False)
    yield _append("end", assistant("Done."))
    yield Step("undo", lambda play: play.context().undo())
    yield _turn("sixth", 48)
    yield Step("recall by tool", _recall_by_tool)
    yield Step("append quote", _quote, op_id="op-quote")
    yield Step("close midway", Play.close, restarts=True)
    yield _turn("seventh", 48)
    yield Step("unpin", lambda play: play.context().unpin(play.pages["second"]))
    yield _turn("eighth", 64, op=False)
    yield Step("fork", _fork)
    yield _turn("ninth", 32, context=FORK)
    yield _turn("tenth", 32)
    yield Step("erase", _erase)
    yield Step("refresh fork", lambda play: play.context(FORK).refresh(), FORK)
    yield Step("render fork", lambda play: play.context(FORK).render(), FORK)
    yield _turn("eleventh", 48, context=FORK)
    yield Step("close late", Play.close, restarts=True)
    yield Step("archive all", lambda play: play.context().archive(keep=1))
    yield _append("steps", user("Go step by step."), *(
        each for n in range(6) for each in (calling(f"s{n}"), result(f"s{n}", f"step {n} " * 40))
    ), assistant("Arrived."))  # fmt: skip
    yield Step("undo fork", lambda play: play.context(FORK).undo(), FORK)
    yield _turn("twelfth", 48)
    yield Step("recall fork", lambda play: play.context(FORK).recall_page(play.pages["third"]), FORK)
    yield _turn("thirteenth", 16, op=False)
    yield Step("close again", Play.close, restarts=True)
    yield Step("render again", lambda play: play.context().render(user("Still there?")))
    yield _turn("fourteenth", 48)
    yield Step("close at last", Play.close, restarts=True)


STEPS: tuple[Step, ...] = tuple(_steps())
