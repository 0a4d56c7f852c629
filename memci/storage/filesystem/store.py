"""Contexts in a folder: safe in a SQLite file, and readable in plain files.

    folder/
      memci.json              what this folder is
      store.db                all contexts, as `SQLiteStorage` keeps them; store.db-wal and -witness belong to it
      contexts/0f3a….jsonl    a copy of one context's messages, a line each; named by a digest of its id
                              {"context":"alice","base":0}
                              {"seq":0,"page":1,"at":"2031-05-01T09:30:00+00:00","message":{"role":"user", …}}
      memory.db               what memories derive from the contexts
      audit.jsonl             what was erased, imported, exported, if anything was

    commit   BEGIN ── rows ── lines are added to the copy ── COMMIT        a copy with another end is written again
    erase    BEGIN ── rows ── copies are removed, synced ── COMMIT ── copies of remaining contexts are written again

Reads use store.db alone. A copy is for people and their tools: changing it changes no context. The store needs a POSIX
system.
"""

import json
import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Final

import apsw
import orjson

from ...errors import CorruptRecord, InvalidSetting, SchemaTooNew, StorageError, StorageReadOnly, StorageUnavailable
from ...rows import EntryRow, OpRow
from ..audit import AuditLog
from ..codec import ERASED
from ..protocol import CACHE_BYTES, ErasedRows, Erasure, Sidecar, Transition
from ..sqlite.connection import network_file_system
from ..sqlite.store import SQLiteStorage
from ..sqlite.write import holder
from ..validation import Durability, check_opening
from .files import Files, append, meaning

MARK: Final = "memci.json"
DATABASE: Final = "store.db"
CONTEXTS: Final = "contexts"
_CHUNK: Final = 4096  # bytes at the end of a copy that are read first: most last lines are shorter
_SCHEMA: Final = 1
_FORMAT: Final = "memci folder"
_ABOUT: Final = "The memory of agents, kept by memci in store.db. The files in contexts/ are copies of the messages."


class FilesystemStorage(SQLiteStorage):
    """Keeps contexts in a folder, with a plain copy of their messages.

    Args:
        folder: It is made if it is missing; a folder with other files is refused. The other arguments are those of
            `SQLiteStorage`.
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
        check_opening(durability, busy_timeout_seconds)
        path = os.path.abspath(folder)  # noqa: PTH100 -- a Path would resolve links, or keep ".."
        _make(path, read_only=read_only)
        self._files = Files(path)
        is_made = _is_made(self._files)
        if read_only and not is_made:
            raise StorageUnavailable(f"there is no store in {path!r}: check the path, or open it to write")
        database = os.path.join(path, DATABASE)  # noqa: PTH118 -- as the caller wrote it
        _check_database(database, there=is_made)
        super().__init__(
            database,
            durability=durability,
            journal="truncate" if network_file_system(path) else None,
            busy_timeout_seconds=busy_timeout_seconds,
            cache_bytes=cache_bytes,
            read_only=read_only,
        )
        self.audit_log = AuditLog(os.path.join(path, "audit.jsonl"), read_only=read_only)  # noqa: PTH118
        if not is_made:
            try:
                self._run("", 0, self._write, None, self._write_mark, None)
            except BaseException:
                self.close()
                raise

    def erase(self, erasure: Erasure) -> ErasedRows:
        """Remove what *erasure* names, and the copies that have it. `Erasure()` writes all copies again. O(bytes)."""
        left = [each for each in self._holders(erasure) if each not in erasure.contexts]
        gone = super().erase(erasure)
        if not any(erasure):
            left = [record.id for record in self.contexts()]
        with suppress(StorageError):  # the rows are erased; the next commit writes a missing copy
            self._run("", 0, self._write, None, self._write_copies, left)
        return gone

    def close(self) -> None:
        """Close the files."""
        super().close()
        self._files.close()

    def sidecar(self, release: Callable[[], None]) -> Sidecar:
        """Return the file memory.db in the folder."""
        beside = os.path.join(self._files.path, "memory.db")  # noqa: PTH118
        return super().sidecar(release)._replace(path=beside, shared=False)

    def _apply(self, connection: apsw.Connection, transition: Transition) -> OpRow | int:
        made = super()._apply(connection, transition)
        if transition.entries and not isinstance(made, OpRow):
            context, first = transition.record.id, transition.entries[0].seq
            spans = [(*span, page.index) for page in transition.pages for span in page.spans(transition.record.head)]
            lines = _lines(transition.entries, spans, transition.record.open_page)
            if not self._append_to_copy(context, first, lines):
                self._write_copies(connection, [context])
        return made

    def _erase_rows(self, connection: apsw.Connection, erasure: Erasure) -> ErasedRows:
        holders = self._holders(erasure)
        gone = super()._erase_rows(connection, erasure)
        if any(erasure):
            self._remove_copies([*erasure.contexts, *holders])
        return gone

    def _holders(self, erasure: Erasure) -> list[str]:
        """Return the contexts whose copies have an entry that *erasure* names."""
        return [*{self._run(name, row.seq, holder, name, row.seq)[0]: None for name, row in erasure.entries}]

    def _append_to_copy(self, context: str, first: int, lines: Iterable[bytes]) -> bool:
        """Add *lines*, from seq *first* on, if the copy ends before *first*; return whether it does. O(bytes).

        Otherwise the copy is not changed.
        """
        try:
            with self._files.opened(copy_of(context), os.O_RDWR | os.O_APPEND) as file:
                if _end(file) != first:
                    return False
                append(file, b"".join(lines))
        except FileNotFoundError:
            return False
        return True

    def _remove_copies(self, contexts: Iterable[str]) -> None:
        """Remove the copies of *contexts* and sync, so that no power cut brings one back."""
        for path in map(copy_of, contexts):
            self._files.remove(path)
            self._files.remove(path.replace("/", "/.") + ".tmp")
        if self._files.names(CONTEXTS, hidden=True):
            self._files.sync(CONTEXTS)

    def _write_copies(self, _connection: apsw.Connection, contexts: Sequence[str]) -> None:
        """Write the copies of *contexts*, within a transaction. O(their bytes)."""
        for context in contexts:
            self._files.make_folder(CONTEXTS)
            self._files.write(copy_of(context), self._copy(context), lasts=False)

    def _copy(self, context: str) -> Iterator[bytes]:
        """Yield the lines of a copy; a message that can't be read is marked as damaged. O(messages)."""
        _, head, _, parent, base, *_ = self._place(context)
        first = {"context": context, "base": base} | ({} if parent is None else {"parent": parent})
        yield orjson.dumps(first, option=orjson.OPT_APPEND_NEWLINE)
        spans: list[tuple[int, int, int]] = []
        with suppress(CorruptRecord):  # the following messages have no page then
            spans += ((*span, page.index) for page in self.pages(context) for span in page.spans(head))
        seq = base
        while seq < head:
            try:
                for row in self.entries(context, seq, head):
                    yield from _lines([row], spans)
                    seq = row.seq + 1
            except CorruptRecord:
                yield b'{"seq":%d,"damaged":true}\n' % seq
                seq += 1

    def _write_mark(self, _connection: apsw.Connection, _what: None) -> None:
        """Write the file that says what the folder is, within a transaction, so that one process does it."""
        with suppress(StorageReadOnly):  # the parent folder can't be read: another program made this one
            Files(os.path.dirname(self._files.path)).sync("")  # noqa: PTH120 -- its maker may have been killed
        mark = {"format": _FORMAT, "schema": _SCHEMA, "about": _ABOUT}
        self._files.write(MARK, json.dumps(mark, indent=2).encode() + b"\n")
        self._files.sync("")


def _lines(rows: Sequence[EntryRow], spans: Sequence[tuple[int, int, int]], page: int | None = None) -> Iterator[bytes]:
    """Yield a line for each of *rows*; its page is that of its span in *spans* (first, end, page), else *page*."""
    ordered = sorted(spans)
    for row in rows:
        at = bisect_right(ordered, (row.seq, 2**62, 0)) - 1
        found = ordered[at][2] if at >= 0 and row.seq < ordered[at][1] else page
        fields = {"seq": row.seq, "page": found, "at": row.at, "erased": True if row.codec == ERASED else None}
        front = orjson.dumps({name: value for name, value in fields.items() if value is not None})[:-1]
        if row.codec == ERASED:
            yield front + b"}\n"
        elif _is_line(row.body):
            yield front + b',"message":' + row.body + b"}\n"
        else:
            yield front + b',"bytes":"' + row.body.hex().encode() + b'"}\n'


def _is_line(body: bytes) -> bool:
    """Return whether *body* is JSON on one line."""
    try:
        orjson.loads(body)
    except ValueError:
        return False
    return b"\n" not in body and b"\r" not in body


def _make(path: str, *, read_only: bool) -> None:
    """Make the folder *path* if it is missing, unless *read_only*. Its parent is not synced yet."""
    there = os.path.lexists(path)  # checked first, since another process may be making it
    if os.path.isdir(path):  # noqa: PTH112
        return
    if there:
        raise StorageUnavailable(f"{path!r} is no folder: name a folder, or use SQLiteStorage for a file")
    if read_only:
        raise StorageUnavailable(f"there is no folder {path!r}: check the path, or open it to write")
    try:
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)  # noqa: PTH102
    except ValueError as error:
        raise InvalidSetting("folder", f"{path!r} can't be the name of a folder: {error}") from error
    except FileNotFoundError as error:
        raise StorageUnavailable(f"{path!r} can't be made ({error}): make the folder above it first") from error
    except OSError as error:
        raise meaning(error, path) from error


def _is_made(files: Files) -> bool:
    """Return whether a folder is a store of memci, False if it is empty; raise for other folders."""
    content = files.read(MARK)
    if content is None:
        begun = (f".{MARK}.tmp", DATABASE, ".git")
        others = [name for name in files.names("", hidden=True) if not name.startswith(begun)]
        if MARK in others:  # another process made the store meanwhile
            return _is_made(files)
        if others and files.names("").count(DATABASE):
            way_out = f"put that back from a backup, or open {DATABASE} itself"
            raise StorageUnavailable(f"{files.path!r} holds {DATABASE} and no {MARK}: {way_out}")
        if others:
            raise StorageUnavailable(f"{files.path!r} holds {others[0]!r:.60} and no {MARK}: name an empty folder")
        return False
    try:
        mark = json.loads(content)
        ours, schema = mark["format"] == _FORMAT, mark["schema"]
    except (ValueError, TypeError, KeyError, RecursionError):
        ours, schema = False, None
    if not ours or schema != _SCHEMA:
        if ours and isinstance(schema, int) and schema > _SCHEMA:
            reason = f"its schema is {schema}, this one knows {_SCHEMA}"
            raise SchemaTooNew(f"a later memci wrote {files.path!r}: {reason}: install a later memci")
        raise StorageUnavailable(f"{MARK} in {files.path!r} is damaged, or another program's: name another folder")
    return True


def _check_database(path: str, *, there: bool) -> None:
    """Raise if *path* is not a plain file, or is missing although it was *there* before."""
    if os.path.islink(path) or (os.path.lexists(path) and not os.path.isfile(path)):  # noqa: PTH113, PTH114
        raise StorageUnavailable(f"{path!r} is a link, or no file: it was not touched")
    if there and not os.path.exists(path):  # noqa: PTH110
        raise CorruptRecord("", 0, f"{path!r} is missing, which holds all contexts: put it back from a backup")


def copy_of(context: str) -> str:
    """Return the path of the copy of *context*: a digest of its id, so any id is valid and unique."""
    return f"{CONTEXTS}/{blake2b(context.encode(), digest_size=16).hexdigest()}.jsonl"


def _end(file: int) -> int | None:
    """Return the seq after the last line of a copy, None if that line is not whole. O(bytes of the line)."""
    end, size, tail = os.fstat(file).st_size, _CHUNK, b""
    while b"\n" not in tail[:-1] and len(tail) < end:
        tail = os.pread(file, size, max(0, end - size))
        size *= 2
    try:
        fields = orjson.loads(tail.splitlines()[-1])
        found = fields["seq"] + 1 if "seq" in fields else fields["base"]
    except (ValueError, TypeError, KeyError, IndexError):
        return None
    return found if tail.endswith(b"\n") and isinstance(found, int) else None
