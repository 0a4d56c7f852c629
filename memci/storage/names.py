"""Names: which context of a store is meant by an id and an owner. Each owner has ids of its own.

    stored as     id       owner
    "trip"        trip     ada       the first one of this id
    "trip∷bob"    trip     bob       another owner's, who wanted it although there was one

What a store calls an id is the first column: unique in the store, shown in lists, and an id that opens the context as
well. So nothing but opening, forking and importing needs to know of this.
"""

from ..errors import InvalidSetting, SeveralOwners, brief
from ..rows import ContextRecord
from . import Storage
from .validation import check_text

MARK = "∷"
"""stands between id and owner; new ids can't have it"""
_NAMED = 8
"""how many owners an error names"""

Stored = tuple[ContextRecord, str | None]
"""a record and the last compaction"""


def check_name(name: str, value: object) -> None:
    """Raise InvalidSetting unless *value* can name a context or an owner. O(characters)."""
    if not isinstance(value, str) or not value:
        raise InvalidSetting(name, f"expected a name (a str that is not empty), got {brief(value)}")
    check_text(name, value)


def find(storage: Storage, id: str, owner: str | None) -> tuple[str, Stored | None]:  # noqa: A002
    """Return what the context that is meant is stored as, and the context; with None, it would be a new one. O(1).

    Without an *owner*, the context of this id is meant, whosever it is: SeveralOwners if several have one. With one who
    has none of this id while another owner has, the context of the other one is returned: its record tells.
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
    """Return the context that is meant, None if there is none, or *owner* has none of this id. It raises as `find`."""
    found = find(storage, id, owner)[1]
    return found if found is not None and owner in {None, found[0].owner} else None


def new(storage: Storage, id: str, owner: str) -> str:  # noqa: A002
    """Return what a new context *id* of *owner* is stored as; InvalidSetting if that is no name, or taken. O(1)."""
    check_name("id", id)
    check_name("owner", owner)
    name, found = find(storage, id, owner)
    if found is None:
        return name
    own = beside(id, owner)
    if MARK in id or found[0].owner == owner or name == own:
        raise taken(id)
    return own


def taken(id: str) -> InvalidSetting:  # noqa: A002
    """Return the error for a new context *id* where there is one already."""
    return InvalidSetting("id", f"there is a context {id!r:.60} already: take another id, or erase that one first")


def beside(id: str, owner: str) -> str:  # noqa: A002
    """Return what the context *id* of *owner* is stored as where another owner has the id."""
    return f"{id}{MARK}{owner}"


def _others(storage: Storage, id: str) -> list[ContextRecord]:  # noqa: A002
    """Return the first contexts of *id* that are stored with their owner; an old id that only looks so is none."""
    near = storage.contexts(after=f"{id}{MARK}", limit=_NAMED)
    return [each for each in near if each.id == beside(id, each.owner)]
