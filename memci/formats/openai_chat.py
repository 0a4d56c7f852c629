"""OpenAI's Chat Completions: the form in which memci itself understands messages.

    {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {…}}]}

Messages of this form are stored as they are, without an envelope, unless the gateway got a part of an unknown type.
Messages of other forms lose in it what only their provider can read: reasoning and opaque items.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from ..messages import FAILED, MAX_ID, NAMES, PARTS, Enveloped, Item, Message, call_body, call_name, tool_calls
from .breakpoints import CHAT
from .envelope import (
    as_native,
    body_of,
    is_empty_answer,
    native_of,
    read_parts,
    safe_id,
    safe_name,
    said_in,
    texts_only,
)

NAME = "openai_chat"


def read(items: Iterable[tuple[str, Item]]) -> list[Message]:
    """Return *items*, which are messages already."""
    return [item for _, item in items]


def enveloped(item: Item) -> Message:
    """Return *item*, a message with parts of unknown types: its text names them, and only this format gets them.

    A part without a type is left to `messages.check`.
    """
    said = item.get("content")
    if not isinstance(said, list) or not all(
        isinstance(each, dict) and isinstance(each.get("type"), str) for each in said
    ):
        return item
    content, unread = read_parts(said, lambda part: part if part["type"] in PARTS else None)
    return Enveloped({**item, "content": content}, as_native(NAME, [item], unread))


def is_sent_as_it_is(message: Message) -> bool:
    """Return whether *message* is sent unchanged. O(parts and calls).

    It does not if it is in an envelope, a result with parts, or an empty answer; or if it has an empty text or an empty
    list, something spoken, or an id or a name that OpenAI refuses.
    """
    if isinstance(message, Enveloped):
        return False
    content, role = message.get("content"), message["role"]
    if type(content) is str and content and role != "tool" and "tool_calls" not in message:  # as nearly all are
        return True
    if role == "tool":
        return type(content) is str and 0 < len(message["tool_call_id"]) <= MAX_ID and FAILED not in message
    if type(content) is list and not (content and all(part["type"] != "text" or part["text"] for part in content)):
        return False
    if role != "assistant":
        return True
    if message.get("audio"):
        return False
    if "tool_calls" in message:
        calls = message["tool_calls"]
        return bool(calls) and all(0 < len(each["id"]) <= MAX_ID and NAMES.fullmatch(call_name(each)) for each in calls)
    return content is not None and not is_empty_answer(message)


def write(messages: Sequence[Message], *, media_inside: bool = False) -> list[Item]:
    """Return *messages* as they are sent: messages of other forms without their reasoning.

    Results have only text here: their images and files follow them, as a message of the user; for who sends the
    messages in another form they stay *media_inside*. What OpenAI refuses in a message is repaired: ids and names of
    calls, empty texts and lists.
    """
    items: list[Item] = []
    media: list[Message] = []
    for message in messages:
        if media and message["role"] != "tool":
            items.append({"role": "user", "content": [*media]})
            media.clear()
        native = native_of(message, NAME)
        if native is not None or is_sent_as_it_is(message):
            items += native.items if native is not None else [message]
            continue
        own = isinstance(message, Enveloped)
        item = _repaired({key: value for key, value in message.items() if not own or key != "reasoning"})
        if own and item["role"] not in ("user", "tool"):
            item["content"] = texts_only(item.get("content"))
        parts = item["content"] if item["role"] == "tool" else None
        if isinstance(parts, list) and not media_inside and (own or any(part["type"] != "text" for part in parts)):
            media += [part for part in item["content"] if part["type"] != "text"]
            texts = [part["text"] if part["type"] == "text" else f"[{part['type']}]" for part in item["content"]]
            item["content"] = "\n".join(texts)
        items.append(item)
    return [*items, {"role": "user", "content": media}] if media else items


def _repaired(item: Item) -> Item:
    """Return *item* without an empty text or call list, and with ids and names of calls that OpenAI takes."""
    content = item.get("content")
    if isinstance(content, list):
        kept = [part for part in content if part["type"] != "text" or part["text"]]
        item["content"] = kept or ""
    if item["role"] == "tool":
        item["tool_call_id"] = safe_id(item["tool_call_id"], plain=False)
        item.pop(FAILED, None)  # only other formats have a place for it
    if item["role"] != "assistant":
        return item
    if spoken := body_of(item, "audio"):  # the provider has what was said, and takes no more than its id
        item |= (
            {"audio": {"id": spoken["id"]}} if spoken.get("id") else {"audio": None, "content": said_in(item) or None}
        )
    if calls := tool_calls(item):
        item["tool_calls"] = [_repaired_call(call) for call in calls]
        return item
    item.pop("tool_calls", None)
    if item.get("content") is None and not item.get("refusal") and not item.get("audio"):
        item["content"] = ""
    return item


def _repaired_call(call: Message) -> Message:
    kind, body = "custom" if call.get("type") == "custom" else "function", call_body(call)
    return {**call, "id": safe_id(call["id"], plain=False), kind: {**body, "name": safe_name(body["name"])}}


def tools(schemas: Iterable[Message]) -> list[Item]:
    """Return *schemas* as they are."""
    return list(schemas)


def request(items: list[Item], system: Message | None, _tools: list[Item], ends: Sequence[int]) -> dict[str, Any]:
    """Return the arguments of `client.chat.completions.create`, with breakpoints of the cache at the positions *ends*.

    The system prompt comes before the *items*.
    """
    front = [system] if system is not None else []
    return {"messages": CHAT.mark([*front, *items], [end + len(front) for end in ends])}


def call(item: Item) -> Message | None:
    """Return *item* if it is a call, else None."""
    return item if isinstance(item.get("function") or item.get("custom"), dict) else None
