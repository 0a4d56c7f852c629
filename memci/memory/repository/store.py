"""Where a memory keeps what it derives: tables beside the pages, in the same SQLite file where there is one.

    SQLiteStorage("agent.db")       the tables are in agent.db
    FilesystemStorage("agent")      in agent/memory.db
    EphemeralStorage()              in RAM, as the pages
    another store                   where its `sidecar` says (`SidecarStorage`), or in a file that is named

All of it can be made again from raw pages, so losing it loses no message. Each owner has a number, and every row and
every term says whose it is; a change counts the owner's revision up, by which other processes see that theirs is old.
This module knows nothing of what the rows mean.
"""

import os
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import Any, Final

import apsw

from ...errors import CorruptRecord, HandlePoisoned, SchemaTooNew, StorageReadOnly
from ...storage import Storage
from ...storage.protocol import Sidecar
from ...storage.sqlite.connection import make_private, storage_error
from ...storage.sqlite.schema import sql_file
from ...storage.sqlite.write import begin
from ...storage.validation import with_sidecar
from .owner_cache import OwnerCache

SCHEMA_VERSION: Final = 2
_BUSY_MILLISECONDS = 5_000

_TABLES: Final = sql_file(__file__, "tables.sql")
_SINCE_2: Final = sql_file(__file__, "since_2.sql")
_FROM_1 = "UPDATE memory_page SET analyzed = 3 WHERE analyzed = 2; UPDATE memory_schema SET version = 2;"

_THERE = "SELECT 1 FROM sqlite_schema WHERE name = 'memory_schema'"

_shared: "weakref.WeakKeyDictionary[Storage, dict[str, MemoryStore]]" = weakref.WeakKeyDictionary()
"""the tables of each store, by their path; "" is its sidecar"""
_lock = RLock()
_inherited: list[apsw.Connection] = []


class MemoryStore:
    """The tables of the memories of one store. Thread-safe; all who use one storage object share one of these."""

    def __init__(self, place: Sidecar, *, lasting: bool) -> None:
        self.lock = RLock()
        self.read_only = place.read_only
        self._path = place.path
        self._synced = not place.shared
        self._lasting = lasting
        """whether it lives as long as its storage, not only as long as it has users"""
        self._pid = os.getpid()
        self._connection: apsw.Connection | None = None
        self._version = 0
        """of the tables, 0 if there are none yet"""
        self._closed = False
        self._users = 0
        self.owners = OwnerCache(place.cache_bytes)
        """what is in RAM of owners"""

    @classmethod
    def beside(cls, storage: Storage, path: str | os.PathLike[str] | None = None) -> "MemoryStore":
        """Return the tables that belong to *storage*; opened when they are first used.

        Those in its sidecar are closed when the store closes, those at a *path* by their last user.

        Args:
            storage: The store of the pages.
            path: The file of the tables; None: the store's sidecar.

        Raises:
            InvalidSetting: If there is no path and the store has no sidecar.
        """
        key = "" if path is None else os.path.abspath(path)  # noqa: PTH100 -- a Path would resolve links
        with _lock:
            known = _shared.setdefault(storage, {})
            found = known.get(key)
            if found is None or found.closed:
                found = known[key] = cls(Sidecar(key), lasting=False) if key else cls._in_sidecar(storage)
            found._users += 1
            return found

    @classmethod
    def _in_sidecar(cls, storage: Storage) -> "MemoryStore":
        opened: list[MemoryStore] = []  # empty if a call is stopped before there are tables to close

        def release() -> None:
            for tables in opened:
                tables.shut()

        opened.append(cls(with_sidecar(storage).sidecar(release), lasting=True))
        weakref.finalize(storage, release).atexit = False  # a store that is dropped without close() leaves no file open
        return opened[0]

    @property
    def closed(self) -> bool:
        """Whether it was closed, or belongs to a parent process."""
        return self._closed or self._pid != os.getpid()

    @property
    def there(self) -> bool:
        """Whether anything was ever stored. Looking makes no tables."""
        with self.lock, self._errors():
            return self._look(make=False) is not None

    @property
    def has_jobs(self) -> bool:
        """Whether there is a table of jobs: a file of version 1 has none. Looking makes no tables."""
        return self.there and self._version > 1

    def read_rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query, [] if nothing was ever kept."""
        with self.lock, self._errors():
            connection = self._look(make=False)
            return [] if connection is None else connection.execute(statement, values).fetchall()

    def read_column(self, statement: str, *values: Any) -> list[Any]:
        """Return the first value of each row of a query."""
        return [row[0] for row in self.read_rows(statement, *values)]

    def read_value(self, statement: str, *values: Any) -> Any | None:
        """Return the first value of the first row of a query, None if it has no row."""
        return next(iter(self.read_column(statement, *values)), None)

    def execute(self, statement: str, *values: Any) -> int:
        """Execute a statement within `change`, and return how many rows it changed."""
        connection = self._writing()
        connection.execute(statement, values)
        return connection.changes()

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Execute a statement for each of *rows*, within `change`."""
        self._writing().executemany(statement, rows)

    def insert_row(self, statement: str, *values: Any) -> int:
        """Insert a row within `change`, and return its id."""
        connection = self._writing()
        connection.execute(statement, values)
        return connection.last_insert_rowid()

    def _writing(self) -> apsw.Connection:
        assert self._connection is not None and self._connection.in_transaction, "rows are written in a transaction"
        return self._connection

    @contextmanager
    def change(self) -> Iterator[apsw.Connection]:
        """Give the connection for one transaction: all of it is kept, or nothing. A nested one is a part of it."""
        with self.lock, self._errors():
            if self.read_only:
                raise StorageReadOnly(f"{self._path!r} was opened for reading only")
            connection = self._look(make=True)
            assert connection is not None, "tables are made where there are none"
            if connection.in_transaction:
                yield connection
                return
            with _transaction(connection):
                yield connection

    @property
    def writing(self) -> bool:
        """Whether the caller is in the middle of a change."""
        with self.lock:
            return self._connection is not None and self._connection.in_transaction

    def scrub(self) -> bool:
        """Empty the write-ahead log, which may hold what was removed; return False while another reader uses it."""
        with self.lock, self._errors():
            connection = self._look(make=False)
            if connection is not None and connection.in_transaction:
                return False
            if connection is None or connection.pragma("journal_mode") != "wal":
                return True
            try:
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            except (apsw.BusyError, apsw.LockedError):
                return False
            return True

    def purge(self) -> None:
        """Take removed terms out of the full-text index, where they stay until its segments are merged. O(index)."""
        self.execute("INSERT INTO memory_words(memory_words) VALUES ('optimize')")

    def owner_names(self, context: str | None = None) -> list[str]:
        """Return the owners of memories, those that know *context* if it is given, the oldest first."""
        if context is None:
            return self.read_column("SELECT name FROM memory_owner ORDER BY nr")
        return self.read_column(_OWNERS_OF, context)

    def close(self) -> None:
        """Release it for one user; the last one closes tables that are not in a sidecar."""
        with _lock, self.lock:
            self._users -= 1
            if self._users <= 0 and not self._lasting:
                self.shut()

    def shut(self) -> None:
        """Close it for all users."""
        with self.lock:
            self._closed = True
            self.owners.clear()
            if self._connection is not None and self._pid == os.getpid():
                self._connection.close()
            elif self._connection is not None:  # closing it here would release the locks of the parent process
                _inherited.append(self._connection)
            self._connection = None

    def _look(self, *, make: bool) -> apsw.Connection | None:
        """Return the connection if the tables are there, or are to be made."""
        if self.closed:
            raise HandlePoisoned(f"the memory in {self._path!r} was closed, or opened before fork(): open it again")
        if self._connection is None:
            if not make and self._path != ":memory:" and not os.path.exists(self._path):  # noqa: PTH110
                return None
            self._connection = self._connect()
        if self._version < SCHEMA_VERSION:
            self._version = self._found(self._connection)
            if make and self._version < SCHEMA_VERSION:
                self._make(self._connection)
        return self._connection if self._version else None

    def _connect(self) -> apsw.Connection:
        flags = apsw.SQLITE_OPEN_READONLY if self.read_only else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        if not self.read_only and self._path != ":memory:":
            make_private(self._path)
        connection = apsw.Connection(self._path, flags=flags)
        connection.set_busy_timeout(_BUSY_MILLISECONDS)
        connection.pragma("trusted_schema", False)
        if not self.read_only:
            connection.pragma("secure_delete", True)
            if self._synced:
                connection.pragma("journal_mode", "wal")
            # In the same file, the next synced transaction of the pages also syncs what the memory wrote before it.
            connection.pragma("synchronous", "FULL" if self._synced else "NORMAL")
        return connection

    def _make(self, connection: apsw.Connection) -> None:
        """Make the tables, or bring them to the latest version."""
        with _transaction(connection):
            found = self._found(connection)
            if not found:
                connection.execute(_TABLES + _SINCE_2)
                connection.execute("INSERT INTO memory_schema VALUES (?)", (SCHEMA_VERSION,))
            elif found == 1:  # else another process was faster
                connection.execute(_SINCE_2 + _FROM_1)
        self._version = SCHEMA_VERSION

    def _found(self, connection: apsw.Connection) -> int:
        """Return the version of the tables, 0 if there are none."""
        if not connection.execute(_THERE).fetchall():
            return 0
        found: list[tuple[Any, ...]] = connection.execute("SELECT version FROM memory_schema").fetchall()
        if not found:
            raise CorruptRecord("", 0, f"the memory in {self._path!r} does not say its version")
        if found[0][0] > SCHEMA_VERSION:
            raise SchemaTooNew(f"the memory in {self._path!r} was written by a later memci (version {found[0][0]})")
        return int(found[0][0])

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except apsw.Error as error:
            raise storage_error(error, self._path) from error


_COUNT = "UPDATE memory_owner SET revision = revision + ?, removals = removals + ? WHERE nr = ?"
_OWNERS_OF = "SELECT o.name FROM memory_context AS c JOIN memory_owner AS o ON o.nr = c.owner WHERE c.name = ?"


class OwnerKey:
    """Which rows are an owner's: the store, the owner's name, and its number there (0: it has no rows yet)."""

    def __init__(self, store: MemoryStore, name: str, nr: int = 0) -> None:
        self.store, self.name, self.nr = store, name, nr

    @property
    def exists(self) -> bool:
        """Whether the store has an owner with this number. One query."""
        return bool(self.store.read_value("SELECT 1 FROM memory_owner WHERE nr = ?", self.nr))

    def read_state(self) -> tuple[int, int, int]:
        """Return number, revision and removals of the owner as they are now; zeros if it has no rows. One query."""
        rows = self.store.read_rows("SELECT nr, revision, removals FROM memory_owner WHERE name = ?", self.name)
        return rows[0] if rows else (0, 0, 0)

    def add(self) -> int:
        """Add the owner within a change, and return its number."""
        return self.store.insert_row("INSERT INTO memory_owner(name) VALUES (?)", self.name)

    def count(self, *, revisions: int = 0, removals: int = 0) -> None:
        """Count changes of the owner, and those that remove passages or add them out of order."""
        self.store.execute(_COUNT, revisions, removals, self.nr)


class OwnerTable:
    """Rows of one owner. Whatever writes is called within a change of the owner."""

    def __init__(self, owner: OwnerKey) -> None:
        self._owner = owner
        self._store = owner.store


@contextmanager
def _transaction(connection: apsw.Connection) -> Iterator[None]:
    """Commit what is written in the block, or nothing of it if it fails."""
    try:
        begin(connection)
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
