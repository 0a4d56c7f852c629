"""Stores around others keep the promises of each store that they may be around (`make wrapped`)."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memci.memory import TieredMemory
from memci.memory.backend import PageRecord
from memci.memory.repository.home import tables_of
from memci.memory.repository.store import MemoryStore
from memci.memory.tiers.rules import Rules
from memci.storage import EncryptedStorage, EphemeralStorage, FilesystemStorage, QuotaStorage, SQLiteStorage, Storage
from memci.storage.quota import Quota
from memci.testing.memory.conformance import DurableMemoryConformance
from memci.testing.memory.rows import MemoryStoreConformance
from memci.testing.storage import DurableStorageConformance, StorageConformance
from tests.storage.plain_store import PlainStore

sys.path.insert(0, str(Path(__file__).parents[1] / "memory"))
from machine_kit import keeping
from test_encrypted_memory import shown_in, told_everything

KEY = bytes(range(32))
SMALL = Rules(capacity=4, batch=2, episodes=3)


class TestEncryptedEphemeralStorage(StorageConformance):
    @pytest.fixture
    def storage(self) -> Iterator[Storage]:
        with contextlib.closing(EncryptedStorage(EphemeralStorage(), KEY)) as storage:
            yield storage


class TestStorageWithAQuota(StorageConformance):
    @pytest.fixture
    def storage(self) -> Iterator[Storage]:
        with contextlib.closing(QuotaStorage(EphemeralStorage(), Quota(2**40, 10**9, 10**9))) as storage:
            yield storage


class TestEncryptedSQLiteStorage(DurableStorageConformance):
    @pytest.fixture
    def known(self) -> type[PlainStore]:
        return PlainStore

    @pytest.fixture
    def opened(self, tmp_path: Path) -> Callable[[], Storage]:
        return lambda: SQLiteStorage(tmp_path / "agent.db", durability="fast")

    @pytest.fixture
    def reopen(self, opened: Callable[[], Storage]) -> Callable[[], EncryptedStorage]:
        return lambda: EncryptedStorage(opened(), lambda owner: [KEY])

    @pytest.fixture
    def storage(self, reopen: Callable[[], EncryptedStorage]) -> Iterator[EncryptedStorage]:
        storage = reopen()
        yield storage
        storage.close()

    @pytest.fixture
    def files(self, tmp_path: Path) -> Callable[[], list[Path]]:
        return lambda: [each for each in tmp_path.rglob("*") if each.is_file()]


class TestEncryptedFolder(TestEncryptedSQLiteStorage):
    @pytest.fixture
    def opened(self, tmp_path: Path) -> Callable[[], Storage]:
        return lambda: FilesystemStorage(tmp_path / "agents", durability="fast")


class TestMemoryBesideAnEncryptedFile(DurableMemoryConformance):
    make: Callable[[Path], Storage] = staticmethod(lambda folder: SQLiteStorage(folder / "agent.db", durability="fast"))

    @pytest.fixture
    def storage(self, tmp_path: Path) -> Iterator[Storage]:
        with contextlib.closing(EncryptedStorage(type(self).make(tmp_path), KEY)) as storage:
            yield storage

    @pytest.fixture
    def keep(self, storage: Storage) -> Callable[[PageRecord], None]:
        return keeping(storage)

    @pytest.fixture
    def memory(self, storage: Storage) -> Iterator[TieredMemory]:
        memory = TieredMemory(storage, owner="anna", rules=SMALL, clock=lambda: 1e6)
        yield memory
        with contextlib.suppress(Exception):
            memory.close()

    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Iterator[Callable[..., TieredMemory]]:
        with contextlib.ExitStack() as opened:

            def again(owner: str = "anna") -> TieredMemory:
                storage = EncryptedStorage(type(self).make(tmp_path), KEY)
                opened.enter_context(contextlib.closing(storage))
                return TieredMemory(storage, owner=owner, rules=SMALL, clock=lambda: 1e6)

            yield again


class TestMemoryInAnEncryptedFolder(TestMemoryBesideAnEncryptedFile):
    make = staticmethod(lambda folder: FilesystemStorage(folder / "agent", durability="fast"))


class TestEncryptedTables(MemoryStoreConformance):
    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Iterator[Callable[[], MemoryStore]]:
        with contextlib.ExitStack() as stack:

            def opened() -> MemoryStore:
                storage = EncryptedStorage(SQLiteStorage(tmp_path / "agent.db", durability="fast"), KEY)
                return tables_of(stack.enter_context(contextlib.closing(storage)))

            yield opened


def test_no_file_beside_a_database_shows_a_text(tmp_path: Path) -> None:
    """The database, its log and its witness show no canary while it is open, and none when it is closed."""
    with contextlib.closing(EncryptedStorage(SQLiteStorage(tmp_path / "agent.db"), KEY)) as storage:
        told_everything(storage)
        assert shown_in(tmp_path) == set()
    assert shown_in(tmp_path) == set()
