"""The tables of memories in the schema of a Postgres store.

    MemoryStore ── PostgresMemory(storage.database)

A read is one statement on any connection of the pool, a change one transaction on one: nothing depends on the session,
so a pooler of transactions may stand before the server. An owner's row is locked for the time of a change, so changes
of one owner follow each other, and those of others go on beside them. This module knows nothing of what the rows mean.
"""

import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final

from ...errors import CorruptRecord, SchemaTooNew, StorageReadOnly
from ...storage.postgres.database import Connection, Database
from ...storage.postgres.rows import escaped, plain
from ...storage.protocol import CACHE_BYTES
from ...storage.sqlite.schema import sql_file
from ..repository.store import MemoryStore, OwnerKey
from .index import PackedIndex
from .passages import PackedPassages

SCHEMA_VERSION: Final = 2

_TABLES: Final = sql_file(__file__, "tables.sql")
_THERE = "SELECT to_regclass('memory_schema') IS NOT NULL"
_VERSION = "SELECT version FROM memory_schema"
_LOCK_MAKING = "SELECT pg_advisory_xact_lock(7881692370212)"

_LIST = "(SELECT value FROM json_each(?))"
_ARRAY = "(SELECT value::bigint FROM json_array_elements_text(?::json) AS value)"


class PostgresMemory(MemoryStore):
    """The tables in the schema of *database*, made by the first change."""

    def __init__(self, database: Database, *, cache_bytes: int = CACHE_BYTES) -> None:
        super().__init__(database.name, read_only=database.read_only, lasting=True, cache_bytes=cache_bytes)
        self._database = database
        self._version = 0
        self._change = threading.local()

    @property
    def version(self) -> int:
        """Of the tables, 0 if nothing was ever stored. Looking makes no tables."""
        self._check_open()
        if not self._version and self._fetched_rows(_THERE)[0][0]:
            self._version = self._checked(self._fetched_rows(_VERSION))
        return self._version

    @property
    def writing(self) -> bool:
        """Whether the caller is in the middle of a change."""
        return self._connection is not None

    def read_rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query, [] if nothing was ever kept."""
        rows = self.read_packed(statement, *map(_kept, values))
        texts = rows and any(isinstance(each, str) for each in rows[0])
        return [tuple(map(_read, row)) for row in rows] if texts else rows

    def read_packed(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query whose texts hold no NUL, as the server has them: faster where there are many."""
        return self._fetched_rows(statement, *values) if self.version else []

    def execute(self, statement: str, *values: Any) -> int:
        """Execute a statement within `change`, and return how many rows it changed."""
        return self._writing().execute(self._text(statement), tuple(map(_kept, values)) or None).rowcount

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Execute a statement for each of *rows*, within `change`."""
        kept = [tuple(map(_kept, row)) for row in rows]
        if kept:
            self._writing().cursor().executemany(self._text(statement), kept)

    @contextmanager
    def change(self) -> Iterator[Connection]:
        """Give the connection for one transaction: all of it is kept, or nothing. A nested one is a part of it."""
        with self.lock:
            if self.read_only:
                raise StorageReadOnly(f"{self._place} was opened for reading only")
            if self._connection is not None:
                yield self._connection
                return
            missing = not self.version
            with self._database.changing() as connection:
                self._change.connection = connection
                try:
                    if missing:
                        self._make()
                    yield connection
                except BaseException:
                    if missing:
                        self._version = 0
                    raise
                finally:
                    self._change.connection = None

    def scrub(self, *, whole: bool = False) -> bool:
        """Write the tables again if it is to be done *whole*: bytes of what was removed stay in them until then."""
        if whole and self.version:
            self._database.rewrite(memory=True)
        return whole or not self.version

    def purge(self) -> None:
        """Do nothing: what is removed from the index is removed at once."""

    def passages(self, owner: OwnerKey) -> PackedPassages:
        """Return the passages of an owner."""
        return PackedPassages(owner, self.read_packed)

    def index(self, passages: PackedPassages, *, empty: bool = False) -> PackedIndex:
        """Return the index over the passages of an owner, which reads blocks as they are asked for."""
        return PackedIndex(passages) if empty or passages.index is None else passages.index

    def shut(self) -> None:
        """Close it for all users; the connections are those of the store of the pages."""
        with self.lock:
            self._closed = True
            self.owners.clear()

    @property
    def _connection(self) -> Connection | None:
        return getattr(self._change, "connection", None)

    def _writing(self) -> Connection:
        connection = self._connection
        assert connection is not None, "rows are written in a transaction"
        return connection

    def _fetched_rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        connection = self._connection
        if connection is None:
            return self._database.read_rows(_postgres(statement), *values)
        return connection.execute(self._text(statement), values, binary=True).fetchall()

    def _text(self, statement: str) -> bytes:
        return _named(_postgres(statement), self._database.schema)

    def _make(self) -> None:
        self.execute(_LOCK_MAKING)
        if not self.version:  # else another process was faster
            self.execute(_TABLES)

    def _checked(self, rows: Sequence[tuple[Any, ...]]) -> int:
        if not rows:
            raise CorruptRecord("", 0, f"the memory in {self._place} does not say its version")
        if rows[0][0] > SCHEMA_VERSION:
            raise SchemaTooNew(f"the memory in {self._place} was written by a later memci (version {rows[0][0]})")
        return int(rows[0][0])


@lru_cache(maxsize=1024)
def _postgres(statement: str) -> str:
    """Return *statement* with the placeholders of psycopg, and with what is for Postgres alone."""
    text = re.sub(r"/\*!(.*?)\*/", r"\1", statement).replace(_LIST, _ARRAY).replace("?", "%s")
    return re.sub(r"(?<![.\w])memory_", "our.memory_", text)


@lru_cache(maxsize=1024)
def _named(text: str, schema: str) -> bytes:
    return re.sub(r"\bour\b", f'"{schema}"', text).encode()


def _kept(value: Any) -> Any:
    return escaped(value) if isinstance(value, str) else value


def _read(value: Any) -> Any:
    return plain(value) if isinstance(value, str) else value
