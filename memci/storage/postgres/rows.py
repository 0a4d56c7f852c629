r"""Columns of Postgres as rows of the protocol, checked; `write` has the way there.

    columns                       their crc32 with the id of the context, kept beside them
    ("alice", 0, 12, 0, None, …)  0x5d1e…     what is read must give the same again, or it is a CorruptRecord

A body has a digest of its own. Postgres keeps no NUL in a text, so a text is written with \x01\x01 in its place, and
\x01\x02 in the place of \x01: the order of texts stays. This module knows nothing of statements or connections.
"""

import re
import zlib
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, overload

import orjson

from ...errors import CorruptRecord
from ...rows import CallRow, CompactionRow, ContextRecord, EntryRow, OpRow, PageRow, PageState, Ticket
from ..codec import ORJSON, digest
from ..validation import compaction_crc, crc

Row = tuple[Any, ...]

_ESCAPED = re.compile("\x01(.)", re.DOTALL)


@overload
def escaped(text: str) -> str: ...
@overload
def escaped(text: str | None) -> str | None: ...
def escaped(text: str | None) -> str | None:
    """Return *text* as Postgres keeps it. O(characters)."""
    if text is None or ("\x00" not in text and "\x01" not in text):
        return text
    return text.replace("\x01", "\x01\x02").replace("\x00", "\x01\x01")


@overload
def plain(text: str) -> str: ...
@overload
def plain(text: str | None) -> str | None: ...
def plain(text: str | None) -> str | None:
    """Return what was `escaped` as *text*. O(characters)."""
    if text is None or "\x01" not in text:
        return text
    return _ESCAPED.sub(lambda found: "\x00" if found[1] == "\x01" else "\x01", text)


def key_of(name: str) -> bytes:
    """Return the key of a context by its id, or of an op: 16 bytes. O(characters)."""
    return blake2b(name.encode(), digest_size=16).digest()


def owner_key(owner: str) -> int:
    """Return the key of *owner*, by which a cluster may be split: 64 bits. O(characters)."""
    return int.from_bytes(blake2b(owner.encode(), digest_size=8).digest(), "big", signed=True)


def record_crc(record: ContextRecord) -> int:
    """Return the check sum of *record*."""
    return crc(*record)


def entry_crc(context: str, row: EntryRow) -> int:
    """Return the check sum of the small columns of *row*."""
    return crc(context, row.seq, row.tokens, row.clip, row.quotes, row.at)


def page_crc(context: str, page: PageRow) -> int:
    """Return the check sum of *page*."""
    return crc(context, *page)


def op_crc(context: str, op: OpRow) -> int:
    """Return the check sum of *op*."""
    return crc(context, op.op_id, op.digest.hex(), op.first, op.entries)


def call_crc(context: str, row: CallRow, tools: bytes | None) -> int:
    """Return the check sum of *row*; *tools* is the digest of its list."""
    return crc(context, *row[:-1], tools and tools.hex())


def packed_crc(context: str, revision: int, head: int, turn: int, packed: bytes) -> int:
    """Return the check sum of a compaction. O(bytes)."""
    return compaction_crc(crc(context, revision), head, turn, packed)


def read_context(row: Sequence[Any]) -> ContextRecord:
    """Return the record in *row*, or raise CorruptRecord."""
    *columns, written = row
    record = ContextRecord._make(plain(each) if isinstance(each, str) else each for each in columns)
    if record_crc(record) != written:
        raise CorruptRecord(record.id, 0, "the context's record is not what was written")
    return record


def read_entry(context: str, owner: str, row: Row) -> EntryRow:
    """Return the entry in *row*, which context *owner* keeps and *context* shows, or raise CorruptRecord. O(bytes)."""
    seq, tokens, clip, page, entry, at, written, codec, body_digest, body, *view = row
    found = EntryRow(seq, codec, body, body_digest, tokens, clip, None if page is None else (page, entry), plain(at))
    if entry_crc(owner, found) != written:
        raise CorruptRecord(context, seq, "its row is not what was written")
    if digest(codec, body) != body_digest:
        raise CorruptRecord(context, seq, "its bytes are not those that were written")
    if view[2] is not None:
        tokens, clip, written = view
        if crc(context, seq, tokens, clip) != written:
            raise CorruptRecord(context, seq, "its view is not what was written")
        return found._replace(tokens=tokens, clip=clip)
    return found


def read_page(context: str, row: Row) -> PageRow:
    """Return the page in *row*, or raise CorruptRecord."""
    index, first, end, turn, state, cut, *use, written = row
    try:
        page = PageRow(
            index, first, end, turn, PageState(state), None if cut is None else tuple(orjson.loads(cut)), *use
        )
    except ValueError:
        page = None
    if page is None or page_crc(context, page) != written:
        raise CorruptRecord(context, first, f"page #{index} is not what was written")
    return page


def read_compaction(context: str, row: Row) -> CompactionRow:
    """Return the compaction in *row*, or raise CorruptRecord. O(characters)."""
    revision, head, turn, written, packed = row
    if packed_crc(context, revision, head, turn, packed) != written:
        raise CorruptRecord(context, head, "a compaction is not what was written")
    return CompactionRow(revision, head, turn, zlib.decompress(packed).decode())


def read_op(context: str, row: Row) -> OpRow:
    """Return the op in *row*, or raise CorruptRecord."""
    op_id, op_digest, first, entries, written = row
    try:
        op = OpRow(plain(op_id), op_digest, first, tuple((page, at) for page, at in orjson.loads(entries)))
    except (ValueError, TypeError):
        op = None
    if op is None or op_crc(context, op) != written:
        raise CorruptRecord(context, first, f"op {op_id!r} is not what was written")
    return op


def read_call(context: str, row: Row) -> CallRow:
    """Return the call of the model in *row*, or raise CorruptRecord."""
    revision, seq, turn, at, model, *cost, tools, written, text = row
    call = CallRow._make([revision, seq, turn, plain(at), plain(model), *cost, None if text is None else text.decode()])
    if call_crc(context, call, tools) != written:
        raise CorruptRecord(context, seq, "the row of a call of the model is not what was written")
    if tools is not None and (text is None or digest(ORJSON, text) != tools):
        raise CorruptRecord(context, seq, "the list of tools of a call is not what was written")
    return call


def read_ticket(row: Row) -> Ticket:
    """Return the ticket in *row*."""
    return Ticket._make(plain(each) if isinstance(each, str) else each for each in row)
