"""What the tests of the memory share: a store, and a way to import what stands beside them."""

import contextlib
import sys
from pathlib import Path

import pytest

from memci import SQLiteStorage

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def storage(tmp_path):
    with contextlib.closing(SQLiteStorage(tmp_path / "agent.db", durability="fast")) as made:
        yield made
