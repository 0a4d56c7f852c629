"""The lock itself, whatever store keeps its tickets: when it is released, renewed and refused, and what waiting writes.

What depends on the store is in `memci.testing.storage.conformance`.
"""

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from math import inf, nan
from pathlib import Path
from threading import Lock
from typing import Any
from unittest.mock import DEFAULT, Mock

import pytest

from memci.errors import HandlePoisoned, InvalidSetting, StorageBusy, StorageError, WriteConflict
from memci.rows import Ticket
from memci.storage import Storage
from memci.storage.locks import EXPIRY_SECONDS, hold
from memci.testing.storage.rows import append, appended, bodies_of, current
from tests.context.kit import STORES, ended, store

LONG = 30.0
"""seconds that nothing here lasts"""


@pytest.fixture(params=STORES)
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    """A store of each kind."""
    made = store(request.param, tmp_path)
    yield made
    made.close()


def test_lock_is_released(storage: Storage) -> None:
    """The lock can be released in any thread, and be taken again."""
    with ThreadPoolExecutor(1) as other:
        for _ in range(3):
            lock = hold(storage, "a", 0)
            other.submit(lock.release).result()
            other.submit(hold, storage, "a", 0).result().release()

    hold(storage, "a", 0).release()


def test_lock_is_released_once(storage: Storage) -> None:
    """Releasing it a second time does not take it from the next holder."""
    lock = hold(storage, "a", 0)
    lock.release()
    theirs = hold(storage, "a", 0)

    lock.release()

    assert theirs.is_kept()
    with pytest.raises(StorageBusy):
        hold(storage, "a", 0)
    theirs.release()


def test_waiting_writes_nothing(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait writes its ticket and removes it, however often it looks; without time to wait it writes nothing.

    A long one renews its ticket.
    """
    lock = hold(storage, "a", 0)
    changes: list[object] = []

    class Watched:
        tickets = staticmethod(storage.tickets)

        @staticmethod
        def replace_ticket(*change: Any) -> bool:
            changes.append(change)
            return storage.replace_ticket(*change)

    for seconds, expected in ((0, 0), (0.03, 2)):
        with pytest.raises(StorageBusy):
            hold(Watched(), "a", seconds)  # type: ignore[arg-type]  # what else it asked for would be an error
        assert len(changes) == expected
    monkeypatch.setattr("memci.storage.locks.RENEWAL_SECONDS", 0.0)
    with pytest.raises(StorageBusy):
        hold(Watched(), "a", 0.03)  # type: ignore[arg-type]
    assert len(changes) > 4
    lock.release()


def test_lock_is_renewed(storage: Storage) -> None:
    """A holder that renews its ticket keeps the lock, and its place; one that is asked late renews it first."""
    lock = hold(storage, "a", 0)
    for renew, left in ((lock.step, EXPIRY_SECONDS), (lock.is_kept, EXPIRY_SECONDS / 2)):
        [now] = storage.tickets("a")
        lock._ticket = before = now._replace(expires=time.time() + left)
        storage.replace_ticket(now, before)

        assert renew()

        [after] = storage.tickets("a")
        assert after.expires > before.expires
        assert after.token == before.token
    lock.release()
    assert not lock.step()


def test_lock_is_not_released_by_a_child(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """After fork() it is the parent's."""
    lock = hold(storage, "a", 0)
    with monkeypatch.context() as patch:
        patch.setattr(lock, "_pid", 0)
        lock.release()
    assert storage.tickets("a")
    lock.release()
    assert not storage.tickets("a")


@pytest.mark.parametrize(("error", "again"), [(HandlePoisoned, False), (StorageBusy, True)])
def test_lock_is_not_renewed_by_a_handle_that_is_spent(
    error: type[StorageError], again: bool, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy store is tried again; a handle that can do nothing any more is not."""
    lock = hold(storage, "a", 0)

    def fail(*_: Ticket | None) -> bool:
        raise error("so it is")

    with monkeypatch.context() as patch:
        patch.setattr(storage, "replace_ticket", fail)
        assert lock.step() is again
    lock.release()


@pytest.mark.parametrize("seconds", [-1, -0.001, nan, inf, True, None, "1"], ids=repr)
def test_waiting_time_that_makes_no_sense_is_refused(storage: Storage, seconds: float) -> None:
    """What is no number of seconds from 0 is InvalidSetting, and no lock is taken."""
    with pytest.raises(InvalidSetting) as caught:
        hold(storage, "a", seconds)

    assert caught.value.name == "wait"
    hold(storage, "a", 0).release()


def test_lock_is_exclusive_among_threads(storage: Storage) -> None:
    """While one holds the lock of a context no other gets it; any thread can release it, once, for the next one."""
    lock = hold(storage, "a", 0)
    others = [hold(storage, name, 0) for name in ("A", "a ", "", "ü", "a/b", "../a", "x" * 10_000)]
    append(storage, "a", b"1")

    with ThreadPoolExecutor(1) as other:
        for seconds in (0, 0.01):
            with pytest.raises(StorageBusy, match=r"'a' is locked by process .* since 2.* UTC") as caught:
                other.submit(hold, storage, "a", seconds).result()
            assert caught.value.retryable
        with pytest.raises(StorageBusy):
            hold(storage, "a", 0)
        assert len(storage.tickets("a")) == 1, "those that gave up left the queue"
        assert lock.is_kept()
        other.submit(lock.release).result()
        theirs = other.submit(hold, storage, "a", 0).result()

    lock.release()
    assert theirs.is_kept(), "a lock that was released already is not released for its next holder"
    for each in (theirs, *others):
        each.release()
    assert not storage.tickets()


def test_lock_is_given_in_the_order_of_arrival(storage: Storage) -> None:
    """Those that wait, again and again, get it one at a time, the first that came first; a dead one is passed."""
    lock = hold(storage, "a", 0)
    alone = Lock()
    served: list[int] = []

    def visit(number: int) -> None:
        for _ in range(3):
            mine = hold(storage, "a", LONG)
            assert alone.acquire(blocking=False)
            append(storage, "a", b"%d" % number)
            served.append(number)
            alone.release()
            mine.release()

    with ThreadPoolExecutor(4) as pool:
        running: list[Future[None]] = []
        for number in (3, 1, None, 4, 2):
            before = len(storage.tickets("a"))
            if number is None:
                storage.replace_ticket(None, ended("a"))
            else:
                running.append(pool.submit(visit, number))
            until = time.monotonic() + LONG
            while len(storage.tickets("a")) == before and time.monotonic() < until:
                time.sleep(0)
        lock.release()
        for each in running:
            each.result(LONG)

    assert served[:4] == [3, 1, 4, 2]
    assert sorted(served) == sorted((1, 2, 3, 4) * 3)
    assert bodies_of(storage, "a") == [b"%d" % number for number in served]
    assert not storage.tickets()


def test_holder_that_renews_nothing_is_replaced(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one gets the lock, and a change that the old holder had in hand is WriteConflict.

    So it is if another commit comes first. The log tells of it.
    """
    append(storage, "a", b"1")
    old = hold(storage, "a", 0)
    late = appended(current(storage, "a"), b"late")
    [ticket] = storage.tickets("a")
    storage.replace_ticket(ticket, ended("a"))
    commit = Mock(wraps=storage.commit, side_effect=[WriteConflict("another was first"), DEFAULT])

    with monkeypatch.context() as patch:
        patch.setattr(storage, "commit", commit)
        new = hold(storage, "a", 0)

    assert [line["action"] for line in storage.audit_log] == ["lock"]  # type: ignore[attr-defined]
    with pytest.raises(WriteConflict):
        storage.commit(late)
    assert not old.is_kept()
    assert not old.step(), "it is not renewed any more"
    old.release()
    assert new.is_kept()
    append(storage, "a", b"2")
    assert bodies_of(storage, "a") == [b"1", b"2"]
    new.release()


@pytest.mark.parametrize(("seconds", "valid"), [(EXPIRY_SECONDS - 1, True), (3 * 3_600, False)])
def test_ticket_of_a_clock_that_is_hours_ahead_counts_as_ended(storage: Storage, seconds: float, valid: bool) -> None:
    """A ticket ends ten seconds after its renewal: one that would last for hours is of a wrong clock, and holds nobody.

    A ticket that ends in time does hold.
    """
    now = time.time()
    storage.replace_ticket(None, Ticket("a", "theirs", "process 1 elsewhere", "", now, now + seconds))

    if valid:
        with pytest.raises(StorageBusy):
            hold(storage, "a", 0)
    else:
        hold(storage, "a", 0).release()


@pytest.mark.parametrize("reused", [False, True])
def test_ticket_of_a_process_id_that_is_used_again_counts_as_ended(storage: Storage, reused: bool) -> None:
    """A process is known by its id and by when it began: another one of that id does not keep the lock."""
    lock = hold(storage, "a", 0)
    [ticket] = storage.tickets("a")
    lock.release()
    if not ticket.process:
        pytest.skip("this system does not tell when a process began")
    began = ticket.process.rpartition(" ")[2]
    process = ticket.process.removesuffix(began) + (str(int(began) - 1) if reused else began)
    storage.replace_ticket(None, ticket._replace(token="theirs", process=process))

    if reused:
        hold(storage, "a", 0).release()
    else:
        with pytest.raises(StorageBusy):
            hold(storage, "a", 0)
