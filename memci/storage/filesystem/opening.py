"""Opening the folder of a store: making it, knowing it.

    no folder, or an empty one    made ours: memci.json; not if it is only to be read       (.git… may be in it)
    ours                          opened
    ours, of a later version      SchemaTooNew         untouched
    of another program            StorageUnavailable   untouched

This module knows nothing of contexts.
"""

import json
import os
from contextlib import suppress
from typing import Final, Literal

from ...errors import InvalidSetting, SchemaTooNew, StorageFull, StorageReadOnly, StorageUnavailable
from .calls import FULL
from .context_file import SCHEMA_VERSION
from .files import Files
from .locks import locked_whole

Durability = Literal["full", "fast"]

MARK: Final = "memci.json"

_FORMAT: Final = "memci folder"
_ABOUT: Final = "The memory of agents, kept by memci. Read it as you like; a line that is edited is no longer trusted."


def opened(path: str, durability: str, busy_timeout_seconds: float, *, read_only: bool) -> Files:
    """Return the files of the store at *path*, which is made if there is none and it is not *read_only*.

    Raises:
        InvalidSetting: If an argument makes no sense.
        SchemaTooNew: If a later memci wrote it.
        StorageError: If it can't be opened, or is not a store of ours.
    """
    if durability not in {"full", "fast"}:
        raise InvalidSetting("durability", f"{durability!r} is neither 'full' nor 'fast'")
    if not 0 <= busy_timeout_seconds <= 86_400:
        raise InvalidSetting("busy_timeout_seconds", f"{busy_timeout_seconds!r} is not between 0 and a day")
    _make(path, read_only=read_only)
    files = Files(path)
    try:
        if not _known(files):
            _take(files, busy_timeout_seconds, read_only=read_only)
    except BaseException:
        files.close()
        raise
    return files


def _make(path: str, *, read_only: bool) -> None:
    if os.path.isdir(path):  # noqa: PTH112
        return
    if os.path.lexists(path) and not os.path.isdir(path):  # noqa: PTH112 -- another process may have made it just now
        raise StorageUnavailable(f"{path!r} is no folder: name one, or a SQLiteStorage for a file")
    if read_only and not os.path.isdir(path):  # noqa: PTH112
        raise StorageUnavailable(f"there is no folder {path!r}: nothing is made where only reading is wanted")
    try:
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)  # noqa: PTH102
        above = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)  # noqa: PTH120
        try:
            os.fsync(above)
        finally:
            os.close(above)
    except ValueError as error:
        raise InvalidSetting("folder", f"{path!r} can't be the name of a folder: {error}") from error
    except PermissionError as error:
        raise StorageReadOnly(f"{path!r} can't be made: {error.strerror}") from error
    except OSError as error:
        if error.errno in FULL:
            raise StorageFull(f"no space is left for {path!r}") from error
        raise StorageUnavailable(f"{path!r} can't be made, make the folder that it is in first: {error}") from error


def _known(files: Files) -> bool:
    """Tell whether the folder is a store; False if it is empty."""
    content = files.read(MARK)
    if content is None:
        others = [
            each for each in files.names("", hidden=True) if each != f".{MARK}.tmp" and not each.startswith(".git")
        ]
        if others:
            raise StorageUnavailable(f"{files.path!r} holds {others[0]!r:.60} and no {MARK}: name an empty folder")
        return False
    try:
        told = json.loads(content)
        ours, schema = told["format"] == _FORMAT, told["schema"]
    except (ValueError, TypeError, KeyError, RecursionError):
        ours, schema = False, None
    if not ours or not isinstance(schema, int):
        raise StorageUnavailable(f"{MARK} in {files.path!r} is damaged, or another program's: name another folder")
    if schema > SCHEMA_VERSION:
        raise SchemaTooNew(
            f"a later memci wrote {files.path!r}: its schema is {schema}, this one knows {SCHEMA_VERSION}"
        )
    return True


def _take(files: Files, busy_timeout_seconds: float, *, read_only: bool) -> None:
    if read_only:
        raise StorageUnavailable(f"there is no store in {files.path!r}: nothing is made where only reading is wanted")
    told = {"format": _FORMAT, "schema": SCHEMA_VERSION, "about": _ABOUT}
    with locked_whole(files.path, busy_timeout_seconds):
        if not _known(files):
            files.write(MARK, json.dumps(told, indent=2).encode() + b"\n")
            files.sync("")
