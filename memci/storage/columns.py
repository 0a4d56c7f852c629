"""Rows as columns with a check sum: what the tables of SQLite and Postgres have in common.

    PageRow(5, 10, 90, 7, ACTIVE, (11, 60), …)   ◀──▶   [5, 10, 90, 7, 0, "[11,60]", …, -1561837251]

The check sum is over the JSON of the columns, but for those that have a sum of their own, and of the place of the row:
the context that it belongs to. So a flipped bit is found when a row is read, and a row that was moved is found, too.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from operator import itemgetter
from typing import Any, Final, Generic, TypeVar
from zlib import crc32

from orjson import Fragment, dumps, loads

from .. import rows
from ..errors import CorruptRecord, brief
from .codec import ORJSON, digest

Row = tuple[Any, ...]  # columns as a database returns them
CHAIN: Final = 8  # compactions that are read for one at most; the first of them was compressed alone

_T = TypeVar("_T", bound=tuple[Any, ...])
_STATES: Final = tuple(rows.PageState)  # by their numbers: much cheaper than a call of the class


def check_sum(columns: Sequence[object]) -> int:
    """Return the check sum of *columns*, signed: SQLite keeps nearly each in 4 bytes. O(characters)."""
    found = crc32(dumps(columns, bytes.hex))  # JSON does not have bytes
    return found - (found >> 31 << 32)


def _read_list(text: str) -> tuple[Any, ...]:
    return tuple(tuple(each) if isinstance(each, list) else each for each in loads(text))


_CONVERSIONS: Final[dict[type, tuple[Callable[[Any], Any], Callable[[Any], Any]]]] = {
    tuple: (lambda values: dumps(values).decode(), _read_list),
    rows.PageState: (int, _STATES.__getitem__),
}
"""kinds of fields that no database has: how they are written and read"""


def joined(names: Iterable[str], table: str = "") -> str:
    """Return the *names* of columns as a list in a statement: of *table*, if there are several."""
    return ", ".join(f'{table}."{name}"' if table else f'"{name}"' for name in names)


class Columns(Generic[_T]):
    """The columns of a table: those of its row in their order, then the check sum.

    Args:
        table: Their description.
        name: What an error calls a row; {} is its key.
        seq: The field that says at which message a damaged row belongs.
    """

    def __init__(self, table: rows.Table, name: str, seq: str | None = None) -> None:
        fields = [field.name for field in table.fields]
        self.table = table
        self.names = [*fields, "sum"]
        self.texts = [
            at for at, field in enumerate(table.fields) if field.kind is str and field.name not in table.packed
        ]
        """the places of texts"""
        self._name = name
        self._seq = fields.index(seq) if seq else None
        self._make: Callable[[Iterable[Any]], _T] = partial(tuple.__new__, table.row)
        self._converted = [
            (at, *_CONVERSIONS[field.kind]) for at, field in enumerate(table.fields) if field.kind in _CONVERSIONS
        ]
        self._summed = itemgetter(*(at for at, field in enumerate(fields) if field not in table.apart))

    def write(self, place: int | str, row: _T) -> list[Any]:
        """Return the columns of *row* at *place*. O(characters)."""
        columns = list(row)
        for at, write, _ in self._converted:
            if columns[at] is not None:
                columns[at] = write(columns[at])
        columns.append(check_sum((place, *self._summed(columns))))
        return columns

    def read(self, context: str, place: int | str, columns: Sequence[Any]) -> _T:
        """Return the row of *context* that `write` gave these *columns*, or raise CorruptRecord. O(characters)."""
        try:
            if check_sum((place, *self._summed(columns))) == columns[-1]:
                values = [*columns]
                values.pop()
                for at, _, read in self._converted:
                    if values[at] is not None:
                        values[at] = read(values[at])
                return self._make(values)
        except (ValueError, TypeError, IndexError):  # a column has another type now
            pass
        seq = 0 if self._seq is None else columns[self._seq]
        reason = f"{self._name.format(brief(columns[0]))} is not what was written"
        raise CorruptRecord(context, seq if isinstance(seq, int) else 0, reason)


class _ContextColumns(Columns[rows.ContextRecord]):
    """Those of a context, whose settings are long and the same in most transitions."""

    def write(self, place: int | str, row: rows.ContextRecord) -> list[Any]:
        id_, owner, settings, *rest = row
        return [*row, check_sum((place, id_, owner, _as_json(settings), *rest))]


@lru_cache(maxsize=64)
def _as_json(settings: str) -> Fragment:
    return Fragment(dumps(settings))


CONTEXTS: Final = _ContextColumns(rows.CONTEXT, "the context's record")
ENTRIES: Final = Columns[rows.EntryRow](rows.ENTRY, "its row", "seq")
VIEWS: Final = Columns[rows.ViewRow](rows.VIEW, "its view", "seq")
PAGES: Final = Columns[rows.PageRow](rows.PAGE, "page #{}", "first")
COMPACTIONS: Final = Columns[rows.CompactionRow](rows.COMPACTION, "a compaction", "head")
OPS: Final = Columns[rows.OpRow](rows.OP, "op {}", "first")
CALLS: Final = Columns[rows.CallRow](rows.CALL, "the row of a call of the model", "seq")
_WIDTH: Final = len(ENTRIES.names)  # columns of an entry, behind which those of its view are read


def read_entry(context: str, place: int | str, shown: int | str, columns: Sequence[Any]) -> rows.EntryRow:
    """Return the entry at *place* as it stands *shown*: *columns* are its own, and those of its view but for the key.

    CorruptRecord about *context* if they are not what was written. O(bytes).
    """
    entry = ENTRIES.read(context, place, columns[:_WIDTH])
    codec, body = entry.codec, entry.body
    if not isinstance(codec, int) or not isinstance(body, bytes) or digest(codec, body) != entry.digest:
        raise CorruptRecord(context, entry.seq, "its bytes are not those that were written")
    if columns[-1] is None:
        return entry
    _, tokens, clip = VIEWS.read(context, shown, (entry.seq, *columns[_WIDTH:]))
    return entry._replace(tokens=tokens, clip=clip)


def pack_tools(calls: Iterable[rows.CallRow]) -> tuple[list[rows.CallRow], dict[bytes, bytes]]:
    """Return *calls* with the digest of its list of tools in each, and these lists by their digests. O(characters)."""
    named: dict[Any, Any] = {
        each.tools: digest(ORJSON, each.tools.encode()) for each in calls if each.tools is not None
    }
    packed = [each._replace(tools=named.get(each.tools)) for each in calls]
    return packed, {digest_of: tools.encode() for tools, digest_of in named.items()}
