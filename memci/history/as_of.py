"""A context as of the close of an earlier turn, as a store that can only be read.

    turn     0 … 38   39   40   41 │ 42 … now           AsOf(storage, "alice", turn=41).load("alice")
    snapshot      ●───────────────▶│                     the newest snapshot before the close of turn 41,
                                                         and the pages that were opened between the two

Messages never change, and page numbers are not used again. So the context as of a turn consists of the newest snapshot
of its window before the close of that turn (`window.snapshot`), and of the pages that were opened after the snapshot.
Two things are as they are now: messages that were undone or erased later are not shown, and recalls are counted up to
now.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NoReturn

from ..errors import InvalidSetting, StorageReadOnly, brief
from ..rows import CallRow, CompactionRow, ContextRecord, EntryRow, OpRow, PageRow, PageState
from ..storage import Storage
from ..storage.around import StorageAround
from ..storage.protocol import Erasure, Transition
from ..storage.validation import MAX_PAGE
from ..window import snapshot as snapshots
from ..window.state import WindowState
from .reader import GONE, Reader


class AsOf(StorageAround):
    """One context of *storage* as of the close of *turn* (from 0, as `PageInfo.turn`): when the next turn began.

    As of the turn that is open, it is the context now.
    InvalidSetting if there is no such context or turn, or if the state of that turn is no longer stored.
    """

    def __init__(self, storage: Storage, context: str, turn: int) -> None:
        found = storage.load(context)
        if found is None:
            raise InvalidSetting("id", f"there is no context {context!r:.60} in this store, and reading creates none")
        record = found[0]
        if type(turn) is not int or not 0 <= turn <= record.turn:
            raise InvalidSetting("at", f"expected a turn from 0 to {record.turn}, got {brief(turn)}")
        super().__init__(storage)
        self.storage, self.turn = storage, turn
        """the store itself, and the turn"""
        self.now = record
        """the record as of now"""
        self._context = context
        self._reader = Reader(storage, context)
        # The first page after the turn: turns never decrease with the indexes.
        next_page = bisect_right(range(record.next_page), turn, lo=1, key=lambda index: self._reader.row(index).turn)
        head = record.head if next_page >= record.next_page else self._reader.row(next_page).first
        since = WindowState.loads(record.state).since
        if head < since:
            raise InvalidSetting("at", f"states before message {since} are not stored: it was forked or erased there")
        self._compaction = next(storage.compactions(context, head=head), None)
        snapshot = None if self._compaction is None else snapshots.loads(self._compaction, record)
        before = self._first(record) if snapshot is None else snapshot.record
        first = 1 if snapshot is None else before.next_page
        pages = storage.pages(context, first=first, last=next_page - 1)
        opened = [row._replace(away=None) for row in pages if row.continues is None]
        self._active = {row.index: row for row in (*(snapshot.active if snapshot else ()), *opened)}
        self._clips = {} if snapshot is None else snapshot.clips
        self._listed = frozenset(snapshot.contents.listed) if snapshot is not None else frozenset[int]()
        self._undone = list(storage.pages(context, last=next_page - 1, state=PageState.UNDONE))
        self._erased = list(storage.pages(context, last=next_page - 1, state=PageState.ERASED))
        state = self._state_of(WindowState.loads(before.state), next_page)
        self.record = before._replace(
            head=head, turn=turn, next_page=next_page, open_page=self._open_page(head), state=state.dumps()
        )
        """the record as of the turn"""

    def load(self, context: str) -> tuple[ContextRecord, str | None] | None:
        """Return the record and the compaction as of the turn."""
        if context != self._context:
            return None
        return self.record, None if self._compaction is None else self._compaction.text

    def revision(self, context: str) -> int:
        """Return the revision of `record`, which never changes."""
        return self.record.revision if context == self._context else 0

    def pages(
        self, context: str, *, first: int = 1, last: int | None = None, state: PageState | None = None
    ) -> Iterator[PageRow]:
        """Yield the pages as of the turn, by index. O(pages yielded) by index or by `PageState.ACTIVE`."""
        end = self.record.next_page - 1 if last is None else min(last, self.record.next_page - 1)
        if state is PageState.ACTIVE:
            indexes = [index for index in self._active if first <= index <= end]
            rows: Iterable[PageRow] = self.storage.pages_at(context, indexes)
        else:
            rows = self.storage.pages(context, first=first, last=end)
        return (row for row in map(self._row_of, rows) if state is None or row.state is state)

    def pages_at(self, context: str, indexes: Collection[int]) -> Sequence[PageRow]:
        """Return the pages with *indexes* as of the turn, by index."""
        known = [index for index in indexes if index < self.record.next_page]
        return [self._row_of(row) for row in self.storage.pages_at(context, known)]

    def entries(self, context: str, first: int = 0, end: int | None = None, **which: Any) -> Iterator[EntryRow]:
        """Yield the entries that were appended up to the close of the turn."""
        head = self.record.head
        return map(
            self._as_shown, self.storage.entries(context, first, head if end is None else min(end, head), **which)
        )

    def entries_at(self, context: str, seqs: Collection[int]) -> Sequence[EntryRow]:
        """Return the entries with *seqs* that were appended up to the close of the turn."""
        return [*map(self._as_shown, self.storage.entries_at(context, [seq for seq in seqs if seq < self.record.head]))]

    def compactions(self, context: str, *, head: int | None = None) -> Iterator[CompactionRow]:
        """Yield the compactions up to the close of the turn, newest first."""
        latest = self.record.head
        return self.storage.compactions(context, head=latest if head is None else min(head, latest))

    def ops(self, context: str) -> Iterator[OpRow]:
        """Yield the ops up to the close of the turn."""
        return (op for op in self.storage.ops(context) if op.first < self.record.head)

    def op(self, context: str, op_id: str) -> OpRow | None:
        """Return the op if it was stored at the close of the turn."""
        op = self.storage.op(context, op_id)
        return op if op is not None and op.first < self.record.head else None

    def calls(self, context: str, *, after: int = 0) -> Iterator[CallRow]:
        """Yield the calls of the model up to the close of the turn."""
        return (call for call in self.storage.calls(context, after=after) if call.turn <= self.turn)

    def contexts(
        self, *, owner: str | None = None, after: str | None = None, limit: int | None = None
    ) -> Sequence[ContextRecord]:
        """Return the record of the one context, if *owner* and *after* do not exclude it."""
        there = owner in (None, self.record.owner) and (after is None or self.record.id > after)
        return [self.record][: limit if there else 0]

    def forks(self, context: str) -> Sequence[ContextRecord]:  # noqa: ARG002 -- the protocol's
        """Return no forks: an erasure looks for them, and nothing can be erased here."""
        return []

    def commit(self, transition: Transition) -> NoReturn:  # noqa: ARG002 -- the protocol's
        """Raise StorageReadOnly: an earlier turn can't be changed."""
        raise StorageReadOnly(f"context {self._context!r:.60} was opened as of turn {self.turn}: fork it there")

    def erase(self, erasure: Erasure) -> NoReturn:  # noqa: ARG002 -- the protocol's
        """Raise StorageReadOnly: erase in the store itself."""
        raise StorageReadOnly(f"context {self._context!r:.60} was opened as of turn {self.turn}")

    def _as_shown(self, row: EntryRow) -> EntryRow:
        """Return *row* as it was shown at the close of the turn: one that was clipped later is whole."""
        if not row.clip:
            return row
        if row.seq in self._clips:
            tokens, clip = self._clips[row.seq]
            return row._replace(tokens=tokens, clip=clip)
        return next(self.storage.entries(self._context, row.seq, row.seq + 1, as_appended=True))

    def _open_page(self, head: int) -> int | None:
        """Return the page that was open at *head*: the last one that was not undone or erased since."""
        rows = (self._reader.row(index) for index in sorted(self._active, reverse=True))
        last = next((row for row in rows if row.continues is None and row.state not in GONE), None)
        return last.index if last is not None and (last.end is None or last.end >= head) else None

    def _state_of(self, state: WindowState, next_page: int) -> WindowState:
        """Return *state* without pages that were opened, undone or erased later, and without reported tokens.

        Without reported tokens the budget is the largest possible one, so all that was shown then fits it.
        """
        undone = {row.index for row in self._undone}
        erased = {row.index for row in self._erased}
        state = state.without(range(next_page, MAX_PAGE + 1)).without(undone | erased)
        return state._replace(
            ratios=(),
            waiting=(),  # they may be ids of later calls; a search of the entries finds the earlier ones
            outbox=tuple((a, min(b, next_page - 1)) for a, b in state.outbox if a < next_page),
            undone=len(undone),
            erased=len(erased),
        )

    def _first(self, record: ContextRecord) -> ContextRecord:
        """Return the record with the settings that held before the first compaction. O(compactions)."""
        compactions = deque(self.storage.compactions(self._context), maxlen=1)
        if not compactions:
            return record
        snapshot = snapshots.loads(compactions[0], record)
        state = WindowState.loads(snapshot.record.state)._replace(compactions=0).dumps()
        return snapshot.record._replace(settings=snapshot.was or snapshot.record.settings, state=state)

    def _row_of(self, row: PageRow) -> PageRow:
        """Return *row* as it was at the close of the turn, but without entries undone or erased later."""
        if row.state in GONE:
            return row
        recalled = row.last_recalled_turn
        if recalled is not None and recalled > self.turn:
            row = row._replace(last_recalled_turn=self.turn)
        active = self._active.get(row.index)
        if active is None:
            state = PageState.ARCHIVED if row.index in self._listed else PageState.UNLOADED
            return row._replace(state=state, away=None)
        head = self.record.head
        end = None if row.index == self.record.open_page else min(row.end or head, head)
        then = row._replace(
            first=active.first, end=end, cut=active.cut, away=active.away, state=PageState.ACTIVE, archived_turn=None
        )
        pages = (each for each in self._erased if each.continues is None)
        for gone in (*self._undone, *pages):  # messages that were undone or erased since are not shown
            if then.first <= gone.first < (end or head):
                for span in gone.spans(head):
                    then = then.without(*span)
        return then
