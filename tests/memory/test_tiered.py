"""TieredMemory keeps the promises of a memory, on every store, and its tables the promises of the tiers."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from machine_kit import keeping

from memci import EphemeralStorage, SQLiteStorage
from memci.memory import TieredMemory
from memci.memory.backend import PageRecord
from memci.memory.tiers.rules import Rules
from memci.storage import FilesystemStorage, Storage
from memci.testing.memory.conformance import DurableMemoryConformance, MemoryConformance

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


class TestInRAM(Kept, MemoryConformance):
    @pytest.fixture
    def storage(self) -> Storage:
        return EphemeralStorage()

    @pytest.fixture
    def stranger(self, storage: Storage) -> TieredMemory:
        return TieredMemory(storage, owner="somebody else", rules=SMALL)


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


class TestOnSQLite(OnDisk):
    make = staticmethod(lambda folder: SQLiteStorage(folder / "agent.db", durability="fast"))


class TestOnSQLiteWithoutSharedMemory(OnDisk):
    make = staticmethod(lambda folder: SQLiteStorage(folder / "agent.db", durability="fast", journal="truncate"))


class TestOnFiles(OnDisk):
    make = staticmethod(lambda folder: FilesystemStorage(folder / "agent", durability="fast"))


del OnDisk


def test_any_life_is_remembered(monkeypatch):
    """Whatever happens to the pages of two owners, each planted word is found where it was said, by its owner alone."""
    import os

    from hypothesis.stateful import run_state_machine_as_test
    from machine_lives import Lives, reached, steps

    monkeypatch.setattr("memci.context.memory_client.BATCH", 10**9)
    reached.clear()

    run_state_machine_as_test(Lives, settings=steps(int(os.environ.get("MEMCI_EXAMPLES", "12"))))

    met = ("mid", "short", "evicted", "observed", "hand-over", "search", "undo", "erase", "erase entry", "death")
    assert [each for each in (*met, "erase context") if not reached[each]] == []
