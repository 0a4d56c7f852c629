"""One context as the inspector reads it: its record, its window now, its pages and its past.

    context = InspectedContext(storage, "alice")
    context.pages(first=901, last=1_000)        where they are
    context.head_at(38)                         how many messages there were at the close of turn 38
    context.page_of(812)                        the page that holds message 812

This module knows nothing of HTML.
"""

from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from typing import Final

from ...errors import MemciError
from ...history.loader import OpenRequest, loaded
from ...history.reader import PageInfo
from ...messages import text_of
from ...rows import CompactionRow, EntryRow, PageRow
from ...storage import Storage
from ...storage.codec import decode
from ...text.sanitize import one_line
from ...window import snapshot
from ...window.snapshot import Snapshot
from ..stored_pages import PageEntry, entries_of

TITLE: Final = 110
"""columns of a title"""
_NEAR: Final = 64
"""rows before a page that may hold parts of it"""


class InspectedContext:
    """One context of a store, as it is when this is made. O(messages in the window).

    Raises:
        InvalidSetting: If there is no such context.
        StorageError: If it can't be read; so do the methods.
    """

    def __init__(self, storage: Storage, id: str) -> None:  # noqa: A002 -- the name that is used everywhere
        self.storage = storage
        self.window, self.reader, _ = loaded(storage, OpenRequest(id, read_only=True, searchable=True, exact=True))
        self.record = self.window.record
        self.id, self.owner = self.record.id, self.record.owner
        self.last_page = self.record.next_page - 1
        self.last_turn = self.record.turn
        self._snapshots: dict[int, Snapshot] = {}

    def pages(self, *, first: int = 1, last: int | None = None) -> Iterator[PageInfo]:
        """Yield the pages from *first* to *last*, by index. O(these)."""
        window = self.window
        return self.reader.pages(self.record, window.state.pins, window.contents, {}, first=first, last=last)

    def page(self, index: int) -> PageInfo | None:
        """Return page *index*, None if there is none."""
        return next(self.pages(first=index, last=index), None)

    def row(self, index: int) -> PageRow | None:
        """Return the row of page *index*, None if there is none."""
        return next(self.storage.pages(self.id, first=index, last=index), None)

    def entries(self, row: PageRow) -> list[PageEntry]:
        """Return the messages of the page of *row*, also if it was taken back. O(messages of the page)."""
        return entries_of(self.reader, row, self.record)

    def title(self, page: PageInfo) -> str:
        """Return what *page* is about: what the Contents Page says of it, or else how its first text begins."""
        if page.title is not None:
            return one_line(page.title, TITLE)
        row = self.row(page.index)
        spans = () if row is None else row.spans(self.record.head)
        for first, end in spans[:1]:
            for entry in islice(self.storage.entries(self.id, first, end), 3):
                if text := text_of(decode(entry.codec, entry.body)).strip():
                    return one_line(text[:2_000], TITLE)
        return ""

    def tokens(self, row: PageRow) -> int:
        """Return what the messages of the page of *row* cost in a window, as they are counted now."""
        spans = row.spans(self.record.head)
        return sum(entry.tokens for span in spans for entry in self.storage.entries(self.id, *span))

    def head_at(self, turn: int) -> int:
        """Return how many messages there were at the close of *turn*. O(log pages)."""
        following = self.first_after(turn)
        row = self.row(following) if following <= self.last_page else None
        return self.record.head if row is None else row.first

    def first_after(self, turn: int) -> int:
        """Return the index of the first page after *turn*, or of the next new page. O(log pages)."""
        return bisect_right(range(self.record.next_page), turn, lo=1, key=self._turn)

    def page_of(self, seq: int) -> PageRow | None:
        """Return the page that holds message *seq*. O(log pages), as a rule."""
        index = bisect_right(range(self.record.next_page), seq, lo=1, key=self._first) - 1
        for first in (index - _NEAR, 1):
            for row in self.storage.pages(self.id, first=max(1, first)):
                if any(a <= seq < b for a, b in row.spans(self.record.head)):
                    return row
        return None

    def compaction_at(self, head: int) -> CompactionRow | None:
        """Return the newest compaction that was made before message *head* was appended. O(1)."""
        return next(iter(self.storage.compactions(self.id, head=head)), None)

    def snapshot(self, row: CompactionRow) -> Snapshot:
        """Return how the window stood after the compaction of *row*. O(its lines), once."""
        found = self._snapshots.get(row.revision)
        if found is None:
            found = self._snapshots[row.revision] = snapshot.loads(row, self.record)
        return found

    @cached_property
    def forks(self) -> tuple[str, ...]:
        """The contexts that were forked from this one."""
        try:
            return tuple(record.id for record in self.storage.forks(self.id))
        except MemciError:
            return ()

    def containing(self, needle: bytes) -> Iterator[EntryRow]:
        """Yield the messages whose stored bytes contain *needle*. O(messages), streamed."""
        return self.storage.entries(self.id, containing=needle)

    def _turn(self, index: int) -> int:
        row = self.row(index)
        return 0 if row is None else row.turn

    def _first(self, index: int) -> int:
        row = self.row(index)
        return 0 if row is None else row.first
