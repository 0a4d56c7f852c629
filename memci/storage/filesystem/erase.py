"""Erasing from several files and contexts at once, although each file changes alone.

    stage    erasing.jsonl: every file as it will be, every one that goes     ──▶  renamed, synced: this is the commit
    finish   each is written or removed, its folder synced                    ──▶  erasing.jsonl is removed

The next writer that finds an `erasing.jsonl` finishes it, as often as needed; a reader sees the files as it says. It
holds what stays, never what goes. This module knows nothing of locks.
"""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from ...errors import CorruptRecord
from ..protocol import EntryRow, ErasedRows, Erasure, Transition
from ..validation import check_forks, check_revision, without_digests
from .context_file import KINDS, ContextFile, folder_name, is_folder_name, merged, op_file, view_file
from .files import Files
from .read import CONTEXTS, Reading, load, owners
from .rows import entry_line, line, op_line, read_lines, whole

JOURNAL: Final = "erasing.jsonl"
_OURS: Final = re.compile(
    rf"{CONTEXTS}/[0-9a-f]{{32}}(/context\.jsonl|/({'|'.join(KINDS)})/[0-9a-f]+(-p?[0-9]+)?\.jsonl)?"
)

Staged = dict[str, bytes | None]
"""files by path: what they will hold, or None for what goes"""


def dumps(staged: Staged) -> bytes:
    """Return the bytes of `erasing.jsonl`. O(bytes)."""
    lines = [line(JOURNAL, {"path": path, "gone": content is None}, content) for path, content in staged.items()]
    return whole(JOURNAL, "erasing", lines)


def loads(content: bytes) -> Staged:
    """Return what an `erasing.jsonl` says, or raise CorruptRecord. O(bytes)."""
    lines = read_lines(JOURNAL, "erasing", content)
    staged: Staged = {}
    for each in lines.good:
        path = each.fields.get("path")
        if not isinstance(path, str) or not _OURS.fullmatch(path):
            raise CorruptRecord("", 0, f"{JOURNAL} names {path!r:.80}, which is no file of ours")
        staged[path] = None if each.fields.get("gone") else each.body
    if lines.damaged or not lines.first:
        raise CorruptRecord("", 0, f"{JOURNAL}, an erasure that was cut short, is not what was written")
    return staged


def finish(files: Files, staged: Staged) -> None:
    """Make the files what *staged* says, and forget it. O(bytes)."""
    folders = {CONTEXTS}
    for path, content in staged.items():
        parent, _, name = path.rpartition("/")
        if content is not None:
            for above in (parent.rpartition("/")[0], parent):
                files.make_folder(above)
            files.write(path, content)
        elif parent == CONTEXTS:
            files.remove(f"{CONTEXTS}/.{name}.tmp")
            if files.has(path):
                files.rename(path, f".{name}.tmp")  # at once: a reader finds all of it, or nothing
            files.remove(f"{CONTEXTS}/.{name}.tmp")
        else:
            files.remove(path)
        folders.add(parent)
    for folder in sorted(folders):
        if files.has(folder):
            files.sync(folder)
    files.remove(JOURNAL)
    files.sync("")


def scrub(files: Files, folders: Iterable[str]) -> None:
    """Remove what was written for these contexts and never given its final name. O(files)."""
    for folder in folders:
        place = f"{CONTEXTS}/{folder}"
        files.remove(f"{CONTEXTS}/.{folder}.tmp")
        for each in (place, *(f"{place}/{kind}" for kind in KINDS)):
            files.remove_unfinished(each)


def involved(files: Files, erasure: Erasure) -> set[str]:
    """Return the folders of all contexts that *erasure* changes."""
    contexts = {*erasure.contexts, *(each.record.id for each in erasure.transitions)}
    contexts |= {_owner(files, context, row.seq).record.id for context, row in erasure.entries}
    return {folder_name(context) for context in contexts}


def _owner(files: Files, context: str, seq: int) -> ContextFile:
    def load_context(name: str) -> ContextFile | None:
        return load(files, folder_name(name), name)

    kept = load_context(context)
    if kept is None or seq >= kept.record.head:
        raise CorruptRecord(context, seq, "it is missing")
    return owners(kept, seq, seq + 1, load_context)[0][0]


class Staging:
    """Works out what an erasure makes of the files; it writes none of them."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._staged: Staged = {}
        self._changed: dict[str, ContextFile] = {}
        self._gone = Counter[str]()
        """how many rows go, by kind"""

    def run(self, erasure: Erasure) -> tuple[Staged, ErasedRows]:
        """Return what *erasure* makes of the files, and how many rows go; it raises as `Storage.erase`.

        O(what changes).
        """
        if erasure.contexts:
            folders = filter(is_folder_name, self._files.names(CONTEXTS))
            records = [kept.record for folder in folders if (kept := load(self._files, folder, None))]
            check_forks(((record.id, record.parent) for record in records), erasure.contexts)
        for context in dict.fromkeys(erasure.contexts):
            self._remove(context)
        erased: set[tuple[str, int]] = set()
        for context, row in erasure.entries:
            owner = _owner(self._files, context, row.seq).record.id
            self._bury(self._kept(owner), context, row)
            erased.add((owner, row.seq))
        for transition in erasure.transitions:
            context = transition.record.id
            head = self._kept(context).record.head
            shown = {seq for kept, seq in erased if seq < head and _owner(self._files, context, seq).record.id == kept}
            self._follow(transition, shown, {seq for kept, seq in erased if kept == context})
        for kept in self._changed.values():
            kept.erasures += 1
            self._staged[f"{CONTEXTS}/{kept.folder}/context.jsonl"] = kept.dumps()
        self._gone["entries"] += len(erasure.entries)
        counts = [self._gone[kind] for kind in ErasedRows._fields[:-1]]
        return self._staged, ErasedRows._make([*counts, True])

    def _remove(self, context: str) -> None:
        kept = load(self._files, folder_name(context), context)
        if kept is None:
            return
        self._staged[f"{CONTEXTS}/{kept.folder}"] = None
        reading = Reading(self._files, kept)
        self._gone["contexts"] += 1
        self._gone["entries"] += kept.record.head - kept.record.base
        self._gone["pages"] += sum(1 for _ in reading.pages(1, None, None))
        self._gone["compactions"] += len({*reading.names("editions"), *kept.compactions})
        self._gone["ops"] += len(reading.ops())

    def _kept(self, context: str) -> ContextFile:
        if context not in self._changed:
            kept = load(self._files, folder_name(context), context)
            assert kept is not None, "it was there, and we hold its lock"
            self._changed[context] = kept
        return self._changed[context]

    def _read(self, kept: ContextFile, name: str) -> bytes | None:
        path = f"{CONTEXTS}/{kept.folder}/{name}"
        return self._staged[path] if path in self._staged else self._files.read(path)

    def _write(self, kept: ContextFile, name: str, content: bytes | None) -> None:
        self._staged[f"{CONTEXTS}/{kept.folder}/{name}"] = content

    def _bury(self, kept: ContextFile, context: str, row: EntryRow) -> None:
        self._drop_views(kept, {row.seq})
        if row.seq >= kept.spilled:
            before = kept.entries.get(row.seq)
            if before is None:
                kept.check_whole()
                raise CorruptRecord(context, row.seq, "it is missing")
            kept.take(row, before.fields.get("page", 0))
            for name in Reading(self._files, kept).names("messages"):
                if int(name[9:21]) >= kept.spilled:  # a spill that was cut short left it
                    self._write(kept, name, None)
            return
        names = [name for name in Reading(self._files, kept).names("messages") if int(name[9:21]) <= row.seq]
        content = self._read(kept, names[-1]) if names else None
        if content is None:
            raise CorruptRecord(context, row.seq, "it is missing")
        first, good, damaged = read_lines(kept.folder, "messages", content)
        page = int(names[-1][9:].partition("-p")[2].removesuffix(".jsonl"))
        lines = {each.fields["seq"]: each.raw for each in good}
        # If the line of the entry is damaged, it may be any of the damaged lines: none of them stays.
        rest = damaged if row.seq in lines else [b"-"] * (len(damaged) - 1)
        lines[row.seq] = entry_line(kept.folder, row, page)
        ordered = [raw for _, raw in sorted(lines.items())]
        start = first.get("first", int(names[-1][9:21]))
        self._write(kept, names[-1], whole(kept.folder, "messages", [*ordered, *rest], page=page, first=start))

    def _follow(self, transition: Transition, seqs: set[int], own: set[int]) -> None:
        context = transition.record.id
        kept = self._kept(context)
        check_revision(transition, kept.record.head, kept.record.revision)
        reading = Reading(self._files, kept)
        compactions = reading.names("editions")
        for name in compactions:
            self._write(kept, name, None)
        revisions = {*(int(name[9:19]) for name in compactions), *kept.compactions}
        self._drop_views(kept, seqs)
        forgotten = without_digests(reading.ops(), own)
        for op in forgotten:
            if op.op_id in kept.ops:
                kept.ops[op.op_id] = op
            name = op_file(op.op_id)
            if (content := self._read(kept, name)) is not None:
                self._write(kept, name, merged(kept.folder, "ops", content, {op.op_id: op_line(kept.folder, op)}))
        kept.compactions, kept.last, kept.files = {}, None, kept.files | {"editions": 0}
        kept.follow(transition)
        self._gone["compactions"] += len(revisions)
        self._gone["ops"] += len(forgotten)

    def _drop_views(self, kept: ContextFile, seqs: set[int]) -> None:
        for seq in seqs:
            kept.views.pop(seq, None)
        for name in {view_file(seq) for seq in seqs}:
            if (content := self._read(kept, name)) is not None:
                _, good, damaged = read_lines(kept.folder, "views", content)
                left = [each.raw for each in good if each.fields["view"] not in seqs]
                self._write(kept, name, whole(kept.folder, "views", [*left, *damaged]))
