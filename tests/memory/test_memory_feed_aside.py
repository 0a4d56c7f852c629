"""A page that a memory can't take is set aside: no page behind it waits, it is counted, and it is fed after a fix."""

import contextlib
import logging

import numpy as np
import pytest
from machine_chats import chat, talk, word

from memci import Context, EphemeralStorage
from memci.cli.doctor import _contents
from memci.errors import StorageUnavailable
from memci.memory import TieredMemory
from memci.memory.backend import PageRecord, Scope
from memci.memory.retrieval.embedders import embed

pytestmark = pytest.mark.usefixtures("alone")

POISON = 3
"""the turn whose words a memory can't take"""


class Choosy(TieredMemory):
    """A memory that raises at one text, until it is mended."""

    broken = True
    deaf = False
    """whether it can take nothing at all"""

    def observe(self, page: PageRecord) -> None:
        self._take(page)
        super().observe(page)

    def admit(self, page: PageRecord) -> None:
        self._take(page)
        super().admit(page)

    def _take(self, page: PageRecord) -> None:
        if self.broken and (self.deaf or word(POISON) in str(page.entries)):
            raise TypeError(word(POISON))

    def erase(self, scope: Scope):
        if self.broken and scope.pages == (POISON,):
            raise KeyError(POISON)
        return super().erase(scope)


class Forgetful:
    """The same without `set_aside`: a memory of another kind."""

    def __init__(self, memory: Choosy) -> None:
        self._memory = memory

    def __getattr__(self, name: str):
        if name in {"set_aside", "run_job", "has_model", "summaries", "work", "observed", "end_session", "overdue"}:
            raise AttributeError(name)
        return getattr(self._memory, name)


def finds(context: Context, turn: int) -> bool:
    return any(word(turn) in each.text for page in context.search_memory(word(turn)).pages for each in page.pieces)


@pytest.mark.parametrize("kind", [lambda memory: memory, Forgetful], ids=["tiers", "another"])
def test_page_that_cannot_be_fed_is_set_aside_and_fed_after_a_fix(storage, kind, caplog):
    """Pages behind it are found, the report counts it, no log repeats it, and a flush after the fix feeds it."""
    memory = Choosy(storage, owner="alice")
    context = talk(chat(storage, memory=kind(memory)), range(1, 12))
    context.archive(keep=0)

    with caplog.at_level(logging.DEBUG, "memci"):
        context.flush()
        again = context.search_memory(word(POISON))
    counted = context.report()

    assert [finds(context, turn) for turn in (POISON - 1, POISON, POISON + 1)] == [True, False, True]
    assert (counted.set_aside, again.pending) == (1, 1)
    assert "set aside" in counted.warnings[-1]
    assert word(POISON) not in caplog.text

    memory.broken = False
    context.flush()

    assert finds(context, POISON)
    assert context.report().set_aside == context.search_memory("x").pending == 0


def test_page_that_was_set_aside_is_known_to_who_opens_the_store_again(storage, tmp_path):
    """Another process counts it, `memci doctor` shows it, and feeding it there makes it found here."""
    talk(chat(storage, memory=Choosy(storage, owner="alice")), range(1, 12)).flush()

    shown = [each for each in _contents(str(tmp_path / "agent.db")) if each.name == "memory"]
    fixed = chat(storage, memory=TieredMemory(storage, owner="alice"))
    fixed.search_memory("x")
    counted = fixed.report().set_aside
    fixed.flush()
    fixed.archive(keep=0)

    assert [each.state for each in shown] == ["warning"]
    assert shown[0].text.startswith("1 page set aside")
    assert counted == 1
    assert finds(fixed, POISON)
    assert [each.name for each in _contents(str(tmp_path / "agent.db"))][-1:] == ["contexts"]


def test_memory_that_takes_nothing_is_no_page_that_is_set_aside(storage):
    """If even a page without messages is refused, the pages wait, and the error is one of the store."""
    memory = Choosy(storage, owner="alice")
    memory.deaf = True
    context = talk(chat(storage, memory=memory), range(1, 5))

    with pytest.raises(StorageUnavailable, match="no page"):
        context.flush()
    memory.broken = False
    context.flush()
    context.archive(keep=0)

    assert all(finds(context, turn) for turn in range(2, 4))


def test_erasure_that_a_memory_fails_at_is_never_passed_over(storage):
    """The receipt says that the memory still has it, until it has not."""
    memory = Choosy(storage, owner="alice")
    context = talk(chat(storage, memory=memory), range(1, 6))
    context.flush()

    receipt = context.erase(POISON)
    with pytest.raises(StorageUnavailable, match="erase page #3"):
        context.flush()
    memory.broken = False
    context.flush()

    assert receipt.memory == "pending"
    assert context.report().set_aside == 0


class Meaning:
    """An embedder of meanings that fails at one text, until it is mended."""

    name, dimension, semantic, broken = "meaning", 4, True, True

    def __call__(self, texts):
        if self.broken and any(word(POISON) in text for text in texts):
            raise ValueError("no")
        return np.ones((len(texts), 4), np.float32)


def test_passage_that_cannot_be_embedded_keeps_no_other_from_it(storage):
    """All other passages get their vectors; it gets its own at the next maintenance after the fix."""
    embedder = Meaning()
    memory = TieredMemory(storage, owner="alice", embedder=embedder)
    context = talk(chat(storage, memory=memory), range(1, 8))

    context.flush()
    owner = memory.session.owner
    left = owner.passages.unembedded("meaning", 99, after=0)
    embedder.broken = False
    memory.maintain()

    assert len({page for _, page, *_ in left}) == 1
    assert owner.passages.unembedded("meaning", 99, after=0) == []
    assert embed(embedder, ["x"]).shape == (1, 4)


class Counted(TieredMemory):
    """A memory that counts how often it is asked what was set aside."""

    asked = 0

    def set_aside(self, context: str):
        self.asked += 1
        return super().set_aside(context)


def test_a_request_does_not_ask_what_was_set_aside() -> None:
    """It takes a read of all pages of the context: only what shows the number asks for it, once."""
    store = EphemeralStorage()
    with contextlib.closing(Counted(store, owner="ada")) as memory:
        for number in range(3):
            with Context.open(store, "a", owner="ada", window=4_000, memory=memory) as context:
                context.append_turn(f"Seat {number}A, please.", {"role": "assistant", "content": "Noted."})
        assert memory.asked == 0
        with Context.open(store, "a", memory=memory) as context:
            assert context.search_memory("seat", seen=False).pending == 0
            assert context.report().set_aside == 0
        assert memory.asked == 1
