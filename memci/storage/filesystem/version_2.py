r"""A folder of an earlier memci, where all was in plain files: its contexts, to be stored again.

    contexts/0f3a…/context.jsonl     its record, the pages in the window, its newest rows: what stands here is newest
    contexts/0f3a…/messages/…  pages/…  views/…  editions/…  ops/…  calls/…  tools/…     older rows, a line each

    first line   {"sum":"…","memci":"pages","lines":3}       a file says how many lines follow
    others       {"sum":"77c0b1d2","page":42,"first":812,"end":840,"turn":17,"place":"archived"}

`sum` is a crc32 over the rest of the line and the name of the folder. A folder that is damaged is refused whole, and
left as it is. This module knows nothing of how contexts are stored now.
"""

import re
import shutil
import zlib
from base64 import b64decode
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from ...errors import CorruptRecord
from ...rows import CallRow, CompactionRow, ContextRecord, EntryRow, OpRow, PageRow, PageState
from ..codec import digest
from ..protocol import Transition
from .copies import CONTEXTS

_KINDS: Final = ("messages", "pages", "views", "editions", "ops", "calls", "tools")
_KEYS: Final = ("call", "seq", "page", "view", "op", "edition", "tools", "text")
"""the field that says what a line is: the first of these that it has"""
_RECORD: Final = ("id", "owner", "head", "next_page", "turn", "open_page", "revision", "parent", "base")
_STORED: Final = {"index": "page", "state": "place"}
"""the stored names of a page's fields that are called otherwise here"""
_PREFIX: Final = len('{"sum":"00000000",')
_JOURNAL: Final = "erasing.jsonl"
_FOLDER: Final = re.compile("[0-9a-f]{32}")
_PATH: Final = re.compile(
    rf"{CONTEXTS}/[0-9a-f]{{32}}(/context\.jsonl|/({'|'.join(_KINDS)})/[0-9a-f]+(-p?[0-9]+)?\.jsonl)?"
)


class Line(NamedTuple):
    """One line whose check sum is right."""

    fields: dict[str, Any]
    body: bytes


def moved(folder: str) -> list[Transition]:
    """Return each context in *folder* as the transition that makes it, those that others were forked from first.

    An erasure that was cut short is finished before. CorruptRecord if a line is not what was written. O(bytes).
    """
    root = Path(folder)
    _finish_erasing(root)
    made = [_context(each) for each in sorted((root / CONTEXTS).glob("*")) if _FOLDER.fullmatch(each.name)]
    parents = {each.record.id: each.record.parent for each in made}

    def generation(context: str | None) -> int:
        return 0 if context is None else 1 + generation(parents.get(context))

    return sorted(made, key=lambda each: generation(each.record.id))


def clear(folder: str) -> None:
    """Remove what `moved` has read from *folder*. O(files), and O(1) if there is nothing."""
    root = Path(folder)
    if not (root / "locks").is_dir():
        return
    for each in (root / CONTEXTS).glob("*"):
        if _FOLDER.fullmatch(each.name):
            shutil.rmtree(each)
    for name in ("queues", "witness", _JOURNAL, "locks"):  # locks/ last: it says that there is something
        with suppress(FileNotFoundError, NotADirectoryError):
            shutil.rmtree(root / name)
        (root / name).unlink(missing_ok=True)


def _context(folder: Path) -> Transition:
    """Return the context in *folder*. O(bytes)."""
    rows: dict[str, dict[Any, Line]] = {key: {} for key in _KEYS}
    first, newest = _lines(folder / "context.jsonl", "context")
    lines: list[Line] = []
    for kind in _KINDS:
        files = sorted((folder / kind).glob("*.jsonl"))
        if len(files) < first["files"].get(kind, 0):
            raise CorruptRecord(first["id"], 0, f"a file in {folder / kind} is missing")
        for file in files:
            lines += _lines(file, kind)[1]
    for line in [*lines, *newest]:
        key = next(each for each in _KEYS if each in line.fields)
        rows[key][line.fields[key]] = line
    texts = {name: line.body.decode() for name, line in rows["text"].items()}
    record = ContextRecord(**{name: first[name] for name in _RECORD} | texts)
    entries = tuple(_entry(record, rows["seq"], seq) for seq in range(record.base, record.head))
    history = tuple(
        CompactionRow(revision, line.fields["head"], line.fields["turn"], line.body.decode())
        for revision, line in sorted(rows["edition"].items())
    )
    tools: dict[str | None, str | None] = {name: line.body.decode() for name, line in rows["tools"].items()}
    calls = [CallRow._make([at, *map(row.fields.get, CallRow._fields[1:])]) for at, row in sorted(rows["call"].items())]
    if not history and not calls:  # what has neither is stored as a new context
        record = record._replace(revision=1)
    return Transition(
        0,
        record,
        entries,
        tuple(_page(line.fields) for _, line in sorted(rows["page"].items())),
        tuple((seq, line.fields["tokens"], line.fields["clip"]) for seq, line in rows["view"].items()),
        history=history,
        ops=tuple(_op(line.fields) for line in rows["op"].values()),
        calls=tuple(call._replace(tools=call.tools and tools[call.tools]) for call in calls),
    )


def _entry(record: ContextRecord, lines: dict[int, Line], seq: int) -> EntryRow:
    if seq not in lines:
        raise CorruptRecord(record.id, seq, "its line is missing")
    (fields, body), codec = lines[seq], lines[seq].fields["codec"]
    made = digest(codec, body)
    if made.hex() != fields["digest"]:
        raise CorruptRecord(record.id, seq, "its bytes are not those that were written")
    quotes = fields.get("quotes") and tuple(fields["quotes"])
    return EntryRow(seq, codec, body, made, fields["tokens"], fields.get("clip", 0), quotes, fields.get("at"))


def _page(fields: dict[str, Any]) -> PageRow:
    stored = {name: _STORED.get(name, name) for name in PageRow._fields}
    found = {"end": None} | {name: fields[key] for name, key in stored.items() if key in fields}
    cut = found.get("cut") and tuple(found["cut"])
    return PageRow(**{**found, "state": PageState[fields["place"].upper()], "cut": cut})


def _op(fields: dict[str, Any]) -> OpRow:
    entries = tuple((page, ordinal) for page, ordinal in fields["entries"])
    return OpRow(fields["op"], bytes.fromhex(fields["digest"]), fields["first"], entries)


def _lines(file: Path, kind: str, name: str = "") -> tuple[dict[str, Any], list[Line]]:
    """Return the first line of *file* and the others; its sums are over *name*, default: its context's folder."""
    name = name or (file.parent if kind == "context" else file.parent.parent).name
    try:
        raw = file.read_bytes().removesuffix(b"\n").split(b"\n")
        first, *lines = (_line(name, each) for each in raw)
        whole = first.fields["memci"] == kind and first.fields["lines"] == len(lines)
    except (OSError, ValueError, KeyError):
        whole = False
    if not whole:
        raise CorruptRecord("", 0, f"{str(file)!r} is missing or not what was written: nothing was changed")
    return first.fields, lines


def _line(name: str, raw: bytes) -> Line:
    """Return what the line *raw* of the folder *name* holds, or raise ValueError."""
    rest = raw[_PREFIX:]
    if raw[:_PREFIX] != b'{"sum":"%08x",' % zlib.crc32(rest, zlib.crc32(name.encode())):
        raise ValueError
    fields, mark, body = rest.partition(b',"json":')
    if mark:
        return Line(orjson.loads(b"{" + fields + b"}"), body[:-1])
    fields, mark, body = rest.partition(b',"base64":"')
    if mark:
        return Line(orjson.loads(b"{" + fields + b"}"), b64decode(body[:-2], validate=True))
    return Line(orjson.loads(b"{" + rest), b"")


def _finish_erasing(root: Path) -> None:
    """Do what is left of an erasure that was cut short."""
    if not (root / _JOURNAL).exists():
        return
    for line in _lines(root / _JOURNAL, "erasing", _JOURNAL)[1]:
        path = str(line.fields["path"])
        if not _PATH.fullmatch(path):
            raise CorruptRecord("", 0, f"{_JOURNAL} names {path!r:.80}, which is no file of ours")
        if not line.fields["gone"]:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(line.body)
        elif (root / path).is_dir():
            shutil.rmtree(root / path)
        else:
            (root / path).unlink(missing_ok=True)
