"""Importing: the lines of an export become one transition, once all of them make sense.

    lines  ──▶  rows, each checked  ──▶  the whole, in a store of its own: verified, opened  ──▶  one commit

A file may have been cut, edited or made up: what is wrong is said with its line, and then nothing was stored. It is all
in memory before it is stored. This module knows nothing of files.
"""

import json
import re
from base64 import b64decode
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from ..chapters.contents import ContentsPage
from ..errors import (
    BudgetExceeded,
    InvalidMessage,
    InvalidSetting,
    LimitExceeded,
    MemciError,
    SchemaTooNew,
    WriteConflict,
)
from ..storage import EphemeralStorage, Storage
from ..storage.codec import MAX_BYTES, ORJSON, decode, digest
from ..storage.protocol import CompactionRow, ContextRecord, EntryRow, OpRow, PageRow, PageState, Transition
from ..storage.validation import check_text
from ..text.sanitize import confined
from ..window import snapshot as snapshots
from ..window.state import fields_of as state_fields
from .lines import FORMAT, Checksum, fields_of, written
from .loader import OpenRequest, loaded
from .verify import problems

if TYPE_CHECKING:
    from .export_format import CompactionLine, EndLine, EntryLine, HeaderLine, OpLine, PageLine

_ORDER: Final = ("context", "entry", "page", "edition", "op", "end")
_NONSENSE: Final = (ValueError, KeyError, TypeError, AttributeError, AssertionError, RecursionError)
"""what reading JSON that was made up may raise"""
_SPEAKERS: Final = ("user", "assistant", "tool")
_AGAIN: Final = "export the context again, or take another copy of the file"


def imported(storage: Storage, lines: Iterable[str], *, id: str | None = None) -> str:  # noqa: A002
    """Store the context that *lines* hold, whole or not at all, and return its id. O(lines), all of it in memory.

    Args:
        storage: Where to.
        lines: What `exported` gave, with or without newlines; only its one context.
        id: Its new name; default: the one that it had. Its owner stays the same.

    Raises:
        InvalidSetting: If the lines are not what was exported, which says where; or if there is such a context.
        LimitExceeded: If a message is too large to store.
        SchemaTooNew: If a later memci wrote them.
        StorageError: If it could not be stored.
    """
    found = list(transitions(lines))
    if len(found) != 1:
        raise InvalidSetting("file", f"expected one context, it has {len(found):,}: import each by itself")
    return committed(storage, found[0], id=id)


def committed(storage: Storage, transition: Transition, *, id: str | None = None) -> str:  # noqa: A002
    """Store what `transitions` yielded, under the name *id*, and return it. O(rows)."""
    record = transition.record if id is None else transition.record._replace(id=id)
    check_free(storage, record.id)
    try:
        storage.commit(transition._replace(record=record))
    except WriteConflict:
        raise _taken(record.id) from None
    return record.id


def check_free(storage: Storage, id: str) -> None:  # noqa: A002
    """Raise InvalidSetting unless *id* can be the name of a new context in *storage*. O(1)."""
    if not isinstance(id, str) or not id:
        raise InvalidSetting("id", f"expected a name (a str that is not empty), got {id!r:.60}")
    if storage.revision(id):
        raise _taken(id)


def transitions(lines: Iterable[str]) -> Iterator[Transition]:
    """Yield each context that *lines* hold, checked, as what makes it in a store that does not have it. O(lines).

    Raises:
        InvalidSetting: As for `imported`, when the line is reached.
    """
    numbered = _numbered(lines)
    first = next(numbered, None)
    if first is None:
        raise InvalidSetting("file", f"it is empty: {_AGAIN}")
    while first is not None:
        yield _transition(chain([first], numbered))
        first = next(numbered, None)


class _Line(NamedTuple):
    number: int
    text: str


class _Rows(NamedTuple):
    """What was read of one context."""

    header: "HeaderLine"
    entries: list[EntryRow]
    pages: list[PageRow]
    compactions: list[CompactionRow]
    ops: list[OpRow]


def _numbered(lines: Iterable[str]) -> Iterator[_Line]:
    for number, line in enumerate(lines, 1):
        text = line.rstrip("\r\n")
        try:
            check_text("file", text)
        except InvalidSetting as error:
            raise _wrong(number, f"{error.reason}: write such a half as an escape") from None
        if text.strip():
            yield _Line(number, text)


def _transition(lines: Iterator[_Line]) -> Transition:
    rows = _read(lines)
    transition = Transition(
        0,
        _record(rows.header),
        entries=tuple(rows.entries),
        pages=tuple(rows.pages),
        history=tuple(reversed(rows.compactions)),
        ops=tuple(rows.ops),
    )
    _prove(transition)
    return transition


def _record(header: "HeaderLine") -> ContextRecord:
    return ContextRecord(
        header.id,
        header.owner,
        written("settings", header.settings),
        written("state", header.state),
        header.head,
        header.next_page,
        header.turn,
        header.open_page,
        header.revision,
    )


def _read(lines: Iterator[_Line]) -> _Rows:
    """Return the rows of one context, up to its end."""
    from .export_format import MODELS, CompactionLine, EndLine, EntryLine, HeaderLine, OpLine, PageLine, checked

    checksum, rows, last = Checksum(), None, "context"
    for number, text in lines:
        try:
            fields = fields_of(text)
        except ValueError as error:
            raise _wrong(number, f"not valid JSON ({error}): {_AGAIN}") from None
        kind = fields.get("kind") if isinstance(fields, dict) else None
        if not isinstance(kind, str) or kind not in MODELS:
            raise _wrong(number, "neither a context nor a part of one, as memci export writes them")
        if rows is None:
            _check_format(number, fields)
        if (kind == "context") != (rows is None) or _ORDER.index(kind) < _ORDER.index(last):
            raise _wrong(number, f"{kind!r} after {last!r}: lines are missing or in another order: {_AGAIN}")
        last = kind
        model = checked(kind, fields, partial(_wrong, number))
        if isinstance(model, EndLine):
            assert rows is not None, "a context comes first"
            _check_end(number, model, rows, checksum)
            return rows
        checksum.add(text)
        if isinstance(model, HeaderLine):
            rows = _Rows(model, [], [], [], [])
            continue
        assert rows is not None, "a context comes first"
        match model:
            case EntryLine():
                rows.entries.append(_entry(number, model, rows))
            case PageLine():
                rows.pages.append(_page(number, model, rows))
            case CompactionLine():
                rows.compactions.append(_compaction(number, model, rows))
            case OpLine():
                rows.ops.append(_op(number, model, rows))
    raise InvalidSetting("file", f'it was cut: the line {{"kind":"end",…}} is missing: {_AGAIN}')


def _check_format(number: int, fields: dict[str, object]) -> None:
    version = fields.get("memci")
    if type(version) is int and version > FORMAT:
        raise SchemaTooNew(
            f"file, line {number:,}: a later memci exported it: its format is {version}, this one knows up to {FORMAT}"
        )
    if type(version) is not int or version < 1 or fields.get("kind") != "context":
        raise _wrong(number, 'expected the first line of an export, {"memci":1,"kind":"context",…}')


def _check_end(number: int, end: "EndLine", rows: _Rows, checksum: Checksum) -> None:
    for name, wanted, there in (
        ("entries", end.entries, len(rows.entries)),
        ("pages", end.pages, len(rows.pages)),
        ("editions", end.editions, len(rows.compactions)),
        ("ops", end.ops, len(rows.ops)),
        ("entries", rows.header.head, len(rows.entries)),
        ("pages", rows.header.next_page - 1, len(rows.pages)),
    ):
        if wanted != there:
            raise _wrong(number, f"{wanted:,} {name} were exported, the file has {there:,}: {_AGAIN}")
    if end.digest != checksum.hex():
        raise _wrong(number, f"the lines before are not those that were exported (other digest): {_AGAIN}")


def _entry(number: int, entry: "EntryLine", rows: _Rows) -> EntryRow:
    if entry.seq != len(rows.entries):
        raise _wrong(number, f"message {entry.seq:,} where {len(rows.entries):,} was expected: {_AGAIN}")
    if entry.message is not None:
        codec = ORJSON
        try:
            body = bytes(memoryview(orjson.dumps(entry.message)))  # a copy: it keeps a buffer of many times its size
        except orjson.JSONEncodeError as error:
            raise _wrong(number, f"the message is not what was exported ({error}): {_AGAIN}") from None
    else:
        assert entry.codec is not None and entry.body is not None, "the model asks for one of both"
        codec = entry.codec
        try:
            body = b64decode(entry.body, validate=True)
        except ValueError as error:
            raise _wrong(number, f"the body is no base64 ({error}): {_AGAIN}") from None
    if len(body) > MAX_BYTES:
        raise LimitExceeded(f"file, line {number:,}: message bytes", len(body), MAX_BYTES)
    stored = bytes.fromhex(entry.digest)
    if digest(codec, body) != stored:
        raise _wrong(number, f"the message is not the one that was exported (other digest): {_AGAIN}")
    try:
        decode(codec, body)
    except InvalidMessage as error:
        raise _wrong(number, str(error)) from None
    return EntryRow(entry.seq, codec, body, stored, entry.tokens, entry.clip, entry.quotes, entry.at)


def _page(number: int, page: "PageLine", rows: _Rows) -> PageRow:
    if page.index != len(rows.pages) + 1:
        raise _wrong(number, f"page #{page.index} where #{len(rows.pages) + 1} was expected: {_AGAIN}")
    head = rows.header.head
    end = head if page.end is None else page.end
    cut = page.cut or (page.first, end)
    if not (page.first <= cut[0] <= cut[1] <= end <= head):
        raise _wrong(number, f"page #{page.index} does not hold a run of the {head:,} messages")
    if (page.end is None) != (page.index == rows.header.open_page):
        raise _wrong(number, f"page #{page.index} is open, or the open page of the context, but not both")
    if page.continues is not None and page.continues >= page.index:
        raise _wrong(number, f"page #{page.index} can't continue #{page.continues}, which is not before it")
    fields = page.model_dump(exclude={"kind", "place"})
    return PageRow(**fields, state=PageState[page.place.upper()])


def _compaction(number: int, compaction: "CompactionLine", rows: _Rows) -> CompactionRow:
    above = rows.compactions[-1].revision if rows.compactions else rows.header.revision + 1
    if compaction.revision >= above or compaction.head > rows.header.head:
        raise _wrong(number, "compactions come newest first, each from before the one above it")
    text = written("text", compaction.text)
    try:
        snapshot = snapshots.loads(
            text, _record(rows.header), nonce="", weigh=None, head=compaction.head, turn=compaction.turn
        )
        _check_lines(snapshot.contents)
        if snapshot.record is not None:
            _check_state(snapshot.record)
    except _NONSENSE as error:
        raise _wrong(number, f"the compaction can't be read: {error!r:.200}") from None
    return CompactionRow(compaction.revision, compaction.head, compaction.turn, text)


def _check_lines(contents: ContentsPage) -> None:
    """Raise ValueError where a line of the Contents Page is none that memci would have written."""
    for block in contents.blocks:
        titles = [line.title for line in block.lines] + [title for each in block.ranges for _, title in each.titles]
        entries = [entry for line in block.lines for entry in line.entries]
        if not all(type(text) is str and confined(text) for text in (*titles, *(entry.summary for entry in entries))):
            raise ValueError("a line of the contents is not one line of plain text")
        if not all(type(index) is int and type(text) is str and confined(text) for index, text in block.instructions):
            raise ValueError("an instruction of the user is not one line of plain text")
        if not all(type(entry.ordinal) is int and entry.role in _SPEAKERS for entry in entries):
            raise ValueError("an entry of the contents is nobody's")


def _op(number: int, op: "OpLine", rows: _Rows) -> OpRow:
    if op.first + len(op.entries) > rows.header.head:
        raise _wrong(number, f"op {op.op_id!r:.60} names messages that are not there")
    return OpRow(op.op_id, bytes.fromhex(op.digest), op.first, tuple(op.entries))


def _prove(transition: Transition) -> None:
    """Refuse what is not whole, or would not open. O(rows)."""
    record = transition.record
    names = [op.op_id for op in transition.ops]
    if len(set(names)) < len(names):
        raise InvalidSetting("file", f"context {record.id!r:.60}: an op_id is there twice")
    scratch = EphemeralStorage()
    scratch.commit(transition)
    for problem in problems(scratch, record.id):
        raise InvalidSetting("file", f"context {record.id!r:.60}: {problem}")
    try:
        _check_state(record)
        with suppress(BudgetExceeded):  # it was counted by a counter of its own, and is counted otherwise here
            loaded(scratch, OpenRequest(record.id, read_only=True))
    except MemciError as error:
        raise InvalidSetting("file", f"context {record.id!r:.60} would not open: {error}") from None
    except _NONSENSE as error:
        raise InvalidSetting("file", f"context {record.id!r:.60} would not open: {error!r:.200}") from None


def _check_state(record: ContextRecord) -> None:
    """Raise ValueError unless the state is that of a window with the pages of *record*."""
    from .export_format import STATE

    state = STATE.validate_json(json.dumps(state_fields(record.state)), strict=True)
    if not re.fullmatch("[0-9a-f]{8}", state.nonce):
        raise ValueError(f"the nonce {state.nonce!r:.40} is not 8 hex digits")
    for index in (*state.pins, *state.relist, state.task or 1):
        if not 1 <= index <= max(record.next_page - 1, 1):
            raise ValueError(f"page #{index} is not there")
    if not 0 <= state.since <= record.head:
        raise ValueError(f"it can't have been forked at {state.since}")


def _taken(id: str) -> InvalidSetting:  # noqa: A002
    return InvalidSetting("id", f"there is a context {id!r:.60} already: take another id, or erase that one first")


def _wrong(number: int, reason: str) -> InvalidSetting:
    return InvalidSetting("file", f"line {number:,}: {reason}")
