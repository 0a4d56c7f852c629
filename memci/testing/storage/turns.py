"""What every store must do about turns: a context's turn has one holder at a time.

    release = store.hold("a", 0)     another thread: store.hold("a", 0)  ──▶  StorageBusy
    release()                        another thread: store.hold("a", 0)  ──▶  it is its turn

This is a part of `memci.testing.storage.StorageConformance`; inherit that one.
This module knows nothing of how a store makes others wait.
"""

from concurrent.futures import ThreadPoolExecutor
from math import inf, nan

import pytest

from ...errors import InvalidSetting, StorageBusy
from ...storage.protocol import Storage
from .rows import append, bodies_of


class StorageTurns:
    """A turn is exclusive among those who ask for it."""

    def test_turn_is_exclusive_among_threads(self, storage: Storage) -> None:
        """While one has the turn, who asks for it is StorageBusy, and that is told as worth another try."""
        release = storage.hold("a", 0)

        with ThreadPoolExecutor(1) as other:
            for seconds in (0, 0.01):
                with pytest.raises(StorageBusy, match="'a'") as caught:
                    other.submit(storage.hold, "a", seconds).result()
                assert caught.value.retryable

        with pytest.raises(StorageBusy):
            storage.hold("a", 0)
        release()

    def test_turn_is_given_back(self, storage: Storage) -> None:
        """What hold returns gives the turn back, in whatever thread it is called, as often as one likes to take it."""
        with ThreadPoolExecutor(1) as other:
            for _ in range(3):
                release = storage.hold("a", 0)
                other.submit(release).result()
                other.submit(storage.hold, "a", 0).result()()

        storage.hold("a", 0)()

    def test_turn_is_given_back_once(self, storage: Storage) -> None:
        """Giving it back a second time takes it from nobody who has it by then."""
        release = storage.hold("a", 0)
        release()
        theirs = storage.hold("a", 0)

        release()

        with pytest.raises(StorageBusy):
            storage.hold("a", 0)
        theirs()

    def test_turn_comes_to_who_waits(self, storage: Storage) -> None:
        """Who waits for a turn gets it once it is given back."""
        release = storage.hold("a", 0)
        with ThreadPoolExecutor(1) as other:
            waiting = other.submit(storage.hold, "a", 30)

            release()

            waiting.result()()

    def test_turn_is_of_one_context(self, storage: Storage) -> None:
        """Who has one context's turn hinders no other's, whether it exists or not, and no reading or writing."""
        release = storage.hold("a", 0)

        others = [storage.hold(name, 0) for name in ("A", "a ", "", "ü", "a/b", "../a", "x" * 10_000)]
        append(storage, "a", b"1")

        assert bodies_of(storage, "a") == [b"1"]
        for each in (release, *others):
            each()

    def test_turn_is_never_two_threads(self, storage: Storage) -> None:
        """Of many threads that ask at once, one at a time has the turn, and all of them get it."""
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
        """What is no number of seconds from 0 is InvalidSetting, and no turn is taken."""
        with pytest.raises(InvalidSetting) as caught:
            storage.hold("a", seconds)

        assert caught.value.name == "wait"
        storage.hold("a", 0)()
