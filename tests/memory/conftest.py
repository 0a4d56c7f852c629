"""What the tests of the memory share: a store, and a way to import what stands beside them."""

import contextlib
import sys
from pathlib import Path

import pytest

from memci import EphemeralStorage, SQLiteStorage
from memci.storage import FilesystemStorage

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def storage(tmp_path):
    with contextlib.closing(SQLiteStorage(tmp_path / "agent.db", durability="fast")) as made:
        yield made


@pytest.fixture(params=["ram", "sqlite", "files"])
def each_storage(request, tmp_path):
    made = {
        "ram": EphemeralStorage,
        "sqlite": lambda: SQLiteStorage(tmp_path / "agent.db", durability="fast"),
        "files": lambda: FilesystemStorage(tmp_path / "agent", durability="fast"),
    }[request.param]()
    with contextlib.closing(made):
        yield made


@pytest.fixture
def alone(monkeypatch):
    """Leave the telling to the tests: what the worker does is `test_background`'s."""
    monkeypatch.setattr("memci.context.memory_client.BATCH", 10**9)
