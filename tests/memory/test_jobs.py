"""Jobs are rows: claimed by one, tried again later, set aside in the end, bounded, and brought to old files."""

import contextlib
import multiprocessing

import pytest
from machine_kit import check, items
from model_kit import closing_all, modelled, page, steps, tell

from memci import EphemeralStorage, SQLiteStorage
from memci.errors import SchemaTooNew
from memci.memory import TieredMemory
from memci.memory.backend import Work
from memci.memory.repository.home import tables_of
from memci.memory.repository.job_queue import JobQueue
from memci.memory.repository.store import OwnerKey
from memci.testing.memory.pages import saying
from tests.memory.tables_suite import MemoryStoreConformance


class TestTables(MemoryStoreConformance):
    """Each handle has a store object of its own, as each process has."""

    @pytest.fixture
    def reopen(self, tmp_path):
        with contextlib.ExitStack() as opened:
            path = tmp_path / "agent.db"
            yield lambda: tables_of(opened.enter_context(contextlib.closing(SQLiteStorage(path, durability="fast"))))


@pytest.fixture
def store(tmp_path):
    with contextlib.closing(SQLiteStorage(tmp_path / "agent.db", durability="fast")) as storage:
        yield tables_of(storage)


@pytest.fixture
def queue(store):
    return JobQueue(OwnerKey(store, "anna", 7))


def waiting(queue, *kinds):
    """Let a job of each kind wait."""
    with queue._store.change():
        for kind in kinds:
            queue.enqueue(kind, 1)


def test_jobs_are_claimed_in_order_and_each_once(store, queue):
    """The oldest job that is due is claimed first, and by nobody else while it is under way."""
    waiting(queue, "page", "events")

    claimed = [queue.claim(100.0) for _ in range(3)]

    assert [each and each.kind for each in claimed] == ["page", "events", None]
    assert JobQueue(OwnerKey(store, "other", 8)).claim(100.0) is None


def test_job_whose_process_died_is_due_again(queue):
    """A job that nobody finished is due after ten minutes, and counts as tried."""
    waiting(queue, "page")
    queue.claim(100.0)

    early, late = queue.claim(699.0), queue.claim(700.0)

    assert early is None
    assert late is not None
    assert late.tries == 2


def test_job_that_fails_is_due_later_and_later(store, queue):
    """After 30 seconds, then one minute, two, four; and after an hour at most."""
    waiting(queue, "page")
    now, pauses = 0.0, []
    for _ in range(12):
        job = queue.claim(now)
        with store.change():
            queue.fail(job, now)
        ((due,),) = store.read_rows("SELECT due FROM memory_job")
        pauses.append(due - now)
        now = due

    assert pauses[:5] == [30, 60, 120, 240, 480]
    assert max(pauses) == 3600


def test_job_that_is_finished_is_gone(store, queue):
    """A job goes when it is done; if there was news for it meanwhile, it is due again, as if never tried."""
    waiting(queue, "day", "page")
    first, second = queue.claim(1.0), queue.claim(1.0)
    with store.change():
        queue.enqueue("day", 1, "12")
        queue.finish(first)
        queue.finish(second)

    again = queue.claim(2.0)

    assert (again.kind, again.tries, again.body) == ("day", 1, "12")
    assert queue.claim(2.0) is None


def test_same_job_waits_once(queue):
    """What is enqueued again, with nothing new about it, changes nothing."""
    waiting(queue, "events")
    queue.claim(1.0)

    waiting(queue, "events")

    assert queue.claim(2.0) is None
    assert queue.counts() == Work(waiting=1)


def test_job_that_was_set_aside_is_taken_up_for_something_else(store, queue):
    """A job that was set aside is not due; enqueued again it is, unless it could not be done in any form."""
    waiting(queue, "topics", "events")
    for undone in (False, True):
        job = queue.claim(1.0)
        with store.change():
            queue.set_aside(job, undone=undone)
    assert queue.counts() == Work(set_aside=2)

    waiting(queue, "topics", "events")

    assert queue.claim(2.0).kind == "topics"
    assert queue.claim(2.0) is None


def test_model_that_is_away_holds_all_jobs_back(store, queue):
    """While the model is away no job of the owner is due, longer each time, and none of them counts as tried."""
    waiting(queue, "page", "events")
    now, pauses = 0.0, []
    for _ in range(3):
        job = queue.claim(now)
        with store.change():
            queue.hold(job, now)
        while not queue.due(now):
            now += 1
        pauses.append(now)

    assert pauses == [30, 90, 210]
    assert queue.claim(now).tries == 1


def test_model_that_answers_again_holds_nothing_back(store, queue):
    """Once the model answered, jobs are due at once, and a later absence begins with a short wait."""
    waiting(queue, "page", "events")
    for now in (0.0, 30.0):
        with store.change():
            queue.hold(queue.claim(now), now)
    assert not queue.due(31.0)

    with store.change():
        queue.answered()

    assert queue.due(31.0)
    with store.change():
        queue.hold(queue.claim(31.0), 31.0)
    assert queue.due(150.0)


def test_queue_is_bounded(store, queue, monkeypatch):
    """No more jobs wait than may; those that are not taken are counted."""
    monkeypatch.setattr("memci.memory.repository.job_queue.MOST", 3)
    with store.change():
        taken = [queue.enqueue("page", each) for each in range(5)]
        for _ in range(taken.count(False)):
            queue.skip()

    assert taken == [True, True, True, False, False]
    assert queue.counts() == Work(waiting=3, skipped=2)


def test_pages_beyond_the_bound_are_skipped(monkeypatch):
    """A memory whose model is far behind takes pages as before, and says how many it will not ask it about."""
    monkeypatch.setattr("memci.memory.repository.job_queue.MOST", 3)
    memory, _ = modelled(EphemeralStorage())

    tell(memory, *(page(index) for index in range(1, 6)), maintain=False)

    assert memory.work().waiting == 3
    assert memory.work().skipped == 2
    assert saying(memory, "quokka05") == [("alice", 5)]


@pytest.mark.parametrize("version", [0, 2])
def test_file_of_another_version_is_left_alone(version, tmp_path):
    """A memory whose tables are others is an error, and is not changed."""
    path = tmp_path / "agent.db"
    with contextlib.closing(SQLiteStorage(path)) as storage:
        memory = TieredMemory(storage, owner="anna")
        tell(memory, page(1))
        with memory.session.store.change() as connection:
            connection.execute("UPDATE memory_schema SET version = ?", (version,))
        memory.close()

    with contextlib.closing(SQLiteStorage(path)) as storage:
        memory = TieredMemory(storage, owner="anna")
        with pytest.raises(SchemaTooNew):
            memory.search("quokka01")
        with pytest.raises(SchemaTooNew):
            memory.observe(page(2))


def test_two_handles_share_the_jobs(tmp_path):
    """Of two handles on one file, as two processes have, each job is paid for once."""
    one, other = (SQLiteStorage(tmp_path / "agent.db", durability="fast") for _ in range(2))
    with closing_all(one, other):
        memory, chat = modelled(one)
        helper, second = modelled(other)
        tell(memory, *(page(index) for index in range(1, 4)), maintain=False)

        more = [each.run_job() for each in (memory, helper, memory)]

        assert more == [True, True, False]
        assert len(chat.calls) == 2
        assert len(second.calls) == 1
        assert set(memory.summaries("alice", [1, 2, 3])) == set(helper.summaries("alice", [1, 2, 3])) == {1, 2, 3}


def test_two_processes_share_the_jobs(tmp_path):
    """Two processes that improve one memory at once do each job once, and nothing twice."""
    path = tmp_path / "agent.db"
    with contextlib.closing(SQLiteStorage(path, durability="fast")) as storage:
        memory, _ = modelled(storage)
        tell(memory, *(page(index) for index in range(1, 25)), maintain=False)
        memory.maintain()
        memory.close()
    fork = multiprocessing.get_context("fork")
    described = fork.SimpleQueue()

    def improve():
        memory, chat = modelled(SQLiteStorage(path, durability="fast", busy_timeout_seconds=20))
        for _ in range(200):
            memory.run_job()
        described.put(steps(chat).count("page"))

    children = [fork.Process(target=improve) for _ in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join(60)

    assert [child.exitcode for child in children] == [0, 0]
    assert described.get() + described.get() == 24
    with contextlib.closing(SQLiteStorage(path, durability="fast")) as storage:
        memory, _ = modelled(storage)
        check(memory)
        facts = [fact["text"] for fact in items(memory, "fact").values()]
        assert len(facts) == len(set(facts)) > 10
        assert len(items(memory, "note")) == 24
        assert memory.work().set_aside == 0
