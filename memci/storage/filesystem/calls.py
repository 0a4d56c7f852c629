"""System calls on open files and folders, and what it means when they fail.

    ENOSPC   StorageFull        EACCES, EROFS   StorageReadOnly        ELOOP (a link where a file should be)   refused

This module knows nothing of paths or of what is in a file.
"""

import errno
import fcntl
import os
from typing import Final

from ...errors import StorageError, StorageFull, StorageReadOnly, StorageUnavailable

FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""how a folder is opened: never through a link"""

_DENIED: Final = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
_NOT_OURS: Final = frozenset({errno.ELOOP, errno.ENXIO, errno.ENOTDIR, errno.EISDIR})
_FULL_SYNC: Final[int | None] = getattr(fcntl, "F_FULLFSYNC", None)  # where fsync() stops at the drive's cache
_CHUNK: Final = 2**24


def read(file: int, most: int | None) -> bytes:
    """Return what is in *file*, at most so many bytes. O(bytes)."""
    parts: list[bytes] = []
    left = 2**62 if most is None else most
    size = os.fstat(file).st_size + 1
    while left > 0 and (part := os.read(file, min(left, size, _CHUNK))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def write(file: int, content: bytes) -> None:
    """Write all of *content*. O(bytes)."""
    left = memoryview(content)
    while left:
        left = left[os.write(file, left) :]


def sync(file: int) -> None:
    """Return when *file*, or the names in a folder, are on the disk."""
    if _FULL_SYNC is not None:
        fcntl.fcntl(file, _FULL_SYNC)
    else:
        os.fsync(file)


def names_in(folder: int) -> list[str]:
    """Return the names in an open folder. O(names)."""
    return os.listdir(folder)


def remove(folder: int, name: str) -> None:
    """Remove a file from an open folder, or a folder with all that is in it; fine if there is none. O(files)."""
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno not in {errno.EISDIR, errno.EPERM}:
            raise
        inner = os.open(name, FOLDER, dir_fd=folder)
        try:
            for each in names_in(inner):
                remove(inner, each)
        finally:
            os.close(inner)
        os.rmdir(name, dir_fd=folder)


def storage_error(error: OSError, where: str) -> StorageError:
    """Return what *error* means to a caller of a store."""
    if isinstance(error, StorageError):
        return error
    if error.errno in FULL:
        return StorageFull(f"no space is left for {where!r}")
    if error.errno in _DENIED:
        return StorageReadOnly(f"{where!r} can't be written, or not be reached: {error.strerror}")
    if error.errno in _NOT_OURS:
        return StorageUnavailable(f"{where!r} is a link, or no file or folder of ours: it was not touched")
    return StorageUnavailable(f"{where!r} can't be used: {error.strerror or error}")
