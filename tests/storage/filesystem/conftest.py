"""What the tests of a folder run on. It tests nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memci.storage import FilesystemStorage


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent"


@pytest.fixture
def storage(path: Path) -> Iterator[FilesystemStorage]:
    storage = FilesystemStorage(path, durability="fast", busy_timeout_seconds=0)
    yield storage
    storage.close()
