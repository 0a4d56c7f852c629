"""What the tests of stores share: a path, and a store at it, a SQLite one unless a folder of tests says another."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memci.storage import FilesystemStorage, SQLiteStorage, Storage


@pytest.fixture
def store_class() -> type[SQLiteStorage | FilesystemStorage]:
    return SQLiteStorage


@pytest.fixture
def path(tmp_path: Path, store_class: type[Storage]) -> Path:
    return tmp_path / ("agent.db" if store_class is SQLiteStorage else "agent")


@pytest.fixture
def storage(path: Path, store_class: type[SQLiteStorage | FilesystemStorage]) -> Iterator[Storage]:
    storage = store_class(path, durability="fast", busy_timeout_seconds=0)
    yield storage
    storage.close()
