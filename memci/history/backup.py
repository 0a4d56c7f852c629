"""Backing up: a whole, verified copy of a store that is in use, made by SQLite's backup.

    backup("agents.db", "backup.db")      the file, with the memory in it; audit log and witness beside it
    backup("agents", "backup")            a folder: the file, memory.db, audit log, and plain copies made from the copy

The copy is made and verified beside its place, and then moved there (`placing`): it is whole, or not there.
A backup still has what was erased since. `repeat_erasures` erases it there, too:

    messages             those that have a tombstone in the store, and none in the backup
    contexts, owners     those that the store has no more, and that its audit log names as erased
"""

import os
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import CorruptRecord, InvalidSetting, brief
from ..rows import ContextRecord, EntryRow
from ..storage import Storage
from ..storage.arguments import checked
from ..storage.audit import AuditedStorage, mark
from ..storage.codec import ERASED
from ..storage.filesystem.store import DATABASE, MARK
from ..storage.opening import is_folder, is_url, open_plain, open_store
from ..storage.protocol import CheckedStorage, Erasure
from ..storage.sqlite.backup import copy_file
from ..window.state import WindowState
from .erase import erase, erase_seqs
from .erasures import ErasureReceipt
from .placing import beside, free_place, moved_to
from .row_stream import readable_entries
from .verify import problems


class Backup(NamedTuple):
    """What a backup has."""

    contexts: int
    messages: int
    erased: int = 0  # how many of the messages are erased
    unknown: tuple[str, ...] = ()
    """contexts that the store whose erasures were repeated does not have, although it does not say that it erased them:
    they are still there"""


def backup(
    store: str | os.PathLike[str], target: str | os.PathLike[str], *, erasures_of: str | os.PathLike[str] | None = None
) -> Backup:
    """Copy the file or folder *store*, which may be in use, to the new path *target*, and verify it. O(bytes).

    *erasures_of*: a store of any kind, of which *store* is an older copy; its later erasures are repeated in *target*.

    Raises:
        InvalidSetting: If *target* is there, or if one of them is a database: use pg_dump.
        CorruptRecord: If the store is damaged: there is no copy then.
        KeyMissing: If it is encrypted, and the environment has no key to verify it with.
        StorageError: If it can't be read or written.
    """
    for name, path in (("store", store), ("target", target), ("erasures_of", erasures_of or "")):
        if not isinstance(path, str | os.PathLike):
            raise InvalidSetting(name, f"expected a path, got {brief(path)}")
    if is_url(store) or is_url(target):
        raise InvalidSetting("store", "Postgres makes its own backups: pg_dump --schema=memci DATABASE")
    place = free_place(target)
    open_plain(store, read_only=True).close()  # a store that has lost commits is refused
    unknown: tuple[str, ...] = ()
    with moved_to(place) as copy:
        if is_folder(store):
            _copy_folder(Path(store), copy)
        else:
            copy_file(str(store), str(copy))
            _copy_plain(beside(Path(store), "-audit"), beside(copy, "-audit"))
        if erasures_of is not None:
            with closing(open_store(erasures_of, read_only=True)) as live, closing(open_store(copy)) as repeated:
                repeat_erasures(repeated, live)
                unknown = tuple(record.id for record in repeated.contexts() if not _has(live, record))
        return _verify(copy)._replace(unknown=unknown)


@checked
def repeat_erasures(copy: Storage, store: Storage) -> list[ErasureReceipt]:
    """Erase in *copy*, an older copy of *store*, what was erased in *store* since; return a receipt for each erasure.

    O(entries). A context is the same in both if its id and its nonce are. It raises as `erase`.
    """
    receipts, gone = list[ErasureReceipt](), list[ContextRecord]()
    for record in copy.contexts():
        if not _has(store, record):
            gone.append(record)
            continue
        rows = (row for row in readable_entries(store, record) if isinstance(row, EntryRow) and row.codec == ERASED)
        receipt = erase_seqs(copy, record.id, [row.seq for row in rows])
        receipts += [receipt] if receipt.entries else []
    log = [] if not isinstance(store, AuditedStorage) else list(store.audit_log.with_field("action"))
    refused = {line.get("job") for line in log if line["action"] == "refused"}
    log = [line for line in log if line.get("job") not in refused]
    gone = [record for record in gone if _was_erased(record, log)]
    while gone:  # forks before their parents
        last = next(each for each in gone if each.id not in {other.parent for other in gone})
        receipts.append(erase(copy, context=last.id))
        gone.remove(last)
    return receipts


def _has(store: Storage, record: ContextRecord) -> bool:
    """Return whether *store* has the context of *record*, as far as both can be read without a key."""
    if (found := store.load(record.id)) is None:
        return False
    sealed = found[0].encrypted or record.encrypted
    return sealed or WindowState.loads(found[0].state).nonce == WindowState.loads(record.state).nonce


def _was_erased(record: ContextRecord, log: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether *log* says that the whole context of *record* was erased, or all of an owner that it had."""
    name, owners = mark(record.id), {mark(record.owner)}
    for line in log:
        if line["action"] == "owner" and line.get("context") == name:
            owners.add(line["owner"])
        whole = line["action"] == "erase" and line.get("page") is None
        if whole and line.get("context", name) == name and line.get("owner") in owners:
            return True
    return False


def _copy_folder(source: Path, copy: Path) -> None:
    copy.mkdir(0o700)
    memory = source / "memory.db"
    if memory.exists():  # first: a memory behind its pages is fed them, one ahead would know what is not there
        copy_file(str(memory), str(copy / memory.name), store=False)
    copy_file(str(source / DATABASE), str(copy / DATABASE))
    for name in ("audit.jsonl", MARK):
        _copy_plain(source / name, copy / name)
    with closing(open_plain(copy)) as storage:
        storage.erase(Erasure())  # writes the plain copies


def _copy_plain(source: Path, copy: Path) -> None:
    if source.exists():
        shutil.copy(source, copy)
        with copy.open("rb") as file:
            os.fsync(file.fileno())


def _verify(copy: Path) -> Backup:
    with closing(open_store(copy, read_only=True)) as storage:
        wrong = storage.damage() if isinstance(storage, CheckedStorage) else []
        records = storage.contexts()
        codecs = Counter[int]()
        for record in records:
            wrong += problems(storage, record.id, on_entry=lambda row: codecs.update((row.codec,)))
        if wrong:
            raise CorruptRecord("", 0, f"the store is damaged, and was not copied: {wrong[0]}; see memci verify")
        return Backup(len(records), sum(record.head for record in records), codecs[ERASED])
