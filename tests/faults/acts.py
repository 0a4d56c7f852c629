"""What a bomb goes off in: one act of a program with its context, and the states that may be seen after it.

    before ──▶ append (entries and pages) ──▶ a compaction of its own        legal afterwards: any of the three
    before ──▶ erase                                                       legal afterwards: either

The window is small, so that compactions come by themselves and pages are unloaded all the time. This module knows
nothing of bombs.
"""

import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from memci import Context, EphemeralStorage, Policy
from memci.memory import NullMemory
from memci.storage.protocol import Storage

from .flawed import FLAWED
from .scenario import MAIN, STORES, count
from .worker import room

ON_DISK = {name: store.make for name, store in {**STORES, **FLAWED}.items()}


def opened(storage: Storage, name: str = MAIN, *, read_only: bool = False) -> Context:
    """Open a context of the scenario: small enough for compactions, with rules that unload pages all the time."""
    shown = {"memory": NullMemory(), "system": "Be brief.", "window": 640, "reply": 100, "counter": count}
    policy = Policy(contents_tokens=90, never_recalled=2)
    if read_only:
        return Context.view(storage, name, policy=policy, **shown)
    return Context.open(storage, name, policy=policy, nonce="1f9a03c2", clock=None, **shown)


def turn(number: int) -> list[dict[str, object]]:
    """Return one interaction."""
    said = f"Flight HAT{number:03} costs ${100 + number}. " * 3
    question = f"Question {number}: what does the flight to Oslo cost?"
    return [{"role": "user", "content": question}, {"role": "assistant", "content": said}]


def talk(number: int, context: Context) -> None:
    """Append one interaction."""
    context.append_turn(*turn(number), op_id=f"turn-{number}")


def group(context: Context) -> None:
    """Append a call and its result, which is large."""
    call = {"id": "c1", "type": "function", "function": {"name": "fares", "arguments": '{"to": "Oslo"}'}}
    result = {"role": "tool", "tool_call_id": "c1", "content": "row of fares " * 200}
    calls = {"role": "assistant", "content": None, "tool_calls": [call]}
    context.append_turn("And tomorrow?", calls, result, op_id="group")


def overtake(storage: Storage) -> None:
    """Let another handle write."""
    with opened(storage) as other:
        talk(80, other)


class Act(NamedTuple):
    """What a bomb goes off in."""

    calls: Sequence[Callable[[Context], object]]
    overtaken: bool = False
    """whether another handle has written first"""
    appends: bool = False
    """whether it appends, with an op_id: so it may be repeated, and its compaction is a transaction of its own"""


ACTS = {
    "append": Act([partial(talk, 90)], appends=True),
    "append a group": Act([group], appends=True),
    "append, compaction": Act([partial(talk, number) for number in (91, 92, 93, 94, 95)], appends=True),
    "archive": Act([lambda context: context.archive(keep=0)]),
    "recall": Act([lambda context: context.recall_page(2)]),
    "pin": Act([lambda context: context.pin(3)]),
    "undo": Act([lambda context: context.undo()]),
    "render": Act([lambda context: context.render("What else? " * 40)]),
    "fork": Act([lambda context: context.fork("bob").close()]),
    "fork at": Act([lambda context: context.fork("bob", at=4).close()]),
    "erase": Act([lambda context: context.erase(4)]),
    "erase entry": Act([lambda context: context.erase(2, 1)]),
    "refresh": Act([lambda context: context.refresh()], overtaken=True),
}


class State(NamedTuple):
    """What is stored."""

    said: dict[str, list[dict[str, Any]]]
    """the messages of each context"""
    pages: str


def state(storage: Storage) -> State:
    """Return what a fresh handle finds in *storage*."""
    said, pages = {}, []
    for record in storage.contexts():
        with opened(storage, record.id, read_only=True) as context:
            said[record.id] = list(context.messages())
            pages += [
                (page.index, page.where, page.entries, page.pinned, page.recall_count) for page in context.pages()
            ]
    return State(said, repr(pages))


def filled(storage: Storage) -> None:
    """Make the context that each act begins with."""
    with opened(storage) as context:
        for number in range(9):
            talk(number, context)


class Site:
    """Where a bomb goes off: a store with a context in it, and the one handle on that."""

    def __init__(self, store: str, act: str, folder: Path) -> None:
        self._make = ON_DISK[store] if store != "ephemeral" else None
        self._folder = folder
        if self._make is not None:
            shutil.copytree(_template(store), folder, dirs_exist_ok=True)
        self.storage: Storage = EphemeralStorage() if self._make is None else self._make(folder)
        if self._make is None:
            filled(self.storage)
        self.context = opened(self.storage)
        self.act = ACTS[act]
        self.stale = list(self.context.messages()) if self.act.overtaken else None
        """what the handle shows until it is refreshed, if another one has written"""
        if self.act.overtaken:
            overtake(self.storage)

    def play(self) -> None:
        """Make the calls of the act."""
        for call in self.act.calls:
            call(self.context)

    def again(self) -> Storage:
        """Return a fresh handle on what is there."""
        return self.storage if self._make is None else self._make(self._folder)


@cache
def _template(store: str) -> Path:
    made = room()
    _ROOMS.append(made)
    with closing(ON_DISK[store](Path(made.name))) as storage:
        filled(storage)
    return Path(made.name)


_ROOMS: list[tempfile.TemporaryDirectory[str]] = []
"""folders that are to stay until the process ends"""
