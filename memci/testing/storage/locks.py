"""What every store must do about locks: the lock of a context has one holder at a time.

    release = store.hold("a", 0)     another thread: store.hold("a", 0)  ──▶  StorageBusy
    release()                        another thread: store.hold("a", 0)  ──▶  it has the lock

This is a part of `memci.testing.storage.StorageConformance`; inherit that one.
This module knows nothing of how a store makes others wait.
"""

from concurrent.futures import ThreadPoolExecutor
from math import inf, nan

import pytest

from ...errors import InvalidSetting, StorageBusy
from ...storage.protocol import Storage
from .rows import append, bodies_of


class StorageLocks:
    """A lock has one holder among all callers of `hold`."""

    def test_lock_is_exclusive_among_threads(self, storage: Storage) -> None:
        """While one holds the lock, asking for it is StorageBusy, which is retryable."""
        release = storage.hold("a", 0)

        with ThreadPoolExecutor(1) as other:
            for seconds in (0, 0.01):
                with pytest.raises(StorageBusy, match="'a'") as caught:
                    other.submit(storage.hold, "a", seconds).result()
                assert caught.value.retryable

        with pytest.raises(StorageBusy):
            storage.hold("a", 0)
        release()

    def test_lock_is_released(self, storage: Storage) -> None:
        """What hold returns releases the lock, in any thread, and the lock can be taken again."""
        with ThreadPoolExecutor(1) as other:
            for _ in range(3):
                release = storage.hold("a", 0)
                other.submit(release).result()
                other.submit(storage.hold, "a", 0).result()()

        storage.hold("a", 0)()

    def test_lock_is_released_once(self, storage: Storage) -> None:
        """Releasing it a second time does not take it from the next holder."""
        release = storage.hold("a", 0)
        release()
        theirs = storage.hold("a", 0)

        release()

        with pytest.raises(StorageBusy):
            storage.hold("a", 0)
        theirs()

    def test_lock_is_of_one_context(self, storage: Storage) -> None:
        """The lock of one context stops neither the locks of others, existing or not, nor reading or writing."""
        release = storage.hold("a", 0)

        others = [storage.hold(name, 0) for name in ("A", "a ", "", "ü", "a/b", "../a", "x" * 10_000)]
        append(storage, "a", b"1")

        assert bodies_of(storage, "a") == [b"1"]
        for each in (release, *others):
            each()

    def test_lock_is_never_two_threads(self, storage: Storage) -> None:
        """Of many threads that ask at once, one at a time holds the lock, and each of those that wait gets it."""
        held: list[int] = []
        most = []

        def visit(number: int) -> None:
            release = storage.hold("a", 30)
            held.append(number)
            most.append(len(held))
            append(storage, "a", b"%d" % number)
            held.remove(number)
            release()

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(visit, range(8)))

        assert most == [1] * 8
        assert sorted(bodies_of(storage, "a")) == [b"%d" % i for i in range(8)]

    @pytest.mark.parametrize("seconds", [-1, -0.001, nan, inf, True, None, "1"], ids=repr)
    def test_waiting_time_that_makes_no_sense_is_refused(self, storage: Storage, seconds: float) -> None:
        """What is no number of seconds from 0 is InvalidSetting, and no lock is taken."""
        with pytest.raises(InvalidSetting) as caught:
            storage.hold("a", seconds)

        assert caught.value.name == "wait"
        storage.hold("a", 0)()
