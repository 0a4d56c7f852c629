r"""The rows of the protocol as lines of JSON, and back, checked.

    {"sum":"5d1e0a97","seq":812,"page":42,"codec":1,"tokens":9,"digest":"0f…","json":{"role":"user","content":"Hi"}}
    {"sum":"77c0b1d2","page":42,"first":812,"end":840,"turn":17,"place":"archived"}

`sum` is a crc32 over the rest of the line and the name of its folder, so that a line that was moved is found, too. A
body stands in the line byte for byte if it is a line of JSON, else as base64. A field with its default value is left
out.

    first line   {"sum":"…","memci":"pages","lines":3}       a file says how many lines follow: none is lost unseen

This module knows nothing of files or of what a context is.
"""

import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import orjson

from ...errors import CorruptRecord
from ..codec import digest
from ..protocol import CallRow, CompactionRow, EntryRow, OpRow, PageRow, PageState

Fields = dict[str, Any]
"""the fields of one line; its sum was checked, so their types are those that were written"""

_JSON: Final = b',"json":'
_BASE64: Final = b',"base64":"'
_STORED: Final = {"index": "page", "state": "place"}
"""the stored names of a page's fields that are called otherwise here"""
_MOST_MISSING: Final = 2**20
_PREFIX: Final = len('{"sum":"00000000",')


class Line(NamedTuple):
    """One line whose check sum is right."""

    fields: Fields
    body: bytes
    raw: bytes


class Lines(NamedTuple):
    """The lines of a file. Damaged lines are kept as they are, so that writing the file again loses nothing."""

    first: Fields
    good: Sequence[Line]
    damaged: Sequence[bytes]


def line(folder: str, fields: Mapping[str, object], body: bytes | None = None) -> bytes:
    """Return the line of *fields* and *body* in *folder*. O(bytes)."""
    rest = orjson.dumps(fields)[1:-1]
    if body is not None:
        rest += _JSON + body if _is_line_of_json(body) else _BASE64 + b64encode(body) + b'"'
    rest += b"}"
    return b'{"sum":"%08x",' % _sum(folder, rest) + rest


def read_line(folder: str, raw: bytes) -> Line | None:
    """Return what *raw* holds, None if that is not what was written. O(bytes)."""
    rest = raw[_PREFIX:]
    if raw[:_PREFIX] != b'{"sum":"%08x",' % _sum(folder, rest):
        return None
    try:
        for mark in (_JSON, _BASE64):
            at = rest.find(mark)  # fields hold no such bytes: within a string a quote is escaped
            if at >= 0:
                body = rest[at + len(mark) : -1]
                decoded = body if mark is _JSON else b64decode(body[:-1], validate=True)
                return Line(_object(b"{" + rest[:at] + b"}"), decoded, raw)
        return Line(_object(b"{" + rest), b"", raw)
    except ValueError:
        return None


def whole(folder: str, kind: str, lines: Sequence[bytes], **first: object) -> bytes:
    """Return the file of *lines*. O(bytes)."""
    return b"\n".join([line(folder, {"memci": kind, **first, "lines": len(lines)}), *lines, b""])


def read_lines(folder: str, kind: str, content: bytes) -> Lines:
    """Return the lines in *content*; what is missing counts as damaged. O(bytes)."""
    raw = content.removesuffix(b"\n").split(b"\n")
    first = read_line(folder, raw[0])
    read = [(each, read_line(folder, each)) for each in raw[1:]]
    good = [found for _, found in read if found is not None]
    damaged = [each for each, found in read if found is None]
    if first is None or first.fields.get("memci") != kind or type(first.fields.get("lines")) is not int:
        return Lines({}, good, [*damaged, raw[0]])
    missing = min(first.fields["lines"] - len(good) - len(damaged), _MOST_MISSING)
    return Lines(first.fields, good, damaged + [b"-"] * missing)


def entry_line(folder: str, row: EntryRow, page: int) -> bytes:
    """Return the line of *row*, which was appended to *page*. O(bytes)."""
    fields: Fields = {"seq": row.seq, "page": page, "codec": row.codec, "tokens": row.tokens, "clip": row.clip}
    fields |= {"quotes": row.quotes, "at": row.at, "digest": row.digest.hex()}
    return line(folder, _short(fields, {"clip": 0, "quotes": None, "at": None}), row.body)


def read_entry(context: str, found: Line) -> EntryRow:
    """Return the entry in *found*, or raise CorruptRecord. O(bytes)."""
    try:
        fields, written = found.fields, digest(found.fields["codec"], found.body)
        seq, codec, quotes = fields["seq"], fields["codec"], fields.get("quotes")
        if written.hex() != fields["digest"]:
            raise CorruptRecord(context, seq, "its bytes are not those that were written")
        quoted = None if quotes is None else (quotes[0], quotes[1])
        shown = fields["tokens"], fields.get("clip", 0), quoted, fields.get("at")
        return EntryRow(seq, codec, found.body, written, *shown)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, AttributeError) as error:
        raise _strange(context, error) from error


def page_line(folder: str, row: PageRow) -> bytes:
    """Return the line of *row*."""
    fields: Fields = {_STORED.get(name, name): value for name, value in row._asdict().items()}
    fields["place"] = row.state.name.lower()
    return line(folder, _short(fields, PageRow._field_defaults | {"end": None}))


def read_page(context: str, fields: Fields) -> PageRow:
    """Return the page in *fields*, or raise CorruptRecord."""
    try:
        stored = {name: _STORED.get(name, name) for name in PageRow._fields}
        found = {"end": None} | {name: fields[key] for name, key in stored.items() if key in fields}
        found["state"] = PageState[fields["place"].upper()]
        if found.get("cut") is not None:
            found["cut"] = tuple(found["cut"])
        return PageRow(**found)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise _strange(context, error) from error


def view_line(folder: str, seq: int, tokens: int, clip: int) -> bytes:
    """Return the line of a view of entry *seq*."""
    return line(folder, {"view": seq, "tokens": tokens, "clip": clip})


def op_line(folder: str, op: OpRow) -> bytes:
    """Return the line of *op*."""
    return line(folder, {"op": op.op_id, "digest": op.digest.hex(), "first": op.first, "entries": op.entries})


def read_op(context: str, fields: Fields) -> OpRow:
    """Return the op in *fields*, or raise CorruptRecord."""
    try:
        entries = tuple((page, ordinal) for page, ordinal in fields["entries"])
        return OpRow(fields["op"], bytes.fromhex(fields["digest"]), fields["first"], entries)
    except (KeyError, TypeError, ValueError) as error:
        raise _strange(context, error) from error


def compaction_line(folder: str, row: CompactionRow) -> bytes:
    """Return the line of *row*. O(characters)."""
    return line(folder, {"edition": row.revision, "head": row.head, "turn": row.turn}, row.text.encode())


def read_compaction(context: str, found: Line) -> CompactionRow:
    """Return the compaction in *found*, or raise CorruptRecord."""
    try:
        fields = found.fields
        return CompactionRow(fields["edition"], fields["head"], fields["turn"], found.body.decode())
    except (KeyError, ValueError) as error:
        raise _strange(context, error) from error


def call_line(folder: str, row: CallRow) -> bytes:
    """Return the line of *row*, whose `tools` are the name of a list's file."""
    fields = {"call": row.revision, **row._asdict()}
    del fields["revision"]
    return line(folder, _short(fields, {"at": None, "model": None, "tools": None}))


def read_call(context: str, fields: Fields) -> CallRow:
    """Return the call in *fields*, or raise CorruptRecord."""
    try:
        return CallRow._make([fields["call"], *map(fields.get, CallRow._fields[1:])])
    except KeyError as error:
        raise _strange(context, error) from error


def _sum(folder: str, rest: bytes) -> int:
    return zlib.crc32(rest, zlib.crc32(folder.encode()))


def _short(fields: Fields, absent: Mapping[str, object]) -> Fields:
    return {name: value for name, value in fields.items() if name not in absent or value != absent[name]}


def _is_line_of_json(body: bytes) -> bool:
    with suppress(ValueError):
        orjson.loads(body)
        return b"\n" not in body and b"\r" not in body
    return False


def _object(text: bytes) -> Fields:
    fields = orjson.loads(text)
    if not isinstance(fields, dict):
        raise ValueError("no object")  # noqa: TRY004 -- damage, like text that is no JSON
    return fields


def _strange(context: str, error: Exception) -> CorruptRecord:
    return CorruptRecord(context, 0, f"a line of its files was not written by memci ({type(error).__name__}: {error})")
