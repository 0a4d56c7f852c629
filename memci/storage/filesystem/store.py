"""Contexts in a folder of plain files, to be read with an editor, grep and git.

    folder/
      memci.json                        what this folder is
      contexts/0f3a…/                   one per context, named by a digest of its id
        context.jsonl                   its record, the pages in the window, its newest messages
        messages/000000000812-p42.jsonl   a message per line: those from seq 812 on that were said on page #42
        pages/ views/ editions/ ops/ calls/ tools/    what else is known of it
      audit.jsonl                       what was erased, imported, exported, if anything was
      witness                           how far each context has come
      queues/0f3a….json                 who holds the lock of a context, and who waits for it
      locks/                            empty files

A commit is one rename, of `context.jsonl` (see `filesystem_context`); each file checks what it holds line by line.

    durability "full"    on disk when commit() returns
               "fast"    one sync less: a power cut may take the newest transitions of a context, never the middle

One handle may be used by many threads, and a folder by many handles and processes; a handle does not survive fork() or
pickling. It needs a POSIX system. The folder is for reading: an edited line no longer matches its check sum. This
module knows nothing of what a message says.
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final, NoReturn, TypeVar

from ...errors import (
    CorruptRecord,
    InvalidSetting,
    SchemaTooNew,
    StorageError,
    StorageFull,
    StorageReadOnly,
    StorageUnavailable,
)
from ..audit import AuditLog
from ..protocol import (
    CACHE_BYTES,
    CallRow,
    CompactionRow,
    ContextRecord,
    EntryRow,
    ErasedRows,
    Erasure,
    OpRow,
    PageRow,
    PageState,
    Sidecar,
    Ticket,
    Transition,
)
from ..validation import Durability, check, check_opening, check_text, checked_bytes, with_ticket
from ..witness import WITNESS, Slot, Witness, key_of
from .context_file import SCHEMA_VERSION, ContextFile, folder_name, is_folder_name
from .erase import JOURNAL, Staged, Staging, dumps, finish, involved, loads, scrub
from .files import Files, meaning
from .locks import STORE, Locks, locked_whole
from .read import CONTEXTS, Reading, load, owners, revision
from .write import commit, make_final

_FIRST_LINE: Final = 4096
QUEUES: Final = "queues"
MARK: Final = "memci.json"
_FORMAT: Final = "memci folder"
_ABOUT: Final = "The memory of agents, kept by memci. Read it as you like; a line that is edited is no longer trusted."

_T = TypeVar("_T")


class FilesystemStorage:
    """Keeps contexts in a folder.

    Args:
        folder: The folder; it is made if there is none. One that holds other things is refused.
        durability: "full": on disk when commit() returns. "fast": a power cut may take the newest transitions.
        busy_timeout_seconds: How long to wait for another writer before `StorageBusy`.
        cache_bytes: RAM for what memories have read of this store, until it closes. Beyond it, the owner that was used
            longest ago is read again at its next use.
        read_only: Write nothing, make nothing.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        durability: Durability = "full",
        busy_timeout_seconds: float = 5.0,
        cache_bytes: int = CACHE_BYTES,
        read_only: bool = False,
    ) -> None:
        self._cache_bytes = checked_bytes("cache_bytes", cache_bytes)
        self._path = os.path.abspath(folder)  # noqa: PTH100 -- a Path would resolve links, or keep ".."
        self._full = durability == "full"
        self._read_only = read_only
        self._files = _opened(self._path, durability, busy_timeout_seconds, read_only=read_only)
        self._locks = Locks(self._files, busy_timeout_seconds)
        self._witness = Witness(f"{self._path}/{WITNESS}", read_only=read_only)
        self._release_sidecar: Callable[[], None] = lambda: None
        self.audit_log = AuditLog(os.path.join(self._path, "audit.jsonl"), read_only=read_only)  # noqa: PTH118

    def load(self, context: str) -> tuple[ContextRecord, str | None] | None:
        """Return the record and the last compaction of *context*, or None if there is no such context."""
        reading = self._reading(context)
        return None if reading is None else (reading.kept.record, reading.compaction())

    def revision(self, context: str) -> int:
        """Return the revision of *context*, 0 if there is no such context: one line is read."""
        check_text("id", context)
        self._begin()
        path = f"{CONTEXTS}/{folder_name(context)}/context.jsonl"
        first, newline, _ = (self._files.read(path, _FIRST_LINE) or b"").partition(b"\n")
        if newline:
            return revision(first, context)
        kept = load(self._files, folder_name(context), context)
        return 0 if kept is None else kept.record.revision

    def commit(self, transition: Transition) -> OpRow | None:
        """Apply *transition* and return None, or return the row of its op if that is known. O(rows + window)."""
        check(transition)
        self._check_writable()
        record = transition.record
        names = [folder_name(record.id)]
        if record.parent is not None and record.revision == 1:
            names.insert(0, STORE)  # what it is forked from must not be erased meanwhile
        while True:
            hindered = self._begin()
            if hindered is not None:
                raise hindered
            with self._locks.held(names):
                if self._files.read(JOURNAL) is None:
                    known = commit(self._files, transition, full=self._full)
                    if known is None:
                        self._note(record)
                    return known

    def pages(
        self, context: str, *, first: int = 1, last: int | None = None, state: PageState | None = None
    ) -> Iterator[PageRow]:
        """Yield pages by index, as the protocol says; one that changes meanwhile as it was, or as it is."""
        reading = self._reading(context)
        return iter(()) if reading is None else self._usable(reading.pages(max(first, 1), last, state))

    def entries(
        self, context: str, first: int = 0, end: int | None = None, *, containing: bytes | None = None
    ) -> Iterator[EntryRow]:
        """Yield entries in order, as the protocol says; those that are there at the call."""
        reading = self._reading(context)
        if reading is None:
            return iter(())
        head = reading.kept.record.head
        rows = self._entries(reading, max(first, 0), head if end is None else min(end, head))
        return self._usable(row for row in rows if containing is None or containing in row.body)

    def compactions(self, context: str, *, head: int | None = None) -> Iterator[CompactionRow]:
        """Yield the compactions, newest first; those made at most at *head*, if it is given."""
        reading = self._reading(context)
        return iter(()) if reading is None else self._usable(reading.compactions(head))

    def ops(self, context: str) -> Iterator[OpRow]:
        """Yield the ops by their first seq. O(ops)."""
        reading = self._reading(context)
        return iter(()) if reading is None else self._usable(iter(reading.ops()))

    def op(self, context: str, op_id: str) -> OpRow | None:
        """Return one op. O(ops in its file), which are a 256th of all."""
        reading = self._reading(context)
        return None if reading is None else reading.op(op_id)

    def calls(self, context: str, *, after: int = 0) -> Iterator[CallRow]:
        """Yield the calls of the model, oldest first. O(calls)."""
        reading = self._reading(context)
        return iter(()) if reading is None else self._usable(reading.calls(after))

    def contexts(self) -> Sequence[ContextRecord]:
        """Return the record of every context, by id. O(contexts)."""
        self._begin()
        found = [load(self._files, folder, None) for folder in self._files.names(CONTEXTS) if is_folder_name(folder)]
        return sorted((kept.record for kept in found if kept is not None), key=lambda record: record.id)

    def erase(self, erasure: Erasure) -> ErasedRows:
        """Remove what *erasure* names, and what was left unfinished. O(what changes, and contexts if any goes)."""
        for transition in erasure.transitions:
            check(transition)
        self._check_writable()
        self._begin()
        with self._locks.held([STORE]):
            self._finish()
            folders = involved(self._files, erasure)
            with self._locks.more(sorted(folders)):
                staged, erased = Staging(self._files).run(erasure)
                if staged:
                    for context in erasure.contexts:
                        self._witness.forget(context)
                    self._files.write(JOURNAL, dumps(staged))
                    make_final(self._files.sync, "", None)
                    for transition in erasure.transitions:
                        self._note(transition.record)
                    try:
                        finish(self._files, staged)
                    except StorageFull:  # it is erased: the next one with room on the disk finishes it
                        return erased._replace(scrubbed=False)
                for context in erasure.contexts:
                    self._files.remove(f"{QUEUES}/{folder_name(context)}.json")
                scrub(self._files, folders)
            if not folders:
                self._scrub_all()
        return erased

    def tickets(self, context: str | None = None) -> Sequence[Ticket]:
        """Return the queue for the lock of *context*, or those of all: a file is read for each."""
        if context is None:
            return [each for name in self._files.names(QUEUES) for each in self._queue(f"{QUEUES}/{name}")]
        check_text("id", context)
        self._files.check()
        return self._queue(f"{QUEUES}/{folder_name(context)}.json")

    def replace_ticket(self, old: Ticket | None, new: Ticket | None) -> bool:
        """Put *new* in the place of *old*, if that is there, or behind all others of its context. O(the queue)."""
        changed = old or new
        assert changed is not None, "one of the two is a ticket"
        self._check_writable()
        self._begin()
        name = folder_name(changed.context)
        path = f"{QUEUES}/{name}.json"
        with self._locks.held([f"{name}-queue"]):  # not the one of commits: they must not delay who arrives
            queue = self._queue(path)
            changed_queue = with_ticket(queue, old, new)
            if changed_queue is None:
                return False
            if changed_queue:
                self._files.make_folder(QUEUES)
                self._files.write(
                    path, json.dumps([each._asdict() for each in changed_queue], indent=1).encode() + b"\n"
                )
            else:
                self._files.remove(path)
        return True

    def sidecar(self, release: Callable[[], None]) -> Sidecar:
        """Return the file memory.db in the folder."""
        self._files.check()
        self._release_sidecar = release
        path = os.path.join(self._path, "memory.db")  # noqa: PTH118
        return Sidecar(path, read_only=self._read_only, cache_bytes=self._cache_bytes)

    def damage(self) -> list[str]:
        """Return which contexts are behind their witness; what their files hold, reading them checks. O(contexts)."""
        self._begin()
        slots = self._witness.slots()
        folders = {name[:16]: name for name in self._files.names(CONTEXTS)}
        found: list[str] = []
        for slot in slots:
            kept = None
            try:
                if slot.key.hex() in folders:
                    kept = load(self._files, folders[slot.key.hex()], None)
            except CorruptRecord:  # reading it says so
                continue
            name, revision = ("", 0) if kept is None else (kept.record.id, kept.record.revision)
            if revision < slot.revision and slot in self._witness.slots():  # else it went on, or was erased, meanwhile
                found.append(slot.sentence(name, revision))
        return found

    def close(self) -> None:
        """Release the folder."""
        self._release_sidecar()
        self._witness.close()
        self._files.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a FilesystemStorage can't be pickled: open its folder again in the other process")

    def _queue(self, path: str) -> list[Ticket]:
        content = self._files.read(path)
        try:
            return [] if content is None else [Ticket(**each) for each in json.loads(content)]
        except (ValueError, TypeError) as error:
            raise CorruptRecord("", 0, f"{path!r} in {self._path!r} is no queue for a lock: remove it") from error

    def _check_writable(self) -> None:
        self._files.check()
        if self._read_only:
            raise StorageReadOnly(f"{self._path!r} was opened for reading only: open it without read_only to write")

    def _begin(self) -> StorageError | None:
        """Check that the folder is still the one that was opened, and finish an erasure that was cut short.

        If that fails, return the error; reading then shows the state after the erasure.
        """
        files, hindered = self._files, None
        files.check()
        left = files.read(JOURNAL)
        shown: Staged = {}
        if left is not None:
            shown = loads(left)
            if not self._read_only:
                try:
                    with self._locks.held([STORE]):
                        self._finish()
                        shown = {}
                except (StorageReadOnly, StorageFull) as error:
                    hindered = error
        if shown or files.shown:
            files.shown = shown
        return hindered

    def _note(self, record: ContextRecord) -> None:
        if self._full:
            self._witness.make()
            self._witness.note(Slot(key_of(record.id), record.revision))

    def _finish(self) -> None:
        left = self._files.read(JOURNAL)
        if left is not None:
            self._files.sync("")
            staged = loads(left)
            with self._locks.more(sorted({path.split("/")[1] for path in staged})):
                finish(self._files, staged)

    def _scrub_all(self) -> None:
        self._files.remove_unfinished("")
        names = {name.strip(".").removesuffix(".tmp") for name in self._files.names(CONTEXTS, hidden=True)}
        for folder in sorted(filter(is_folder_name, names)):
            with self._locks.more([folder]):
                scrub(self._files, [folder])

    def _reading(self, context: str) -> Reading | None:
        check_text("id", context)
        self._begin()
        before, kept = self._witness.slot(context), self._load(context)
        self._witness.check(context, before, 0 if kept is None else kept.record.revision)
        if kept is not None and self._full and not self._read_only:
            # The writer may have been killed before it synced what is read here: sync it now, once per handle.
            with suppress(StorageReadOnly, StorageFull):
                self._files.make_last(f"{CONTEXTS}/{kept.folder}")
        return None if kept is None else Reading(self._files, kept)

    def _load(self, context: str) -> ContextFile | None:
        return load(self._files, folder_name(context), context)

    def _usable(self, rows: Iterator[_T]) -> Iterator[_T]:
        for row in rows:
            self._files.check_open()
            yield row
        self._files.check_open()

    def _entries(self, reading: Reading, first: int, end: int) -> Iterator[EntryRow]:
        for kept, start, stop in owners(reading.kept, first, end, self._load):
            source = reading if kept is reading.kept else Reading(self._files, kept)
            for row in source.entries(start, stop):
                yield reading.shown(row)


def _opened(path: str, durability: str, busy_timeout_seconds: float, *, read_only: bool) -> Files:
    """Return the files of the store at *path*, which is made if there is none and it is not *read_only*."""
    check_opening(durability, busy_timeout_seconds)
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
    there = os.path.lexists(path)  # before the next line: another process may make it just now
    if os.path.isdir(path):  # noqa: PTH112
        return
    if there:
        raise StorageUnavailable(f"{path!r} is no folder: name a folder, or use SQLiteStorage for a file")
    if read_only:
        raise StorageUnavailable(f"there is no folder {path!r}: check the path, or open it to write")
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
    except FileNotFoundError as error:
        raise StorageUnavailable(f"{path!r} can't be made ({error}): make the folder above it first") from error
    except OSError as error:
        raise meaning(error, path) from error


def _known(files: Files) -> bool:
    """Return whether the folder is a store; False if it is empty."""
    content = files.read(MARK)
    if content is None:
        others = [
            each for each in files.names("", hidden=True) if each != f".{MARK}.tmp" and not each.startswith(".git")
        ]
        if MARK in others:  # another process has just made the store
            return _known(files)
        if others:
            raise StorageUnavailable(f"{files.path!r} holds {others[0]!r:.60} and no {MARK}: name an empty folder")
        return False
    try:
        mark = json.loads(content)
        ours, schema = mark["format"] == _FORMAT, mark["schema"]
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
        raise StorageUnavailable(f"there is no store in {files.path!r}: check the path, or open it to write")
    mark = {"format": _FORMAT, "schema": SCHEMA_VERSION, "about": _ABOUT}
    with locked_whole(files.path, busy_timeout_seconds):
        if not _known(files):
            files.write(MARK, json.dumps(mark, indent=2).encode() + b"\n")
            files.sync("")
