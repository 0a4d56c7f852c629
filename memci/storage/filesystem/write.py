"""Committing a transition: which file is written when, and what is synced before.

    new context    .0f3a….tmp/context.jsonl   synced   ──▶   renamed to 0f3a…   ──▶   contexts/ synced
    large news     messages/… pages/… …       synced   ──▶   their folders synced, and only then:
    a list of tools that is new   tools/…   synced   ──▶   its folder synced, and only then:
    every one      context.jsonl              synced   ──▶   renamed            ──▶   its folder synced

An earlier writer may have been killed between a rename and its sync: the first commit of a handle to a context syncs
all folders above, and an op is reported as known only after a sync.

A commit holds the lock of the context. This module knows nothing of locks or erasing.
"""

from collections.abc import Callable

from ...errors import CommitUnknown, StorageError
from ..protocol import OpRow, Transition
from ..validation import all_calls, check_parent, check_revision
from .context_file import KINDS, ContextFile, folder_name, tools_key
from .files import Files
from .read import CONTEXTS, Reading, load
from .rows import line, whole


def commit(files: Files, transition: Transition, *, full: bool) -> OpRow | None:
    """Apply *transition* as `Storage.commit` says. O(rows, and window)."""
    record, op = transition.record, transition.op
    kept = load(files, folder_name(record.id), record.id)
    op_id = None if op is None else op.op_id
    if kept is not None and full:
        make_final(files.make_last, f"{CONTEXTS}/{kept.folder}", op_id)
    if kept is not None and op is not None:
        known = Reading(files, kept).op(op.op_id)
        if known is not None:
            if full:
                make_final(files.sync, f"{CONTEXTS}/{kept.folder}", op_id)
            return known
    check_revision(transition, *((0, 0) if kept is None else (kept.record.head, kept.record.revision)))
    if kept is None:
        _check_parent(files, transition, full=full)
        kept = ContextFile(record, record.base)
        kept.follow(transition)
        _create(files, kept, transition, op_id, full=full)
        return None
    kept.check_whole()
    if kept.due:
        kept = _spilled(files, kept, full=full)
    place = f"{CONTEXTS}/{kept.folder}"
    _keep_tools(files, place, kept.folder, transition)
    kept.follow(transition)
    files.write(f"{place}/context.jsonl", kept.dumps())
    if full:
        make_final(files.sync, place, op_id)
    return None


def make_final(make: Callable[[str], None], place: str, op_id: str | None) -> None:
    """Make the folder *place* last by a method of its files (`sync` or `make_last`), or raise CommitUnknown."""
    try:
        make(place)
    except StorageError as error:
        raise CommitUnknown(op_id, str(error)) from error


def _create(files: Files, kept: ContextFile, transition: Transition, op_id: str | None, *, full: bool) -> None:
    tmp = f"{CONTEXTS}/.{kept.folder}.tmp"
    files.make_folder(CONTEXTS)
    files.remove(tmp)
    try:
        files.make_folder(tmp, lasts=False)
        _keep_tools(files, tmp, kept.folder, transition)
        files.write(f"{tmp}/context.jsonl", kept.dumps())
        files.sync(tmp)
        files.rename(tmp, kept.folder)
    except StorageError:
        files.remove(tmp)
        raise
    if full:
        make_final(files.make_last, f"{CONTEXTS}/{kept.folder}", op_id)


def _spilled(files: Files, kept: ContextFile, *, full: bool) -> ContextFile:
    """Put the news of *kept* into files of their own, and return it without them. O(news)."""
    place = f"{CONTEXTS}/{kept.folder}"
    if not full:
        # What is spilled counts as committed: that it was has to last before.
        files.sync(place)
        files.sync(CONTEXTS)
    reading = Reading(files, kept)
    for kind in KINDS:
        if kind != "messages":
            reading.complete(kind)
    spilled = kept.spill(reading.read)
    kinds = sorted({name.partition("/")[0] for name in spilled})
    for kind in kinds:
        files.make_folder(f"{place}/{kind}")
    for name, content in spilled.items():
        files.write(f"{place}/{name}", content)
    for kind in kinds:
        files.sync(f"{place}/{kind}")
    counts = {kind: len(reading.names(kind)) for kind in KINDS}
    return ContextFile(kept.record, kept.record.head, kept.last, counts, kept.active, erasures=kept.erasures)


def _keep_tools(files: Files, place: str, folder: str, transition: Transition) -> None:
    """Write the lists of tools that *transition* brings, unless they are there. O(bytes)."""
    for text in {call.tools for call in all_calls(transition) if call.tools is not None}:
        key = tools_key(text)
        if not files.has(name := f"{place}/tools/{key}.jsonl"):
            files.make_folder(f"{place}/tools")
            files.write(name, whole(folder, "tools", [line(folder, {"tools": key}, text.encode())]))
            files.sync(f"{place}/tools")


def _check_parent(files: Files, transition: Transition, *, full: bool) -> None:
    parent = transition.record.parent
    if parent is None:
        return
    above = load(files, folder_name(parent), parent)
    check_parent(transition.record, None if above is None else above.record.head)
    while not full and above is not None:  # a fork must not outlast what it shares
        files.sync(f"{CONTEXTS}/{above.folder}")
        files.sync(CONTEXTS)
        above = None if above.record.parent is None else load(files, folder_name(above.record.parent), None)
