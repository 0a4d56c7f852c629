"""Contexts in one SQLite file: a commit is on disk when it returns.

    BEGIN IMMEDIATE
      changed rows (`write`)           ──▶  the op is stored, or another writer was first: ROLLBACK
    COMMIT                             ──▶  durability "full": synced (0.1–4 ms, by the disk); "fast": a power
                                            cut may lose the newest transitions, but none before them
                                            if the disk fails: CommitUnknown, and this handle is poisoned

Entries are read in batches, each by a query of its own, so that a slow reader blocks no writer. One handle may be used
by many threads, and one file by many handles; a handle can't be used after fork(), and can't be pickled.
"""

import os
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from threading import RLock
from typing import Concatenate, ParamSpec, TypeVar

import apsw

from ...errors import (
    CommitUnknown,
    CorruptRecord,
    HandlePoisoned,
    InvalidSetting,
    StorageError,
    StorageFull,
    StorageReadOnly,
)
from ...rows import CallRow, CompactionRow, ContextRecord, EntryRow, OpRow, PageRow, PageState, Ticket
from ...workers import guard_lock
from ..audit import AuditLog
from ..columns import OPS
from ..protocol import CACHE_BYTES, ErasedRows, Erasure, Sidecar, Transition
from ..system import PRIVATE, READS_AT
from ..table_storage import Place, TableStorage
from ..validation import Durability, check, check_int, check_text
from ..witness import Slot, key_of
from .connection import RAM, Journal, damage, open_file, storage_error
from .loss import behind, log_path, revisions, salt_of
from .rows import (
    BATCH_ROWS,
    MAX_REVISION,
    SELECT_CONTEXT,
    SELECT_FORKS,
    SELECT_OP,
    SELECT_OPS,
    SELECT_TICKETS,
    SELECT_TICKETS_OF_ONE,
    read_batch,
    read_calls,
    read_chain,
    read_context,
    read_contexts,
    read_page,
    read_pages,
    unpack,
)
from .schema import SCHEMA_VERSION
from .write import SELECT_HEAD, apply, begin, erase, inode, replace_ticket, rows, scrub

_CHECKPOINT_PAGES = 400
"""pages in the write-ahead log after which it is copied into the file: commits stay quick, and the log small"""

_P = ParamSpec("_P")
_T = TypeVar("_T")
_U = TypeVar("_U")
_inherited: list[apsw.Connection] = []
"""connections of the parent process: closing one here would release the parent's locks"""


class SQLiteStorage(TableStorage):
    """Keeps contexts in one SQLite file.

    Args:
        path: The file, which is made if it is missing; its folder must exist.
        durability: "full": on disk when commit() returns. "fast": a power cut may lose the newest transitions.
        journal: "wal", or "truncate" without shared memory; default: that of the file, "wal" for a new one.
        busy_timeout_seconds: How long to wait for another process before `StorageBusy`.
        cache_bytes: RAM for data that memories read from this store. Beyond it, the least recently used owner is
            dropped, and read again at its next use.
        read_only: Whether nothing is written, and a missing file is an error.
    """

    _in_ram = False

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        durability: Durability = "full",
        journal: Journal | None = None,
        busy_timeout_seconds: float = 5.0,
        cache_bytes: int = CACHE_BYTES,
        read_only: bool = False,
    ) -> None:
        if path == RAM and not self._in_ram:
            raise InvalidSetting("path", "a SQLite store is a file: for a store in RAM take EphemeralStorage()")
        check_int("cache_bytes", cache_bytes, 0)
        self._cache_bytes = cache_bytes
        self._path = RAM if self._in_ram else os.path.abspath(path)  # noqa: PTH100 -- a Path would resolve links
        self._lock = guard_lock(RLock(), "store")
        self._pid = os.getpid()
        self._poison: str | None = None
        self._read_only = read_only
        self._log_pages = 0
        self._synced = False
        """whether a commit of this handle was synced, and with it all commits that it found in the file"""
        self._full = durability == "full"
        self._seconds = busy_timeout_seconds
        self._log: int | None = None
        """the write-ahead log, open to read its salt"""
        self._unsynced: set[int] = set()
        """numbers of the contexts that changed since the last sync; empty with durability="full" """
        with self._lock:  # a fork waits for it
            self._connection, self._witness = open_file(
                self._path, durability, journal, busy_timeout_seconds, read_only=read_only
            )
        self._connection.wal_autocheckpoint(0)  # `_checkpoint` does it, and checks the result
        self._connection.set_wal_hook(self._count_log_pages)
        self._inodes = self._stat()
        self._release_sidecar: Callable[[], None] = lambda: None
        self.audit_log = AuditLog(f"{self._path}-audit", read_only=read_only)

    def load(self, context: str) -> tuple[ContextRecord, str | None] | None:
        """Return the record and the last compaction of *context*, or None if there is no such context."""
        check_text("id", context)
        number, record = self._run(context, 0, self._find, context)
        if record is None:
            return None
        newest = next(self._scan_compactions(context, number, record.revision, record.head), None)
        return record, None if newest is None else newest.text

    def commit(self, transition: Transition) -> OpRow | None:
        """Apply *transition* and return None, or return the row of its op if it is stored. O(rows), and a sync."""
        check(transition)
        op_id = None if transition.op is None else transition.op.op_id
        records = (transition.record,)
        known = self._run(transition.record.id, transition.head, self._write, op_id, self._apply, transition, records)
        if self._log_pages >= _CHECKPOINT_PAGES:
            self._run("", 0, self._checkpoint)
        return known if isinstance(known, OpRow) else None

    def compactions(self, context: str, *, head: int | None = None) -> Iterator[CompactionRow]:
        """Yield the compactions, newest first, as the protocol says."""
        latest = 2**62 if head is None else head
        return self._scan_compactions(context, self._place(context).number, MAX_REVISION - 1, latest)

    def ops(self, context: str) -> Iterator[OpRow]:
        """Yield the ops by their first seq. O(ops) in memory."""
        number = self._place(context).number
        return iter([OPS.read(context, number, row) for row in self._run(context, 0, rows, SELECT_OPS, number)])

    def op(self, context: str, op_id: str) -> OpRow | None:
        """Return one op. O(1)."""
        number = self._place(context).number
        found = self._run(context, 0, rows, SELECT_OP, number, op_id)
        return OPS.read(context, number, found[0]) if found else None

    def calls(self, context: str, *, after: int = 0) -> Iterator[CallRow]:
        """Yield the calls of the model, oldest first; one that is added meanwhile may be among them."""
        return self._scan_calls(context, self._place(context).number, after)

    def contexts(
        self, *, owner: str | None = None, after: str | None = None, limit: int | None = None
    ) -> Sequence[ContextRecord]:
        """Return records by id, as the protocol says. O(records read)."""
        return self._run("", 0, read_contexts, owner, after, limit)

    def forks(self, context: str) -> Sequence[ContextRecord]:
        """Return the records of the forks of *context*, by id. O(these)."""
        check_text("id", context)
        return [read_context(row) for row in self._run("", 0, rows, SELECT_FORKS, context)]

    def erase(self, erasure: Erasure) -> ErasedRows:
        """Remove what *erasure* names, and write the file again, which may have copies. O(rows + bytes of the file).

        That takes some 5 s for each GB, while nobody else can write. A file of more than 512 MB is only written again
        for an `Erasure()`.
        """
        for transition in erasure.transitions:
            check(transition)
        records = [transition.record for transition in erasure.transitions]
        gone = self._run("", 0, self._write, None, self._erase_rows, erasure, records, erasure.contexts)
        try:
            kept = os.path.exists(f"{log_path(self._path)}.damaged")  # noqa: PTH110
            return gone._replace(scrubbed=self._run("", 0, scrub, whole=not any(erasure)) and not kept)
        except StorageError:  # the rows are erased; the next erasure scrubs the file
            return gone

    def tickets(self, context: str | None = None) -> Sequence[Ticket]:
        """Return the queue for the lock of *context*, or of all contexts. O(tickets); some microseconds."""
        check_text("id", context or "")
        if context is None:
            found = self._run("", 0, rows, SELECT_TICKETS)
        else:
            found = self._run("", 0, rows, SELECT_TICKETS_OF_ONE, context)
        return [Ticket(*row) for row in found]

    def replace_ticket(self, old: Ticket | None, new: Ticket | None) -> bool:
        """Replace *old* by *new*, or add *new* behind all others. O(log tickets); not synced."""
        return self._run("", 0, self._write_unsynced, replace_ticket, (old, new))

    def sidecar(self, release: Callable[[], None]) -> Sidecar:
        """Return the file itself, for tables of the memory beside those of the store."""
        self._run("", 0, lambda _connection: None)  # raises if the handle is closed
        self._release_sidecar = release
        return Sidecar(self._path, shared=True, read_only=self._read_only, cache_bytes=self._cache_bytes)

    def damage(self) -> list[str]:
        """Return what SQLite finds wrong with the file, and the contexts that are behind the witness. O(bytes)."""
        return [*self._run("", 0, damage), *self._run("", 0, lambda each: list(behind(each, self._witness)))]

    def close(self) -> None:
        """Close the file."""
        if os.getpid() != self._pid:
            _inherited.append(self._connection)
            return
        self._release_sidecar()
        with self._lock:
            if self._unsynced and self._poison is None:
                self._checkpoint(self._connection)
            self._poison = self._poison or f"{self._path!r} was closed: open the store again"
            self._witness.close()
            if self._log is not None:
                os.close(self._log)
                self._log = None
            try:
                self._connection.close()
            except apsw.Error as error:
                raise storage_error(error, self._path) from error

    def _apply(self, connection: apsw.Connection, transition: Transition) -> OpRow | int:
        """Apply *transition* within a transaction: return the number of its context, or the row of its stored op."""
        return apply(connection, transition)

    def _erase_rows(self, connection: apsw.Connection, erasure: Erasure) -> ErasedRows:
        """Erase within a transaction, and return how many rows are gone."""
        return erase(connection, erasure)

    def _run(
        self,
        context: str,
        seq: int,
        work: Callable[Concatenate[apsw.Connection, _P], _T],
        *args: _P.args,
        **kw: _P.kwargs,
    ) -> _T:
        """Return the result of *work*; translate errors of SQLite into errors about *context* and *seq*."""
        if os.getpid() != self._pid:  # before the lock, which fork() may have copied while it was locked
            _inherited.append(self._connection)
            raise HandlePoisoned(f"{self._path!r} was opened before fork(): open the store again in this process")
        with self._lock:
            if self._poison is not None:
                raise HandlePoisoned(self._poison)
            try:
                return work(self._connection, *args, **kw)
            except apsw.Error as error:
                meant = storage_error(error, self._path, context, seq, errno=self._connection.system_errno)
                if isinstance(error, apsw.IOError) and not isinstance(meant, StorageFull):
                    self._poison = f"{self._path!r} can't be trusted after {error}: open the store again"
                raise meant from error
            except UnicodeDecodeError as error:
                raise CorruptRecord(context, seq, f"its text is not UTF-8: {error.reason}") from error

    def _write(
        self,
        connection: apsw.Connection,
        op_id: str | None,
        work: Callable[[apsw.Connection, _T], _U],
        what: _T,
        records: Sequence[ContextRecord] = (),
        erased: Sequence[str] = (),
    ) -> _U:
        """Return the result of *work* on *what*, in one transaction; a stored op changes nothing.

        The witness gets the new *records*, and forgets the contexts that are *erased*.
        """
        if self._read_only:
            raise StorageReadOnly(f"{self._path!r} was opened for reading only: open it without read_only to write")
        if self._stat() != self._inodes:
            self._poison = f"{self._path!r} was moved, replaced or deleted: open the store again"
            raise HandlePoisoned(self._poison)
        try:
            begin(connection, logged=self._inodes[1] is not None)
            made = work(connection, what)
            if isinstance(made, OpRow) and self._synced:
                connection.execute("ROLLBACK")
            elif isinstance(made, OpRow):  # its writer may have been killed before the sync
                connection.pragma("user_version", SCHEMA_VERSION)
                self._make_final(connection, op_id)
            elif (records or erased) and not self._in_ram:  # a store in RAM needs no witness
                places = [made if isinstance(made, int) else rows(connection, SELECT_HEAD, r.id)[0][0] for r in records]
                self._make_witnessed(connection, op_id, dict(zip(places, records, strict=True)), erased)
            else:
                self._make_final(connection, op_id)
        except BaseException:
            self._roll_back()
            raise
        if self._inodes[1] is None:  # the first change makes the log
            self._inodes = (self._inodes[0], inode(f"{self._path}-wal"))
        return made

    def _write_unsynced(self, connection: apsw.Connection, work: Callable[[apsw.Connection, _T], _U], what: _T) -> _U:
        """Return the result of *work*, without a sync: a power cut may lose its rows."""
        synced = self._synced
        if self._full:
            connection.pragma("synchronous", "NORMAL")
        try:
            return self._write(connection, None, work, what)
        finally:
            if self._full:
                connection.pragma("synchronous", "FULL")
            self._synced = synced

    def _make_witnessed(
        self,
        connection: apsw.Connection,
        op_id: str | None,
        records: Mapping[int, ContextRecord],
        erased: Sequence[str],
    ) -> None:
        """Commit, and write *records* (by the numbers of their contexts) to the witness once they are synced."""
        witness = self._witness
        witness.make()
        if not self._full and not erased:  # the witness gets it after the next sync
            self._make_final(connection, op_id)
            self._unsynced.update(records)
            return
        with witness.locked(self._seconds if erased else None) as held:
            for context in erased:
                witness.forget(context)
            salt = self._salt()  # before the commit: afterwards another process may restart the log
            self._make_final(connection, op_id)
            frames = self._log_pages if salt else 0
            for number, record in records.items():
                slot = Slot(key_of(record.id), record.revision, number, frames, salt)
                if not self._full:
                    self._unsynced.add(number)
                elif held:
                    witness.note(slot)

    def _make_final(self, connection: apsw.Connection, op_id: str | None) -> None:
        try:
            connection.execute("COMMIT")
        except apsw.IOError as error:
            self._poison = f"{self._path!r} can't be trusted after {error}: open the store again"
            raise CommitUnknown(op_id, str(error)) from error
        self._synced = True

    def _salt(self) -> int:
        """Return the salt of the log, 0 without a log."""
        if self._log is None and READS_AT:
            with suppress(OSError):
                self._log = os.open(log_path(self._path), os.O_RDONLY | PRIVATE)
        return 0 if self._log is None else salt_of(self._log)

    def _count_log_pages(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self._log_pages = pages
        return apsw.SQLITE_OK

    def _checkpoint(self, connection: apsw.Connection) -> None:
        """Copy the write-ahead log into the file. Commits are on disk without it, so this raises nothing.

        After a failed sync, the next one may succeed although pages are lost. So the handle is poisoned before it can
        restart the log; the next handle that opens the file reads the log again.
        """
        self._log_pages = 0
        try:
            with self._witness.locked() if self._unsynced else nullcontext(enter_result=False) as held:
                synced = revisions(connection, self._unsynced) if held else {}
                connection.wal_checkpoint()
                for number, (context, revision) in synced.items():
                    self._witness.note(Slot(key_of(context), revision, number))
                self._unsynced.clear()
        except (apsw.BusyError, apsw.LockedError, apsw.FullError):
            return
        except apsw.Error as error:
            self._poison = f"{self._path!r} can't be trusted after {error}: open the store again"

    def _roll_back(self) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except apsw.Error as error:
            if self._connection.in_transaction:  # otherwise SQLite has rolled it back: the disk was full
                self._poison = f"{self._path!r} can't be trusted, a ROLLBACK failed: {error}"

    def _stat(self) -> tuple[tuple[int, int] | None, ...]:
        """Return the inodes of the store's files: a file that replaced one of them must not be written."""
        return (None, (0, 0)) if self._in_ram else (inode(self._path), inode(f"{self._path}-wal"))

    def _find(self, connection: apsw.Connection, context: str) -> tuple[int, ContextRecord | None]:
        before = self._witness.slot(context)
        [[number, *columns]] = rows(connection, SELECT_CONTEXT, context) or [(0,)]
        record = read_context(columns) if number else None
        self._witness.check(context, before, 0 if record is None else record.revision)
        return number, record

    def _place(self, context: str) -> Place:
        check_text("id", context)
        return Place(*next(iter(self._run(context, 0, rows, SELECT_HEAD, context)), ()))

    def _pages(self, context: str, indexes: Sequence[int], state: PageState | None) -> Iterator[PageRow]:
        number = self._place(context).number
        while number and indexes:
            found = self._run(context, 0, read_pages, number, indexes, state)
            for row in found:
                page = read_page(context, number, row, indexes, state)
                indexes = indexes[indexes.index(page.index) + 1 :]
                yield page
            indexes = indexes if len(found) == BATCH_ROWS else ()

    def _scan(
        self, context: str, shown: Place, _name: str, holder: Place, seqs: Sequence[int], containing: bytes | None
    ) -> Iterator[EntryRow]:
        where = shown.number, holder.number
        while seqs:
            found, error = self._run(context, seqs[0], read_batch, context, *where, seqs, containing)
            yield from found
            if error is not None:
                raise error
            seqs = seqs[bisect_right(seqs, found[-1].seq) :] if found else ()

    def _scan_calls(self, context: str, number: int, after: int) -> Iterator[CallRow]:
        while found := self._run(context, 0, read_calls, context, number, after):
            yield from found
            after = found[-1].revision

    def _scan_compactions(self, context: str, number: int, revision: int, head: int) -> Iterator[CompactionRow]:
        while number and (found := self._run(context, 0, read_chain, context, number, revision, head)):
            yield from unpack(context, found)
            revision = found[-1][0] - 1
