"""Backing up: a whole, verified copy of a store that is in use, made by SQLite's backup.

    backup("agents.db", "backup.db")      the file, with the memory in it; audit log and witness beside it
    backup("agents", "backup")            a folder: the file, memory.db, audit log, and plain copies made from the copy

The copy is made and verified in a hidden folder beside its place, and then moved there: it is whole, or not there.
"""

import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from ..errors import CorruptRecord, InvalidSetting
from ..storage.filesystem.store import DATABASE, MARK
from ..storage.opening import is_folder, is_url, open_plain, open_store
from ..storage.protocol import CheckedStorage, Erasure
from ..storage.sqlite.backup import copy_file
from ..storage.witness import sync_folder
from .verify import problems


class Backup(NamedTuple):
    """What a backup has."""

    contexts: int
    messages: int


def backup(store: str | os.PathLike[str], target: str | os.PathLike[str]) -> Backup:
    """Copy the file or folder *store*, which may be in use, to the new path *target*, and verify it. O(bytes).

    Raises:
        InvalidSetting: If *target* is there, or if one of them is a database: use pg_dump.
        CorruptRecord: If the store is damaged: there is no copy then.
        KeyMissing: If it is encrypted, and the environment has no key to verify it with.
        StorageError: If it can't be read or written.
    """
    if is_url(store) or is_url(target):
        raise InvalidSetting("store", "Postgres makes its own backups: pg_dump --schema=memci DATABASE")
    place = Path(target)
    places = (place, *(_beside(place, end) for end in _ENDS))
    if there := next((each for each in places if os.path.lexists(each)), None):
        raise InvalidSetting("target", f"{str(there)!r} is there already, and is unchanged: name a new place")
    if not place.absolute().parent.is_dir():
        raise InvalidSetting("target", f"there is no folder {str(place.parent)!r}: make it first")
    open_plain(store, read_only=True).close()  # a store that has lost commits is refused
    with TemporaryDirectory(prefix=".memci-", dir=place.absolute().parent) as hidden:
        copy = Path(hidden, "store")
        if is_folder(store):
            _copy_folder(Path(store), copy)
        else:
            copy_file(str(store), str(copy))
            _copy_plain(_beside(Path(store), "-audit"), _beside(copy, "-audit"))
        made = _verify(copy)
        for end in ("", *_ENDS):  # the file first: what belongs to a missing file would count as a loss
            if _beside(copy, end).exists():
                _beside(copy, end).rename(_beside(place, end))
        sync_folder(str(place.absolute()))
    return made


_ENDS = ("-witness", "-audit", "-wal", "-shm")
"""files beside that of a store"""


def _beside(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)


def _copy_folder(source: Path, copy: Path) -> None:
    copy.mkdir(0o700)
    memory = source / "memory.db"
    if memory.exists():  # first: a memory behind its pages is fed them, one ahead would know what is not there
        copy_file(str(memory), str(copy / memory.name), store=False)
    copy_file(str(source / DATABASE), str(copy / DATABASE))
    for name in ("audit.jsonl", MARK):
        _copy_plain(source / name, copy / name)
    storage = open_plain(copy)
    try:
        storage.erase(Erasure())  # writes the plain copies
    finally:
        storage.close()


def _copy_plain(source: Path, copy: Path) -> None:
    if source.exists():
        shutil.copy(source, copy)
        with copy.open("rb") as file:
            os.fsync(file.fileno())


def _verify(copy: Path) -> Backup:
    storage = open_store(copy, read_only=True)
    try:
        wrong = storage.damage() if isinstance(storage, CheckedStorage) else []
        records = storage.contexts()
        wrong += [problem for record in records for problem in problems(storage, record.id)]
        if wrong:
            raise CorruptRecord("", 0, f"the store is damaged, and was not copied: {wrong[0]}; see memci verify")
        return Backup(len(records), sum(record.head for record in records))
    finally:
        storage.close()
