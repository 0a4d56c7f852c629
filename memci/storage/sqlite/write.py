"""Changes a SQLite store, within a transaction of the caller."""

import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

import apsw

from ...errors import CorruptRecord, LimitExceeded
from ...rows import CompactionRow, ContextRecord, OpRow, Ticket
from ..columns import CALLS, CHAIN, COMPACTIONS, CONTEXTS, ENTRIES, OPS, PAGES, VIEWS, Columns, Row, joined, pack_tools
from ..protocol import ErasedRows, Erasure, Transition
from ..validation import FULL, check_forks, check_parent, check_revision, without_digests
from .rows import SELECT_OP, SELECT_OPS_BEFORE, keyed, read_chain, unpack

_MAX_CONTEXTS = 2**23 - 1
_MOST_BYTES = 512 * 2**20
"""the largest file that an erasure writes again at once: nobody else can write for some 2.5 s then"""


def _insert(table: str, names: Sequence[str], verb: str = "INSERT") -> str:
    return f"{verb} INTO {table} ({joined(names)}) VALUES ({', '.join('?' * len(names))})"


_INSERT_CONTEXT = f"{_insert('context', CONTEXTS.names)} RETURNING number"
_UPDATE_CONTEXT = f"UPDATE context SET {', '.join(f'{name} = ?' for name in CONTEXTS.names[1:])} WHERE number = ?"
SELECT_HEAD: Final = "SELECT number, head, revision, parent, base FROM context WHERE id = ?"
_INSERT_ENTRY = _insert("entry", keyed(ENTRIES.names))
_REPLACE_ENTRY = _insert("entry", keyed(ENTRIES.names), "REPLACE")
_REPLACE_VIEW = _insert("view", keyed(VIEWS.names), "REPLACE")
_REPLACE_PAGE = _insert("page", keyed(PAGES.names), "REPLACE")
_REPLACE_COMPACTION = _insert("compaction", keyed(COMPACTIONS.names), "REPLACE")
_INSERT_CALL = _insert("call", keyed(CALLS.names))
_INSERT_TOOLS = _insert("tools", ("number", "digest", "text"), "INSERT OR IGNORE")
_INSERT_OP = _insert("op", ("number", *OPS.names))
_REPLACE_OP = _insert("op", ("number", *OPS.names), "REPLACE")
_INSERT_TICKET = _insert("ticket", Ticket._fields)
_TICKET = f"({joined(Ticket._fields)}) = ({', '.join('?' * len(Ticket._fields))})"
_UPDATE_TICKET = f"UPDATE ticket SET {_TICKET} WHERE {_TICKET}"
_DELETE_TICKET = f"DELETE FROM ticket WHERE {_TICKET}"
_SELECT_FORKS = "SELECT id FROM context WHERE parent = ? ORDER BY id"
_KEY_BITS: Final = {"entry": 40, "page": 32, "compaction": 40, "view": 40, "call": 40}
"""bits of a key below the number of its context"""
_DELETE_RANGE = {table: f"DELETE FROM {table} WHERE key >= ? AND key < ?" for table in _KEY_BITS}
_DELETE_VIEW = "DELETE FROM view WHERE key = ?"


def rows(connection: apsw.Connection, statement: str, *bindings: int | str | bytes | None) -> list[Row]:
    """Return all rows of *statement*."""
    return connection.execute(statement, bindings).fetchall()


def _keyed(columns: Columns[Any], number: int, rows: Iterable[Row], bits: int = 40) -> list[list[Any]]:
    """Return the columns of *rows* in context *number*, whose key has *bits* of its own. O(characters)."""
    found = []
    for row in rows:
        made = columns.write(number, row)
        made[0] |= number << bits
        found.append(made)
    return found


def write_compactions(
    connection: apsw.Connection, number: int, record: ContextRecord, added: Iterable[CompactionRow]
) -> None:
    """Write the compactions *added* to context *number*, oldest first. O(characters)."""
    longest = 1 if record.encrypted else CHAIN  # encrypted texts have nothing in common
    text, length = b"", 0
    with suppress(CorruptRecord):  # a damaged compaction is not used as a dictionary
        if not record.encrypted and (chain := read_chain(connection, record.id, number, record.revision - 1)):
            text, length = unpack(record.id, chain)[0].text.encode(), len(chain)
    packed = []
    for row in added:
        packing = zlib.compressobj(zdict=text if length % longest else b"")
        text, length = row.text.encode(), length % longest + 1
        packed.append((*row[:-1], packing.compress(text) + packing.flush()))
    connection.executemany(_REPLACE_COMPACTION, _keyed(COMPACTIONS, number, packed))


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


@contextmanager
def transaction(connection: apsw.Connection) -> Iterator[None]:
    """Commit what the block writes, or roll it back if the block fails. It raises what SQLite raises."""
    try:
        begin(connection)
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk may have rolled it back meanwhile
            connection.execute("ROLLBACK")
        raise


def sync_journal(connection: apsw.Connection) -> None:
    """Sync the rollback journal, if there is one. One sync, or some microseconds.

    The process of the last transaction may have been killed before it synced the empty journal. After a power cut, the
    old journal could then reappear with parts of the next one, and SQLite would roll back to wrong pages.
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


def apply(connection: apsw.Connection, transition: Transition) -> OpRow | int:
    """Write *transition* and return the number of its context, or the row of its op if that is stored. O(rows)."""
    record, op = transition.record, transition.op
    found = rows(connection, SELECT_HEAD, record.id)
    number, head, revision = found[0][:3] if found else (0, 0, 0)
    if op is not None and number:
        known = rows(connection, SELECT_OP, number, op.op_id)
        if known:
            return OPS.read(record.id, number, known[0])
    columns = CONTEXTS.write(0, record)
    check_revision(transition, head, revision)
    if number:
        connection.execute(_UPDATE_CONTEXT, (*columns[1:], number))
    else:
        if record.parent is not None:
            parent = rows(connection, SELECT_HEAD, record.parent)
            check_parent(record, parent[0][1] if parent else None)
        number = rows(connection, _INSERT_CONTEXT, *columns)[0][0]
        if number > _MAX_CONTEXTS:
            raise LimitExceeded("contexts in one file", number, _MAX_CONTEXTS)
    if transition.entries:
        connection.executemany(_INSERT_ENTRY, _keyed(ENTRIES, number, transition.entries))
    if transition.pages:
        connection.executemany(_REPLACE_PAGE, _keyed(PAGES, number, transition.pages, 32))
    if transition.views:
        connection.executemany(_REPLACE_VIEW, _keyed(VIEWS, number, transition.views))
    if transition.compactions:
        write_compactions(connection, number, record, transition.compactions)
    if transition.ops:
        connection.executemany(_INSERT_OP, [(number, *OPS.write(number, op)) for op in transition.ops])
    if transition.calls:
        calls, lists = pack_tools(transition.calls)
        connection.executemany(_INSERT_CALL, _keyed(CALLS, number, calls))
        connection.executemany(_INSERT_TOOLS, [(number, *each) for each in lists.items()])
    return int(number)


def erase(connection: apsw.Connection, erasure: Erasure) -> ErasedRows:
    """Remove what *erasure* names, and write its transitions. O(removed rows)."""
    gone = {"context": 0, "entry": 0, "page": 0, "compaction": 0, "view": 0, "op": 0, "call": 0}
    for context in erasure.contexts:
        connection.execute("DELETE FROM ticket WHERE context = ?", (context,))
        check_forks(((fork, context) for (fork,) in rows(connection, _SELECT_FORKS, context)), erasure.contexts)
        for number, *_ in rows(connection, SELECT_HEAD, context):
            for table in _KEY_BITS:
                gone[table] += _delete(connection, table, number)
            gone["op"] += _changed(connection, "DELETE FROM op WHERE number = ?", number)
            connection.execute("DELETE FROM tools WHERE number = ?", (number,))
            gone["context"] += _changed(connection, "DELETE FROM context WHERE number = ?", number)
    erased: set[tuple[int, int]] = set()
    for context, tombstone in erasure.entries:
        _, number = holder(connection, context, tombstone.seq)
        if not number:
            raise CorruptRecord(context, tombstone.seq, "it is missing")
        connection.execute(_REPLACE_ENTRY, _keyed(ENTRIES, number, [tombstone])[0])
        connection.execute(_DELETE_VIEW, (number << 40 | tombstone.seq,))
        erased.add((number, tombstone.seq))
        gone["entry"] += 1
    for transition in erasure.transitions:
        for number, *_ in rows(connection, SELECT_HEAD, transition.record.id):
            gone["compaction"] += _delete(connection, "compaction", number)
            own = {seq for owner, seq in erased if owner == number}
            shown = [seq for owner, seq in erased if holder(connection, transition.record.id, seq)[1] == owner]
            if own:
                before = rows(connection, SELECT_OPS_BEFORE, number, max(own))
                cleared = without_digests([OPS.read(transition.record.id, number, row) for row in before], own)
                connection.executemany(_REPLACE_OP, [(number, *OPS.write(number, op)) for op in cleared])
                gone["op"] += len(cleared)
            connection.executemany(_DELETE_VIEW, [(number << 40 | seq,) for seq in shown])
        apply(connection, transition)
    return ErasedRows(gone["context"], gone["entry"], gone["page"], gone["compaction"], gone["op"], scrubbed=False)


def replace_ticket(connection: apsw.Connection, change: tuple[Ticket | None, Ticket | None]) -> bool:
    """Replace the old ticket of *change* by the new one, and return whether the old one was there."""
    old, new = change
    if old is None:
        connection.execute(_INSERT_TICKET, new or ())
    elif new is None:
        connection.execute(_DELETE_TICKET, old)
    else:
        connection.execute(_UPDATE_TICKET, (*new, *old))
    return connection.changes() > 0


def scrub(connection: apsw.Connection, *, whole: bool = False) -> bool:
    """Remove the bytes of deleted rows, and return whether none can be left. O(bytes of the file).

    SQLite overwrites a deleted row (`secure_delete`), but not earlier copies of it, from before it was moved to another
    page of the file. So the file is written again, and the log emptied.

    Args:
        connection: To a file, or to a database in RAM, which is not changed.
        whole: Also write a file of more than 512 MB again, although nobody else can write meanwhile.
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


def holder(connection: apsw.Connection, context: str | None, seq: int) -> tuple[str, int]:
    """Return the context that has entry *seq* of *context*, itself or one that it was forked from, and its number."""
    while context is not None:
        found = rows(connection, SELECT_HEAD, context)
        if not found or seq >= found[0][1]:
            break
        number, _, _, parent, base = found[0]
        if seq >= base:
            return context, int(number)
        context = parent
    return "", 0


def _delete(connection: apsw.Connection, table: str, number: int) -> int:
    bits = _KEY_BITS[table]
    return _changed(connection, _DELETE_RANGE[table], number << bits, (number + 1) << bits)


def _changed(connection: apsw.Connection, statement: str, *bindings: int) -> int:
    connection.execute(statement, bindings)
    return connection.changes()
