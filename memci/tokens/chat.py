"""What a chat message and a list of tools cost: their text, and the framing that the provider adds.

    {"role": "user", "content": "Hello, world"}          3 frame + 1 role + 3 text              =  7
    {"role": "assistant", "tool_calls": [ls(path=".")]}  3 frame + 1 role + 3 call + ls + args  = 13

A request costs its messages, its tools and `REQUEST_TOKENS`. The rules are those of OpenAI's Cookbook ("How to count
tokens with tiktoken"), which checks them against the numbers of the service. What it does not cover (calls, unknown
keys, nested schemas) is counted whole, on the safe side. This module knows nothing of pages, budgets or providers.
"""

from collections.abc import Mapping, Sequence

from ..model_catalog import facts_of
from .attachments import audio_tokens, file_tokens
from .counter import TokenCounter
from .images import image_tokens
from .schemas import compact, function_tokens

REQUEST_TOKENS = 3
"""tokens that each request costs once: the beginning of the reply"""

_MESSAGE = 3
_CALL = 3
_TOOLS_END = 12
# Each of these is one token in every vocabulary that is carried.
_ROLES = frozenset({"system", "user", "assistant", "developer", "tool", "function"})
# Ids and types are not part of the published rule for text: providers use them to pair calls and results, and do not
# show them to the model as they are. The constants per message and per call include what the pairing costs.
_NOT_COUNTED = frozenset({"role", "content", "name", "tool_calls", "tool_call_id", "id", "type"})
_CALL_NOT_COUNTED = frozenset({"id", "type", "index", "function", "custom"})


def message_tokens(message: Mapping[str, object], count: TokenCounter, model: str | None = None) -> int:
    """Return what *message* costs in a request, in tokens. O(length): count a message once and keep the number.

    Args:
        message: A chat message as OpenAI's Chat Completions take it.
        count: Counts its text.
        model: The model's name, for the formulas of images and audio; None is gpt-4o.
    """
    content = message.get("content")
    role = message.get("role")
    if len(message) == 2 and type(content) is str and role in _ROLES:
        return _MESSAGE + 1 + count(content)
    tokens = _MESSAGE + (1 if role in _ROLES else _text_tokens(role, count))
    if isinstance(content, Sequence) and not isinstance(content, str):
        tokens += sum(_part_tokens(part, count, model) for part in content)
    else:
        tokens += _text_tokens(content, count)
    if message.get("name") is not None:
        tokens += 1 + _text_tokens(message["name"], count)
    calls = message.get("tool_calls")
    if isinstance(calls, Sequence) and not isinstance(calls, str):
        tokens += sum(_call_tokens(call, count) for call in calls)
    return tokens + sum(_text_tokens(message[key], count) for key in message if key not in _NOT_COUNTED)


def tools_tokens(tools: Sequence[Mapping[str, object]], count: TokenCounter, model: str | None = None) -> int:
    """Return what *tools* cost in each request, in tokens; 0 for none. O(length).

    OpenAI writes functions out as types, and there is a rule for that. Other makers give the model JSON, which is
    counted as text.
    """
    if not tools:
        return 0
    facts = facts_of(model)
    tokens = _TOOLS_END + facts.tools_prompt
    if facts.typed_tools is None:
        return tokens + sum(_MESSAGE + _text_tokens(tool, count) for tool in tools)
    for tool in tools:
        function = tool.get("function")
        if tool.get("type") == "function" and isinstance(function, Mapping):
            tokens += facts.typed_tools + function_tokens(function, count)
        else:
            tokens += facts.typed_tools + _text_tokens(tool, count)
    return tokens


def _part_tokens(part: object, count: TokenCounter, model: str | None) -> int:
    if not isinstance(part, Mapping):
        return _text_tokens(part, count)
    match part.get("type"):
        case "text" | "input_text" | "output_text" | "refusal":
            return _text_tokens(part.get("text", part.get("refusal")), count)
        case "image_url" | "input_image" | "image":
            return image_tokens(part, model)
        case "input_audio":
            return audio_tokens(part, model)
        case "file" | "input_file" | "document":
            return file_tokens(part, count)
    return _text_tokens(part, count)


def _call_tokens(call: object, count: TokenCounter) -> int:
    if not isinstance(call, Mapping):
        return _CALL + _text_tokens(call, count)
    tokens = _CALL
    for holder in (call.get("function"), call.get("custom")):
        if isinstance(holder, Mapping):
            tokens += sum(_text_tokens(value, count) for value in holder.values())
        else:
            tokens += _text_tokens(holder, count)
    return tokens + sum(_text_tokens(call[key], count) for key in call if key not in _CALL_NOT_COUNTED)


def _text_tokens(value: object, count: TokenCounter) -> int:
    if isinstance(value, str):
        return count(value) if value else 0
    if value is None:
        return 0
    return count(compact(value))
