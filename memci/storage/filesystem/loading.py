"""Loading a context: from its `context.jsonl`, or not at all.

    no folder                        ──▶  there is no such context
    a folder without context.jsonl   ──▶  CorruptRecord: it was there
    a damaged line in it             ──▶  CorruptRecord, if it is the record's; else when what it held is asked for

This module knows nothing of the other files.
"""

from typing import Final

from ...errors import CorruptRecord, SchemaTooNew
from ..protocol import ContextRecord, PageState
from .context_file import FIELDS, KINDS, SCHEMA_VERSION, Kept, folder_name
from .files import Files
from .rows import Line, read_compaction, read_line, read_lines, read_op, read_page

CONTEXTS: Final = "contexts"


def load(files: Files, folder: str, context: str | None) -> Kept | None:
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


def loads(content: bytes, context: str | None, folder: str) -> Kept:
    """Return the context in *content*; *context* None: whichever it is. O(window, and news).

    Raises:
        CorruptRecord: If its record is damaged; other damage is found by who needs what is damaged.
    """
    lines = read_lines(folder, "context", content)
    name = context if context is not None else f"in folder {folder}"
    texts: dict[str, bytes] = {}
    try:
        fields = lines.first
        if not fields:
            raise CorruptRecord(name, 0, "its record, the first line of context.jsonl, is not what was written")
        if fields["schema"] > SCHEMA_VERSION:
            raise SchemaTooNew(f"a later memci wrote context {name!r:.60}")
        texts = {each.fields["text"]: each.body for each in lines.good if "text" in each.fields}
        if texts.keys() != {"settings", "state"}:
            raise CorruptRecord(name, 0, "its settings or its state are not what was written")
        record = ContextRecord(
            **{each: fields[each] for each in FIELDS},
            settings=texts["settings"].decode(),
            state=texts["state"].decode(),
        )
        last = fields["edition"]
        kept = Kept(
            record,
            fields["spilled"],
            None if last is None else (last[0], last[1]),
            {k: fields["files"][k] for k in KINDS},
        )
        kept.erasures = fields["erasures"]
        for each in lines.good:
            _take(kept, each)
        found, told = kept.counts, fields["counts"]
        kept.hurt = frozenset(kind for kind in {*found, *told} if found.get(kind) != told.get(kind))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise CorruptRecord(name, 0, f"its context.jsonl is none of ours: {type(error).__name__}") from error
    if record.id != name and (context is not None or folder_name(record.id) != folder):
        raise CorruptRecord(name, 0, f"its folder holds the context {record.id!r:.60}")
    return kept


def revision(first_line: bytes, context: str) -> int:
    """Return the revision that the first line of `context.jsonl` tells."""
    found = read_line(folder_name(context), first_line)
    number = found.fields.get("revision") if found is not None else None
    if not isinstance(number, int):
        raise CorruptRecord(context, 0, "its record, the first line of context.jsonl, is not what was written")
    return number


def _take(kept: Kept, found: Line) -> None:
    fields, context = found.fields, kept.record.id
    if "seq" in fields and type(fields["page"]) is int:
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
