"""Finds the tables of a memory for a store; all users of the store share them.

The choice depends on the protocol of the store, never on its class: `memci.storage.protocol.DatabaseStorage`, or
`SidecarStorage`.
"""

import os
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from threading import RLock

from ...storage import Storage
from ...storage.arguments import checked
from ...storage.protocol import DatabaseStorage, KeyedStorage, Sidecar, SidecarStorage
from ...storage.validation import check_memory, has_memory
from ...workers import guard_lock
from .sqlite import SQLiteMemory
from .store import MemoryStore

_shared: "weakref.WeakKeyDictionary[Storage, dict[str, MemoryStore]]" = weakref.WeakKeyDictionary()
"""the tables of each store, by their path; "" is its sidecar"""
_lock = guard_lock(RLock(), "memory")


@checked
def tables_of(storage: Storage, path: str | os.PathLike[str] | None = None) -> MemoryStore:
    """Return the tables that belong to *storage*, and count one more user. They are opened on first use.

    Tables beside the pages are closed with the store, those in the file *path* by their last user. Raise InvalidSetting
    if there is no path and the store has no place for a memory.
    """
    key = "" if path is None else os.path.abspath(path)  # noqa: PTH100 -- a Path would resolve links
    with _lock:
        known = _shared.setdefault(storage, {})
        found = known.get(key)
        if found is None or not found.join():
            found = known[key] = SQLiteMemory(Sidecar(key), lasting=False) if key else _open_offered(storage)
            found.keys = storage.keys if isinstance(storage, KeyedStorage) else None
            found.join()
        return found


@contextmanager
def all_tables_of(storage: Storage) -> Iterator[list[MemoryStore]]:
    """Give all tables of *storage*: those beside its pages, and those at paths that this process has open."""
    with _lock, ExitStack() as opened:
        known = next((tables for held, tables in _shared.items() if held is storage), {})
        paths: list[str | None] = [path for path, tables in known.items() if path and not tables.closed]
        paths += [None] if has_memory(storage) else []
        made = [opened.enter_context(closing(tables_of(storage, path))) for path in paths]
        closes = opened.pop_all()
    with closes:
        yield made


def _open_offered(storage: Storage) -> MemoryStore:
    if isinstance(storage, DatabaseStorage):
        from ..postgres.store import PostgresMemory  # its driver is an extra

        return PostgresMemory(storage.database)
    check_memory(storage)
    assert isinstance(storage, SidecarStorage), "a store without a database keeps its memory in a sidecar"
    opened: list[MemoryStore] = []  # empty if a call is interrupted before there are tables to close

    def release() -> None:
        for tables in opened:
            tables.shut()

    opened.append(SQLiteMemory(storage.sidecar(release), lasting=True))
    # a store that is garbage-collected without close() leaves no file open
    weakref.finalize(storage, release).atexit = False
    return opened[0]
