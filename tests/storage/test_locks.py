"""The lock itself, whatever store keeps its tickets: when it is released, renewed and refused, and what waiting writes.

What depends on the store is in `memci.testing.storage.conformance`.
"""

from concurrent.futures import ThreadPoolExecutor
from math import inf, nan
from typing import Any

import pytest

from memci import EphemeralStorage
from memci.errors import InvalidSetting, StorageBusy
from memci.storage import Storage
from memci.storage.locks import hold


@pytest.fixture
def storage() -> EphemeralStorage:
    """A store."""
    return EphemeralStorage()


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


def test_waiting_writes_nothing(storage: Storage) -> None:
    """A wait writes its ticket and removes it, however often it looks; without time to wait it writes nothing."""
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
    lock.release()


def test_lock_is_renewed(storage: Storage) -> None:
    """A holder that renews its ticket keeps the lock, and its place."""
    lock = hold(storage, "a", 0)
    [before] = storage.tickets("a")

    assert lock.step()

    [after] = storage.tickets("a")
    assert after.expires > before.expires
    assert after.token == before.token
    lock.release()
    assert not lock.step()


@pytest.mark.parametrize("seconds", [-1, -0.001, nan, inf, True, None, "1"], ids=repr)
def test_waiting_time_that_makes_no_sense_is_refused(storage: Storage, seconds: float) -> None:
    """What is no number of seconds from 0 is InvalidSetting, and no lock is taken."""
    with pytest.raises(InvalidSetting) as caught:
        hold(storage, "a", seconds)

    assert caught.value.name == "wait"
    hold(storage, "a", 0).release()
