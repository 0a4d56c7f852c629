"""FilesystemStorage keeps the promises of every store."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memci.storage import FilesystemStorage
from memci.testing.storage import DurableStorageConformance

from .kit import flip, line_of


class TestFilesystemStorage(DurableStorageConformance):
    @pytest.fixture(autouse=True)
    def unsynced(self, unsynced: None) -> None:
        pass

    @pytest.fixture
    def reopen(self, path: Path) -> Callable[[], FilesystemStorage]:
        return lambda: FilesystemStorage(path, durability="fast")

    @pytest.fixture
    def storage(self, reopen: Callable[[], FilesystemStorage]) -> Iterator[FilesystemStorage]:
        storage = reopen()
        yield storage
        storage.close()

    @pytest.fixture
    def files(self, path: Path) -> Callable[[], list[Path]]:
        return lambda: [each for each in path.rglob("*") if each.is_file()]

    @pytest.fixture
    def corrupt(self, path: Path) -> Callable[[str, int], None]:
        return lambda context, seq: flip(path, context, seq)

    @pytest.fixture
    def remove(self, path: Path) -> Callable[[str, int], None]:
        def delete(context: str, seq: int) -> None:
            file, line = line_of(path, context, seq)
            file.write_bytes(file.read_bytes().replace(line + b"\n", b""))

        return delete


class TestSpilledAtOnce(TestFilesystemStorage):
    """The same promises, where each commit first spills what the one before brought."""

    @pytest.fixture(autouse=True)
    def spill(self, spill_at_once: None) -> None:
        pass
