"""Contexts in one SQLite file: what commit() returned from is on disk.

    BEGIN IMMEDIATE
      op known?                        ──▶  ROLLBACK, return its row
      UPDATE context … WHERE head = ?  ──▶  no row: ROLLBACK, LeaseLost
      INSERT entry …, REPLACE page …
    COMMIT                             ──▶  durability "full": synced (0.1–4 ms, the disk's); "fast": the newest
                                            transitions may be lost when the power fails, never the middle

Reading goes in batches, each a query of its own by key, so that a slow reader holds back neither writers nor RAM.
One handle may be used by many threads, and a file by many handles; a handle does not survive fork() or pickling.

This module knows nothing of tokens, windows or what a body says.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from threading import RLock
from typing import Concatenate, NoReturn, ParamSpec, TypeVar

import apsw

from ..errors import CorruptRecord, HandlePoisoned, LimitExceeded
from .protocol import ContextRecord, EntryRow, OpRow, PageRow, Place, Transition
from .rows import MAX_PAGE, check, check_lease, check_text
from .sqlite_file import Durability, open_file, storage_error
from .sqlite_rows import (
    Row,
    context_columns,
    crc,
    entry_columns,
    op_columns,
    page_columns,
    read_context,
    read_entry,
    read_op,
    read_page,
)

_MAX_CONTEXTS = 2**23 - 1
_BATCH_ROWS = 256
_BATCH_BYTES = 2**20

_INSERT_CONTEXT = """
INSERT INTO context (id, owner, settings, state, head, next_page, turn, open_page, revision, crc)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING nr"""
_UPDATE_CONTEXT = """
UPDATE context SET owner = ?, settings = ?, state = ?, head = ?, next_page = ?, turn = ?, open_page = ?,
revision = ?, crc = ?
WHERE nr = ?"""
_CONTEXT_COLUMNS = "c.id, c.owner, c.settings, c.state, c.head, c.next_page, c.turn, c.open_page, c.revision, c.crc"
_SELECT_CONTEXT = f"""
SELECT {_CONTEXT_COLUMNS}, e.text, e.crc FROM context AS c LEFT JOIN edition AS e USING (nr) WHERE c.id = ?"""
_SELECT_CONTEXTS = f"SELECT {_CONTEXT_COLUMNS} FROM context AS c WHERE c.id > ? ORDER BY c.id LIMIT {_BATCH_ROWS}"
_SELECT_FIRST_CONTEXTS = f"SELECT {_CONTEXT_COLUMNS} FROM context AS c ORDER BY c.id LIMIT {_BATCH_ROWS}"
_SELECT_HEAD = "SELECT nr, head, revision FROM context WHERE id = ?"
_REPLACE_EDITION = "REPLACE INTO edition (nr, text, crc) VALUES (?, ?, ?)"

_INSERT_ENTRY = """
INSERT INTO entry (id, tokens, clip, quotes_page, quotes_entry, at, crc, codec, digest, body)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_SELECT_VIEW = "SELECT quotes_page, quotes_entry, at FROM entry WHERE id = ?"
_UPDATE_VIEW = "UPDATE entry SET tokens = ?, clip = ?, crc = ? WHERE id = ?"
_ENTRY_COLUMNS = "id, tokens, clip, quotes_page, quotes_entry, at, crc, codec, digest, body"
_SELECT_ENTRIES = f"""
SELECT {_ENTRY_COLUMNS} FROM entry WHERE id >= ? AND id < ? ORDER BY id LIMIT {_BATCH_ROWS}"""
_SELECT_ENTRIES_CONTAINING = f"""
SELECT {_ENTRY_COLUMNS} FROM entry WHERE id >= ? AND id < ? AND instr(body, ?) ORDER BY id LIMIT {_BATCH_ROWS}"""

_PAGE_COLUMNS = """
id, first_seq, end_seq, turn, place, cut_first, cut_end, continues, archived_turn, recall_count, last_recalled_turn,
crc"""
_REPLACE_PAGE = f"REPLACE INTO page ({_PAGE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_SELECT_PAGES = f"""
SELECT {_PAGE_COLUMNS} FROM page WHERE id >= ? AND id < ? ORDER BY id LIMIT {_BATCH_ROWS}"""
_SELECT_PAGES_ACTIVE = f"""
SELECT {_PAGE_COLUMNS} FROM page INDEXED BY page_active
WHERE place = 0 AND id >= ? AND id < ? ORDER BY id LIMIT {_BATCH_ROWS}"""
_SELECT_PAGES_PLACE = f"""
SELECT {_PAGE_COLUMNS} FROM page WHERE id >= ? AND id < ? AND place = ? ORDER BY id LIMIT {_BATCH_ROWS}"""

_SELECT_OP = "SELECT digest, first_seq, entries, op.crc FROM op JOIN context USING (nr) WHERE id = ? AND op_id = ?"
_INSERT_OP = "INSERT INTO op (nr, op_id, digest, first_seq, entries, crc) VALUES (?, ?, ?, ?, ?, ?)"

_P = ParamSpec("_P")
_T = TypeVar("_T")

_inherited: list[apsw.Connection] = []
"""connections of a parent process: closing one here would end the parent's use of its file"""


class SQLiteStorage:
    """Keeps contexts in one SQLite file.

    Args:
        path: The file; it is made if there is none, its folder must exist.
        durability: "full": on disk when commit() returns. "fast": a power cut may take the newest transitions.
        busy_timeout_seconds: How long to wait for another process before `StorageBusy`.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, durability: Durability = "full", busy_timeout_seconds: float = 5.0
    ) -> None:
        self._path = os.path.abspath(path)  # noqa: PTH100 -- a Path would resolve links, or keep ".."
        self._lock = RLock()
        self._pid = os.getpid()
        self._poison: str | None = None
        self._connection = open_file(self._path, durability, busy_timeout_seconds)
        self._inode = self._stat()

    def load(self, context: str) -> tuple[ContextRecord, str | None] | None:
        """Return the record and the last edition of *context*, or None if there is no such context."""
        check_text("id", context)
        rows = self._run(context, 0, _rows, _SELECT_CONTEXT, context)
        if not rows:
            return None
        *columns, edition, written = rows[0]
        if edition is not None and written != crc(edition):
            raise CorruptRecord(context, 0, "its edition is not what was written")
        return read_context(columns), edition

    def commit(self, transition: Transition) -> OpRow | None:
        """Apply *transition* and return None, or return the row of its op if that is known. O(rows), and a sync."""
        check(transition)
        return self._run(transition.record.id, transition.head, self._commit, transition)

    def pages(
        self, context: str, *, first: int = 1, last: int | None = None, place: Place | None = None
    ) -> Iterator[PageRow]:
        """Yield pages by index, as the protocol says; a page that comes while iterating may be among them."""
        nr, _ = self._number(context)
        end = MAX_PAGE if last is None else min(last, MAX_PAGE)
        return self._scan_pages(context, nr, max(first, 1), end + 1, place) if nr else iter(())

    def entries(
        self, context: str, first: int = 0, end: int | None = None, *, containing: bytes | None = None
    ) -> Iterator[EntryRow]:
        """Yield entries in order, as the protocol says; those that are there at the call.

        With *containing*, SQLite does the search: what does not match is neither read nor checked.
        """
        nr, head = self._number(context)
        return self._scan_entries(context, nr, max(first, 0), head if end is None else min(end, head), containing)

    def contexts(self) -> Sequence[ContextRecord]:
        """Return the record of every context, by id. O(contexts)."""
        records: list[ContextRecord] = []
        while True:
            if records:
                rows = self._run("", 0, _rows, _SELECT_CONTEXTS, records[-1].id)
            else:
                rows = self._run("", 0, _rows, _SELECT_FIRST_CONTEXTS)
            records += [read_context(row) for row in rows]
            if len(rows) < _BATCH_ROWS:
                return records

    def close(self) -> None:
        """Close the file."""
        if os.getpid() != self._pid:
            _inherited.append(self._connection)
            return
        with self._lock:
            self._poison = self._poison or f"{self._path!r} was closed: open the store again"
            try:
                self._connection.close()
            except apsw.Error as error:
                raise storage_error(error, self._path) from error

    def __reduce__(self) -> NoReturn:
        raise TypeError("a SQLiteStorage can't be pickled: open its path again in the other process")

    def _run(
        self,
        context: str,
        seq: int,
        work: Callable[Concatenate[apsw.Connection, _P], _T],
        *args: _P.args,
        **kw: _P.kwargs,
    ) -> _T:
        """Return what *work* returns; what SQLite raises becomes an error of ours, about *context* and *seq*."""
        if os.getpid() != self._pid:  # before the lock: a fork may have copied it locked
            _inherited.append(self._connection)
            raise HandlePoisoned(f"{self._path!r} was opened before fork(): open the store again in this process")
        with self._lock:
            if self._poison is not None:
                raise HandlePoisoned(self._poison)
            try:
                return work(self._connection, *args, **kw)
            except apsw.Error as error:
                if isinstance(error, apsw.IOError):
                    self._poison = f"{self._path!r} can't be trusted after {error}: open the store again"
                raise storage_error(error, self._path, context, seq) from error
            except UnicodeDecodeError as error:
                raise CorruptRecord(context, seq, f"its text is not UTF-8: {error.reason}") from error

    def _commit(self, connection: apsw.Connection, transition: Transition) -> OpRow | None:
        if self._stat() != self._inode:
            self._poison = f"{self._path!r} was moved, replaced or deleted: open the store again"
            raise HandlePoisoned(self._poison)
        try:
            connection.execute("BEGIN IMMEDIATE")
            known = _apply(connection, transition)
            connection.execute("COMMIT" if known is None else "ROLLBACK")
        except BaseException:
            self._roll_back()
            raise
        return known

    def _roll_back(self) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except apsw.Error as error:
            self._poison = f"{self._path!r} can't be trusted, a ROLLBACK failed: {error}"

    def _stat(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path)  # noqa: PTH116 -- on the hot path
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _number(self, context: str) -> tuple[int, int]:
        check_text("id", context)
        rows = self._run(context, 0, _rows, _SELECT_HEAD, context)
        return (rows[0][0], rows[0][1]) if rows else (0, 0)

    def _scan_pages(self, context: str, nr: int, first: int, end: int, place: Place | None) -> Iterator[PageRow]:
        while first < end:
            bounds = nr << 32 | first, (nr << 32) + end
            if place is Place.ACTIVE:
                rows = self._run(context, 0, _rows, _SELECT_PAGES_ACTIVE, *bounds)
            elif place is None:
                rows = self._run(context, 0, _rows, _SELECT_PAGES, *bounds)
            else:
                rows = self._run(context, 0, _rows, _SELECT_PAGES_PLACE, *bounds, int(place))
            for row in rows:
                page = read_page(context, row)
                first = page.index + 1
                yield page
            if len(rows) < _BATCH_ROWS:
                return

    def _scan_entries(
        self, context: str, nr: int, first: int, end: int, containing: bytes | None
    ) -> Iterator[EntryRow]:
        while first < end:
            rows, error = self._run(context, first, _batch, context, nr, first, end, containing)
            yield from rows
            if error is not None:
                raise error
            if not rows:
                return
            first = rows[-1].seq + 1


def _batch(
    connection: apsw.Connection, context: str, nr: int, first: int, end: int, containing: bytes | None
) -> tuple[list[EntryRow], CorruptRecord | None]:
    """Return entries from *first* on, and what is wrong with the one after them."""
    bounds = nr << 40 | first, (nr << 40) + end
    rows: list[EntryRow] = []
    size, seq = 0, first
    if containing is None:
        cursor = connection.execute(_SELECT_ENTRIES, bounds)
    else:
        cursor = connection.execute(_SELECT_ENTRIES_CONTAINING, (*bounds, containing))
    try:
        for columns in cursor:
            if containing is not None:
                seq = columns[0] - (nr << 40)
            rows.append(read_entry(context, seq, nr, columns))
            size += len(rows[-1].body)
            seq += 1
            if size > _BATCH_BYTES:
                break
    except CorruptRecord as error:
        return rows, error
    except (apsw.CorruptError, UnicodeDecodeError) as error:
        return rows, CorruptRecord(context, seq, f"it can't be read: {error}")
    finally:
        cursor.close()
    if containing is None and not rows:
        return rows, CorruptRecord(context, first, "it is missing")
    return rows, None


def _apply(connection: apsw.Connection, transition: Transition) -> OpRow | None:
    record, op = transition.record, transition.op
    if op is not None:
        known = _rows(connection, _SELECT_OP, record.id, op.op_id)
        if known:
            return read_op(record.id, op.op_id, known[0])
    columns = context_columns(record)
    found = _rows(connection, _SELECT_HEAD, record.id)
    nr, head, revision = found[0] if found else (0, 0, 0)
    check_lease(transition, head, revision)
    if nr:
        connection.execute(_UPDATE_CONTEXT, (*columns[1:], nr))
    else:
        nr = _rows(connection, _INSERT_CONTEXT, *columns)[0][0]
        if nr > _MAX_CONTEXTS:
            raise LimitExceeded("contexts in one file", nr, _MAX_CONTEXTS)
    if transition.entries:
        connection.executemany(_INSERT_ENTRY, [entry_columns(nr, row) for row in transition.entries])
    if transition.pages:
        connection.executemany(_REPLACE_PAGE, [page_columns(nr, page) for page in transition.pages])
    for seq, tokens, clip in transition.views:
        key = nr << 40 | seq
        kept = _rows(connection, _SELECT_VIEW, key)
        if not kept:
            raise CorruptRecord(record.id, seq, "it is missing")
        connection.execute(_UPDATE_VIEW, (tokens, clip, crc(key, tokens, clip, *kept[0]), key))
    if transition.edition is not None:
        connection.execute(_REPLACE_EDITION, (nr, transition.edition, crc(transition.edition)))
    if op is not None:
        connection.execute(_INSERT_OP, op_columns(nr, op))
    return None


def _rows(connection: apsw.Connection, statement: str, *bindings: int | str | bytes | None) -> list[Row]:
    return connection.execute(statement, bindings).fetchall()
