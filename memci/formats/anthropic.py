"""Anthropic's Messages: messages of blocks, the results of tools within the user's messages.

    {"role": "assistant", "content": [{"type": "thinking", …}, {"type": "tool_use", "id": "c1", …}]}
    {"role": "user",      "content": [{"type": "tool_result", "tool_use_id": "c1", …}, {"type": "text", …}]}
                               ⇅
    assistant (reasoning, text, call c1)      tool (result of c1)      user (text)

Understood are text, tool_use, tool_result, image, document, search_result and thinking. Every other block (tools that
the provider runs, redacted thinking) is opaque: it keeps its place, and the text names it.
"""

import binascii
import re
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..errors import InvalidMessage
from ..messages import FAILED, Enveloped, Item, Message, parts_of, text_of, tool_calls
from .breakpoints import ANTHROPIC, MOST
from .envelope import (
    NO_TEXT,
    CallIds,
    Spoken,
    arguments_as_object,
    as_native,
    as_result,
    as_user,
    body_of,
    call_of,
    data_in,
    described,
    function_call,
    joined,
    native_of,
    part_named,
    read_parts,
    safe_name,
    said_in,
    split_results,
    text_in,
    texts_only,
    without_caller,
)

NAME = "anthropic"
_IDS = {("assistant", "tool_use"): "id", ("user", "tool_result"): "tool_use_id"}
"""the key of the id of a call, by role and type"""
_SERVER_USE = re.compile(r"(?!tool_use).+_tool_use")
_SERVER_RESULT = re.compile(r"(?!tool_result).+_tool_result")  # blocks of tools that the provider runs
_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
"""media types of images that the provider reads"""


def read(items: Iterable[tuple[str, Item]]) -> list[Message]:
    """Return the messages in *items*, each item with its path for errors. O(blocks)."""
    messages: list[Message] = []
    for path, item in items:
        role, content = item.get("role"), item.get("content")
        if role not in {"user", "assistant", "system"}:
            raise InvalidMessage(f"{path}.role", f"expected 'user', 'assistant' or 'system', got {role!r:.40}")
        if isinstance(content, str):
            messages.append(
                Enveloped({"role": role, "content": content}, as_native(NAME, [{"role": role, "content": content}]))
            )
            continue
        if not isinstance(content, list) or not (content or role == "assistant"):
            raise InvalidMessage(f"{path}.content", "expected a str or a list of blocks that is not empty")
        for number, block in enumerate(content):
            if not isinstance(block, dict) or not isinstance(block.get("type"), str):
                raise InvalidMessage(f"{path}.content[{number}]", "expected a block with a type (a str)")
            key = _IDS.get((role, block["type"]))
            if key and not (isinstance(block.get(key), str) and block[key]):
                raise InvalidMessage(f"{path}.content[{number}].{key}", "expected the id of the call (a str)")
        messages += [_assistant(content)] if role == "assistant" else _user(role, content)
    return messages


def write(messages: Sequence[Message]) -> list[Item]:
    """Return *messages*, without the system prompt, as messages of this format. O(parts).

    A message that came in this format is written as it came, except for what is refused: empty texts, ids of calls that
    come again, names that no tool has, and what a tool of the provider's left alone. The user speaks first, and results
    share one message.
    """
    items = _with_companions(_with_unique_ids(joined(messages, NAME, _made, "content", _blocks)))
    for at, item in enumerate(items):
        if (kept := _not_empty(item["content"]) or NO_TEXT) != item["content"]:
            items[at] = {**item, "content": kept}
    items = place_instructions(items)
    if items and items[0]["role"] == "assistant":
        items.insert(0, {"role": "user", "content": NO_TEXT})
    return items


def place_instructions(items: Iterable[Item]) -> list[Item]:
    """Return *items* with each instruction where it is accepted: behind the user's message and before an answer.

    It moves on to the next such place, or to the end. Instructions that meet there become one. O(items).
    """
    placed: list[Item] = []
    waiting: list[Item] = []
    for item in (*items, None):
        if waiting and (item is None or item["role"] == "assistant"):
            if not placed or placed[-1]["role"] != "user":
                placed.append({"role": "user", "content": NO_TEXT})
            told = [block for each in waiting for block in _blocks(each["content"])]
            placed.append({"role": "system", "content": told if len(waiting) > 1 else waiting[0]["content"]})
            waiting = []
        if item is not None:
            (waiting if item["role"] == "system" else placed).append(item)
    return placed


def without_thoughts(message: Message) -> Message:
    """Return *message* without the thoughts that Anthropic accepts only behind the same beginning. O(blocks).

    It checks their signature against the text in front of them. Other providers' thoughts stay.
    """
    native = native_of(message, NAME)
    if native is None or message["role"] != "assistant" or not isinstance(blocks := native.items[0]["content"], list):
        return message
    kept = [block for block in blocks if block["type"] not in {"thinking", "redacted_thinking"}]
    items = [{**native.items[0], "content": kept}]
    return message if kept == blocks else Enveloped(message, native._replace(items=items))


def tools(schemas: Iterable[Message]) -> list[Item]:
    """Return *schemas* of Chat Completions as tools of this format; schemas of this format stay."""
    empty = {"type": "object", "properties": {}}
    return [
        {**described(body), "input_schema": body.get("parameters") or empty}
        if isinstance(body := schema.get("function"), Mapping)
        else dict(schema)
        for schema in schemas
    ]


def request(items: list[Item], system: Message | None, tools_: list[Item], ends: Sequence[int]) -> dict[str, Any]:
    """Return the arguments of `client.messages.create`, with at most three breakpoints of the cache marked.

    They are at the end of the system prompt, and at the positions *ends*.
    """
    used = sum("cache_control" in each for each in tools_)
    if system is None:
        return {"messages": ANTHROPIC.mark(items, ends, used=used)}
    blocks = _blocks(_made_blocks(system["content"]))
    if used < MOST - 1:
        blocks = ANTHROPIC.lasting(items).on({"role": "user", "content": blocks})["content"]
    used += ANTHROPIC.count({"content": blocks})
    return {"system": blocks, "messages": ANTHROPIC.mark(items, ends, used=used)}


def documents(message: Message) -> list[bool]:
    """Return for each block of a user's *message* whether it is a document, [] if it did not come in this format."""
    native = native_of(message, NAME)
    content = native.items[0]["content"] if native is not None else None
    return [block["type"] != "text" for block in content] if isinstance(content, list) else []


def call(item: Item) -> Message | None:
    """Return *item* as a call of Chat Completions, None if it is no call."""
    return _call(item) if item.get("type") == "tool_use" else None


def _call(block: Item) -> Message:
    return function_call(str(block.get("id")), str(block.get("name")), block.get("input") or {})


def _with_unique_ids(items: Iterable[Item]) -> Iterator[Item]:
    """Yield *items* with ids and names of calls that this format takes, one id for each call. O(blocks)."""
    ids = CallIds(plain=True)
    for item in items:
        blocks = item["content"] if isinstance(item["content"], list) else []
        made = [_with_unique_id(block, item["role"], ids) for block in blocks]
        yield {**item, "content": made} if made != blocks else item


def _with_unique_id(block: Item, role: str, ids: CallIds) -> Item:
    """Return *block* of the *role* with an id and a name that this format takes, if it is a call or a result."""
    match role, block.get("type"):
        case "assistant", "tool_use":
            return {**block, "id": ids.of_call(block["id"]), "name": safe_name(str(block.get("name")))}
        case "assistant", "thinking" | "redacted_thinking" if "cache_control" in block:  # thoughts can't be marked
            return {key: value for key, value in block.items() if key != "cache_control"}
        case "user", "tool_result":
            return {**block, "tool_use_id": ids.of_result(block["tool_use_id"])}
        case _:
            return block


def _with_companions(items: Iterable[Item]) -> list[Item]:
    """Return *items* without what the provider refuses alone: a use of its own tools without a result, or the result.

    Without the code that made it, a call is one of the model's own.
    An answer that paused in such a use goes on in the next message of the assistant: both become one message. The last
    message may wait for its results, and so may code that calls a client's tools: its result comes with a later answer.
    """
    kept: list[Item] = []
    for item in items:
        waits = kept and kept[-1]["role"] == "assistant" == item["role"] and _waiting(kept[-1])
        if waits:
            kept[-1] = {**kept[-1], "content": [*kept[-1]["content"], *_blocks(item["content"])]}
        else:
            kept.append(item)
    open_uses: set[str] = set()
    for at, item in enumerate(kept):
        if item["role"] != "assistant" or not isinstance(blocks := item["content"], list):
            continue
        waits = at == len(kept) - 1 or any(each["type"] == "tool_use" for each in blocks)
        left = set() if waits else _waiting(item)
        own = []
        for block in blocks:
            if _SERVER_USE.fullmatch(block["type"]) and str(block.get("id")) not in left:
                open_uses.add(str(block.get("id")))
            elif _SERVER_RESULT.fullmatch(block["type"]) and str(block.get("tool_use_id")) in open_uses:
                open_uses.remove(str(block.get("tool_use_id")))
            elif _SERVER_USE.fullmatch(block["type"]) or _SERVER_RESULT.fullmatch(block["type"]):
                continue
            own.append(without_caller(block, "tool_id", open_uses))
        if own != blocks:
            kept[at] = {**item, "content": own}
    return kept


def _waiting(item: Item) -> set[str]:
    """Return the ids of the provider's own tools that *item* uses, and that have no result in it."""
    blocks = item["content"] if isinstance(item["content"], list) else []
    given = {str(block.get("tool_use_id")) for block in blocks if _SERVER_RESULT.fullmatch(block["type"])}
    return {str(block.get("id")) for block in blocks if _SERVER_USE.fullmatch(block["type"])} - given


def _not_empty(content: str | list[Item]) -> str | list[Item]:
    """Return *content* without empty texts, also those within a result."""
    if isinstance(content, str):
        return content if content.strip() else ""
    kept = []
    for block in content:
        kind = block.get("type") if isinstance(block, dict) else None  # an opaque result may hold anything
        if kind == "tool_result" and isinstance(block.get("content"), list):
            kept.append({**block, "content": _not_empty(block["content"])})
        elif kind != "text" or str(block.get("text") or "").strip():
            kept.append(block)
    return kept


def _assistant(blocks: list[Item]) -> Message:
    said = Spoken()
    for block in blocks:
        match block["type"]:
            case "text":
                said.parts.append({"type": "text", "text": str(block.get("text", ""))})
            case "tool_use":
                said.calls.append(_call(block))
            case "thinking":
                said.reasoning.append(str(block.get("thinking", "")))
                said.hidden.append(block.get("signature"))
            case _:
                said.opaque.append(block)
    return said.enveloped(NAME, [{"role": "assistant", "content": blocks}])


def _user(role: str, blocks: list[Item]) -> list[Message]:
    """Return a message for each result, and one for each run of other blocks."""
    messages: list[Message] = []
    for result, own in split_results(blocks, lambda block: block["type"] == "tool_result"):
        content = own[0].get("content", "") if result else own
        text, unread = (content, []) if isinstance(content, str) else read_parts(content, _part)
        message: Message = {"role": role}
        if result:
            message = as_result(str(own[0].get("tool_use_id")), failed=own[0].get("is_error") is True)
        items = [{"role": role, "content": own}]
        messages.append(Enveloped({**message, "content": text}, as_native(NAME, items, unread, joins=bool(messages))))
    return messages


def _part(block: Item) -> Message | None:
    """Return a block of the user, or of a result, as a part of Chat Completions; None if it can't be read."""
    given = block.get("source")  # that of a search result is a text
    source: Mapping[str, Any] = given if isinstance(given, dict) else {}
    match block.get("type"), source.get("type"):
        case "text", _:
            return {"type": "text", "text": str(block.get("text", ""))}
        case "image", "base64":
            return {"type": "image_url", "image_url": {"url": f"data:{source['media_type']};base64,{source['data']}"}}
        case "image", "url":
            return {"type": "image_url", "image_url": {"url": str(source.get("url"))}}
        case "document", "text":
            return {"type": "text", "text": str(source.get("data", ""))}
        case "document", "content" if all(each.get("type") == "text" for each in parts_of(source.get("content"))):
            return {"type": "text", "text": text_of(dict(source))}
        case "document", "base64":
            data = f"data:{source.get('media_type')};base64,{source.get('data')}"
            return {"type": "file", "file": {"filename": str(block.get("title") or "document"), "file_data": data}}
        case "search_result", _:
            texts = [str(each.get("text", "")) for each in block.get("content") or []]
            return {"type": "text", "text": "\n".join([str(block.get("title", "")), *texts])}
    return None


def _made(message: Message) -> Item:
    """Return a message of Chat Completions as an item."""
    if message["role"] == "tool":
        content = _made_blocks(message["content"])
        result = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": content}
        return {"role": "user", "content": [{**result, FAILED: True} if message.get(FAILED) else result]}
    message = as_user(message)
    if message["role"] != "assistant":
        return {"role": "user", "content": _made_blocks(said_in(message)) or NO_TEXT}
    content = _made_blocks(texts_only(said_in(message)))
    for call in tool_calls(message):
        name, arguments = call_of(call)
        given = arguments_as_object(arguments)
        used = {"type": "tool_use", "id": call["id"], "name": name, "input": given}
        content = [*_blocks(content), used]
    return {"role": "assistant", "content": content or NO_TEXT}


def _blocks(content: str | list[Item] | None) -> list[Item]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content.strip() else []
    return content or []


def _made_blocks(content: object) -> str | list[Item]:
    if isinstance(content, str):
        return content if content.strip() else ""
    return [block for part in parts_of(content) if (block := _block(part)) is not None]


def _block(part: Message) -> Item | None:
    """Return a part of Chat Completions as a block; None for an empty text, which is refused."""
    if (text := text_in(part)) is not None:
        return {"type": "text", "text": text} if text.strip() else None
    url, (media, data) = str(body_of(part, "image_url").get("url")), data_in(part) or ("", "")
    match part.get("type"):
        case "image_url" if data and media in _IMAGES:
            return {"type": "image", "source": {"type": "base64", "media_type": media, "data": data}}
        case "image_url" if url.startswith(("https://", "http://")):
            return {"type": "image", "source": {"type": "url", "url": url}}
        case "file" if (source := _document(media, data)) is not None:
            title = str(body_of(part, "file").get("filename") or "document")
            return {"type": "document", "title": title, "source": source}
    return part_named(part)


def _document(media: str, data: str) -> Item | None:
    """Return a file of the type *media* as the source of a document, None if it can be none."""
    if media == "application/pdf" and data:
        return {"type": "base64", "media_type": media, "data": data}
    try:
        text = b64decode(data).decode() if media.startswith("text/") else ""
    except (binascii.Error, UnicodeDecodeError):
        text = ""
    return {"type": "text", "media_type": "text/plain", "data": text} if text.strip() else None
