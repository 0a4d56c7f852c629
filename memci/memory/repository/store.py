"""The store of a memory: SQL tables beside the pages.

    SQLiteStorage("agent.db")       the tables are in agent.db
    FilesystemStorage("agent")      in agent/memory.db
    EphemeralStorage()              in RAM, as the pages

All rows can be derived again from the pages, so losing them loses no message. Each owner has a number, which is part of
every row and every term. A change increases the owner's revision, so that other processes see that their copy is old.

Statements are written once, in the SQL that SQLite and Postgres share. A value is `?`. A list is the JSON of numbers,
unpacked by `(SELECT value FROM json_each(?))`. A comment `/*! … */` is for Postgres alone.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from threading import RLock
from typing import Any, Final, NamedTuple, TypeVar

from ...errors import CorruptRecord, HandlePoisoned, SchemaTooNew
from ...storage.encrypted.keys import Cipher, Forged, KeyRing, Place
from ...storage.sqlite.schema import sql_file
from ...workers import guard_lock
from .owner_cache import OwnerCache

SCHEMA_VERSION: Final = 1
SCHEMA: Final = sql_file(__file__, "tables.sql")
FIND_VERSION: Final = "SELECT version FROM memory_schema"


class Visit(NamedTuple):
    """The episodes and facts (ids) that a search found, and its time in seconds since 1970 UTC."""

    episodes: Sequence[int]
    facts: Sequence[int]
    at: float


class MemoryStore(ABC):
    """The memory tables of one store. Thread-safe; all users of a storage object share one instance.

    Args:
        place: The path or name of the store, for errors.
        read_only: Whether writing is refused.
        lasting: Whether the tables stay open as long as the storage, not only as long as they have users.
        cache_bytes: Bytes of owners that stay in RAM.
    """

    keys: KeyRing | None = None  # wraps the data keys of owners; None: no encryption

    def __init__(self, place: str, *, read_only: bool, lasting: bool, cache_bytes: int) -> None:
        self.lock = guard_lock(RLock(), "memory")
        self.read_only = read_only
        self.owners = OwnerCache(cache_bytes)
        """the owners in RAM"""
        self.visits: dict[str, list[Visit]] = {}
        """visits since the last change of each owner; kept here, so that an owner that leaves RAM loses none"""
        self._place = place
        self._lasting = lasting
        self._pid = os.getpid()
        self._closed = False
        self._users = 0

    @property
    def closed(self) -> bool:
        """Whether it was closed, or belongs to the parent process."""
        return self._closed or self._pid != os.getpid()

    @property
    @abstractmethod
    def there(self) -> bool:
        """Whether the tables are there. Looking makes no tables."""

    @property
    @abstractmethod
    def writing(self) -> bool:
        """Whether the caller is in the middle of a change."""

    @abstractmethod
    def read_rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query, [] if there are no tables."""

    @abstractmethod
    def execute(self, statement: str, *values: Any) -> None:
        """Execute a statement within `change`."""

    @abstractmethod
    def executemany(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Execute a statement for each of *rows*, within `change`."""

    @abstractmethod
    def change(self) -> AbstractContextManager[Any]:
        """Open a transaction and yield its connection. A nested call joins the transaction."""

    @abstractmethod
    def scrub(self, *, whole: bool = False) -> bool:
        """Overwrite the bytes of removed rows, and return whether none are left. O(bytes of the file).

        It fails while another reader uses an older state. A large file is only rewritten if *whole* is set.
        """

    @abstractmethod
    def purge(self) -> None:
        """Remove deleted terms from the index of words, within a change. O(index)."""

    @abstractmethod
    def passages(self, owner: "OwnerKey") -> Any:
        """Return the `PassageTable` of an owner."""

    @abstractmethod
    def index(self, passages: Any, *, empty: bool = False) -> Any:
        """Return the `WordIndex` of an owner's current passages; *empty*: without passages."""

    @abstractmethod
    def shut(self) -> None:
        """Close the tables for all users."""

    def read_column(self, statement: str, *values: Any) -> list[Any]:
        """Return the first value of each row of a query."""
        return [row[0] for row in self.read_rows(statement, *values)]

    def read_value(self, statement: str, *values: Any) -> Any | None:
        """Return the first value of the first row of a query, None without rows."""
        return next(iter(self.read_column(statement, *values)), None)

    def insert_row(self, statement: str, *values: Any) -> int:
        """Insert a row within `change`, and return its id, which the statement returns."""
        assert self.writing, "rows are written in a transaction"
        return int(self.read_rows(statement, *values)[0][0])

    def owner_names(self, context: str | None = None) -> list[str]:
        """Return the names of all owners, or of those that have *context*, the oldest first."""
        if context is None:
            return self.read_column("SELECT name FROM memory_owner ORDER BY nr")
        return self.read_column(_OWNERS_OF, context)

    def join(self) -> bool:
        """Add a user, and return whether the tables are still open."""
        with self.lock:
            self._users += not self.closed
            return not self.closed

    def close(self) -> None:
        """Remove a user. The last one closes tables that do not last as long as the storage."""
        with self.lock:
            self._users -= 1
            if self._users <= 0 and not self._lasting:
                self.shut()

    def _check_schema(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Raise an error unless *rows* of `memory_schema` have the version of this memci."""
        if not rows:
            raise CorruptRecord("", 0, f"the memory in {self._place!r} has no version")
        if rows[0][0] != SCHEMA_VERSION:
            raise SchemaTooNew(
                f"another memci wrote the memory in {self._place!r}: its schema is {rows[0][0]}, this one knows "
                f"{SCHEMA_VERSION}: use that version, or export the contexts with it and import them into a new store"
            )

    def _check_open(self) -> None:
        if self.closed:
            raise HandlePoisoned(f"the memory in {self._place!r} was closed, or opened before fork(): open it again")


_COUNT = "UPDATE memory_owner SET revision = revision + ?, removals = removals + ? WHERE nr = ?"
_OWNERS_OF = "SELECT o.name FROM memory_context AS c JOIN memory_owner AS o ON o.nr = c.owner WHERE c.name = ?"
_STATE = "SELECT nr, revision, removals FROM memory_owner WHERE name = ?"
_LOCKED = _STATE + " /*! FOR UPDATE */"
_KEY = """
SELECT i.id, i.body FROM memory_owner AS o JOIN memory_item AS i ON i.owner = o.nr
WHERE o.name = ? AND i.kind = 'key'"""
_ADD_KEY = "INSERT INTO memory_item(owner, kind, body) VALUES (?, 'key', ?)"
_REPLACE_KEY = "UPDATE memory_item SET body = ? WHERE id = ?"
_ADD = "INSERT INTO memory_owner(name) VALUES (?) ON CONFLICT(name) DO UPDATE SET name = excluded.name RETURNING nr"


class OwnerKey:
    """The identity of an owner in a store: its name and its number (0: it has no rows yet)."""

    def __init__(self, store: MemoryStore, name: str, nr: int = 0) -> None:
        self.store, self.name, self.nr = store, name, nr
        self._cipher: tuple[int, Cipher, bool] | None = None
        """the number that the owner had, its cipher, and whether the data key is wrapped with the first key"""

    @property
    def cipher(self) -> Cipher | None:
        """The cipher of the owner's rows, None without encryption. One query, once.

        Within a change, a missing data key is made, and the data key is wrapped with the first key.

        Raises:
            KeyMissing: If the key that wraps the data key was not given.
            CorruptRecord: If the wrapped data key was changed.
        """
        keys = self.store.keys
        if keys is None:
            return None
        if self._cipher is not None and self._cipher[0] == self.nr and (self._cipher[2] or not self.store.writing):
            return self._cipher[1]
        place = "the memory of", self.name
        rows = self.store.read_rows(_KEY, self.name)
        if rows:
            [(id_, wrapped)] = rows
            try:
                cipher = keys.unwrap(wrapped, self.name, *place)
            except Forged:
                raise CorruptRecord("", 0, f"the data key of the memory of {self.name!r:.60} was changed") from None
            current = keys.is_current(wrapped, self.name)
            if self.store.writing and not current:
                self.store.execute(_REPLACE_KEY, keys.wrap(cipher, self.name, *place), id_)
                current = True
        else:
            cipher, current = Cipher(os.urandom(32)), True
            if not self.store.writing or not self.nr:
                return cipher  # there are no rows yet
            self.store.execute(_ADD_KEY, self.nr, keys.wrap(cipher, self.name, *place))
        self._cipher = self.nr, cipher, current
        return cipher

    def rotate(self) -> bool:
        """Wrap the data key with the first key; return whether it was wrapped with another. One change at most."""
        if self.cipher is None or self._cipher is None or self._cipher[2]:
            return False
        with self.store.change():
            return self.cipher is not None

    def key_digest(self, digest: bytes) -> bytes:
        """Return a *digest* of a text as rows have it: keyed if they are encrypted."""
        cipher = self.cipher
        return digest if cipher is None else cipher.mac(digest, len(digest))

    @property
    def exists(self) -> bool:
        """Whether the store still has the owner. One query."""
        return bool(self.store.read_value("SELECT 1 FROM memory_owner WHERE nr = ?", self.nr))

    def read_state(self) -> tuple[int, int, int]:
        """Return the number, revision and removals of the owner; zeros if it has no rows. One query.

        Within a change, this locks the owner against changes by other processes.
        """
        rows = self.store.read_rows(_LOCKED if self.store.writing else _STATE, self.name)
        return rows[0] if rows else (0, 0, 0)

    def add(self) -> int:
        """Add the owner within a change, and return its number."""
        return self.store.insert_row(_ADD, self.name)

    def count(self, *, revisions: int = 0, removals: int = 0) -> None:
        """Increase the numbers of changes, and of changes that remove passages or add them out of order."""
        self.store.execute(_COUNT, revisions, removals, self.nr)


_Content = TypeVar("_Content", str, bytes, bytes | None)


class OwnerTable:
    """Rows of one owner. Call all methods that write within a change of the owner."""

    def __init__(self, owner: OwnerKey) -> None:
        self._owner = owner
        self._store = owner.store

    def _seal(self, content: _Content, kind: str, *place: Place, same: bool = False) -> _Content:
        """Encrypt *content*, if rows are encrypted, for a *kind* and *place*; *same*: equal contents alike. O(size)."""
        cipher = self._owner.cipher
        if cipher is None or not content:
            return content
        if isinstance(content, str):
            return cipher.seal_text(content, kind, *place, same=same)
        return cipher.seal(content, kind, *place, same=same)

    def _unseal(self, kept: _Content, kind: str, *place: Place) -> _Content:
        """Return the content that `_seal` encrypted, or raise CorruptRecord. O(size)."""
        cipher = self._owner.cipher
        if cipher is None or not kept:
            return kept
        try:
            return (
                cipher.unseal_text(kept, kind, *place) if isinstance(kept, str) else cipher.unseal(kept, kind, *place)
            )
        except Forged:
            what = f"a row of the memory of {self._owner.name!r:.60} ({kind}) is not what was encrypted"
            raise CorruptRecord("", 0, f"{what}: memci consolidate --rebuild makes the memory again") from None
