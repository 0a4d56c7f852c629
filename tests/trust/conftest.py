"""A folder in RAM, where there is one: what is tested here is no disk."""

from pathlib import Path

import pytest

from tests.faults.worker import room


@pytest.fixture
def folder():
    """Give a folder that is empty."""
    with room() as made:
        yield Path(made)
