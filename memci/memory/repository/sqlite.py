"""The memory tables in a SQLite file: that of the pages, a sidecar, or a file with a given path.

A full-text index has the words. Its postings are read into RAM when searches need them.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import apsw

from ...errors import StorageReadOnly
from ...storage.protocol import Sidecar
from ...storage.sqlite.connection import connect, storage_error
from ...storage.sqlite.schema import sql_file
from ...storage.sqlite.write import scrub, transaction
from ..retrieval.postings import WordIndex
from .passages import PassageTable
from .store import FIND_VERSION, SCHEMA, MemoryStore, OwnerKey

_BUSY_MILLISECONDS = 5_000  # how long a statement waits for another writer, whose transactions take milliseconds

_WORDS: Final = sql_file(__file__, "words.sql")
_THERE = "SELECT 1 FROM sqlite_schema WHERE name = 'memory_schema'"

_inherited: list[apsw.Connection] = []


class SQLiteMemory(MemoryStore):
    """The memory tables in one SQLite file, opened on first use, with one connection."""

    def __init__(self, place: Sidecar, *, lasting: bool) -> None:
        super().__init__(place.path, read_only=place.read_only, lasting=lasting, cache_bytes=place.cache_bytes)
        self._synced = not place.shared
        self._connection: apsw.Connection | None = None
        self._there = False

    @property
    def there(self) -> bool:
        """Whether the tables are there. Looking makes no tables."""
        with self.lock, self._errors():
            return self._look(make=False) is not None

    def read_rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query, [] if there are no tables."""
        with self.lock:
            try:  # not `_errors`, since a search does this several times
                connection = self._look(make=False)
                return [] if connection is None else connection.execute(statement, values).fetchall()
            except apsw.Error as error:
                raise storage_error(error, self._place) from error

    def execute(self, statement: str, *values: Any) -> None:
        """Execute a statement within `change`."""
        self._writing().execute(statement, values)

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Execute a statement for each of *rows*, within `change`."""
        self._writing().executemany(statement, rows)

    def _writing(self) -> apsw.Connection:
        assert self._connection is not None and self._connection.in_transaction, "rows are written in a transaction"
        return self._connection

    @contextmanager
    def change(self) -> Iterator[apsw.Connection]:
        """Open a transaction and yield its connection. A nested call joins the transaction."""
        with self.lock, self._errors():
            if self.read_only:
                raise StorageReadOnly(f"{self._place!r} was opened for reading only")
            connection = self._look(make=True)
            assert connection is not None, "missing tables are created"
            if connection.in_transaction:
                yield connection
                return
            with transaction(connection):
                yield connection

    @property
    def writing(self) -> bool:
        """Whether the caller is in the middle of a change."""
        with self.lock:
            return self._connection is not None and self._connection.in_transaction

    def scrub(self, *, whole: bool = False) -> bool:
        """Rewrite the file, and return whether no byte of removed rows is left (`sqlite.write.scrub`)."""
        with self.lock, self._errors():
            connection = self._look(make=False)
            if connection is None:
                return True
            return not connection.in_transaction and scrub(connection, whole=whole)

    def purge(self) -> None:
        """Merge the segments of the full-text index, which still have deleted terms. O(index)."""
        self.execute("INSERT INTO memory_words(memory_words) VALUES ('optimize')")

    def passages(self, owner: OwnerKey) -> PassageTable:
        """Return the passages of an owner."""
        return PassageTable(owner)

    def index(self, passages: PassageTable, *, empty: bool = False) -> WordIndex:
        """Return the index over all passages of an owner. O(passages)."""
        return WordIndex(passages, () if empty else passages.columns())

    def shut(self) -> None:
        """Close the tables for all users."""
        with self.lock:
            self._closed = True
            self.owners.clear()
            if self._connection is not None and self._pid == os.getpid():
                self._connection.close()
            elif self._connection is not None:  # closing the connection would release the locks of the parent process
                _inherited.append(self._connection)
            self._connection = None

    def _look(self, *, make: bool) -> apsw.Connection | None:
        """Return the connection if there are tables; *make* them if there are none."""
        self._check_open()
        if self._connection is None:
            if not make and self._place != ":memory:" and not os.path.exists(self._place):  # noqa: PTH110
                return None
            self._connection = self._connect()
        if not self._there:
            self._there = self._found(self._connection)
            if make and not self._there:
                self._make(self._connection)
        return self._connection if self._there else None

    def _connect(self) -> apsw.Connection:
        in_ram = self._place == ":memory:"
        connection = apsw.Connection(":memory:") if in_ram else connect(self._place, read_only=self.read_only)
        connection.set_busy_timeout(_BUSY_MILLISECONDS)
        connection.pragma("trusted_schema", False)
        if not connection.readonly("main"):
            connection.pragma("secure_delete", True)
            if self._synced:
                connection.pragma("journal_mode", "wal")
            # In the file of the pages, the next synced transaction also syncs earlier writes of the memory.
            connection.pragma("synchronous", "FULL" if self._synced else "NORMAL")
        return connection

    def _make(self, connection: apsw.Connection) -> None:
        with transaction(connection):
            if not self._found(connection):  # else another process made them
                connection.execute(SCHEMA + _WORDS)
        self._there = True

    def _found(self, connection: apsw.Connection) -> bool:
        """Return whether there are tables, and check their version."""
        if not connection.execute(_THERE).fetchall():
            return False
        self._check_schema(connection.execute(FIND_VERSION).fetchall())
        return True

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except apsw.Error as error:
            raise storage_error(error, self._place) from error
