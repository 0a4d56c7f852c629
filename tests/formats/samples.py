"""Values of a type: what the SDKs' types say that their APIs take and give, as JSON.

    samples(ThinkingBlockParam)     {"type": "thinking", "thinking": "a é", "signature": "a é"}, …

Each type gives the value with all of its fields and the one with those that are required, with each alternative of its
unions in turn. A new type of a new release is so tried as soon as it is installed. This module knows nothing of memci.
"""

import enum
import json
import types
import typing
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import typing_extensions
from pydantic import BaseModel

_REQUIRED = (typing.Required, typing_extensions.Required)
_WRAPPERS = (*_REQUIRED, typing.Annotated, typing.NotRequired, typing_extensions.NotRequired)
_PLAIN: dict[Any, Any] = {
    str: "a é",
    int: 3,
    float: 0.5,
    bool: True,
    bytes: "AAEC",
    type(None): None,
    object: {"a": 1},
    Any: {"a": 1},
    dict: {"k": "v"},
    datetime: "2026-01-01T00:00:00Z",
}
_DEEP = 5


class NoSampleError(TypeError):
    """There is no JSON value of a type: it is for files, or not known here."""


def samples(type_: Any, *, alternatives: int = 5) -> Iterator[Any]:
    """Yield values of *type_*, each once."""
    seen = set()
    for which in range(alternatives):
        for full in (True, False):
            value = _sample(type_, which, full=full, depth=0)
            key = json.dumps(value)
            if key not in seen:
                seen.add(key)
                yield value


def members(union: Any) -> Iterator[Any]:
    """Yield the types in *union*, which may be nested."""
    origin = typing.get_origin(union)
    if origin is typing.Annotated:
        yield from members(typing.get_args(union)[0])
    elif origin in {typing.Union, types.UnionType}:
        for each in typing.get_args(union):
            yield from members(each)
    else:
        yield union


def _sample(type_: Any, which: int, *, full: bool, depth: int) -> Any:
    origin, inside = typing.get_origin(type_), typing.get_args(type_)
    if origin is typing.Literal:
        return inside[0]
    if origin in _WRAPPERS:
        return _sample(inside[0], which, full=full, depth=depth)
    if origin in {typing.Union, types.UnionType}:
        return _of_union([each for each in inside if each is not type(None)], which, full=full, depth=depth)
    if origin is not None:
        value = _sample(inside[-1], which, full=full, depth=depth + 1)
        return {"k": value} if issubclass(origin, Mapping) else [value]  # else it is a list, or what is iterated
    if type_ in _PLAIN:
        return _PLAIN[type_]
    if isinstance(type_, type) and issubclass(type_, enum.Enum):
        return next(iter(type_)).value
    return _of_fields(type_, which, full=full and depth < _DEEP, depth=depth)


def _of_union(alternatives: list[Any], which: int, *, full: bool, depth: int) -> Any:
    for at in range(len(alternatives)):
        try:
            return _sample(alternatives[(which + at) % len(alternatives)], which, full=full, depth=depth)
        except NoSampleError:
            continue
    raise NoSampleError(alternatives)


def _of_fields(type_: Any, which: int, *, full: bool, depth: int) -> Any:
    if typing_extensions.is_typeddict(type_):
        hints = typing_extensions.get_type_hints(type_, include_extras=True)
        fields = {name: (hint, typing.get_origin(hint) in _REQUIRED) for name, hint in hints.items()}
    elif isinstance(type_, type) and issubclass(type_, BaseModel):
        fields = {
            field.alias or name: (field.annotation, field.is_required() or _is_literal(field.annotation))
            for name, field in type_.model_fields.items()
        }
    else:
        raise NoSampleError(type_)
    return {
        name: _sample(hint, which, full=full, depth=depth + 1)
        for name, (hint, needed) in fields.items()
        if full or needed
    }


def _is_literal(type_: Any) -> bool:
    return typing.get_origin(type_) is typing.Literal
