"""Finds what a SQLite store has lost: committed frames of its write-ahead log, or whole commits.

SQLite reads a log up to the first damaged frame, and silently drops the rest. That is right for a tail that was torn by
a power cut, and wrong for a flipped bit:

    FILE-wal   header | frame 1 | frame 2 | … frame 57, damaged | 58 | 59         SQLite takes 1 to 56

    the witness     a synced commit ended at frame 59 of this log                  ──▶  3 frames are lost
                    alice was at revision 12, the file has 11                      ──▶  a commit is lost
    no witness      frame 59 continues the check sum of 58, which ends a commit    ──▶  58 was not torn

The check sum of a frame covers all frames before it, so a later transaction proves that an earlier one was whole. A
loss is a CorruptRecord before anything is written. `accept_loss` keeps a copy of the log.
"""

import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from struct import Struct, unpack
from time import sleep
from typing import Any, Final

import apsw
from orjson import dumps

from ...errors import CorruptRecord, StorageUnavailable
from ..system import PRIVATE, READS_AT
from ..witness import WAY_OUT, WITNESS, Witness, forget_all, key_of
from .rows import SELECT_BY_NUMBER, read_context
from .write import inode

HEADER: Final = Struct(">8I")
FRAME: Final = Struct(">6I")
MAGIC: Final = 0x377F0682  # of a log whose check sums are over little-endian words; one more: big-endian
_SALT_AT: Final = 20  # where the header has 4 bytes that change whenever the log restarts
_INDEX_SIZE: Final = 48  # bytes of the header of SQLite's index of a log
_indexes: Final[dict[tuple[int, int], int]] = {}
"""open indexes by their inodes, kept for the life of the process: closing one would release all locks that SQLite holds
on it in this process (https://sqlite.org/howtocorrupt.html)"""
SAVE: Final = "take it from a backup, or save what can be read: memci salvage STORE NEW"
"""what is advised for a damaged file"""
_TRIES: Final = 8
_PAUSE_SECONDS: Final = 0.01
"""Another process needs some milliseconds to restart a log, and rarely does so twice in a row."""
_SELECT_NOTED: Final = """
SELECT number, CAST(id AS BLOB), CAST(revision AS INTEGER) FROM context
WHERE number IN (SELECT value FROM json_each(?))"""


def witness_path(path: str) -> str:
    """Return the path of the witness of the store at *path*: beside the real file, if *path* is a link."""
    return f"{os.path.realpath(path)}-{WITNESS}"


def log_path(path: str) -> str:
    """Return the path of the write-ahead log of the store at *path*."""
    return f"{os.path.realpath(path)}-wal"


def salt_of(log: int) -> int:
    """Return the salt of an open log."""
    return int.from_bytes(os.pread(log, 4, _SALT_AT), "big")


def check_left(path: str) -> None:
    """Raise CorruptRecord if *path* is missing or empty, but not what it left: a log, or a witness of commits.

    A rollback journal belongs to an empty file that is being made.
    """
    if is_filled(path):
        return
    there = os.path.exists(path)  # noqa: PTH110
    left = [each for each in beside(path) if not (there and each.endswith("-journal"))]
    if left and not is_filled(path):  # another process fills the file before these
        names, them = " and ".join(repr(each) for each in left), "it" if len(left) == 1 else "them"
        way_out = f"put it back beside {them}, from a backup; or, to begin a new store, move {them} away"
        how = "is empty (what it held is not there)" if there else "is gone"
        raise CorruptRecord("", 0, f"{path!r} {how}, but not {names}: {way_out}")


def beside(path: str) -> list[str]:
    """Return the files that only a store has beside its *path*: a filled log, and a witness that knows of commits."""
    logs = [name for end in ("-wal", "-journal") if is_filled(name := f"{os.path.realpath(path)}{end}")]
    return [*logs, *([witness_path(path)] if is_witnessed(path) else [])]


def is_witnessed(path: str) -> bool:
    """Return whether a witness beside *path* knows of commits: whatever *path* is now, it was a store."""
    with closing(Witness(witness_path(path), read_only=True)) as witness:
        return bool(witness.slots())


def is_filled(path: str) -> bool:
    """Return whether there is a file *path* that is not empty."""
    with suppress(OSError):
        return os.path.getsize(path) > 0  # noqa: PTH202
    return False


def check_log(connection: apsw.Connection, path: str, witness: Witness) -> None:
    """Raise CorruptRecord if committed frames are lost from the log of *path*. O(frames) without a witness.

    Other processes may write meanwhile. Their new frames do not count as lost, since SQLite reads the log last; if they
    restart the log, the check is repeated.
    """
    try:
        log = os.open(log_path(path), os.O_RDONLY) if READS_AT else None
    except OSError:
        return
    if log is None:
        return
    try:
        for _ in range(_TRIES):
            salt, whole = salt_of(log), b"" if witness.is_there else os.pread(log, os.fstat(log).st_size, 0)
            ends = [slot.frames for slot in witness.slots() if slot.salt == salt]
            try:
                taken = max(connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)[0], 0)
            except apsw.BusyError:  # another process restarts the log: it has found it whole
                sleep(_PAUSE_SECONDS)
                continue
            lost = max(ends, default=0) > taken or _is_continued(whole, taken, connection.pragma("page_size"))
            restarts = lost and _restarts(log, path)  # before the salt is read again, since a restart changes it
            if salt != salt_of(log):
                continue
            if lost and not restarts:
                where = f"the log {log_path(path)!r} is damaged at frame {taken + 1} or soon after"
                raise CorruptRecord("", 0, f"{where}, and commits behind it would be lost: {WAY_OUT}")
            return
    except apsw.ReadOnlyError:  # SQLite only reports its frames if the log can be written
        return
    finally:
        os.close(log)


def revisions(connection: apsw.Connection, places: Iterable[int]) -> dict[int, tuple[str, int]]:
    """Return id and revision of the contexts with the numbers *places*, without missing ones. O(places)."""
    found = connection.execute(_SELECT_NOTED, (dumps(list(places)).decode(),))
    return {at: (bytes(name or b"").decode(errors="replace"), int(revision or 0)) for at, name, revision in found}


def behind(connection: apsw.Connection, witness: Witness) -> Iterator[str]:
    """Yield a sentence for each context that is behind its witness. O(slots).

    Damaged rows are left out: reading them raises an error.
    """
    slots, found = witness.slots(), {}
    with suppress(apsw.SQLError, apsw.CorruptError):  # the tables are missing or can't be read
        found = revisions(connection, [slot.place for slot in slots])
    for slot in slots:
        name, revision = found.get(slot.place, ("", 0))
        same = key_of(name) == slot.key
        if (same and revision >= slot.revision) or _is_damaged(connection, slot.place) or slot not in witness.slots():
            continue  # the last condition: it was erased, or changed, meanwhile
        yield slot.sentence(name, revision if same else 0)


def _is_damaged(connection: apsw.Connection, place: int) -> bool:
    try:
        for row in connection.execute(SELECT_BY_NUMBER, (place,)):
            read_context(row)
    except (CorruptRecord, apsw.CorruptError, UnicodeDecodeError):
        return True
    except apsw.SQLError:  # there is no table
        return False
    return False


def accept_loss(path: str) -> str | None:
    """Accept the store at *path* as it is, and return the path of the copy of its log, None if it has no log.

    StorageUnavailable if there is such a copy already, or it can't be made.
    """
    log, kept = log_path(path), f"{log_path(path)}.damaged"
    there = is_filled(log)
    if there:
        try:
            copy = os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with Path(log).open("rb") as source, os.fdopen(copy, "wb") as target:
                shutil.copyfileobj(source, target)
                target.flush()
                os.fsync(copy)
        except OSError as error:
            raise StorageUnavailable(f"{kept!r} can't be made ({error.strerror}): move it away first") from error
    forget_all(witness_path(path))
    return kept if there else None


def _restarts(log: int, path: str) -> bool:
    """Return whether the next commit restarts the *log* of *path*, whose frames are all in the file.

    The process that was about to restart it may have died before it wrote the header of the log. SQLite's index has its
    header twice, with the salts of the log after 32 bytes; the first salt is then one more than that in the log
    (https://sqlite.org/walformat.html). With a damaged header of the log the answer is False.
    """
    header, index = os.pread(log, HEADER.size, 0), _index(f"{os.path.realpath(path)}-shm")
    if len(header) < HEADER.size or index[:_INDEX_SIZE] != index[_INDEX_SIZE:]:
        return False
    *_, salt, _, one, two = HEADER.unpack(header)
    return sums(_order(header), header[:24], 0, 0) == (one, two) and index[32:36] == ((salt + 1) % 2**32).to_bytes(
        4, "big"
    )


def _index(path: str) -> bytes:
    """Return both headers of the index at *path*, b"" if it is missing. The file stays open: see `_indexes`."""
    place = inode(path)
    if place is None:
        return b""
    with suppress(OSError):
        if place not in _indexes:
            _indexes[place] = os.open(path, os.O_RDONLY | PRIVATE)
        return os.pread(_indexes[place], 2 * _INDEX_SIZE, 0)
    return b""


def _order(header: bytes) -> str:
    """Return the byte order of the words in the check sums of a log, by its *header*."""
    magic = int.from_bytes(header[:4], "big")
    return {MAGIC: "<", MAGIC + 1: ">"}.get(magic, "<" if sys.byteorder == "little" else ">")


def _is_continued(log: bytes, taken: int, page_size: int) -> bool:
    """Return whether a commit after the first *taken* frames of *log* is continued by another one. O(frames).

    A frame continues the one before it if its check sum does. Frames with other salts don't count. If the header is
    damaged, the salts are those of the first frame.
    """
    if len(log) < HEADER.size + FRAME.size:
        return False
    *_, first, second, one, two = HEADER.unpack_from(log)
    order = _order(log)
    if sums(order, log[:24], 0, 0) != (one, two):
        _, _, first, second, _, _ = FRAME.unpack_from(log, HEADER.size)
    size, ended = FRAME.size + page_size, None
    for at in range(HEADER.size + taken * size, len(log) - size + 1, size):
        _, commit, *salts, one, two = FRAME.unpack_from(log, at)
        ours = salts == [first, second]
        if ours and ended and sums(order, log[at : at + 8] + log[at + FRAME.size : at + size], *ended) == (one, two):
            return True
        ended = (one, two) if ours and commit else None
    return False


def sums(order: str, content: bytes, one: int, two: int) -> tuple[int, int]:
    """Return the check sums of SQLite's log over *content*, starting from *one* and *two*. O(bytes)."""
    words: Any = unpack(f"{order}{len(content) // 4}I", content)
    for first, second in zip(words[::2], words[1::2], strict=True):
        one = (one + first + two) & 0xFFFFFFFF
        two = (two + second + one) & 0xFFFFFFFF
    return one, two
