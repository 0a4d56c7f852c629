"""Plain chats: reads the conversations of other programs from JSON or JSON lines, and makes contexts of them.

    […]    {"messages": […]}    or a message per line                chats
    {"traj": […]}                                                    trajectories of agents

A file may hold several of these, as a list or one per line: they are joined end to end. If the first message is a
system message, it is the system prompt. Later system messages with the same text are skipped.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ..errors import InvalidMessage, InvalidSetting
from ..messages import Message, check, text_of
from ..storage import EphemeralStorage, Storage
from .export import export_lines
from .export_format import fields_of, strip_line

_LISTS = ("messages", "traj")
_SYSTEM = ("system", "developer")

Placed = tuple[str, Any]  # The place of a JSON value in its file, and the value.


@dataclass(frozen=True, slots=True)
class PlainChat:
    """A conversation that a provider would accept, but that results of tools may lack their call."""

    name: str  # the name of its file, for errors
    messages: tuple[Message, ...]  # all but system messages
    places: tuple[str, ...]  # the place of each message in the file
    system: str | None = None
    tools: tuple[Message, ...] = ()
    left_out: tuple[str, ...] = ()
    """the places of later system messages that differ from the system prompt: a context has only one"""

    def openings(self) -> list[int]:
        """Return the position of each message that opens a page. O(messages)."""
        return [at for at, message in enumerate(self.messages) if at == 0 or message["role"] == "user"]

    def pages(self) -> list[Sequence[Message]]:
        """Return the messages by turn. O(messages)."""
        return [self.messages[start:end] for start, end in pairwise([*self.openings(), len(self.messages)])]

    def append(self, append_turn: Callable[[Message], object], position: int) -> None:
        """Append the message at *position* by *append_turn*. An InvalidMessage names its place in the file."""
        try:
            append_turn(self.messages[position])
        except InvalidMessage as error:
            raise InvalidMessage(": ".join(filter(None, [self.name, self.places[position]])), error.reason) from None


def read_chat(lines: Iterable[str], name: str = "file") -> PlainChat:
    """Return the conversations in *lines*, joined. O(characters).

    InvalidSetting if they are not JSON or hold no conversation, InvalidMessage for a wrong message: with its place.
    """
    values = _values("\n".join(strip_line(number, line) for number, line in enumerate(lines, 1)), name)
    if len(values) == 1 and not values[0][0] and isinstance(values[0][1], list):
        values = [(f"[{position}]", value) for position, value in enumerate(values[0][1])]
    try:
        placed = [_check(*each) for where, value in values for each in _messages(where, value)]
    except InvalidMessage as error:
        raise InvalidMessage(f"{name}: {error.path}", error.reason) from None
    system = text_of(placed[0][1]) if placed and placed[0][1]["role"] in _SYSTEM else None
    kept = [each for each in placed if each[1]["role"] not in _SYSTEM]
    if not kept:
        raise InvalidSetting(name, "holds no messages: expected at least one of a user, an assistant or a tool")
    left_out = [where for where, message in placed if message["role"] in _SYSTEM and text_of(message) != system]
    tools = next((tools for _, value in values if (tools := _tools(value))), ())
    places, messages = zip(*kept, strict=True)
    return PlainChat(name, messages, places, system, tools, tuple(left_out))


def export_chat(
    chat: PlainChat,
    id: str,  # noqa: A002
    open_context: Callable[[Storage, PlainChat], Callable[[Message], object]],
) -> Iterator[str]:
    """Return the lines of an export of the context *id* that *chat* makes. O(messages), all in memory.

    *open_context* opens that context for the chat in the given store, and returns its `append_turn`. InvalidSetting for
    a second system prompt.
    """
    if chat.left_out:
        reason = f"{chat.left_out[0]} is a system prompt: a context has one, which comes first; take it out"
        raise InvalidSetting(chat.name, reason)
    scratch = EphemeralStorage()
    append_turn = open_context(scratch, chat)
    for position in range(len(chat.messages)):
        chat.append(append_turn, position)
    return export_lines(scratch, id)


def _values(text: str, name: str) -> list[Placed]:
    """Return the value of the JSON *text*, or each value of JSON lines, with their places."""
    if not text.strip():
        raise InvalidSetting(name, "is empty: expected a conversation in JSON or JSON lines")
    try:
        return [("", fields_of(text))]
    except ValueError as error:
        if not str(error).startswith("Extra data"):
            raise _not_json(name, error, 0) from None
    values = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                values.append((f"line {number:,}", fields_of(line)))
            except ValueError as error:
                raise _not_json(name, error, number) from None
    return values


def _not_json(name: str, error: ValueError, line: int) -> InvalidSetting:
    """Return an error that says why the file, or this *line* of it, is not JSON."""
    place, reason = f"line {line:,}: " if line else "", str(error)
    if isinstance(error, json.JSONDecodeError):
        place, reason = f"line {line or error.lineno:,}, column {error.colno:,}: ", error.msg
    return InvalidSetting(name, f"{place}not valid JSON: {reason}; expected a chat, or an export of memci")


def _messages(where: str, value: Any) -> Iterator[Placed]:
    """Yield the messages of *value*, which is a message or a conversation."""
    if _is_message(value):
        yield where, value
        return
    if not isinstance(value, dict):
        raise InvalidMessage(where or "file", f"expected a message (an object with a role), got {type(value).__name__}")
    key = next((key for key in _LISTS if isinstance(value.get(key), list)), None)
    if key is None:
        keys = ", ".join(repr(each)[:40] for each in list(value)[:6]) or "none"
        expected = "expected messages, traj, or an export of memci"
        raise InvalidMessage(where or "file", f"no conversation: its keys are {keys}; {expected}")
    place = f"{where}, {key}" if where.startswith("line ") else f"{where}.{key}" if where else key
    yield from ((f"{place}[{position}]", each) for position, each in enumerate(value[key]))


def _check(where: str, message: Any) -> tuple[str, Message]:
    if not _is_message(message):
        raise InvalidMessage(where, f"expected a message (an object with a role), got {type(message).__name__}")
    check({**message, "role": "user"} if message["role"] in _SYSTEM else message, where or "file")
    return where, message


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and "role" in value


def _tools(value: Any) -> tuple[Message, ...]:
    """Return the schemas of the tools of the conversation *value*; () if it has none."""
    found = value.get("tools") if isinstance(value, dict) else None
    if not isinstance(found, list) or not all(isinstance(each, dict) and "function" in each for each in found):
        return ()
    return tuple(found)
