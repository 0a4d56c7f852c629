"""The stores that the tests of a context run on. It tests nothing."""

import contextlib

import pytest

from .kit import STORES, store


@pytest.fixture(params=STORES)
def storage(request, tmp_path):
    with contextlib.closing(store(request.param, tmp_path)) as made:
        yield made
