"""Statements that read a SQLite store, and functions that make rows of their results.

compaction 96      compressed alone; 97 with the text of 96 as the dictionary, 98 with that of 97, …
"""

import zlib
from collections.abc import Sequence
from contextlib import closing
from itertools import chain, repeat
from typing import Any, Final

import apsw
import orjson

from ...errors import CorruptRecord
from ...rows import CallRow, CompactionRow, ContextRecord, EntryRow, PageRow, PageState, Ticket
from ..codec import ORJSON, digest
from ..columns import CALLS, CHAIN, COMPACTIONS, CONTEXTS, ENTRIES, OPS, PAGES, VIEWS, Row, joined, read_entry
from ..validation import MAX_PAGE, check_text

MAX_REVISION: Final = 2**40 - 1
BATCH_ROWS: Final = 256
"""rows of one query: enough that a query costs little for each, and few that a slow reader keeps none in RAM"""
_BATCH_BYTES: Final = 2**20  # bytes of bodies after which a batch ends, so that large messages do not fill the RAM
_NEEDS_DICTIONARY: Final = 0x20  # the bit for it in the second byte of zlib's output


def keyed(names: Sequence[str]) -> list[str]:
    """Return the *names* of columns with the key of the table in the place of the first one."""
    return ["key", *names[1:]]


_CONTEXT = joined(CONTEXTS.names)
SELECT_CONTEXT: Final = f"SELECT number, {_CONTEXT} FROM context WHERE id = ?"
SELECT_BY_NUMBER: Final = f"SELECT {_CONTEXT} FROM context WHERE number = ?"
_SELECT_CONTEXTS = f"SELECT {_CONTEXT} FROM context WHERE id >= ? AND (? IS NULL OR owner = ?) ORDER BY id LIMIT ?"
_SELECT_CONTEXTS_AFTER = _SELECT_CONTEXTS.replace("id >= ?", "id > ?")
_SELECT_ID = "SELECT id FROM context WHERE id > ? ORDER BY id LIMIT 1 OFFSET ?"
"""reads the index of ids alone, which may be whole where a row is damaged"""
SELECT_FORKS: Final = f"SELECT {_CONTEXT} FROM context WHERE parent = ? ORDER BY id"

_ENTRIES = f"""
SELECT {joined(keyed(ENTRIES.names), "e")}, {joined(VIEWS.names[1:], "v")}
FROM entry AS e LEFT JOIN view AS v ON v.key = e.key + ? WHERE e.key >= ? AND e.key < ?"""
_SELECT_ENTRIES = f"{_ENTRIES} ORDER BY e.key LIMIT {BATCH_ROWS}"
_SELECT_ENTRIES_AT = _SELECT_ENTRIES.replace("e.key >= ? AND e.key < ?", "e.key IN (SELECT value FROM json_each(?))")
_SELECT_ENTRIES_CONTAINING = f"{_ENTRIES} AND instr(body, ?) ORDER BY e.key LIMIT {BATCH_ROWS}"

_PAGES = f"SELECT {joined(keyed(PAGES.names))} FROM page WHERE key >= ? AND key < ? ORDER BY key LIMIT {BATCH_ROWS}"
_PAGES_AT = _PAGES.replace("key >= ? AND key < ?", "key IN (SELECT value FROM json_each(?))")
_PAGES_IN_STATE = _PAGES.replace("ORDER", "AND state = ? ORDER")
_ACTIVE_PAGES = _PAGES.replace("WHERE", "INDEXED BY page_active WHERE state = 0 AND")
"""SQLite uses the partial index only with a constant"""

_SELECT_CHAIN = f"""
SELECT {joined(keyed(COMPACTIONS.names))} FROM compaction
WHERE key >= ? AND key <= ? AND head <= ? ORDER BY key DESC LIMIT {CHAIN}"""
_OPS = f"SELECT {joined(OPS.names)} FROM op WHERE number = ?"
SELECT_OPS: Final = f"{_OPS} ORDER BY first, op_id"
SELECT_OPS_BEFORE: Final = f"{_OPS} AND first <= ?"
SELECT_OP: Final = f"{_OPS} AND op_id = ?"
_SELECT_CALLS = f"""
SELECT {joined(keyed(CALLS.names))} FROM call WHERE key > ? AND key < ? ORDER BY key LIMIT {BATCH_ROWS}"""
_SELECT_TOOLS = "SELECT text FROM tools WHERE number = ? AND digest = ?"
SELECT_TICKETS: Final = f"SELECT {joined(Ticket._fields)} FROM ticket ORDER BY number"
SELECT_TICKETS_OF_ONE: Final = SELECT_TICKETS.replace("ORDER BY", "WHERE context = ? ORDER BY")


def read_context(columns: Sequence[Any]) -> ContextRecord:
    """Return the record in *columns*, or raise CorruptRecord."""
    return CONTEXTS.read(str(columns[0]), 0, columns)


def read_contexts(
    connection: apsw.Connection, owner: str | None, after: str | None, limit: int | None
) -> list[ContextRecord]:
    """Return records by id: of *owner* or of all, after the id *after*, at most *limit*. O(records read)."""
    for name, text in (("owner", owner), ("after", after)):
        check_text(name, text or "")
    values = (after or "", owner, owner, -1 if limit is None else limit)
    statement, records = _SELECT_CONTEXTS if after is None else _SELECT_CONTEXTS_AFTER, []
    try:
        for row in connection.execute(statement, values):
            records += [read_context(row)]
    except (apsw.CorruptError, UnicodeDecodeError) as error:
        found = None if owner else connection.execute(_SELECT_ID, (after or "", len(records))).fetchone()
        if not found:
            raise
        raise CorruptRecord(found[0], 0, f"its record can't be read: {error}") from error
    return records


def read_batch(
    connection: apsw.Connection, context: str, number: int, owner: int, seqs: Sequence[int], containing: bytes | None
) -> tuple[list[EntryRow], CorruptRecord | None]:
    """Return the first entries with *seqs*, as a batch, and the error that ended the batch, or None.

    *seqs* is a range, or without *containing* any numbers in order.
    """
    entries: list[EntryRow] = []
    size, seq, following = 0, seqs[0], chain(seqs[1:], repeat(seqs[-1] + 1))
    views = (number - owner) << 40
    if isinstance(seqs, range):
        values = (views, owner << 40 | seq, (owner << 40) + seqs.stop, *(() if containing is None else (containing,)))
        cursor = connection.execute(_SELECT_ENTRIES if containing is None else _SELECT_ENTRIES_CONTAINING, values)
    else:
        keys = orjson.dumps([owner << 40 | each for each in seqs]).decode()
        cursor = connection.execute(_SELECT_ENTRIES_AT, (views, keys))
    try:
        for columns in cursor:
            if containing is not None:
                seq = max(seq, columns[0] - (owner << 40))  # in a damaged tree a row may be found twice: it is refused
            if columns[0] != owner << 40 | seq:
                return entries, CorruptRecord(context, seq, "it is missing")
            entries.append(read_entry(context, owner, number, (seq, *columns[1:])))
            size += len(entries[-1].body)
            seq = next(following) if containing is None else seq + 1
            if size > _BATCH_BYTES:
                break
    except CorruptRecord as error:
        return entries, error
    except (apsw.CorruptError, UnicodeDecodeError) as error:
        return entries, CorruptRecord(context, seq, f"it can't be read: {error}")
    finally:
        cursor.close()
    if containing is None and not entries:
        return entries, CorruptRecord(context, seq, "it is missing")
    return entries, None


def read_chain(connection: apsw.Connection, context: str, number: int, revision: int, head: int = 2**62) -> list[Row]:
    """Return the newest compaction up to *revision* and *head*, and those that its text needs, newest first, packed.

    Raise CorruptRecord if one of them is damaged. O(their bytes).
    """
    chain: list[Row] = []
    with closing(connection.execute(_SELECT_CHAIN, (number << 40, number << 40 | revision, head))) as found:
        for key, *columns in found:
            row = COMPACTIONS.read(context, number, (key & MAX_REVISION, *columns))
            packed: Any = row.text
            chain.append(row)
            if not packed[1] & _NEEDS_DICTIONARY:
                break
    return chain


def unpack(context: str, chain: Sequence[Row]) -> list[CompactionRow]:
    """Return the compactions of a *chain*; CorruptRecord if one of them is missing. O(their characters)."""
    compactions: list[CompactionRow] = []
    text = b""
    for *columns, packed in reversed(chain):
        try:
            text = zlib.decompressobj(zdict=text).decompress(packed)
        except zlib.error as error:
            raise CorruptRecord(context, columns[1], "the compaction before it is missing") from error
        compactions.append(CompactionRow._make([*columns, text.decode()]))
    return compactions[::-1]


def read_pages(connection: apsw.Connection, number: int, indexes: Sequence[int], state: PageState | None) -> list[Row]:
    """Return a batch of the rows of pages with *indexes*, by index: of a range (in *state*), or of any numbers."""
    if not isinstance(indexes, range):
        keys = orjson.dumps([number << 32 | index for index in indexes]).decode()
        return connection.execute(_PAGES_AT, (keys,)).fetchall()
    span = number << 32 | indexes.start, (number << 32) + indexes.stop
    if state is None or state is PageState.ACTIVE:
        return connection.execute(_PAGES if state is None else _ACTIVE_PAGES, span).fetchall()
    return connection.execute(_PAGES_IN_STATE, (*span, int(state))).fetchall()


def read_page(context: str, number: int, row: Row, indexes: Sequence[int], state: PageState | None) -> PageRow:
    """Return the page in *row*; CorruptRecord if it is damaged, not one of *indexes*, or not in *state*."""
    key, *columns = row
    page = PAGES.read(context, key >> 32, (key & MAX_PAGE, *columns))
    if key >> 32 != number or page.index not in indexes or state not in (None, page.state):
        reason = f"page #{page.index} was found where another page belongs: an index of the file is damaged"
        raise CorruptRecord(context, page.first, reason)
    return page


def read_calls(connection: apsw.Connection, context: str, number: int, after: int) -> list[CallRow]:
    """Return a batch of the calls of the model with a revision above *after*, or raise CorruptRecord. O(calls)."""
    texts: dict[Any, str | None] = {None: None}
    calls: list[CallRow] = []
    found: list[Row] = connection.execute(_SELECT_CALLS, (number << 40 | after, (number + 1) << 40)).fetchall()
    for key, *columns in found:
        call = CALLS.read(context, number, (key & MAX_REVISION, *columns))
        tools: Any = call.tools
        if tools not in texts:
            [text] = connection.execute(_SELECT_TOOLS, (number, tools)).fetchone() or (b"",)
            if digest(ORJSON, text) != tools:
                raise CorruptRecord(context, 0, "the list of tools of a call is not what was written")
            texts[tools] = text.decode()
        calls.append(call._replace(tools=texts[tools]))
    return calls
