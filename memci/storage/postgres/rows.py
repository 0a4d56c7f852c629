r"""Columns of Postgres as rows of contexts, and the way back.

    write_row   row      ──▶  `Columns.write`, which adds the check sum  ──▶  texts escape   ──▶  columns
    read_row    columns  ──▶  texts as they are  ──▶  `Columns.read`, which compares the check sum  ──▶  row

Postgres keeps no NUL in a text, so a text is written with \x01\x01 in its place, and \x01\x02 in the place of \x01:
the order of texts stays.
"""

import re
import zlib
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, TypeVar

from ...errors import CorruptRecord
from ...rows import CallRow, CompactionRow, ContextRecord
from ..codec import ORJSON, digest
from ..columns import CALLS, COMPACTIONS, CONTEXTS, Columns, Row

_T = TypeVar("_T", bound=tuple[Any, ...])
_Text = TypeVar("_Text", str, str | None)
_ESCAPED = re.compile("\x01(.)", re.DOTALL)


def escape(text: _Text) -> _Text:
    """Return *text* as Postgres keeps it. O(characters)."""
    if text is None or ("\x00" not in text and "\x01" not in text):
        return text
    return text.replace("\x01", "\x01\x02").replace("\x00", "\x01\x01")


def unescape(text: _Text) -> _Text:
    """Return the text for which `escape` returned *text*. O(characters)."""
    if text is None or "\x01" not in text:
        return text
    return _ESCAPED.sub(lambda found: "\x00" if found[1] == "\x01" else "\x01", text)


def key_of(name: str) -> bytes:
    """Return the key of a context or an op by its id: 16 bytes. O(characters)."""
    return blake2b(name.encode(), digest_size=16).digest()


def owner_key(owner: str) -> int:
    """Return the key of *owner*, by which a cluster may be split: 64 bits. O(characters)."""
    return int.from_bytes(blake2b(owner.encode(), digest_size=8).digest(), "big", signed=True)


def write_row(columns: Columns[Any], context: str, row: Row) -> list[Any]:
    """Return the columns of *row* as Postgres keeps them; the check sum is over the text as it is. O(characters)."""
    made = columns.write(context, row)
    for at in columns.texts:
        made[at] = escape(made[at])
    return made


def read_row(columns: Columns[_T], shown: str, context: str, row: Sequence[Any]) -> _T:
    """Return the row of *context* in the columns *row*, or raise CorruptRecord about *shown*. O(characters)."""
    return columns.read(shown, context, unescaped(columns, row))


def unescaped(columns: Columns[Any], row: Sequence[Any]) -> list[Any]:
    """Return *row* with its texts as they are."""
    plainly = [*row]
    for at in columns.texts:
        plainly[at] = unescape(plainly[at])
    return plainly


def read_context(row: Sequence[Any]) -> ContextRecord:
    """Return the record in *row*, or raise CorruptRecord."""
    return read_row(CONTEXTS, unescape(str(row[0])), "", row)


def read_compaction(context: str, row: Row) -> CompactionRow:
    """Return the compaction in *row*, or raise CorruptRecord. O(characters)."""
    found = read_row(COMPACTIONS, context, context, row)
    packed: Any = found.text
    return CompactionRow._make([*found[:-1], zlib.decompress(packed).decode()])


def read_call(context: str, row: Row) -> CallRow:
    """Return the call of the model in *row*, or raise CorruptRecord."""
    *columns, text = row
    call = read_row(CALLS, context, context, columns)
    tools: Any = call.tools
    if tools is not None and (text is None or digest(ORJSON, text) != tools):
        raise CorruptRecord(context, call.seq, "the list of tools of a call is not what was written")
    return call if tools is None else call._replace(tools=text.decode())
