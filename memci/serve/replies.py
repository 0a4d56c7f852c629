"""A provider's whole replies: the tools that they call, the part that the client sees, the cost of all together.

    reply 1   text A, recall_page(7)      ──▶  answered inside, asked again
    reply 2   text B, find(…)             ──▶  the client's reply:  text A, text B, find(…), the usage of both

A reply that calls tools of memci only is not the last one. In one that calls the client's tools as well, memci's calls
are not shown. A piece is what a reply consists of: a text, a call, a block, an item.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from ..messages import Item, Message, call_name

_CALLS = frozenset(
    {"function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call", "apply_patch_call"}
    | {"mcp_approval_request", "tool_use"}
)
"""types of items of Responses, and of Anthropic's blocks, that the client answers"""


class Calls(NamedTuple):
    """How many calls of whose tools a reply has."""

    own: int  # calls of memci's tools
    clients: int  # calls of the client's tools
    cut: bool  # whether the reply ended before its end: its calls may not be whole

    @property
    def goes_on(self) -> bool:
        """Whether the model is asked again before the client sees how the reply ends."""
        return bool(self.own) and not self.clients and not self.cut


def calls(format: str, reply: Mapping[str, Any], own: Collection[str]) -> Calls:  # noqa: A002
    """Return the calls in *reply*, where *own* are the names of memci's tools. O(parts)."""
    pieces = pieces_of(reply)
    done = {each.get("call_id") for each in pieces if str(each.get("type")).endswith("_output")}  # by the provider
    left = [each for each in pieces if each.get("call_id", "") not in done]
    names = [name for piece in left if (name := called(piece)) is not None]
    if format == "openai_chat":
        cut = (reply.get("choices") or [{}])[0].get("finish_reason") == "length"
    elif format == "anthropic":
        cut = reply.get("stop_reason") not in {"tool_use", "end_turn"}
    else:
        cut = reply.get("status") != "completed"
    mine = sum(name in own for name in names)
    return Calls(mine, len(names) - mine, cut)


def visible(pieces: Sequence[Item], own: Collection[str]) -> list[Item]:
    """Return *pieces* without the calls of the tools *own*."""
    return [piece for piece in pieces if called(piece) not in own]


def merged(format: str, replies: Sequence[Mapping[str, Any]], own: Collection[str]) -> dict[str, Any]:  # noqa: A002
    """Return the reply that the client sees: all *replies* in one, without the calls of the tools *own*. O(parts)."""
    whole, usage = dict(replies[-1]), total([reply.get("usage") or {} for reply in replies])
    left = calls(format, whole, own)
    only_own = left.own and not left.clients
    shown = visible([piece for reply in replies for piece in pieces_of(reply)], own)
    if format == "openai_chat":
        choice = whole["choices"][0]
        choice = {**choice, "message": message_of(format, shown, choice.get("message") or {})}
        if only_own and choice.get("finish_reason") == "tool_calls":
            choice["finish_reason"] = "stop"
        whole["choices"] = [choice, *whole["choices"][1:]]
    else:
        whole["content" if format == "anthropic" else "output"] = shown
        if only_own and whole.get("stop_reason") == "tool_use":
            whole["stop_reason"] = "end_turn"
    return {**whole, "usage": usage} if usage else whole


def pieces_of(said: Mapping[str, Any]) -> list[Item]:
    """Return the pieces of a whole reply, or of an assistant's message as it is stored or sent."""
    if (native := getattr(said, "native", None)) is not None:
        said = {"output": native.items} if native.format == "openai_responses" else native.items[0]
    if "choices" in said:
        said = (said["choices"] or [{}])[0].get("message") or {}
    if "output" in said and "role" not in said:  # a message of Chat Completions may have fields of its own
        return list(said["output"] or [])
    content = said.get("content") or []
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [*parts, *(said.get("tool_calls") or [])]


def message_of(format: str, pieces: Sequence[Item], like: Message) -> Message:  # noqa: A002
    """Return a message like *like* of *pieces*; not for Responses, where a reply is a list of items."""
    if format == "anthropic":
        return {"role": "assistant", "content": list(pieces)}
    made = [piece for piece in pieces if called(piece) is not None]
    said = [piece for piece in pieces if called(piece) is None]
    message = {key: value for key, value in like.items() if key != "tool_calls"}
    if all(piece.keys() == {"type", "text"} for piece in said):
        message["content"] = "".join(piece["text"] for piece in said) or (None if made else "")
    else:
        message["content"] = said
    return {**message, "tool_calls": made} if made else message


def total(usages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sum of *usages*, number by number; the last one gives each value that is no number."""
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


def called(piece: Item) -> str | None:
    """Return the name of the tool that *piece* calls and the client answers, None if it is no such call."""
    if "function" in piece or "custom" in piece:
        return call_name(piece)
    return str(piece.get("name")) if piece.get("type") in _CALLS else None


def placed(thought: Any, shift: int) -> Any:
    """Return a signed *thought*, or a piece of one, with its index moved by *shift*: clients join those of the same."""
    at = thought.get("index") if isinstance(thought, dict) else None
    return {**thought, "index": at + shift} if type(at) is int else thought
