"""Files of one folder, each of which is replaced as a whole or not at all.

    write "memci.json":   .memci.json.tmp   written, synced   ──▶   renamed   ──▶   `sync` of its folder

Each path is opened from the folder down, by descriptors. Links are not followed: a link, a pipe or another user's file
in place of one of ours is refused.
"""

import errno
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from ...errors import (
    HandlePoisoned,
    InvalidSetting,
    StorageBusy,
    StorageError,
    StorageFull,
    StorageReadOnly,
    StorageUnavailable,
)
from ..system import PLAIN, PRIVATE, lock_file, unlock_file
from ..validation import FULL

with suppress(ImportError):  # not on Windows
    import fcntl

_DENIED: Final = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
_NOT_OURS: Final = frozenset({errno.ELOOP, errno.ENXIO, errno.ENOTDIR, errno.EISDIR})

_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | PRIVATE
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL


class Files:
    """The files under one folder. Paths are relative to it, with "/" between the names.

    Methods raise a StorageError if a file can't be used, or the folder was released.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        if not hasattr(os, "O_DIRECTORY"):
            instead = "name a file instead, for SQLiteStorage"
            raise InvalidSetting("store", f"a folder as a store needs a POSIX system (Linux, macOS): {instead}")
        try:
            root = os.open(path, _FOLDER & ~getattr(os, "O_NOFOLLOW", 0))  # the caller may name the folder by a link
        except OSError as error:
            raise meaning(error, path) from error
        self._root: _Root | None = _Root(root)
        self._owners = {os.fstat(root).st_uid, os.geteuid()}

    def close(self) -> None:
        """Release the folder."""
        self._root = None

    def read(self, path: str, most: int | None = None) -> bytes | None:
        """Return the bytes of a file, or its first *most* bytes; None if the file is missing. O(bytes)."""
        with suppress(FileNotFoundError), self.opened(path, os.O_RDONLY) as file, open(file, "rb", closefd=False) as it:
            return it.read(most)
        return None

    @contextmanager
    def opened(self, path: str, flags: int) -> Iterator[int]:
        """Open a plain file of ours and give its descriptor; FileNotFoundError if it is missing."""
        with self._above(path, missing=True) as (folder, name):
            file = os.open(name, flags | PLAIN, 0o600, dir_fd=folder)
            try:
                found = os.fstat(file)
                if not stat.S_ISREG(found.st_mode) or found.st_uid not in self._owners:
                    what = f"{path!r} in {self.path!r} is no plain file, or another user's"
                    raise StorageUnavailable(f"{what}: it was not touched")
                yield file
            finally:
                os.close(file)

    def names(self, path: str, *, hidden: bool = False) -> list[str]:
        """Return the names in a folder, sorted; with *hidden*, also those that begin with a dot. O(names)."""
        with suppress(FileNotFoundError), self._folder(path, missing=True) as folder:
            return sorted(name for name in os.listdir(folder) if hidden or not name.startswith("."))  # noqa: PTH208 -- a descriptor
        return []

    def write(self, path: str, content: bytes | Iterable[bytes], *, lasts: bool = True) -> None:
        """Write *content*, or its parts, to *path* as a whole; synced unless *lasts* is false. O(bytes).

        Call `sync` for its folder to make the name durable.
        """
        with self._above(path) as (folder, name):
            tmp = f".{name}.tmp"
            with suppress(FileNotFoundError):
                os.unlink(tmp, dir_fd=folder)
            try:
                file = os.open(tmp, _NEW | PLAIN, 0o600, dir_fd=folder)
                try:
                    for part in [content] if isinstance(content, bytes) else content:
                        append(file, part)
                    if lasts:
                        sync(file)
                finally:
                    os.close(file)
                os.rename(tmp, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(tmp, dir_fd=folder)
                raise

    def sync(self, path: str) -> None:
        """Sync the names in a folder."""
        with self._folder(path) as folder:
            sync(folder)

    def make_folder(self, path: str, *, lasts: bool = True) -> None:
        """Make a folder if it is missing, and sync its name unless *lasts* is false."""
        with self._above(path) as (folder, name):
            try:
                os.mkdir(name, 0o700, dir_fd=folder)
            except FileExistsError:
                return
            if lasts:
                sync(folder)

    def remove(self, path: str) -> None:
        """Remove a file, or a folder with its files, if it exists. O(files)."""
        with suppress(FileNotFoundError), self._above(path, missing=True) as (folder, name):
            _remove(folder, name)

    def remove_unfinished(self, path: str) -> None:
        """Remove unfinished files (`.NAME.tmp`) from a folder. O(names)."""
        with suppress(FileNotFoundError), self._folder(path, missing=True) as folder:
            for name in os.listdir(folder):  # noqa: PTH208 -- a descriptor
                if name.startswith(".") and name.endswith(".tmp"):
                    _remove(folder, name)

    @contextmanager
    def _above(self, path: str, *, missing: bool = False) -> Iterator[tuple[int, str]]:
        """Open the folder of *path*; give its descriptor and the name in it. It raises as `_folder`."""
        above, _, name = path.rpartition("/")
        with self._folder(above, path, missing=missing) as folder:
            yield folder, name

    @contextmanager
    def _folder(self, folder: str, path: str | None = None, *, missing: bool = False) -> Iterator[int]:
        """Open *folder* and give its descriptor. An OSError becomes a StorageError about *path* (default: *folder*).

        With *missing*, a FileNotFoundError is not translated.
        """
        root = self._root
        if root is None:
            raise HandlePoisoned(f"{self.path!r} was closed: open it again")
        try:
            file = os.dup(root.file)
            try:
                for name in folder.split("/") if folder else ():
                    inner = os.open(name, _FOLDER, dir_fd=file)
                    os.close(file)
                    file = inner
                yield file
            finally:
                os.close(file)
        except StorageError:
            raise
        except OSError as error:
            if missing and isinstance(error, FileNotFoundError):
                raise
            raise meaning(error, os.path.join(self.path, folder if path is None else path)) from error  # noqa: PTH118


class _Root:
    """An open folder, closed when the last thread that uses it drops it: its descriptor must not be reused before."""

    __slots__ = ("file",)

    def __init__(self, file: int) -> None:
        self.file = file

    def __del__(self) -> None:
        os.close(self.file)


def meaning(error: OSError, where: str) -> StorageError:
    """Return the StorageError for *error* at the path *where*."""
    if error.errno in FULL:
        return StorageFull(f"no space is left for {where!r}: free some and try again")
    if error.errno in _DENIED:
        return StorageReadOnly(f"{where!r} can't be written or reached ({error.strerror}): check its permissions")
    if error.errno in _NOT_OURS:
        return StorageUnavailable(f"{where!r} is a link, or no file or folder of ours: it was not touched")
    return StorageUnavailable(f"{where!r} can't be used: {error.strerror or error}")


def append(file: int, content: bytes) -> None:
    """Write all of *content* to an open file."""
    left = memoryview(content)
    while left:
        left = left[os.write(file, left) :]


def sync(file: int) -> None:
    """Sync a file, or the names in a folder, to the disk."""
    full = getattr(fcntl, "F_FULLFSYNC", None)  # on macOS, fsync() does not flush the drive's cache
    if full is not None:
        fcntl.fcntl(file, full)
    else:
        os.fsync(file)


@contextmanager
def locked_whole(path: str, seconds: float) -> Iterator[None]:
    """Lock the folder itself, without a file in it; StorageBusy if another process held it for *seconds*."""
    file = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if not lock_file(file, seconds):
            raise StorageBusy(f"another process writes in {path!r}: try again later")
        yield
    finally:
        unlock_file(file)
        os.close(file)


def _remove(folder: int, name: str) -> None:
    """Remove a file from an open folder, or a folder with its files, if it exists. O(files)."""
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno not in {errno.EISDIR, errno.EPERM}:
            raise
        shutil.rmtree(name, dir_fd=folder)
