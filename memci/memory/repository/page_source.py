"""The source of a memory: raw pages, read from the store that keeps their messages.

    page_reader(storage)("alice", 42)     ──▶   PageRecord("alice", 42, entries=((1, {…}), (2, {…})), …)
    raw_pages(storage, memory, [17, 18])  ──▶   (17, PageRecord), (18, PageRecord)

All that a memory keeps of a page is derived from this and can be derived again. This module knows nothing of windows.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import cache

from ...errors import CorruptRecord
from ...messages import Message, call_name, text_of, tool_calls
from ...storage import Storage
from ...storage.codec import ERASED, decode, seconds
from ...storage.protocol import PageRow
from ...workers import yield_to_calls
from ..backend import PageRecord
from .store import MemoryStore

_LOG = logging.getLogger(__name__)
SEARCH = "search_memory"
"""the tool whose answers only quote what is in the memory already"""


def page_reader(storage: Storage) -> Callable[[str, int], PageRecord | None]:
    """Return what reads a page by its context and index, each page once; None if there is no such page.

    Reading is O(its messages), and raises StorageError if the page can't be read.
    """

    @cache
    def read(context: str, index: int) -> PageRecord | None:
        for row in storage.pages(context, first=index, last=index):
            loaded = storage.load(context) if row.end is None else None  # only an open page ends where its context does
            return record_of(storage, context, row, 0 if loaded is None else loaded[0].head)
        return None

    return read


def record_of(storage: Storage, context: str, row: PageRow, head: int) -> PageRecord:
    """Return the page of *row* as a memory gets it, without erased messages. O(its messages)."""
    base = _base(storage, context, row)
    stored = [entry for first, end in row.spans(head) for entry in storage.entries(context, first, end)]
    left = [entry for entry in stored if entry.codec != ERASED]
    entries = tuple((entry.seq - base + 1, decode(entry.codec, entry.body)) for entry in left)
    return PageRecord(
        context,
        row.index,
        row.turn,
        entries,
        next((seconds(entry.at) for entry in left if entry.at is not None), None),
        frozenset(entry.seq - base + 1 for entry in left if entry.quotes is not None) | _found(entries),
    )


def raw_pages(storage: Storage, store: MemoryStore, ids: Sequence[int]) -> Iterator[tuple[int, PageRecord]]:
    """Yield the pages *ids* of a memory with their messages, in this order. O(their messages).

    A page that can't be read is given without messages, so that the others need not wait for it; reading it by its
    index raises the error.
    """
    assert not store.writing, "reading pages waits for the page store, whose writer may wait for this one: read first"
    read = page_reader(storage)
    for id_ in ids:
        yield_to_calls()
        for context, index, turn in store.read_rows(_WHERE, id_):
            try:
                found = read(context, index)
            except CorruptRecord:
                _LOG.warning("page #%d can't be read: the memory goes on without it", index)
                found = None
            yield id_, found or PageRecord(context, index, turn, ())


_WHERE = """
SELECT c.name, g.page, g.turn FROM memory_page AS g JOIN memory_context AS c ON c.nr = g.context WHERE g.id = ?"""


def _found(entries: Sequence[tuple[int, Message]]) -> frozenset[int]:
    """Return the ordinals of searches and their answers: searchable, each of them would be found by the next one.

    A message that says something besides is kept.
    """
    asked: set[object] = set()
    found = set()
    for ordinal, message in entries:
        calls = tool_calls(message)
        searches = [call.get("id") for call in calls if call_name(call) == SEARCH]
        asked.update(searches)
        only = bool(searches) and len(searches) == len(calls) and not text_of(message)
        if only or message.get("tool_call_id") in asked:
            found.add(ordinal)
    return frozenset(found)


def _base(storage: Storage, context: str, row: PageRow) -> int:
    """Return the seq of the first message of the interaction, from which ordinals count."""
    if row.continues is None:
        return row.first
    for origin in storage.pages(context, first=row.continues, last=row.continues):
        return origin.first
    raise CorruptRecord(context, row.first, f"page #{row.continues} is not in the store")
