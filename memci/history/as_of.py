"""The past of a context, as a store that can only be read.

    AsOf(storage, "alice", turn=41).load("alice")    the record and the window as they stood when turn 41 closed

Messages are never changed and page numbers never used again, so the past is the newest moment before that time
(`moments`), the pages that were opened since, and nothing after. What was undone or erased later is not shown again;
how often a page was recalled is told as it is now. This module knows nothing of windows.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NoReturn

from ..errors import CorruptRecord, InvalidSetting, StorageReadOnly
from ..storage import Storage
from ..storage.protocol import CompactionRow, ContextRecord, EntryRow, Erasure, OpRow, PageRow, PageState, Transition
from ..window import snapshot as snapshots
from ..window.snapshot import Snapshot
from ..window.state import WindowState

_GONE = (PageState.UNDONE, PageState.ERASED)


class AsOf:
    """One context of *storage* as it stood at the close of *turn*: when the next one began, or now.

    Args:
        storage: Where it is.
        context: Its id.
        turn: From 0, as a page's `turn`.

    Raises:
        InvalidSetting: If there is no such context or turn, or what was then is not known any more.
    """

    def __init__(self, storage: Storage, context: str, turn: int) -> None:
        found = storage.load(context)
        if found is None:
            raise InvalidSetting("id", f"there is no context {context!r:.60} in this store, and reading makes none")
        record = found[0]
        if type(turn) is not int or not 0 <= turn <= record.turn:
            raise InvalidSetting("at", f"expected a turn from 0 to {record.turn}, got {turn!r:.60}")
        self.storage = storage
        """the store itself"""
        self._context = context
        self._turn = turn
        following = self._following(record)
        head = record.head if following is None else following.first
        state = WindowState.loads(record.state)
        if head < state.since:
            raise InvalidSetting(
                "at", f"what was before message {state.since} is not known here: forked or erased there"
            )
        self._compaction = next(storage.compactions(context, head=head), None)
        snapshot = self._snapshot(record, self._compaction)
        then = snapshot.record if snapshot is not None and snapshot.record is not None else self._first(record)
        next_page = record.next_page if following is None else following.index
        since = 1 if snapshot is None else then.next_page
        opened = [row for row in storage.pages(context, first=since, last=next_page - 1) if row.continues is None]
        self._active = {row.index: row for row in (*(snapshot.active if snapshot else ()), *opened)}
        self._listed = frozenset(snapshot.contents.listed) if snapshot is not None else frozenset[int]()
        last = opened[-1].index if opened else (snapshot and then.open_page)
        if last and next(storage.pages(context, first=last, last=last)).state in _GONE:
            last = None
        state = self._window_state(WindowState.loads(then.state), next_page)
        self.record = then._replace(
            head=head, turn=turn, next_page=next_page, open_page=last or None, state=state.dumps()
        )
        """the record as it was"""

    def load(self, context: str) -> tuple[ContextRecord, str | None] | None:
        """Return the record and the compaction as they were."""
        if context != self._context:
            return None
        return self.record, None if self._compaction is None else self._compaction.text

    def revision(self, context: str) -> int:
        """Return the revision that this past was read at: it does not change."""
        return self.record.revision if context == self._context else 0

    def pages(
        self, context: str, *, first: int = 1, last: int | None = None, state: PageState | None = None
    ) -> Iterator[PageRow]:
        """Yield the pages as they were, by index. O(pages yielded) by index or by `PageState.ACTIVE`."""
        end = self.record.next_page - 1 if last is None else min(last, self.record.next_page - 1)
        if state is PageState.ACTIVE:
            indexes = [index for index in sorted(self._active) if first <= index <= end]
            rows = (row for index in indexes for row in self.storage.pages(context, first=index, last=index))
        else:
            rows = (row for row in self.storage.pages(context, first=first, last=end))
        return (row for row in map(self._then, rows) if state is None or row.state is state)

    def entries(
        self, context: str, first: int = 0, end: int | None = None, *, containing: bytes | None = None
    ) -> Iterator[EntryRow]:
        """Yield the entries that were there."""
        head = self.record.head
        return self.storage.entries(context, first, head if end is None else min(end, head), containing=containing)

    def compactions(self, context: str, *, head: int | None = None) -> Iterator[CompactionRow]:
        """Yield the compactions that were there, newest first."""
        then = self.record.head
        return self.storage.compactions(context, head=then if head is None else min(head, then))

    def ops(self, context: str) -> Iterator[OpRow]:
        """Yield the ops that were there."""
        return (op for op in self.storage.ops(context) if op.first < self.record.head)

    def contexts(self) -> Sequence[ContextRecord]:
        """Return the one record."""
        return [self.record]

    def commit(self, transition: Transition) -> NoReturn:  # noqa: ARG002 -- the protocol's
        """Refuse: the past does not change."""
        raise StorageReadOnly(f"context {self._context!r:.60} was opened as it was in turn {self._turn}: fork it there")

    def erase(self, erasure: Erasure) -> NoReturn:  # noqa: ARG002 -- the protocol's
        """Refuse: erase it in the store itself."""
        raise StorageReadOnly(f"context {self._context!r:.60} was opened as it was in turn {self._turn}")

    def hold(self, context: str, seconds: float) -> Callable[[], None]:
        """Take the lock of *context*, as the store does."""
        return self.storage.hold(context, seconds)

    def close(self) -> None:
        """Close the store itself."""
        self.storage.close()

    def _following(self, record: ContextRecord) -> PageRow | None:
        """Return the first page of the turn after, found by halving: turns count up with the indexes."""
        low, high = 1, record.next_page
        found = None
        while low < high:
            middle = (low + high) // 2
            row = next(self.storage.pages(self._context, first=middle, last=middle), None)
            if row is None:
                raise CorruptRecord(self._context, -1, f"page #{middle} was given out and is not in the store")
            if row.turn > self._turn:
                high, found = middle, row
            else:
                low = middle + 1
        return found

    def _snapshot(self, record: ContextRecord, compaction: CompactionRow | None) -> Snapshot | None:
        if compaction is None:
            return None
        snapshot = snapshots.loads(
            compaction.text, record, nonce="", weigh=None, head=compaction.head, turn=compaction.turn
        )
        if snapshot.record is None:
            raise InvalidSetting("at", "an earlier memci wrote this turn, and did not keep how the window stood")
        return snapshot

    def _window_state(self, state: WindowState, next_page: int) -> WindowState:
        """Return *state* without what it knows of later pages.

        What was shown fitted then, whatever providers reported since: its budget is the widest that it can have had.
        """
        gone = {
            state: sum(1 for _ in self.storage.pages(self._context, last=next_page - 1, state=state)) for state in _GONE
        }
        return replace(
            state,
            tools=0,
            ratios=(),
            pins=tuple(index for index in state.pins if index < next_page),
            relist=tuple(index for index in state.relist if index < next_page),
            waiting=(),  # perhaps of later calls; a search of the entries finds the earlier ones
            task=state.task if state.task is not None and state.task < next_page else None,
            undone=gone[PageState.UNDONE],
            erased=gone[PageState.ERASED],
        )

    def _first(self, record: ContextRecord) -> ContextRecord:
        """Return the record with the settings that held before the first compaction. O(compactions)."""
        compactions = deque(self.storage.compactions(self._context), maxlen=1)
        snapshot = self._snapshot(record, compactions[0] if compactions else None)
        if snapshot is None or snapshot.record is None:
            return record
        state = replace(WindowState.loads(snapshot.record.state), compactions=0).dumps()
        return snapshot.record._replace(settings=snapshot.was or snapshot.record.settings, state=state)

    def _then(self, row: PageRow) -> PageRow:
        if row.state in _GONE:
            return row
        recalled = row.last_recalled_turn
        if recalled is not None and recalled > self._turn:
            row = row._replace(last_recalled_turn=self._turn)
        was = self._active.get(row.index)
        if was is None:
            return row._replace(state=PageState.ARCHIVED if row.index in self._listed else PageState.UNLOADED)
        end = None if row.index == self.record.open_page else min(row.end or self.record.head, self.record.head)
        return row._replace(first=was.first, end=end, cut=was.cut, state=PageState.ACTIVE, archived_turn=None)
