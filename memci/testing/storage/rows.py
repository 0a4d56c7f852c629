"""Rows to fill a store with, in tests."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ...rows import CallRow, CompactionRow, ContextRecord, EntryRow, OpRow, PageRow, PageState, Table
from ...storage.codec import ERASED, ORJSON, digest
from ...storage.protocol import Storage, Transition

_R = TypeVar("_R", CallRow, EntryRow, OpRow, PageRow)
_VALUES: dict[type, Sequence[Any]] = {
    int: (0, 2**40),
    str: ("", "ü\x00", "x" * 5_000),
    bytes: (bytes(16), b"\xff" * 16),
    tuple: ((3, 4), (0, 0)),
    PageState: tuple(PageState),
}

Reread = Callable[[], Storage]  # Returns the store for reads after writes: the same object, or the store opened again.


def entry(seq: int, body: bytes, *, at: str | None = None) -> EntryRow:
    """Return an entry of 7 tokens with its digest."""
    return EntryRow(seq, ORJSON, body, digest(ORJSON, body), 7, at=at)


def varied(table: Table, row: _R) -> tuple[_R, ...]:
    """Return *row* once for each field and each value that a careless store changes; keys count from 0. O(fields)."""
    return tuple(row._replace(**{**change, table.key: at}) for at, change in enumerate(_changes(table)))


def _changes(table: Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for name, kind, nullable in table.fields:
        if name not in {table.key, *table.apart}:
            found += [{name: value} for value in (*_VALUES[kind], *([None] if nullable else []))]
    return found


def current(storage: Storage, context: str) -> ContextRecord:
    """Return the record of *context* for its next transition, or a new one."""
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


def with_op(transition: Transition, op_id: str | None, digest_of: bytes = b"d" * 16) -> Transition:
    """Return *transition* with an op that appended its entries, or as it is without an id. O(entries)."""
    if op_id is None:
        return transition
    index = transition.record.next_page - 1
    places = tuple((index, ordinal) for ordinal in range(len(transition.entries)))
    first = transition.record.head - len(places)
    return transition._replace(ops=(OpRow(op_id, digest_of, first, places),))


def called(transition: Transition, tools: str | None = None) -> Transition:
    """Return *transition* with a call of the model, which was sent *tools*."""
    record = transition.record
    cost = (900, 1_000, 640, 2**40, 41)
    call = CallRow(record.revision, transition.head, record.turn, None, "ä", *cost, tools)
    return transition._replace(calls=(call,))


def compacted(transition: Transition, text: str | None) -> Transition:
    """Return *transition* with one more compaction, of this *text*; or as it is without a text."""
    if text is None:
        return transition
    record = transition.record
    made = CompactionRow(record.revision, record.head, record.turn, text)
    return transition._replace(compactions=(*transition.compactions, made))


def forked(parent: str, context: str, base: int, *bodies: bytes) -> Transition:
    """Return the transition that makes *context* a fork at *base*, with *bodies* of its own. O(bodies)."""
    record = ContextRecord(context, owner=context, settings="{}", state="{}", head=base, parent=parent, base=base)
    return appended(record, *bodies)._replace(head=0)


def tombstone(seq: int, role: str = "user") -> EntryRow:
    """Return the tombstone that replaces an erased entry."""
    body = role.encode()
    return EntryRow(seq, ERASED, body, digest(ERASED, body), 3)


def bodies_of(storage: Storage, context: str) -> list[bytes]:
    """Return the bodies of all entries of *context*. O(entries)."""
    return [row.body for row in storage.entries(context)]


def everything(storage: Storage, *contexts: str) -> list[dict[str, Any]]:
    """Return all rows of each of *contexts*, by what they are. O(rows)."""
    return [
        {
            "the record and the last compaction": storage.load(each),
            "the revision of the record": storage.revision(each),
            "entries, all and in order": list(storage.entries(each)),
            "entries without views": list(storage.entries(each, as_appended=True)),
            "compactions, newest first": list(storage.compactions(each)),
            "ops": sorted(storage.ops(each)),
            "calls of the model, oldest first": list(storage.calls(each)),
            **{f"pages in {state}, by index": list(storage.pages(each, state=state)) for state in (None, *PageState)},
        }
        for each in contexts
    ]
