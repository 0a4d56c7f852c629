"""The hand-over: what a context tells its memory of, and when.

    heard #40 ──▶  #41, #42, … closed pages, by index        observe; admit, if a page is unloaded
    outbox    ──▶  what happened to a page since             admit · erase (undone, erased) · observe anew (split)

The memory says how far it has heard, and the outbox is part of the transaction that changed a page, so nothing is
missed when a process dies between the two; telling twice changes nothing. A page that a fork shares is told of as its
parent's, if both belong to one owner. This module knows nothing of how a memory keeps things.
"""

import logging
from collections.abc import Iterator
from dataclasses import replace

from ..errors import CorruptRecord
from ..memory.backend import MemoryBackend, PageRecord, Scope
from ..memory.repository.page_source import record_of
from ..storage import Storage
from ..storage.protocol import PageRow, PageState
from ..window.outbox import delivered, indexes
from ..window.window import Window

_LOG = logging.getLogger("memci")


class Handover:
    """Tells the memory of one context's pages."""

    def __init__(self, storage: Storage, window: Window, memory: MemoryBackend, *, past: bool = False) -> None:
        self._storage = storage
        self.window = window
        self.memory = memory
        self._heard = memory.acknowledged(window.record.id)
        """up to which page the memory was told, one by one"""
        self._ahead = self._heard >= window.record.next_page and not past
        """whether the memory knows pages that are not there: it has outlived a power cut, or another context"""
        if self._ahead:
            self._heard = 0
        self._heard = min(self._heard, window.record.next_page - 1)
        self._shared = self._shared_before()
        if self._shared:
            self._heard = max(self._heard, self._last_shared())

    @property
    def pending(self) -> int:
        """How many pages the memory has not been told of as they are. O(pages in the outbox)."""
        return self.unheard + sum(1 for _ in self._fates())

    def tell(self, most: int) -> int:
        """Tell the memory of up to *most* pages, and return how many those were. O(their messages).

        Raises:
            StorageError: If a page can't be read, or the memory can't keep it; it is told again then.
        """
        if self._ahead:  # nothing that it knows of this context is to be trusted
            self.memory.erase(Scope(self.window.record.id))
            self._ahead = False
        told = self.tell_fates(most)
        while told < most and self.unheard:
            index = self._heard + 1
            if index != self.window.record.open_page:  # one with parts behind it is in the outbox
                self._tell_of(index)
                self._delivered(index)
                told += 1
            self._heard = index
        return told + self.tell_fates(most - told)

    def tell_fates(self, most: int = 2**62) -> int:
        """Tell the memory what became of up to *most* pages that it heard of, and return how many those were.

        The others are told when it is their turn: as they are then.
        """
        told = 0
        for index in list(self._fates()):
            if told >= most:
                break
            self._tell_of(index)
            self._delivered(index)
            told += 1
        return told

    def key(self, row: PageRow) -> tuple[str, int]:
        """Return what the memory knows a page as: one that a fork shares is its parent's. O(forks before it).

        A page that was open at the fork is no longer the same, wherever it was closed.
        """
        for context, base in self._shared:
            if row.end is None or row.end > base:
                continue
            if row.end < base or any(
                other.end == base for other in self._storage.pages(context, first=row.index, last=row.index)
            ):
                return context, row.index
        return self.window.record.id, row.index

    def own(self, context: str, index: int) -> bool:
        """Tell whether what the memory knows by these is a page of this context."""
        if context == self.window.record.id:
            return True
        if all(context != name for name, _ in self._shared):
            return False
        row = self.row(index)
        return row is not None and self.key(row) == (context, index)

    def row(self, index: int) -> PageRow | None:
        """Return the row of page *index*, None if there is no such page."""
        known = self.window.row(index)
        return known or next(iter(self._storage.pages(self.window.record.id, first=index, last=index)), None)

    @property
    def unheard(self) -> int:
        """How many closed pages the memory has not heard of at all."""
        record = self.window.record
        last = record.next_page - 1
        return max(0, last - (record.open_page == last) - self._heard)

    def _fates(self) -> Iterator[int]:
        opened = self.window.record.open_page
        return (index for index in indexes(self.window.state.outbox) if index != opened and index <= self._heard)

    def _tell_of(self, index: int) -> None:
        record = self.window.record
        row = next(iter(self._storage.pages(record.id, first=index, last=index)), None)
        if row is None or row.end is None:  # as the store has it: the window may have been read long ago
            return
        context, _ = self.key(row)
        if context != record.id and row.state is not PageState.ERASED:
            return  # the other context tells of it
        kept = row.state is PageState.UNDONE and self._forked(row)  # a fork has it still; here it is not shown
        if row.state in (PageState.UNDONE, PageState.ERASED) and not kept:
            self.memory.erase(Scope(context, (index,)))
            return
        try:
            told = record_of(self._storage, record.id, row, row.end)
        except (
            CorruptRecord
        ):  # whoever reads it is told, and `verify` tells; the pages behind it are not to wait for it
            _LOG.warning("page #%d can't be read: the memory goes on without it", index)
            told = PageRecord(record.id, index, row.turn, ())
        self.memory.observe(told)
        if row.state is PageState.UNLOADED:
            self.memory.admit(told)

    def _forked(self, row: PageRow) -> bool:
        """Tell whether a fork of this context shares a page. O(contexts in the store)."""
        forks = [each for each in self._storage.contexts() if each.parent == self.window.record.id]
        return any(
            other.state not in (PageState.UNDONE, PageState.ERASED)
            for fork in forks
            if row.first < fork.base
            for other in self._storage.pages(fork.id, first=row.index, last=row.index)
        )

    def _delivered(self, index: int) -> None:
        state = self.window.state
        self.window.state = replace(state, outbox=delivered(state.outbox, index))  # stored with the next change

    def _last_shared(self) -> int:
        """Return the last page before which all are a parent's. O(log pages)."""
        low, high = 0, self.window.record.next_page - 1
        while low < high:
            middle = (low + high + 1) // 2
            row = self.row(middle)
            low, high = (
                (middle, high) if row is not None and self.key(row)[0] != self.window.record.id else (low, middle - 1)
            )
        row = self.row(low)
        return low if row is None or row.continues is None else row.continues - 1  # its origin may have been open

    def _shared_before(self) -> tuple[tuple[str, int], ...]:
        """Return (context, base) of the contexts of the same owner that this one was forked from, oldest first."""
        found: list[tuple[str, int]] = []
        parent, base = self.window.record.parent, self.window.record.base
        while parent is not None:
            loaded = self._storage.load(parent)
            if loaded is None or loaded[0].owner != self.window.record.owner:
                break
            found.append((parent, base))
            parent, base = loaded[0].parent, min(base, loaded[0].base)
        return tuple(reversed(found))
