"""One context as the inspector reads it: its pages, its window now, and its past."""

from bisect import bisect_right
from typing import Final

from ...errors import MemciError
from ...history.as_of import AsOf
from ...history.loader import OpenRequest, load_context
from ...storage import Storage
from ...storage.protocol import CompactionRow, PageRow
from ...window import snapshot
from ...window.snapshot import Snapshot
from ...window.window import Window
from ...workers import cached_property
from ..stored_context import StoredContext

_NEAR: Final = 64  # pages before the expected one that are searched first: a part that was split off has a later number


class InspectedContext(StoredContext):
    """One context of a store with its past, as it is when this is made. O(messages in the window).

    It raises as `StoredContext`.
    """

    def __init__(self, storage: Storage, id: str) -> None:  # noqa: A002 -- the name that is used everywhere
        super().__init__(storage, id)
        self._snapshots: dict[int, Snapshot] = {}

    def head_at(self, turn: int) -> int:
        """Return how many messages there were at the close of *turn*. O(log pages)."""
        following = self.first_after(turn)
        row = self.row(following) if following <= self.last_page else None
        return self.record.head if row is None else row.first

    def first_after(self, turn: int) -> int:
        """Return the index of the first page after *turn*, or of the next new page. O(log pages)."""
        return bisect_right(range(self.record.next_page), turn, lo=1, key=lambda each: self._opening(each)[0])

    def page_of(self, seq: int) -> PageRow | None:
        """Return the page that holds message *seq*. O(log pages), as a rule."""
        index = bisect_right(range(self.record.next_page), seq, lo=1, key=lambda each: self._opening(each)[1]) - 1
        for first in (index - _NEAR, 1):
            for row in self.storage.pages(self.id, first=max(1, first)):
                if any(a <= seq < b for a, b in row.spans(self.record.head)):
                    return row
        return None

    def window_at(self, turn: int) -> Window:
        """Return the window as it was at the close of *turn*. O(messages in it)."""
        if turn == self.last_turn:
            return self.window
        then = AsOf(self.storage, self.id, turn)
        other = then.record.settings != self.record.settings  # the tokens in the store may be of another counter
        request = OpenRequest(self.id, read_only=True, searchable=True, exact=True, recount=other)
        return load_context(then, request).window

    def compaction_at(self, head: int) -> CompactionRow | None:
        """Return the newest compaction that was made before message *head* was appended. O(1)."""
        return next(iter(self.storage.compactions(self.id, head=head)), None)

    def snapshot(self, row: CompactionRow) -> Snapshot:
        """Return the state of the window after the compaction of *row*. O(its lines), once."""
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

    def _opening(self, index: int) -> tuple[int, int]:
        """Return the turn in which page *index* began, and its first message."""
        row = self.row(index)
        return (0, 0) if row is None else (row.turn, row.first)
