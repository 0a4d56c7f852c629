"""A model's reply in ATTP: its thought, and a call of tools or the final answer.

    thought = "page 42 has the price"    status   None        the text is the final answer
    [tool_call]                                   "success"   run `code`
    status = "success"                            "fail"      the model gave up: `message` says why
    target = "the price"                          "invalid"   it meant to call: `message` says what can't be read
    code = '''
    __result__ = recall_page(42)
    '''

Models write TOML badly: prose may stand before the table, a fence around it, and anything behind the fence. A header is
a line with `[tool_call]` and nothing else. The first header that is followed by valid TOML counts, since a header
inside its strings is only text. If there is none, the last header is parsed leniently.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from ...errors import InvalidMessage

HEADER: Final = "[tool_call]"

_FIELDS: Final = frozenset({"status", "target", "code", "message"})
_FENCE: Final = re.compile(r"(?:`{3,}|~{3,})\s*\w*")
_QUOTES: Final = ('"""', "'''", '"', "'")
_TRIES: Final = 5  # headers, and ends of fences: a reply with more of them is no honest attempt
_DOCUMENT_LIMIT: Final = 65_536  # characters: four times the longest code
# tomllib takes time quadratic in the dots of one key: 50,000 dots take 70 seconds.
_DOTTED: Final = re.compile(r"^(?:[^.\n]*\.){100}", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """A model's reply, parsed. `thought` is the final answer if `status` is None."""

    thought: str = ""
    status: Literal["success", "fail", "invalid"] | None = None
    target: str = ""
    code: str = ""
    message: str = ""

    @property
    def final(self) -> bool:
        """Whether the model answered or gave up, instead of calling a tool."""
        return self.status is None or self.status == "fail"

    @property
    def answer(self) -> str:
        """The text for the user; empty if the reply is a call."""
        if self.status is None:
            return self.thought
        return self.message if self.status == "fail" else ""


def parse(text: str) -> ParsedReply:
    """Parse a model's reply; one that can't be read is `invalid`. O(length).

    Raises:
        InvalidMessage: If *text* is not a str.
    """
    if not isinstance(text, str):
        raise InvalidMessage("reply", f"expected the model's text (a str), got {type(text).__name__}")
    text = text.removeprefix("\ufeff")
    lines = text.replace("\r\n", "\n").split("\n")
    headers = [number for number, line in enumerate(lines) if line.strip() == HEADER]
    try:
        return _parse_call(lines, headers) if headers else _parse_headless(text, lines)
    except InvalidMessage as error:
        return ParsedReply(_thought(lines[: headers[-1]]) if headers else "", "invalid", message=str(error))


def _parse_call(lines: Sequence[str], headers: Sequence[int]) -> ParsedReply:
    ends = [len(lines), *(number for number in range(headers[-1], len(lines)) if _is_fence(lines[number]))]
    for header in headers[-_TRIES:]:
        for end in ends[:_TRIES]:
            document = _document(lines[header:end])
            if document is not None:
                return _reply(_thought(lines[:header]), document["tool_call"])
    return _reply(_thought(lines[: headers[-1]]), _fields(lines[headers[-1] + 1 :]))


def _parse_headless(text: str, lines: Sequence[str]) -> ParsedReply:
    match _document([line for line in lines if not _is_fence(line)]):
        case {"tool_call": table, **others}:
            thought = others.get("thought")
            return _reply(thought if isinstance(thought, str) else "", table)
        case {"thought": str(thought), **others} if not others:
            return ParsedReply(thought)
        case _:
            return ParsedReply(text)


def _reply(thought: str, table: object) -> ParsedReply:
    if not isinstance(table, dict):
        raise InvalidMessage("tool_call", "it must be one table")
    fields = {key: value for key, value in table.items() if isinstance(value, str)}
    target, code, message = (fields.get(key, "") for key in ("target", "code", "message"))
    implied = "success" if "code" in table else "fail"
    match fields.get("status", implied).strip().lower():
        case "success" if code.strip():
            return ParsedReply(thought, "success", target=target, code=code)
        case "success":
            raise InvalidMessage("tool_call", "`code` must be a string that holds the calls")
        case "fail" if message.strip():
            return ParsedReply(thought, "fail", target=target, message=message)
        case "fail":
            raise InvalidMessage("tool_call", '`code` is missing; or, with status "fail", the `message` that says why')
        case status:
            raise InvalidMessage("tool_call", f'`status` must be "success" or "fail", not {status!r:.40}')


def _document(lines: Sequence[str]) -> dict[str, object] | None:
    text = "\n".join(lines)
    if len(text) > _DOCUMENT_LIMIT or _DOTTED.search(text):
        return None
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):  # not TOML, an integer of too many digits, brackets nested too deep
        return None


def _thought(lines: Sequence[str]) -> str:
    fences = [number for number, line in enumerate(lines) if _is_fence(line)]
    opened = fences[-1] if len(fences) % 2 else None
    kept = [line for number, line in enumerate(lines) if number != opened]
    match _document(kept):
        case {"thought": str(thought)}:
            return thought
        case _:
            text = "\n".join(kept).strip()
    key, _, value = text.partition("=")
    return _unquote(value.strip()).strip() if key.strip() == "thought" else text


def _fields(lines: Sequence[str]) -> Mapping[str, str]:
    fields: dict[str, str] = {}
    number = 0
    while number < len(lines) and not _is_fence(lines[number]):
        key, equals, value = (part.strip() for part in lines[number].partition("="))
        number += 1
        if not equals or key not in _FIELDS:
            continue
        quote = value[:3]
        if quote not in _QUOTES or (len(value) >= len(quote) * 2 and value.endswith(quote)):
            scalar = (_document([f"value = {value}"]) or {}).get("value")
            fields[key] = scalar if isinstance(scalar, str) else _unquote(value)
        else:
            end = _closing_line(key, quote, lines[number:]) + number
            last = lines[end].rstrip().removesuffix(quote)
            fields[key] = "\n".join([value.removeprefix(quote), *lines[number:end], last]).removeprefix("\n")
            number = end + 1
    return fields


def _closing_line(key: str, quote: str, lines: Sequence[str]) -> int:
    ending = [number for number, line in enumerate(lines) if line.rstrip().endswith(quote)]
    if not ending:
        raise InvalidMessage(key, f"the string is never closed by {quote}")
    # Code may hold strings in the same quotes, so its own end is the last one.
    return ending[-1] if key == "code" else ending[0]


def _unquote(value: str) -> str:
    for quote in _QUOTES:
        if len(value) >= len(quote) * 2 and value.startswith(quote) and value.endswith(quote):
            return value[len(quote) : -len(quote)]
    return value


def _is_fence(line: str) -> bool:
    return _FENCE.fullmatch(line.strip()) is not None
