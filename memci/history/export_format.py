"""The format of an export: lines of JSON, one object each; `kind` says what a line is.

    {"memci":1,"kind":"context","id":"alice","owner":…,"settings":{…},"state":{…},"head":812,…}
    {"kind":"entry","seq":0,"digest":"9f…","tokens":12,"message":{"role":"user","content":"Hi"}}          812 of them
    {"kind":"page","index":1,"first":0,"end":2,"turn":0,"place":"archived",…}                             every page
    {"kind":"compaction","revision":97,"head":640,"turn":80,"text":{…}}                                   newest first
    {"kind":"op","op_id":"req-1","digest":"07…","first":0,"entries":[[1,1],[1,2]]}
    {"kind":"call","revision":4,"seq":2,"turn":1,"input":900,"output":41,"tools":"[…]",…}                  oldest first
    {"kind":"end","entries":812,"pages":97,"compactions":3,"ops":1,"calls":1,"digest":"5c…"}

- `memci` is the version of the format. The fields are those of the rows in `memci.rows`. An entry leaves out the
  fields that are not set. Unknown fields are refused: a later format has a later number.
- A message whose bytes another JSON writer would change stands as `"codec":2,"body":"…"`, in base64; so does a
  tombstone. `digest` is the digest of the entry: 16 bytes over codec and body.
- A call of the model without `tools` had those of the line before. Without calls, the last line does not count them.
- `settings`, `state` and `text` are JSON texts in the store. They stand as JSON values if writing the value gives the
  same text again, and as strings otherwise.
- The last digest is BLAKE2b, 16 bytes, over all lines before it, each with its newline. It shows whether lines are
  missing or were changed.
- The last line of a signed export also has `hmac`, HMAC-SHA256 in hexadecimal digits over the same bytes.
- A fork is written whole, with the messages that it shares. Several contexts may stand in one file, one after another.

This module checks one line at a time. It knows nothing of storage, nor of how the lines belong together.
"""

import hmac
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from ..errors import InvalidSetting, brief
from ..rows import ContextRecord
from ..storage.validation import MAX_HEAD, MAX_PAGE
from ..text.sanitize import confined
from ..window.cache_use import unpacked
from ..window.state import WindowState

FORMAT: Final = 1
"""the version of the format"""
SHORTEST_KEY: Final = 16
"""bytes of a key, at least"""

Styled: TypeAlias = Literal["settings", "state", "text"]

_COMPACT: Final = (",", ":")
_STYLES: Mapping[Styled, Mapping[str, Any]] = {
    "settings": {"sort_keys": True},
    "state": {"separators": _COMPACT},
    "text": {"separators": _COMPACT, "ensure_ascii": False},
}
"""how memci writes the JSON texts of each kind"""


def _plain(text: str) -> str:
    if not confined(text):
        raise ValueError("not one line of plain text, as the Contents Page has them")
    return text


Count = Annotated[int, Field(ge=0, le=MAX_HEAD)]
Small = Annotated[int, Field(ge=0, lt=MAX_PAGE)]
Index = Annotated[int, Field(ge=1, lt=MAX_PAGE)]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
Runs = Annotated[tuple[Count, ...], Field(strict=False)]
PlainLine = Annotated[str, AfterValidator(_plain)]
ShownEntries = list[tuple[Index, Literal["user", "assistant", "tool"], PlainLine]]


class ExportLine(BaseModel):
    """One line of an export, or a JSON object within one. Unknown fields are refused."""

    model_config = ConfigDict(strict=True, extra="forbid")


class HeaderLine(ExportLine):
    """The first line of a context: its record."""

    memci: int
    kind: Literal["context"]
    id: Annotated[str, Field(min_length=1)]
    owner: Annotated[str, Field(min_length=1)]
    settings: dict[str, Any] | str
    state: dict[str, Any] | str
    head: Count
    next_page: Index
    turn: Small
    open_page: Index | None
    revision: Annotated[int, Field(ge=1, le=MAX_HEAD)]


class EntryLine(ExportLine):
    """One message: either `message`, or `codec` and `body`."""

    kind: Literal["entry"]
    seq: Count
    digest: Digest
    tokens: Small
    clip: Small = 0
    quotes: Annotated[tuple[Index, Index | None] | None, Field(strict=False)] = None
    at: str | None = None
    message: dict[str, Any] | None = None
    codec: Annotated[int, Field(ge=0, lt=2**31)] | None = None
    body: str | None = None

    @model_validator(mode="after")
    def _one_form(self) -> "EntryLine":
        if (self.message is None) == (self.codec is None) or (self.codec is None) != (self.body is None):
            raise ValueError("expected either message, or codec and body")
        return self


class PageLine(ExportLine):
    """One page."""

    kind: Literal["page"]
    index: Index
    first: Count
    end: Count | None
    turn: Small
    place: Literal["active", "archived", "unloaded", "undone", "erased"]
    cut: Runs | None
    continues: Index | None
    archived_turn: Small | None
    recall_count: Small
    last_recalled_turn: Small | None


class CompactionLine(ExportLine):
    """The window after a compaction, as `window.snapshot` writes it."""

    kind: Literal["compaction"]
    revision: Annotated[int, Field(ge=1, le=MAX_HEAD)]
    head: Count
    turn: Small
    text: dict[str, Any] | list[Any] | str


class OpLine(ExportLine):
    """An append with an `op_id`."""

    kind: Literal["op"]
    op_id: Annotated[str, Field(min_length=1)]
    digest: Digest
    first: Count
    entries: list[Annotated[tuple[Index, Index], Field(strict=False)]]


class CallLine(ExportLine):
    """What a call of the model cost."""

    kind: Literal["call"]
    revision: Annotated[int, Field(ge=1, le=MAX_HEAD)]
    seq: Count
    turn: Small
    at: str | None
    model: str | None
    predicted: Count
    input: Count
    cached_read: Count
    cached_written: Count
    output: Count
    tools: str | None = None


class EndLine(ExportLine):
    """The last line of a context: how many lines of each kind came before, and their digest."""

    kind: Literal["end"]
    entries: Count
    pages: Count
    compactions: Count
    ops: Count
    calls: Count = 0
    digest: Digest
    hmac: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None


MODELS: Final[Mapping[str, type[ExportLine]]] = {
    "context": HeaderLine,
    "entry": EntryLine,
    "page": PageLine,
    "compaction": CompactionLine,
    "op": OpLine,
    "call": CallLine,
    "end": EndLine,
}


class BlockJson(ExportLine):
    """One block of the Contents Page, as `Block.to_json` writes it."""

    tokens: Count
    lines: list[tuple[Index, PlainLine, list[Index], tuple[Small, Small], ShownEntries]]
    ranges: list[tuple[list[Index], list[tuple[Index, PlainLine]]]]
    said: list[tuple[Index, PlainLine]] = []


class SnapshotJson(ExportLine):
    """The text of a compaction, as `window.snapshot` writes it."""

    contents: list[BlockJson]
    was: str | None
    settings: str
    state: str
    next_page: Index
    open_page: Index | None
    active: list[tuple[Index, Count, Count | None, Small, Runs | None, Index | None]]
    marks: str | None = Field(default=None, max_length=4_096)


_MOST_SEEN: Final = 2**53
_STATE: Final = TypeAdapter(WindowState)


def checked_line(kind: str, fields: Mapping[str, Any]) -> ExportLine:
    """Return *fields* as a line of *kind*, or raise a ValueError that names the first field that is wrong."""
    with _first_reason(kind):
        return MODELS[kind].model_validate(fields)


def check_snapshot_text(text: str) -> None:
    """Raise a ValueError if memci would not have written the *text* of a compaction. O(characters)."""
    with _first_reason("text"):
        snapshot = SnapshotJson.model_validate_json(text)
    blocks = snapshot.contents
    if any(block.said and (block.lines or block.ranges or block is not blocks[-1]) for block in blocks):
        raise ValueError("contents: the user's instructions are not the last block, or not by themselves")
    if snapshot.marks is not None:
        unpacked(snapshot.marks)
    for settings in (snapshot.settings, snapshot.was):
        if settings is not None:
            check_settings(settings)


def check_settings(text: str) -> None:
    """Raise a ValueError unless *text* has the shape of stored settings; opening a context checks their values."""
    try:
        fields = fields_of(text)
    except ValueError:
        fields = None
    kinds = {"system": str | None, "counter": str | None, "settings": dict}
    if not isinstance(fields, dict) or not all(isinstance(fields.get(name), kinds[name]) for name in kinds):
        raise ValueError("settings: expected an object with system, counter and settings")


def check_state(record: ContextRecord) -> None:
    """Raise a ValueError unless the state of *record* is one of a window with its pages. O(state)."""
    try:
        WindowState.loads(record.state)
        text = json.dumps(json.loads(record.state), ensure_ascii=False)
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise ValueError("state: expected an object with the fields of a window's state") from None
    with _first_reason("state"):
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


@contextmanager
def _first_reason(name: str) -> Iterator[None]:
    """Turn a ValidationError into a ValueError of one line: the first field that is wrong, else *name*, and why."""
    try:
        yield
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(str(each) for each in first["loc"]) or name
        raise ValueError(f"{where}: {first['msg']}") from None


def line_of(fields: Mapping[str, Any]) -> str:
    """Return *fields* as a line, without its newline; half of a surrogate pair as an escape."""
    line = json.dumps(fields, separators=_COMPACT, ensure_ascii=False)
    try:
        line.encode()
    except UnicodeEncodeError:
        return json.dumps(fields, separators=_COMPACT)
    return line


def stripped(number: int, line: object) -> str:
    """Return *line*, the line *number* of a file, without its newline; InvalidSetting if it is no str."""
    if not isinstance(line, str):
        raise InvalidSetting("file", f"line {number:,}: expected a line of text (a str), got {brief(line)}")
    return line.rstrip("\r\n")


def fields_of(line: str) -> Any:
    """Return the value of *line*, or raise a ValueError if it is not JSON."""
    try:
        return json.loads(line, parse_constant=_refused)
    except RecursionError:
        raise ValueError("its values are nested too deeply") from None


def embedded(style: Styled, text: str) -> object:
    """Return the value of the JSON *text*, or *text* itself where `stored_text` would not give it back exactly."""
    try:
        value = fields_of(text)
        same = isinstance(value, dict | list) and json.dumps(value, **_STYLES[style]) == text
    except ValueError:
        return text
    return value if same else text


def stored_text(style: Styled, value: object) -> str:
    """Return the text that `embedded` made *value* from."""
    return value if isinstance(value, str) else json.dumps(value, **_STYLES[style])


def is_native(line: object) -> bool:
    """Return whether *line* is the first line of an export, in any version of the format."""
    try:
        fields = fields_of(line) if isinstance(line, str) else None
    except ValueError:
        return False
    return isinstance(fields, dict) and "memci" in fields


class Checksum:
    """The digest over the lines so far, and their signature with *key*; InvalidSetting if that can't sign."""

    def __init__(self, key: bytes | None = None) -> None:
        self._hashes: dict[str, Any] = {"digest": blake2b(digest_size=16)}
        if key is not None:
            if not (isinstance(key, bytes) and len(key) >= SHORTEST_KEY):
                given = f"{len(key)} bytes" if isinstance(key, bytes) else type(key).__name__
                raise InvalidSetting("key", f"expected at least {SHORTEST_KEY} random bytes, got {given}")
            self._hashes["hmac"] = hmac.new(key, digestmod="sha256")

    def add(self, line: str) -> None:
        """Add *line* and its newline."""
        for each in self._hashes.values():
            each.update(line.encode() + b"\n")

    def fields(self) -> dict[str, str]:
        """Return what the last line says of the lines: `digest`, and with a key `hmac`."""
        return {name: each.hexdigest() for name, each in self._hashes.items()}


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
