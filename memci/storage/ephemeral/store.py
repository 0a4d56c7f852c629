"""Contexts in RAM: as exact as a file and gone with the process.

    contexts   { id: Kept }      each one packed (`ephemeral_rows`): a page costs little more than it says
    locks      { id: Lock }      the exclusive lock of each context

Digests are kept but not checked: nothing here passes a disk, and bytes are immutable. One store may be used by many
threads. This module knows nothing of files or SQL.
"""

from collections.abc import Callable, Iterator, Sequence
from threading import Lock, RLock

from ...errors import CorruptRecord, HandlePoisoned, InvalidSetting
from ..locks import busy, check_seconds
from ..protocol import (
    CompactionRow,
    ContextRecord,
    EntryRow,
    Erased,
    Erasure,
    OpRow,
    PageRow,
    PageState,
    Sidecar,
    Transition,
)
from ..validation import check, check_revision, check_text
from .packed import Kept

_BATCH = 256


class EphemeralStorage:
    """Keeps contexts in this process: for tests, and for agents whose memory may end with them."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._contexts: dict[str, Kept] = {}
        self._locks: dict[str, Lock] = {}
        self._release_sidecar: Callable[[], None] = lambda: None
        self._trusted = True

    def load(self, context: str) -> tuple[ContextRecord, str | None] | None:
        """Return the record and the last compaction of *context*, or None if there is no such context."""
        with self._lock:
            kept = self._find(context)
            if kept is None:
                return None
            newest = next(iter(kept.all_compactions()), None)
            return kept.record, None if newest is None else newest.text

    def revision(self, context: str) -> int:
        """Return the revision of *context*, 0 if there is no such context."""
        with self._lock:
            kept = self._find(context)
            return 0 if kept is None else kept.record.revision

    def commit(self, transition: Transition) -> OpRow | None:
        """Apply *transition* and return None, or return the row of its op if that is known. O(rows)."""
        with self._lock:
            check(transition)
            found = self._find(transition.record.id)
            if found is not None and transition.op is not None and (known := found.op(transition.op.op_id)) is not None:
                return known
            kept = self._checked(transition, found)
            packed = kept.pack(transition)
            # What stops us between here and the end (Ctrl-C) leaves half of a transition: no call may show it.
            self._trusted = False
            kept.apply(transition, packed)
            self._contexts[transition.record.id] = kept
            self._trusted = True
        return None

    def pages(
        self, context: str, *, first: int = 1, last: int | None = None, state: PageState | None = None
    ) -> Iterator[PageRow]:
        """Yield pages by index, as the protocol says; the active ones as they were at the call."""
        with self._lock:
            kept = self._find(context)
            if kept is None:
                return iter(())
            start, end = max(first, 1), kept.highest + 1 if last is None else min(last, kept.highest) + 1
            if state is PageState.ACTIVE:
                active = [kept.page(i) for i in sorted(kept.active) if start <= i < end]
                return (page for page in active if page is not None)
            return self._scan_pages(kept, start, end, state)

    def entries(
        self, context: str, first: int = 0, end: int | None = None, *, containing: bytes | None = None
    ) -> Iterator[EntryRow]:
        """Yield entries in order, as the protocol says; those that are there at the call."""
        with self._lock:
            kept = self._find(context)
            if kept is None:
                return iter(())
            head = kept.record.head
            return self._scan_entries(kept, max(first, 0), head if end is None else min(end, head), containing)

    def compactions(self, context: str, *, head: int | None = None) -> Iterator[CompactionRow]:
        """Yield the compactions, newest first, as the protocol says; those that are there at the call."""
        with self._lock:
            kept = self._find(context)
            found = [] if kept is None else list(kept.all_compactions())
        return (row for row in found if head is None or row.head <= head)

    def ops(self, context: str) -> Iterator[OpRow]:
        """Yield the ops by their first seq. O(ops)."""
        with self._lock:
            kept = self._find(context)
            found = [] if kept is None else [op for op in map(kept.op, kept.ops) if op is not None]
        return iter(sorted(found, key=lambda op: (op.first, op.op_id)))

    def contexts(self) -> Sequence[ContextRecord]:
        """Return the record of every context, by id. O(contexts)."""
        with self._lock:
            self._find("")
            return [self._contexts[each].record for each in sorted(self._contexts)]

    def erase(self, erasure: Erasure) -> Erased:
        """Forget what *erasure* names. O(its rows, and contexts in the store)."""
        with self._lock:
            self._find("")
            for context in erasure.contexts:
                for each in self._contexts.values():
                    if each.record.parent == context and each.record.id not in erasure.contexts:
                        raise InvalidSetting(
                            "context", f"{each.record.id!r} is a fork of {context!r}: erase that first"
                        )
            ready = []
            for transition in erasure.transitions:
                check(transition)
                kept = self._checked(transition, self._find(transition.record.id))
                ready.append((kept, transition, kept.pack(transition)))
            gone = [self._contexts[each] for each in dict.fromkeys(erasure.contexts) if each in self._contexts]
            pages = sum(each.page(index) is not None for each in gone for index in range(1, each.highest + 1))
            entries = sum(each.record.head - each.record.base for each in gone) + len(erasure.entries)
            compactions = sum(len(each.compactions) for each in gone) + sum(
                len(kept.compactions) for kept, _, _ in ready
            )
            ops = sum(len(each.ops) for each in gone)
            buried = []
            for context, tombstone in {(each[0], each[1].seq): each for each in erasure.entries}.values():
                found = self._find(context)
                if found is None or tombstone.seq >= found.record.head:
                    raise CorruptRecord(context, tombstone.seq, "it is missing")
                buried.append((self._owner(found, tombstone.seq)[0], tombstone))
            erased = {(owner.record.id, tombstone.seq) for owner, tombstone in buried}
            self._trusted = False
            for each in gone:
                del self._contexts[each.record.id]
            for owner, tombstone in buried:
                owner.bury(tombstone)
            for kept, transition, packed in ready:
                kept.compactions.clear()
                ops += kept.forget_ops({seq for name, seq in erased if name == transition.record.id})
                for name, seq in erased:
                    if seq < kept.record.head and self._owner(kept, seq)[0].record.id == name:
                        kept.views.pop(seq, None)
                kept.apply(transition, packed)
                self._contexts[transition.record.id] = kept
            self._trusted = True
            return Erased(len(gone), entries, pages, compactions, ops)

    def hold(self, context: str, seconds: float) -> Callable[[], None]:
        """Take the lock of *context*, in this process."""
        check_text("id", context)
        check_seconds(seconds)
        with self._lock:
            self._find("")
            lock = self._locks.setdefault(context, Lock())
        if not lock.acquire(timeout=seconds):
            raise busy(context, seconds)
        held = [lock]

        def release() -> None:
            if held:  # it may be another's by the second call
                held.pop().release()

        return release

    def sidecar(self, release: Callable[[], None]) -> Sidecar:
        """Return a database in RAM, which is gone with the store."""
        self._release_sidecar = release
        return Sidecar(":memory:", shared=False, read_only=False)

    def close(self) -> None:
        """Forget everything."""
        self._release_sidecar()
        with self._lock:
            self._trusted = False
            self._contexts = {}

    def _find(self, context: str) -> Kept | None:
        if not self._trusted:
            raise HandlePoisoned("this store was closed, or a write was cut short: open a new one")
        kept = self._contexts.get(context)
        if kept is None:
            check_text("id", context)
        return kept

    def _checked(self, transition: Transition, found: Kept | None) -> Kept:
        """Return what *transition* is applied to, once it follows what is there."""
        record = transition.record
        if found is not None:
            check_revision(transition, found.record.head, found.record.revision)
            return found
        check_revision(transition, 0, 0)
        if record.parent is not None:
            parent = self._contexts.get(record.parent)
            if parent is None or record.base > parent.record.head:
                raise InvalidSetting(
                    "parent", f"{record.parent!r} has no {record.base} messages that a fork could share"
                )
        return Kept(record)

    def _owner(self, kept: Kept, seq: int) -> tuple[Kept, int]:
        """Return who keeps entry *seq* of *kept*, itself or one that it was forked from, and where that ends."""
        end = kept.record.head
        while kept.record.parent is not None and seq < kept.record.base:
            end = min(end, kept.record.base)
            kept = self._contexts[kept.record.parent]
        return kept, end

    def _scan_pages(self, kept: Kept, start: int, end: int, state: PageState | None) -> Iterator[PageRow]:
        for batch in range(start, end, _BATCH):
            with self._lock:
                self._find("")
                pages = [kept.page(index) for index in range(batch, min(batch + _BATCH, end))]
            for page in pages:
                if page is not None and (state is None or page.state is state):
                    yield page

    def _scan_entries(self, kept: Kept, first: int, end: int, containing: bytes | None) -> Iterator[EntryRow]:
        while first < end:
            with self._lock:
                self._find("")
                owner, until = self._owner(kept, first)
                stop = owner.stop(first, min(end, until))
                rows = kept.shown(owner.read(first, stop))
            yield from (row for row in rows if containing is None or containing in row.body)
            first = stop
