"""Reading a context from its files: what `context.jsonl` has goes before what the others say.

    no folder                        ──▶  there is no such context
    a folder without context.jsonl   ──▶  CorruptRecord: it was there
    entry 812                        ──▶  context.jsonl, or the file in messages/ with the highest first seq up to 812
    page #42                         ──▶  context.jsonl, or pages/0000000000.jsonl

A damaged record is a CorruptRecord at once; any other row that is missing or damaged is one when it is reached, and the
rows beside it can be read. Nothing is locked: `context.jsonl` is read once, and the files that it refers to were
written before it and do not change. This module knows nothing of writing.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Final

from ...errors import CorruptRecord, SchemaTooNew, StorageBusy
from ..protocol import CallRow, CompactionRow, ContextRecord, EntryRow, OpRow, PageRow, PageState
from .context_file import (
    CALLS_PER_FILE,
    FIELDS,
    KINDS,
    PAGES_PER_FILE,
    SCHEMA_VERSION,
    ContextFile,
    folder_name,
    op_file,
    page_file,
    view_file,
)
from .files import Files
from .rows import Line, Lines, read_call, read_compaction, read_entry, read_line, read_lines, read_op, read_page

CONTEXTS: Final = "contexts"
_NOTHING: Final = Lines({}, (), ())


def load(files: Files, folder: str, context: str | None) -> ContextFile | None:
    """Return what the context in *folder* has, None if there is none; *context* None: whichever it is."""
    place = f"{CONTEXTS}/{folder}"
    content = files.read(f"{place}/context.jsonl")
    if content is None:
        if not files.has(place):
            return None
        content = files.read(f"{place}/context.jsonl")  # it may have come just now
        if content is None and files.has(place):
            raise CorruptRecord(context or f"in folder {folder}", 0, "its context.jsonl is missing")
    return None if content is None else loads(content, context, folder)


def loads(content: bytes, context: str | None, folder: str) -> ContextFile:
    """Return the context in *content*; *context* None: whichever it is. O(window, and news).

    Raises:
        CorruptRecord: If its record is damaged; other damage is found when the damaged row is read.
    """
    lines = read_lines(folder, "context", content)
    name = context if context is not None else f"in folder {folder}"
    texts: dict[str, bytes] = {}
    try:
        fields = lines.first
        if not fields:
            raise CorruptRecord(name, 0, "its record, the first line of context.jsonl, is not what was written")
        if fields["schema"] > SCHEMA_VERSION:
            raise SchemaTooNew(f"a later memci wrote context {name!r:.60}: install that version")
        texts = {each.fields["text"]: each.body for each in lines.good if "text" in each.fields}
        if texts.keys() != {"settings", "state"}:
            raise CorruptRecord(name, 0, "its settings or its state are not what was written")
        record = ContextRecord(
            **{each: fields[each] for each in FIELDS},
            settings=texts["settings"].decode(),
            state=texts["state"].decode(),
        )
        last = fields["edition"]
        kept = ContextFile(
            record,
            fields["spilled"],
            None if last is None else (last[0], last[1]),
            {k: fields["files"].get(k, 0) for k in KINDS},
        )
        kept.erasures = fields["erasures"]
        for each in lines.good:
            _take(kept, each)
        found, written = kept.counts, fields["counts"]
        kept.hurt = frozenset(kind for kind in {*found, *written} if found.get(kind) != written.get(kind))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise CorruptRecord(name, 0, f"its context.jsonl was not written by memci: {type(error).__name__}") from error
    if record.id != name and (context is not None or folder_name(record.id) != folder):
        raise CorruptRecord(name, 0, f"its folder holds the context {record.id!r:.60}")
    return kept


def revision(first_line: bytes, context: str) -> int:
    """Return the revision in the first line of `context.jsonl`, or raise CorruptRecord."""
    found = read_line(folder_name(context), first_line)
    number = found.fields.get("revision") if found is not None else None
    if not isinstance(number, int):
        raise CorruptRecord(context, 0, "its record, the first line of context.jsonl, is not what was written")
    return number


class Reading:
    """One context, as its files were when it was loaded."""

    def __init__(self, files: Files, kept: ContextFile) -> None:
        self.kept = kept
        self._files = files
        self._context = kept.record.id
        self._place = f"{CONTEXTS}/{kept.folder}"
        self._views: dict[str, tuple[dict[int, tuple[int, int]], bool]] = {}

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a file of this context, None if there is none. O(bytes)."""
        return self._files.read(f"{self._place}/{name}")

    def lines(self, name: str) -> Lines:
        """Return the lines of a file of this context; none, and no first one, if there is no such file. O(bytes)."""
        content = self.read(name)
        return _NOTHING if content is None else read_lines(self.kept.folder, name.partition("/")[0], content)

    def names(self, kind: str) -> list[str]:
        """Return the names of the files of *kind*. O(files)."""
        return [f"{kind}/{each}" for each in self._files.names(f"{self._place}/{kind}") if each.endswith(".jsonl")]

    def complete(self, kind: str) -> list[str]:
        """Return the names of the files of *kind*, or raise CorruptRecord if there are too few. O(files)."""
        names = self.names(kind)
        if len(names) < self.kept.files[kind]:
            raise self._corrupt(0, f"a file in {kind}/ is missing")
        return names

    def compaction(self) -> str | None:
        """Return the text of the last compaction, None if there is none."""
        last = self.kept.last
        if last is None:
            return None
        if last[0] in self.kept.compactions:
            return self.kept.compactions[last[0]].text
        return self._compaction(f"editions/{last[0]:010d}-{last[1]:012d}.jsonl").text

    def compactions(self, head: int | None) -> Iterator[CompactionRow]:
        """Yield the compactions, newest first, those made at most at *head*."""
        if "editions" in self.kept.hurt:
            raise self._corrupt(0, "a compaction in its context.jsonl is not what was written")
        known: dict[int, CompactionRow | str] = {int(name[9:19]): name for name in self.complete("editions")}
        known |= self.kept.compactions
        for revision in sorted(known, reverse=True):
            each = known[revision]
            if head is not None and (each.head if isinstance(each, CompactionRow) else int(each[20:32])) > head:
                continue
            yield each if isinstance(each, CompactionRow) else self._compaction(each)

    def ops(self) -> list[OpRow]:
        """Return the ops, by their first seq. O(ops)."""
        found: dict[str, OpRow] = {}
        for name in self.complete("ops"):
            first, good, damaged = self.lines(name)
            if damaged or not first:
                raise self._corrupt(0, f"an op in {name} is not what was written")
            found |= {op.op_id: op for op in (read_op(self._context, each.fields) for each in good)}
        if "ops" in self.kept.hurt:
            raise self._corrupt(0, "an op in its context.jsonl is not what was written")
        return sorted((found | self.kept.ops).values(), key=lambda op: (op.first, op.op_id))

    def op(self, op_id: str) -> OpRow | None:
        """Return the op *op_id*, None if there is none."""
        if op_id in self.kept.ops:
            return self.kept.ops[op_id]
        name = op_file(op_id)
        first, good, damaged = self.lines(name)
        if not first and not damaged:
            self.complete("ops")
        for each in good:
            if each.fields.get("op") == op_id:
                return read_op(self._context, each.fields)
        if damaged:
            raise self._corrupt(0, f"{name} is not what was written: op {op_id!r:.60} may be known or not")
        return None

    def calls(self, after: int) -> Iterator[CallRow]:
        """Yield the calls of the model with a revision above *after*, oldest first. O(calls) in memory."""
        if "calls" in self.kept.hurt:
            raise self._corrupt(0, "a call of the model in its context.jsonl is not what was written")
        found: dict[int, CallRow] = {}
        lists: dict[str | None, str | None] = {None: None}
        for name in (name for name in self.complete("calls") if int(name[6:16]) + CALLS_PER_FILE > after):
            first, good, damaged = self.lines(name)
            if damaged or not first:
                raise self._corrupt(0, f"a call of the model in {name} is not what was written")
            found |= {row.revision: row for row in (read_call(self._context, each.fields) for each in good)}
        for _, row in sorted((found | self.kept.calls).items()):
            if row.revision <= after:
                continue
            if row.tools not in lists:
                good = self.lines(f"tools/{row.tools}.jsonl").good
                if [each.fields.get("tools") for each in good] != [row.tools]:
                    raise self._corrupt(0, f"tools/{row.tools}.jsonl is missing or not what was written")
                lists[row.tools] = good[0].body.decode()
            yield row._replace(tools=lists[row.tools])

    def pages(self, first: int, last: int | None, state: PageState | None) -> Iterator[PageRow]:
        """Yield the pages *first* to *last*, by index, of one *state* if it is given."""
        kept, highest = self.kept, max(self.kept.record.next_page - 1, 0)
        hurt = "active" in kept.hurt or "rows" in kept.hurt
        if state is PageState.ACTIVE:
            yield from (kept.active[i] for i in sorted(kept.active) if first <= i and (last is None or i <= last))
            if hurt:
                raise self._corrupt(0, "the row of a page in its context.jsonl is not what was written")
            return
        names = set(self.names("pages"))
        lacking = len(names) < kept.files["pages"]
        news = kept.rows | kept.active
        starts = {int(name[6:16]) for name in names} | {index - index % PAGES_PER_FILE for index in news}
        if lacking or hurt:
            starts |= set(range(0, highest + 1, PAGES_PER_FILE))
        for start in sorted(starts):
            low, high = max(first, start), start + PAGES_PER_FILE - 1
            high = high if last is None else min(high, last)
            if low > high:
                continue
            rows, damaged = self._page_rows(start)
            damaged |= hurt or (lacking and page_file(start) not in names)
            for index in range(low, high + 1):
                row = news.get(index) or rows.get(index)
                if row is None and damaged and index <= highest:
                    raise self._corrupt(0, f"the row of page #{index} is missing or not what was written")
                if row is not None and state in {None, row.state}:
                    yield row

    def entries(self, first: int, end: int) -> Iterator[EntryRow]:
        """Yield the entries with seq in `[first, end)` that are its own, as they were appended."""
        names = self.names("messages") if first < self.kept.spilled else []
        starts = [int(name[9:21]) for name in names]
        while first < end:
            at = bisect_right(starts, first) - 1
            if first >= self.kept.spilled:
                lines, stop = self.kept.entries, end
            elif at >= 0:
                lines = {each.fields.get("seq", -1): each for each in self.lines(names[at]).good}
                stop = min(end, self.kept.spilled, starts[at + 1] if at + 1 < len(starts) else end)
            else:
                raise self._corrupt(first, "it is missing")
            for seq in range(first, stop):
                found = lines.get(seq)
                if found is None:
                    raise self._corrupt(seq, "its line is missing or not what was written")
                yield read_entry(self._context, found)
            first = stop

    def shown(self, row: EntryRow) -> EntryRow:
        """Return *row* with the view that this context has of it."""
        view = self.kept.views.get(row.seq)
        if view is None and "views" in self.kept.hurt:
            raise self._corrupt(row.seq, "what is shown of it may not be what was written")
        if view is None and self.kept.files["views"]:
            views, damaged = self._view_rows(row.seq)
            view = views.get(row.seq)
            if view is None and damaged:
                raise self._corrupt(row.seq, "what is shown of it may not be what was written")
        return row if view is None else row._replace(tokens=view[0], clip=view[1])

    def _page_rows(self, start: int) -> tuple[dict[int, PageRow], bool]:
        _, good, damaged = self.lines(page_file(start))
        return {row.index: row for row in (read_page(self._context, each.fields) for each in good)}, bool(damaged)

    def _view_rows(self, seq: int) -> tuple[dict[int, tuple[int, int]], bool]:
        name = view_file(seq)
        if name not in self._views:
            first, good, damaged = self.lines(name)
            lacking = not first and len(self.names("views")) < self.kept.files["views"]
            rows = {each.fields["view"]: (each.fields["tokens"], each.fields["clip"]) for each in good}
            self._views = {name: (rows, lacking or bool(damaged))}
        return self._views[name]

    def _compaction(self, name: str) -> CompactionRow:
        lines = self.lines(name)
        if len(lines.good) != 1 or lines.damaged:
            raise self._corrupt(0, f"{name} is missing or not what was written")
        return read_compaction(self._context, lines.good[0])

    def _corrupt(self, seq: int, reason: str) -> CorruptRecord | StorageBusy:
        now = self._files.read(f"{self._place}/context.jsonl")
        if now is None or loads(now, None, self.kept.folder).erasures != self.kept.erasures:
            # An erasure removes files, and may have run since this context was loaded.
            return StorageBusy(f"context {self._context!r:.60} changed while it was read: read it again")
        return CorruptRecord(self._context, seq, reason)


def owners(
    kept: ContextFile, first: int, end: int, load_context: Callable[[str], ContextFile | None]
) -> list[tuple[ContextFile, int, int]]:
    """Return the contexts that hold the entries `[first, end)` of *kept*: itself, and those that it was forked from."""
    found: list[tuple[ContextFile, int, int]] = []
    current = kept
    while True:
        parent, base = current.record.parent, current.record.base
        if parent is None:
            base = 0
        if max(first, base) < end:
            found.append((current, max(first, base), end))
        end = min(end, base)
        if parent is None or first >= end:
            return found[::-1]
        above = load_context(parent)
        if above is None or above.record.head < end:
            raise CorruptRecord(kept.record.id, first, f"{parent!r:.60}, which it was forked from, does not have it")
        current = above


def _take(kept: ContextFile, found: Line) -> None:
    fields, context = found.fields, kept.record.id
    if "call" in fields:
        kept.calls[fields["call"]] = read_call(context, fields)
    elif "seq" in fields and type(fields["page"]) is int:
        kept.entries[fields["seq"]] = found
    elif "page" in fields:
        page = read_page(context, fields)
        (kept.active if page.state is PageState.ACTIVE else kept.rows)[page.index] = page
    elif "view" in fields:
        kept.views[fields["view"]] = (fields["tokens"], fields["clip"])
    elif "op" in fields:
        kept.ops[fields["op"]] = read_op(context, fields)
    elif "edition" in fields:
        kept.compactions[fields["edition"]] = read_compaction(context, found)
