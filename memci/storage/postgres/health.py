"""Checks the settings of a Postgres server that matter to contexts, for `memci doctor`."""

from collections.abc import Iterator
from typing import Literal

from .database import Database
from .schema import SCHEMA_VERSION
from .store import PostgresStorage

_SETTINGS = """
SELECT current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'),
current_setting('data_checksums'), current_setting('autovacuum'), current_setting('max_connections')::int,
pg_is_in_recovery(), pg_database_size(current_database()), version()"""
_ARCHIVE = "SELECT current_setting('archive_mode'), (SELECT count(*) FROM pg_stat_replication)"
_DEAD = """
SELECT relname, n_live_tup, n_dead_tup FROM pg_stat_user_tables
WHERE schemaname = %s AND n_dead_tup > 10000 AND n_dead_tup > n_live_tup ORDER BY relname"""

State = tuple[str, Literal["ok", "warning", "problem"], str, str]  # name, state, finding, advice


def health(url: str) -> Iterator[State]:
    """Yield findings about the server of *url* and about its store, which is not made if it is missing.

    Raises:
        InvalidSetting: If the URL can't be read, or the driver is missing.
        StorageError: If the server can't be reached, or has no store there.
    """
    storage = PostgresStorage(url, read_only=True)
    try:
        yield from _server(storage.database)
        yield "schema", "ok", f"{SCHEMA_VERSION}, named {storage.database.schema}", ""
        problems = storage.damage()
        for problem in problems:
            yield "rows", "problem", problem, "restore a backup beside this database, and compare"
        if not problems:
            yield "rows", "ok", "every context has its entries, and no checksum was wrong", ""
    finally:
        storage.close()


def _server(database: Database) -> Iterator[State]:
    [row] = database.read_rows(_SETTINGS)
    fsync, full_pages, synchronous, checksums, autovacuum, connections, standby, size, version = row
    yield "server", "ok", str(version).split(" on ", maxsplit=1)[0], ""
    advice = "give the role a statement_timeout: ALTER ROLE … SET statement_timeout = '30s'" if database.pooled else ""
    how = "a pooler of transactions: statements are not prepared" if advice else "direct: statements are prepared"
    yield "connection", "ok", how, advice
    yield "size", "ok", f"{size // 2**20:,} MiB in the database", ""
    if fsync != "on" or full_pages != "on":
        text = f"fsync {fsync}, full_page_writes {full_pages}: a power cut damages the database"
        yield "safety", "problem", text, "set both to on"
    elif synchronous == "off":
        text = "synchronous_commit is off: a crash of the server takes the newest turns"
        yield "safety", "problem", text, "set it to on, at least for the role of memci"
    else:
        yield "safety", "ok", f"fsync on, synchronous_commit {synchronous}", ""
    advice = "pg_checksums --enable while the server is down"
    yield _unless(checksums != "on", "checksums", "off: a damaged page is found late", advice, "on")
    if autovacuum != "on":
        yield "autovacuum", "warning", "off: tables grow without end", "set autovacuum = on"
    if standby:
        yield "role", "warning", "a standby, which can only be read", "name the primary server to write"
    [(archive, standbys)] = database.read_rows(_ARCHIVE)
    alone = "no archive of its log, and no standby: what was committed since the last dump has one copy"
    lone, kept = archive == "off" and not standbys, f"archive_mode {archive}, {standbys:,} standbys"
    yield _unless(lone, "backups", alone, "see docs/scale.md", kept)
    yield "connections", "ok", f"{connections:,} at most", ""
    for table, live, dead in database.read_rows(_DEAD, database.schema):
        text = f"{table}: {dead:,} dead rows beside {live:,}"
        yield "vacuum", "warning", text, "end transactions that stay open; see docs/scale.md"


def _unless(bad: bool, name: str, text: str, advice: str, well: str) -> State:
    """Return a warning with *advice* if it is *bad*, else that all is *well*."""
    return (name, "warning", text, advice) if bad else (name, "ok", well, "")
