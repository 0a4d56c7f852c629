"""The files of a folder: each one is replaced whole, or stays as it was.

    write "context.jsonl":   .context.jsonl.tmp   written, synced   ──▶   renamed   ──▶   its folder synced

A name that is read never holds half a file: after a power cut it holds the old bytes or the new ones, and a check sum
that does not match means damage. Each path is walked from the folder down, by descriptors, and no link is followed: a
link, a pipe or another user's file in the place of one of ours is refused.

    ENOSPC   StorageFull        EACCES, EROFS   StorageReadOnly        ELOOP (a link)   StorageUnavailable

This module knows nothing of contexts, lines or rows.
"""

import errno
import fcntl
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

from ...errors import HandlePoisoned, StorageError, StorageFull, StorageReadOnly, StorageUnavailable
from ..validation import FULL

_DENIED: Final = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
_NOT_OURS: Final = frozenset({errno.ELOOP, errno.ENXIO, errno.ENOTDIR, errno.EISDIR})

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAKE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LOCK: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FULL_SYNC: Final[int | None] = getattr(fcntl, "F_FULLFSYNC", None)  # where fsync() stops at the drive's cache
_CHUNK: Final = 2**24


class Files:
    """The files under one folder. Paths are relative to it, with "/" between the names."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._pid = os.getpid()
        self.poison: str | None = None
        """why these files can't be trusted any more; None while they can"""
        self.shown: Mapping[str, bytes | None] = {}
        """what reading finds instead of what is there: new contents by path, None for a path that is gone"""
        try:
            root = os.open(path, _FOLDER & ~os.O_NOFOLLOW)  # the caller may name the folder by a link
        except OSError as error:
            raise self._error(error, "") from error
        self._root: _Root | None = _Root(root)
        self._lasting: set[str] = set()
        found = os.fstat(root)
        self._identity = found.st_dev, found.st_ino
        self._owners = {found.st_uid, os.geteuid()}

    def check(self) -> None:
        """Raise HandlePoisoned if these files can't be trusted any more, or are not at their path."""
        self.check_open()
        try:
            found = os.stat(self.path)  # noqa: PTH116 -- on the hot path
            same = (found.st_dev, found.st_ino) == self._identity
        except OSError:
            same = False
        if not same:
            self.poison = f"{self.path!r} was moved, replaced or deleted: open the store again"
            raise HandlePoisoned(self.poison)

    def check_open(self) -> None:
        """Raise HandlePoisoned if these files were closed, can't be trusted, or belong to another process."""
        if os.getpid() != self._pid:
            raise HandlePoisoned(f"{self.path!r} was opened before fork(): open the store again in this process")
        if self.poison is not None:
            raise HandlePoisoned(self.poison)

    def close(self) -> None:
        """Release the folder."""
        self.poison = self.poison or f"{self.path!r} was closed: open the store again"
        self._root = None

    def read(self, path: str, most: int | None = None) -> bytes | None:
        """Return the bytes of a file, at most *most* if that is given; None if there is no such file. O(bytes)."""
        for known in (path, "/".join(path.split("/")[:2])):
            if known in self.shown:
                return self.shown[known]
        with suppress(FileNotFoundError), self._above(path, missing=True) as (folder, name):
            file = os.open(name, _READ, dir_fd=folder)
            try:
                self._check_ours(file, path)
                parts: list[bytes] = []
                left = 2**62 if most is None else most
                size = os.fstat(file).st_size + 1
                while left > 0 and (part := os.read(file, min(left, size, _CHUNK))):
                    parts.append(part)
                    left -= len(part)
                return b"".join(parts)
            finally:
                os.close(file)
        return None

    def names(self, path: str, *, hidden: bool = False) -> list[str]:
        """Return the names in a folder, sorted; those that are not final only if *hidden*. O(names)."""
        if self.shown.get("/".join(path.split("/")[:2]), b"") is None:
            return []
        found: set[str] = set()
        with suppress(FileNotFoundError), self._folder(path, missing=True) as folder:
            found = {name for name in os.listdir(folder) if hidden or not name.startswith(".")}  # noqa: PTH208 -- a descriptor
        for known, content in self.shown.items():
            parent, _, name = known.rpartition("/")
            if parent == path:
                (found.discard if content is None else found.add)(name)
        return sorted(found)

    def has(self, path: str) -> bool:
        """Return whether there is anything under *path*."""
        if path in self.shown:
            return self.shown[path] is not None
        with suppress(FileNotFoundError), self._above(path, missing=True) as (folder, name):
            os.stat(name, dir_fd=folder, follow_symlinks=False)
            return True
        return False

    def write(self, path: str, content: bytes, *, lasts: bool = True) -> None:
        """Put *content* under *path*, whole; synced unless *lasts* is false. `sync` makes the name last. O(bytes)."""
        with self._above(path) as (folder, name):
            tmp = f".{name}.tmp"
            with suppress(FileNotFoundError):
                os.unlink(tmp, dir_fd=folder)
            try:
                file = os.open(tmp, _MAKE, 0o600, dir_fd=folder)
                try:
                    left = memoryview(content)
                    while left:
                        left = left[os.write(file, left) :]
                    if lasts:
                        self._sync(file, path)
                finally:
                    os.close(file)
                os.rename(tmp, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(tmp, dir_fd=folder)
                raise

    def sync(self, path: str) -> None:
        """Make the names in a folder last."""
        with self._folder(path) as folder:
            self._sync(folder, path, names=True)

    def make_last(self, path: str) -> None:
        """Sync all folders from the one above ours down to *path*, once: their maker may have died before it did."""
        if path in self._lasting:
            return
        try:
            above = os.open(os.path.dirname(self.path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)  # noqa: PTH120
            try:
                with suppress(PermissionError):
                    self._sync(above, "", names=True)
            finally:
                os.close(above)
        except OSError as error:
            raise self._error(error, "") from error
        names = path.split("/")
        for depth in range(len(names) + 1):
            self.sync("/".join(names[:depth]))
        self._lasting.add(path)

    def make_folder(self, path: str, *, lasts: bool = True) -> None:
        """Make a folder if there is none, and make its name last unless *lasts* is false."""
        with self._above(path) as (folder, name):
            try:
                os.mkdir(name, 0o700, dir_fd=folder)
            except FileExistsError:
                return
            if lasts:
                self._sync(folder, path, names=True)

    def rename(self, path: str, name: str) -> None:
        """Give a folder another *name* beside it."""
        with self._above(path) as (folder, old):
            os.rename(old, name, src_dir_fd=folder, dst_dir_fd=folder)

    def remove(self, path: str) -> None:
        """Remove a file, or a folder with all that is in it; fine if there is none. O(files)."""
        with suppress(FileNotFoundError), self._above(path, missing=True) as (folder, name):
            _remove(folder, name)

    def remove_unfinished(self, path: str) -> None:
        """Remove from a folder the files that never got their final name. O(names)."""
        with suppress(FileNotFoundError), self._folder(path, missing=True) as folder:
            for name in os.listdir(folder):  # noqa: PTH208 -- a descriptor
                if name.startswith(".") and name.endswith(".tmp"):
                    _remove(folder, name)

    def open_lock(self, path: str) -> int:
        """Open the file of a lock, which is made if there is none, and return its descriptor."""
        with self._above(path) as (folder, name):
            file = os.open(name, _LOCK, 0o600, dir_fd=folder)
            try:
                self._check_ours(file, path)
            except BaseException:
                os.close(file)
                raise
        return file

    @contextmanager
    def _above(self, path: str, *, missing: bool = False) -> Iterator[tuple[int, str]]:
        """Give the open folder that *path* is in, and its name there; fails as `_folder` does."""
        above, _, name = path.rpartition("/")
        with self._folder(above, path, missing=missing) as folder:
            yield folder, name

    @contextmanager
    def _folder(self, folder: str, path: str | None = None, *, missing: bool = False) -> Iterator[int]:
        """Give the descriptor of *folder*. An OSError becomes a StorageError that names *path*, default: *folder*.

        With *missing*, a FileNotFoundError is raised as it is.
        """
        root = self._root
        if root is None:
            raise HandlePoisoned(self.poison)
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
            raise self._error(error, folder if path is None else path) from error

    def _check_ours(self, file: int, path: str) -> None:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_uid not in self._owners:
            raise StorageUnavailable(
                f"{path!r} in {self.path!r} is no plain file, or another user's: it was not touched"
            )

    def _sync(self, file: int, path: str, *, names: bool = False) -> None:
        try:
            sync(file)
        except OSError as error:
            # After a sync that failed, the system may forget the data and report success for the next one.
            if names or error.errno not in FULL:
                self.poison = f"{path!r} in {self.path!r} could not be synced ({error.strerror}): open the store again"
            raise

    def _error(self, error: OSError, path: str) -> StorageError:
        return meaning(error, os.path.join(self.path, path))  # noqa: PTH118 -- as the caller wrote it


class _Root:
    """An open folder, closed when the last thread that uses it drops it: its number must not be reused before."""

    __slots__ = ("file",)

    def __init__(self, file: int) -> None:
        self.file = file

    def __del__(self) -> None:
        os.close(self.file)


def meaning(error: OSError, where: str) -> StorageError:
    """Return what *error* at the path *where* means to a caller of a store."""
    if error.errno in FULL:
        return StorageFull(f"no space is left for {where!r}: free some and try again")
    if error.errno in _DENIED:
        return StorageReadOnly(f"{where!r} can't be written or reached ({error.strerror}): check its permissions")
    if error.errno in _NOT_OURS:
        return StorageUnavailable(f"{where!r} is a link, or no file or folder of ours: it was not touched")
    return StorageUnavailable(f"{where!r} can't be used: {error.strerror or error}")


def sync(file: int) -> None:
    """Return when a file, or the names in a folder, are on the disk."""
    if _FULL_SYNC is not None:
        fcntl.fcntl(file, _FULL_SYNC)
    else:
        os.fsync(file)


def _remove(folder: int, name: str) -> None:
    """Remove a file from an open folder, or a folder with all that is in it; fine if there is none. O(files)."""
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno not in {errno.EISDIR, errno.EPERM}:
            raise
        shutil.rmtree(name, dir_fd=folder)
