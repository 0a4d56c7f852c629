"""Jobs of a model while something else happens: an erasure, a search, another page, the end of the memory."""

import contextlib
import threading

import pytest
from machine_kit import check, items, keeping, rows
from model_kit import DAY, NOON, Clock, drained, modelled, obliging, page, steps, tell

from memci import EphemeralStorage, SQLiteStorage
from memci.memory import TieredMemory
from memci.memory.tiers.rules import Rules
from memci.testing.memory.pages import saying, told


def in_flight(step, act):
    """Return answers, and run *act* once while a call of *step* is under way."""
    done = []

    def answer(asked):
        if asked.step == step and not done:
            done.append(asked)
            act()
        return obliging(asked)

    return answer


@pytest.mark.parametrize("step", ["page", "topics", "analysis", "concepts", "day", "conversation", "strategy"])
def test_erasure_wins_over_a_call_that_is_under_way(tmp_path, step):
    """What is erased while a model is asked about it is not brought back by its answer, in no tier and no byte."""
    from memci.memory.backend import Scope

    path = tmp_path / "agent.db"
    with contextlib.closing(SQLiteStorage(path, durability="fast")) as storage:
        clock = Clock()
        pages = [page(index, f"zanzibarqua violins numbat{index:02}") for index in range(1, 7)]
        pages += [
            page(index, f"zanzibarqua violins numbat{index:02}", at=NOON + DAY + 60 * index) for index in range(7, 18)
        ]

        def erase():
            memory.erase(Scope("alice", range(1, 18)))
            for each in pages:  # as an erasure leaves the store of the pages
                keeping(storage)(told(each.index, "gone", context="alice"))

        memory, chat = modelled(storage, in_flight(step, erase), clock=clock)
        tell(memory, *pages, maintain=False)
        memory.maintain()
        memory.search("violins")
        for _ in range(3):
            while memory.run_job():
                pass
            memory.search("violins")
            memory.maintain()

        assert step in steps(chat)
        kept = rows(memory, "SELECT body FROM memory_item UNION ALL SELECT body FROM memory_job")
        assert [body for (body,) in kept if "zanzibar" in body or "numbat" in body] == []
        check(memory)


@pytest.mark.parametrize("step", ["page", "topics", "analysis", "concepts"])
def test_page_that_is_replaced_under_way_is_told_as_it_is_now(storage, step):
    """If a page says something else while a model is asked about it, the answer is dropped, and it is asked again."""
    clock = Clock()

    def replace():
        new = page(1, "aardvark instead")
        keeping(storage)(new)
        memory.observe(new)

    memory, chat = modelled(storage, in_flight(step, replace), clock=clock)
    tell(memory, *(page(index, f"violins numbat{index:02}") for index in range(1, 8)), maintain=False)
    memory.maintain()
    memory.search("violins")
    drained(memory, clock)
    memory.search("violins aardvark")
    drained(memory, clock)

    assert step in steps(chat)
    assert "numbat01" not in str(rows(memory, "SELECT body FROM memory_item"))
    assert memory.summaries("alice", [1])[1].title == "About aardvark instead"
    assert memory.work().set_aside == 0
    check(memory)


def test_search_under_way_does_no_harm(storage):
    """A search that visits an episode while it is analysed is counted, and the answer is kept all the same."""

    def visit():
        memory.search("violins quokka01", k=1)

    memory, chat = modelled(storage, in_flight("analysis", visit))
    tell(memory, *(page(index) for index in range(1, 5)))
    drained(memory)

    ((_, episode),) = items(memory, "episode").items()

    assert steps(chat).count("analysis") == 1
    assert episode["warmth"]["access_count"] == 1
    assert items(memory, "fact")


def test_profile_that_changes_under_way_is_not_overwritten(storage):
    """If the profile is another one when an analysis comes back, it is asked again with that one."""

    def analyse():
        TieredMemory(storage, owner="anna", rules=Rules(capacity=4, batch=2, promoted=1.0)).maintain()

    memory, _ = modelled(storage, in_flight("analysis", analyse))
    tell(memory, *(page(index, f"I like violins quokka{index:02} a lot") for index in range(1, 9)))
    drained(memory)

    facts = [fact["text"] for fact in items(memory, "fact").values()]
    assert len(facts) == len(set(facts))
    assert rows(memory, "SELECT count(*) FROM memory_page WHERE tier = 2 AND marks & 1 = 0") == [(0,)]
    check(memory)


def test_settle_is_waited_for_before_anything_is_written(storage):
    """What a model said is written when nobody is disturbed by that: only then is anything changed."""
    memory, chat = modelled(storage)
    tell(memory, page(1))
    seen = []

    memory.run_job(lambda: seen.append((len(chat.calls), memory.summaries("alice", [1]))))

    assert seen == [(1, {})]
    assert memory.summaries("alice", [1])


def test_memory_is_usable_while_a_model_answers(storage):
    """While a call is under way in another thread, everything else goes on."""
    asked, go_on = threading.Event(), threading.Event()

    def slow(call):
        asked.set()
        assert go_on.wait(10)
        return obliging(call)

    memory, _ = modelled(storage, slow)
    tell(memory, page(1))
    thread = threading.Thread(target=memory.run_job)
    thread.start()
    assert asked.wait(10)

    tell(memory, page(2))
    assert saying(memory, "quokka02") == [("alice", 2)]
    assert memory.work().waiting == 2
    go_on.set()
    thread.join(10)

    assert set(memory.summaries("alice", [1, 2])) == {1}


def test_memory_that_is_closed_under_way_loses_nothing(tmp_path):
    """If the memory is closed while a model answers, the job is there for the next one who opens it."""
    from memci.errors import StorageError

    path = tmp_path / "agent.db"
    storage, clock = SQLiteStorage(path, durability="fast"), Clock()
    memory, _ = modelled(storage, in_flight("page", storage.close), clock=clock)
    tell(memory, page(1))
    with pytest.raises(StorageError):
        memory.run_job()

    clock.now += 700
    with contextlib.closing(SQLiteStorage(path, durability="fast")) as again:
        memory, _ = modelled(again, clock=clock)
        drained(memory, clock)
        assert memory.summaries("alice", [1])


def test_owners_have_jobs_of_their_own():
    """What waits for one owner is not done, paid or seen by another one."""
    storage = EphemeralStorage()
    anna, chat = modelled(storage)
    bert, other = modelled(storage, owner="bert")
    tell(anna, page(1))

    assert not bert.run_job()
    assert bert.work().waiting == 0
    assert other.calls == []
    anna.run_job()
    assert len(chat.calls) == 1
    assert bert.summaries("alice", [1]) == {}
