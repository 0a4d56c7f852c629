"""The envelope: a message as memci understands it, and the provider's own items that it was made from.

    Enveloped({"role": "assistant", "content": "Hi", "tool_calls": […]})          is counted, clipped, searched, shown
      .native = Native("anthropic", [{"role": "assistant", "content": [{"type": "thinking", …}, …]}])          is sent

A message in the form of Chat Completions needs no envelope. A native item that holds several messages (the results of
parallel calls in one message of the user) is cut into one item for each; `joins` marks an item that continues the one
before, so that writing joins them again. This module has the code that the formats share.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import groupby
from typing import Any

from ..messages import (
    FAILED,
    MAX_ID,
    NAMES,
    Enveloped,
    Item,
    Message,
    Native,
    parts_of,
    text_of,
)
from ..text.media import media_in

INTERRUPTED = "no result: the call was interrupted"  # the text of the view for a missing result
NO_TEXT = "(no text)"  # the text in place of an empty one, for a provider that refuses empty texts
NO_NAME = "unnamed"  # the name of a tool that a model left out
_TEXTS = ("text", "output_text")
_ABOUT = frozenset({"type", "thought", "cache_control"})  # keys of a part that say nothing by themselves
_SAID = frozenset({"role", "content", "tool_calls", "refusal", "audio", "function_call"})
"""keys of an answer that other providers' formats can hold"""
_PLAIN = re.compile(r"[a-zA-Z0-9_-]+")


def native_of(message: Message, format: str) -> Native | None:  # noqa: A002 -- as in `Context.render`
    """Return the native items of *message*, None if it did not come in this *format*."""
    native = message.native if isinstance(message, Enveloped) else None
    return native if native is not None and native.format == format else None


def continues(message: Message) -> bool:
    """Return whether *message* of the user's goes on with the client's answers to the model: it opens no page.

    It came in one message behind results, as reminders of coding agents do, or it approves a call.
    """
    if not isinstance(message, Enveloped) or message["role"] != "user":
        return False
    return message.native.joins or message.native.items[0].get("type") == "mcp_approval_response"


def says_nothing(message: Message, format: str) -> bool:  # noqa: A002
    """Return whether *message* is an empty answer in a request of this *format*: it is stored, and not sent."""
    if message["role"] != "assistant" or message.get("tool_calls"):
        return False
    native = native_of(message, format)
    if native is not None:
        whole = [item.get("type", "message") == "message" for item in native.items]
        within = "parts" if format == "gemini" else "content"
        parts = [part for item in native.items for part in parts_of(item.get(within))]
        return all(whole) and not any(map(says_something, parts))
    own = format == "openai_chat" and not isinstance(message, Enveloped)
    return is_empty_answer(message) if own else is_silent(message)


def is_silent(message: Message) -> bool:
    """Return whether *message* is an answer in which the model said nothing that other formats can hold."""
    return is_empty_answer({key: message[key] for key in _SAID if key in message})


def is_empty_answer(message: Message) -> bool:
    """Return whether *message*, in the form of Chat Completions, is an answer in which the model said nothing."""
    silent = message["role"] == "assistant" and not any(map(says_something, parts_of(message.get("content"))))
    return silent and not any(value for key, value in message.items() if key not in {"role", "name", "content", "id"})


def says_something(part: Message) -> bool:
    """Return whether *part*, in any format, is more than an empty text."""
    return part.get("type", "text") not in _TEXTS or any(value for key, value in part.items() if key not in _ABOUT)


@dataclass(frozen=True, slots=True)
class Spoken:
    """The contents of an assistant's message, collected while its native items are read."""

    parts: list[Message] = field(default_factory=list)
    calls: list[Message] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    opaque: list[Item] = field(default_factory=list)  # items that memci does not understand
    hidden: list[object] = field(default_factory=list)  # parts of the understood items that only the provider can read

    def enveloped(self, format: str, items: list[Item]) -> Enveloped:  # noqa: A002
        """Return the message with these contents, made from *items* of *format*."""
        message: Message = {"role": "assistant", "content": content_of([*self.parts, *map(part_named, self.opaque)])}
        message["content"] = message["content"] or (None if self.calls else "")
        if self.calls:
            message["tool_calls"] = self.calls
        if any(self.reasoning):
            message["reasoning"] = "\n".join(text for text in self.reasoning if text)
        return Enveloped(message, as_native(format, items, [*self.opaque, *filter(None, self.hidden)]))


def as_native(format: str, items: list[Item], unread: Sequence[object] = (), *, joins: bool = False) -> Native:  # noqa: A002
    """Return the native *items* of *format*; of what only the provider can read (*unread*), the size and the media."""
    media, hidden = media_in(unread) if unread else ((), 0)
    return Native(format, items, joins, hidden, media=media)


def read_parts(
    pieces: Iterable[Item], part: Callable[[Item], Message | None]
) -> tuple[str | list[Message], list[Item]]:
    """Return *pieces* as the content of a message, each made by *part*, and those for which it returns None.

    A text names these.
    """
    made = [(piece, part(piece)) for piece in pieces]
    content = content_of([found or part_named(piece) for piece, found in made])
    return content, [piece for piece, found in made if found is None]


def split_results(pieces: Iterable[Item], is_result: Callable[[Item], bool]) -> Iterator[tuple[bool, list[Item]]]:
    """Yield each result among the *pieces* of a user's message alone, and each run of other pieces as one."""
    for result, run in groupby(pieces, is_result):
        own = list(run)
        yield from ((True, [piece]) for piece in own) if result else [(False, own)]


def content_of(parts: Sequence[Message]) -> str | list[Message]:
    """Return *parts* as the content of a message: one plain text as a str."""
    if len(parts) == 1 and parts[0].get("type") == "text" and len(parts[0]) == 2:
        return str(parts[0]["text"])
    return list(parts)


def said_in(message: Message) -> str | list[Message]:
    """Return what *message* says: its content, or a refusal, or the transcript of what was spoken."""
    spoken = body_of(message, "audio").get("transcript")
    return message.get("content") or message.get("refusal") or (spoken if isinstance(spoken, str) else "")


def body_of(part: Message, key: str) -> Message:
    """Return the object of *part* under *key*, {} if there is none."""
    value = part.get(key)
    return value if isinstance(value, dict) else {}


def text_in(part: Message) -> str | None:
    """Return the text of *part* of Chat Completions, None if it is no text."""
    if part.get("type") == "text":
        return part["text"]  # type: ignore[no-any-return]
    return str(part.get("refusal", "")) if part.get("type") == "refusal" else None


def data_in(part: Message) -> tuple[str, str] | None:
    """Return the media type and the base64 of *part*, an image or a file; None if it holds no data."""
    url = body_of(part, "image_url").get("url") if part.get("type") == "image_url" else None
    return split_data_url(str(url or (part.get("type") == "file" and body_of(part, "file").get("file_data"))))


def part_named(part: Item) -> Message:
    """Return a text part that names the type of *part*, or of an item, which can't be read or written."""
    return {"type": "text", "text": f"[{part.get('type', next(iter(part), 'part'))}]"}


def texts_only(content: Any) -> Any:
    """Return *content* with the name of each part that is no text: in many formats only some roles have media."""
    if not isinstance(content, list):
        return content
    return [part if text_in(part) is not None else part_named(part) for part in content]


def joined(
    messages: Iterable[Message],
    format: str,  # noqa: A002
    made: Callable[[Message], Item],
    within: str,
    listed: Callable[[Any], list[Item]],
    *,
    apart: str = "",
) -> list[Item]:
    """Return *messages* as items: native ones as they came, others by *made*; the results of a step share one item.

    *within* is the key of an item's content, and *listed* makes a list of that. Items of the role *apart* that follow
    one another share one item.
    """
    items: list[Item] = []
    answers = False  # whether the last message was a result
    for message in messages:
        native = native_of(message, format)
        own = native.items if native is not None else [made(message)]
        joins = (native is not None and native.joins) or (answers and message["role"] == "tool")
        joins = joins or own[0].get("role") == apart
        if joins and items and items[-1].get("role") == own[0].get("role"):
            items[-1] = {**items[-1], within: [*listed(items[-1].get(within)), *listed(own[0].get(within))]}
            own = own[1:]
        items += own
        answers = message["role"] == "tool"
    return items


def as_result(call_id: str, content: str | list[Message] = "", *, failed: bool = False) -> Message:
    """Return the message of a tool that answers a call, and whether it *failed*."""
    return {"role": "tool", "tool_call_id": call_id, "content": content, **({FAILED: True} if failed else {})}


def as_user(message: Message) -> Message:
    """Return an instruction within the conversation as the user's *message*; other messages stay.

    It is for providers that take instructions only in front of the conversation.
    """
    if message["role"] not in {"system", "developer"}:
        return message
    return {"role": "user", "content": f"<system>\n{text_of(message)}\n</system>"}


def without_caller(call: Item, key: str, programs: Collection[str]) -> Item:
    """Return *call* as one of the model's own if it was made by a program that is not among *programs*, by their ids.

    *key* is that of the id in the call's `caller`. The same is for results.
    """
    caller = body_of(call, "caller").get(key)
    if caller is None or str(caller) in programs:
        return call
    return {key: value for key, value in call.items() if key != "caller"}


def described(function: Mapping[str, Any]) -> Item:
    """Return the name and the description of a *function*."""
    return {key: function[key] for key in ("name", "description") if key in function}


def function_call(call_id: str, name: str, arguments: object) -> Message:
    """Return a tool call; *arguments* are JSON that a model wrote, or their value."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": written(arguments)}}


def filled(value: object) -> Item:
    """Return the fields of *value* that have a value, {} if it is no object."""
    return {key: each for key, each in value.items() if each is not None} if isinstance(value, dict) else {}


def written(arguments: object) -> str:
    """Return the *arguments* of a call as text: JSON, unless they are written already."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def arguments_as_object(text: str) -> dict[str, Any]:
    """Return the arguments of a call as an object; other values, and what no client can send, get the key `input`.

    The text "1e999" is infinite as a number, and an escape in it may be half of a surrogate pair.
    """
    try:
        value = json.loads(text)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        value = text
    return value if isinstance(value, dict) else {"input": value}


def call_of(call: Message) -> tuple[str, str]:
    """Return the name and the arguments of *call*, as texts."""
    body = body_of(call, "custom" if call.get("type") == "custom" else "function")
    return str(body.get("name", "")), str(body.get("arguments", body.get("input", "")))


def safe_id(call_id: str, *, plain: bool = True) -> str:
    """Return *call_id* if it has 1 to 64 characters (*plain*: only letters, digits, - and _), else a digest of it."""
    if 0 < len(call_id) <= MAX_ID and (not plain or _PLAIN.fullmatch(call_id)):
        return call_id
    return "call_" + blake2b(call_id.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


class CallIds:
    """The ids of the calls of one request: each is one that the provider takes, and that no other call has."""

    def __init__(self, *, plain: bool) -> None:
        """Take ids of any characters, or *plain* ones only (`safe_id`)."""
        self._plain = plain
        self._times: Counter[str] = Counter()
        self._newest: dict[str, str] = {}
        self._taken: set[str] = set()

    def of_call(self, call_id: str) -> str:
        """Return the id of the next call that came with *call_id*."""
        while True:
            self._times[call_id] += 1
            again = self._times[call_id] > 1
            new = safe_id(f"{call_id}~{self._times[call_id]}" if again else call_id, plain=self._plain or again)
            if new not in self._taken:
                self._taken.add(new)
                self._newest[call_id] = new
                return new

    def of_result(self, call_id: str) -> str:
        """Return the id of the newest call that came with *call_id*."""
        return self._newest.get(call_id) or safe_id(call_id, plain=self._plain)


def safe_name(name: str) -> str:
    """Return the *name* of a tool in a call if every provider takes it, else the nearest name that they take.

    Models make names up; a request that repeats such a name is refused.
    """
    if NAMES.fullmatch(name):
        return name
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64].strip("_") or NO_NAME


def split_data_url(url: str) -> tuple[str, str] | None:
    """Return the media type and the base64 of a data URL, None if *url* is another one."""
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return None
    return head[5:-7].split(";", 1)[0], data
