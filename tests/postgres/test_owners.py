"""Ids of owners on Postgres: the tests of the other stores."""

import pytest

from memci.storage.opening import open_store
from tests.context.test_context_owners import *  # noqa: F403


@pytest.fixture
def storage(postgres_url):
    """An empty store."""
    with_all = open_store(postgres_url)
    yield with_all
    with_all.close()
