"""Checks of the rows of a stream: whether memci could have written them, and whether they make one whole context.

    checks = RowChecks(record)
    checks.check(row)        for each row of the stream: raises what is wrong with it
    checks.whole()           behind the last one: yields what is wrong with all of them together

    record        the state is that of a window with its pages
    entries       each is there, and holds a message          pages    each entry is on exactly one page
    marks         each pinned page, and each to be listed again, can be shown
    compactions   each has the fields of a window; the newest lists each archived page once, and no other page
    ops, calls    each names entries that are there

An import and `memci verify` make the same checks, so each import can be verified, and each context imported.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from ..messages import check
from ..rows import (
    COMPACTION,
    ENTRY,
    PAGE,
    CallRow,
    CompactionRow,
    ContextRecord,
    EntryRow,
    OpRow,
    PageRow,
    PageState,
    ViewRow,
)
from ..storage.codec import ERASED, decode
from ..storage.validation import MAX_HEAD, MAX_PAGE
from ..text.sanitize import is_confined
from ..window import snapshot as snapshots
from ..window.cache_use import unpack_marks
from ..window.drafting import timestamp
from ..window.state import WindowState
from .page_runs import gaps, page_problem, page_problems
from .reader import GONE
from .row_stream import Row, Unread

_MOST_SEEN: Final = 2**53
"""tokens and counts are below it: the integers that a float holds exactly"""
_NAMED: Final = 10
"""pages that one sentence names, at most"""


def _plain(text: str) -> str:
    if not is_confined(text):
        raise ValueError("not one line of plain text, as the Contents Page has them")
    return text


Count = Annotated[int, Field(ge=0, le=MAX_HEAD)]
Small = Annotated[int, Field(ge=0, lt=MAX_PAGE)]
Index = Annotated[int, Field(ge=1, lt=MAX_PAGE)]
Runs = Annotated[tuple[Count, ...], Field(strict=False)]
PlainLine = Annotated[str, AfterValidator(_plain)]
ShownEntries = list[tuple[Index, Literal["user", "assistant", "tool"], PlainLine]]


class StrictJson(BaseModel):
    """A JSON object. Unknown fields are refused."""

    model_config = ConfigDict(strict=True, extra="forbid")


class BlockJson(StrictJson):
    """One block of the Contents Page, as `Block.to_json` writes it."""

    tokens: Count
    lines: list[tuple[Index, PlainLine, list[Index], tuple[Small, Small], ShownEntries]]
    ranges: list[tuple[list[Index], list[tuple[Index, PlainLine]]]]
    said: list[tuple[Index, PlainLine]] = []


class SnapshotJson(StrictJson):
    """The text of a compaction, as `window.snapshot` writes it."""

    contents: list[BlockJson]
    was: str | None
    settings: str
    state: str
    next_page: Index
    open_page: Index | None
    active: list[tuple[Index, Count, Count | None, Small, Runs | None, Index | None]]
    marks: str | None = Field(default=None, max_length=4_096)


_STATE: Final = TypeAdapter(WindowState)


class RowChecks:
    """Checks the rows of the context of *record* as they come; it keeps the pages and the names of ops."""

    def __init__(self, record: ContextRecord) -> None:
        self._record = record
        self._seq, self._index = record.base, 1
        self._pages: list[PageRow] = []
        self._all_pages = True
        self._marked: frozenset[int] = frozenset()
        self._listed: list[int] | None = []
        """the pages that the newest compaction lists; None: not known"""
        self._compaction: CompactionRow | None = None
        self._ops: set[str] = set()
        self._view, self._call = -1, 0

    def check(self, row: Row | Unread) -> None:
        """Raise a ValueError or a MemciError if *row*, the next one of the stream, is wrong. O(characters)."""
        match row:
            case EntryRow():
                self._check_entry(row)
            case PageRow():
                self._check_page(row)
            case ViewRow():
                if not self._view < row.seq < self._seq:
                    raise ValueError(f"the view of message {row.seq:,} is not behind that message")
                self._view = row.seq
            case ContextRecord():
                check_settings(row.settings)
                state = checked_state(row)
                self._marked = frozenset((*state.pins, *state.relist))
            case CompactionRow():
                self._check_compaction(row)
            case OpRow():
                self._check_op(row)
            case CallRow():
                self._check_call(row)
            case Unread():
                self._pass_over(row)
                raise row.error

    def whole(self) -> Iterator[str]:
        """Yield a sentence for everything that is wrong with the rows together. O(pages)."""
        record, pages = self._record, self._pages
        if self._seq != record.head:
            yield f"{self._seq:,} messages are there, not {record.head:,}"
        if not self._all_pages:
            return
        yield from page_problems(record, pages)
        for first, end in gaps(record, pages):
            yield f"entries {first} to {end - 1} are on no page"
        if self._index != record.next_page:
            yield f"{self._index - 1:,} pages are there, not {record.next_page - 1:,}"
        if marked := sorted(self._marked.intersection(row.index for row in pages if row.state in GONE)):
            yield f"pages {marked[:_NAMED]} are pinned or to be listed, and were taken back or erased"
        if self._listed is None:
            return
        archived, listed = {row.index for row in pages if row.state is PageState.ARCHIVED}, set(self._listed)
        if lost := sorted(archived - listed):
            yield f"pages {lost[:_NAMED]} are archived but not listed"
        if unknown := sorted(listed - archived):
            yield f"pages {unknown[:_NAMED]} are listed but not archived"

    def _pass_over(self, row: Unread) -> None:
        """Go on as if *row* had been there, so that what follows from its loss is not named as well."""
        if row.table is ENTRY:
            self._seq = row.number + 1
        elif row.table is PAGE:
            self._all_pages = False
        elif row.table is COMPACTION and self._compaction is None:
            self._listed = None

    def _check_entry(self, row: EntryRow) -> None:
        expected, self._seq = self._seq, row.seq + 1
        if row.seq != expected:
            raise ValueError(f"message {row.seq:,} where {expected:,} was expected")
        message = decode(row.codec, row.body)
        if row.codec != ERASED:
            check(message)
        if row.at is not None:
            timestamp(row.at)

    def _check_page(self, row: PageRow) -> None:
        expected, self._index = self._index, row.index + 1
        if row.index != expected and self._all_pages:
            raise ValueError(f"page #{row.index} where #{expected} was expected")
        self._pages.append(row)
        if problem := page_problem(row, self._record):
            raise ValueError(problem)

    def _check_compaction(self, row: CompactionRow) -> None:
        later, self._compaction = self._compaction, row
        if later is None:
            self._listed = None
        above = self._record.revision + 1 if later is None else later.revision
        if row.revision >= above or row.head > self._record.head:
            raise ValueError("compactions come newest first, each from before the one above it")
        try:
            listed = checked_snapshot(row, self._record)
        except ValueError as error:
            raise ValueError(f"the compaction can't be read: {error}") from None
        if later is None:
            self._listed = listed

    def _check_op(self, row: OpRow) -> None:
        if row.op_id in self._ops:
            raise ValueError(f"the op_id {row.op_id!r:.60} is there twice")
        self._ops.add(row.op_id)
        if row.first + len(row.entries) > self._record.head:
            raise ValueError(f"the op {row.op_id!r:.60} names messages that are not there")

    def _check_call(self, row: CallRow) -> None:
        record, before = self._record, self._call
        self._call = row.revision
        if not before < row.revision <= record.revision:
            raise ValueError("calls come oldest first, each from after the one above it")
        if row.seq > record.head or row.turn >= max(record.next_page, 1):
            raise ValueError(f"the call of the model of revision {row.revision} is not one of this context")
        if row.at is not None:
            timestamp(row.at)


def check_settings(text: str) -> None:
    """Raise a ValueError unless *text* has the shape of stored settings; opening a context checks their values."""
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        fields = None
    kinds = {"system": str | None, "counter": str | None, "settings": dict}
    if not isinstance(fields, dict) or not all(isinstance(fields.get(name), kinds[name]) for name in kinds):
        raise ValueError("settings: expected an object with system, counter and settings")


def checked_state(record: ContextRecord) -> WindowState:
    """Return the state of *record*; a ValueError unless it is one of a window with its pages. O(state)."""
    try:
        WindowState.loads(record.state)
        text = json.dumps(json.loads(record.state), ensure_ascii=False)
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise ValueError("state: expected an object with the fields of a window's state") from None
    with first_reason("state"):
        state = _STATE.validate_json(text.encode(errors="replace"), strict=True)  # ids may hold half of a pair
    if not re.fullmatch("[0-9a-f]{8}", state.nonce):
        raise ValueError(f"the nonce {state.nonce!r:.40} is not 8 hex digits")
    runs = [(index, index) for index in (*state.pins, *state.relist, state.task) if index is not None]
    for first, last in (*runs, *state.outbox):
        if not 1 <= first <= last <= max(record.next_page - 1, 1):
            raise ValueError(f"the pages #{first} to #{last} are not there")
    if not 0 <= state.since <= record.head:
        raise ValueError(f"it can't have been forked at {state.since}")
    if not all(0 <= number < _MOST_SEEN for number in (state.tools, *state.cache)):
        raise ValueError(f"tokens of tools and numbers of the cache policy are 0 to {_MOST_SEEN:,}")
    frame = rf"<memci:memory {state.nonce}>\n[^<>]*\n</memci:memory {state.nonce}>[^<>]*"
    if state.recollection is not None and not re.fullmatch(f"({frame})?", state.recollection[1]):
        raise ValueError("the memory page is not in its frame")
    return state


def checked_snapshot(row: CompactionRow, record: ContextRecord) -> list[int]:
    """Return the pages that the compaction *row* lists. O(characters).

    ValueError unless memci could have written it in the context of *record*.
    """
    with first_reason("text"):
        fields = SnapshotJson.model_validate_json(row.text)
    blocks = fields.contents
    if any(block.said and (block.lines or block.ranges or block is not blocks[-1]) for block in blocks):
        raise ValueError("contents: the user's instructions are not the last block, or not by themselves")
    if fields.marks is not None:
        unpack_marks(fields.marks)
    check_settings(fields.settings)
    if fields.was is not None:
        check_settings(fields.was)
    snapshot = snapshots.loads(row, record)
    listed = snapshot.contents.listed
    if len(set(listed)) < len(listed):
        raise ValueError("a page is listed twice")
    if unknown := [index for index in listed if index >= snapshot.record.next_page]:
        raise ValueError(f"pages {unknown[:_NAMED]} are listed and were not opened yet")
    for problem in filter(None, (page_problem(page, snapshot.record) for page in snapshot.active)):
        raise ValueError(problem)
    checked_state(snapshot.record)
    return listed


@contextmanager
def first_reason(name: str) -> Iterator[None]:
    """Turn a ValidationError into a ValueError of one line: the first field that is wrong, else *name*, and why."""
    try:
        yield
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(str(each) for each in first["loc"]) or name
        raise ValueError(f"{where}: {first['msg']}") from None
