"""One fixture: tools that record their calls."""

import pytest

from .recorder import Recorder


@pytest.fixture
def recorder() -> Recorder:
    """A fresh recorder."""
    return Recorder()
