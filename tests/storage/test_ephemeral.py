"""EphemeralStorage keeps the promises of a store, in little memory."""

import gc
import struct
import tracemalloc

import pytest

from memci.storage import EphemeralStorage
from memci.storage.protocol import PageState
from memci.testing.storage.conformance import StorageConformance
from memci.testing.storage.rows import appended, current


class TestEphemeralStorage(StorageConformance):
    @pytest.fixture
    def storage(self) -> EphemeralStorage:
        return EphemeralStorage()


def test_memory_is_little_more_than_the_bodies() -> None:
    """An archived page of two messages of 400 bytes takes at most 1.3 times their bytes."""
    storage = EphemeralStorage()
    tracemalloc.start()

    for i in range(1000):
        transition = appended(current(storage, "a"), b"%0400d" % i, b"%0400d" % -i)
        storage.commit(transition._replace(pages=(transition.pages[0]._replace(state=PageState.ARCHIVED),)))
    gc.collect()  # the interpreter keeps a stock of freed tuples, which is not the store's
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert taken <= 1.3 * 1000 * 800


def test_transition_that_can_not_be_packed_leaves_no_trace() -> None:
    """A number that is out of range fails the whole transition, not a part of it."""
    storage = EphemeralStorage()
    transition = appended(current(storage, "a"), b"1", b"2")
    broken = transition._replace(pages=(transition.pages[0]._replace(turn=-1),))

    with pytest.raises(struct.error):
        storage.commit(broken)

    assert storage.load("a") is None
    assert storage.commit(transition) is None
    assert [row.body for row in storage.entries("a")] == [b"1", b"2"]
