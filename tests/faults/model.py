"""The scenario without a fault: the exact state of its store after each commit.

    open   append            archive   append, and a compaction of itself
    0      1                 2         3        4                          states: every row, every message, every page

A fault may leave a store in one of these states and in no other. This module knows nothing of how faults are made.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from memci.errors import PageNotFound
from memci.history.verify import problems
from memci.rows import OpRow
from memci.storage.protocol import ErasedRows, Erasure, Storage, Transition

from .scenario import STEPS, Make, Message, Play, opened

Key = tuple[tuple[str, int], ...]
"""(context, revision) of every context in a store"""


class State(NamedTuple):
    """A store at one moment."""

    key: Key
    rows: dict[str, str]
    """a digest of all rows of each context"""
    said: dict[str, str]
    """a digest of the messages of each context"""
    recalled: dict[tuple[str, int], str]
    """a digest of what recall_page returns, by context and page"""


@dataclass
class Model:
    """The scenario without a fault."""

    states: list[State] = field(default_factory=list)
    """after each commit; the first one is of a store with nothing in it"""
    after: list[int] = field(default_factory=list)
    """which of them each step leaves"""

    rows: dict[tuple[str, int], set[str]] = field(default_factory=dict)
    """digests of all rows of a context, by its name and revision; a fork's change with what it shares"""
    pages: dict[str, int] = field(default_factory=dict)
    """the pages that the program has noted at its end, by name"""
    answers: list[Message] = field(default_factory=list)
    """the answers that it has noted at its end"""
    places: dict[Key, int] = field(default_factory=dict)

    def add(self, found: State) -> None:
        """Take the next state."""
        self.places[found.key] = len(self.states)
        self.states.append(found)
        for each in found.key:
            self.rows.setdefault(each, set()).add(found.rows[each[0]])

    def place(self, key: Key) -> int | None:
        """Return which state has the revisions *key*."""
        return self.places.get(key)

    def span(self, done: int, *, started: bool) -> tuple[int, int]:
        """Return the first and the last state that are legal when *done* steps were acknowledged."""
        low = self.after[done - 1] if done else 0
        return low, self.after[done] if started and done < len(self.after) else low


def modelled(make: Make) -> Model:
    """Play the scenario with nothing wrong, and return all its states.

    Raises:
        AssertionError: If a step shows half of its messages between two of its commits.
    """
    model = Model()
    with tempfile.TemporaryDirectory() as folder:
        with closing(make(Path(folder))) as store:
            model.add(state(store, None))
        play = Play(
            lambda path: Watched(make(path), lambda store: model.add(state(store, model.states[-1]))), Path(folder)
        )
        for step in STEPS:
            first = len(model.states) - 1
            step.act(play)
            model.after.append(len(model.states) - 1)
            said = [each.said for each in model.states[first:]]
            halves = [each for each in said if each not in (said[0], said[-1])]
            assert not halves, f"{step.name!r} shows half of what it changes"
        model.pages, model.answers = play.pages, play.answers
    return model


class Watched:
    """A store that shows its *inner* store to *look* after each change."""

    def __init__(self, inner: Storage, look: Callable[[Storage], object]) -> None:
        self._inner = inner
        self._look = look
        self.load, self.revision, self.pages, self.entries = inner.load, inner.revision, inner.pages, inner.entries
        self.pages_at, self.entries_at = inner.pages_at, inner.entries_at
        self.compactions, self.ops, self.op, self.contexts = inner.compactions, inner.ops, inner.op, inner.contexts
        self.calls, self.forks = inner.calls, inner.forks
        self.tickets, self.replace_ticket, self.close = inner.tickets, inner.replace_ticket, inner.close

    def commit(self, transition: Transition) -> OpRow | None:
        """Commit, and show it."""
        known = self._inner.commit(transition)
        if known is None:
            self._look(self._inner)
        return known

    def erase(self, erasure: Erasure) -> ErasedRows:
        """Erase, and show it."""
        gone = self._inner.erase(erasure)
        self._look(self._inner)
        return gone


class Found(NamedTuple):
    """What is in a store."""

    key: Key
    rows: dict[str, str]
    wrong: tuple[str, ...] = ()
    """what is wrong with it, whatever was acknowledged"""


def fingerprint(store: Storage) -> Found:
    """Return which state *store* is in, and a digest of every row of every context. O(rows)."""
    key: list[tuple[str, int]] = []
    rows: dict[str, str] = {}
    for record in store.contexts():
        key.append((record.id, record.revision))
        whole = [store.load(record.id), *map(list, _rows(store, record.id))]
        rows[record.id] = digest(whole)
    return Found(tuple(key), rows)


def state(store: Storage, before: State | None) -> State:
    """Return all that is promised of the state that *store* is in, after the one *before*. O(messages)."""
    found = fingerprint(store)
    said: dict[str, str] = {}
    recalled: dict[tuple[str, int], str] = {}
    for name, _ in found.key:
        if before is not None and before.rows.get(name) == found.rows[name]:
            said[name] = before.said[name]
            recalled |= {each: text for each, text in before.recalled.items() if each[0] == name}
            continue
        assert not list(problems(store, name)), f"{name!r} has problems without any fault"
        said[name], texts = heard(store, name)
        recalled |= {(name, index): text for index, text in texts.items()}
    return State(found.key, found.rows, said, recalled)


def heard(store: Storage, name: str) -> tuple[str, dict[int, str]]:
    """Return digests of the messages of a context, and of what each page recalls; the context is only read."""
    with opened(store, name, read_only=True) as context:
        pages: dict[int, str] = {}
        for page in context.pages():
            try:
                pages[page.index] = digest(context.recall_page(page.index))
            except PageNotFound as error:
                pages[page.index] = type(error).__name__
        return digest(list(context.messages())), pages


def told(store: Storage) -> dict[str, str]:
    """Return a digest of the messages of every context."""
    said = {}
    for record in store.contexts():
        with opened(store, record.id, read_only=True) as context:
            said[record.id] = digest(list(context.messages()))
    return said


def _rows(store: Storage, name: str) -> Iterator[Iterator[object]]:
    yield store.entries(name)
    yield store.pages(name)
    yield store.compactions(name)
    yield store.ops(name)


def digest(value: object) -> str:
    """Return a digest of *value*, by its repr."""
    return blake2b(repr(value).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
