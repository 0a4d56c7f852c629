"""Reads one context from its store: its page rows, and its entries as messages.

What the window holds is known there, and is not read again.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final, Literal

from ..chapters.contents import ContentsPage
from ..errors import CorruptRecord, Erased, PageNotFound, Undone
from ..messages import Message, tool_calls
from ..rows import ContextRecord, EntryRow, PageRow, PageState, join_runs
from ..storage import Storage
from ..storage.codec import decode


@dataclass(frozen=True, slots=True)
class PageInfo:
    """Where a page is and how it was used. Turns count interactions, from 0."""

    index: int
    where: Literal["open", "active", "archived", "folded", "unloaded", "undone", "erased"]
    """open and active: verbatim in the window; the open page still grows. archived: on a line of the Contents Page.
    folded: within a range line. unloaded: not listed. undone: taken back. erased: its messages no longer exist"""
    line: str | None
    """its line on the Contents Page, without entries; a page without words of its own shares its neighbour's line.
    None if it is not on a line"""
    title: str | None
    """its line on the Contents Page, or its term within a range line; None if it has neither"""
    turn: int
    entries: int
    recall_count: int
    last_recalled_turn: int | None
    continues: int | None
    """the page that its messages were taken back from, if they were"""
    pinned: bool


_NAMES: dict[PageState, Literal["active", "folded", "unloaded", "undone", "erased"]] = {
    PageState.ACTIVE: "active",
    PageState.ARCHIVED: "folded",
    PageState.UNLOADED: "unloaded",
    PageState.UNDONE: "undone",
    PageState.ERASED: "erased",
}


_NEWEST: Final = 64  # pages at the end of a context, within which lists mostly differ
GONE: Final = (PageState.UNDONE, PageState.ERASED)  # the states of pages whose messages are no longer shown


class Reader:
    """Reads the entries and pages of one context from its store."""

    def __init__(self, storage: Storage, context: str) -> None:
        self._storage = storage
        self._context = context
        self._gone: tuple[tuple[int, tuple[PageState, ...]], list[tuple[int, int]]] = (0, ()), []
        """a revision with states of pages, and the runs of seqs of these pages"""

    def page(self, index: object, record: ContextRecord) -> PageRow:
        """Return the row of page *index*; raise PageNotFound if there is none, `Undone` or `Erased` if it is gone."""
        last = record.next_page - 1
        if type(index) is not int or not 1 <= index <= last:
            raise PageNotFound(index, (1, last) if last else None)
        row = self.row(index)
        if row.state is PageState.UNDONE:
            raise Undone(f"page #{index}")
        if row.state is PageState.ERASED:
            raise Erased(f"page #{index}")
        return row

    def row(self, index: int) -> PageRow:
        """Return the row of page *index*, which was opened, in any state. CorruptRecord if the store has lost it."""
        for row in self._storage.pages(self._context, first=index, last=index):
            return row
        raise CorruptRecord(self._context, -1, f"page #{index} was opened and is not in the store")

    def holding(self, row: PageRow, ordinal: int, record: ContextRecord) -> PageRow:
        """Return the page that holds entry *ordinal* of the interaction of *row*.

        Raises as `page`: `Undone` if it was taken back. O(1); for an entry that was taken back O(pages after *row*).
        """
        seq = self.base(row) + ordinal - 1
        if row.cut is not None and row.cut[0] <= seq < row.cut[-1] and not holds(row, seq, record.head):
            for other in self._storage.pages(self._context, first=row.index + 1):
                if other.continues == row.index and holds(other, seq, record.head):
                    return self.page(other.index, record)
        return row

    def base(self, row: PageRow) -> int:
        """Return the seq of the first message of the interaction that *row* belongs to."""
        return row.first if row.continues is None else self.row(row.continues).first

    def entries(self, row: PageRow, head: int) -> list[tuple[EntryRow, Message]]:
        """Return the entries of a page with their messages. O(messages of the page)."""
        return self.all_entries([row], head)[row.index]

    def message(self, seq: int) -> Message:
        """Return the message *seq*, which is stored. O(its bytes)."""
        (entry,) = self._storage.entries(self._context, seq, seq + 1)
        return decode(entry.codec, entry.body)

    def all_entries(
        self, rows: Sequence[PageRow], head: int, *, shown: bool = False
    ) -> dict[int, list[tuple[EntryRow, Message]]]:
        """Return the entries of *rows* by page, or only those that the window has *shown*. O(their messages).

        Adjacent runs are read together.
        """
        spans = sorted((*span, row.index) for row in rows for span in (row.shown if shown else row.spans)(head))
        found: dict[int, list[tuple[EntryRow, Message]]] = {row.index: [] for row in rows}
        start = 0
        while start < len(spans):
            stop = start + 1
            while stop < len(spans) and spans[stop][0] == spans[stop - 1][1]:
                stop += 1
            read = self._storage.entries(self._context, spans[start][0], spans[stop - 1][1])
            for first, end, index in spans[start:stop]:
                run = islice(read, end - first)
                found[index] += [(entry, decode(entry.codec, entry.body)) for entry in run]
            start = stop
        return found

    def made(self, ids: Collection[str]) -> set[str]:
        """Return which of *ids* belong to a tool call in some message. O(entries of the context)."""
        if not ids:
            return set()
        [*others, one] = ids
        needle = json.dumps("tool_calls" if others else one, ensure_ascii=False).encode("utf-8", "surrogatepass")
        stored = self._storage.entries(self._context, containing=needle)
        calls = (call["id"] for entry in stored for call in tool_calls(decode(entry.codec, entry.body)))
        return set(ids).intersection(calls)

    def pages(
        self,
        record: ContextRecord,
        pins: Sequence[int],
        contents: ContentsPage,
        known: Mapping[int, PageRow],
        *,
        first: int = 1,
        last: int | None = None,
    ) -> Iterator[PageInfo]:
        """Yield every page that was ever opened, by index, or those from *first* to *last*.

        *known*: rows that replace those of the store, because a compaction that is not stored has changed them.
        """
        stored = (known.get(row.index, row) for row in self._storage.pages(self._context, first=first, last=last))
        shown = (known[index] for index in sorted(known))
        lines = {index: line.line for index, line in contents.lines.items()}
        terms = {index: term for each in contents.ranges for index, term in each.terms}
        last = 0
        for row in chain(stored, shown):
            if row.index <= last:
                continue
            last = row.index
            line = lines.get(row.index)
            listed = row.state is PageState.ARCHIVED and line is not None
            yield PageInfo(
                row.index,
                "open" if row.index == record.open_page else "archived" if listed else _NAMES[row.state],
                line,
                terms.get(row.index) if line is None else line,
                row.turn,
                sum(end - first for first, end in row.spans(record.head)),
                row.recall_count,
                row.last_recalled_turn,
                row.continues,
                row.index in pins,
            )

    def messages(self, record: ContextRecord, start: int = 0) -> Iterator[Message]:
        """Yield every message in order from seq *start* on, but for undone and erased pages. O(messages)."""
        return (decode(entry.codec, entry.body) for entry in self.standing(record, start, GONE))

    def standing(self, record: ContextRecord, start: int, gone: Sequence[PageState]) -> Iterator[EntryRow]:
        """Yield the entries from seq *start* on, but for pages in one of the states *gone*. O(entries + such pages)."""
        for first, end in [*self._spans(record, *gone), (record.head, record.head)]:
            yield from self._storage.entries(self._context, start, first)
            start = max(start, end)

    def _spans(self, record: ContextRecord, *gone: PageState) -> list[tuple[int, int]]:
        """Return the runs of seqs of pages in the states *gone*. O(such pages) for a record, once."""
        if self._gone[0] != (record.revision, gone):
            rows = (row for state in gone for row in self._storage.pages(self._context, state=state))
            self._gone = (record.revision, gone), join_runs(span for row in rows for span in row.spans(record.head))
        return self._gone[1]

    def page_of(self, seq: int, record: ContextRecord) -> PageRow:
        """Return the page that holds the entry *seq*. O(pages), but for the newest ones."""
        newest = self._storage.pages(self._context, first=max(1, record.next_page - _NEWEST))
        return next(row for row in chain(newest, self._storage.pages(self._context)) if holds(row, seq, record.head))


def holds(row: PageRow, seq: int, head: int) -> bool:
    """Return whether the page holds the entry *seq*. O(its runs)."""
    return any(first <= seq < end for first, end in row.spans(head))
