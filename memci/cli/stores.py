"""Stores, as the commands open them: a file is SQLite's, a folder is one of plain files.

    with existing(path) as storage:            only to be read; an error if there is none, instead of a new store
    with writable(path) as storage:            one that is there, to be changed
    with writable(path, make=True) as storage: it is made if there is none; a name that ends in / becomes a folder

This module knows nothing of the terminal.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import apsw

from ..errors import CorruptRecord, InvalidSetting
from ..history.verify import problems
from ..storage import FilesystemStorage, SQLiteStorage, Storage
from ..storage.protocol import ContextRecord, EntryRow
from ..storage.sqlite.connection import damage, storage_error


class Counted:
    """A store that tells of each entry that is read; a `Storage` in all else.

    Args:
        storage: The store itself.
        seen: Called for every entry that is read.
    """

    def __init__(self, storage: Storage, seen: Callable[[], None]) -> None:
        self._storage = storage
        self._seen = seen

    def entries(
        self, context: str, first: int = 0, end: int | None = None, *, containing: bytes | None = None
    ) -> Iterator[EntryRow]:
        """Yield entries, as the store does."""
        for entry in self._storage.entries(context, first, end, containing=containing):
            self._seen()
            yield entry

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)


def counted(storage: Storage, seen: Callable[[], None]) -> Storage:
    """Return *storage*, which calls *seen* for every entry that is read."""
    return cast("Storage", Counted(storage, seen))


@contextmanager
def existing(path: str) -> Iterator[Storage]:
    """Yield the store at *path*, only to be read; it is not made if it does not exist.

    Raises:
        InvalidSetting: If there is no store there.
        StorageError: If it can't be opened.
    """
    _check_there(path)
    storage = _opened(path, read_only=True)
    try:
        yield storage
    finally:
        storage.close()


@contextmanager
def writable(path: str, *, make: bool = False) -> Iterator[Storage]:
    """Yield the store at *path*; it is made if there is none and *make* is true.

    Raises:
        InvalidSetting: If there is no store there, and none is to be made.
        StorageError: If it can't be opened.
    """
    if not make or os.path.exists(path):  # noqa: PTH110 -- a Path would lose the / at the end
        _check_there(path, make=make)
    storage = _opened(path, read_only=False)
    try:
        yield storage
    finally:
        storage.close()


def is_folder(path: str) -> bool:
    """Tell whether the store at *path* is, or would become, a folder of plain files."""
    return Path(path).is_dir() or path.endswith(("/", os.sep))


def file_problems(path: str) -> list[str]:
    """Return what SQLite finds wrong with the file at *path*; [] for a folder. O(bytes).

    Raises:
        StorageError: If it can't be read at all.
    """
    if is_folder(path):
        return []
    try:
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
        try:
            return damage(connection)
        finally:
            connection.close()
    except apsw.Error as error:
        raise storage_error(error, path) from error


def chosen(storage: Storage, path: str, context: str | None) -> str:
    """Return *context* if the store has it, or its only context if that is None.

    Raises:
        InvalidSetting: If it has not, or has several.
    """
    ids = [record.id for record in storage.contexts()]
    if context in ids or (context is None and len(ids) == 1):
        return context or ids[0]
    known = ", ".join(repr(each)[:60] for each in ids[:5]) or "none"
    if context is None:
        raise InvalidSetting("--context", f"name one: {Path(path).name} has {known}")
    raise InvalidSetting("--context", f"{Path(path).name} has no context {context!r:.60}; it has {known}")


def summary(record: ContextRecord) -> tuple[ContextRecord, int, int]:
    """Return *record* with the context's window in tokens and the number of its compactions."""
    settings, state = json.loads(record.settings), json.loads(record.state)
    return record, settings["settings"]["window"], state["editions"]


def problems_of(storage: Storage, context: str, seen: Callable[[], None]) -> list[str]:
    """Return what is wrong with *context*; *seen* is called for every entry that is read. O(entries)."""
    found: list[str] = []
    try:
        found.extend(problems(counted(storage, seen), context))
    except CorruptRecord as error:
        found.append(str(error))
    return found


def _opened(path: str, *, read_only: bool) -> Storage:
    if is_folder(path):
        return FilesystemStorage(path, read_only=read_only)
    return SQLiteStorage(path, read_only=read_only)


def _check_there(path: str, *, make: bool = False) -> None:
    try:
        place = Path(path)
        if not place.exists():
            raise InvalidSetting(path, "there is no such file: check the path; nothing was made")
        if place.is_dir():
            if not make and not (place / "memci.json").exists():
                raise InvalidSetting(path, "is a folder, not a store: it has no memci.json; name a store in it")
        elif not place.is_file():
            raise InvalidSetting(path, "is no file, so it is no store")
        elif not make and not place.stat().st_size:
            raise InvalidSetting(path, "is empty, not a store; it was left as it is")
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidSetting):
            raise
        raise InvalidSetting(path, f"can't be read: {error}") from None
