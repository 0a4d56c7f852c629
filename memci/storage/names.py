"""Finds the context that an id and an owner mean. Each owner has ids of its own.

    stored as     id       owner
    "trip"        trip     ada       the first one of this id
    "trip∷bob"    trip     bob       that of another owner

The first column is the id in the store: it is unique, lists show it, and it opens the context as well. So only opening,
forking and importing use this module.
"""

from ..errors import InvalidSetting, SeveralOwners
from ..rows import ContextRecord
from . import Storage
from .validation import check_filled

MARK = "∷"  # separates id and owner in the store; new ids can't contain it
_NAMED = 8  # owners that an error names at most: they fit on a line

Stored = tuple[ContextRecord, str | None]  # a record and the last compaction


def find(storage: Storage, id: str, owner: str | None) -> tuple[str, Stored | None]:  # noqa: A002
    """Return the stored id of the context *id* of *owner*, and the context, or None if there is none. O(1).

    Without an *owner*, it is the only context of this id; SeveralOwners if there are several. If only another owner
    has the id, that context is returned: compare the owner in its record.
    """
    stored = storage.load(id)
    if MARK in id or (stored is not None and stored[0].owner == owner):
        return id, stored
    if owner is None:
        others = _others(storage, id)
        owners = [each.owner for each in ([stored[0]] if stored else []) + others]
        if len(owners) > 1:
            raise SeveralOwners(id, owners)
        return (others[0].id, storage.load(others[0].id)) if others else (id, stored)
    own = beside(id, owner)
    found = storage.load(own)
    if found is not None:
        return own, found
    if stored is None and (others := _others(storage, id)):
        return others[0].id, storage.load(others[0].id)
    return id, stored


def owned(storage: Storage, id: str, owner: str | None) -> Stored | None:  # noqa: A002
    """Return the context *id* of *owner*, or None. It raises as `find`."""
    found = find(storage, id, owner)[1]
    return found if found is not None and owner in {None, found[0].owner} else None


def new(storage: Storage, id: str, owner: str) -> str:  # noqa: A002
    """Return the stored id of a new context *id* of *owner*; InvalidSetting if it is not valid, or taken. O(1)."""
    check_filled("id", id)
    check_filled("owner", owner)
    name, found = find(storage, id, owner)
    if found is None:
        return name
    own = beside(id, owner)
    if MARK in id or found[0].owner == owner or name == own:
        raise taken(id)
    return own


def taken(id: str) -> InvalidSetting:  # noqa: A002
    """Return the error for a new context whose *id* is taken."""
    return InvalidSetting("id", f"there is a context {id!r:.60} already: take another id, or erase that one first")


def beside(id: str, owner: str) -> str:  # noqa: A002
    """Return the stored id of context *id* of *owner* if another owner has the id."""
    return f"{id}{MARK}{owner}"


def _others(storage: Storage, id: str) -> list[ContextRecord]:  # noqa: A002
    """Return the first contexts of *id* whose stored id contains their owner."""
    start = f"{id}{MARK}"
    if not any(each.id.startswith(start) for each in storage.contexts(after=start, limit=1)):  # as a rule
        return []
    return [each for each in storage.contexts(after=start, limit=_NAMED) if each.id == beside(id, each.owner)]
