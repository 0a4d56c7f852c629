"""Verifying: whether everything that a store holds of a context is there and consistent.

    entries      each is there, and its digest is right          pages    each entry is on exactly one page
    marks        each pinned page, and each to be listed again, is one that can be shown
    compactions  each can be read; in the last one, each archived page is on exactly one line, and no other page
    ops, calls   each names entries that are there

It is the public counterpart of the `_check` methods. It reads everything and changes nothing. This module knows nothing
of windows.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from ..errors import CorruptRecord, KeyMissing, MemciError
from ..rows import ContextRecord, EntryRow, PageRow, PageState
from ..storage import Storage
from ..storage.codec import decode
from ..window import snapshot as snapshots
from ..window.state import WindowState
from .reader import GONE

_APART = 256
"""rows that are read one by one behind one that can't be read"""
_Row = TypeVar("_Row", EntryRow, PageRow)


def problems(storage: Storage, context: str, *, on_entry: Callable[[], None] = lambda: None) -> Iterator[str]:
    """Yield a sentence for everything that is wrong with *context*; *on_entry* is called per entry. O(entries).

    KeyMissing if a key was not given: nothing is known of it then.
    """
    try:
        found = storage.load(context)
        if found is None:
            yield f"there is no context {context!r:.60}"
            return
        record, compaction = found
        yield from _entries(storage, record, on_entry)
        rows = list(storage.pages(context))
    except KeyMissing:
        raise
    except (MemciError, ValueError) as error:
        yield str(error)
        return
    yield from _pages(record, rows)
    yield from _readable(_marked(record, rows))
    yield from _listed(compaction, rows)
    yield from _readable(_compactions(storage, record))
    yield from _readable(_ops(storage, record))
    yield from _readable(_calls(storage, record))


def page_problem(row: PageRow, record: ContextRecord) -> str | None:
    """Return what is wrong with *row* as a page of the context of *record*, or None. O(1)."""
    end = record.head if row.end is None else row.end
    bounds = [row.first, *(row.cut or ()), end, record.head]
    if not 1 <= row.index < record.next_page:
        return f"page #{row.index} was never opened: the next one is #{record.next_page}"
    if bounds != sorted(bounds) or len(bounds) % 2 == 0:
        return f"page #{row.index} does not hold a run of the {record.head:,} messages"
    if (row.end is None) != (row.index == record.open_page):
        return f"page #{row.index} is open, or the open page of the context, but not both"
    if row.continues is not None and row.continues >= row.index:
        return f"page #{row.index} can't continue #{row.continues}, which is not before it"
    return None


def page_problems(record: ContextRecord, rows: Sequence[PageRow]) -> Iterator[str]:
    """Yield what is wrong with *rows*: pages of the context of *record*, the open one among them. O(rows)."""
    yield from filter(None, (page_problem(row, record) for row in rows))
    if record.open_page is not None and all(row.index != record.open_page for row in rows):
        yield f"page #{record.open_page} is open and is not there"
    reached = 0
    for first, end, index in sorted((*span, row.index) for row in rows for span in row.spans(record.head)):
        if first < reached:
            yield f"entry {first} is on page #{index} and on another one"
        reached = max(reached, end)


def gaps(record: ContextRecord, rows: Iterable[PageRow]) -> list[tuple[int, int]]:
    """Return the runs of entries of the context of *record* that are on none of the pages *rows*. O(rows)."""
    found, reached = [], 0
    for first, end in [*sorted(span for row in rows for span in row.spans(record.head)), (record.head, record.head)]:
        if first > reached:
            found.append((reached, first))
        reached = max(reached, end)
    return found


def _readable(found: Iterator[str]) -> Iterator[str]:
    """Yield the problems *found*; an error on the way is a problem, too."""
    try:
        yield from found
    except KeyMissing:
        raise
    except (MemciError, ValueError, KeyError, TypeError) as error:
        yield str(error) if isinstance(error, MemciError) else f"it can't be read: {error!r:.100}"


def _compactions(storage: Storage, record: ContextRecord) -> Iterator[str]:
    revision, head = record.revision + 1, record.head
    for row in storage.compactions(record.id):
        if row.revision >= revision or row.head > head:
            yield f"the compaction of revision {row.revision} is not older than the one after it"
        revision, head = row.revision, row.head
        snapshots.loads(row, record)


def _ops(storage: Storage, record: ContextRecord) -> Iterator[str]:
    for row in storage.ops(record.id):
        if row.first < record.base or row.first + len(row.entries) > record.head:
            yield f"the op {row.op_id!r:.60} names messages that are not there"


def _calls(storage: Storage, record: ContextRecord) -> Iterator[str]:
    revision = 0
    for row in storage.calls(record.id):
        if not (revision < row.revision and row.seq <= record.head and row.turn < max(record.next_page, 1)):
            yield f"the call of the model of revision {row.revision} is not one of this context"
        revision = row.revision


def _entries(storage: Storage, record: ContextRecord, on_entry: Callable[[], None]) -> Iterator[str]:
    for seq, entry in entries_or_errors(storage, record):
        if isinstance(entry, KeyMissing):
            raise entry
        if isinstance(entry, EntryRow):
            on_entry()
        else:
            yield f"entry {seq}: {entry}"


def entries_or_errors(
    storage: Storage, record: ContextRecord, *, as_appended: bool = False
) -> Iterator[tuple[int, EntryRow | Exception]]:
    """Yield the entries of the context of *record* by seq, each checked, or why one can't be read. O(entries)."""

    def read(first: int, end: int) -> Iterator[EntryRow]:
        for entry in storage.entries(record.id, first, end, as_appended=as_appended):
            decode(entry.codec, entry.body)
            yield entry

    return rows_or_errors(read, 0, record.head, lambda row: row.seq)


def rows_or_errors(
    read: Callable[[int, int], Iterable[_Row]], first: int, end: int, number: Callable[[_Row], int]
) -> Iterator[tuple[int, _Row | Exception]]:
    """Yield the rows *first* to *end* by their number, or why one can't be read; behind such a one they are read apart.

    A damaged part of a file makes all fail that are read together with it.
    """
    at, apart = first, first
    while at < end:
        last = at + 1 if at < apart else end
        try:
            for row in read(at, last):
                if number(row) != at:
                    raise CorruptRecord("", 0, "it is missing")
                yield at, row
                at += 1
            if at < last:
                raise CorruptRecord("", 0, "it is missing")
        except (MemciError, ValueError) as error:
            if at < apart:
                yield at, error
                at += 1
            apart = at + _APART


def _pages(record: ContextRecord, rows: Sequence[PageRow]) -> Iterator[str]:
    yield from page_problems(record, rows)
    for first, end in gaps(record, rows):
        yield f"entries {first} to {end - 1} are on no page"
    missing = sorted(set(range(1, record.next_page)) - {row.index for row in rows})
    if missing:
        yield f"pages {missing[:10]} were opened and are not there"


def _marked(record: ContextRecord, rows: Sequence[PageRow]) -> Iterator[str]:
    state = WindowState.loads(record.state)
    gone = {row.index for row in rows if row.state in GONE}
    if marked := sorted(gone.intersection((*state.pins, *state.relist))):
        yield f"pages {marked[:10]} are pinned or to be listed, and were taken back or erased"


def _listed(compaction: str | None, rows: Sequence[PageRow]) -> Iterator[str]:
    archived = {row.index for row in rows if row.state is PageState.ARCHIVED}
    try:
        listed = snapshots.contents(compaction).listed if compaction is not None else []
    except (ValueError, KeyError, TypeError) as error:
        yield f"the Contents Page can't be read: {error}"
        return
    if len(set(listed)) < len(listed):
        yield "a page is listed twice"
    if lost := sorted(archived - set(listed)):
        yield f"pages {lost[:10]} are archived but not listed"
    if unknown := sorted(set(listed) - archived):
        yield f"pages {unknown[:10]} are listed but not archived"
