"""Checks the arguments of public calls by their annotations, before anything is done."""

import re
from collections.abc import Collection, Mapping
from dataclasses import is_dataclass
from datetime import datetime
from functools import WRAPPER_ASSIGNMENTS, cache, wraps
from inspect import signature
from itertools import chain
from types import FunctionType, NoneType, UnionType
from typing import Any, Final, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from ..errors import InvalidSetting, brief
from .protocol import Storage
from .validation import check_text

_EARLIEST: Final = -62_135_510_400  # seconds: the second day of the calendar, and the last but one
_LATEST: Final = 253_402_214_400
_WORDS: Final[Mapping[Any, str]] = {
    float: "seconds since 1970",
    int: "an int",
    str: "a str",
    NoneType: "None",
    datetime: "a date and time",
    Storage: "a store, as SQLiteStorage(path)",
}
_MODULES: Final = re.compile(r"\b[a-z_.]+\.(?=[A-Z])")

T = TypeVar("T")
_hints = cache(get_type_hints)


def checked(target: T) -> T:
    """Return a function, or a class with its public methods, that refuses arguments of types other than annotated.

    InvalidSetting names the argument, or a part of it, before anything is done. O(the values that are given).
    """
    if isinstance(target, type):
        for name, method in vars(target).items():
            if isinstance(method, FunctionType) and name[0] != "_":
                setattr(target, name, checked(method))
        return target
    function = cast("FunctionType", target)
    names = [*signature(function).parameters]

    @wraps(function, (*WRAPPER_ASSIGNMENTS, "__kwdefaults__"))  # programs read its defaults
    def call(*args: Any, **given: Any) -> Any:
        hints, values = _hints(function), chain(zip(names, args, strict=False), given.items())
        _check([(name, value, hints[name]) for name, value in values if name in hints])
        return function(*args, **given)

    return cast("T", call)


def _check(values: list[tuple[str, Any, Any]]) -> None:
    """Raise InvalidSetting for the first of *values* (path, value, annotation), or their parts, that does not fit."""
    for path, value, hint in values:  # it grows by the parts of each
        kind, parts, fields, optional = _read(hint)
        if kind is Any or (optional and value is None):
            continue
        if kind is Union:
            fits = any(_fits(path, value, each) for each in parts)
        elif kind is Literal:
            fits = isinstance(value, str) and value in parts
        elif kind is int:
            fits = type(value) is int and -(2**63) <= value < 2**63
        elif kind is float:
            fits = isinstance(value, int | float) and type(value) is not bool and _EARLIEST <= value <= _LATEST
        else:
            characters = isinstance(value, str | bytes) and kind not in (str, bytes)
            fits = isinstance(value, kind) and not isinstance(value, type) and not characters
        pairwise = kind is tuple and parts[1:] != (...,)
        if not fits or (pairwise and len(value) != len(parts)):
            raise InvalidSetting(path, f"expected {_said(hint)}, got {brief(value)}")
        if kind is str and not value.isascii():
            check_text(path, value)
        elif fields:
            values += [(f"{path}.{name}", getattr(value, name), each) for name, each in fields.items()]
        elif Any in parts or not isinstance(kind, type):  # as a message, which its context checks
            continue
        elif pairwise:
            values += [(f"{path}[{nr}]", *each) for nr, each in enumerate(zip(value, parts, strict=True))]
        elif parts and issubclass(kind, Mapping):
            pairs = enumerate(value.items())
            values += [(f"{path}[{nr}]", *each) for nr, pair in pairs for each in zip(pair, parts, strict=True)]
        elif parts and issubclass(kind, Collection):
            values += [(f"{path}[{nr}]", each, parts[0]) for nr, each in enumerate(value)]


def _fits(path: str, value: object, hint: Any) -> bool:
    try:
        _check([(path, value, hint)])
    except InvalidSetting:
        return False
    return True


@cache
def _read(hint: Any) -> tuple[Any, tuple[Any, ...], Mapping[str, Any], bool]:
    """Return the type that *hint* asks for, with its parts and its fields, and whether None will do, too."""
    kind, parts = get_origin(hint) or hint, get_args(hint)
    if kind in (Union, UnionType):
        some = tuple(each for each in parts if each is not NoneType)
        return (*(_read(some[0])[:3] if len(some) == 1 else (Union, some, {})), len(some) < len(parts))
    fields = _hints(kind) if is_dataclass(kind) or hasattr(kind, "_fields") else {}
    return Any if kind is object else kind, parts, fields, False


def _said(hint: Any) -> str:
    """Return the annotation *hint* in words."""
    kind, parts = get_origin(hint), get_args(hint)
    if kind is Literal or kind in (Union, UnionType):
        return ", or ".join(map(repr if kind is Literal else _said, parts))
    return _WORDS.get(hint) or (_MODULES.sub("", str(hint)) if parts else hint.__name__)
