"""The home of a memory: which tables belong to a store, shared by all who use the store.

    tables_of(SQLiteStorage("agent.db"))                   those in agent.db, as long as the store is open
    tables_of(storage, "memory.db")                        those in memory.db, until their last user closes them

What a store offers decides, never its class: `memci.storage.protocol.DatabaseStorage`, or `SidecarStorage`.
"""

import os
import weakref
from threading import RLock

from ...storage import Storage
from ...storage.protocol import DatabaseStorage, KeyedStorage, Sidecar, SidecarStorage
from ...storage.validation import check_memory
from .sqlite import SQLiteMemory
from .store import MemoryStore

_shared: "weakref.WeakKeyDictionary[Storage, dict[str, MemoryStore]]" = weakref.WeakKeyDictionary()
"""the tables of each store, by their path; "" is its sidecar"""
_lock = RLock()


def tables_of(storage: Storage, path: str | os.PathLike[str] | None = None) -> MemoryStore:
    """Return the tables that belong to *storage*, with one user more; opened when they are first used.

    Those that the store offers are closed when the store closes, those in the file *path* by their last user.
    InvalidSetting if there is no path and the store has no place for a memory.
    """
    key = "" if path is None else os.path.abspath(path)  # noqa: PTH100 -- a Path would resolve links
    with _lock:
        known = _shared.setdefault(storage, {})
        found = known.get(key)
        if found is None or not found.join():
            found = known[key] = SQLiteMemory(Sidecar(key), lasting=False) if key else _offered(storage)
            found.keys = storage.keys if isinstance(storage, KeyedStorage) else None
            found.join()
        return found


def _offered(storage: Storage) -> MemoryStore:
    if isinstance(storage, DatabaseStorage):
        from ..postgres.store import PostgresMemory  # its driver is an extra

        return PostgresMemory(storage.database)
    check_memory(storage)
    assert isinstance(storage, SidecarStorage), "a store without a database keeps its memory in a sidecar"
    opened: list[MemoryStore] = []  # empty if a call is stopped before there are tables to close

    def release() -> None:
        for tables in opened:
            tables.shut()

    opened.append(SQLiteMemory(storage.sidecar(release), lasting=True))
    weakref.finalize(storage, release).atexit = False  # a store that is dropped without close() leaves no file open
    return opened[0]
