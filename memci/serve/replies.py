"""A provider's whole replies: whose tools they call, what of them the client sees, what they cost together.

    reply 1   text A, recall_page(7)      ──▶  answered inside, asked again
    reply 2   text B, find(…)             ──▶  the client's reply:  text A, text B, find(…), the usage of both

A reply that calls tools of memci only is not the last one. In one that calls the client's tools as well, memci's calls
are not shown. This module knows nothing of streams or contexts.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from ..messages import Item, Message, call_name

_CLIENTS = frozenset(
    {"function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call", "apply_patch_call"}
    | {"mcp_approval_request"}
)
"""items of Responses that the client answers"""


class Calls(NamedTuple):
    """Whose tools a reply calls."""

    own: int
    """calls of memci's tools"""
    clients: int
    """calls of the client's tools"""
    cut: bool
    """whether the reply ended before its end: its calls may not be whole"""

    @property
    def goes_on(self) -> bool:
        """Whether the model is asked again before the client sees how the reply ends."""
        return bool(self.own) and not self.clients and not self.cut


def calls(format: str, reply: Mapping[str, Any], own: Collection[str]) -> Calls:  # noqa: A002
    """Return whose tools *reply* calls, where *own* are the names of memci's. O(parts)."""
    if format == "openai_chat":
        choice = (reply.get("choices") or [{}])[0]
        names = [call_name(call) for call in (choice.get("message") or {}).get("tool_calls") or []]
        cut = choice.get("finish_reason") == "length"
    elif format == "anthropic":
        blocks = reply.get("content") or []
        names = [str(block.get("name")) for block in blocks if block.get("type") == "tool_use"]
        cut = reply.get("stop_reason") not in {"tool_use", "end_turn"}
    else:
        items = reply.get("output") or []
        names = [str(item.get("name")) for item in items if item.get("type") in _CLIENTS]
        cut = reply.get("status") != "completed"
    mine = sum(name in own for name in names)
    return Calls(mine, len(names) - mine, cut)


def visible(format: str, pieces: Sequence[Item], own: Collection[str]) -> list[Item]:  # noqa: A002
    """Return *pieces* (see `pieces_of`) without the calls of the tools *own*."""
    kinds = {"openai_chat": "function", "anthropic": "tool_use", "openai_responses": "function_call"}
    return [
        piece
        for piece in pieces
        if piece.get("type") != kinds[format] or (call_name(piece) or piece.get("name")) not in own
    ]


def merged(format: str, replies: Sequence[Mapping[str, Any]], own: Collection[str]) -> dict[str, Any]:  # noqa: A002
    """Return the reply that the client sees: all *replies* in one, without the calls of the tools *own*. O(parts)."""
    whole = dict(replies[-1])
    left = calls(format, whole, own)
    if format == "openai_chat":
        said = [(reply.get("choices") or [{}])[0].get("message") or {} for reply in replies]
        message = message_of(format, [piece for each in said for piece in pieces_of(format, each)], said[-1], own)
        choice = dict(whole["choices"][0], message=message)
        if left.own and not left.clients and choice.get("finish_reason") == "tool_calls":
            choice["finish_reason"] = "stop"
        whole["choices"] = [choice, *whole["choices"][1:]]
    else:
        key = "content" if format == "anthropic" else "output"
        whole[key] = visible(format, [piece for reply in replies for piece in reply.get(key) or []], own)
        if left.own and not left.clients and whole.get("stop_reason") == "tool_use":
            whole["stop_reason"] = "end_turn"
    usages = [reply["usage"] for reply in replies if isinstance(reply.get("usage"), dict)]
    return {**whole, "usage": total(usages)} if usages else whole


def pieces_of(format: str, message: Message) -> list[Item]:  # noqa: A002
    """Return what an assistant's *message*, as it is stored or sent, consists of: texts, calls, blocks, items."""
    native = getattr(message, "native", None)
    if native is not None:
        if format != "anthropic":
            return list(native.items)
        message = native.items[0]
    content = message.get("content")
    texts: list[Item] = [{"type": "text", "text": content}] if isinstance(content, str) and content else []
    parts = content if isinstance(content, list) else texts
    return [*parts, *(message.get("tool_calls") or [])]


def message_of(format: str, pieces: Sequence[Item], like: Message, own: Collection[str]) -> Message:  # noqa: A002
    """Return a message as *like* of *pieces*, but for calls of the tools *own*; not for Responses, a list of items."""
    shown = visible(format, pieces, own)
    if format == "anthropic":
        return {"role": "assistant", "content": shown}
    called = [piece for piece in shown if "function" in piece or "custom" in piece]
    said = [piece for piece in shown if "function" not in piece and "custom" not in piece]
    message = {key: value for key, value in like.items() if key != "tool_calls"}
    if all(piece.keys() == {"type", "text"} for piece in said):
        message["content"] = "".join(piece["text"] for piece in said) or (None if called else "")
    else:
        message["content"] = said
    return {**message, "tool_calls": called} if called else message


def total(usages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sum of *usages*, number by number; what is no number is that of the last one."""
    whole: dict[str, Any] = {}
    for usage in usages:
        for key, value in usage.items():
            before = whole.get(key)
            if isinstance(value, Mapping):
                whole[key] = total([before, value]) if isinstance(before, Mapping) else dict(value)
            elif type(value) in {int, float} and type(before) in {int, float}:
                whole[key] = before + value
            elif value is not None or before is None:
                whole[key] = value
    return whole
