"""Columns of SQLite as rows of the protocol, checked; `write` has the way there.

    columns                      their crc32, kept beside them
    (4294967297, 0, None, 1, …)  0x5d1e…     what is read must give the same again, or it is a CorruptRecord

    compaction 96                compressed alone, 97 with the text of 96 as the dictionary, 98 with that of 97, …

A body has a digest of its own. The crc is over the JSON of the other columns and includes the key, so that a row that
was moved is found, too.

This module knows nothing of transactions, files or forks.
"""

import zlib
from collections.abc import Sequence
from contextlib import closing
from itertools import chain, repeat
from typing import Any, Final

import apsw
import orjson

from ...errors import CorruptRecord
from ...rows import CallRow, CompactionRow, ContextRecord, EntryRow, OpRow, PageRow, PageState, Ticket
from ..codec import ORJSON, digest
from ..validation import MAX_PAGE, check_text, compaction_crc, crc

MAX_REVISION: Final = 2**40 - 1
_STATES: Final = tuple(PageState)
"""by their numbers: much cheaper than a call of the class"""

BATCH_ROWS: Final = 256
"""rows that one query reads"""
_BATCH_BYTES: Final = 2**20
CHAIN: Final = 8
"""compactions that are read for one, at most: the first of them was compressed alone"""
_NEEDS_DICTIONARY: Final = 0x20
"""the bit that says so, in the second byte of what zlib has compressed"""

_ENTRIES = """
SELECT e.id, e.tokens, e.clip, quotes_page, quotes_entry, at, e.crc, codec, digest, body, v.tokens, v.clip, v.crc
FROM entry AS e LEFT JOIN view AS v ON v.id = e.id + ? WHERE e.id >= ? AND e.id < ?"""

CONTEXT_COLUMNS = """
c.id, c.owner, c.settings, c.state, c.head, c.next_page, c.turn, c.open_page, c.revision, c.parent, c.base, c.crc"""

_SELECT_CONTEXTS = f"""
SELECT {CONTEXT_COLUMNS} FROM context AS c WHERE c.id >= ? AND (? IS NULL OR c.owner = ?) ORDER BY c.id LIMIT ?"""
_SELECT_CONTEXTS_AFTER = _SELECT_CONTEXTS.replace("c.id >= ?", "c.id > ?")
_SELECT_FORKS = f"SELECT {CONTEXT_COLUMNS} FROM context AS c WHERE c.parent = ? ORDER BY c.id"
_SELECT_ENTRIES = f"{_ENTRIES} ORDER BY e.id LIMIT {BATCH_ROWS}"
_SELECT_ENTRIES_AT = _SELECT_ENTRIES.replace("e.id >= ? AND e.id < ?", "e.id IN (SELECT value FROM json_each(?))")
_SELECT_ENTRIES_CONTAINING = f"{_ENTRIES} AND instr(body, ?) ORDER BY e.id LIMIT {BATCH_ROWS}"

PAGE_COLUMNS = """
id, first_seq, end_seq, turn, place, cut_first, cut_end, continues, archived_turn, recall_count, last_recalled_turn,
more_cuts, crc"""
_PAGES = f"SELECT {PAGE_COLUMNS} FROM page WHERE id >= ? AND id < ? ORDER BY id LIMIT {BATCH_ROWS}"
_PAGES_AT = _PAGES.replace("id >= ? AND id < ?", "id IN (SELECT value FROM json_each(?))")
_PAGES_IN_STATE = _PAGES.replace("ORDER", "AND place = ? ORDER")
_ACTIVE_PAGES = _PAGES.replace("WHERE", "INDEXED BY page_active WHERE place = 0 AND")
"""the partial index needs a constant"""

_SELECT_CHAIN = f"""
SELECT id, head, turn, crc, text FROM edition WHERE id >= ? AND id <= ? AND head <= ? ORDER BY id DESC LIMIT {CHAIN}"""
_SELECT_CALLS = f"""
SELECT id, seq, turn, at, model, predicted, input, cached_read, cached_written, output, tools, crc
FROM call WHERE id > ? AND id < ? ORDER BY id LIMIT {BATCH_ROWS}"""
_TICKETS = "SELECT context, token, holder, process, since, expires FROM ticket ORDER BY number"
_TICKETS_OF_ONE = _TICKETS.replace("ORDER BY", "WHERE context = ? ORDER BY")
_SELECT_TOOLS = "SELECT text FROM tools WHERE nr = ? AND digest = ?"

Row = tuple[Any, ...]
"""columns as SQLite has them; the crc covers their types"""


def read_context(row: Sequence[Any]) -> ContextRecord:
    """Return the record in *row*, or raise CorruptRecord."""
    *columns, written = row
    if not _matches(written, columns):
        raise CorruptRecord(str(columns[0]), 0, "the context's record is not what was written")
    return ContextRecord(*columns)


def read_contexts(
    connection: apsw.Connection, owner: str | None, after: str | None, limit: int | None
) -> list[ContextRecord]:
    """Return records by id: of *owner* or of all, after the id *after*, at most *limit*. O(those, and passed over)."""
    for name, text in (("owner", owner), ("after", after)):
        check_text(name, text or "")
    values = (after or "", owner, owner, -1 if limit is None else limit)
    statement = _SELECT_CONTEXTS if after is None else _SELECT_CONTEXTS_AFTER
    return [read_context(row) for row in connection.execute(statement, values)]


def read_forks(connection: apsw.Connection, context: str) -> list[ContextRecord]:
    """Return the records of the contexts that were forked from *context*, by id. O(these)."""
    return [read_context(row) for row in connection.execute(_SELECT_FORKS, (context,))]


def read_entry(context: str, seq: int, nr: int, shown_nr: int, row: Row) -> EntryRow:
    """Return the entry *seq* of context *nr* from *row*, or raise CorruptRecord, also if it is another one. O(bytes).

    Its view, if it has one, belongs to the context *shown_nr*: the same one, or a fork.
    """
    key, tokens, clip, page, entry, at, written, codec, body_digest, body, *view = row
    if key != nr << 40 | seq:
        raise CorruptRecord(context, seq, "it is missing")
    if not _matches(written, row[:6]):
        raise CorruptRecord(context, seq, "its row is not what was written")
    if not isinstance(codec, int) or not isinstance(body, bytes) or digest(codec, body) != body_digest:
        raise CorruptRecord(context, seq, "its bytes are not those that were written")
    quotes = None if page is None else (page, entry)
    if view[2] is not None:
        tokens, clip, written = view
        if not _matches(written, (shown_nr << 40 | seq, tokens, clip)):
            raise CorruptRecord(context, seq, "its view is not what was written")
    return EntryRow(seq, codec, body, body_digest, tokens, clip, quotes, at)


def read_batch(
    connection: apsw.Connection, context: str, nr: int, owner: int, seqs: Sequence[int], containing: bytes | None
) -> tuple[list[EntryRow], CorruptRecord | None]:
    """Return a batch of the entries with *seqs* from the first on, and the error of the one after them, if it has one.

    *seqs* is a range, or without *containing* any numbers in order.
    """
    entries: list[EntryRow] = []
    size, seq, following = 0, seqs[0], chain(seqs[1:], repeat(seqs[-1] + 1))
    views = (nr - owner) << 40
    if isinstance(seqs, range):
        values = (views, owner << 40 | seq, (owner << 40) + seqs.stop, *(() if containing is None else (containing,)))
        cursor = connection.execute(_SELECT_ENTRIES if containing is None else _SELECT_ENTRIES_CONTAINING, values)
    else:
        keys = orjson.dumps([owner << 40 | each for each in seqs]).decode()
        cursor = connection.execute(_SELECT_ENTRIES_AT, (views, keys))
    try:
        for columns in cursor:
            if containing is not None:
                seq = max(seq, columns[0] - (owner << 40))  # in a damaged tree a row may come twice: it is refused
            entries.append(read_entry(context, seq, owner, nr, columns))
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


def read_chain(connection: apsw.Connection, context: str, nr: int, revision: int, head: int = 2**62) -> list[Row]:
    """Return the newest compaction up to *revision* and *head*, and those that its text needs, newest first, packed.

    CorruptRecord if one of them is damaged. O(their bytes).
    """
    chain: list[Row] = []
    with closing(connection.execute(_SELECT_CHAIN, (nr << 40, nr << 40 | revision, head))) as found:
        for key, until, turn, written, packed in found:
            if not isinstance(packed, bytes) or not isinstance(until, int) or not isinstance(turn, int):
                raise CorruptRecord(context, 0, "a compaction is not what was written")
            if compaction_crc(key, until, turn, packed) != written:
                raise CorruptRecord(context, until, "a compaction is not what was written")
            chain.append((key & MAX_REVISION, until, turn, packed))
            if not packed[1] & _NEEDS_DICTIONARY:
                break
    return chain


def unpacked(context: str, chain: Sequence[Row]) -> list[CompactionRow]:
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


def read_pages(connection: apsw.Connection, nr: int, indexes: Sequence[int], state: PageState | None) -> list[Row]:
    """Return a batch of the rows of pages with *indexes*, by index: of a range, in *state*, or of any numbers."""
    if not isinstance(indexes, range):
        keys = orjson.dumps([nr << 32 | index for index in indexes]).decode()
        return connection.execute(_PAGES_AT, (keys,)).fetchall()
    span = nr << 32 | indexes.start, (nr << 32) + indexes.stop
    if state is None or state is PageState.ACTIVE:
        return connection.execute(_PAGES if state is None else _ACTIVE_PAGES, span).fetchall()
    return connection.execute(_PAGES_IN_STATE, (*span, int(state))).fetchall()


def read_page(context: str, nr: int, row: Row, indexes: Sequence[int], state: PageState | None) -> PageRow:
    """Return the page in *row*, or raise CorruptRecord, also if it is none of *indexes* or not in *state*."""
    *columns, more, written = row
    key, first, end, turn, place, cut_first, cut_end, *use = columns
    index = key & MAX_PAGE
    if not _matches(written, columns if more is None else [*columns, more]):
        raise CorruptRecord(context, first, f"page #{index} is not what was written")
    cut = None if cut_first is None else (cut_first, cut_end, *orjson.loads(more or "[]"))
    page = PageRow(index, first, end, turn, _STATES[place], cut, *use)
    if key >> 32 != nr or index not in indexes or state not in (None, page.state):
        reason = f"page #{index} was found where another page belongs: an index of the file is damaged"
        raise CorruptRecord(context, first, reason)
    return page


def read_op(context: str, row: Row) -> OpRow:
    """Return the op in *row*, or raise CorruptRecord."""
    op_id, op_digest, first, packed, written = row
    if not isinstance(op_digest, bytes) or not isinstance(first, int) or not isinstance(packed, bytes):
        raise CorruptRecord(context, 0, f"op {op_id!r} is not what was written")
    try:
        entries = tuple((page, ordinal) for page, ordinal in orjson.loads(packed))
    except ValueError:
        entries = ()
    if not _matches(written, (op_id, op_digest.hex(), first, entries)):
        raise CorruptRecord(context, first, f"op {op_id!r} is not what was written")
    return OpRow(op_id, op_digest, first, entries)


def read_tickets(connection: apsw.Connection, context: str | None) -> list[Ticket]:
    """Return the queue for the lock of *context*, or those of all. O(these)."""
    if context is None:
        return [Ticket(*row) for row in connection.execute(_TICKETS)]
    return [Ticket(*row) for row in connection.execute(_TICKETS_OF_ONE, (context,))]


def read_calls(connection: apsw.Connection, context: str, nr: int, after: int) -> list[CallRow]:
    """Return a batch of the calls of the model with a revision above *after*, or raise CorruptRecord. O(calls)."""
    texts: dict[bytes | None, str | None] = {None: None}
    calls: list[CallRow] = []
    found: list[Row] = connection.execute(_SELECT_CALLS, (nr << 40 | after, (nr + 1) << 40)).fetchall()
    for key, *columns, tools, written in found:
        if not _matches(written, (key, *columns, tools and tools.hex())):
            raise CorruptRecord(context, 0, "the row of a call of the model is not what was written")
        if tools not in texts:
            [text] = connection.execute(_SELECT_TOOLS, (nr, tools)).fetchone() or (b"",)
            if digest(ORJSON, text) != tools:
                raise CorruptRecord(context, 0, "the list of tools of a call is not what was written")
            texts[tools] = text.decode()
        calls.append(CallRow._make([key & MAX_REVISION, *columns, texts[tools]]))
    return calls


def _matches(written: object, columns: Sequence[object]) -> bool:
    try:
        found = crc(*columns)
    except orjson.JSONEncodeError:  # a flipped type: bytes, or text that is none
        return False
    return written in (found, found - 2**32)  # as it is, or signed
