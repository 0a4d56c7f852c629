"""Whose memory a command is about.

    --owner ada        ada                    --context alice    whose context that is
    neither            the only owner of the store; if there are several, an error that names them

This module knows nothing of what a memory holds.
"""

from pathlib import Path

from ...errors import InvalidSetting
from ...memory.inspect import owners
from ...storage import Storage
from ..stores import chosen

_NAMED = 5


def owners_of(storage: Storage) -> list[str]:
    """Return all who have a context or a memory in *storage*. O(contexts)."""
    return list(dict.fromkeys([*(record.owner for record in storage.contexts()), *owners(storage)]))


def chosen_owner(storage: Storage, path: str, *, context: str | None, owner: str | None) -> str:
    """Return the owner who is named, or whose *context* is, or the only one.

    Raises:
        InvalidSetting: If both are named, if the one that is named is not there, or if there is not one alone.
    """
    if context is not None and owner is not None:
        raise InvalidSetting("--owner", "name one of --context and --owner: a context has one owner")
    if context is not None:
        found = storage.load(chosen(storage, path, context))
        assert found is not None, "it was chosen among those of the store"
        return found[0].owner
    known = owners_of(storage)
    if owner in known or (owner is None and len(known) == 1):
        return owner or known[0]
    told = ", ".join(repr(each)[:60] for each in known[:_NAMED]) or "none"
    told += f", … ({len(known):,} in all)" if len(known) > _NAMED else ""
    if owner is None:
        raise InvalidSetting("--owner", f"name one: {Path(path).name} has {told}")
    raise InvalidSetting("--owner", f"{Path(path).name} has nothing of {owner!r:.60}; it has {told}")
