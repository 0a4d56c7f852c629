"""Stores, as the commands open them: a SQLite file, a folder with one and plain copies, or a Postgres database.

If something is missing, or nothing is named and there are several, an `InvalidSetting` says so.
"""

import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InvalidSetting, SeveralOwners, hint
from ..storage import Storage, opening
from ..storage.filesystem.store import DATABASE
from ..storage.names import owned
from ..storage.opening import is_folder, is_url, name_of
from ..storage.protocol import ContextRecord
from ..storage.sqlite.loss import check_left, witness_path
from ..storage.witness import Slot, Witness

if TYPE_CHECKING:
    from ..memory import TieredMemory

NAMED = 5  # ids in one line, at most: more do not fit a terminal


def open_store(path: str, *, write: bool = False, make: bool = False, plain: bool = False) -> closing[Storage]:
    """Return the store at *path*, for a `with` that closes it; *plain*: do not use the keys of the environment."""
    if not is_url(path) and (not make or os.path.exists(path)):  # noqa: PTH110 -- a Path would lose the / at the end
        check_path(path, filled=not make)
    return closing((opening.open_plain if plain else opening.open_store)(path, read_only=not write))


def check_path(path: str, *, filled: bool) -> Path:
    """Return the file or folder at *path*, which may be a store; *filled*: it must not be empty.

    InvalidSetting says what is wrong with it; CorruptRecord, that it is gone or empty, but not what belongs to it.
    """
    if not path:
        raise InvalidSetting("store", "expected a path or a URL, got an empty one")
    try:
        place = Path(path)
        if not place.exists():
            why = "there is no such file: check the path; nothing was made"
        elif not place.is_dir() and not place.is_file():
            why = "is not a file, so it is not a store"
        elif filled and place.is_dir() and not (place / "memci.json").exists():
            why = "is a folder, not a store: it has no memci.json; name a store in it"
            if (place / DATABASE).exists():
                why = f"has no memci.json: put it back from a backup; or memci salvage {place / DATABASE} NEW"
        elif filled and not place.stat().st_size:
            why = "is empty, not a store; it was left as it is"
        else:
            return place
    except (OSError, ValueError) as error:
        raise InvalidSetting(path, f"can't be read: {error}") from None
    check_left(path)
    raise InvalidSetting(path, why)


def database(path: str) -> str:
    """Return the SQLite file of the store at *path*: itself, or the one in the folder."""
    return str(Path(path, DATABASE)) if is_folder(path) else path


def read_witness(path: str) -> list[Slot] | None:
    """Return the slots of the witness of the store at *path*, None if there is no witness, as on a server."""
    if is_url(path):
        return None
    with closing(Witness(witness_path(database(path)), read_only=True)) as witness:
        return witness.slots() if witness.is_there else None


def find_context(storage: Storage, context: str, owner: str | None) -> ContextRecord | None:
    """Return the record of *context*, None if there is none, or none of *owner*. O(1)."""
    try:
        found = owned(storage, context, owner)
    except SeveralOwners as error:
        names = ", ".join(repr(each)[:60] for each in error.owners)
        raise InvalidSetting("--owner", f"several owners have a context {context!r:.60}: name one of {names}") from None
    return None if found is None else found[0]


def choose_context(storage: Storage, path: str, context: str | None, owner: str | None = None) -> ContextRecord:
    """Return the record of *context*, or of the only context if that is None. O(1), or O(contexts) if there is none."""
    if context is not None and (found := find_context(storage, context, owner)) is not None:
        return found
    if context is not None and (theirs := [record.id for record in storage.contexts(owner=context)]):
        raise InvalidSetting("--context", f"{context!r:.60} is an owner, of {_listed(theirs)}: name one of them")
    records = {record.id: record for record in choose_contexts(storage, path, owner)}
    return records[choose("--context", context, list(records), what="context", path=path, owner=owner)]


def choose_contexts(storage: Storage, path: str, owner: str | None) -> list[ContextRecord]:
    """Return the records of all contexts, or of those of *owner*, who has some. O(contexts)."""
    records = list(storage.contexts(owner=owner))
    if owner is not None and not records and (found := storage.load(owner)) is not None:
        raise InvalidSetting("--owner", f"{owner!r:.60} is a context, of {found[0].owner!r:.60}: name it by --context")
    if owner is not None and not records:
        names = list(dict.fromkeys(record.owner for record in storage.contexts()))
        choose("--owner", owner, names, what="owner", path=path)
    return records


def choose_owner(storage: Storage, path: str, *, context: str | None, owner: str | None) -> str:
    """Return the owner who is named, or whose *context* is named, or the only one. O(contexts)."""
    if context is not None:
        return choose_context(storage, path, context, owner).owner
    return choose("--owner", owner, list_owners(storage), what="owner", path=path)


def list_owners(storage: Storage) -> list[str]:
    """Return all who have a context or a memory in *storage*. O(contexts)."""
    from ..memory.inspect import owners

    return list(dict.fromkeys([*(record.owner for record in storage.contexts()), *owners(storage)]))


def count_waiting(storage: Storage, memory: "TieredMemory") -> int:
    """Return how many pages of its owner's contexts the memory was not fed yet. O(contexts)."""
    from ..memory.inspect import waiting

    return sum(waiting(memory, record.id) for record in storage.contexts(owner=memory.owner))


def choose(
    option: str, wanted: str | None, known: Sequence[str], *, what: str, path: str, owner: str | None = None
) -> str:
    """Return *wanted* if it is *known*, or the only one that is known if *wanted* is None.

    Else the error names *option*: the store at *path*, or *owner* in it, has no such *what*, or several.
    """
    if wanted in known or (wanted is None and len(known) == 1):
        return wanted or known[0]
    names = _listed(known)
    [whose, it] = [name_of(path), "it"] if owner is None else [f"{owner!r:.60}"] * 2
    if wanted is None:
        raise InvalidSetting(option, f"name one: {whose} has {names}" if known else f"{whose} has no {what} yet")
    raise InvalidSetting(option, f"{whose} has no {what} {wanted!r:.60}; {it} has {names}{hint(wanted, known)}")


def _listed(names: Sequence[str]) -> str:
    """Return the first of *names*, and how many there are."""
    shown = ", ".join(repr(each)[:60] for each in names[:NAMED]) or "none"
    return f"{shown}, … ({len(names):,} in all)" if len(names) > NAMED else shown
