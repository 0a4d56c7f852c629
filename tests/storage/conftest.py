"""What the tests of stores share: a path, and a store at it, a SQLite one unless a folder of tests says another."""

import os
import tempfile
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


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """A folder, and a user who owns it and is not root."""
    root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as name:
        if root:
            os.chown(name, 65534, 65534)
            os.seteuid(65534)
        try:
            yield Path(name)
        finally:
            if root:
                os.seteuid(0)
