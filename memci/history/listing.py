"""Lists the contexts of a store without opening them."""

from contextlib import suppress
from dataclasses import dataclass

from ..errors import MemciError
from ..rows import ContextRecord
from ..storage import Storage
from ..storage.arguments import checked
from ..storage.codec import ERASED, SEALED
from ..storage.validation import check_int
from ..window.state import WindowState


@dataclass(frozen=True, slots=True)
class ContextInfo:
    """What is known of a context without opening it."""

    id: str
    owner: str
    messages: int  # how many were appended; those undone or erased later count, too
    pages: int  # how many were opened; those undone or erased later count, too
    turns: int  # how many interactions are closed, which means that a later one has begun
    parent: str | None  # the context that it was forked from


@checked
def list_contexts(storage: Storage, *, owner: str | None, after: str | None, limit: int) -> list[ContextInfo]:
    """Return the contexts of *storage* by id (see `Context.list`). O(the contexts up to the last one)."""
    check_int("limit", limit)
    return [
        ContextInfo(record.id, record.owner, record.head, record.next_page - 1, record.turn, record.parent)
        for record in storage.contexts(owner=owner, after=after, limit=limit)
    ]


def count_erased(storage: Storage, record: ContextRecord) -> int | None:
    """Return how many messages of *record* are erased, or lost and salvaged as such; None if that can't be read.

    A tombstone is seen without a key. O(messages) if something was erased, or may be, since the state is encrypted.
    """
    with suppress(MemciError):
        if record.encrypted or WindowState.loads(record.state).erasures:
            tombs = {ERASED, SEALED + ERASED}
            return sum(row.codec in tombs for row in storage.entries(record.id, 0, record.head))
        return 0
    return None
