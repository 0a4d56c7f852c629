"""The server for tests: it has what the stores need, and survives being killed."""

from contextlib import closing

import psycopg
import pytest
from psycopg.pq import DiagnosticField

from memci.errors import StorageFull
from memci.storage import PostgresStorage
from memci.storage.postgres.database import ConnectionLost
from tests.postgres.server import VERSION


def test_server_has_pgvector(server):
    """It is the version that is named, and sorts by the distance of vectors."""
    with psycopg.connect(server.url) as connection:
        connection.execute("CREATE EXTENSION vector SCHEMA pg_catalog")
        [version] = connection.execute("SHOW server_version_num").fetchone()
        [distance] = connection.execute("SELECT '[1,2]'::vector <-> '[1,4]'::vector").fetchone()
        connection.rollback()

    assert int(version) // 10_000 == VERSION
    assert distance == 2


def test_server_keeps_commits_when_killed(server):
    """What was committed is there after kill -9 of the postmaster, and what was not is gone."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 1 AS one")
    unfinished = psycopg.connect(server.url)
    unfinished.execute("INSERT INTO kept VALUES (2)")

    server.kill()
    server.start()

    unfinished.close()
    with psycopg.connect(server.url, autocommit=True) as connection:
        assert connection.execute("SELECT one FROM kept").fetchall() == [(1,)]
        connection.execute("DROP TABLE kept")


@pytest.mark.parametrize(("severity", "expected"), [(b"ERROR", StorageFull), (b"PANIC", ConnectionLost)])
def test_a_server_that_ends_for_want_of_room_does_not_say_that_nothing_is_stored(postgres_url, severity, expected):
    """It can't write its log: what was committed just before may be in it, so the commit is looked up again."""
    said = {DiagnosticField.SEVERITY_NONLOCALIZED: severity, DiagnosticField.SQLSTATE: b"53100"}

    with closing(PostgresStorage(postgres_url)) as storage:
        error = storage.database._error(psycopg.errors.DiskFull("no space left on device", info=said))

    assert type(error) is expected
