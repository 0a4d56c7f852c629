"""The rows of one context as a stream in a fixed order. An export writes it, a copy stores it, a check reads it.

    record    entry, its view, entry …    page …    compaction … (newest first)    op …    call …

A stream has the entries from the `base` of its record on, and the views of all entries. So a fork is copied with its
own entries only. Use `detach(record)` for all entries.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from ..errors import CorruptRecord, MemciError
from ..rows import (
    CALL,
    COMPACTION,
    CONTEXT,
    ENTRY,
    OP,
    PAGE,
    VIEW,
    CallRow,
    CompactionRow,
    ContextRecord,
    EntryRow,
    OpRow,
    PageRow,
    Table,
    ViewRow,
)
from ..storage import EphemeralStorage, Storage
from ..storage.codec import ERASED, decode, digest
from ..storage.protocol import Transition
from ..window.state import alone

Row: TypeAlias = ContextRecord | EntryRow | ViewRow | PageRow | CompactionRow | OpRow | CallRow
TABLES: Final = (CONTEXT, ENTRY, VIEW, PAGE, COMPACTION, OP, CALL)
"""the tables of a stream, in its order; but a view follows its entry"""
TABLE_OF: Final = {table.row: table for table in TABLES}
_ONE_BY_ONE: Final = 256
"""rows that are read one by one behind an unreadable one: about so many share a damaged part of a file"""


class Unread(NamedTuple):
    """A row that can't be read."""

    table: Table
    number: int
    """the seq of an entry or a view, or the index of a page; 0 for other tables, whose further rows are not read"""
    error: Exception


def detach(record: ContextRecord) -> ContextRecord:
    """Return *record* as that of a context which shares no entry with another one."""
    return record._replace(parent=None, base=0)


def rows_of(storage: Storage, record: ContextRecord) -> Iterator[Row]:
    """Yield the rows of the context of *record*, in bounded memory. O(rows).

    CorruptRecord if a row is missing or damaged. Compare revisions afterwards: another writer may have changed the
    context meanwhile. Words of other contexts are left out.
    """
    yield alone(record)
    appended = storage.entries(record.id, 0, record.head, as_appended=True)
    for entry, shown in zip(appended, storage.entries(record.id, 0, record.head), strict=True):
        if entry.seq >= record.base:
            yield entry
        if shown != entry:
            yield _view(shown)
    pages = 0
    for page in storage.pages(record.id, last=record.next_page - 1):
        yield page
        pages += 1
    if pages < record.next_page - 1:
        reason = f"{pages} pages are there, not {record.next_page - 1}: memci verify says which"
        raise CorruptRecord(record.id, -1, reason)
    yield from storage.compactions(record.id)
    yield from storage.ops(record.id)
    yield from storage.calls(record.id)


def _view(shown: EntryRow) -> ViewRow:
    return ViewRow(shown.seq, shown.tokens, shown.clip)


def readable_rows(storage: Storage, record: ContextRecord, *, exact: bool = True) -> Iterator[Row | Unread]:
    """Yield the rows of the context of *record*, with an `Unread` in the place of unreadable ones. O(rows).

    If not *exact*, read each entry once, as it is shown, and yield no views.
    """

    def pages(first: int, end: int) -> Iterator[PageRow]:
        return storage.pages(record.id, first=first, last=None if end == record.next_page else end - 1)

    yield alone(record)
    read_once = ((entry, entry) for entry in readable_entries(storage, record))
    appended = readable_entries(storage, record, as_appended=True)
    read_twice = zip(appended, readable_entries(storage, record), strict=True)
    for entry, shown in read_twice if exact else read_once:
        if isinstance(entry, Unread) or entry.seq >= record.base:
            yield entry
        if isinstance(entry, EntryRow) and shown != entry:
            yield shown._replace(table=VIEW) if isinstance(shown, Unread) else _view(shown)
    yield from _readable(PAGE, pages, 1, record.next_page)
    read: Callable[[str], Iterator[Row]]
    for table, read in ((COMPACTION, storage.compactions), (OP, storage.ops), (CALL, storage.calls)):
        try:
            yield from read(record.id)
        except (MemciError, ValueError) as error:
            yield Unread(table, 0, error)


def readable_entries(
    storage: Storage, record: ContextRecord, *, first: int = 0, as_appended: bool = False
) -> Iterator[EntryRow | Unread]:
    """Yield each entry of the context of *record* by seq, from *first*, or an `Unread` in its place. O(entries)."""

    def entries(first: int, end: int) -> Iterator[EntryRow]:
        for entry in storage.entries(record.id, first, end, as_appended=as_appended):
            decode(entry.codec, entry.body)
            yield entry

    return _readable(ENTRY, entries, first, record.head)


def readable_at(storage: Storage, context: str, seqs: Collection[int]) -> dict[int, EntryRow | None]:
    """Return those entries *seqs* that *context* has, by seq, None in the place of one that can't be read. O(these)."""
    try:
        return {row.seq: row for row in storage.entries_at(context, seqs)}
    except CorruptRecord:
        if len(seqs) == 1:
            return dict.fromkeys(seqs)
        return {seq: row for one in sorted(seqs) for seq, row in readable_at(storage, context, [one]).items()}


def _readable(table: Table, read: Callable[[int, int], Iterable[Any]], first: int, end: int) -> Iterator[Any]:
    """Yield the rows *first* to *end* of *table*, with an `Unread` in the place of unreadable ones.

    A damaged part of a file makes all rows fail that are read with it. So the rows behind it are read one by one.
    """
    at, apart = first, first
    while at < end:
        last = at + 1 if at < apart else end
        try:
            for row in read(at, last):
                if getattr(row, table.key) != at:
                    break
                yield row
                at += 1
            if at < last:
                raise CorruptRecord("", 0, "it is missing")
        except (MemciError, ValueError) as error:
            if at < apart:
                yield Unread(table, at, error)
                at += 1
            apart = at + _ONE_BY_ONE


def transition_of(rows: Iterable[Row]) -> Transition:
    """Return the transition that stores *rows*, a whole stream, as a new context. O(rows)."""
    found = defaultdict[type, list[Any]](list)
    for row in rows:
        found[type(row)].append(row)
    [record] = found[ContextRecord]
    return Transition(
        0,
        alone(record),
        tuple(found[EntryRow]),
        tuple(found[PageRow]),
        tuple(found[ViewRow]),
        compactions=tuple(reversed(found[CompactionRow])),
        ops=tuple(found[OpRow]),
        calls=tuple(found[CallRow]),
        arrives=True,
    )


def store_in_ram(transition: Transition) -> EphemeralStorage:
    """Return a store in RAM with the context of *transition*; entries that a fork shares are erased there. O(rows)."""
    shared = tuple(tombstone(seq, 1) for seq in range(transition.record.base))
    scratch = EphemeralStorage()
    record, entries = detach(transition.record), (*shared, *transition.entries)
    scratch.commit(transition._replace(record=record, entries=entries))
    return scratch


def tombstone(seq: int, tokens: int) -> EntryRow:
    """Return an entry that replaces a lost one, whose role is not known, either."""
    return EntryRow(seq, ERASED, b"user", digest(ERASED, b"user"), tokens)
