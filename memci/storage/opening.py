"""A store by its place, which is a word of the user.

    agent.db                      one SQLite file
    agent/                        a folder: one that is there, or the name ends in /
    postgresql://ada@db/agents    a schema of a Postgres database

This module knows nothing of what a store holds.
"""

import os
from pathlib import Path
from typing import TypeGuard
from urllib.parse import urlsplit

from .protocol import Storage
from .sqlite.store import SQLiteStorage


def open_store(place: str | os.PathLike[str], *, read_only: bool = False) -> Storage:
    """Return the store at *place*; it is made if there is none, unless *read_only*.

    Raises:
        InvalidSetting: If *place* makes no sense, or needs a package that is not installed.
        StorageError: If it can't be opened.
    """
    if is_url(place):
        from .postgres.store import PostgresStorage

        return PostgresStorage(place, read_only=read_only)
    if is_folder(place):
        from .filesystem.store import FilesystemStorage

        return FilesystemStorage(place, read_only=read_only)
    return SQLiteStorage(place, read_only=read_only)


def is_url(place: str | os.PathLike[str]) -> TypeGuard[str]:
    """Return whether *place* is the URL of a database."""
    return isinstance(place, str) and place.startswith(("postgresql://", "postgres://"))


def is_folder(place: str | os.PathLike[str]) -> bool:
    """Return whether the store at *place* is, or would become, a folder."""
    return not is_url(place) and (Path(place).is_dir() or str(place).endswith(("/", os.sep)))


def name_of(place: str) -> str:
    """Return the store at *place* as a line names it: a file, a folder, or a database without user and password."""
    if not is_url(place):
        return Path(place).name
    return urlsplit(place).path.strip("/") or "postgresql"
