"""The witness of a store: a small file beside it that records the last revision of each context.

    agent.db-witness       the mark, then 511 slots of 32 bytes; a context has one slot, by a digest of its id
    a slot                 digest · revision · place · frames · salt · check sum          the rest is zeros

A commit writes its slot after it is on disk, so the witness is never ahead of the store. Two contexts may share a slot:
the newer commit takes it, so the newest commit of a store always has one. A store that is behind its witness has lost
commits: its log is damaged, or it was replaced by an older copy.

It holds no text. A damaged slot counts as empty. A missing witness is no error: the next commit makes one. If a slot
can't be written, it is left out, since the commit itself is done.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from hashlib import blake2b
from struct import Struct
from threading import Lock
from typing import Final, NamedTuple
from zlib import crc32

from ..errors import CorruptRecord, StorageBusy, StorageUnavailable
from ..workers import guard_lock
from .system import PLAIN, READS_AT, lock_file, sync_folder, unlock_file

WAY_OUT: Final = (
    "the store is damaged, or was replaced by an older copy; put the right one back, or accept it as it is with "
    "memci doctor STORE --accept"
)
"""what errors advise for a store that is behind its witness"""
WITNESS: Final = "witness"  # its name in a folder; beside a file it is FILE-witness
_MARK: Final = b"memci witness 1\n"
_SIZE: Final = 32
_SLOTS: Final = 511
_EMPTY: Final = bytes(_SIZE)
_WHOLE: Final = (1 + _SLOTS) * _SIZE
_SLOT: Final = Struct("<8sQIII")


class Slot(NamedTuple):
    """What the witness records of the last commit of one context."""

    key: bytes  # 8 bytes of a digest of its id
    revision: int
    place: int = 0  # the number of its row in the store
    frames: int = 0  # number of frames in the write-ahead log after the commit, 0 without a log
    salt: int = 0  # the salt in the header of that log, new whenever the log restarts

    def sentence(self, context: str, revision: int) -> str:
        """Return a sentence that says what is lost of *context*, which is at *revision*; 0 if it is missing."""
        now = f"context {context!r:.60} is at revision {revision}" if revision else "a context is not there"
        return f"{now}, it was at revision {self.revision}"


def key_of(context: str) -> bytes:
    """Return the key of *context*: 8 bytes of a digest of its id."""
    return blake2b(context.encode(), digest_size=16).digest()[:8]


class Witness:
    """The witness in the file *path*. Each handle of a store has its own object; threads may share it."""

    def __init__(self, path: str, *, read_only: bool = False) -> None:
        self._path = path
        self._mutex = guard_lock(Lock())
        self._file: int | None = None
        self._marked = False
        self._open(*(os.O_RDONLY,) if read_only else (os.O_RDWR, os.O_RDONLY))

    @property
    def is_there(self) -> bool:
        """Whether there is a witness."""
        self._marked = self._marked or self._read(0, len(_MARK)) == _MARK
        return self._marked

    def slots(self) -> list[Slot]:
        """Return the slots that are in use."""
        whole = self._read(0, _WHOLE) if self.is_there else b""
        used = (found for at in range(_SIZE, len(whole), _SIZE) if (found := whole[at : at + _SIZE]) != _EMPTY)
        return [slot for found in used if (slot := _slot(found)) is not None]

    def slot(self, context: str) -> Slot | None:
        """Return the slot of *context*, or None. Some microseconds."""
        key = key_of(context)
        found = _slot(self._read(_place(key), _SIZE)) if self.is_there else None
        return found if found is not None and found.key == key else None

    def check(self, context: str, before: Slot | None, revision: int) -> None:
        """Raise CorruptRecord if *revision* of *context* (0: it is missing) is behind its slot.

        *before* is the slot as read before the revision, since another handle may commit meanwhile.
        """
        if before is not None and revision < before.revision and self.slot(context) == before:
            raise CorruptRecord(context, 0, f"{before.sentence(context, revision)}: {WAY_OUT}")

    def make(self) -> None:
        """Make the file if there is none, and sync its folder. An error is ignored: the store works without it."""
        with suppress(OSError):
            if self._file is None:
                self._open(os.O_RDWR | os.O_CREAT)
            if not self.is_there:  # another handle may have made it just now
                self.reset()
                sync_folder(self._path)

    def reset(self) -> None:
        """Clear all slots and sync, or raise StorageUnavailable. O(bytes of the file)."""
        self._write(0, _MARK.ljust(_WHOLE, b"\0"), lasts=True)

    def note(self, slot: Slot) -> None:
        """Write the slot of a finished commit. A few microseconds."""
        body = _SLOT.pack(*slot)
        with suppress(StorageUnavailable):
            self._write(_place(slot.key), body + crc32(body).to_bytes(4, "little"))

    def forget(self, context: str) -> None:
        """Clear the slot of *context* and sync, before the context is erased: else it would count as lost."""
        if self.slot(context) is not None:
            self._write(_place(key_of(context)), _EMPTY, lasts=True)

    @contextmanager
    def locked(self, seconds: float | None = None) -> Iterator[bool]:
        """Lock the file, and give whether slots may be written. Commits share the lock; an erasure has it alone.

        A commit must not write its slot after its context was erased. So an erasure waits up to *seconds* for
        commits that are about to write their slot. A commit passes None and never waits: while an erasure holds the
        lock, it leaves its slot out. StorageBusy if another handle held it for *seconds*.
        """
        held = self._file is not None
        if self._file is not None:
            with suppress(OSError):  # a file system without locks
                held = lock_file(self._file, seconds or 0.0, shared=seconds is None)
        if seconds is not None and self._file is not None and not held:
            raise StorageBusy(f"another handle held {self._path!r} for {seconds:g} s: try again later")
        try:
            yield held
        finally:
            if held and self._file is not None:
                unlock_file(self._file)

    def close(self) -> None:
        """Release the file."""
        with self._mutex:
            file, self._file, self._marked = self._file, None, False
            if file is not None:
                os.close(file)

    def __del__(self) -> None:
        self.close()

    def _open(self, *ways: int) -> None:
        """Open the file if possible; raise StorageUnavailable if it is not a plain file."""
        for flags in ways if READS_AT else ():
            try:
                file = os.open(self._path, flags | PLAIN, 0o600)
            except OSError as error:
                if error.errno in {errno.ELOOP, errno.EISDIR}:
                    raise self._not_ours() from error
                continue
            if not stat.S_ISREG(os.fstat(file).st_mode):
                os.close(file)
                raise self._not_ours()
            self._file = file
            return

    def _not_ours(self) -> StorageUnavailable:
        return StorageUnavailable(f"{self._path!r} is a link, or no file: it was not touched; remove it")

    def _read(self, at: int, size: int) -> bytes:
        with self._mutex, suppress(OSError):
            return b"" if self._file is None else os.pread(self._file, size, at)
        return b""

    def _write(self, at: int, content: bytes, *, lasts: bool = False) -> None:
        with self._mutex:
            try:
                if self._file is not None:
                    os.pwrite(self._file, content, at)
                    if lasts:
                        os.fsync(self._file)
            except OSError as error:
                raise StorageUnavailable(f"{self._path!r} can't be written ({error.strerror}): try again") from error


def forget_all(path: str) -> None:
    """Clear the witness in the file *path*, so that its store is accepted as it is."""
    with closing(Witness(path)) as witness:
        witness.reset()


def _place(key: bytes) -> int:
    return _SIZE * (1 + int.from_bytes(key[:4], "little") % _SLOTS)


def _slot(found: bytes) -> Slot | None:
    body = found[: _SLOT.size]
    if len(found) < _SIZE or crc32(body) != int.from_bytes(found[_SLOT.size :], "little"):
        return None
    return Slot(*_SLOT.unpack(body))
