"""Damage: `memci verify` finds it, and `memci salvage` saves what can be read into a new store.

Both only read the store.
"""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..errors import CorruptRecord, InvalidSetting, KeyMissing, StorageUnavailable
from ..rows import EntryRow
from ..storage import Storage
from ..storage.filesystem.files import meaning
from ..storage.opening import is_folder, is_url, name_of
from ..storage.protocol import CheckedStorage, ContextRecord
from ..storage.sqlite.loss import SAVE, accept_loss, is_filled
from ..storage.sqlite.mending import mend, mend_index, mend_tables
from .options import Store, Target
from .printer import Part, Printer, Result, many, many_messages, proof
from .stores import check_path, database, open_store, read_witness

_LOST = 20  # lines about losses of one context, at most: a screen; --json has all


def run_verify(store: Store, *, printer: Printer) -> Result:
    """Read everything in a store, and say what is wrong with it. Changes nothing."""
    from ..history.listing import count_erased
    from ..history.verify import problems

    contexts: dict[str, dict[str, Any]] = {}
    damage: list[str] = []
    try:
        with open_store(store) as storage:
            damage += storage.damage() if isinstance(storage, CheckedStorage) else []
            records: list[ContextRecord] = list(storage.contexts())
            with printer.progress("messages", {record.id: record.head for record in records}) as done:
                for each in records:
                    gone = count_erased(storage, each)
                    found = {"id": each.id, "messages": each.head, "erased": gone, "problems": [], "not_checked": None}
                    contexts[each.id] = found

                    def read(_: EntryRow, context: str = each.id) -> None:
                        done(context, 1)

                    try:
                        found["problems"] = list(problems(storage, each.id, on_entry=read))
                    except KeyMissing as error:
                        found["not_checked"] = str(error)
    except CorruptRecord as error:
        damage.append(str(error))
    damaged = bool(damage) or any(each["problems"] for each in contexts.values())
    well = not damaged and all(each["not_checked"] is None for each in contexts.values())
    facts = {"store": store, "well": well, "problems": damage, "contexts": list(contexts.values())}
    return Result(facts, _show_checked(facts, damaged=damaged), well)


def _show_checked(facts: Mapping[str, Any], *, damaged: bool) -> Iterator[Part]:
    for problem in facts["problems"]:
        yield f"✗ {problem}", "red"
    for each in facts["contexts"]:
        if each["not_checked"] is not None:
            yield proof(False, f"{each['id']}: not checked: {each['not_checked']}")
            continue
        wrong = each["problems"]
        every = "every other" if each["erased"] else "every"
        result = many(len(wrong), "problem") if wrong else f"{every} one is there, and as it was written"
        yield proof(not wrong, f"{each['id']}: {many_messages(each['messages'], each['erased'])}, {result}")
        yield from (f"  {problem}" for problem in wrong)
    name = name_of(store := facts["store"])
    if not damaged:
        yield from _show_unseen(store, there=bool(facts["contexts"]))
    elif is_url(store) or is_filled(database(store)):
        yield f"what can be read goes to a new store: memci salvage {name} NEW"


def _show_unseen(store: str, *, there: bool) -> Iterator[Part]:
    """Yield what a *store* with nothing wrong does not show; *there*: whether it has contexts."""
    if not there:
        yield f"{name_of(store)} holds no contexts"
    if not is_url(store) and read_witness(store) is None:
        yield "no witness can be read beside it, so that the loss of whole commits can't be seen", "dim"


def run_salvage(store: Store, target: Target) -> Result:
    """Save what can be read of a damaged store into a new one. What is lost is named; the old store is only read."""
    from ..history.salvage import salvage_contexts

    with _open_new(target) as into, _open_damaged(store) as (source, place, lost):
        found = [
            each._replace(lost=tuple(reason.replace(place, store) for reason in each.lost))
            for each in salvage_contexts(source, into, read_witness(store) or ())
        ]
    well = not lost and not any(each.lost for each in found)
    view: list[Part] = [(f"! {reason}", "yellow") for reason in lost]
    for each in found:
        mark, style = ("✓", "green") if not each.lost else ("!", "yellow") if each.saved else ("✗", "red")
        result = many(each.messages, "message") if each.saved else "could not be saved"
        view.append((f"{mark} {each.id or 'unknown'}: {result}{', all of it' if not each.lost else ''}", style))
        view += [f"  lost: {reason}" for reason in each.lost[:_LOST]]
        if len(each.lost) > _LOST:
            view.append((f"  and {len(each.lost) - _LOST:,} more: --json names them all", "dim"))
    view.append((f"the new store: memci inspect {target}; its memory: memci consolidate {target}", "dim"))
    view += _show_unseen(store, there=bool(found)) if well else ()
    contexts = [each._asdict() for each in found]
    return Result({"store": store, "target": target, "well": well, "lost": lost, "contexts": contexts}, view, well)


@contextmanager
def _open_new(target: str) -> Iterator[Storage]:
    """Yield the new store at *target*. A file or a folder gets its name at the end: after an error it is not there."""
    from ..history.placing import free_place, moved_to

    with nullcontext(target) if is_url(target) else moved_to(free_place(target)) as made:
        place = f"{made}/" if is_folder(target) else str(made)
        with open_store(place, write=True, make=True) as into:
            if is_url(target) and into.contexts(limit=1):
                raise InvalidSetting("target", "holds contexts already: name an empty database or schema")
            yield into


@contextmanager
def _open_damaged(path: str) -> Iterator[tuple[Storage, str, list[str]]]:
    """Yield a store with the data of *path*, its own path, and what is wrong with the files if it is a copy.

    A store that can't be opened, or whose indexes are damaged, is copied without its witness, and the copy is read.
    """
    from ..history.placing import all_beside

    damage = [reason.removesuffix(f": {SAVE}")] if (reason := _refusal(path)) else []
    if not damage:
        with open_store(path) as storage:
            damage = storage.damage() if not is_url(path) and isinstance(storage, CheckedStorage) else []
            if not damage:
                yield storage, path, []
                return
    with TemporaryDirectory(prefix="memci-") as folder:
        place, copy = check_path(path, filled=True), Path(folder, "store")
        try:
            if place.is_dir():
                shutil.copytree(place, copy)
            else:
                for each in (place, *all_beside(place)):
                    if each.is_file():
                        shutil.copy2(each, f"{copy}{each.name.removeprefix(place.name)}")
        except OSError as error:
            raise meaning(error, str(error.filename2 or error.filename or folder)) from error
        file = database(str(copy))
        if is_filled(file):
            mend(file)
            accept_loss(file)
            if _refusal(str(copy), copied=True):
                mend_tables(file)
            mend_index(file)
        nothing = InvalidSetting(path, f"nothing of it can be read, take a backup: {damage[0]}")
        if _refusal(str(copy), copied=True):
            raise nothing
        with open_store(str(copy)) as storage:
            if not _has_list(storage):
                raise nothing
            yield storage, str(copy), damage


def _has_list(storage: Storage) -> bool:
    """Return whether the contexts of *storage* can be listed, whether the first is damaged or not."""
    try:
        storage.contexts(limit=1)
    except CorruptRecord as error:
        return bool(error.context)
    return True


def _refusal(path: str, *, copied: bool = False) -> str:
    """Return how an existing store at *path* is damaged, "" if it can be opened.

    *copied*: it is a copy, for which every reason but a key counts.
    """
    try:
        with open_store(path):
            return ""
    except (CorruptRecord, StorageUnavailable) as error:
        if not copied and not isinstance(error, CorruptRecord):
            raise
        if is_url(path):
            raise
        return str(error)
