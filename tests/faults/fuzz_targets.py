"""What is fuzzed without a context: a function for each, from chance to the promise that was broken, or None.

    codec(Random(7))                     None
    codec(Random(7), encode=lossy)       "content: '\\u200b' came back as '?'"

What is tried can be passed in, so that a test can show that a broken one is noticed. This module knows nothing of
files, processes or how often anything is tried.
"""

import json
import re
from collections import OrderedDict
from collections.abc import Callable
from enum import IntEnum, StrEnum
from math import isfinite
from random import Random
from typing import Any

from memci.chapters.chapter import Entry
from memci.chapters.contents import Block, ListedPage, ListedRange, runs
from memci.errors import InvalidMessage, LimitExceeded, SchemaTooNew
from memci.storage import codec as stored
from memci.text.sanitize import quote, width
from memci.text.summarize import LINE_COLUMNS, TITLE_COLUMNS, extract, one_line, titled

from .fuzz_texts import NONCE, UNQUOTED, markers, text, units

_GONE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff<>\U000e0000-\U000e0fff]|(?<![^\x00-\u20ff])\u200d|\u200d(?![^\x00-\u20ff])"
)
"""what no line may hold; a zero-width joiner only between two symbols, which are above U+20FF"""
_NUMBERED = re.compile(r"#[#\s\ufe0f]*\d")


class Role(StrEnum):
    """A string that is more than one."""

    USER = "user"


class Number(IntEnum):
    """An integer that is more than one."""

    SEVEN = 7


class Text(str):
    """A string of another class."""

    __slots__ = ()


_PLAIN = (0, 1, True, False, 1.0, 0.0, -0.0, None, 2**53 + 1, 2**63, -(2**63) - 1, 2**64, 1e308, 5e-324, 0.1)
_HALVES = re.compile("[\ud800-\udfff]")

# -- codec


def codec(rng: Random, encode: Any = stored.encode, decode: Any = stored.decode) -> str | None:
    """A message comes back as it is, with types and the order of keys, or is refused for a reason."""
    message: Any = {"role": rng.choice(("user", Role.USER)), "content": text(rng, halves=0.02)}
    message |= {_key(rng): _value(rng, 0) for _ in range(rng.randrange(4))}
    if rng.random() < 0.006:
        for _ in range(rng.randrange(240, 300)):
            message = {"a": message} if rng.random() < 0.5 else [message]
        message = {"role": "user", "content": message}
    try:
        kind, body, copy = encode(message)
    except (InvalidMessage, LimitExceeded) as refusal:
        return None if _inexact(message) else f"refused without need ({refusal}): {message!r:.300}"
    for back in (copy, decode(kind, body)):
        if not _same(message, back):
            return f"{message!r:.300} came back as {back!r:.300}"
    broken = bytearray(body)
    broken[rng.randrange(len(broken))] = rng.randrange(256)
    try:
        decode(kind, bytes(broken))
    except (InvalidMessage, SchemaTooNew):
        return None
    return None


def _key(rng: Random) -> Any:
    chance = rng.random()
    return text(rng, 3) if chance < 0.9 else rng.choice((7, None, True, 1.5, b"k", ("k",), Text("k"), Role.USER))


def _value(rng: Random, depth: int) -> Any:
    chance = rng.random()
    if chance < 0.25 and depth < 4:
        return [_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    if chance < 0.45 and depth < 4:
        made: dict[Any, Any] = OrderedDict() if rng.random() < 0.1 else {}
        made.update((_key(rng), _value(rng, depth + 1)) for _ in range(rng.randrange(4)))
        return made
    if chance < 0.65:
        return text(rng)
    if chance < 0.9:
        return rng.choice((*_PLAIN, 10 ** rng.randrange(700)))
    return rng.choice((
        float("nan"), float("inf"), -float("inf"), ("a",), b"a", bytearray(b"a"), {"a"}, Number.SEVEN, Text("ü"),
        Role.USER, 1j, object, range(2), -(10**640), 10**640 - 1, (), frozenset(),
    ))  # fmt: skip


def _same(given: Any, back: Any) -> bool:
    """Tell whether *back* is *given*, as a plain value."""
    if isinstance(given, dict):
        if type(back) is not dict or len(given) != len(back):
            return False
        return all(_same(a, b) and _same(given[a], back[b]) for a, b in zip(given, back, strict=True))
    if isinstance(given, list):
        return type(back) is list and len(given) == len(back) and all(map(_same, given, back))
    if type(back) not in (str, int, float, bool, type(None)) or not isinstance(given, type(back)):
        return False
    if isinstance(given, bool) != isinstance(back, bool):
        return False
    return repr(given) == repr(back) if isinstance(back, float) else bool(given == back)


def _inexact(value: Any, depth: int = 0) -> bool:
    """Tell whether there is a reason to refuse *value*: it has no exact form in JSON."""
    if isinstance(value, dict):
        keys = any(not isinstance(key, str) or _inexact(key) for key in value)
        return depth >= stored.MAX_DEPTH or keys or any(_inexact(each, depth + 1) for each in value.values())
    if isinstance(value, list):
        return depth >= stored.MAX_DEPTH or any(_inexact(each, depth + 1) for each in value)
    if isinstance(value, int):
        return not -(10**stored.MAX_DIGITS) < value < 10**stored.MAX_DIGITS
    if isinstance(value, float):
        return not isfinite(value)
    return bool(_HALVES.search(value)) if isinstance(value, str) else value is not None


# -- lines of the Contents Page


def lines(rng: Random, summarize: Any = extract, line: Any = one_line) -> str | None:
    """Each line and title is one line, harmless, of its width, not empty, and the same when made again."""
    columns = rng.choice((1, 2, 7, 20, TITLE_COLUMNS, LINE_COLUMNS))
    raw = text(rng, 30, 0.1)
    found = _unfit(line(raw, columns), columns, line)
    if found is not None:
        return f"one_line({raw!r:.400}, {columns}): {found}"
    if rng.random() < 0.6:
        return None
    messages = [_said(rng) for _ in range(rng.randrange(5))]
    made = summarize(messages)
    if len(made.lines) != len(messages):
        return f"{len(made.lines)} lines for {messages!r:.600}"
    told = [
        (made.title, TITLE_COLUMNS),
        *((each.text, TITLE_COLUMNS) for each in titled([messages])),
        *((each, LINE_COLUMNS) for each in made.lines),
    ]
    for each, most in told:
        found = _unfit(each, most, line)
        if found is not None:
            return f"{found} from {messages!r:.600}"
    return None


def _unfit(made: str, columns: int, line: Callable[[str, int], str]) -> str | None:
    if not made or made.isspace():
        return "an empty line"
    if gone := _GONE.search(made):
        return f"{gone[0]!r} is in the line {made!r:.300}"
    if len(made.splitlines()) != 1 or made != made.strip():
        return f"more than a line: {made!r:.300}"
    if _NUMBERED.match(made):
        return f"a line that poses as another: {made!r:.300}"
    if width(made) > columns:
        return f"wider than {columns}: {made!r:.300}"
    again = line(made, columns)
    return None if again == made else f"{made!r:.300} becomes {again!r:.300} when it is made again"


def _said(rng: Random) -> dict[str, Any]:
    role = rng.choice(("user", "assistant", "tool"))
    message: dict[str, Any] = {"role": role, "content": text(rng, 25)}
    if rng.random() < 0.15:
        of_models = (None, [{"type": text(rng, 3)}]) if role == "assistant" else ()
        message["content"] = rng.choice((*of_models, [], [{"type": "text", "text": text(rng)}]))
    if role == "assistant" and rng.random() < 0.5:
        asked = json.dumps({text(rng, 3): text(rng)}) if rng.random() < 0.5 else text(rng)
        message["tool_calls"] = [{"id": text(rng, 3), "function": {"name": text(rng, 4), "arguments": asked}}]
    if role == "tool":
        message["tool_call_id"] = text(rng, 3)
        if rng.random() < 0.4:
            message["content"] = json.dumps([{text(rng, 3): text(rng), "id": rng.randrange(9)}] * rng.randrange(3))
    if rng.random() < 0.05:
        message["name"] = text(rng, 5)
    return message


# -- frames


def frames(rng: Random, line: Any = one_line, quote: Any = quote) -> str | None:
    """A block of contents holds the lines that were put in, between one opening and one closing marker."""
    raw = text(rng, 20, 0.1)
    told = quote(raw)
    if UNQUOTED.search(told) or len(told.splitlines()) != 1 or units(raw) != units(json.loads(told)):
        return f"quote({raw!r:.400}) is {told!r:.400}"
    expected, made, ranges = [], [], []
    index = 0
    for _ in range(rng.randrange(3)):
        pages = tuple(range(index + 1, index := index + rng.randrange(1, 4) + 1))
        titles = tuple((page, line(text(rng), 30)) for page in pages if rng.random() < 0.5)
        ranges.append(ListedRange(pages, titles))
        expected.append(runs(pages) + (": " + " · ".join(title for _, title in titles) if titles else ""))
    for _ in range(rng.randrange(not ranges, 4)):
        index += rng.randrange(1, 3)
        title = line(text(rng), TITLE_COLUMNS)
        entries = [
            Entry(index, at, rng.choice(("user", "assistant", "tool")), line(text(rng), LINE_COLUMNS))
            for at in range(1, rng.randrange(1, 4))
        ]
        made.append(ListedPage.of(index, title, entries, len))
        expected += [f"#{index} {title}", *(f"  {each.ordinal} {each.role}: {each.summary}" for each in entries)]
    shown = Block.of(made, ranges, NONCE, lambda message: len(str(message))).message["content"]
    opening, *body, closing = shown.splitlines()
    if body != expected or markers(shown) != [opening, closing]:
        return f"{expected!r:.400} is shown as {shown!r:.600}"
    return None
