"""The tests of locks that the other stores pass, on Postgres."""

from contextlib import closing

import pytest

from memci.storage import PostgresStorage
from tests.storage.test_locks import *  # noqa: F403 -- the tests


@pytest.fixture
def storage(postgres_url):
    """One store instead of one of each kind."""
    with closing(PostgresStorage(postgres_url)) as storage:
        yield storage
