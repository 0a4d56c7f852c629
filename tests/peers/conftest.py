"""Stores that the regressions run on. It tests nothing."""

from pathlib import Path

import pytest

from tests.context.kit import STORES, store


@pytest.fixture(params=STORES)
def storage(request, tmp_path: Path):
    made = store(request.param, tmp_path)
    yield made
    made.close()
