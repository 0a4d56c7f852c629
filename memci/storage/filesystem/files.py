"""The files of a folder: each one is replaced whole, or stays as it was.

    write "context.jsonl":   .context.jsonl.tmp   written, synced   ──▶   renamed   ──▶   its folder synced

Under a name that we read there is never half a file: after a power cut it holds the old bytes or the new ones, and what
does not check is damage. Every step goes from the folder down, by descriptors, and follows no link: where a link, a
pipe or another one's file stands in the place of ours, it is refused.

This module knows nothing of contexts, lines or rows.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

from ...errors import HandlePoisoned, StorageError, StorageUnavailable
from .calls import FOLDER, FULL, names_in, read, remove, storage_error, sync, write

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAKE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LOCK: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Files:
    """The files under one folder. Paths are relative to it, with "/" between the names."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._pid = os.getpid()
        self.poison: str | None = None
        self.shown: Mapping[str, bytes | None] = {}
        """what reading finds instead of what is there: new contents by path, None for what is gone"""
        try:
            root = os.open(path, FOLDER & ~os.O_NOFOLLOW)  # the caller may name his folder by a link
        except OSError as error:
            raise self.error(error, "") from error
        self._root: _Root | None = _Root(root)
        self._lasting: set[str] = set()
        found = os.fstat(root)
        self._identity = found.st_dev, found.st_ino
        self._owners = {found.st_uid, os.geteuid()}

    def check(self) -> None:
        """Raise HandlePoisoned if these files can't be trusted any more, or are not at their path."""
        self.check_open()
        if self.poison is None:
            try:
                found = os.stat(self.path)  # noqa: PTH116 -- on the hot path
                same = (found.st_dev, found.st_ino) == self._identity
            except OSError:
                same = False
            if same:
                return
            self.poison = f"{self.path!r} was moved, replaced or deleted: open the store again"
        raise HandlePoisoned(self.poison)

    def check_open(self) -> None:
        """Raise HandlePoisoned if these files were closed, or can't be trusted, or are another process's."""
        if os.getpid() != self._pid:
            raise HandlePoisoned(f"{self.path!r} was opened before fork(): open the store again in this process")
        if self.poison is not None:
            raise HandlePoisoned(self.poison)

    def close(self) -> None:
        """Release the folder."""
        self.poison = self.poison or f"{self.path!r} was closed: open the store again"
        self._root = None

    def read(self, path: str, most: int | None = None) -> bytes | None:
        """Return the bytes of a file, *most* of them if that is given; None if there is none. O(bytes)."""
        for known in (path, "/".join(path.split("/")[:2])):
            if known in self.shown:
                return self.shown[known]
        *folder, name = path.split("/")
        try:
            with self._folder(folder) as parent:
                file = os.open(name, _READ, dir_fd=parent)
                try:
                    self._check_ours(file, path)
                    return read(file, most)
                finally:
                    os.close(file)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self.error(error, path) from error

    def names(self, path: str, *, hidden: bool = False) -> list[str]:
        """Return the names in a folder, sorted; those that are not final only if *hidden*. O(names)."""
        if self.shown.get("/".join(path.split("/")[:2]), b"") is None:
            return []
        try:
            with self._folder(path.split("/") if path else []) as folder:
                found = {name for name in names_in(folder) if hidden or not name.startswith(".")}
        except FileNotFoundError:
            found = set()
        except OSError as error:
            raise self.error(error, path) from error
        for known, content in self.shown.items():
            parent, _, name = known.rpartition("/")
            if parent == path:
                (found.discard if content is None else found.add)(name)
        return sorted(found)

    def has(self, path: str) -> bool:
        """Tell whether anything is under *path*."""
        if path in self.shown:
            return self.shown[path] is not None
        *folder, name = path.split("/")
        try:
            with self._folder(folder) as parent:
                os.stat(name, dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise self.error(error, path) from error
        return True

    def write(self, path: str, content: bytes) -> None:
        """Put *content* under *path*: whole, synced, named; `sync` of its folder makes the name last. O(bytes)."""
        *folder, name = path.split("/")
        tmp = f".{name}.tmp"
        try:
            with self._folder(folder) as parent:
                with suppress(FileNotFoundError):
                    os.unlink(tmp, dir_fd=parent)
                try:
                    file = os.open(tmp, _MAKE, 0o600, dir_fd=parent)
                    try:
                        write(file, content)
                        self._sync(file, path)
                    finally:
                        os.close(file)
                    os.rename(tmp, name, src_dir_fd=parent, dst_dir_fd=parent)
                except BaseException:
                    with suppress(OSError):
                        os.unlink(tmp, dir_fd=parent)
                    raise
        except OSError as error:
            raise self.error(error, path) from error

    def sync(self, path: str) -> None:
        """Make the names in a folder last."""
        try:
            with self._folder(path.split("/") if path else []) as folder:
                self._sync(folder, path, names=True)
        except OSError as error:
            raise self.error(error, path) from error

    def make_last(self, path: str) -> None:
        """Sync all folders from the one above ours down to *path*, once: who made them may have died before."""
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
            raise self.error(error, "") from error
        names = path.split("/")
        for depth in range(len(names) + 1):
            self.sync("/".join(names[:depth]))
        self._lasting.add(path)

    def make_folder(self, path: str, *, lasts: bool = True) -> None:
        """Make a folder, which *lasts*, if there is none."""
        *above, name = path.split("/")
        try:
            with self._folder(above) as parent:
                try:
                    os.mkdir(name, 0o700, dir_fd=parent)
                except FileExistsError:
                    return
                if lasts:
                    self._sync(parent, path, names=True)
        except OSError as error:
            raise self.error(error, path) from error

    def rename(self, path: str, name: str) -> None:
        """Give a folder another *name* beside it."""
        *above, old = path.split("/")
        try:
            with self._folder(above) as parent:
                os.rename(old, name, src_dir_fd=parent, dst_dir_fd=parent)
        except OSError as error:
            raise self.error(error, path) from error

    def remove(self, path: str) -> None:
        """Remove a file, or a folder with all that is in it; fine if there is none. O(files)."""
        *above, name = path.split("/")
        try:
            with suppress(FileNotFoundError), self._folder(above) as parent:
                remove(parent, name)
        except OSError as error:
            raise self.error(error, path) from error

    def remove_unfinished(self, path: str) -> None:
        """Remove from a folder what was never given its final name. O(names)."""
        try:
            with suppress(FileNotFoundError), self._folder(path.split("/") if path else []) as folder:
                for name in names_in(folder):
                    if name.startswith(".") and name.endswith(".tmp"):
                        remove(folder, name)
        except OSError as error:
            raise self.error(error, path) from error

    def open_lock(self, path: str) -> int:
        """Open the file of a lock, which is made if there is none, and return its descriptor."""
        *folder, name = path.split("/")
        try:
            with self._folder(folder) as parent:
                file = os.open(name, _LOCK, 0o600, dir_fd=parent)
            try:
                self._check_ours(file, path)
            except BaseException:
                os.close(file)
                raise
        except OSError as error:
            raise self.error(error, path) from error
        return file

    def error(self, error: OSError, path: str) -> StorageError:
        """Return what *error* means to a caller of a store."""
        return storage_error(error, os.path.join(self.path, path))  # noqa: PTH118 -- as the caller wrote it

    @contextmanager
    def _folder(self, names: list[str]) -> Iterator[int]:
        root = self._root
        if root is None:
            raise HandlePoisoned(self.poison)
        folder = os.dup(root.file)
        try:
            for name in names:
                inner = os.open(name, FOLDER, dir_fd=folder)
                os.close(folder)
                folder = inner
            yield folder
        finally:
            os.close(folder)

    def _check_ours(self, file: int, path: str) -> None:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_uid not in self._owners:
            raise StorageUnavailable(f"{path!r} in {self.path!r} is no plain file, or another user's: refused")

    def _sync(self, file: int, path: str, *, names: bool = False) -> None:
        try:
            sync(file)
        except OSError as error:
            # What the system once failed to sync it may forget, and tell the next fsync that all is well.
            if names or error.errno not in FULL:
                self.poison = f"{path!r} in {self.path!r} could not be synced ({error.strerror}): open the store again"
            raise


class _Root:
    """An open folder, closed when the last thread that uses it lets go: its number must not become another one's."""

    __slots__ = ("file",)

    def __init__(self, file: int) -> None:
        self.file = file

    def __del__(self) -> None:
        os.close(self.file)
