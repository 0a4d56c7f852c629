"""Importing: the lines of an export become one transition, once all of them are checked.

    lines  ──▶  rows, each checked  ──▶  stored in RAM: verified, opened, its window counted again  ──▶  one commit

A file may have been cut, edited or made up. The error names the line, and nothing was stored. All rows are in memory
before they are stored. This module knows nothing of files.
"""

import json
from base64 import b64decode
from collections.abc import Iterable, Iterator
from dataclasses import replace
from hmac import compare_digest
from itertools import chain

import orjson

from ..chapters.contents import Block, ListedPage
from ..errors import BudgetExceeded, InvalidSetting, LimitExceeded, MemciError, SchemaTooNew, WriteConflict
from ..messages import check
from ..rows import CallRow, CompactionRow, ContextRecord, EntryRow, OpRow, PageRow, PageState
from ..storage import EphemeralStorage, Storage
from ..storage.audit import audit
from ..storage.codec import ERASED, MAX_BYTES, ORJSON, decode, digest
from ..storage.names import new, taken
from ..storage.protocol import Transition
from ..storage.validation import check_text
from ..window import snapshot as snapshots
from ..window.drafting import timestamp
from ..window.window import Window
from . import export_format as form
from .loader import OpenRequest, loaded
from .verify import page_problem, problems

_ORDER = tuple(form.MODELS)
_AGAIN = "export the context again, or take another copy of the file"


def imported(
    storage: Storage,
    lines: Iterable[str],
    *,
    id: str | None = None,  # noqa: A002
    request: OpenRequest | None = None,
    key: bytes | None = None,
) -> str:
    """Store the context that *lines* hold, whole or not at all, and return its id (see `Context.import_`).

    O(lines), all of it in memory. *lines* are what `exported` returned, with or without newlines, of one context only.
    With *request*, it must open as that asks (whatever its id), and what opening raises is raised before it is stored.

    Raises:
        InvalidSetting: If the lines are not what was exported, or not signed with *key*; it names the line. Or if there
            is such a context.
        LimitExceeded: If a message is too large to store.
        SchemaTooNew: If a later memci wrote them.
        StorageError: If it could not be stored.
    """
    found = list(transitions(lines, request=request, key=key))
    if len(found) != 1:
        raise InvalidSetting("file", f"expected one context, it has {len(found):,}: import each by itself")
    return committed(storage, found[0], id=id)


def committed(storage: Storage, transition: Transition, *, id: str | None = None) -> str:  # noqa: A002
    """Store a transition that `transitions` yielded under the name *id*, and return the name. O(rows)."""
    record = transition.record
    record = record._replace(id=new(storage, record.id if id is None else id, record.owner))
    audit(storage, "import", context=record.id, owner=record.owner, messages=record.head)
    try:
        storage.commit(transition._replace(record=record))
    except WriteConflict:
        raise taken(record.id) from None
    return record.id


def transitions(
    lines: Iterable[str], *, request: OpenRequest | None = None, key: bytes | None = None
) -> Iterator[Transition]:
    """Yield the transition that creates each context in *lines*, checked; they follow one another. O(lines).

    What is wrong is raised as by `imported`, when the line is reached.
    """
    texts = ((number, form.stripped(number, line)) for number, line in enumerate(lines, 1))
    numbered = ((number, text) for number, text in texts if text.strip())
    first = next(numbered, None)
    if first is None:
        raise InvalidSetting("file", f"it is empty: {_AGAIN}")
    while first is not None:
        yield _transition(chain([first], numbered), request, key)
        first = next(numbered, None)


def _transition(lines: Iterator[tuple[int, str]], request: OpenRequest | None, key: bytes | None) -> Transition:
    """Return the transition of the first context in *lines*."""
    rows = _Rows(form.Checksum(key))
    for number, text in lines:
        try:
            rows.add(text)
        except LimitExceeded as error:
            raise LimitExceeded(f"file, line {number:,}: {error.limit}", error.value, error.at_most) from None
        except SchemaTooNew as error:
            raise SchemaTooNew(f"file, line {number:,}: {error}") from None
        except ValueError as error:
            reason = error.reason if isinstance(error, InvalidSetting) else error
            raise InvalidSetting("file", f"line {number:,}: {reason}") from None
        if rows.last == "end":
            return _proved(rows.transition, request)
    raise InvalidSetting("file", f'it was cut: the line {{"kind":"end",…}} is missing: {_AGAIN}')


class _Rows:
    """The rows of one context, as far as they were read. What a method refuses, it raises as a ValueError."""

    def __init__(self, checksum: form.Checksum) -> None:
        self.last = "context"
        """the kind of the last line"""
        self._record: ContextRecord | None = None
        self._entries: list[EntryRow] = []
        self._pages: list[PageRow] = []
        self._compactions: list[CompactionRow] = []
        self._ops: dict[str, OpRow] = {}
        self._calls: list[CallRow] = []
        self._checksum = checksum

    @property
    def record(self) -> ContextRecord:
        """The record of the context, which its first line holds."""
        assert self._record is not None, "a context comes first"
        return self._record

    @property
    def transition(self) -> Transition:
        """What creates the context."""
        entries, pages, ops = tuple(self._entries), tuple(self._pages), tuple(self._ops.values())
        history, calls = tuple(reversed(self._compactions)), tuple(self._calls)
        return Transition(0, self.record, entries, pages, history=history, ops=ops, calls=calls)

    def add(self, text: str) -> None:
        """Check the line *text* and keep its row."""
        try:
            check_text("file", text)
        except InvalidSetting as error:
            raise ValueError(f"{error.reason}: write such a half as an escape") from None
        try:
            fields = form.fields_of(text)
        except ValueError as error:
            raise ValueError(f"not valid JSON ({error}): {_AGAIN}") from None
        kind = fields.get("kind") if isinstance(fields, dict) else None
        if not isinstance(kind, str) or kind not in form.MODELS:
            raise ValueError("neither a context nor a part of one, as memci export writes them")
        if self._record is None:
            _check_format(fields)
        if (kind == "context") != (self._record is None) or _ORDER.index(kind) < _ORDER.index(self.last):
            raise ValueError(f"{kind!r} after {self.last!r}: lines are missing or in another order: {_AGAIN}")
        self.last = kind
        match form.checked_line(kind, fields):
            case form.HeaderLine() as header:
                self._record = _record(header)
                form.check_settings(self._record.settings)
                form.check_state(self._record)
            case form.EntryLine() as entry:
                self._entries.append(self._entry(entry))
            case form.PageLine() as page:
                self._pages.append(self._page(page))
            case form.CompactionLine() as compaction:
                self._compactions.append(self._compaction(compaction))
            case form.OpLine() as op:
                if op.op_id in self._ops:
                    raise ValueError(f"the op_id {op.op_id!r:.60} is there twice")
                self._ops[op.op_id] = OpRow(op.op_id, bytes.fromhex(op.digest), op.first, tuple(op.entries))
            case form.CallLine() as call:
                self._calls.append(self._call(call))
            case form.EndLine() as end:
                self._check_end(end)
        self._checksum.add(text)

    def _entry(self, entry: form.EntryLine) -> EntryRow:
        if entry.seq != len(self._entries):
            raise ValueError(f"message {entry.seq:,} where {len(self._entries):,} was expected: {_AGAIN}")
        try:
            if entry.message is not None:
                codec = ORJSON
                body = bytes(memoryview(orjson.dumps(entry.message)))  # a copy: orjson keeps a much larger buffer
            else:
                assert entry.codec is not None and entry.body is not None, "the model asks for one of both"
                codec, body = entry.codec, b64decode(entry.body, validate=True)
        except orjson.JSONEncodeError as error:
            raise ValueError(f"the message is not what was exported ({error}): {_AGAIN}") from None
        except ValueError as error:
            raise ValueError(f"the body is no base64 ({error}): {_AGAIN}") from None
        if len(body) > MAX_BYTES:
            raise LimitExceeded("message bytes", len(body), MAX_BYTES)
        stored = bytes.fromhex(entry.digest)
        if digest(codec, body) != stored:
            raise ValueError(f"the message is not the one that was exported (other digest): {_AGAIN}")
        decoded = decode(codec, body)
        if codec != ERASED:
            check(decoded)
        if entry.at is not None:
            timestamp(entry.at)
        return EntryRow(entry.seq, codec, body, stored, entry.tokens, entry.clip, entry.quotes, entry.at)

    def _page(self, page: form.PageLine) -> PageRow:
        if page.index != len(self._pages) + 1:
            raise ValueError(f"page #{page.index} where #{len(self._pages) + 1} was expected: {_AGAIN}")
        fields = page.model_dump(exclude={"kind", "place"})
        row = PageRow(**fields, state=PageState[page.place.upper()])
        if problem := page_problem(row, self.record):
            raise ValueError(problem)
        return row

    def _compaction(self, line: form.CompactionLine) -> CompactionRow:
        above = self._compactions[-1].revision if self._compactions else self.record.revision + 1
        if line.revision >= above or line.head > self.record.head:
            raise ValueError("compactions come newest first, each from before the one above it")
        row = CompactionRow(line.revision, line.head, line.turn, form.stored_text("text", line.text))
        try:
            form.check_snapshot_text(row.text)
            _check_snapshot(row, self.record)
        except ValueError as error:
            raise ValueError(f"the compaction can't be read: {error}") from None
        return row

    def _call(self, call: form.CallLine) -> CallRow:
        before = self._calls[-1] if self._calls else None
        if not (before.revision if before else 0) < call.revision <= self.record.revision:
            raise ValueError("calls come oldest first, each from after the one above it")
        if call.at is not None:
            timestamp(call.at)
        row = CallRow(**call.model_dump(exclude={"kind"}))
        return row if before is None or "tools" in call.model_fields_set else row._replace(tools=before.tools)

    def _check_end(self, end: form.EndLine) -> None:
        for name, wanted, there in (
            ("entries", end.entries, len(self._entries)),
            ("pages", end.pages, len(self._pages)),
            ("compactions", end.compactions, len(self._compactions)),
            ("ops", end.ops, len(self._ops)),
            ("calls", end.calls, len(self._calls)),
            ("entries", self.record.head, len(self._entries)),
            ("pages", self.record.next_page - 1, len(self._pages)),
        ):
            if wanted != there:
                raise ValueError(f"{wanted:,} {name} were exported, the file has {there:,}: {_AGAIN}")
        found = self._checksum.fields()
        if end.digest != found["digest"]:
            raise ValueError(f"the lines before are not those that were exported (other digest): {_AGAIN}")
        if "hmac" in found and not compare_digest(found["hmac"], end.hmac or ""):
            raise ValueError("not signed with this key" if end.hmac else "not signed: export it with the key")


def _record(header: form.HeaderLine) -> ContextRecord:
    fields = header.model_dump(exclude={"memci", "kind", "settings", "state"})
    settings, state = form.stored_text("settings", header.settings), form.stored_text("state", header.state)
    return ContextRecord(**fields, settings=settings, state=state)


def _check_format(fields: dict[str, object]) -> None:
    version = fields.get("memci")
    if type(version) is int and version > form.FORMAT:
        raise SchemaTooNew(f"a later memci exported it: its format is {version}, this one reads {form.FORMAT}")
    if type(version) is not int or version < 1 or fields.get("kind") != "context":
        raise ValueError('expected the first line of an export, {"memci":1,"kind":"context",…}')


def _check_snapshot(row: CompactionRow, record: ContextRecord) -> None:
    """Raise ValueError unless the compaction *row*, whose text was checked, fits a context of *record*."""
    snapshot = snapshots.loads(row, record)
    after = snapshot.record
    listed = snapshot.contents.listed
    if len(set(listed)) < len(listed):
        raise ValueError("a page is listed twice")
    if unknown := [index for index in listed if index >= after.next_page]:
        raise ValueError(f"pages {unknown[:10]} are listed and were not opened yet")
    for page in snapshot.active:
        if problem := page_problem(page, after):
            raise ValueError(problem)
    form.check_state(after)


def _proved(transition: Transition, request: OpenRequest | None) -> Transition:
    """Return *transition* if it makes a whole context that opens, with the tokens of its window counted again. O(rows).

    InvalidSetting if it does not; BudgetExceeded if it leaves no room as *request* opens it.
    """
    record = transition.record
    scratch = EphemeralStorage()
    scratch.commit(transition)
    for problem in problems(scratch, record.id):
        raise InvalidSetting("file", f"context {record.id!r:.60}: {problem}")
    counter = None if request is None else request.counter
    try:
        window = loaded(scratch, OpenRequest(record.id, counter=counter, read_only=True, recount=True)).window
    except BudgetExceeded:  # it was counted by a counter of its own, and is counted otherwise here
        recounted = transition
    except MemciError as error:
        raise InvalidSetting("file", f"context {record.id!r:.60} would not open: {error}") from None
    else:
        recounted = _recounted(transition, window)
    if request is not None:
        loaded(scratch, request._replace(id=record.id, recount=True))
    return recounted


def _recounted(transition: Transition, window: Window) -> Transition:
    """Return *transition* with the tokens that *window* counts, unless the context is counted by another counter.

    A file that was made up could otherwise make a window that exceeds its budget.
    """
    if transition.record.read_settings().get("counter") != window.count.name:
        return transition
    entries, history = list(transition.entries), list(transition.history)
    for node in window.active.messages:
        entries[node.seq] = entries[node.seq]._replace(tokens=window.active.own_tokens(node))
    if history:
        text = history[-1].text
        contents = replace(window.contents, blocks=tuple(_with_costs(each, window) for each in window.contents.blocks))
        if contents != snapshots.contents(text, nonce=window.state.nonce):
            fields = {**json.loads(text), "contents": contents.to_json()}
            history[-1] = history[-1]._replace(text=form.stored_text("text", fields))
    return transition._replace(entries=tuple(entries), history=tuple(history))


def _with_costs(block: Block, window: Window) -> Block:
    """Return *block* with the costs of its lines."""
    lines = (ListedPage.of(line.index, line.line, line.entries, window.count, line.joined) for line in block.lines)
    return replace(block, lines=tuple(lines))
