"""Stores around others keep the promises of each store that they may be around (`make wrapped`)."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memci.memory.repository.home import tables_of
from memci.memory.repository.store import MemoryStore
from memci.storage import EncryptedStorage, EphemeralStorage, FilesystemStorage, QuotaStorage, SQLiteStorage, Storage
from memci.storage.quota import Quota
from memci.testing.storage import DurableStorageConformance, StorageConformance
from tests.memory.tables_suite import MemoryStoreConformance
from tests.storage.plain_store import PlainStore

sys.path.insert(0, str(Path(__file__).parents[1] / "memory"))
from beside_pages import OnDisk
from test_encrypted_memory import shown_in, told_everything

KEY = bytes(range(32))


class TestEncryptedEphemeralStorage(StorageConformance):
    test_any_history_reads_as_a_known_store_does = None  # it takes long, and is tried with the encrypted file

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
    test_any_history_reads_as_a_known_store_does = None

    @pytest.fixture
    def opened(self, tmp_path: Path) -> Callable[[], Storage]:
        return lambda: FilesystemStorage(tmp_path / "agents", durability="fast")


class TestMemoryBesideAnEncryptedFile(OnDisk):
    make = staticmethod(lambda folder: EncryptedStorage(SQLiteStorage(folder / "agent.db", durability="fast"), KEY))


class TestMemoryInAnEncryptedFolder(OnDisk):
    test_any_history_is_found_as_a_plain_dict_would = None

    make = staticmethod(lambda folder: EncryptedStorage(FilesystemStorage(folder / "agent", durability="fast"), KEY))


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
