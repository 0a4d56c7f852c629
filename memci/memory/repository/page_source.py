"""Reads the pages of a memory from the store that keeps their messages.

All rows of a memory are derived from these messages, and can be derived again.
"""

import json
import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from ...errors import CorruptRecord
from ...messages import Message, call_name, text_of, tool_calls
from ...rows import ContextRecord, PageRow
from ...storage import Storage
from ...storage.codec import ERASED, decode
from ...text.moments import moment
from ...workers import yield_to_calls
from ..backend import PageKey, PageRecord
from .store import MemoryStore

Place = tuple[str, int, int]  # context, page and ordinal of a message
_LOG = logging.getLogger(__name__)
SEARCH = "search_memory"  # the tool whose answers only quote the memory


def read_messages(storage: Storage, wanted: Iterable[Place]) -> dict[Place, Message]:
    """Return the messages at some places, without those that are erased or no longer on their pages.

    Raise StorageError if one can't be read. O(these); a few reads for each context.
    """
    places: dict[str, list[Place]] = {}
    for place in wanted:
        places.setdefault(place[0], []).append(place)
    found = {}
    for context, own in places.items():
        rows = {row.index: row for row in storage.pages_at(context, {index for _, index, _ in own})}
        head, bases = _head(storage, context, rows.values()), _bases(storage, context, rows.values())
        at = {bases[place[1]] + place[2] - 1: place for place in own if place[1] in rows}
        spans = {index: row.spans(head) for index, row in rows.items()}
        there = [seq for seq, (_, index, _) in at.items() if any(first <= seq < end for first, end in spans[index])]
        for entry in storage.entries_at(context, there):
            if entry.codec != ERASED:
                found[at[entry.seq]] = decode(entry.codec, entry.body)
    return found


def shared_before(storage: Storage, record: ContextRecord) -> list[PageKey]:
    """Return (context, base) of the ancestors of a fork that have the same owner, the nearest first."""
    found: list[PageKey] = []
    parent, base = record.parent, record.base
    while parent is not None and (loaded := storage.load(parent)) is not None and loaded[0].owner == record.owner:
        found.append((parent, base))
        parent, base = loaded[0].parent, min(base, loaded[0].base)
    return found


def page_keys(storage: Storage, context: str, rows: Iterable[PageRow], shared: Iterable[PageKey]) -> dict[int, PageKey]:
    """Return the keys of pages in the memory, by index: a page *shared* with an ancestor has the key of the ancestor.

    A page that was open at the fork, or was opened again since, is not shared. O(rows · ancestors), one read for each
    ancestor.
    """
    own = {row.index: row for row in rows}
    keys = {index: (context, index) for index in own}
    for before, base in shared:
        asked = [row.index for row in own.values() if row.end is not None and row.end <= base]
        for other in storage.pages_at(before, asked) if asked else ():
            if (other.end, other.cut) == (own[other.index].end, own[other.index].cut):
                keys[other.index] = before, other.index
    return keys


def record_of(storage: Storage, context: str, row: PageRow, head: int) -> PageRecord:
    """Return the page of *row*, without erased messages. O(its messages)."""
    return _build_records(storage, context, [row], head)[0]


def read_pages(storage: Storage, store: MemoryStore, ids: Sequence[int]) -> Iterator[tuple[int, PageRecord]]:
    """Yield the pages *ids* of a memory with their messages, in this order. O(their messages), some pages at a time.

    A page that can't be read has no messages, so that the others need not wait; reading it by index raises the error.
    """
    assert not store.writing, (
        "a page must not be read within a change: the writer of the pages may wait for this change"
    )
    for first in range(0, len(ids), _BATCH):
        batch = list(ids[first : first + _BATCH])
        rows = store.read_rows(_WHERE, json.dumps(batch))
        places = {id_: PageRecord(context, index, turn, ()) for id_, context, index, turn, *_ in rows}
        known = {id_: (owner, last or 0) for id_, *_, owner, last in rows}
        found: dict[tuple[str, int], PageRecord] = {}
        for context in dict.fromkeys(each.context for each in places.values()):
            wanted = [each.index for each in places.values() if each.context == context]
            found |= {(context, page.index): page for page in _read_some(storage, context, wanted)}
        for id_ in batch:
            yield_to_calls()
            if id_ in places:
                page = found.get((places[id_].context, places[id_].index), places[id_])
                yield id_, _without_later(storage, page, *known[id_])


_BATCH = 8  # pages that are read at once: few enough that a call of the context waits for some milliseconds only
_WHERE = """
SELECT g.id, c.name, g.page, g.turn, o.name, (SELECT max(p.entry) FROM memory_passage AS p WHERE p.page = g.id)
FROM memory_page AS g JOIN memory_context AS c ON c.nr = g.context JOIN memory_owner AS o ON o.nr = g.owner
WHERE g.id IN (SELECT value FROM json_each(?))"""


def _without_later(storage: Storage, page: PageRecord, owner: str, last: int) -> PageRecord:
    """Return *page* without what another owner, whose context it is now, has added behind its entry *last*."""
    if not page.entries or page.entries[-1][0] <= last:
        return page
    loaded = storage.load(page.context)
    if loaded is None or loaded[0].owner == owner:
        return page
    return replace(page, entries=tuple(entry for entry in page.entries if entry[0] <= last))


def _read_some(storage: Storage, context: str, indexes: Sequence[int]) -> Sequence[PageRecord]:
    """Return the readable pages of *context*: read all at once, or one by one if this fails."""
    try:
        rows = storage.pages_at(context, indexes)
        return _build_records(storage, context, rows, _head(storage, context, rows))
    except CorruptRecord:
        if len(indexes) > 1:
            return [page for index in indexes for page in _read_some(storage, context, [index])]
        _LOG.warning("page #%d can't be read: the memory continues without it", indexes[0])
        return ()


def _build_records(storage: Storage, context: str, rows: Sequence[PageRow], head: int) -> list[PageRecord]:
    """Return the pages of *rows*, without erased messages, in one read."""
    bases = _bases(storage, context, rows)
    spans = [seq for row in rows for first, end in row.spans(head) for seq in range(first, end)]
    stored = {entry.seq: entry for entry in storage.entries_at(context, spans) if entry.codec != ERASED}
    records = []
    for row in rows:
        left = [stored[seq] for first, end in row.spans(head) for seq in range(first, end) if seq in stored]
        base = bases[row.index]
        entries = tuple((entry.seq - base + 1, decode(entry.codec, entry.body)) for entry in left)
        times = {entry.seq - base + 1: moment(entry.at) for entry in left if entry.at is not None}
        at = next((when.timestamp() for when in times.values()), None)
        quotes = frozenset(entry.seq - base + 1 for entry in left if entry.quotes is not None)
        quotes |= _search_ordinals(entries)
        records.append(PageRecord(context, row.index, row.turn, entries, at, quotes, times=times))
    return records


def _search_ordinals(entries: Sequence[tuple[int, Message]]) -> frozenset[int]:
    """Return the ordinals of searches and their answers, which would otherwise be found by the next search.

    A message that also has text is not among them.
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


def _head(storage: Storage, context: str, rows: Iterable[PageRow]) -> int:
    """Return the end of *context* if one of *rows* is open, which ends there; else 0."""
    loaded = storage.load(context) if any(row.end is None for row in rows) else None
    return 0 if loaded is None else loaded[0].head


def _bases(storage: Storage, context: str, rows: Collection[PageRow]) -> dict[int, int]:
    """Return by page the seq of the first message of its interaction, where ordinals begin."""
    bases = {row.index: row.first for row in rows}
    if split := [row for row in rows if row.continues is not None]:
        firsts = {row.index: row.first for row in storage.pages_at(context, {row.continues or 0 for row in split})}
        for row in split:
            if row.continues not in firsts:
                raise CorruptRecord(context, row.first, f"page #{row.continues} is not in the store")
            bases[row.index] = firsts[row.continues]
    return bases
