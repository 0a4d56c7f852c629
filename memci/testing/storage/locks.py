"""What every store must do about locks: one holder at a time, in the order of arrival.

    lock = hold(store, "a", 0)       another thread: hold(store, "a", 0)  ──▶  StorageBusy
    lock.release()                   another thread: hold(store, "a", 0)  ──▶  it has the lock

This is a part of `memci.testing.storage.StorageConformance`; inherit that one. What a store does with single tickets
is for the machine there. This module knows nothing of how a store keeps tickets.
"""

import time
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock

import pytest

from ...errors import StorageBusy, WriteConflict
from ...storage.locks import EXPIRY_SECONDS, hold
from ...storage.protocol import Storage, Ticket
from .rows import append, appended, bodies_of, current

_LONG = 30.0
"""seconds that nothing here lasts"""


class StorageLocks:
    """A lock has one holder among all callers of `hold`, and those that wait get it in the order of arrival."""

    def test_lock_is_exclusive_among_threads(self, storage: Storage) -> None:
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

    def test_lock_is_given_in_the_order_of_arrival(self, storage: Storage) -> None:
        """Those that wait, again and again, get it one at a time, the first that came first; a dead one is passed."""
        lock = hold(storage, "a", 0)
        alone = Lock()
        served: list[int] = []

        def visit(number: int) -> None:
            for _ in range(3):
                mine = hold(storage, "a", _LONG)
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
                until = time.monotonic() + _LONG
                while len(storage.tickets("a")) == before and time.monotonic() < until:
                    time.sleep(0)
            lock.release()
            for each in running:
                each.result(_LONG)

        assert served[:4] == [3, 1, 4, 2]
        assert sorted(served) == sorted((1, 2, 3, 4) * 3)
        assert bodies_of(storage, "a") == [b"%d" % number for number in served]
        assert not storage.tickets()

    def test_holder_that_renews_nothing_is_replaced(self, storage: Storage) -> None:
        """The next one gets the lock, and a change that the old holder had in hand is WriteConflict."""
        append(storage, "a", b"1")
        old = hold(storage, "a", 0)
        late = appended(current(storage, "a"), b"late")
        [ticket] = storage.tickets("a")
        storage.replace_ticket(ticket, ended("a"))

        new = hold(storage, "a", 0)

        with pytest.raises(WriteConflict):
            storage.commit(late)
        assert not old.is_kept()
        assert not old.step(), "it is not renewed any more"
        old.release()
        assert new.is_kept()
        append(storage, "a", b"2")
        assert bodies_of(storage, "a") == [b"1", b"2"]
        new.release()


def ended(context: str) -> Ticket:
    """Return a ticket whose holder has not renewed it for long."""
    return Ticket(context, "ended", "process 1 elsewhere", "", 0.0, time.time() - EXPIRY_SECONDS)
