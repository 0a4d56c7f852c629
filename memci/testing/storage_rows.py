"""Rows to fill a store with, in tests.

    append(storage, "alice", b'"Hi"', b'"Hello"')    two entries on a page of their own, committed

This module knows nothing of what is tested.
"""

from ..storage.codec import ORJSON, digest
from ..storage.protocol import ContextRecord, EntryRow, PageRow, Storage, Transition


def entry(seq: int, body: bytes, *, codec: int = ORJSON, tokens: int = 7, at: str | None = None) -> EntryRow:
    """Return an entry with a right digest."""
    return EntryRow(seq, codec, body, digest(codec, body), tokens, at=at)


def current(storage: Storage, context: str) -> ContextRecord:
    """Return the record of *context* as the next transition carries it, or a new one."""
    loaded = storage.load(context)
    if loaded:
        return loaded[0]._replace(revision=loaded[0].revision + 1)
    return ContextRecord(context, owner=context, settings="{}", state="{}")


def appended(record: ContextRecord, *bodies: bytes) -> Transition:
    """Return the transition that puts *bodies* on the next page after *record*. O(bodies)."""
    entries = tuple(entry(record.head + i, body) for i, body in enumerate(bodies))
    index, head = record.next_page, record.head + len(bodies)
    page = PageRow(index, first=record.head, end=head, turn=record.turn)
    after = record._replace(head=head, next_page=index + 1, turn=record.turn + 1, open_page=index)
    return Transition(record.head, after, entries, (page,))


def append(storage: Storage, context: str, *bodies: bytes) -> Transition:
    """Commit *bodies* as the next page of *context* and return the transition. O(bodies)."""
    transition = appended(current(storage, context), *bodies)
    storage.commit(transition)
    return transition
