"""LlamaIndex's messages as those of Chat Completions, and back.

    ChatMessage([ThinkingBlock, TextBlock, ToolCallBlock])  ⇄  {"thinking_blocks": […], "content": …, "tool_calls": […]}

Blocks without a form in Chat Completions are kept under the key `blocks`.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from llama_index.core.base.llms import types
from llama_index.core.base.llms.types import ChatMessage

from ..formats.envelope import body_of, content_of, function_call, split_data_url
from ..messages import parts_of
from .items import Item, arguments_as_given, data_url


def dump(message: ChatMessage) -> Iterator[Item]:
    """Write *message* as one of Chat Completions."""
    item: Item = {"role": message.role.value, "content": []}
    for block in message.blocks:
        if isinstance(block, types.ToolCallBlock):
            call = function_call(str(block.tool_call_id), block.tool_name, block.tool_kwargs or "{}")
            item.setdefault("tool_calls", []).append(call)
        elif isinstance(block, types.ThinkingBlock):
            thought = {"type": "thinking", "thinking": block.content or "", **block.additional_information}
            item.setdefault("thinking_blocks", []).append(thought)
        elif (part := _part(block)) is not None:
            item["content"].append(part)
        elif not isinstance(block, types.CachePoint):
            item.setdefault("blocks", []).append(block.model_dump(mode="json", exclude_none=True))
    if message.role == "tool":
        item["tool_call_id"] = str(message.additional_kwargs.get("tool_call_id"))
    item["content"] = content_of(item["content"]) or (None if "tool_calls" in item else "")
    yield item


def load(items: Sequence[Item]) -> Iterator[ChatMessage]:
    """Read messages of Chat Completions."""
    for item in items:
        blocks: list[Any] = []
        for thought in item.get("thinking_blocks") or ():
            more = {key: value for key, value in thought.items() if key not in {"type", "thinking"}}
            blocks.append(types.ThinkingBlock(content=thought.get("thinking"), additional_information=more))
        blocks += [*map(_block, parts_of(item.get("content"))), *item.get("blocks", ())]
        for call in item.get("tool_calls") or ():
            kwargs = arguments_as_given(call["function"]["arguments"])
            name = call["function"]["name"]
            blocks.append(types.ToolCallBlock(tool_call_id=call["id"], tool_name=name, tool_kwargs=kwargs))
        more = {"tool_call_id": item["tool_call_id"]} if item["role"] == "tool" else {}
        yield ChatMessage(blocks, role=item["role"], additional_kwargs=more)


def _part(block: Any) -> Item | None:
    """Return *block* as a part of Chat Completions, None if there is none."""
    if isinstance(block, types.TextBlock):
        return {"type": "text", "text": block.text}
    if isinstance(block, types.ImageBlock):
        return {"type": "image_url", "image_url": {"url": str(block.url) if block.url else block.inline_url()}}
    if isinstance(block, types.DocumentBlock):
        url = data_url(str(block.document_mimetype), block.resolve_document().read())
        return {"type": "file", "file": {"filename": block.title, "file_data": url}}
    return None


def _block(part: Item) -> Any:
    """Return *part* as a block."""
    kind, body = part["type"], body_of(part, part["type"])
    data = split_data_url(str(body.get("url") or body.get("file_data")))
    if kind == "image_url":
        made = {"image": data[1].encode(), "image_mimetype": data[0]} if data else {"url": body["url"]}
        return types.ImageBlock(**made)
    if kind == "file" and data:
        return types.DocumentBlock(data=data[1].encode(), document_mimetype=data[0], title=body.get("filename"))
    return types.TextBlock(text=part.get("text", f"[{kind}]"))
