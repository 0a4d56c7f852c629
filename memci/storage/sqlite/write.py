"""The changes of a SQLite store, as statements within one transaction.

    begin     BEGIN IMMEDIATE; the journal that the transaction before left empty is empty on the disk, too
    apply     op known?       ──▶  its row, nothing else happens
              another head?   ──▶  WriteConflict, if another writer was here
              context, entry …, page …, view …, compaction, op, call
    erase     contexts go whole, entries become tombstones, compactions before go; what goes is overwritten with zeros
    scrub     the file is written again without free space, which holds copies of it; the write-ahead log is emptied

This module knows nothing of locks, or of opening a file.
"""

import os
import zlib
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache

import apsw
import orjson

from ...errors import CorruptRecord, LimitExceeded
from ...rows import CallRow, CompactionRow, ContextRecord, EntryRow, OpRow, PageRow, Ticket
from ..codec import ORJSON, digest
from ..protocol import ErasedRows, Erasure, Transition
from ..validation import (
    FULL,
    all_calls,
    all_compactions,
    all_ops,
    check_forks,
    check_parent,
    check_revision,
    compaction_crc,
    crc,
    without_digests,
)
from .rows import CHAIN, PAGE_COLUMNS, Row, read_chain, read_op, unpacked

Chains = dict[int, tuple[bytes, int, bytes]]
"""the newest compactions that a handle wrote, by the number of their context: packed, how many rows are read for it,
and its text"""
_MOST_CHAINS = 64
_MAX_CONTEXTS = 2**23 - 1
_MOST_BYTES = 512 * 2**20
"""the largest file that an erasure writes again at once"""

_INSERT_CONTEXT = """
INSERT INTO context (id, owner, settings, state, head, next_page, turn, open_page, revision, parent, base, crc)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING nr"""
_UPDATE_CONTEXT = """
UPDATE context SET owner = ?, settings = ?, state = ?, head = ?, next_page = ?, turn = ?, open_page = ?,
revision = ?, parent = ?, base = ?, crc = ?
WHERE nr = ?"""
SELECT_HEAD = "SELECT nr, head, revision, parent, base FROM context WHERE id = ?"
_REPLACE_COMPACTION = "REPLACE INTO edition (id, head, turn, crc, text) VALUES (?, ?, ?, ?, ?)"
_INSERT_ENTRY = """
INSERT INTO entry (id, tokens, clip, quotes_page, quotes_entry, at, crc, codec, digest, body)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_REPLACE_ENTRY = _INSERT_ENTRY.replace("INSERT", "REPLACE", 1)
_REPLACE_VIEW = "REPLACE INTO view (id, tokens, clip, crc) VALUES (?, ?, ?, ?)"
_REPLACE_PAGE = f"REPLACE INTO page ({PAGE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
SELECT_OP = """
SELECT op_id, digest, first_seq, entries, op.crc FROM op JOIN context USING (nr) WHERE id = ? AND op_id = ?"""
_INSERT_OP = "INSERT INTO op (nr, op_id, digest, first_seq, entries, crc) VALUES (?, ?, ?, ?, ?, ?)"
_SELECT_OPS_BEFORE = "SELECT op_id, digest, first_seq, entries, crc FROM op WHERE nr = ? AND first_seq <= ?"
_REPLACE_OP = _INSERT_OP.replace("INSERT", "REPLACE", 1)
_INSERT_CALL = """
INSERT INTO call (id, seq, turn, at, model, predicted, input, cached_read, cached_written, output, tools, crc)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_INSERT_TOOLS = "INSERT OR IGNORE INTO tools (nr, digest, text) VALUES (?, ?, ?)"
_SELECT_FORKS = "SELECT id FROM context WHERE parent = ? ORDER BY id"
_DELETE_RANGE = {
    table: f"DELETE FROM {table} WHERE id >= ? AND id < ?" for table in ("entry", "page", "edition", "view", "call")
}
_DELETE_VIEW = "DELETE FROM view WHERE id = ?"
_INSERT_TICKET = "INSERT INTO ticket (context, token, holder, process, since, expires) VALUES (?, ?, ?, ?, ?, ?)"
_EXACT_TICKET = "WHERE (context, token, holder, process, since, expires) = (?, ?, ?, ?, ?, ?)"
_UPDATE_TICKET = (
    f"UPDATE ticket SET (context, token, holder, process, since, expires) = (?, ?, ?, ?, ?, ?) {_EXACT_TICKET}"
)
_WIDTH = {"entry": 40, "page": 32, "edition": 40, "view": 40, "call": 40}
"""bits that a key has below the number of its context"""


def rows(connection: apsw.Connection, statement: str, *bindings: int | str | bytes | None) -> list[Row]:
    """Return all rows of *statement*."""
    return connection.execute(statement, bindings).fetchall()


def entry_columns(nr: int, row: EntryRow) -> Row:
    """Return the columns of *row* in context *nr*."""
    page, entry = row.quotes or (None, None)
    small = (nr << 40 | row.seq, row.tokens, row.clip, page, entry, row.at)
    return *small, crc(*small), row.codec, row.digest, row.body


def context_columns(record: ContextRecord) -> Row:
    """Return the columns of *record*.

    Its check sum is signed, so that it nearly always takes 4 bytes: a row that keeps its length is written in place,
    without the settings, which are most of it.
    """
    context, owner, settings, *rest = record
    written = crc(context, owner, _json(settings), *rest)
    return *record, written - (written >> 31 << 32)


def view_columns(nr: int, seq: int, tokens: int, clip: int) -> Row:
    """Return the columns of what context *nr* shows of entry *seq*."""
    columns = (nr << 40 | seq, tokens, clip)
    return *columns, crc(*columns)


def write_compactions(
    connection: apsw.Connection, nr: int, record: ContextRecord, added: Iterable[CompactionRow], chains: Chains
) -> None:
    """Write the rows *added* of context *nr*, oldest first, and keep the last one in *chains*. O(characters)."""
    longest = 1 if record.encrypted else CHAIN  # nothing is alike in what is encrypted
    text, length = (b"", 0) if record.encrypted else _chain_before(connection, nr, record, chains)
    columns: list[Row] = []
    for row in added:
        packing = zlib.compressobj(zdict=text if length % longest else b"")
        text, length, key = row.text.encode(), length % longest + 1, nr << 40 | row.revision
        packed = packing.compress(text) + packing.flush()
        columns.append((key, row.head, row.turn, compaction_crc(key, row.head, row.turn, packed), packed))
    connection.executemany(_REPLACE_COMPACTION, columns)
    if len(chains) >= _MOST_CHAINS:
        chains.clear()
    chains[nr] = columns[-1][-1], length, text


def _chain_before(connection: apsw.Connection, nr: int, record: ContextRecord, chains: Chains) -> tuple[bytes, int]:
    """Return the text of the newest compaction of context *nr*, and how many rows are read for it."""
    with suppress(CorruptRecord):  # what is damaged is not built upon
        chain = read_chain(connection, record.id, nr, record.revision - 1)
        newest, length, text = chains.get(nr, (b"", 0, b""))
        if chain and (newest, length) != (chain[0][-1], len(chain)):
            text = unpacked(record.id, chain)[0].text.encode()
        return (text, len(chain)) if chain else (b"", 0)
    return b"", 0


def page_columns(nr: int, page: PageRow) -> Row:
    """Return the columns of *page* in context *nr*."""
    index, first, end, turn, state, cut, *use = page
    small = (nr << 32 | index, first, end, turn, int(state), *(cut or (None, None))[:2], *use)
    more = orjson.dumps(cut[2:]).decode() if cut and cut[2:] else None
    return *small, more, crc(*small, *([more] if more else ()))


def op_columns(nr: int, op: OpRow) -> Row:
    """Return the columns of *op* in context *nr*."""
    written = crc(op.op_id, op.digest.hex(), op.first, op.entries)
    return nr, op.op_id, op.digest, op.first, orjson.dumps(op.entries), written


def call_columns(nr: int, row: CallRow, tools: bytes | None) -> Row:
    """Return the columns of *row* in context *nr*; *tools* is the digest of its list."""
    small = (nr << 40 | row.revision, *row[1:-1])
    return *small, tools, crc(*small, tools and tools.hex())


def inode(path: str) -> tuple[int, int] | None:
    """Return the identity of the file *path*, None if there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 -- on the hot path
    except OSError:
        return None
    return found.st_dev, found.st_ino


def begin(connection: apsw.Connection, *, logged: bool = False) -> None:
    """Begin a transaction that writes. It raises what SQLite raises.

    *logged*: there is a write-ahead log, so no rollback journal; else it is synced before (`sync_journal`).
    """
    connection.execute("BEGIN IMMEDIATE")
    if not logged:
        sync_journal(connection)


def sync_journal(connection: apsw.Connection) -> None:
    """Sync the rollback journal, if there is one. One sync, or some microseconds.

    An earlier transaction emptied it, and may have been killed before its sync. If the power failed then, the old
    journal could come back with parts of the next one in it, and SQLite would roll back with the wrong pages.

    Raises:
        apsw.Error: If that fails.
    """
    if not connection.filename_journal:  # in RAM
        return
    try:
        journal = os.open(connection.filename_journal, os.O_RDWR)
    except FileNotFoundError:
        return
    except OSError as error:
        raise apsw.CantOpenError(f"the journal: {error.strerror}") from error
    try:
        os.fsync(journal)
    except OSError as error:
        failed = apsw.FullError if error.errno in FULL else apsw.IOError
        raise failed(f"sync of the journal: {error.strerror}") from error
    finally:
        os.close(journal)


def apply(connection: apsw.Connection, transition: Transition, chains: Chains) -> OpRow | int:
    """Write *transition* and return the number of its context, or the row of its op if that is known. O(rows)."""
    record, op = transition.record, transition.op
    if op is not None:
        known = rows(connection, SELECT_OP, record.id, op.op_id)
        if known:
            return read_op(record.id, known[0])
    columns = context_columns(record)
    found = rows(connection, SELECT_HEAD, record.id)
    nr, head, revision = found[0][:3] if found else (0, 0, 0)
    check_revision(transition, head, revision)
    if nr:
        connection.execute(_UPDATE_CONTEXT, (*columns[1:], nr))
    else:
        if record.parent is not None:
            parent = rows(connection, SELECT_HEAD, record.parent)
            check_parent(record, parent[0][1] if parent else None)
        nr = rows(connection, _INSERT_CONTEXT, *columns)[0][0]
        if nr > _MAX_CONTEXTS:
            raise LimitExceeded("contexts in one file", nr, _MAX_CONTEXTS)
    if transition.entries:
        connection.executemany(_INSERT_ENTRY, [entry_columns(nr, row) for row in transition.entries])
    if transition.pages:
        connection.executemany(_REPLACE_PAGE, [page_columns(nr, page) for page in transition.pages])
    if transition.views:
        connection.executemany(_REPLACE_VIEW, [view_columns(nr, *view) for view in transition.views])
    if compactions := all_compactions(transition):
        write_compactions(connection, nr, record, compactions, chains)
    if ops := all_ops(transition):
        connection.executemany(_INSERT_OP, [op_columns(nr, each) for each in ops])
    for call in all_calls(transition):
        tools = None if call.tools is None else digest(ORJSON, call.tools.encode())
        connection.execute(_INSERT_CALL, call_columns(nr, call, tools))
        if call.tools is not None:
            connection.execute(_INSERT_TOOLS, (nr, tools, call.tools.encode()))
    return int(nr)


def erase(connection: apsw.Connection, erasure: Erasure) -> ErasedRows:
    """Remove what *erasure* names, and write what its contexts are afterwards. O(rows that go)."""
    gone = {"context": 0, "entry": 0, "page": 0, "edition": 0, "view": 0, "op": 0, "call": 0}
    for context in erasure.contexts:
        connection.execute("DELETE FROM ticket WHERE context = ?", (context,))
        check_forks(((fork, context) for (fork,) in rows(connection, _SELECT_FORKS, context)), erasure.contexts)
        for nr, *_ in rows(connection, SELECT_HEAD, context):
            for table in _DELETE_RANGE:
                gone[table] += _delete(connection, table, nr)
            gone["op"] += _changed(connection, "DELETE FROM op WHERE nr = ?", nr)
            connection.execute("DELETE FROM tools WHERE nr = ?", (nr,))
            gone["context"] += _changed(connection, "DELETE FROM context WHERE nr = ?", nr)
    erased: set[tuple[int, int]] = set()
    for context, tombstone in erasure.entries:
        nr = _owner(connection, context, tombstone.seq)
        if not nr:
            raise CorruptRecord(context, tombstone.seq, "it is missing")
        connection.execute(_REPLACE_ENTRY, entry_columns(nr, tombstone))
        connection.execute(_DELETE_VIEW, (nr << 40 | tombstone.seq,))
        erased.add((nr, tombstone.seq))
        gone["entry"] += 1
    for transition in erasure.transitions:
        for nr, *_ in rows(connection, SELECT_HEAD, transition.record.id):
            gone["edition"] += _delete(connection, "edition", nr)
            own = {seq for owner, seq in erased if owner == nr}
            shown = [seq for owner, seq in erased if _owner(connection, transition.record.id, seq) == owner]
            if own:
                before = rows(connection, _SELECT_OPS_BEFORE, nr, max(own))
                cleared = without_digests([read_op(transition.record.id, row) for row in before], own)
                connection.executemany(_REPLACE_OP, [op_columns(nr, op) for op in cleared])
                gone["op"] += len(cleared)
            connection.executemany(_DELETE_VIEW, [(nr << 40 | seq,) for seq in shown])
        apply(connection, transition, {})
    return ErasedRows(gone["context"], gone["entry"], gone["page"], gone["edition"], gone["op"], scrubbed=False)


def replace_ticket(connection: apsw.Connection, change: tuple[Ticket | None, Ticket | None]) -> bool:
    """Put the new ticket of *change* in the place of the old one, and return whether that was there."""
    old, new = change
    if old is None:
        connection.execute(_INSERT_TICKET, new or ())
    elif new is None:
        connection.execute(f"DELETE FROM ticket {_EXACT_TICKET}", old)
    else:
        connection.execute(_UPDATE_TICKET, (*new, *old))
    return connection.changes() > 0


def scrub(connection: apsw.Connection, *, whole: bool = False) -> bool:
    """Remove the bytes that deleted rows left, and return whether none can be left. O(bytes of the file).

    SQLite overwrites a row that goes (`secure_delete`), but not what is left of it where it stood before its neighbours
    were moved to another page of the file. So the file is written again, and the log emptied.

    Args:
        connection: To a file, or to a database in RAM, which is left as it is.
        whole: Write a file of more than 512 MB again, too, although nobody else can write meanwhile.
    """
    journal = connection.pragma("journal_mode")
    if journal == "memory":
        return True
    try:
        done = whole or connection.pragma("page_count") * connection.pragma("page_size") <= _MOST_BYTES
        if done:
            connection.execute("VACUUM")
        if journal == "wal":
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except (apsw.BusyError, apsw.LockedError, apsw.FullError):
        return False
    return bool(done)


@lru_cache(maxsize=64)
def _json(settings: str) -> orjson.Fragment:
    """Return *settings*, the same in most transitions of a context, as JSON."""
    return orjson.Fragment(orjson.dumps(settings))


def _owner(connection: apsw.Connection, context: str | None, seq: int) -> int:
    """Return the number of the context that holds entry *seq* of *context*: itself, or one that it was forked from."""
    while context is not None:
        found = rows(connection, SELECT_HEAD, context)
        if not found or seq >= found[0][1]:
            return 0
        nr, _, _, parent, base = found[0]
        if seq >= base:
            return int(nr)
        context = parent
    return 0


def _delete(connection: apsw.Connection, table: str, nr: int) -> int:
    width = _WIDTH[table]
    return _changed(connection, _DELETE_RANGE[table], nr << width, (nr + 1) << width)


def _changed(connection: apsw.Connection, statement: str, *bindings: int) -> int:
    connection.execute(statement, bindings)
    return connection.changes()
