"""The memory feed: which pages a context sends to its memory, and when.

    cursor #40 ──▶  #41, #42, … closed pages, by index       observe; admit, if a page has left the window
    staying   ──▶  pages that were whole in the window      admit, once they have left it, or the context closes
    outbox    ──▶  pages that changed since                  erase (undone, erased, popped from) · observe again
    part      ──▶  what has left the open page               observe; the page is sent whole when it closes

The memory acknowledges pages, and the outbox is part of the transaction that changed a page. So nothing is missed if a
process dies between the two, and sending twice changes nothing. A page that the memory can't take is set aside: it is
sent without its messages, the pages behind it go on, and `retry` sends it whole. A page that a fork shares is sent as
its parent's, if both belong to one owner.
"""

import logging
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from ..errors import CorruptRecord, StorageBusy, StorageError, StorageFull, StorageReadOnly, StorageUnavailable
from ..memory.backend import HasTiers, Learned, Learns, MemoryBackend, PageKey, PageRecord, Scope, SetsAside
from ..memory.repository.page_source import page_keys, record_of, shared_before
from ..messages import tool_calls
from ..rows import PageRow, PageState
from ..storage import Storage
from ..window.outbox import indexes, remove_page
from ..window.window import Window

_LOG = logging.getLogger(__name__)
ALL = 2**62  # as many pages as there are


class MemoryFeed:
    """The pages of one context on their way to its memory."""

    def __init__(self, storage: Storage, window: Window, memory: MemoryBackend, *, as_of: bool = False) -> None:
        self._storage = storage
        self.window = window
        self.memory = memory
        self._cursor = memory.acknowledged(window.record.id)
        """the last page that the memory acknowledged, one by one"""
        self._ahead = self._cursor >= window.record.next_page and not as_of
        """whether the memory knows pages that do not exist: after a power cut, or of another context of this name"""
        if self._ahead:
            self._cursor = 0
        self._cursor = min(self._cursor, window.record.next_page - 1)
        self._aside: set[int] | None = None
        self.tiers = memory if isinstance(memory, HasTiers) else None
        self._staying = set(self.tiers.observed(window.record.id) if self.tiers is not None else ())
        """pages that the memory has only observed, as they stood whole in the window"""
        self._over = False
        """whether the window is not shown any more, so that its pages are admitted"""
        self._part: tuple[int, int] | None = None
        """the open page, and the seq before which it was sent since this feed was opened"""
        self._shared = shared_before(storage, window.record)
        if self._shared:
            self._cursor = max(self._cursor, self._last_shared())

    @property
    def aside(self) -> set[int]:
        """The pages that were set aside. O(pages of the context) when they are first asked for."""
        if self._aside is None:
            memory = self.memory
            self._aside = set(memory.set_aside(self.window.record.id) if isinstance(memory, SetsAside) else ())
        return self._aside

    def send(self, most: int) -> int:
        """Send up to *most* pages to the memory, and return how many were sent. O(their messages).

        StorageError if a page can't be read, or the memory can't store it; it is sent again later.
        """
        if self._ahead:  # nothing that it knows of this context can be trusted
            self.memory.erase(Scope(self.window.record.id))
            self._ahead = False
        sent = self.send_state_changes(most)
        while sent < most and self.unsent:
            index = self._cursor + 1
            if index != self.window.record.open_page:  # if others are behind it, it is posted when it closes
                self._send_page(index)
                sent += 1
            self._cursor = index
        if sent < most and (part := self.window.part_left) not in (None, self._part):
            self._send_page(part[0])
            self._part = part
            sent += 1
        return sent + self.send_state_changes(most - sent)

    def catch_up(self) -> set[PageKey]:
        """Send all pages that wait. If nothing can be written now, return the pages that changed since they were sent.

        What is known of these does not hold any more; all others can be searched. It raises as `send` otherwise.
        """
        try:
            self.send(ALL)
        except (StorageFull, StorageReadOnly, StorageBusy) as error:
            if self._ahead:
                raise
            _LOG.warning("pages are not searchable yet: %s", type(error).__name__)
            return {(self.window.record.id, index) for index in indexes(self.window.state.outbox)}
        return set()

    def hand_over(self) -> bool:
        """Send all pages that wait, admit those that are whole in the window, and return whether there were any.

        The open page is among them if its last message is an answer; it may still grow. It raises as `send`.
        O(the messages of what is sent).
        """
        self._over = True
        try:
            sent = self.send(ALL)
            opened = self.window.record.open_page
            if opened is not None:  # after those before it
                self._send_page(opened)
            return sent > 0 or opened is not None
        finally:
            self._over = False

    def send_state_changes(self, most: int = ALL) -> int:
        """Send the state changes of up to *most* pages that the memory knows, and return how many were sent.

        Pages that it does not know yet are sent in their order, in the state that they have then.
        """
        opened = self.window.record.open_page
        changed = {i for i in indexes(self.window.state.outbox) if i <= self._cursor or i == opened}
        changed |= self._staying - (set() if self._over else {page.index for page in self.window.active})
        due = sorted(changed)[:most]
        self._erase_undone(due)
        for index in due:
            self._staying.discard(index)
            self._send_page(index)
        return len(due)

    def retry(self) -> None:
        """Send the pages that were set aside again, whole; it raises as `send`. O(their messages)."""
        for index in sorted(self.aside):
            self._send_page(index)

    def keys(self, rows: Iterable[PageRow]) -> dict[int, PageKey]:
        """Return the keys of pages in the memory by index (see `page_keys`)."""
        return page_keys(self._storage, self.window.record.id, rows, self._shared)

    def own_rows(self, found: Collection[PageKey]) -> dict[PageKey, PageRow | None]:
        """Return the rows of those pages *found* in the memory that are of this context; None if one is gone."""
        record, names = self.window.record, {name for name, _ in self._shared}
        rows = self.rows({index for context, index in found if context == record.id or context in names})
        keys = self.keys(rows.values())
        return {key: rows.get(key[1]) for key in found if key[0] == record.id or keys.get(key[1]) == key}

    def rows(self, indexes: Collection[int]) -> dict[int, PageRow]:
        """Return the rows of pages by index, without those that do not exist. One read."""
        known = {index: row for index in indexes if (row := self.window.row(index)) is not None}
        left = [index for index in indexes if index not in known]
        read = self._storage.pages_at(self.window.record.id, left) if left else ()
        return known | {row.index: row for row in read}

    @property
    def unsent(self) -> int:
        """How many closed pages were not sent yet."""
        record = self.window.record
        last = record.next_page - 1
        return max(0, last - (record.open_page == last) - self._cursor)

    def _send_page(self, index: int) -> None:
        """Send a page as the store has it; again if the context changed meanwhile: it may have been erased."""
        before = self.window.record.revision
        self._send_state(index)
        while before != (revision := self._storage.revision(self.window.record.id)):
            before = revision
            self._send_state(index)
        state = self.window.state
        self.window.state = state._replace(outbox=remove_page(state.outbox, index))  # stored with the next change

    def _send_state(self, index: int) -> None:
        record = self.window.record
        row = next(iter(self._storage.pages_at(record.id, [index])), None)
        if row is None:  # the context was erased
            self.memory.erase(Scope(record.id, (index,)))
            return
        context, _ = self.keys([row])[index]
        if context != record.id and row.state is not PageState.ERASED:
            return  # the other context sends it
        kept = row.state is PageState.UNDONE and self._is_forked(row)  # a fork still has it; here it is not shown
        if row.state in (PageState.UNDONE, PageState.ERASED) and not kept:
            self._erase(context, index)
            return
        try:
            sent = record_of(self._storage, record.id, row, record.head)
            if row.end is None and not (self._over and _is_answered(sent)):
                if row.away is not None:
                    last = row.away[-1] - row.first
                    sent = replace(sent, entries=tuple(entry for entry in sent.entries if entry[0] <= last), open=True)
                    self._observe(sent, row.state)
                elif index in indexes(self.window.state.outbox):  # what the memory has of it was taken back or erased
                    self._erase(context, index)
                return
            self._observe(replace(sent, open=row.end is None), row.state)
            self._aside = self._aside and self._aside - {index}
        except StorageError as error:
            if not isinstance(error, CorruptRecord):
                raise
            self._set_aside(row, error)  # readers get the error, and `verify` reports it
        except Exception as error:  # noqa: BLE001 -- whatever a memory can't do with one page, those behind it go on
            self._set_aside(row, error)

    def _observe(self, page: PageRecord, state: PageState) -> None:
        """Send a page, and what programs had stored of it."""
        if state in (PageState.ARCHIVED, PageState.UNLOADED) or (self._over and state is PageState.ACTIVE):
            self.memory.admit(page)
        else:
            self.memory.observe(page)
            self._staying.update([page.index] if state is PageState.ACTIVE else [])
        for each in self.window.state.learned:
            if each[0] == page.index and not page.aside and isinstance(self.memory, Learns):
                self.memory.keep_learned(page.context, Learned(*each))

    def _erase_undone(self, pages: Collection[int]) -> None:
        """Let the memory forget those of *pages* that were taken back, at once: each erasure cleans its file."""
        rows = [row for row in self.rows(pages).values() if row.state is PageState.UNDONE and not self._is_forked(row)]
        own = [index for index, (context, _) in self.keys(rows).items() if context == self.window.record.id]
        if own:
            self._erase(self.window.record.id, *own)

    def _erase(self, context: str, *pages: int) -> None:
        what = ", ".join(f"#{index}" for index in pages)
        with _as_storage_error(f"the memory can't erase page {what}"):  # else erased text might still be found
            self.memory.erase(Scope(context, pages))
        self._aside = self._aside and self._aside - {*pages}

    def _set_aside(self, row: PageRow, error: Exception) -> None:
        """Send a page without its messages, since the memory can't take it whole."""
        _LOG.warning("page #%d can't be fed to the memory (%s): it is set aside", row.index, type(error).__name__)
        with _as_storage_error("the memory can take no page"):
            self._observe(PageRecord(self.window.record.id, row.index, row.turn, (), aside=True), row.state)
        self.aside.add(row.index)

    def _is_forked(self, row: PageRow) -> bool:
        """Return whether a fork of this context shares a page. O(forks)."""
        return any(
            other.first == row.first and other.state not in (PageState.UNDONE, PageState.ERASED)
            for fork in self._storage.forks(self.window.record.id)
            if row.first < fork.base
            for other in self._storage.pages_at(fork.id, [row.index])
        )

    def _last_shared(self) -> int:
        """Return the last page before which all are a parent's. O(log pages)."""
        record = self.window.record

        def is_own(index: int) -> bool:
            keys = self.keys(self.rows([index]).values())
            return index not in keys or keys[index][0] == record.id

        last = bisect_left(range(record.next_page), x=True, lo=1, key=is_own) - 1
        row = self.rows([last]).get(last)
        return last if row is None or row.continues is None else row.continues - 1  # its origin may have been open


def _is_answered(page: PageRecord) -> bool:
    """Return whether the last message of an open page is an answer, so that the page may well be complete."""
    return bool(page.entries) and page.entries[-1][1].get("role") == "assistant" and not tool_calls(page.entries[-1][1])


@contextmanager
def _as_storage_error(what: str) -> Iterator[None]:
    """Turn any error of a memory into a StorageError that says *what* failed."""
    try:
        yield
    except StorageError:
        raise
    except Exception as error:
        raise StorageUnavailable(f"{what}: {type(error).__name__}") from error
