"""EncryptedStorage keeps the promises of each store that it may be around (`make encryption`)."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memci.storage import EncryptedStorage, FilesystemStorage, SQLiteStorage, Storage
from memci.testing.storage import DurableStorageConformance
from tests.storage.plain_store import PlainStore

KEY = bytes(range(32))


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
