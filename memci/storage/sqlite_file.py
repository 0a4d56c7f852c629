"""The file of a SQLite store: opening it, knowing it, and what its errors mean.

    no file, or an empty one      made ours: WAL, tables, application_id "memc", user_version 1
    ours                          opened
    ours, of a later version      SchemaTooNew        untouched
    of another program            StorageUnavailable  untouched

    context   nr id owner settings state head next_page turn open_page revision      one row per context
    edition   nr text                                                       apart: it is large and seldom changes
    entry     nr << 40 | seq  →  …, body                                    one clustered run per context, no index
    page      nr << 32 | index  →  …                                        the active ones in a partial index
    op        (nr, op_id)  →  …

Each row carries a `crc` of its small columns, and an entry the digest of its body: a flipped bit is found when read.

SQLite must not be reached through two libraries in one process: closing any descriptor of the file drops the locks
of all. So nothing here opens the file but `apsw`, and a program's own `sqlite3` must not open it either.

This module knows nothing of transitions.
"""

import os
from pathlib import Path
from typing import Final, Literal
from urllib.parse import quote

import apsw

from ..errors import (
    CorruptRecord,
    InvalidSetting,
    LimitExceeded,
    MemciError,
    SchemaTooNew,
    StorageBusy,
    StorageFull,
    StorageReadOnly,
    StorageUnavailable,
)

Durability = Literal["full", "fast"]

APPLICATION_ID: Final = int.from_bytes(b"memc", "big")
SCHEMA_VERSION: Final = 1

_SYNCHRONOUS = {"full": "FULL", "fast": "NORMAL"}

_SCHEMA = f"""
CREATE TABLE context (
    nr INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    head INTEGER NOT NULL,
    next_page INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    open_page INTEGER,
    revision INTEGER NOT NULL,
    crc INTEGER NOT NULL,
    owner TEXT NOT NULL,
    settings TEXT NOT NULL,
    state TEXT NOT NULL
) STRICT;
CREATE TABLE edition (nr INTEGER PRIMARY KEY, crc INTEGER NOT NULL, text TEXT NOT NULL) STRICT;
CREATE TABLE entry (
    id INTEGER PRIMARY KEY,
    codec INTEGER NOT NULL,
    digest BLOB NOT NULL,
    tokens INTEGER NOT NULL,
    clip INTEGER NOT NULL,
    quotes_page INTEGER,
    quotes_entry INTEGER,
    at TEXT,
    crc INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT;
CREATE TABLE page (
    id INTEGER PRIMARY KEY,
    place INTEGER NOT NULL,
    first_seq INTEGER NOT NULL,
    end_seq INTEGER,
    turn INTEGER NOT NULL,
    cut_first INTEGER,
    cut_end INTEGER,
    continues INTEGER,
    archived_turn INTEGER,
    recall_count INTEGER NOT NULL,
    last_recalled_turn INTEGER,
    crc INTEGER NOT NULL
) STRICT;
CREATE INDEX page_active ON page (id) WHERE place = 0;
CREATE TABLE op (
    nr INTEGER NOT NULL,
    op_id TEXT NOT NULL,
    first_seq INTEGER NOT NULL,
    crc INTEGER NOT NULL,
    digest BLOB NOT NULL,
    entries BLOB NOT NULL,
    PRIMARY KEY (nr, op_id)
) STRICT, WITHOUT ROWID;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
"""


def open_file(path: str, durability: Durability, busy_timeout_seconds: float) -> apsw.Connection:
    """Open the store at *path*, which is made if there is none.

    Raises:
        InvalidSetting: If an argument makes no sense.
        SchemaTooNew: If a later memci wrote it.
        StorageError: If it can't be opened, or is not a store of ours.
    """
    if durability not in _SYNCHRONOUS:
        raise InvalidSetting("durability", f"{durability!r} is neither 'full' nor 'fast'")
    if not 0 <= busy_timeout_seconds <= 86_400:
        raise InvalidSetting("busy_timeout_seconds", f"{busy_timeout_seconds!r} is not between 0 and a day")
    check_library(apsw.sqlite_lib_version())
    _check_place(path)
    try:
        connection = _connect(path)
    except (apsw.Error, UnicodeEncodeError, ValueError) as error:
        raise _unopened(error, path) from error
    try:
        connection.set_busy_timeout(round(busy_timeout_seconds * 1000))
        _adopt(connection, path, _SYNCHRONOUS[durability])
    except BaseException as error:
        if not isinstance(error, apsw.NotADBError):
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # what is refused stays untouched
        connection.close()
        if isinstance(error, apsw.Error):
            raise storage_error(error, path) from error
        raise
    return connection


def check_library(version: str) -> None:
    """Raise StorageUnavailable if this SQLite loses commits when two connections write (its WAL-reset bug)."""
    numbers = tuple(int(each) for each in version.split(".")[:3])
    if numbers >= (3, 51, 3) or (3, 50, 7) <= numbers < (3, 51, 0) or (3, 44, 6) <= numbers < (3, 45, 0):
        return
    raise StorageUnavailable(f"SQLite {version} can lose committed writes: install an apsw with SQLite 3.51.3 or later")


def storage_error(error: apsw.Error, path: str, context: str = "", seq: int = 0) -> MemciError:
    """Return what *error* means to a caller of a store."""
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return StorageBusy(f"another process held {path!r} for longer than we wait")
        case apsw.FullError():
            return StorageFull(f"no space is left for {path!r}")
        case apsw.ReadOnlyError() | apsw.PermissionsError():
            return StorageReadOnly(f"{path!r} can be read, not written")
        case apsw.NotADBError():
            return StorageUnavailable(f"{path!r} is not a SQLite file")
        case apsw.CorruptError() | apsw.FormatError() | apsw.ConstraintError() | apsw.MismatchError():
            return CorruptRecord(context, seq, f"{path!r} is damaged: {error}")
        case apsw.TooBigError():
            return LimitExceeded("bytes in one SQLite value", 2**30, 10**9)
    return StorageUnavailable(f"{path!r} can't be used: {error}")


def _check_place(path: str) -> None:
    place = Path(path)
    try:
        if not place.parent.is_dir():
            raise StorageUnavailable(f"there is no folder {str(place.parent)!r} for {place.name!r}: make it first")
        if place.is_dir():
            raise StorageUnavailable(f"{path!r} is a folder: name a file in it")
    except PermissionError as error:
        raise StorageUnavailable(f"{path!r} can't be reached: {error.strerror}") from error


def _connect(path: str) -> apsw.Connection:
    if Path(path).exists() and not _can_write(Path(path).parent) and not Path(f"{path}-wal").exists():
        # Even reading needs files beside a WAL database; where there can be none, there can be no writer either.
        uri = f"file:{quote(path)}?immutable=1"
        return apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    return apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)


def _can_write(folder: Path) -> bool:
    return os.access(folder, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _unopened(error: Exception, path: str) -> MemciError:
    if not isinstance(error, apsw.Error):
        return InvalidSetting("path", f"{path!r} can't be the name of a file: {error}")
    folder = Path(path).parent
    if not Path(path).exists() and not _can_write(folder):
        return StorageReadOnly(f"the folder {str(folder)!r} can't be written: {Path(path).name!r} can't be made in it")
    return storage_error(error, path)


def _adopt(connection: apsw.Connection, path: str, synchronous: str) -> None:
    writable = not connection.readonly("main")
    new = _is_new(connection, path)
    connection.pragma("trusted_schema", False)
    connection.pragma("foreign_keys", True)
    connection.pragma("cell_size_check", True)
    connection.pragma("mmap_size", 0)
    if not writable:
        if new:
            raise StorageReadOnly(f"{path!r} is empty and can't be written")
        return
    if connection.pragma("journal_mode", "wal") != "wal":
        raise StorageUnavailable(f"{path!r} is on a file system without shared memory: put it on a local disk")
    connection.pragma("synchronous", synchronous)
    connection.pragma("secure_delete", True)
    if new:
        connection.execute("BEGIN IMMEDIATE")
        if _is_new(connection, path):  # another process may have been first
            connection.execute(_SCHEMA)
        connection.execute("COMMIT")


def _is_new(connection: apsw.Connection, path: str) -> bool:
    application, version = connection.pragma("application_id"), connection.pragma("user_version")
    if application == APPLICATION_ID:
        if version > SCHEMA_VERSION:
            raise SchemaTooNew(
                f"a later memci wrote {path!r}: its schema is {version}, this one knows up to {SCHEMA_VERSION}"
            )
        return False
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()[0][0]
    if application or version or tables:
        raise StorageUnavailable(f"{path!r} is a SQLite file of another program: name another file")
    return True
