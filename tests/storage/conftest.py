"""What the tests of stores share: a path, and a SQLite store at it."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from memci.storage import SQLiteStorage


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.db"


@pytest.fixture
def storage(path: Path) -> Iterator[SQLiteStorage]:
    storage = SQLiteStorage(path, durability="fast", busy_timeout_seconds=0)
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
