"""What the definition of a function costs, by the rule for gpt-4o.

    {"name": "weather", "description": "Weather of a place.", "parameters": {"properties": {"place": {…}}}}

    weather:Weather of a place             what it is, without a final full stop
    + 3                                    it has properties
    + 3 + place:string:The town            for each property
    - 3 + (3 + each) for its enum          for each value that it is limited to

The rule is published for flat schemas. What it does not cover (limits, defaults, nested objects, references) is counted
as `key:value`, at any depth, so that no part of a schema is free. This module knows nothing of messages.
"""

import json
from collections.abc import Callable, Mapping

_PROPERTIES = 3
_ENTRY = 3
_ENUM = -3
# In the rule these cost nothing: the constants include them.
_FREE_IN_FUNCTION = frozenset({"name", "description", "parameters", "strict"})
_FREE_IN_PARAMETERS = frozenset({"type", "required", "additionalProperties", "$schema"})
_IN_LINE = frozenset({"type", "description", "enum"})
# Their values are schemas by name; all other objects are schemas themselves.
_BY_NAME = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})


def function_tokens(function: Mapping[str, object], count: Callable[[str], int]) -> int:
    """Return what *function* costs in tokens, without the constant per function. O(length)."""
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


def compact(value: object) -> str:
    """Return *value* as JSON without blanks and without escapes for characters beyond ASCII."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


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
    if value is None:
        return ""
    return value if isinstance(value, str) else compact(value)
