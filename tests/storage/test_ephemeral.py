"""EphemeralStorage keeps the promises of a store, in bounded memory."""

import gc
import tracemalloc

import pytest

from memci.storage import EphemeralStorage
from memci.storage.protocol import PageState
from memci.testing.storage import StorageConformance
from memci.testing.storage.rows import appended, current
from tests.storage.plain_store import PlainStore


class TestEphemeralStorage(StorageConformance):
    @pytest.fixture
    def storage(self) -> EphemeralStorage:
        return EphemeralStorage()

    @pytest.fixture
    def known(self) -> type[PlainStore]:
        return PlainStore


def test_memory_is_at_most_twice_the_bodies() -> None:
    """An archived page of two messages of 400 bytes takes at most twice their bytes."""
    storage = EphemeralStorage()
    tracemalloc.start()

    for i in range(1000):
        transition = appended(current(storage, "a"), b"%0400d" % i, b"%0400d" % -i)
        storage.commit(transition._replace(pages=(transition.pages[0]._replace(state=PageState.ARCHIVED),)))
    gc.collect()  # the interpreter keeps a stock of freed tuples, which is not the store's
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert taken <= 2 * 1000 * 800
