"""Opens the file of a SQLite store, and translates the errors of SQLite.

    no file, or an empty one         made: WAL, tables, application_id "memc"; StorageUnavailable if read_only
    a store                          opened
    a store of another version       SchemaTooNew or StorageUnavailable (`schema`)     unchanged
    a file of another program        StorageUnavailable  unchanged
    on a network file system         StorageUnavailable  unchanged, unless journal="truncate" is given
    it has lost commits (`loss`)     CorruptRecord       unchanged
    no file, but its log or witness  CorruptRecord       unchanged
    no SQLite file, beside them      CorruptRecord       unchanged

    journal "wal"        a commit is a synced append to FILE-wal; readers and a writer never wait for each other
            "truncate"   a rollback journal: slower, needs no shared memory

One process must not use SQLite through two libraries: closing any descriptor of a file drops all of its locks. So
only `apsw` opens the file here, and a program must not open it with `sqlite3` at the same time.
"""

import os
import random
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Final, Literal
from urllib.parse import quote

import apsw

from ...errors import (
    CorruptRecord,
    InvalidSetting,
    LimitExceeded,
    MemciError,
    StorageBusy,
    StorageFull,
    StorageReadOnly,
    StorageUnavailable,
    brief,
)
from ..system import sync_folder
from ..validation import FULL, Durability, check_opening
from ..witness import WAY_OUT, Witness
from .loss import SAVE, behind, beside, check_left, check_log, is_filled, is_witnessed, log_path, witness_path
from .schema import SCHEMA_VERSION, prepare, version
from .write import sync_journal, transaction

Journal = Literal["wal", "truncate"]

RAM: Final = ":memory:"  # in place of a path: a store without a file
_SYNCHRONOUS = {"full": "FULL", "fast": "NORMAL"}

_LOG_BYTES = 2**21  # size to which the file of the log shrinks when it restarts: the 400 pages of a checkpoint fit
_PROBLEMS = 20  # problems that a check reports at most: they fit on a screen
_NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "fuse.sshfs", "fuse.glusterfs", "lustre"})
"""file systems on which WAL corrupts: its index lies in memory that two machines can't share"""


def open_file(
    path: str, durability: Durability, journal: Journal | None, busy_timeout_seconds: float, *, read_only: bool
) -> tuple[apsw.Connection, Witness]:
    """Open the store at *path* and its witness. A missing store is made, unless *read_only*.

    An invalid argument is InvalidSetting; the other errors are those of the drawing above.
    """
    check_opening(durability, busy_timeout_seconds)
    if journal not in (None, "wal", "truncate"):
        raise InvalidSetting("journal", f"{brief(journal)} is neither 'wal' nor 'truncate'")
    check_library(apsw.sqlite_lib_version())
    if path == RAM:
        connection = apsw.Connection(RAM)
        prepare(connection, path, writable=True)
        return connection, Witness("")  # a witness without a file
    with suppress(ValueError):  # not a valid name: opening it raises that
        check_left(path)
    _check_place(path, read_only=read_only)
    if journal != "truncate" and (network := network_file_system(path)) is not None:
        raise StorageUnavailable(
            f"{path!r} is on a network file system ({network}), where WAL corrupts: put it on a local disk, or open it "
            f"with journal='truncate' and from one machine at a time"
        )
    try:
        witness = Witness(witness_path(path), read_only=read_only)
        connection = connect(path, read_only=read_only)
    except (apsw.Error, UnicodeEncodeError, ValueError) as error:
        raise _explain_failed_opening(error, path) from error
    try:
        connection.set_busy_timeout(round(busy_timeout_seconds * 1000))
        _prepare_connection(connection, path, witness, _SYNCHRONOUS[durability], journal, busy_timeout_seconds)
    except BaseException as error:
        witness.close()
        errno = connection.system_errno
        if not isinstance(error, apsw.NotADBError):
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # a file that is refused stays unchanged
        connection.close()
        if isinstance(error, apsw.Error):
            raise storage_error(error, path, errno=errno) from error
        raise
    return connection, witness


def network_file_system(path: str, mounts: str | None = None) -> str | None:
    """Return the type of the network file system of *path*, None if it is local or unknown.

    *mounts*: the lines of /proc/self/mounts; default: as they are now.
    """
    try:
        mounts = mounts or Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    if not any(f" {kind} " in mounts for kind in _NETWORK):
        return None
    try:
        place = os.path.realpath(path)
    except ValueError:  # not a valid name: opening it raises that
        return None
    best, found = "", None
    for line in mounts.splitlines():
        _, point, kind, *_ = line.split(" ")
        point = point.replace("\\040", " ")
        inside = place == point or place.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, found = point, kind
    return found if found in _NETWORK else None


def check_library(version: str) -> None:
    """Raise StorageUnavailable if this SQLite loses commits when two connections write (its WAL-reset bug)."""
    if tuple(int(each) for each in version.split(".")[:3]) < (3, 51, 3):
        raise StorageUnavailable(f"SQLite {version} can lose commits: install an apsw with SQLite 3.51.3 or later")


def damage(connection: apsw.Connection) -> list[str]:
    """Return what SQLite finds wrong with the file of *connection*. O(bytes).

    Problems are checked again by a new connection: FTS5 compares a table with what this connection last read of it,
    and takes later writes of other connections for damage.
    """
    found = _problems(connection)
    if not found:
        return []
    with closing(apsw.Connection(connection.filename, flags=apsw.SQLITE_OPEN_READONLY)) as fresh:
        fresh.set_busy_timeout(1_000)
        return _problems(fresh)


def _problems(connection: apsw.Connection) -> list[str]:
    try:
        found = connection.execute(f"PRAGMA integrity_check({_PROBLEMS})").fetchall()
    except (apsw.CorruptError, apsw.NotADBError) as error:
        return [f"SQLite: {error}"]
    return [f"SQLite: {problem}" for (problem,) in found if problem != "ok"]


def storage_error(error: apsw.Error, path: str, context: str = "", seq: int = 0, *, errno: int = 0) -> MemciError:
    """Return the error of memci for *error*; *errno* is the last one of the operating system."""
    if isinstance(error, apsw.SQLError) and is_witnessed(path):  # our statements fail only if the tables are damaged
        error = apsw.CorruptError(str(error))
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return StorageBusy(f"another process held {path!r} for longer than busy_timeout_seconds: try again later")
        case apsw.FullError():
            return StorageFull(f"no space is left for {path!r}: free some and try again")
        case apsw.IOError() | apsw.CantOpenError() if errno in FULL or (
            type(error) is apsw.CantOpenError and _full(path)
        ):
            return StorageFull(f"no space is left for {path!r}, or for the files beside it: free some and try again")
        case apsw.ReadOnlyError() | apsw.PermissionsError():
            return StorageReadOnly(f"{path!r} can be read, not written: check its permissions")
        case apsw.NotADBError():
            damaged = CorruptRecord(context, seq, f"{path!r} is damaged where it begins: {SAVE}")
            return damaged if beside(path) else StorageUnavailable(f"{path!r} is not a SQLite file: name another file")
        case apsw.CorruptError() | apsw.FormatError() | apsw.ConstraintError() | apsw.MismatchError():
            return CorruptRecord(context, seq, f"{path!r} is damaged: {error}")
        case apsw.TooBigError():
            return LimitExceeded("bytes in one SQLite value", 2**30, 10**9)
    closed = _closed(path) if isinstance(error, apsw.CantOpenError) else ""
    denied = f"{closed!r} can't be read (Permission denied): check its permissions"
    return StorageUnavailable(denied if closed else f"{path!r} can't be used: {error}")


def _full(path: str) -> bool:
    """Return whether the disk is full beside *path*: SQLite does not say why it could not open a file."""
    probe = f"{path}-probe"
    try:
        file = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(file, bytes(4096))
        finally:
            os.close(file)
            os.unlink(probe)  # noqa: PTH108 -- as it was opened
    except OSError as error:
        return error.errno in FULL
    return False


def _closed(path: str) -> str:
    """Return the first file of the store at *path* that is there and can't be read, "" if there is none."""
    files = (f"{path}{end}" for end in ("", "-wal", "-shm", "-journal"))
    return next((each for each in files if os.path.exists(each) and not _may(each, os.R_OK)), "")  # noqa: PTH110


def make_private(path: str) -> None:
    """Make the file *path* if it is missing, readable by its owner only: SQLite gives its log the same rights.

    Its name is synced, since a log whose file is not there is a loss. Errors are ignored: opening the file raises them.
    """
    with suppress(OSError, ValueError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        sync_folder(path)


def _check_place(path: str, *, read_only: bool) -> None:
    place = Path(path)
    try:
        if place.is_symlink() and not place.exists():
            raise StorageUnavailable(
                f"{path!r} is a link to {str(place.readlink())!r}, which is not there: name a file"
            )
        if read_only and not place.exists():
            raise StorageUnavailable(f"there is no file {path!r}: check the path, or open it to write")
        if not place.parent.is_dir():
            raise StorageUnavailable(f"there is no folder {str(place.parent)!r} for {place.name!r}: make it first")
        if place.is_dir():
            raise StorageUnavailable(f"{path!r} is a folder: name a file in it")
        if place.exists() and place.stat().st_nlink > 1:
            raise StorageUnavailable(f"{path!r} has several names (hard links), each with a log of its own: keep one")
    except PermissionError as error:
        raise StorageUnavailable(f"{path!r} can't be reached ({error.strerror}): check permissions") from error


def connect(path: str, *, read_only: bool) -> apsw.Connection:
    """Open the file *path*; where nothing can be written beside it, for reading only."""
    if Path(path).exists() and not _may(Path(path).parent, os.W_OK) and not Path(f"{path}-wal").exists():
        # Even reading needs files beside a WAL database; where there can be none, there can be no writer either.
        uri = f"file:{quote(path)}?immutable=1"
        return apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    if read_only:
        return apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    make_private(path)
    return apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)


def _may(path: str | Path, mode: int) -> bool:
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


def _explain_failed_opening(error: Exception, path: str) -> MemciError:
    if not isinstance(error, apsw.Error):
        return InvalidSetting("path", f"{path!r} can't be the name of a file: {error}")
    folder = Path(path).parent
    if not Path(path).exists() and not _may(folder, os.W_OK):
        return StorageReadOnly(f"the folder {str(folder)!r} can't be written: {Path(path).name!r} can't be made in it")
    return storage_error(error, path)


def _prepare_connection(
    connection: apsw.Connection,
    path: str,
    witness: Witness,
    synchronous: str,
    journal: Journal | None,
    busy_timeout_seconds: float,
) -> None:
    writable = not connection.readonly("main")
    found = version(connection, path)
    check_log(connection, path, witness)
    lost = list(behind(connection, witness))
    if lost and not damage(connection):  # with damage, opening the context raises the better error
        more = f" (and {len(lost) - 1:,} more)" if lost[1:] else ""
        log = log_path(path)
        copied = any(slot.frames for slot in witness.slots()) and not is_filled(log)
        without = f", and its log {log!r} is not there (a file is copied with its log)" if copied else ""
        raise CorruptRecord("", 0, f"{path!r} is older than what was committed{without}: {lost[0]}{more}: {WAY_OUT}")
    connection.pragma("trusted_schema", False)
    connection.pragma("foreign_keys", True)
    connection.pragma("cell_size_check", True)
    connection.pragma("mmap_size", 0)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    if writable:
        sync_journal(connection)
        _set_journal(connection, path, journal or ("wal" if not found else None), busy_timeout_seconds)
        connection.pragma("synchronous", synchronous)
        connection.pragma("secure_delete", True)
        connection.pragma("journal_size_limit", _LOG_BYTES)
    prepare(connection, path, writable=writable)
    if writable and synchronous == "FULL":
        _sync_found_commits(connection)


def _set_journal(connection: apsw.Connection, path: str, wanted: Journal | None, busy_timeout_seconds: float) -> None:
    """Set the *wanted* journal; None keeps the present one, if it is "wal" or "truncate"."""
    until = time.monotonic() + busy_timeout_seconds
    while True:
        try:
            current = connection.pragma("journal_mode")
            wanted = wanted or ("wal" if current == "wal" else "truncate")
            if current == wanted or connection.pragma("journal_mode", wanted) == wanted:
                return
        except apsw.BusyError:  # SQLite does not wait here while another process makes the file
            if time.monotonic() >= until:
                raise
            time.sleep(random.uniform(0.001, 0.02))  # noqa: S311 -- no secret
        else:
            raise StorageUnavailable(
                f"{path!r} can't use a {wanted} journal: another process has it open, or its file system has no shared "
                f"memory; put it on a local disk"
            )


def _sync_found_commits(connection: apsw.Connection) -> None:
    """Sync commits that are found: their writer may have been killed before it, and readers take them for durable."""
    with suppress(apsw.BusyError, apsw.LockedError):  # the handle that writes now syncs them
        if connection.pragma("journal_mode") == "wal":
            connection.wal_checkpoint()  # syncs the log first
            return
        with transaction(connection):
            connection.pragma("user_version", SCHEMA_VERSION)
