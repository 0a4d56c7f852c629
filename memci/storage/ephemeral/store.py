"""Contexts in RAM: as exact as a file, and gone with the process.

    contexts   { id: ContextRows }     rows as they were committed, in lists and dicts
    tickets    [ Ticket ]              the queues for the locks, in the order in which they came

A fork holds its own entries only and reads the others from its parent. Digests are kept and not checked: nothing here
passes a disk, and bytes are immutable. One store may be used by many threads. This module knows nothing of files or
SQL.
"""

import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from threading import RLock

from ...errors import CorruptRecord, HandlePoisoned
from ..audit import AuditLog
from ..protocol import (
    CallRow,
    CompactionRow,
    ContextRecord,
    EntryRow,
    ErasedRows,
    Erasure,
    OpRow,
    PageRow,
    PageState,
    Sidecar,
    Ticket,
    Transition,
)
from ..validation import (
    all_calls,
    all_compactions,
    all_ops,
    check,
    check_forks,
    check_parent,
    check_revision,
    check_text,
    with_ticket,
    without_digests,
)

_BATCH = 256
"""rows that are read under one lock"""


@dataclass(slots=True, eq=False)
class ContextRows:
    """The rows of one context."""

    record: ContextRecord
    entries: list[EntryRow] = field(default_factory=list)
    """its own entries as they were appended: from seq 0, or from the base of a fork"""
    views: dict[int, tuple[int, int]] = field(default_factory=dict)
    """(tokens, clip) by seq, of entries that are not shown as they were appended; also of a parent's"""
    pages: dict[int, PageRow] = field(default_factory=dict)
    highest: int = 0
    """the highest index of a page"""
    active: set[int] = field(default_factory=set)
    """the indexes of the pages in the window"""
    compactions: list[tuple[int, int, int, bytes]] = field(default_factory=list)
    """(revision, head, turn, compressed text), oldest first: a text holds the whole window"""
    ops: dict[str, OpRow] = field(default_factory=dict)
    calls: list[CallRow] = field(default_factory=list)
    tools: dict[str | None, str | None] = field(default_factory=dict)
    """each list of tools, once"""

    def apply(self, transition: Transition) -> None:
        """Take over the rows of *transition*. O(rows)."""
        # A copy has the size of the body; bytes that orjson made keep a buffer of several kilobytes alive.
        self.entries += [row._replace(body=bytes(memoryview(row.body))) for row in transition.entries]
        for page in transition.pages:
            self.pages[page.index] = page
            self.highest = max(self.highest, page.index)
            (self.active.add if page.state is PageState.ACTIVE else self.active.discard)(page.index)
        for seq, tokens, clip in transition.views:
            self.views[seq] = (tokens, clip)
        for row in all_compactions(transition):
            self.compactions.append((row.revision, row.head, row.turn, zlib.compress(row.text.encode())))
        self.ops.update({op.op_id: op for op in all_ops(transition)})
        for call in all_calls(transition):
            self.calls.append(call._replace(tools=self.tools.setdefault(call.tools, call.tools)))
        self.record = transition.record

    def newest_first(self) -> Iterator[CompactionRow]:
        """Yield the compactions, newest first."""
        for revision, head, turn, text in reversed(self.compactions):
            yield CompactionRow(revision, head, turn, zlib.decompress(text).decode())

    def shown(self, row: EntryRow) -> EntryRow:
        """Return *row* with the view that this context has of it."""
        view = self.views.get(row.seq)
        return row if view is None else row._replace(tokens=view[0], clip=view[1])


class EphemeralStorage:
    """Keeps contexts in this process: for tests, and for agents whose contexts may end with them."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._contexts: dict[str, ContextRows] = {}
        self._tickets: list[Ticket] = []
        self._release_sidecar: Callable[[], None] = lambda: None
        self.audit_log = AuditLog()
        self._trusted = True

    def load(self, context: str) -> tuple[ContextRecord, str | None] | None:
        """Return the record and the last compaction of *context*, or None if there is no such context."""
        with self._lock:
            rows = self._find(context)
            if rows is None:
                return None
            newest = next(rows.newest_first(), None)
            return rows.record, None if newest is None else newest.text

    def revision(self, context: str) -> int:
        """Return the revision of *context*, 0 if there is no such context."""
        with self._lock:
            rows = self._find(context)
            return 0 if rows is None else rows.record.revision

    def commit(self, transition: Transition) -> OpRow | None:
        """Apply *transition* and return None, or return the row of its op if that is known. O(rows)."""
        with self._lock:
            check(transition)
            rows = self._find(transition.record.id)
            if rows is not None and transition.op is not None and transition.op.op_id in rows.ops:
                return rows.ops[transition.op.op_id]
            rows = self._following(transition, rows)
            self._trusted = False  # an exception from here on (a Ctrl-C) leaves half of a transition, never shown
            rows.apply(transition)
            self._contexts[transition.record.id] = rows
            self._trusted = True
        return None

    def pages(
        self, context: str, *, first: int = 1, last: int | None = None, state: PageState | None = None
    ) -> Iterator[PageRow]:
        """Yield pages by index, as the protocol says; those that there were at the call."""
        with self._lock:
            rows = self._find(context)
            if rows is None:
                return iter(())
            indexes = range(max(first, 1), (rows.highest if last is None else min(last, rows.highest)) + 1)
            if state is PageState.ACTIVE:
                return iter([rows.pages[index] for index in sorted(rows.active) if index in indexes])
            return self._scan_pages(rows, indexes, state)

    def entries(
        self, context: str, first: int = 0, end: int | None = None, *, containing: bytes | None = None
    ) -> Iterator[EntryRow]:
        """Yield entries in order, as the protocol says; those that are there at the call."""
        with self._lock:
            rows = self._find(context)
            if rows is None:
                return iter(())
            head = rows.record.head
            return self._scan_entries(rows, max(first, 0), head if end is None else min(end, head), containing)

    def compactions(self, context: str, *, head: int | None = None) -> Iterator[CompactionRow]:
        """Yield the compactions, newest first, as the protocol says; those that are there at the call."""
        with self._lock:
            rows = self._find(context)
            found = [] if rows is None else list(rows.newest_first())
        return (row for row in found if head is None or row.head <= head)

    def ops(self, context: str) -> Iterator[OpRow]:
        """Yield the ops by their first seq. O(ops)."""
        with self._lock:
            rows = self._find(context)
            return iter([] if rows is None else sorted(rows.ops.values(), key=lambda op: (op.first, op.op_id)))

    def op(self, context: str, op_id: str) -> OpRow | None:
        """Return one op. O(1)."""
        with self._lock:
            rows = self._find(context)
            return None if rows is None else rows.ops.get(op_id)

    def calls(self, context: str, *, after: int = 0) -> Iterator[CallRow]:
        """Yield the calls of the model, oldest first; those that there are at the call. O(those yielded)."""
        with self._lock:
            rows = self._find(context)
            found = [] if rows is None else rows.calls
            return iter(found[bisect_right(found, after, key=lambda row: row.revision) :])

    def contexts(self) -> Sequence[ContextRecord]:
        """Return the record of every context, by id. O(contexts)."""
        with self._lock:
            self._find("")
            return [self._contexts[each].record for each in sorted(self._contexts)]

    def erase(self, erasure: Erasure) -> ErasedRows:
        """Remove what *erasure* names. O(its rows, and contexts in the store)."""
        with self._lock:
            self._find("")
            check_forks(((each.record.id, each.record.parent) for each in self._contexts.values()), erasure.contexts)
            changed = []
            for transition in erasure.transitions:
                check(transition)
                changed.append((self._following(transition, self._find(transition.record.id)), transition))
            erased: dict[tuple[str, int], tuple[ContextRows, EntryRow]] = {}
            for context, row in erasure.entries:
                rows = self._find(context)
                if rows is None or row.seq >= rows.record.head:
                    raise CorruptRecord(context, row.seq, "it is missing")
                owner = self._owner(rows, row.seq)[0]
                erased[owner.record.id, row.seq] = owner, row
            self._trusted = False
            gone = [self._contexts.pop(each) for each in set(erasure.contexts) if each in self._contexts]
            self._tickets = [each for each in self._tickets if each.context not in erasure.contexts]
            compactions = sum(len(each.compactions) for each in (*gone, *(rows for rows, _ in changed)))
            ops = sum(len(each.ops) for each in gone)
            for owner, tombstone in erased.values():
                owner.entries[tombstone.seq - owner.record.base] = tombstone
                owner.views.pop(tombstone.seq, None)
            for rows, transition in changed:
                rows.compactions.clear()
                own = {seq for context, seq in erased if context == rows.record.id}
                cleared = without_digests(rows.ops.values(), own)
                rows.ops.update({op.op_id: op for op in cleared})
                ops += len(cleared)
                for context, seq in erased:
                    if seq < rows.record.head and self._owner(rows, seq)[0].record.id == context:
                        rows.views.pop(seq, None)
                rows.apply(transition)
                self._contexts[rows.record.id] = rows
            self._trusted = True
            entries = sum(len(each.entries) for each in gone) + len(erased)
            return ErasedRows(len(gone), entries, sum(len(each.pages) for each in gone), compactions, ops)

    def tickets(self, context: str | None = None) -> Sequence[Ticket]:
        """Return the queue for the lock of *context*, or all tickets. O(tickets in the store)."""
        with self._lock:
            self._find(context or "")
            return [each for each in self._tickets if context is None or each.context == context]

    def replace_ticket(self, old: Ticket | None, new: Ticket | None) -> bool:
        """Put *new* in the place of *old*, if that is there, or behind all others. O(tickets in the store)."""
        with self._lock:
            self._find("")
            changed = with_ticket(self._tickets, old, new)
            self._tickets = self._tickets if changed is None else changed
            return changed is not None

    def sidecar(self, release: Callable[[], None]) -> Sidecar:
        """Return a database in RAM, which is gone with the store."""
        self._find("")  # refuses a handle that is closed
        self._release_sidecar = release
        return Sidecar(":memory:")

    def close(self) -> None:
        """Release the sidecar and forget everything."""
        self._release_sidecar()
        with self._lock:
            self._trusted = False
            self._contexts = {}

    def _find(self, context: str) -> ContextRows | None:
        if not self._trusted:
            raise HandlePoisoned("this EphemeralStorage was closed, or a commit was interrupted: make a new one")
        check_text("id", context)
        return self._contexts.get(context)

    def _following(self, transition: Transition, rows: ContextRows | None) -> ContextRows:
        """Return the rows that *transition* changes, checked; new ones for a new context."""
        if rows is not None:
            check_revision(transition, rows.record.head, rows.record.revision)
            return rows
        check_revision(transition, 0, 0)
        if transition.record.parent is not None:
            parent = self._contexts.get(transition.record.parent)
            check_parent(transition.record, None if parent is None else parent.record.head)
        return ContextRows(transition.record)

    def _owner(self, rows: ContextRows, seq: int) -> tuple[ContextRows, int]:
        """Return the rows that hold entry *seq*, of this context or of one it was forked from, and where they end."""
        end = rows.record.head
        while rows.record.parent is not None and seq < rows.record.base:
            end = min(end, rows.record.base)
            rows = self._contexts[rows.record.parent]
        return rows, end

    def _scan_pages(self, rows: ContextRows, indexes: range, state: PageState | None) -> Iterator[PageRow]:
        for start in range(0, len(indexes), _BATCH):
            with self._lock:
                self._find("")
                pages = [rows.pages[index] for index in indexes[start : start + _BATCH] if index in rows.pages]
            yield from (page for page in pages if state is None or page.state is state)

    def _scan_entries(self, rows: ContextRows, first: int, end: int, containing: bytes | None) -> Iterator[EntryRow]:
        while first < end:
            with self._lock:
                self._find("")
                owner, until = self._owner(rows, first)
                base, stop = owner.record.base, min(end, until, first + _BATCH)
                batch = [rows.shown(row) for row in owner.entries[first - base : stop - base]]
            yield from (row for row in batch if containing is None or containing in row.body)
            first = stop
