"""What tests of memories beside a store of pages share: the fixtures that a memory is made with. It tests nothing."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from machine_kit import keeping

from memci.memory import TieredMemory
from memci.memory.backend import PageRecord
from memci.memory.tiers.rules import Rules
from memci.storage import Storage
from memci.testing.memory.conformance import DurableMemoryConformance

SMALL = Rules(capacity=4, batch=2, episodes=3)
"""so that pages move on within a few of them"""


class Kept:
    """The fixtures of a memory beside a store of pages."""

    @pytest.fixture
    def keep(self, storage: Storage) -> Callable[[PageRecord], None]:
        return keeping(storage)

    @pytest.fixture
    def memory(self, storage: Storage) -> Iterator[TieredMemory]:
        memory = TieredMemory(storage, owner="anna", rules=SMALL, clock=lambda: 1e6)
        yield memory
        with contextlib.suppress(Exception):
            memory.close()


class OnDisk(Kept, DurableMemoryConformance):
    """Each handle has a store object of its own, as each process has."""

    make: Callable[[Path], Storage]

    @pytest.fixture
    def storage(self, tmp_path: Path) -> Iterator[Storage]:
        with contextlib.closing(type(self).make(tmp_path)) as storage:
            yield storage

    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Iterator[Callable[..., TieredMemory]]:
        with contextlib.ExitStack() as opened:

            def again(owner: str = "anna") -> TieredMemory:
                storage = opened.enter_context(contextlib.closing(type(self).make(tmp_path)))
                return TieredMemory(storage, owner=owner, rules=SMALL, clock=lambda: 1e6)

            yield again
