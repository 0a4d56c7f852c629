"""LlamaIndex's messages as those of Chat Completions, and back.

ChatMessage([ThinkingBlock, TextBlock, ToolCallBlock])  ⇄  {"content": …, "tool_calls": […], "own": […]}
"""

from collections.abc import Iterator, Sequence
from typing import Any

from llama_index.core.base.llms import types
from llama_index.core.base.llms.types import ChatMessage

from ..formats.envelope import content_of, function_call
from ..messages import parts_of
from .items import Item, arguments_as_given, assistant_item, data_url, exact, media, media_in, own_of

_MEDIA = {"image": types.ImageBlock, "audio": types.AudioBlock, "video": types.VideoBlock}


def dump(message: ChatMessage) -> Iterator[Item]:
    """Write *message* as one of Chat Completions."""
    asked = [block for block in message.blocks if isinstance(block, types.ToolCallBlock)]
    calls = [function_call(str(each.tool_call_id), each.tool_name, each.tool_kwargs or "{}") for each in asked]
    parts = [part for block in message.blocks if (part := _part(block)) is not None]
    item = assistant_item(content_of(parts), calls) | {"role": message.role.value}
    if message.role == "tool":
        item["tool_call_id"] = str(message.additional_kwargs.get("tool_call_id"))
    yield exact(item, _own(message.blocks), _own(_blocks(item)))


def load(items: Sequence[Item]) -> Iterator[ChatMessage]:
    """Read messages of Chat Completions."""
    for item in items:
        own = own_of(item)
        more = {"tool_call_id": item["tool_call_id"]} if item["role"] == "tool" else {}
        yield ChatMessage(_blocks(item) if own is None else own, role=item["role"], additional_kwargs=more)


def _own(blocks: Sequence[Any]) -> list[Item]:
    """Return *blocks* as JSON, without empty texts."""
    own = [block.model_dump(mode="json", exclude_none=True) for block in blocks]
    return [each for each in own if each.get("text") != ""]


def _blocks(item: Item) -> list[Any]:
    """Return the content and the calls of *item* as blocks."""
    blocks = [*map(_block, parts_of(item.get("content")))]
    for call in item.get("tool_calls") or ():
        name, kwargs = call["function"]["name"], arguments_as_given(call["function"]["arguments"])
        blocks.append(types.ToolCallBlock(tool_call_id=call["id"], tool_name=name, tool_kwargs=kwargs))
    return blocks or [types.TextBlock(text="")]


def _part(block: Any) -> Item | None:
    """Return *block* as a part of Chat Completions, None if there is none."""
    if isinstance(block, types.TextBlock):
        return {"type": "text", "text": block.text}
    for kind, made in _MEDIA.items():
        if isinstance(block, made):
            mime = getattr(block, f"{kind}_mimetype", None) or f"{kind}/{getattr(block, 'format', None) or '*'}"
            return media(str(block.url) if block.url else data_url(mime, _bytes_of(block, kind)), mime)
    if isinstance(block, types.DocumentBlock):
        mime = str(block.document_mimetype)
        return media(block.url or data_url(mime, block.resolve_document().read()), mime, block.title)
    return None


def _bytes_of(block: Any, kind: str) -> bytes:
    """Return the data of *block*, read from its file if it names one."""
    data: bytes = getattr(block, f"resolve_{kind}")().read()
    return data


def _block(part: Item) -> Any:
    """Return *part* as a block."""
    mime, url, name = media_in(part) or ("", "", None)
    if not url:
        return types.TextBlock(text=part.get("text", f"[{part['type']}]"))
    data = url.partition(",")[2].encode() if url.startswith("data:") else None
    kind = mime.partition("/")[0]
    if kind in {"image", "video"}:
        return _MEDIA[kind](**{kind: data, f"{kind}_mimetype": mime} if data else {"url": url})
    if kind == "audio":
        return types.AudioBlock(**{"audio": data, "format": mime.partition("/")[2]} if data else {"url": url})
    given = {"data": data, "document_mimetype": mime} if data else {"url": url}
    return types.DocumentBlock(**given, title=name)
