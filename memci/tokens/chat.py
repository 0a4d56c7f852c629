"""Count the tokens of chat messages and lists of tools: their text, and the framing that a provider adds.

    {"role": "user", "content": "Hello, world"}          3 frame + 1 role + 3 text              =  7
    {"role": "assistant", "tool_calls": [ls(path=".")]}  3 frame + 1 role + 3 call + ls + args  = 13

    {"name": "weather", "description": "Weather of a place.", "parameters": {"properties": {"place": {…}}}}

    weather:Weather of a place             what a function is, without a final full stop
    + 3                                    it has properties
    + 3 + place:string:The town            for each property
    - 3 + (3 + each) for its enum          for each value that it is limited to

A request costs its messages, its tools and `REQUEST_TOKENS`. The rules are those of OpenAI's Cookbook ("How to count
tokens with tiktoken"), which compares them with the numbers of the service. What it does not cover is counted
completely, on the safe side: calls, unknown keys, and the limits, defaults, nested objects and references of a schema,
as `key:value`, at any depth.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Final

from ..messages import Enveloped
from ..model_catalog import facts_of
from .counter import ScaledCounter, TokenCounter, VocabularyCounter
from .media import media_tokens, part_tokens

_MOST_COUNTED: Final = 1024  # lists that are remembered: more than a server has at a time
_counted: dict[tuple[str, str | None, bytes], int] = {}
"""the tokens of lists of tools, by counter, model and digest of the list"""

MOST_TOKENS: Final = 10**9
"""of a message: more than any window has; a film may claim any length, and stored numbers have bounds"""
REQUEST_TOKENS = 3  # tokens that each request costs once: the beginning of the reply

_MESSAGE = 3
_CALL = 3
_TOOLS_END = 12
# Each of these is one token in every included vocabulary.
_ROLES = frozenset({"system", "user", "assistant", "developer", "tool", "function"})
# Ids and types are not part of the published rule for text: providers use them to pair calls and results, and do not
# show them to the model as they are. The constants per message and per call include what the pairing costs.
_NOT_COUNTED = frozenset({"role", "content", "name", "tool_calls", "tool_call_id", "id", "type"})
_CALL_NOT_COUNTED = frozenset({"id", "type", "index"})
_TEXTS = frozenset({"text", "input_text", "output_text", "refusal"})
_CALL_BODIES = frozenset({"function", "custom"})
_PROPERTIES = 3
_ENTRY = 3
_ENUM = -3
# In the rule these cost nothing: the constants include them.
_FREE_IN_FUNCTION = frozenset({"name", "description", "parameters", "strict"})
_FREE_IN_PARAMETERS = frozenset({"type", "required", "additionalProperties", "$schema"})
_IN_LINE = frozenset({"type", "description", "enum"})
# Their values are schemas by name; all other objects are schemas themselves.
_BY_NAME = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})


def message_tokens(message: Mapping[str, object], count: Callable[[str], int], model: str | None = None) -> int:
    """Return the tokens of *message* in a request. O(length): count a message once and keep the number.

    The name of the *model* chooses the formulas of images and audio; None is gpt-4o. What only a provider can read
    (signatures, encrypted reasoning) counts as a token for 4 characters, and its media by their sizes. What says that
    it is larger than `MOST_TOKENS` counts as that.
    """
    role, content, tokens = message.get("role"), message.get("content"), _MESSAGE
    if isinstance(message, Enveloped):
        unread = message.native.hidden // 4 + sum(media_tokens(each, model) for each in message.native.media)
        tokens += min(unread, MOST_TOKENS)
    if len(message) == 2 and type(content) is str and role in _ROLES:
        return tokens + 1 + count(content)
    tokens += 1 if role in _ROLES else _text_tokens(role, count)
    if content is None or isinstance(content, str) or not isinstance(content, Sequence):
        tokens += _text_tokens(content, count)
    else:
        tokens += sum(_part_tokens(part, count, model) for part in content)
    for key, value in message.items():
        if key == "images" and isinstance(value, list):  # what a model drew, where servers extend the form
            tokens += sum(_part_tokens(part, count, model) for part in value)
        elif key == "audio" and isinstance(value, Mapping):
            spoken = {"type": "audio", "audio": value}
            tokens += _text_tokens(value.get("transcript"), count) + _part_tokens(spoken, count, model)
        elif key not in _NOT_COUNTED:
            tokens += _text_tokens(value, count)
        elif key == "name" and value is not None:
            tokens += 1 + _text_tokens(value, count)
        elif key == "tool_calls" and (type(value) is list or (isinstance(value, Sequence) and type(value) is not str)):
            for call in value:
                tokens += _call_tokens(call, count)
    return min(tokens, MOST_TOKENS)


def tools_tokens(tools: Sequence[Mapping[str, object]], count: TokenCounter, model: str | None = None) -> int:
    """Return the tokens of *tools* in each request, 0 for none. O(length).

    OpenAI writes functions out as types, and there is a rule for that. Other makers give the model JSON, which is
    counted as text. A server sends the same tools with each request: by a counter of memci they are counted once.
    """
    if not tools:
        return 0
    if not isinstance(count, VocabularyCounter | ScaledCounter):  # counters of others may share a name
        return _tools_tokens(tools, count, model)
    digest = blake2b(repr(tools).encode("utf-8", "surrogatepass"), digest_size=16).digest()
    key = count.name, model, digest
    known = _counted.get(key)
    if known is None:
        if len(_counted) >= _MOST_COUNTED:
            _counted.clear()
        known = _counted[key] = _tools_tokens(tools, count, model)
    return known


def _tools_tokens(tools: Sequence[Mapping[str, object]], count: TokenCounter, model: str | None) -> int:
    facts = facts_of(model)
    if facts.typed_tools is None:
        return facts.tools_prompt + sum(_MESSAGE + _text_tokens(tool, count) for tool in tools)
    tokens = _TOOLS_END
    for tool in tools:
        function = tool.get("function")
        if tool.get("type") == "function" and isinstance(function, Mapping):
            tokens += facts.typed_tools + _function_tokens(function, count)
        else:
            tokens += facts.typed_tools + _text_tokens(tool, count)
    return tokens


def _part_tokens(part: object, count: Callable[[str], int], model: str | None) -> int:
    if not isinstance(part, Mapping):
        return _text_tokens(part, count)
    if part.get("type") in _TEXTS:
        return _text_tokens(part.get("text", part.get("refusal")), count)
    tokens = part_tokens(part, count, model)
    return _text_tokens(part, count) if tokens is None else tokens


def _call_tokens(call: object, count: Callable[[str], int]) -> int:
    if not isinstance(call, Mapping):
        return _CALL + _text_tokens(call, count)
    tokens = _CALL
    for key, value in call.items():
        if key in _CALL_BODIES and isinstance(value, Mapping):
            for each in value.values():
                tokens += _text_tokens(each, count)
        elif key not in _CALL_NOT_COUNTED:
            tokens += _text_tokens(value, count)
    return tokens


def _text_tokens(value: object, count: Callable[[str], int]) -> int:
    if value is None or value == "":
        return 0
    return count(_text(value))


def _function_tokens(function: Mapping[str, object], count: Callable[[str], int]) -> int:
    """Return the tokens of *function*, without the constant per function. O(length)."""
    tokens = count(f"{_text(function.get('name'))}:{_sentence(function.get('description'))}")
    parameters = function.get("parameters")
    if isinstance(parameters, Mapping):
        tokens += _members_tokens(parameters, count, free=_FREE_IN_PARAMETERS)
        # The keys that are free hold a schema only in schemas that are not flat.
        if isinstance(parameters.get("additionalProperties"), Mapping):
            tokens += _entry_tokens("additionalProperties", parameters["additionalProperties"], count)
    elif parameters is not None:
        tokens += _entry_tokens("parameters", parameters, count)
    return tokens + _members_tokens(function, count, free=_FREE_IN_FUNCTION)


def _members_tokens(schema: Mapping[str, object], count: Callable[[str], int], *, free: frozenset[str]) -> int:
    tokens = 0
    for key, value in schema.items():
        if key in free:
            continue
        if key in _BY_NAME and isinstance(value, Mapping):
            if value:
                tokens += _PROPERTIES + sum(_entry_tokens(name, each, count) for name, each in value.items())
        else:
            tokens += _entry_tokens(key, value, count)
    return tokens


def _entry_tokens(key: str, value: object, count: Callable[[str], int]) -> int:
    if isinstance(value, Mapping):
        line = f"{key}:{_text(value.get('type'))}:{_sentence(value.get('description'))}"
        return _ENTRY + count(line) + _enum_tokens(value, count) + _members_tokens(value, count, free=_IN_LINE)
    if isinstance(value, list) and any(isinstance(each, Mapping) for each in value):
        return sum(_entry_tokens(key, each, count) for each in value)
    return _ENTRY + count(f"{key}:{_text(value)}")


def _enum_tokens(schema: Mapping[str, object], count: Callable[[str], int]) -> int:
    values = schema.get("enum")
    if isinstance(values, list) and values:
        return _ENUM + sum(_ENTRY + count(_text(each)) for each in values)
    return 0 if values is None else _ENTRY + count(f"enum:{_text(values)}")


def _sentence(value: object) -> str:
    return _text(value).removesuffix(".")


def _text(value: object) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
