"""The tiers beside other processes, after damage, and where a step fails."""

import contextlib
import multiprocessing
from unittest.mock import Mock

import pytest
from machine_kit import check, die, items, keeping, pages, rows
from tiers_kit import SMALL, fill

from memci import SQLiteStorage
from memci.errors import HandlePoisoned
from memci.memory import TieredMemory
from memci.memory.backend import Scope
from memci.memory.tiers.rules import Rules
from memci.storage import FilesystemStorage
from memci.testing.memory.pages import found, saying, told


@pytest.fixture
def memory(storage):
    return TieredMemory(storage, owner="anna", rules=SMALL, clock=lambda: 1e6)


def test_failed_analysis_marks_nothing(storage, monkeypatch):
    """If facts or the profile can't be made, no page counts as analysed, and later it is done after all (P04, P06)."""

    def fails(*_):
        raise RuntimeError("the model is away")

    memory = TieredMemory(storage, owner="anna", rules=Rules(capacity=2, batch=2, promoted=1.0))
    marked = "SELECT count(*) FROM memory_page WHERE marks > 0"
    with monkeypatch.context() as broken:
        broken.setattr("memci.memory.consolidation.fact_extraction.facts_of", fails)
        fill(memory, 4, topic="I like violins")
        assert rows(memory, marked) == [(0,)]
        assert items(memory, "fact") == {}

    memory.maintain(9e5)

    assert rows(memory, marked) == [(4,)]


def test_a_handle_that_can_not_work_is_no_fault_of_an_episode(storage, monkeypatch, caplog):
    """As in a child that inherited it: the caller gets the error, nothing is logged, and no episode is given up."""
    memory = TieredMemory(storage, owner="anna", rules=Rules(capacity=2, batch=2, promoted=1.0))
    with monkeypatch.context() as broken:
        broken.setattr(
            "memci.memory.consolidation.fact_extraction.facts_of", Mock(side_effect=HandlePoisoned("forked"))
        )
        with pytest.raises(HandlePoisoned):
            fill(memory, 4, topic="I like violins")

    assert caplog.records == []
    assert not memory.session.owner.failures


def test_hot_episode_does_not_starve_another(storage):
    """Every episode that is hot is analysed in one maintenance, not only the hottest (P06)."""
    memory = TieredMemory(
        storage, owner="anna", rules=Rules(capacity=1, batch=1, threshold=9, gap_seconds=0.5, promoted=1.0)
    )
    fill(memory, 5)

    memory.maintain(9e5)

    assert rows(memory, "SELECT count(*) FROM memory_page WHERE tier = 2 AND marks = 0") == [(0,)]


@pytest.mark.parametrize("kind", ["sqlite", "files"])
def test_process_that_dies_has_lost_nothing(tmp_path, kind):
    """Without any close, what was told is there for the next process, with its tiers and links (P23)."""
    storage = SQLiteStorage(tmp_path / "agent.db") if kind == "sqlite" else FilesystemStorage(tmp_path / "agent")
    memory = TieredMemory(storage, owner="anna", rules=SMALL, clock=lambda: 1e6)
    fill(memory, 9)
    memory.search("quokka03")
    before = (pages(memory), items(memory, "episode"), items(memory, "chain"))

    die(storage)
    again = TieredMemory(storage, owner="anna", rules=SMALL, clock=lambda: 1e6)

    check(again)
    assert (pages(again), items(again, "episode"), items(again, "chain")) == before
    assert saying(again, "quokka03") == [("alice", 3)]
    again.close()
    storage.close()


@pytest.mark.parametrize("damage", ["torn", "emptied", "garbage"])
def test_damaged_tables_are_told_and_never_begun_anew(tmp_path, damage):
    """A file of the memory that is torn is an error, never an empty memory that overwrites it (P07)."""
    from memci.errors import StorageError

    path = tmp_path / "agent" / "memory.db"
    with contextlib.closing(FilesystemStorage(tmp_path / "agent")) as storage:
        memory = TieredMemory(storage, owner="anna", rules=SMALL)
        fill(memory, 6)
        memory.close()
    for each in path.parent.glob("memory.db-*"):
        each.unlink()
    whole = path.read_bytes()
    torn = {"torn": whole[: len(whole) // 2], "garbage": b"not a database " * 999, "emptied": b""}[damage]
    path.write_bytes(torn)

    with contextlib.closing(FilesystemStorage(tmp_path / "agent")) as storage:
        memory = TieredMemory(storage, owner="anna", rules=SMALL)
        if damage == "emptied":  # as if it had been deleted: it is told again
            assert memory.acknowledged("alice") == 0
            fill(memory, 6)
            assert saying(memory, "quokka03") == [("alice", 3)]
        else:
            with pytest.raises(StorageError):
                memory.search("quokka03")
            with pytest.raises(StorageError):
                fill(memory, 1, start=7)
            assert path.read_bytes()[: len(torn)] == torn
        memory.close()


def test_two_processes_lose_nothing_of_each_other(tmp_path):
    """Of what two processes tell, search and look after at once, everything is there afterwards (P13)."""
    path = tmp_path / "agent.db"

    def live(name):
        storage = SQLiteStorage(path, durability="fast", busy_timeout_seconds=20)
        memory = TieredMemory(storage, owner="anna", rules=Rules(capacity=4, batch=2, episodes=3))
        for index in range(1, 13):
            page = told(index, f"{name}quokka{index:02}", "a topic", context=name)
            keeping(storage)(page)
            memory.admit(page)
            memory.search("topic")
            memory.maintain(float(index))

    children = [multiprocessing.get_context("fork").Process(target=live, args=(name,)) for name in ("one", "two")]
    for child in children:
        child.start()
    for child in children:
        child.join(60)

    assert [child.exitcode for child in children] == [0, 0]
    with contextlib.closing(SQLiteStorage(path)) as storage:
        memory = TieredMemory(storage, owner="anna", rules=SMALL)
        check(memory)
        for name in ("one", "two"):
            assert memory.acknowledged(name) == 12
            assert all(saying(memory, f"{name}quokka{index:02}") == [(name, index)] for index in range(1, 13))


def test_one_handle_may_be_closed_twice_beside_another(storage):
    """close() gives back what this handle held, once: another handle on the same store goes on."""
    memory, other = (TieredMemory(storage, owner=name, rules=SMALL) for name in ("anna", "bob"))
    fill(memory, 1)
    fill(other, 1, context="bobs")

    memory.close()
    memory.close()

    assert found(other, "quokka01") == [("bobs", 1)]
    other.close()


def test_reading_writes_nothing(tmp_path):
    """A handle that only reads finds everything, counts nothing as visited, and is refused what would write."""
    from memci.errors import StorageReadOnly

    path = tmp_path / "agent.db"
    with contextlib.closing(SQLiteStorage(path)) as storage:
        fill(TieredMemory(storage, owner="anna", rules=SMALL), 9)
    before = path.read_bytes()

    with contextlib.closing(SQLiteStorage(path, read_only=True)) as storage:
        memory = TieredMemory(storage, owner="anna", rules=SMALL)
        assert saying(memory, "quokka02") == [("alice", 2)]
        assert memory.maintain(9e5) == 0
        with pytest.raises(StorageReadOnly):
            memory.observe(told(99, "new"))
        with pytest.raises(StorageReadOnly):
            memory.erase(Scope("alice"))
        memory.close()

    assert path.read_bytes() == before


def test_page_that_its_store_lost_is_not_told_of(memory, storage):
    """A page whose bytes the store can't show any more is left out of an answer, and of a hand-over."""
    fill(memory, 2, maintain=False)
    memory.admit(told(3, "never stored wombat"))
    memory.admit(told(1, "in no context numbat", context="nobody"))

    assert {("alice", 3), ("nobody", 1)}.isdisjoint(found(memory, "wombat numbat"))
    memory.maintain(1.0)
    check(memory)
    assert saying(memory, "quokka02") == [("alice", 2)]


def test_handles_count_visits_together(tmp_path):
    """Episodes that one handle made are visited by another one that was there before, and no visit is lost (P13)."""
    with contextlib.ExitStack() as opened:
        one, other = (
            TieredMemory(
                opened.enter_context(contextlib.closing(SQLiteStorage(tmp_path / "agent.db", durability="fast"))),
                owner="anna",
                rules=SMALL,
                clock=lambda: 1e6,
            )
            for _ in range(2)
        )
        fill(one, 1)
        other.search("quokka01")
        fill(one, 5, start=2)
        (hit, *_) = one.search("quokka01", k=1).pages
        one.maintain()
        before = items(one, "episode")[hit.episode]["warmth"]["visits"]

        for memory in (other, one, other):
            assert memory.search("quokka01", k=1).pages[0].episode == hit.episode
        one.maintain()
        other.close()

        assert items(one, "episode")[hit.episode]["warmth"]["visits"] == before + 3
        check(one)
        one.close()


@pytest.mark.parametrize("erased", [True, False])
def test_page_is_excluded_as_it_is_now(tmp_path, erased):
    """A page excluded again and again is not found, though another process made it another row, or it is new."""
    with contextlib.ExitStack() as opened:
        one, other = (
            TieredMemory(
                opened.enter_context(contextlib.closing(SQLiteStorage(tmp_path / "agent.db", durability="fast"))),
                owner="anna",
            )
            for _ in range(2)
        )
        shown = told(3, "The quokka is at gate 12.", "Yes.")
        keep = keeping(one.session.storage)
        for page in (told(1, "The ferry is late.", "Yes."), told(2, "The tram is full.", "Yes."), shown):
            keep(page)
            if erased or page is not shown:
                one.observe(page)
        assert 3 not in {page.index for page in one.search("quokka gate ferry", exclude={("alice", 3)}).pages}

        if erased:
            other.erase(Scope("alice", (3,)))
        (other if erased else one).observe(shown)

        assert 3 not in {page.index for page in one.search("quokka gate ferry", exclude={("alice", 3)}).pages}
        assert 3 in {page.index for page in one.search("quokka gate ferry").pages}
