"""Chat messages: their form, and the checks of what a provider accepts.

A message is a JSON object in the form of OpenAI's Chat Completions. Unknown keys are kept:

    {"role": "user", "content": "Book me a flight to Oslo."}
    {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": {…}}]}
    {"role": "tool", "tool_call_id": "c1", "content": "[…]"}

A message in the form of another provider is `Enveloped`: it has this form, and keeps the items that it was made from.
`plain` turns the value of a caller (text, a dict, an object of an SDK) into a message; `check` names what is wrong.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from operator import is_
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from .errors import InvalidMessage, LimitExceeded, brief

Message = dict[str, Any]  # One chat message: a JSON object.
Item = dict[str, Any]  # one native item of a provider's API, as a message or a content block: a JSON object


class Native(NamedTuple):
    """The exact items of a provider that one message was made from."""

    format: str  # the name of the provider's form (`memci.formats`)
    items: list[Item]
    joins: bool = False  # whether the first item continues the last item of the message before
    hidden: int = 0
    """characters of what only the provider can read: signatures, encrypted reasoning, opaque items without media"""
    model: str = ""  # the model that can read the encrypted items among them, if there are any
    media: Sequence[list[Any]] = ()  # the sizes of those in opaque items (`memci.text.media`)


class Enveloped(Message):
    """A message that was received in another form, *native*. A changed copy of it is an ordinary message."""

    __slots__ = ("native",)

    def __init__(self, message: Message, native: Native) -> None:
        super().__init__(message)
        self.native = native


class SDKMessage(Protocol):
    """A message object of an SDK: a pydantic model, as in the openai client."""

    def model_dump(self) -> dict[str, Any]:
        """Return the message as a dict."""


MessageLike: TypeAlias = str | Mapping[str, Any] | SDKMessage
"""a message as callers pass it: the user's text, a dict, or an object of an SDK"""

Format = Literal["openai_chat", "openai_responses", "anthropic", "gemini"]
"""the name of a provider's message format (`memci.formats`)"""
_ROLES = frozenset({"user", "assistant", "tool", "system", "developer"})
MAX_CALLS = 4_096  # most tool calls of one message: far more than models make, and a bound on its cost
_LISTS = ("content", "parts", "tool_calls", "output")
"""keys whose lists hold blocks or calls, in one of the formats"""
_NAMES = ("name", "tool_call_id", "refusal")
"""keys whose value must be a text for every role, since lines, the memory and the other formats use them"""
PARTS = frozenset({"text", "image_url", "input_audio", "file", "refusal", "audio_url", "video_url", "document_url"})
"""types of parts of the user and of tools; the last three are those of servers that extend the form"""
NAMES = re.compile(r"[a-zA-Z0-9_-]{1,64}")  # names of tools that every provider takes; a model may make up others
FAILED = "is_error"  # the key of a tool's message that its own format says is one of a failure
MAX_ID = 64  # characters of a call's id that OpenAI takes
_FUNCTION = "the role 'function' is out of use: send the call as tool_calls and its result with role 'tool'"


def plain(value: object, path: str = "message") -> Message:
    """Return *value* as a message: text is the user's, an object of an SDK becomes a dict of its set fields.

    So do such objects among the blocks of a dict. InvalidMessage if *value* is of another type.
    """
    if type(value) is dict:
        return _with_plain_blocks(value, path)
    if isinstance(value, Enveloped):
        return value
    if isinstance(value, str):
        return {"role": "user", "content": value}
    if isinstance(value, (Mapping, SimpleNamespace)):  # the latter stands for an SDK's object in tests
        try:
            fields = dict(value if isinstance(value, Mapping) else vars(value))
        except Exception as error:
            raise InvalidMessage(path, f"reading it raises a {type(error).__name__}") from error
        return _with_plain_blocks(fields, path)
    if (dumped := _dumped(value, path)) is not None:
        return dumped
    many = ": pass the reply itself, or each message of it" if isinstance(value, list) else ""
    raise InvalidMessage(path, f"expected a dict, a str or an SDK's message object, got {type(value).__name__}{many}")


def _with_plain_blocks(item: Item, path: str, levels: int = 2) -> Item:
    """Return *item* with the objects of an SDK in its lists as dicts: programs put the blocks of a reply there.

    A result within a message has a list of its own, so there are two *levels*. O(blocks).
    """
    made: Item = {}
    for key, blocks in item.items():
        if type(blocks) is list and key in _LISTS:
            found = [_plain_block(each, f"{path}.{key}[{at}]", levels - 1) for at, each in enumerate(blocks)]
            if not all(map(is_, found, blocks)):
                made[key] = found
    return {**item, **made} if made else item


def _plain_block(value: object, path: str, levels: int) -> object:
    if type(value) is dict:
        return _with_plain_blocks(value, path, levels) if levels else value
    return _dumped(value, path) or value


def _dumped(value: object, path: str) -> Item | None:
    """Return the set fields of *value*, an object of an SDK; None if it is none."""
    dump = getattr(value, "model_dump", None)
    if not callable(dump) or isinstance(value, type):
        return None
    # the objects of google-genai hold bytes, and fields that the caller set to None
    how = {"mode": "json", "exclude_none": True} if type(value).__module__.startswith("google.") else {}
    try:
        fields = dump(exclude_unset=True, by_alias=True, **how)
    except Exception as error:
        raise InvalidMessage(path, f"its model_dump() raises a {type(error).__name__}") from error
    return fields if isinstance(fields, dict) else None


def check(message: Message, path: str = "message") -> None:
    """Check that a provider accepts *message*.

    Raises:
        InvalidMessage: If it does not; the error names the path of the first mistake.
        LimitExceeded: If it has more than `MAX_CALLS` tool calls.
    """
    role = message.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        _refuse_role(message, path)
    if role == "assistant":
        _check_assistant(message, path)
    else:
        if "tool_calls" in message:
            raise InvalidMessage(f"{path}.tool_calls", f"only an assistant calls tools, this role is {role!r}")
        if role == "tool":
            call_id = message.get("tool_call_id")
            if not isinstance(call_id, str):
                raise InvalidMessage(f"{path}.tool_call_id", "a tool's result names the call that it answers (a str)")
        content = message.get("content")
        if not isinstance(content, str):
            _check_content(message, content, path)
    for key in _NAMES:
        if key in message and not isinstance(message[key], str | None):
            raise InvalidMessage(f"{path}.{key}", f"expected a str, got {type(message[key]).__name__}")


def is_plain_chat(message: Message) -> bool:
    """Return whether the keys of *message* allow only the form of Chat Completions. O(1).

    `memci.formats` recognises the others.
    """
    return (
        type(message.get("content")) is not list
        and type(role := message.get("role")) is str
        and role != "model"
        and "type" not in message
        and "parts" not in message
        and "choices" not in message
    )


def parts_of(content: object) -> list[Message]:
    """Return the parts of the *content* of a message: one for a str, none for an empty one."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content) if isinstance(content, Iterable) else []


def tool_calls(message: Message) -> list[Message]:
    """Return the tool calls of a checked *message*; [] if it has none."""
    return message.get("tool_calls") or []


def calls_of(reply: Message, path: str = "reply") -> list[Message]:
    """Return the tool calls of an unchecked *reply*, each as a dict; InvalidMessage if they are not valid."""
    calls = reply.get("tool_calls")
    if calls is None:
        return []
    if not isinstance(calls, list):
        raise InvalidMessage(f"{path}.tool_calls", f"expected a list, got {type(calls).__name__}")
    return [plain(call, f"{path}.tool_calls[{position}]") for position, call in enumerate(calls)]


def call_body(call: Message) -> Message:
    """Return the name and the arguments of *call*, of a function or a custom tool; {} if it has none."""
    body = call.get("function") or call.get("custom")
    return body if isinstance(body, dict) else {}


def call_name(call: Message) -> str:
    """Return the name of the tool of *call*, "" if it has none."""
    name = call_body(call).get("name")
    return name if isinstance(name, str) else ""


def arguments_of(value: object) -> dict[str, Any]:
    """Return the arguments of a call; *value* is an object, or JSON that a model wrote.

    ValueError if it is not an object, with a short reason for the model.
    """
    try:
        arguments = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        raise ValueError("the arguments are not valid JSON") from None
    if not isinstance(arguments, dict):
        raise ValueError("the arguments are not an object")  # noqa: TRY004 -- of what the model wrote
    return arguments


def text_of(message: Message) -> str:
    """Return the text of *message*: its content, or the text parts of it, joined by newlines; or a refusal."""
    content = message.get("content") or message.get("refusal")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        kinds = ((part, part.get("type")) for part in content if isinstance(part, dict))
        return "\n".join(str(part[kind]) for part, kind in kinds if kind in ("text", "refusal") and kind in part)
    spoken = message.get("audio")
    return str(spoken.get("transcript") or "") if isinstance(spoken, dict) else ""


def _refuse_role(message: Message, path: str) -> None:
    role = message.get("role")
    if role is None:
        near = ": pass its message" if "message" in message else ": expected 'user', 'assistant' or 'tool'"
        raise InvalidMessage(f"{path}.role", f"is missing{near}")
    if role == "function":
        raise InvalidMessage(f"{path}.role", _FUNCTION)
    short = isinstance(role, str | int) and len(brief(role)) <= 20
    given = brief(role) if short else f"a {type(role).__name__} that is none"
    raise InvalidMessage(f"{path}.role", f"expected 'user', 'assistant' or 'tool', got {given}")


def _check_assistant(message: Message, path: str) -> None:
    content = message.get("content")
    if content is not None and not isinstance(content, str):
        _check_content(message, content, path)
    calls = message.get("tool_calls")
    if calls is None:
        return
    if not isinstance(calls, list):
        raise InvalidMessage(f"{path}.tool_calls", f"expected a list, got {type(calls).__name__}")
    if len(calls) > MAX_CALLS:
        raise LimitExceeded(f"{path}.tool_calls", len(calls), MAX_CALLS)
    for position, call in enumerate(calls):
        _check_call(call, f"{path}.tool_calls[{position}]")


def _check_call(call: object, path: str) -> None:
    if not isinstance(call, dict):
        raise InvalidMessage(path, f"expected an object, got {type(call).__name__}")
    if not isinstance(call.get("id"), str):
        raise InvalidMessage(f"{path}.id", "every tool call has an id (a str): its result is paired by it")
    kind, text = ("custom", "input") if call.get("type") == "custom" else ("function", "arguments")
    body = call.get(kind)
    if not isinstance(body, dict):
        raise InvalidMessage(f"{path}.{kind}", f"expected an object with a name and {text}")
    if not isinstance(body.get("name"), str):
        raise InvalidMessage(f"{path}.{kind}.name", "expected the tool's name (a str)")
    if not isinstance(body.get(text), str):
        raise InvalidMessage(f"{path}.{kind}.{text}", "expected the arguments as the model wrote them (a str of JSON)")


def _check_content(message: Message, content: object, path: str) -> None:
    if "content" not in message:
        raise InvalidMessage(f"{path}.content", "is missing: expected a str or a list of parts")
    if not isinstance(content, list):
        raise InvalidMessage(f"{path}.content", f"expected a str or a list of parts, got {type(content).__name__}")
    for position, part in enumerate(content):
        where = f"{path}.content[{position}]"
        if not isinstance(part, dict):
            raise InvalidMessage(where, f"expected an object with a type, got {type(part).__name__}")
        if not isinstance(part.get("type"), str):
            raise InvalidMessage(f"{where}.type", "every part of a content has a type (a str)")
        if part["type"] == "text" and not isinstance(part.get("text"), str):
            raise InvalidMessage(f"{where}.text", "a text part has its text (a str)")
        if message["role"] != "assistant" and part["type"] not in PARTS:
            raise InvalidMessage(f"{where}.type", f"Chat Completions has no such part of the {message['role']}")
