"""What the lines of an export are: one JSON object each, told apart by its `kind`.

    {"memci":1,"kind":"context","id":"alice","owner":…,"settings":{…},"state":{…},"head":812,…}
    {"kind":"entry","seq":0,"digest":"9f…","tokens":12,"message":{"role":"user","content":"Hi"}}          812 of them
    {"kind":"page","index":1,"first":0,"end":2,"turn":0,"place":"archived",…}                             every page
    {"kind":"edition","revision":97,"head":640,"turn":80,"text":{…}}                                      newest first
    {"kind":"op","op_id":"req-1","digest":"07…","first":0,"entries":[[1,1],[1,2]]}
    {"kind":"end","entries":812,"pages":97,"editions":3,"ops":1,"digest":"5c…"}

- `memci` is the version of the format. The fields are those of the rows in `storage.protocol`; what is not set is left
  out of an entry.
- A message that another JSON writer would not give back byte for byte stands as `"codec":2,"body":"…"`, its bytes in
  base64; so does a tombstone. `digest` is that of the entry: 16 bytes over codec and body.
- `settings`, `state` and `text` are JSON in the store, and stand as what they say; as a string, if writing that again
  would not give the same text.
- The last digest is BLAKE2b, 16 bytes, over all lines before it, each with its newline: a file that was cut is noticed.
- A fork is written whole, with the messages that it shares. Contexts may follow one another in one file.

This module knows nothing of storage, beyond the names of its fields.
"""

import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final, Literal, TypeAlias

FORMAT: Final = 1
"""the version of the format that is written; earlier ones are read too"""

Styled: TypeAlias = Literal["settings", "state", "text"]

_COMPACT: Final = (",", ":")
_STYLES: Mapping[Styled, Mapping[str, Any]] = {
    "settings": {"sort_keys": True},
    "state": {"separators": _COMPACT},
    "text": {"separators": _COMPACT, "ensure_ascii": False},
}
"""how the texts are written that hold JSON"""


def line_of(fields: Mapping[str, Any]) -> str:
    """Return *fields* as a line, without its newline; half of a surrogate pair as an escape."""
    line = json.dumps(fields, separators=_COMPACT, ensure_ascii=False)
    try:
        line.encode()
    except UnicodeEncodeError:
        return json.dumps(fields, separators=_COMPACT)
    return line


def fields_of(line: str) -> Any:
    """Return the value of *line*.

    Raises:
        ValueError: If it is not JSON.
    """
    try:
        return json.loads(line, parse_constant=_refused)
    except RecursionError:
        raise ValueError("its values are nested too deeply") from None


def told(style: Styled, text: str) -> object:
    """Return what the JSON *text* says, or *text* itself, if `written` would not give it back."""
    try:
        value = fields_of(text)
        same = isinstance(value, dict | list) and json.dumps(value, **_STYLES[style]) == text
    except ValueError:
        return text
    return value if same else text


def written(style: Styled, value: object) -> str:
    """Return the text that `told` made *value* from."""
    return value if isinstance(value, str) else json.dumps(value, **_STYLES[style])


def is_native(line: str) -> bool:
    """Tell whether *line* is the first one of an export, of whatever version."""
    try:
        fields = fields_of(line)
    except ValueError:
        return False
    return isinstance(fields, dict) and "memci" in fields


class Checksum:
    """The digest over the lines so far."""

    def __init__(self) -> None:
        self._whole = blake2b(digest_size=16)

    def add(self, line: str) -> None:
        """Take *line* in, and its newline."""
        self._whole.update(line.encode())
        self._whole.update(b"\n")

    def hex(self) -> str:
        """Return it, in hex."""
        return self._whole.hexdigest()


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
