"""Copying contexts from store to store: each whole and exact, in one commit; contexts that are there are skipped.

A memory is not copied: the target builds a new one from the pages.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from ..errors import InvalidSetting, WriteConflict
from ..rows import ContextRecord
from ..storage import Storage
from ..storage.arguments import checked
from ..storage.audit import audit, mark
from ..storage.names import beside, find
from ..window.state import alone
from .erasures import owners_before
from .row_stream import rows_of, transition_of

_LISTED = 256  # contexts that are listed in one read: few reads, and little memory


class CopiedContext(NamedTuple):
    """A context that the target has."""

    id: str
    messages: int
    new: bool  # whether this copy wrote it; False: it was there before
    stored: str  # its id in the target: "id∷owner" if another owner has the same id there


@checked
def copy_contexts(source: Storage, target: Storage) -> Iterator[CopiedContext]:
    """Copy every context of *source* to *target*, and yield each when it is there. O(rows), one context in memory.

    InvalidSetting if the target has a different context of the same id and owner. Contexts that were copied before an
    error stay.
    """
    after: str | None = None
    early: set[str] = set()
    before = owners_before(source)
    while listed := source.contexts(after=after, limit=_LISTED):
        for record in listed:
            if record.id not in early:
                yield from _copy(source, target, record, early, before)
        after = listed[-1].id


def _copy(
    source: Storage, target: Storage, record: ContextRecord, early: set[str], before: Mapping[str, Collection[str]]
) -> Iterator[CopiedContext]:
    """Copy one context, after the contexts that it was forked from. Add their ids to *early*.

    *before*: who had contexts before (`owners_before`), which the target's log says, too.
    """
    parent = None if record.parent is None else source.load(record.parent)
    above = record.parent if parent is None else _name(target, parent[0])
    if parent is not None and above is not None and not target.revision(above):
        yield from _copy(source, target, parent[0], early, before)
        early.add(parent[0].id)
    name = _name(target, record)
    while True:
        there = target.load(name)
        if there is not None:
            if alone(there[0]) == alone(record)._replace(id=name, parent=above):
                yield CopiedContext(record.id, record.head, new=False, stored=name)
                return
            reason = "is in the target already, and differs: erase it there, or copy into another store"
            raise InvalidSetting("context", f"{record.id!r:.60} {reason}")
        transition = transition_of(rows_of(source, record))
        now = source.load(record.id)
        if now is None:
            return
        if now[0] == record:
            break
        record = now[0]  # another writer changed it while it was read
    audit(source, "export", context=record.id)
    audit(target, "import", context=name, owner=record.owner, messages=record.head)
    for owner in sorted(before.get(mark(record.id), ())):  # their contexts may quote this one
        audit(target, "owner", context=name, owner=record.owner, before=owner)
    try:
        target.commit(transition._replace(record=transition.record._replace(id=name, parent=above)))
    except WriteConflict:
        reason = "was created in the target meanwhile: nothing else may write there during a copy"
        raise InvalidSetting("context", f"{record.id!r:.60} {reason}") from None
    yield CopiedContext(record.id, record.head, new=True, stored=name)


def _name(target: Storage, record: ContextRecord) -> str:
    """Return the id under which *target* stores the context of *record*."""
    name, there = find(target, record.id, record.owner)
    return name if there is None or there[0].owner == record.owner else beside(record.id, record.owner)
