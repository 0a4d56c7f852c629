"""What one context's `context.jsonl` holds: the file whose change is the commit.

    context.jsonl     the record, settings, state, the active pages' rows, and all that came since the last spill
    messages/…        what was spilled, written once: 000000000812-p42.jsonl begins with seq 812, said on page #42
    pages/…           rows of pages that left the window, 256 to a file       views/…   64 to a file
    editions/…        one file each: revision and head                        ops/…     by a digest of their op_id
    calls/…           calls of the model, 256 to a file at most               tools/…   a list of tools each, by digest

    a transition  ──▶  a new context.jsonl by rename: there whole, or not at all
    a large one   ──▶  first its news are spilled to the other files, synced, then a context.jsonl without them

What is in `context.jsonl` goes before what the other files say, so that a spill that was cut short does no harm: it
is written again, alike. This module knows nothing of files: it takes and gives their bytes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import groupby
from typing import Final

from ...errors import CorruptRecord
from ..codec import ORJSON, digest
from ..protocol import CallRow, CompactionRow, ContextRecord, EntryRow, OpRow, PageRow, PageState, Transition
from ..validation import all_calls, all_compactions, all_ops
from .rows import (
    Line,
    call_line,
    compaction_line,
    entry_line,
    line,
    op_line,
    page_line,
    read_line,
    read_lines,
    view_line,
    whole,
)

SCHEMA_VERSION: Final = 2
"""2: there may be calls of the model; a context of version 1 is read as one without"""
PAGES_PER_FILE: Final = 256
VIEWS_PER_FILE: Final = 64
CALLS_PER_FILE: Final = 256
ENTRIES_PER_FILE: Final = 64

SPILL_BYTES: Final = 2**15
"""news from which on they are spilled: what a commit writes beyond what is new and what is in the window"""
SPILL_ROWS: Final = 64
"""the same for ops and compactions: each of them touches a file"""

KINDS: Final = ("messages", "pages", "views", "editions", "ops", "calls", "tools")
FIELDS: Final = ("id", "owner", "head", "next_page", "turn", "open_page", "revision", "parent", "base")


def folder_name(context: str) -> str:
    """Return the name of the folder of *context*: any id has one, and no two that differ share it."""
    return blake2b(context.encode(), digest_size=16).hexdigest()


def is_folder_name(name: str) -> bool:
    """Return whether *name* is one that a context's folder may have."""
    return len(name) == 32 and not name.strip("0123456789abcdef")


def op_file(op_id: str) -> str:
    """Return the name of the file that keeps *op_id*."""
    return f"ops/{blake2b(op_id.encode(), digest_size=1).hexdigest()}.jsonl"


def call_file(revision: int) -> str:
    """Return the name of the file that keeps the call of the model that was committed with *revision*."""
    return f"calls/{revision - revision % CALLS_PER_FILE:010d}.jsonl"


def tools_key(text: str) -> str:
    """Return the name of the list of tools *text*, in lines and of its file. O(characters)."""
    return digest(ORJSON, text.encode()).hex()


@dataclass(slots=True)
class ContextFile:
    """One context, as `context.jsonl` has it."""

    record: ContextRecord
    spilled: int
    """entries before this seq are in messages/"""
    last: tuple[int, int] | None = None
    """revision and head of the last compaction"""
    files: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    """how many files there are of each kind, at least"""
    active: dict[int, PageRow] = field(default_factory=dict)
    rows: dict[int, PageRow] = field(default_factory=dict)
    """pages that left the window, since the last spill"""
    views: dict[int, tuple[int, int]] = field(default_factory=dict)
    entries: dict[int, Line] = field(default_factory=dict)
    ops: dict[str, OpRow] = field(default_factory=dict)
    compactions: dict[int, CompactionRow] = field(default_factory=dict)
    calls: dict[int, CallRow] = field(default_factory=dict)
    """with the digest of their list in the place of it"""
    erasures: int = 0
    """how often something was erased from it"""
    hurt: frozenset[str] = frozenset()
    """the kinds of lines of which some are damaged"""

    @property
    def folder(self) -> str:
        """The name of its folder."""
        return folder_name(self.record.id)

    def check_whole(self) -> None:
        """Raise CorruptRecord if any line is damaged."""
        if self.hurt:
            lost = (seq for seq in range(self.spilled, self.record.head) if seq not in self.entries)
            where = ", ".join(sorted(self.hurt))
            reason = f"its context.jsonl is not what was written ({where})"
            raise CorruptRecord(self.record.id, next(lost, 0), reason)

    @property
    def counts(self) -> dict[str, int]:
        """How many lines of each kind there are."""
        kinds = ("active", "rows", "views", "ops", "compactions", "calls", "entries")
        named = {"compactions": "editions"}  # as the first format calls them
        return {named.get(kind, kind): len(getattr(self, kind)) for kind in kinds if getattr(self, kind)}

    def follow(self, transition: Transition) -> None:
        """Take over what *transition* changes. O(rows)."""
        record = self.record = transition.record
        self.views |= {seq: (tokens, clip) for seq, tokens, clip in transition.views}
        self.ops |= {op.op_id: op for op in all_ops(transition)}
        self.compactions |= {row.revision: row for row in all_compactions(transition)}
        for call in all_calls(transition):
            self.calls[call.revision] = call._replace(tools=None if call.tools is None else tools_key(call.tools))
        for page in transition.pages:
            (self.rows if page.state is PageState.ACTIVE else self.active).pop(page.index, None)
            (self.active if page.state is PageState.ACTIVE else self.rows)[page.index] = page
        pages = _pages_of(transition) if transition.entries else {}
        for row in transition.entries:
            self.take(row, pages.get(row.seq, record.open_page or 0))
        if self.compactions:
            newest = self.compactions[max(self.compactions)]
            self.last = max(self.last or (0, 0), (newest.revision, newest.head))

    def take(self, row: EntryRow, page: int) -> None:
        """Put *row*, which was appended to *page*, among the entries. O(bytes)."""
        made = read_line(self.folder, entry_line(self.folder, row, page))
        assert made is not None, "a line reads back"
        self.entries[row.seq] = made

    @property
    def due(self) -> bool:
        """Whether its news are so large that they should be spilled. O(news)."""
        size = sum(len(each.raw) for each in self.entries.values())
        size += sum(len(each.text) for each in self.compactions.values())
        size += 128 * len(self.rows) + 48 * len(self.views) + 256 * len(self.calls)
        return size > SPILL_BYTES or len(self.ops) + len(self.compactions) > SPILL_ROWS

    def spill(self, read: Callable[[str], bytes | None]) -> dict[str, bytes]:
        """Return the files that hold its news, by name: *read* gives those that are there. O(news)."""
        folder = self.folder
        files: dict[str, bytes] = {}
        runs = groupby(
            self.entries.items(),
            key=lambda item: (item[1].fields["page"], (item[0] - self.spilled) // ENTRIES_PER_FILE),
        )
        for (page, _), run in runs:
            lines = dict(run)
            first = next(iter(lines))
            content = whole(folder, "messages", [each.raw for each in lines.values()], page=page, first=first)
            files[f"messages/{first:012d}-p{page}.jsonl"] = content
        news: dict[str, dict[int | str, bytes]] = {}
        for index, row in self.rows.items():
            news.setdefault(page_file(index), {})[index] = page_line(folder, row)
        for seq, (tokens, clip) in self.views.items():
            news.setdefault(view_file(seq), {})[seq] = view_line(folder, seq, tokens, clip)
        for op_id, op in self.ops.items():
            news.setdefault(op_file(op_id), {})[op_id] = op_line(folder, op)
        for revision, call in self.calls.items():
            news.setdefault(call_file(revision), {})[revision] = call_line(folder, call)
        for name, lines_by_key in news.items():
            files[name] = merged(folder, name.partition("/")[0], read(name), lines_by_key)
        for compaction in self.compactions.values():
            name = f"editions/{compaction.revision:010d}-{compaction.head:012d}.jsonl"
            files[name] = whole(folder, "editions", [compaction_line(folder, compaction)])
        return files

    def dumps(self) -> bytes:
        """Return the bytes of `context.jsonl`. O(window, and news)."""
        record, folder = self.record, self.folder
        lines = [
            line(folder, {"text": "settings"}, record.settings.encode()),
            line(folder, {"text": "state"}, record.state.encode()),
        ]
        lines += [page_line(folder, row) for kept in (self.active, self.rows) for _, row in sorted(kept.items())]
        lines += [view_line(folder, seq, *view) for seq, view in self.views.items()]
        lines += [op_line(folder, op) for op in self.ops.values()]
        lines += [compaction_line(folder, row) for row in self.compactions.values()]
        lines += [call_line(folder, row) for row in self.calls.values()]
        lines += [each.raw for each in self.entries.values()]
        first = {name: getattr(record, name) for name in FIELDS}
        first |= {"schema": SCHEMA_VERSION, "spilled": self.spilled, "edition": self.last, "files": self.files}
        first |= {"counts": self.counts, "erasures": self.erasures}
        return whole(folder, "context", lines, **first)


def merged(folder: str, kind: str, content: bytes | None, news: dict[int | str, bytes]) -> bytes:
    """Return the file of *kind* that has *content* with its *news*. O(bytes)."""
    lines: dict[int | str, bytes] = {}
    damaged: Sequence[bytes] = ()
    if content is not None:
        _, good, damaged = read_lines(folder, kind, content)
        lines = {each.fields.get(kind.removesuffix("s"), ""): each.raw for each in good}
    lines |= news
    ordered = sorted(lines.items(), key=lambda item: (isinstance(item[0], str), item[0]))
    return whole(folder, kind, [*(each for _, each in ordered), *damaged])


def page_file(index: int) -> str:
    """Return the name of the file that keeps the row of page *index*."""
    return f"pages/{index - index % PAGES_PER_FILE:010d}.jsonl"


def view_file(seq: int) -> str:
    """Return the name of the file that keeps the view of entry *seq*."""
    return f"views/{seq - seq % VIEWS_PER_FILE:012d}.jsonl"


def _pages_of(transition: Transition) -> dict[int, int]:
    """Return the page that each new entry is on, as far as its page is among those that changed. O(entries, pages)."""
    spans = [(a, b, page.index) for page in transition.pages for a, b in page.spans(transition.record.head)]
    first = transition.entries[0].seq
    return {seq: index for a, b, index in spans for seq in range(max(a, first), b)}
