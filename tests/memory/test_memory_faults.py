"""Wherever a memory is interrupted, its tables are as before or after, and repeating the act ends where it would have.

observe, admit, hand-over, analysis, eviction, search, erasure    a bomb at a line (see tests/faults)
"""

import contextlib
import inspect
import os
import signal
from functools import cache
from itertools import cycle

import apsw
import pytest
from machine_kit import check, connection, die, items, keeping, pages, rows, tiers

from memci import EphemeralStorage, SQLiteStorage
from memci.errors import StorageBusy, StorageFull
from memci.memory import TieredMemory
from memci.memory.backend import PageRecord, Scope
from memci.memory.owner import Owner
from memci.memory.repository.home import tables_of
from memci.memory.repository.sqlite import SQLiteMemory
from memci.memory.tiers.rules import Rules
from memci.testing.memory.pages import saying, told
from tests.faults.bombs import Bomb

RULES = Rules(capacity=3, batch=2, episodes=20, threshold=1.2, promoted=1.0, accesses=1)
BOMBS = int(os.environ.get("MEMCI_BOMBS", "8"))
"""lines of an act at which a bomb goes off, spread over those that it executes for the first time"""
NOW = 2e9


def page(index, topic="flight plane airport Oslo seat", **given) -> PageRecord:
    given = {"at": 1e5 + 90_000.0 * index, **given}
    return told(index, f"I like quokka{index:02} and {topic}", f"I booked {topic}", **given)


def made(storage, count=9):
    """Return a memory with pages in every tier; two more are in the store, unmarked."""
    memory = TieredMemory(storage, owner="anna", rules=RULES, clock=lambda: NOW)
    for index in range(1, count + 3):
        keeping(storage)(page(index, ("flight Oslo seat", "dog vet paw", "violin string")[index % 3]))
    for index in range(1, count + 1):
        told_of = page(index, ("flight Oslo seat", "dog vet paw", "violin string")[index % 3])
        memory.admit(told_of)
    return memory


def handed_over(storage):
    memory = made(storage)
    memory.maintain(NOW)
    return memory


def next_page(index):
    return page(index, ("flight Oslo seat", "dog vet paw", "violin string")[index % 3])


ACTS = {
    "observe": (made, lambda memory: memory.observe(next_page(10))),
    "observe again": (handed_over, lambda memory: memory.observe(page(4, "submarine"))),
    "admit": (made, lambda memory: memory.admit(next_page(10))),
    "maintain": (made, lambda memory: memory.maintain(NOW)),
    "search": (handed_over, lambda memory: memory.search("quokka05 flight")),
    "erase": (handed_over, lambda memory: memory.erase(Scope("alice", (3, 8)))),
    "erase context": (handed_over, lambda memory: memory.erase(Scope("alice"))),
    "erase all": (handed_over, lambda memory: memory.erase(Scope())),
}


def state(memory):
    """Return what is stored, but ids and warmths."""
    return (
        [row[:3] for row in pages(memory)],
        sorted(each["summary"] for each in items(memory, "episode").values()),
        sorted(each["text"] for each in items(memory, "fact").values()),
        rows(memory, "SELECT count(*) FROM memory_passage"),
        rows(memory, "SELECT count(*) FROM memory_vector"),
    )


@cache
def known(act):
    """Return the lines of an act at which a bomb is worth while, and what is stored at its end."""
    prepared, call = ACTS[act]
    call(prepared(EphemeralStorage()))  # what is imported or cached by the first call does not count
    memory, bomb = prepared(EphemeralStorage()), Bomb()
    assert bomb.around(lambda: call(memory)) is None
    lines = sorted(bomb.firsts.values())
    return lines[:: max(1, len(lines) // BOMBS)], state(memory)


@pytest.mark.parametrize("act", ACTS)
def test_interrupted_act_is_done_by_repeating_it(act):
    """The same handle, or a fresh one, does what was interrupted as if nothing had been; the tiers hold throughout."""
    lines, expected = known(act)
    prepared, call = ACTS[act]
    kinds = cycle([KeyboardInterrupt, MemoryError])
    for number, (line, kind) in enumerate(zip(lines, kinds, strict=False)):
        storage = EphemeralStorage()
        memory, bomb = prepared(storage), Bomb(line, kind)
        error = bomb.around(lambda memory=memory: call(memory))
        assert isinstance(error, kind) or act == "maintain", f"{bomb.place}: it was swallowed"
        if number % 4 > 1:
            die(storage)
            memory = TieredMemory(storage, owner="anna", rules=RULES, clock=lambda: NOW)
        check(memory)

        call(memory)
        memory.maintain(NOW) if act == "maintain" else None

        check(memory)
        if kind is MemoryError and "embedder" in str(bomb.place):
            continue  # an embedder that fails is done without: words find these pages
        assert state(memory) == expected, f"{bomb.place}, {'a fresh handle' if number % 4 > 1 else 'the same handle'}"
        for context, index in list(tiers(memory))[number % 3 :: 3]:
            assert saying(memory, f"quokka{index:02}") == [(context, index)] or act == "observe again", bomb.place


def test_change_that_is_interrupted_at_its_very_end_leaves_the_owner_usable():
    """Wherever in a change it is interrupted, the same handle erases afterwards, and knows what is stored."""
    prepared, call = ACTS["erase context"]
    memory, bomb = prepared(EphemeralStorage()), Bomb()
    bomb.around(lambda: call(memory))
    source, first = inspect.getsourcelines(Owner.change)
    own = range(first, first + len(source))
    lines = [at for (name, line), at in bomb.firsts.items() if name.endswith("owner.py") and line in own]

    for line in lines:
        memory, bomb = prepared(EphemeralStorage()), Bomb(line, KeyboardInterrupt)
        assert isinstance(bomb.around(lambda memory=memory: call(memory)), KeyboardInterrupt), bomb.place
        call(memory)
        check(memory)
        assert items(memory, "episode") == {}, bomb.place
        assert not memory.search("quokka05").pages, bomb.place


@pytest.mark.slow
@pytest.mark.parametrize("act", ["observe", "maintain", "erase"])
def test_killed_process_leaves_before_or_after(tmp_path, act):
    """A process that is killed within an act leaves a file that the next one goes on with."""
    lines, expected = known(act)
    prepared, call = ACTS[act]
    for line in lines[:: max(1, len(lines) // 4)]:
        path = tmp_path / f"{act} {line}.db"
        child = os.fork()
        if not child:
            signal.alarm(20)
            with contextlib.suppress(BaseException):
                memory = prepared(SQLiteStorage(path, durability="fast"))
                Bomb(line).around(lambda memory=memory: call(memory))
            os._exit(0)
        os.waitpid(child, 0)

        with contextlib.closing(SQLiteStorage(path, durability="fast")) as storage:
            memory = TieredMemory(storage, owner="anna", rules=RULES, clock=lambda: NOW)
            check(memory)
            call(memory)
            check(memory)
            assert state(memory) == expected, f"line {line}"
            memory.close()


@pytest.mark.parametrize("act", ["observe", "maintain", "erase"])
def test_full_disk_changes_nothing(tmp_path, act):
    """Without room an act is done, or is StorageFull and leaves what was; with room again the same handle does it."""
    prepared, call = ACTS[act]
    with contextlib.closing(SQLiteStorage(tmp_path / "agent.db", durability="fast")) as storage:
        memory = prepared(storage)
        before = state(memory)
        limit = connection(memory).pragma("max_page_count")
        connection(memory).pragma("max_page_count", connection(memory).pragma("page_count"))
        with pytest.raises(StorageFull):  # until no room is left in the pages that the file has
            for index in range(1, 200):
                memory.observe(told(index, f"filler{index} " * 500, context="filler"))
        filled = state(memory)

        full = False
        try:
            call(memory)
        except StorageFull:
            full = True
        check(memory)
        unchanged = state(memory) == filled
        connection(memory).pragma("max_page_count", limit)
        memory.erase(Scope("filler"))
        call(memory)

        assert unchanged or not full or act == "maintain", "maintenance goes as far as it can"
        assert state(memory) == known(act)[1] != before
        check(memory)


def test_busy_file_is_busy_and_later_it_is_done(tmp_path, monkeypatch):
    """While somebody else writes the file, the memory is busy; what it knows can be searched all the while."""
    monkeypatch.setattr("memci.memory.repository.sqlite._BUSY_MILLISECONDS", 20)
    path = tmp_path / "agent.db"
    with contextlib.closing(SQLiteStorage(path, durability="fast")) as storage:
        memory = made(storage)
        other = apsw.Connection(str(path))
        other.execute("BEGIN IMMEDIATE")

        for call in (
            lambda: memory.observe(next_page(10)),
            lambda: memory.maintain(NOW),
            lambda: memory.erase(Scope()),
        ):
            with pytest.raises(StorageBusy) as caught:
                call()
            assert caught.value.retryable
        assert saying(memory, "quokka03") == [("alice", 3)]

        other.execute("ROLLBACK")
        other.close()
        memory.observe(next_page(10))
        memory.maintain(NOW)
        check(memory)
        assert saying(memory, "quokka10") == [("alice", 10)]


def test_search_of_what_was_visited_goes_on_while_the_file_is_busy(tmp_path, monkeypatch):
    """A search whose visit can't be written just now is answered, or busy; nothing is lost by it."""
    monkeypatch.setattr("memci.memory.repository.sqlite._BUSY_MILLISECONDS", 20)
    path = tmp_path / "agent.db"
    with contextlib.closing(SQLiteStorage(path, durability="fast")) as storage:
        memory = handed_over(storage)
        mid = next(index for (_, index), tier in tiers(memory).items() if tier == "mid")
        other = apsw.Connection(str(path))
        other.execute("BEGIN IMMEDIATE")

        with contextlib.suppress(StorageBusy):
            hits = memory.search(f"quokka{mid:02}").pages
            assert hits[0].index == mid

        other.execute("ROLLBACK")
        other.close()
        assert memory.search(f"quokka{mid:02}").pages[0].index == mid
        check(memory)


def test_memory_that_is_stopped_while_it_opens_lets_its_store_close(tmp_path, monkeypatch):
    """Ctrl-C between the store's sidecar and the tables in it leaves nothing that fails when the store closes."""

    def stopped(*_, **__):
        raise KeyboardInterrupt

    storage = SQLiteStorage(tmp_path / "agent.db")
    with monkeypatch.context() as patched:
        patched.setattr(SQLiteMemory, "__init__", stopped)
        with pytest.raises(KeyboardInterrupt):
            tables_of(storage)

    storage.close()
