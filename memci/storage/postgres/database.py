"""One schema of a Postgres database: its connections, its tables, and the meaning of its errors.

    postgresql://ada@db.example/agents?schema=memci      a URL of libpq, and the schema

    each call                 ──▶  a connection of the pool; at most `pool_size` are open
    read                      ──▶  one statement, repeated on a new connection if the connection is lost
    change                    ──▶  one statement, which is a transaction; `ConnectionLost` if its result is unknown
    transaction               ──▶  several statements; nothing is done if the connection is lost before the end

Nothing depends on the session: no lasting settings or locks, and no prepared statements behind a pooler of transactions
(PgBouncer), which is detected.
"""

import logging
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from ...errors import (
    CorruptRecord,
    HandlePoisoned,
    InvalidSetting,
    LimitExceeded,
    MemciError,
    SchemaTooNew,
    StorageBusy,
    StorageError,
    StorageFull,
    StorageReadOnly,
    StorageUnavailable,
    brief,
)
from .schema import SCHEMA_VERSION, TABLES

try:
    import psycopg
    from psycopg.types.numeric import Int8Dumper
    from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout
except ImportError as error:
    raise InvalidSetting("store", f"Postgres needs a driver ({error}): pip install 'memci[postgres]'") from error

OLDEST_SERVER: Final = 140_000  # the oldest supported version of Postgres, as the server reports it

_MAKE_SCHEMA = "CREATE SCHEMA IF NOT EXISTS our"
# Not `to_regclass`: within a transaction it may not see what another process has made since.
_THERE = "SELECT EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = %s AND tablename = 'store')"
_VERSION = "SELECT version FROM our.store"
_LOCK_MAKING = "SELECT pg_advisory_xact_lock(7881692370211)"
_SETTINGS = "SELECT pg_backend_pid(), current_setting('server_version_num')::int, current_setting('server_encoding')"
_TIMEOUT = "SELECT set_config('statement_timeout', %s, false)"
_TIMEOUT_HERE = "SELECT set_config('statement_timeout', %s, true)"
_NOW = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text"
# Whether a transaction that began before %s is open. A lazy VACUUM reads no removed rows.
_IS_OLDER_OPEN = """
SELECT coalesce(max(age), 0) > age(%s::xid8::xid) FROM (
    SELECT greatest(age(backend_xid), age(backend_xmin)) FROM pg_stat_activity AS one
        WHERE (datid IS NULL OR datname = current_database()) AND pid <> pg_backend_pid()
        AND NOT EXISTS (SELECT 1 FROM pg_stat_progress_vacuum AS lazy WHERE lazy.pid = one.pid)
    UNION ALL SELECT age(transaction) FROM pg_prepared_xacts WHERE database = current_database()
    UNION ALL SELECT age(xmin) FROM pg_replication_slots) AS open (age)
"""

Row = tuple[Any, ...]
Connection = psycopg.Connection[Row]
_T = TypeVar("_T")

_PAUSE_SECONDS = 0.05
"""between two attempts to connect to a server that restarts, which takes seconds, or two looks at what is open"""
_inherited: list[ConnectionPool[Any]] = []  # pools of the parent process, whose threads do not exist here
logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())  # otherwise Python prints its warnings


class ConnectionLost(StorageUnavailable):
    """The connection was lost while a statement ran: it is unknown whether it is done."""


class Duplicate(StorageError):
    """A row with this key exists; nothing was changed."""


class _Connection(psycopg.Connection[Row]):
    """A connection as the pool makes it: by its `Database`."""

    @classmethod
    def connect(cls, _conninfo: str = "", *, database: "Database") -> Connection:  # type: ignore[override]
        """Return a new connection of *database*."""
        return database.connect_patiently()


class Database:
    """One schema of a database. Thread-safe; not to be used after fork(). Its arguments are those of `PostgresStorage`.

    Behind a pooler, where a session has no settings, the timeout of statements holds in transactions of several only.
    """

    def __init__(
        self,
        url: str,
        schema: str | None,
        pool_size: int,
        wait_seconds: float,
        statement_timeout_seconds: float,
        *,
        prepare: bool | None,
        read_only: bool,
    ) -> None:
        self._url, named = _split_url(url)
        self.schema = next(each for each in (schema, named, "memci") if each is not None)
        if not re.fullmatch(r"\w+", self.schema) or len(self.schema.encode()) > 63:
            reason = f"{brief(self.schema)} can't be the name of a schema: 1 to 63 letters, digits and _"
            raise InvalidSetting("schema", reason)
        if type(pool_size) is not int or not 1 <= pool_size <= 10_000:
            raise InvalidSetting(
                "pool_size", f"expected a number of connections (an int from 1), got {brief(pool_size)}"
            )
        self.name = _name(self._url, self.schema)
        self.read_only = read_only
        self.wait_seconds, self._prepare = wait_seconds, prepare
        self._timeout = str(round(statement_timeout_seconds * 1000))
        self._statements: dict[str, bytes] = {}
        self._pid = os.getpid()
        self._failure: psycopg.Error | None = None
        """the error of the last attempt to connect, None if it succeeded"""
        self._pool = ConnectionPool(
            min_size=0,
            max_size=pool_size,
            open=False,
            timeout=wait_seconds,
            reconnect_timeout=0,  # `_Connection` has its own retries
            num_workers=1,
            connection_class=_Connection,
            kwargs={"database": self},
        )
        self.pooled = False
        """whether a pooler of transactions was detected"""
        self.server_version = 0

    def prepare(self) -> None:
        """Make the tables if there are none, and open the pool. It raises at once if the server can't be reached."""
        try:
            first = self.connect()
        except psycopg.OperationalError as error:
            raise StorageUnavailable(self._unreachable(error)) from error
        with self._errors(), closing(first) as connection:
            if not self._found(connection):
                if self.read_only:
                    raise StorageUnavailable(f"there is no store in {self.name}: check the URL, or open it to write")
                with connection.transaction():
                    self._execute(connection, _LOCK_MAKING)
                    if not self._found(connection):  # else another process was faster
                        self._execute(connection, _MAKE_SCHEMA)
                        self._execute(connection, TABLES)
        self._pool.open()

    def read_rows(self, statement: str, *values: object) -> list[Row]:
        """Return the rows of *statement*, which changes nothing."""
        return self._repeated(lambda connection: self._execute(connection, statement, values))

    def change_rows(self, statement: str, *values: object) -> list[Row]:
        """Return the rows of *statement*, which is a transaction.

        ConnectionLost if it is unknown whether it is done.
        """
        self._check_writable()
        with self._errors(), self._connection() as connection:
            return self._execute(connection, statement, values)

    def transaction(self, work: Callable[[Callable[..., list[Row]]], _T]) -> _T:
        """Return the result of *work*, called in a transaction with a function like `read_rows` for its statements.

        If the connection is lost before the end, everything is repeated.
        ConnectionLost if it was lost at the end: it is unknown whether the transaction is done.
        """
        self._check_writable()

        done: list[bool] = []

        def whole(connection: Connection) -> _T:
            with connection.transaction():
                self._execute(connection, _TIMEOUT_HERE, (self._timeout,))
                made = work(lambda statement, *values: self._execute(connection, statement, values))
                done.append(True)
            return made

        return self._repeated(whole, is_done=lambda: bool(done))

    @contextmanager
    def changing(self) -> Iterator[Connection]:
        """Give a connection in a transaction, which ends with the block; nothing is repeated."""
        self._check_writable()
        with self._errors(), self._connection() as connection, connection.transaction():
            self._execute(connection, _TIMEOUT_HERE, (self._timeout,))
            yield connection

    def run_alone(self, statement: str) -> None:
        """Run *statement*, which can't be a part of a transaction, however long it takes."""
        self._check_writable()
        with self._errors(), self._connection() as connection:
            if not self.pooled:
                self._execute(connection, _TIMEOUT, ("0",))
            try:
                self._execute(connection, statement)
            finally:
                if not self.pooled and not connection.closed:
                    self._execute(connection, _TIMEOUT, (self._timeout,))

    def outlast(self) -> bool:
        """Wait until no transaction is open that began before now; return False if one still is after `wait_seconds`.

        It may read rows that were removed, so VACUUM would keep them.
        """
        ((now,),) = self.read_rows(_NOW)
        until = time.monotonic() + self.wait_seconds
        while self.read_rows(_IS_OLDER_OPEN, now)[0][0]:
            if time.monotonic() > until:
                return False
            time.sleep(_PAUSE_SECONDS)
        return True

    def close(self) -> None:
        """Close all free connections; those in use are closed when they are returned."""
        if os.getpid() == self._pid:
            self._pool.close()

    def _repeated(self, work: Callable[[Connection], _T], is_done: Callable[[], bool] = lambda: False) -> _T:
        until = time.monotonic() + self.wait_seconds
        while True:
            try:
                with self._errors(), self._connection() as connection:
                    return work(connection)
            except ConnectionLost:
                if is_done() or time.monotonic() > until:
                    raise

    def _execute(self, connection: Connection, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """Return the rows of *statement*, in which `our` is replaced by the schema."""
        text = self._statements.get(statement)
        if text is None:
            text = re.sub(r"\bour\b", f'"{self.schema}"', statement).encode()
            self._statements[statement] = text
        # Without values there may be several statements, whose results come as texts.
        cursor = connection.execute(text, values, binary=True) if values else connection.execute(text)
        return cursor.fetchall() if cursor.description else []

    def _check_writable(self) -> None:
        if self.read_only:
            raise StorageReadOnly(f"{self.name} was opened for reading only: open it without read_only to write")

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        """Give a connection of the pool. If it is lost, replace the free ones, too: a server closes all at once."""
        if os.getpid() != self._pid:  # before the lock, which fork() may have copied while it was locked
            _inherited.append(self._pool)
            raise HandlePoisoned(f"{self.name} was opened before fork(): open the store again in this process")
        try:
            connection = self._pool.getconn()
        except PoolClosed as error:
            raise HandlePoisoned(f"{self.name} was closed: open the store again") from error
        except PoolTimeout as error:
            if self._failure is not None:
                raise StorageUnavailable(self._unreachable(self._failure)) from self._failure
            reason = f"all {self._pool.max_size} connections to {self.name} were in use: pass a larger pool_size"
            raise StorageBusy(reason) from error
        try:
            yield connection
        finally:
            if connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                connection.close()
            broken = connection.broken
            self._pool.putconn(connection)
            if broken:
                self._pool.drain()

    def connect(self) -> Connection:
        """Return a new connection, ready for use. It raises errors of the driver."""
        connection = psycopg.connect(
            self._url, autocommit=True, client_encoding="utf8", connect_timeout=max(2, round(self.wait_seconds))
        )
        try:
            # One type for all integers, so that a statement is prepared once.
            connection.adapters.register_dumper(int, Int8Dumper)
            [(pid, version, encoding)] = self._execute(connection, _SETTINGS)
            self._check_server(version, encoding)
            self.server_version = version
            self.pooled = pid != connection.info.backend_pid
            if self._prepare is False or (self.pooled and self._prepare is None):
                connection.prepare_threshold = None
            if not self.pooled:
                self._execute(connection, _TIMEOUT, (self._timeout,))
        except BaseException:
            with suppress(psycopg.Error):
                connection.close()
            raise
        return connection

    def connect_patiently(self) -> Connection:
        """Return a new connection; try for `wait_seconds`, since the server may be restarting."""
        until = time.monotonic() + self.wait_seconds
        while True:
            try:
                connection = self.connect()
            except psycopg.Error as error:
                self._failure = error
                if self._pool.closed or not _is_lost(error) or time.monotonic() > until:
                    raise
                time.sleep(_PAUSE_SECONDS)
            else:
                self._failure = None
                return connection

    def _check_server(self, version: int, encoding: str) -> None:
        if version < OLDEST_SERVER or encoding != "UTF8":
            what = f"Postgres {version // 10_000} with {encoding}"
            raise StorageUnavailable(f"{self.name} is {what}: memci needs 14 or later, and a database in UTF8")

    def _found(self, connection: Connection) -> bool:
        """Return whether the tables exist."""
        if not self._execute(connection, _THERE, (self.schema,))[0][0]:
            return False
        [[found]] = self._execute(connection, _VERSION) or [(0,)]
        if found > SCHEMA_VERSION:
            reason = f"its schema is {found}, this one knows {SCHEMA_VERSION}"
            raise SchemaTooNew(f"a later memci wrote {self.name}: {reason}: install a later memci")
        if found < SCHEMA_VERSION:
            advice = "export its contexts with the version that wrote it, and import them into a new schema"
            raise StorageUnavailable(f"{self.name} is of an earlier memci, which has other tables: {advice}")
        return True

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise self._error(error) from error

    def _error(self, error: psycopg.Error) -> MemciError:
        """Return the error of memci for *error*, without a password in its text."""
        if _is_lost(error):
            return ConnectionLost(self._unreachable(error))
        state, said = error.sqlstate or "", _shorten(error)
        for beginning, kind, advice in _MEANINGS:
            if state.startswith(beginning):
                return kind(f"{self.name}: {said}: {advice}")
        if state.startswith("XX"):
            return CorruptRecord("", 0, f"{self.name} is damaged: {said}: restore a backup")
        if state.startswith("54"):
            return LimitExceeded("bytes in one row of Postgres", 2**30, 10**9)
        return StorageUnavailable(f"{self.name} can't be used: {said}")

    def _unreachable(self, error: psycopg.Error) -> str:
        return f"the connection to {self.name} failed: {_shorten(error)}: check the URL, and that the server runs"


_MEANINGS: Sequence[tuple[str, type[StorageError], str]] = (
    ("23505", Duplicate, "nothing was changed"),
    ("53100", StorageFull, "free some space on the server and try again"),
    ("53", StorageBusy, "the server is short of memory or connections: try again later, or raise its limits"),
    ("55P03", StorageBusy, "try again later"),
    ("40", StorageBusy, "another transaction was in the way: try again"),
    ("57014", StorageBusy, "the statement took too long: try again, or pass a larger statement_timeout_seconds"),
    ("25006", StorageReadOnly, "this server only reads: name the primary one"),
    ("42501", StorageReadOnly, "the role may not do this: grant it the rights on the schema"),
    ("3D000", StorageUnavailable, "make the database first"),
    ("28", StorageUnavailable, "check the name and the password of the role"),
    ("42P01", StorageUnavailable, "its tables were removed: open the store again"),
    ("3F000", StorageUnavailable, "its schema was removed: open the store again"),
    ("42P07", StorageUnavailable, "the schema has tables of another program: name another schema"),
)
"""beginning of an SQLSTATE, the error, and its advice"""


def _is_lost(error: BaseException | None) -> bool:
    """Return whether *error* means that a connection was lost, or can't be made at the moment."""
    if not isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
        return False
    if error.diag.severity_nonlocalized == "PANIC":  # the server stops, and a commit may be in its log nevertheless
        return True
    return not error.sqlstate or error.sqlstate.startswith(("08", "57P"))


def _shorten(error: psycopg.Error) -> str:
    return " ".join(str(error).split())[:300]


def _split_url(url: str) -> tuple[str, str | None]:
    """Return *url* without the parameter `schema`, and its value."""
    parts = urlsplit(url)
    values = parse_qsl(parts.query, keep_blank_values=True)
    schema = dict(values).get("schema")
    rest = urlunsplit(parts._replace(query=urlencode([each for each in values if each[0] != "schema"])))
    # urlunsplit drops the slashes before an empty host
    if not parts.netloc and not rest.startswith(f"{parts.scheme}://"):
        rest = rest.replace(":/", ":///", 1)
    try:
        psycopg.conninfo.conninfo_to_dict(rest)
    except psycopg.Error:  # its text may repeat a password
        reason = "the URL can't be read: expected one as postgresql://user@host/database, which libpq understands"
        raise InvalidSetting("store", reason) from None
    return rest, schema


def _name(url: str, schema: str) -> str:
    """Return the name of the store for people: *url* without a password, and *schema*."""
    known: Mapping[str, Any] = psycopg.conninfo.conninfo_to_dict(url)
    port = f":{known['port']}" if "port" in known else ""
    return f"postgresql://{known.get('host', '')}{port}/{known.get('dbname', '')} (schema {schema})"
