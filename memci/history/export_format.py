"""The format of an export: lines of JSON, one object each; `kind` says what a line is.

    {"memci":1,"kind":"context","id":"alice","owner":…,"settings":{…},"state":{…},"head":812,…}
    {"kind":"entry","seq":0,"digest":"9f…","tokens":12,"message":{"role":"user","content":"Hi"}}          812 of them
    {"kind":"view","seq":40,"tokens":300,"clip":300}                               behind an entry that is shown clipped
    {"kind":"page","index":1,"first":0,"end":2,"turn":0,"state":"archived",…}                             every page
    {"kind":"compaction","revision":97,"head":640,"turn":80,"text":{…}}                                   newest first
    {"kind":"op","op_id":"req-1","digest":"07…","first":0,"entries":[[1,1],[1,2]]}
    {"kind":"call","revision":4,"seq":2,"turn":1,"input":900,"output":41,"tools":"[…]",…}                 oldest first
    {"kind":"end","lines":918,"digest":"5c…"}

- `memci` is the version of the format. The fields are those of the rows (`memci.rows`). A field that has its default
  is left out. Unknown fields are refused: a later format has a later number.
- A message whose bytes another JSON writer would change is written as `"codec":2,"body":"…"`, in base64; so is a
  tombstone. `digest` is the digest of the entry: 16 bytes over codec and body.
- A call of the model without `tools` had those of the line before.
- `settings`, `state` and `text` are JSON texts in the store. They are written as JSON values if writing the value
  gives the same text again, and as strings otherwise.
- The last digest is BLAKE2b, 16 bytes, over all lines before it, each with its newline. It shows whether lines are
  missing or were changed.
- The last line of a signed export also has `hmac`, HMAC-SHA256 in hexadecimal digits over the same bytes.
- A fork is written whole, with the messages that it shares. Several contexts may follow one another in one file.

This module reads and writes one line at a time.
"""

import hmac
import json
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import blake2b
from typing import Annotated, Any, Final, Literal, TypeAlias

import orjson
from pydantic import AfterValidator, Field, create_model

from ..errors import InvalidSetting, LimitExceeded, SchemaTooNew, brief
from ..rows import CONTEXT, ENTRY, VIEW, CallRow, EntryRow, PageState, Table
from ..storage.codec import MAX_BYTES, ORJSON, digest
from ..storage.validation import MAX_HEAD, check_text
from ..window.stored import Count, Index, Runs, Small, StrictJson, first_reason
from .row_stream import TABLE_OF, TABLES, Row

FORMAT: Final = 1  # the version of the format
END: Final = "end"  # the kind of the last line
SHORTEST_KEY: Final = 16  # bytes of a key, at least: 128 bits can't be guessed

Styled: TypeAlias = Literal["settings", "state", "text"]

_COMPACT: Final = (",", ":")
_STYLES: Mapping[Styled, Mapping[str, Any]] = {
    "settings": {"sort_keys": True},
    "state": {"separators": _COMPACT},
    "text": {"separators": _COMPACT, "ensure_ascii": False},
}
"""the arguments with which memci writes JSON texts of each kind"""
_SURROGATE: Final = re.compile(r"\\u[dD]")


def embed_json(style: Styled, text: str) -> object:
    """Return the value of the JSON *text*, or *text* itself where `stored_text` would not give it back exactly."""
    try:
        value = fields_of(text)
        same = isinstance(value, dict | list) and json.dumps(value, **_STYLES[style]) == text
    except ValueError:
        return text
    return value if same else text


def stored_text(style: Styled, value: object) -> str:
    """Return the text that `embed_json` made *value* from.

    InvalidSetting if an escape in it is half of a surrogate pair, which no request can have.
    """
    text = value if isinstance(value, str) else json.dumps(value, **_STYLES[style])
    if _SURROGATE.search(text):
        try:
            said = json.dumps(fields_of(text), ensure_ascii=False)
        except ValueError:
            return text  # it is refused where it is read
        check_text(style, said)
    return text


def _bytes(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError as error:
        raise ValueError(f"it is no base64 ({error})") from None


_Digest = Annotated[str, Field(pattern="^[0-9a-f]{32}$"), AfterValidator(bytes.fromhex)]
_Name = Annotated[str, Field(min_length=1)]
_Names = Literal["active", "archived", "unloaded", "undone", "erased"]
_PAIR = Field(strict=False)
_TYPES: Final[Mapping[str | type, Any]] = {
    int: Count,
    float: float,
    str: str,
    bytes: Annotated[str, AfterValidator(_bytes)],
    **dict.fromkeys(("id", "owner", "op_id"), _Name),
    **dict.fromkeys(("turn", "tokens", "clip", "archived_turn", "recall_count", "last_recalled_turn"), Small),
    **dict.fromkeys(("index", "next_page", "open_page", "continues"), Index),
    "codec": Annotated[int, Field(ge=0, lt=2**31)],
    **dict.fromkeys(("cut", "away"), Runs),
    "digest": _Digest,
    "entries": Annotated[list[Annotated[tuple[Index, Index], _PAIR]], AfterValidator(tuple)],
    "quotes": Annotated[tuple[Index, Index | None], _PAIR],
    "spans": Annotated[list[Annotated[int, Field(ge=-(2**31), lt=2**31)]], AfterValidator(tuple)],
    "revision": Annotated[int, Field(ge=1, le=MAX_HEAD)],
    PageState: Annotated[_Names, AfterValidator(lambda name: PageState[name.upper()])],
    **{
        style: Annotated[dict[str, Any] | list[Any] | str, AfterValidator(partial(stored_text, style))]
        for style in _STYLES
    },
}
"""the type of each field of a line: by its name, else by how stores keep it. Validators make the value of the row."""
_WRITERS: Final[Mapping[str | type, Callable[[Any], object]]] = {
    "digest": bytes.hex,
    PageState: lambda state: state.name.lower(),
    **{style: partial(embed_json, style) for style in _STYLES},
}
"""functions that make a JSON value of a field, where the field is not one itself"""


def _line_fields(table: Table) -> dict[str, Any]:
    """Return the types and defaults of the fields of a line of *table*, by name."""
    found: dict[str, Any] = {"kind": (Literal[table.name], ...)}
    for name, kind, nullable in table.fields:
        checked = _TYPES[kind] if kind is PageState else _TYPES.get(name, _TYPES.get(kind))
        found[name] = (checked | None if nullable else checked, table.row._field_defaults.get(name, ...))
    if table is CONTEXT:  # an export shares nothing with another context
        del found["parent"], found["base"]
    if table is ENTRY:
        found |= {name: (found[name][0] | None, None) for name in ("codec", "body")}
        found["message"] = (dict[str, Any] | None, None)
    return found


_LINES: Final = {table.name: create_model(table.name, __base__=StrictJson, **_line_fields(table)) for table in TABLES}
_BY_NAME: Final = {table.name: table for table in TABLES}
ORDER: Final = {kind: rank for rank, kind in enumerate((*_LINES, END))} | {VIEW.name: 1}
"""the ranks of kinds: no line follows one of a higher rank. A view follows its entry, so both have the same rank."""


def check_header(fields: Mapping[str, Any]) -> None:
    """Raise a ValueError unless *fields* are the first line of an export; SchemaTooNew if a later memci wrote it."""
    version = fields.get("memci")
    if type(version) is int and version > FORMAT:
        raise SchemaTooNew(f"a later memci exported it: its format is {version}, this one reads {FORMAT}")
    if type(version) is not int or version < FORMAT or fields.get("kind") != CONTEXT.name:
        raise ValueError('expected the first line of an export, {"memci":1,"kind":"context",…}')


def line_of_row(row: Row, before: Row) -> str:
    """Return *row* as a line without its newline; *before* is the row of the line before it. O(characters)."""
    table = TABLE_OF[type(row)]
    defaults = table.row._field_defaults
    fields: dict[str, Any] = {"kind": table.name}
    for name, kind, _ in table.fields:
        value = getattr(row, name)
        if name not in defaults or value != defaults[name]:
            write = _WRITERS.get(kind) or _WRITERS.get(name)
            fields[name] = value if write is None else write(value)
    if isinstance(row, CallRow) and isinstance(before, CallRow):
        fields.pop("tools", None)
        fields |= {"tools": row.tools} if row.tools != before.tools else {}
    if not isinstance(row, EntryRow):
        return line_of({"memci": FORMAT, **fields} if table is CONTEXT else fields)
    if row.codec == ORJSON and orjson.dumps(orjson.loads(row.body)) == row.body:
        del fields["codec"], fields["body"]
        return f'{line_of(fields)[:-1]},"message":{row.body.decode()}}}'
    return line_of({**fields, "body": b64encode(row.body).decode()})


def row_of_line(kind: str, fields: Mapping[str, Any], before: Row | None) -> Row:
    """Return the row that a line of *kind* holds; *before* is the row of the line before it. O(characters).

    Raises:
        ValueError: Naming the first field that is wrong.
        LimitExceeded: If a message is too large to store.
    """
    with first_reason(kind):
        values = dict(_LINES[kind].model_validate(fields))
    del values["kind"]
    if kind == ENTRY.name:
        return _entry(**values)
    row: Row = _BY_NAME[kind].row(**values)
    if isinstance(row, CallRow) and isinstance(before, CallRow) and "tools" not in fields:
        return row._replace(tools=before.tools)
    return row


def _entry(*, message: dict[str, Any] | None, codec: int | None, body: bytes | None, **fields: Any) -> EntryRow:
    if message is not None and codec is None and body is None:
        try:
            codec, body = ORJSON, bytes(memoryview(orjson.dumps(message)))  # a copy: orjson keeps a much larger buffer
        except orjson.JSONEncodeError as error:
            raise ValueError(f"the message was changed after the export ({error})") from None
    elif message is not None or codec is None or body is None:
        raise ValueError("expected either message, or codec and body")
    if len(body) > MAX_BYTES:
        raise LimitExceeded("message bytes", len(body), MAX_BYTES)
    row = EntryRow(codec=codec, body=body, **fields)
    if digest(codec, body) != row.digest:
        raise ValueError("the message was changed after the export (other digest)")
    return row


def line_of(fields: Mapping[str, Any]) -> str:
    """Return *fields* as a line, without its newline."""
    return json.dumps(fields, separators=_COMPACT, ensure_ascii=False)


def strip_line(number: int, line: object) -> str:
    """Return *line*, the line *number* of a file, without its newline. InvalidSetting if it is not a str."""
    if not isinstance(line, str):
        raise InvalidSetting("file", f"line {number:,}: expected a line of text (a str), got {brief(line)}")
    return line.rstrip("\r\n")


def fields_of(line: str) -> Any:
    """Return the value of *line*, or raise a ValueError if it is not JSON."""
    try:
        return json.loads(line, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("its values are nested too deeply") from None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def is_native(line: object) -> bool:
    """Return whether *line* is the first line of an export, in any version of the format."""
    try:
        fields = fields_of(line) if isinstance(line, str) else None
    except ValueError:
        return False
    return isinstance(fields, dict) and "memci" in fields


class Checksum:
    """The number of the lines so far, their digest, and with *key* their signature.

    InvalidSetting if the key can't sign.
    """

    def __init__(self, key: bytes | None = None) -> None:
        self._lines = 0
        self._hashes: dict[str, Any] = {"digest": blake2b(digest_size=16)}
        if key is not None:
            if len(key) < SHORTEST_KEY:
                raise InvalidSetting("key", f"expected at least {SHORTEST_KEY} random bytes, got {len(key)} bytes")
            self._hashes["hmac"] = hmac.new(key, digestmod="sha256")

    def add(self, line: str) -> None:
        """Add *line* and its newline."""
        self._lines += 1
        for each in self._hashes.values():
            each.update(line.encode() + b"\n")

    def end(self) -> str:
        """Return the last line, without its newline."""
        return line_of(self._end())

    def _end(self) -> dict[str, Any]:
        return {"kind": END, "lines": self._lines, **{name: each.hexdigest() for name, each in self._hashes.items()}}

    def check(self, end: Mapping[str, Any]) -> None:
        """Raise a ValueError unless *end* has the fields of the last line."""
        expected, found = self._end(), dict(end)
        signature, given = expected.pop("hmac", None), found.pop("hmac", None)
        if found.get("lines") != self._lines:
            raise ValueError(f"the file has {self._lines:,} lines of this context, and others were exported")
        if found != expected:
            raise ValueError("lines before it were changed after the export (other digest)")
        if signature is not None and not hmac.compare_digest(signature.encode(), ascii(given)[1:-1].encode()):
            raise ValueError("not signed: export it with the key" if given is None else "not signed with this key")
