"""What the tests of stores share: a path, and a SQLite store at it."""

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
