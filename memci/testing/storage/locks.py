"""What every store must do about locks: one holder at a time, in the order of arrival.

    lock = hold(store, "a", 0)       another thread: hold(store, "a", 0)  ──▶  StorageBusy
    lock.release()                   another thread: hold(store, "a", 0)  ──▶  it has the lock

This is a part of `memci.testing.storage.StorageConformance`; inherit that one.
This module knows nothing of how a store keeps tickets.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from ...errors import StorageBusy, WriteConflict
from ...storage.locks import EXPIRY_SECONDS, hold
from ...storage.protocol import Erasure, Storage, Ticket
from .rows import append, appended, bodies_of, current

_LONG = 30.0
"""seconds that nothing here lasts"""


class StorageLocks:
    """A lock has one holder among all callers of `hold`, and those that wait get it in the order of arrival."""

    def test_lock_is_exclusive_among_threads(self, storage: Storage) -> None:
        """While one holds the lock, asking for it is StorageBusy, which is retryable and says who holds it."""
        lock = hold(storage, "a", 0)

        with ThreadPoolExecutor(1) as other:
            for seconds in (0, 0.01):
                with pytest.raises(StorageBusy, match=r"'a' is locked by process .* since 2.* UTC") as caught:
                    other.submit(hold, storage, "a", seconds).result()
                assert caught.value.retryable

        with pytest.raises(StorageBusy):
            hold(storage, "a", 0)
        assert len(storage.tickets("a")) == 1, "those that gave up left the queue"
        assert lock.is_kept()
        lock.release()
        assert not storage.tickets()

    def test_lock_is_of_one_context(self, storage: Storage) -> None:
        """The lock of one context stops neither the locks of others, existing or not, nor reading or writing."""
        lock = hold(storage, "a", 0)

        others = [hold(storage, name, 0) for name in ("A", "a ", "", "ü", "a/b", "../a", "x" * 10_000)]
        append(storage, "a", b"1")

        assert bodies_of(storage, "a") == [b"1"]
        assert [each.context for each in storage.tickets("a")] == ["a"]
        assert len(storage.tickets()) == 1 + len(others)
        for each in (lock, *others):
            each.release()

    def test_lock_is_never_two_threads(self, storage: Storage) -> None:
        """Of many threads that ask at once, one at a time holds the lock, and each of those that wait gets it."""
        held: list[int] = []
        most = []

        def visit(number: int) -> None:
            lock = hold(storage, "a", _LONG)
            held.append(number)
            most.append(len(held))
            append(storage, "a", b"%d" % number)
            held.remove(number)
            lock.release()

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(visit, range(8)))

        assert most == [1] * 8
        assert sorted(bodies_of(storage, "a")) == [b"%d" % i for i in range(8)]

    def test_lock_is_given_in_the_order_of_arrival(self, storage: Storage) -> None:
        """Those that wait get the lock one after the other, the first that came first; a dead one is passed over."""
        lock = hold(storage, "a", 0)
        served: list[int] = []

        def visit(number: int) -> None:
            mine = hold(storage, "a", _LONG)
            served.append(number)
            mine.release()

        with waiting(storage) as wait:
            for number in (3, 1):
                wait(visit, number)
            storage.replace_ticket(None, ended("a"))
            for number in (4, 2):
                wait(visit, number)

            lock.release()

        assert served == [3, 1, 4, 2]
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
        assert new.is_kept()
        assert not old.is_kept()
        assert not old.step(), "it is not renewed any more"
        old.release()
        assert new.is_kept()
        append(storage, "a", b"2")
        assert bodies_of(storage, "a") == [b"1", b"2"]
        new.release()

    def test_ticket_is_replaced_if_it_is_exactly_so(self, storage: Storage) -> None:
        """A new ticket comes last; one that is not there any more, or not as it was, is neither changed nor removed."""
        one, two = (ended("a")._replace(token=token) for token in ("1", "2"))
        other = ended("b")

        assert all(storage.replace_ticket(None, each) for each in (one, other, two))
        assert storage.tickets("a") == [one, two]
        later = one._replace(expires=0.1 + 0.2)
        assert storage.replace_ticket(one, later)
        assert not storage.replace_ticket(one, later)
        assert not storage.replace_ticket(one, None)
        assert storage.tickets("a") == [later, two]
        assert storage.replace_ticket(later, None)
        assert storage.tickets("a") == [two]
        assert storage.tickets("b") == [other]

    def test_erased_context_has_no_tickets(self, storage: Storage) -> None:
        """What is erased whole is not named in a queue either, and a lock of another context stays."""
        append(storage, "a", b"1")
        mine, other = hold(storage, "a", 0), hold(storage, "b", 0)

        storage.erase(Erasure(contexts=("a",)))

        assert [each.context for each in storage.tickets()] == ["b"]
        assert not mine.is_kept()
        mine.release()
        other.release()


def ended(context: str) -> Ticket:
    """Return a ticket whose holder has not renewed it for long."""
    return Ticket(context, "ended", "process 1 elsewhere", "", 0.0, time.time() - EXPIRY_SECONDS)


@contextmanager
def waiting(storage: Storage) -> Iterator[Callable[[Callable[[int], None], int], None]]:
    """Give a function that runs another one in a thread, and returns once that waits for the lock of "a"."""
    with ThreadPoolExecutor(8) as pool:
        running: list[Future[None]] = []

        def wait(work: Callable[[int], None], number: int) -> None:
            before = len(storage.tickets("a"))
            running.append(pool.submit(work, number))
            until = time.monotonic() + _LONG
            while len(storage.tickets("a")) == before and time.monotonic() < until:
                time.sleep(0)

        yield wait
        for each in running:
            each.result(_LONG)
