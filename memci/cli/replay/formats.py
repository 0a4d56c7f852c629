"""Formats: the shapes of recorded conversations, each converted to the messages of a chat.

    {"messages": […]}, […]                       chat completions
    {"traj": […]}                                trajectories of tool-using agents
    {"history": [{…, "thought", "action"}]}      traces of coding agents: observations may be in the user's role
    {"conversation": {"speaker_a", "session_1"}} dialogues of two people over many sessions
    {"question": [[…], […]]}                     what a user says, turn by turn, without the answers
    {"haystack_sessions": [[…], […]]}            sessions of a chat, in order
    {"from": "human", "value": "…"}              messages with other names for their keys

This module knows nothing of files, or of what the messages are used for.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...errors import InvalidMessage
from ...messages import Message, check, tool_calls

READABLE = "messages, traj, history, conversation, question or haystack_sessions"

_LISTS = ("messages", "traj", "haystack_sessions", "question", "conversation", "conversations")
_ROLES = {"human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant", "system": "system"}
_SESSION = re.compile(r"session_(\d+)")

Placed = tuple[str, Any]
"""Where a JSON value stands in its file, and the value."""


@dataclass(frozen=True, slots=True)
class Step:
    """One message, and where in the file it stands."""

    message: Message
    where: str = ""
    opens_page: bool = True
    """False for an observation in the user's role, which belongs to the turn before it"""


def conversations(values: Any) -> Iterator[list[Placed]]:
    """Yield the conversations in *values*: each as a list of values and their places.

    Args:
        values: A JSON value; a dict with numbers as keys stands for the lines of a file.
    """
    if isinstance(values, dict) and values and all(isinstance(key, int) for key in values):
        items = [(f"line {number}", value) for number, value in values.items()]
    elif isinstance(values, list):
        items = [(f"[{position}]", value) for position, value in enumerate(values)]
    else:
        yield [("", values)]
        return
    if any(_is_message(value) for _, value in items):
        yield items
    else:
        yield from ([item] for item in items)


def steps(value: Any, where: str) -> Iterator[Step]:
    """Yield the messages of the conversation *value*, as a provider would accept them.

    Raises:
        InvalidMessage: With the place of the first thing that is no message.
    """
    if isinstance(value, list):
        for position, each in enumerate(value):
            yield from steps(each, f"{where}[{position}]")
        return
    if not isinstance(value, dict):
        kind = "nothing" if value is None else type(value).__name__
        raise InvalidMessage(where or "the file", f"expected a message (an object with role and content), got {kind}")
    if _is_message(value):
        yield _checked(_chat(value), where)
    elif isinstance(value.get("history"), list):
        yield from _trace(value["history"], _under(where, "history"))
    elif "speaker_a" in value:
        yield from _dialogue(value, where)
    elif isinstance(value.get("conversation"), dict):
        yield from steps(value["conversation"], _under(where, "conversation"))
    else:
        key = next((key for key in _LISTS if isinstance(value.get(key), list)), None)
        if key is None:
            keys = ", ".join(repr(each)[:40] for each in list(value)[:6]) or "none"
            raise InvalidMessage(where or "the file", f"no conversation: its keys are {keys}; expected {READABLE}")
        yield from steps(value[key], _under(where, key))


def tools_of(value: Any) -> tuple[Message, ...]:
    """Return the schemas of the tools that the conversation *value* names, () if it names none."""
    found = value.get("tools") if isinstance(value, dict) else None
    if not isinstance(found, list) or not all(isinstance(each, dict) and "function" in each for each in found):
        return ()
    return tuple(found)


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and ("role" in value or ("from" in value and "value" in value))


def _chat(message: Message) -> Message:
    if "role" in message:
        return message
    said_by = message["from"]
    return {"role": _ROLES.get(said_by, said_by) if isinstance(said_by, str) else said_by, "content": message["value"]}


def _under(where: str, key: str) -> str:
    if where.startswith("line "):
        return f"{where}, {key}"
    return f"{where}.{key}" if where else key


def _checked(message: Message, where: str, *, opens_page: bool = True) -> Step:
    if message["role"] in ("system", "developer"):
        check({**message, "role": "user"}, where)
    else:
        check(message, where)
    return Step(message, where, opens_page)


def _trace(history: list[Any], where: str) -> Iterator[Step]:
    """Yield a coding agent's trace; after the task, a message in the user's role is an observation."""
    tasks = 0
    for position, value in enumerate(history):
        place = f"{where}[{position}]"
        if not isinstance(value, dict):
            raise InvalidMessage(place, f"expected a message (an object with role), got {type(value).__name__}")
        message = {key: value[key] for key in ("role", "content", "tool_calls", "name") if value.get(key) is not None}
        role = message.setdefault("role", None)
        if role == "tool":
            yield from _results(message, value, place)
            continue
        if role == "assistant" and not message.get("content") and not tool_calls(message):
            parts = [value[key] for key in ("thought", "action") if isinstance(value.get(key), str) and value[key]]
            message["content"] = "\n\n".join(parts)
        tasks += role == "user"
        yield _checked(message, place, opens_page=role != "user" or tasks == 1)


def _results(message: Message, value: Message, where: str) -> Iterator[Step]:
    """Yield a result once for each call that it answers."""
    named = value.get("tool_call_ids")
    ids = named if isinstance(named, list) and named else [value.get("tool_call_id")]
    for position, call_id in enumerate(ids):
        content = message.get("content") if position == 0 else f"(answered together with {ids[0]})"
        yield _checked({**message, "tool_call_id": call_id, "content": content}, where)


def _dialogue(value: Message, where: str) -> Iterator[Step]:
    """Yield a dialogue of two people: the first is the user, the other one the assistant."""
    roles = {str(value["speaker_a"]): "user", str(value.get("speaker_b")): "assistant"}
    numbers = sorted(int(found[1]) for key in value if (found := _SESSION.fullmatch(key)))
    for number in numbers:
        session, date = value[f"session_{number}"], value.get(f"session_{number}_date_time")
        if not isinstance(session, list):
            raise InvalidMessage(_under(where, f"session_{number}"), "expected a list of what was said")
        for position, said in enumerate(session):
            place = f"{_under(where, f'session_{number}')}[{position}]"
            speaker = str(said.get("speaker")) if isinstance(said, dict) else ""
            if speaker not in roles or not isinstance(said.get("text"), str):
                names = " or ".join(repr(name) for name in roles)
                raise InvalidMessage(place, f"expected a text of the speaker {names}, got {said!r:.60}")
            text = said["text"]
            if isinstance(said.get("blip_caption"), str):
                text += f" [shares {said['blip_caption']}]"
            if position == 0 and date:
                text = f"[{date}] {text}"
            yield _checked({"role": roles[speaker], "content": text}, place)
