"""Checks of the stored texts of a window: its settings, its state, and the snapshots of compactions.

An export may be edited or made up, and a store may be damaged. Texts that pass these checks crash no later call.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from ..chapters.contents import check_order
from ..messages import Format
from ..rows import CompactionRow, ContextRecord
from ..storage.validation import MAX_HEAD, MAX_PAGE
from ..text.sanitize import is_confined
from .cache_use import unpack_marks
from .snapshot import Snapshot, loads
from .state import CLOCKS, WindowState


def _plain(text: str) -> str:
    if not is_confined(text):
        raise ValueError("not one line of plain text, as the Contents Page has them")
    return text


Count = Annotated[int, Field(ge=0, le=MAX_HEAD)]
Small = Annotated[int, Field(ge=0, lt=MAX_PAGE)]
Index = Annotated[int, Field(ge=1, lt=MAX_PAGE)]
Runs = Annotated[tuple[Count, ...], Field(strict=False)]
PlainLine = Annotated[str, AfterValidator(_plain)]
Day = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]
Role = Literal["user", "assistant", "tool", "system", "developer"]
ShownEntries = list[tuple[Index, Role, PlainLine]]


class StrictJson(BaseModel):
    """A JSON object. Unknown fields are refused."""

    model_config = ConfigDict(strict=True, extra="forbid")


class BlockJson(StrictJson):
    """One block of the Contents Page, as `Block.to_json` writes it."""

    tokens: Count
    lines: list[tuple[Index, PlainLine, list[Index], tuple[Small, Small], ShownEntries]]
    ranges: list[tuple[list[Index], list[tuple[Index, PlainLine]]]]
    said: list[tuple[Index, PlainLine]] = []
    parts: list[tuple[Index, Index, Index, PlainLine]] = []
    told: tuple[Index, Literal["system", "developer"], str, Format | Literal[""]] | None = None
    blocks: str = ""
    days: tuple[list[Day | None], list[list[tuple[int, Day | None]]]] | None = None


class SnapshotJson(StrictJson):
    """The text of a compaction, as `window.snapshot` writes it."""

    contents: list[BlockJson]
    was: str | None
    settings: str
    state: str
    next_page: Index
    open_page: Index | None
    active: list[tuple[Index, Count, Count | None, Small, Runs | None, Runs | None]]
    marks: str | None = Field(default=None, max_length=4_096)
    unloaded: dict[PlainLine, list[Index]] = {}
    clips: list[tuple[Count, Count, Small]] = []


_STATE: Final = TypeAdapter(WindowState)
_MOST_SEEN: Final = 2**53  # tokens and counts are below it: a float holds all integers up to it


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
    """Return the state of *record*. ValueError unless it is the state of a window with its pages. O(state)."""
    try:
        WindowState.loads(record.state)
        text = json.dumps(json.loads(record.state), ensure_ascii=False)
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise ValueError("state: expected an object with the fields of a window's state") from None
    with first_reason("state"):
        state = _STATE.validate_json(text.encode(errors="replace"), strict=True)  # ids may hold half of a pair
    if not re.fullmatch("[0-9a-f]{8}", state.nonce):
        raise ValueError(f"the nonce {state.nonce!r:.40} is not 8 hex digits")
    named = (*state.pins, *state.relist, state.task, *(page for page, _ in state.dropped))
    runs = [(index, index) for index in named if index is not None]
    for first, last in (*runs, *state.outbox):
        if not 1 <= first <= last <= max(record.next_page - 1, 1):
            raise ValueError(f"it names the pages #{first} to #{last}, which do not exist")
    if not 0 <= state.since <= record.head:
        raise ValueError(f"states before message {state.since} are said to be lost, but it has only {record.head}")
    times = [at for _, at, _ in state.clocks if at is not None]
    if len(state.clocks) > CLOCKS or not all(abs(at) < _MOST_SEEN for at in times):
        raise ValueError(f"clocks: expected at most {CLOCKS} models, with times in seconds")
    use, breaks = state.cache, list(state.cache.breaks)
    numbers = (state.tools, use.grow, use.uses, use.far, use.gaps, *breaks, use.counted, use.ends)
    if not breaks or breaks != sorted(breaks) or not all(0 <= number < _MOST_SEEN for number in numbers):
        raise ValueError(f"tokens of tools and numbers of the cache policy are 0 to {_MOST_SEEN:,}, gaps in order")
    frame = rf"<memci:memory {state.nonce}>\n[^<>]*\n</memci:memory {state.nonce}>[^<>]*"
    if state.recollection is not None and not re.fullmatch(f"({frame})?", state.recollection[1]):
        raise ValueError("the memory page is not in its frame")
    return state


def checked_snapshot(row: CompactionRow, record: ContextRecord) -> Snapshot:
    """Return the snapshot of the compaction *row* of the context of *record*. O(characters).

    ValueError unless memci could have written it.
    """
    with first_reason("text"):
        fields = SnapshotJson.model_validate_json(row.text)
    blocks = fields.contents
    check_order([(block.lines or block.ranges, block.told, block.said, block.parts) for block in blocks])
    if fields.marks is not None:
        unpack_marks(fields.marks)
    check_settings(fields.settings)
    if fields.was is not None:
        check_settings(fields.was)
    if row.head > record.head:
        raise ValueError(f"it is of {row.head:,} messages, which are not there")
    snapshot = loads(row, record)
    if (state := checked_state(snapshot.record)) != state.alone():
        raise ValueError("it holds words of other contexts")
    listed = snapshot.contents.listed
    if len(set(listed)) < len(listed):
        raise ValueError("a page is listed twice")
    if max(listed, default=0) >= snapshot.record.next_page:
        raise ValueError(f"page #{max(listed)} is listed and was not opened yet")
    return snapshot


@contextmanager
def first_reason(name: str) -> Iterator[None]:
    """Turn a ValidationError into a ValueError of one line: the first field that is wrong, else *name*, and why."""
    try:
        yield
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(str(each) for each in first["loc"]) or name
        raise ValueError(f"{where}: {first['msg']}") from None
