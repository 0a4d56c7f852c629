"""A tool as the model sees it: a signature, the arguments that it takes, an example call, and the system prompt.

    def recall_page(page: int, offset: int = 1) -> str: ...

    signature   recall_page(page: int, offset: int = 1) -> str
    example     recall_page(1)
    checked     recall_page("42")   ──▶   page must be int, not the str '42'
    described   … the protocol, with an example that can be run, and each tool as a function …

Pydantic checks arguments without converting them. An annotation with a name that can't be resolved takes any value.
Equal tools give equal bytes, in every process and in every order, so the text never breaks a cached prefix.
"""

import inspect
import keyword
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Final, TypeAlias, Union, get_args, get_origin

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError

from ...errors import InvalidMessage, InvalidSetting, brief
from ...text.interface import section

Tools: TypeAlias = Mapping[str, Callable[..., object]]

_EXAMPLES: Final = {int: "1", str: '"text"', float: "0.5", bool: "True", list: "[]", dict: "{}"}
"""a literal of each type"""
_STRICT: Final = ConfigDict(strict=True, arbitrary_types_allowed=True)


class Pending:
    """The value of a call that was not made yet; it is accepted as an argument of any type."""

    def __repr__(self) -> str:
        return "<result>"


class _Source(str):
    """A text that a signature shows without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def check_tools(tools: Tools) -> None:
    """Check that *tools* are functions by their names."""
    if not isinstance(tools, Mapping):
        raise InvalidSetting("tools", f"expected functions by their names (a mapping), got {brief(tools)}")
    for name, tool in tools.items():
        if not isinstance(name, str) or not callable(tool):
            raise InvalidSetting("tools", f"expected a function for a name, got {brief(tool)} for {brief(name)}")


def signature(name: str, tool: Callable[..., object]) -> str:
    """Return *tool* as the head of a Python function called *name*."""
    described = _inspect(tool)
    if described is None:
        return f"{name}(...)"
    shown = [
        each.replace(annotation=_source(each.annotation, _text), default=_source(each.default, _default))
        for each in described.parameters.values()
    ]
    returns = _source(described.return_annotation, _text)
    return f"{name}{described.replace(parameters=shown, return_annotation=returns)}"


def check_arguments(
    name: str, tool: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]
) -> None:
    """Check that *tool* takes these arguments; if it does not, the error shows the signature."""
    described = _inspect(tool)
    if described is None:
        return
    try:
        bound = described.bind(*args, **kwargs)
    except TypeError as error:
        raise InvalidMessage(name, f"{error}; it is {signature(name, tool)}") from error
    for parameter, given in bound.arguments.items():
        declared = described.parameters[parameter]
        keywords, several = declared.kind is declared.VAR_KEYWORD, declared.kind is declared.VAR_POSITIONAL
        for value in given.values() if keywords else given if several else [given]:
            if not _fits(value, declared.annotation):
                shown = f"the {type(value).__name__} {brief(value)}"
                reason = f"{parameter} must be {_text(declared.annotation)}, not {shown}; it is {signature(name, tool)}"
                raise InvalidMessage(name, reason)


def example(tools: Tools) -> str:
    """Return the shortest correct call of one of *tools*."""
    calls = [f"{name}({', '.join(_required_arguments(tool))})" for name, tool in tools.items()]
    return min(calls, key=lambda call: (len(call), call), default='"text"')


def _inspect(tool: Callable[..., object]) -> inspect.Signature | None:
    try:
        return inspect.signature(tool, eval_str=True)
    except (TypeError, ValueError):  # some builtins have no signature
        return None
    except Exception:  # noqa: BLE001 -- an annotation names what is imported for type checkers only
        return inspect.signature(tool)


def _source(value: object, text: Callable[[Any], str]) -> object:
    return value if value is inspect.Parameter.empty else _Source(text(value))


def _required_arguments(tool: Callable[..., object]) -> Iterator[str]:
    described = _inspect(tool)
    for parameter in described.parameters.values() if described else ():
        starred = parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}
        if parameter.default is parameter.empty and not starred:
            literals = (_EXAMPLES.get(get_origin(each) or each) for each in _parts(parameter.annotation))
            literal = next(filter(None, literals), '"text"')
            yield f"{parameter.name}={literal}" if parameter.kind is parameter.KEYWORD_ONLY else literal


def _default(value: object) -> str:
    # The repr of another object may hold an address: the description would differ between processes.
    return repr(value) if value is None or type(value) in {int, str, float, bool} else "..."


def _parts(annotation: Any) -> Sequence[Any]:
    """Return the types of a union, else the one type."""
    if get_origin(annotation) is Annotated:
        return _parts(get_args(annotation)[0])
    return get_args(annotation) if get_origin(annotation) in {Union, UnionType} else [annotation]


def _text(annotation: Any) -> str:
    if annotation is inspect.Parameter.empty:
        return "object"
    if isinstance(annotation, str):
        return annotation
    return " | ".join("None" if each is type(None) else inspect.formatannotation(each) for each in _parts(annotation))


def _fits(value: object, annotation: Any) -> bool:
    if annotation is inspect.Parameter.empty or isinstance(annotation, str):
        return True
    try:
        TypeAdapter(annotation, config=_STRICT).validate_python(value)
    except ValidationError as error:
        return all(isinstance(each["input"], Pending) for each in error.errors(include_url=False))
    except (PydanticUserError, NameError):  # pydantic knows no such type
        return True
    return True


def describe(tools: Tools) -> str:
    """Return the protocol and every tool as a Python signature with its docstring; "" if there are no tools.

    Raises:
        InvalidSetting: If a name of a tool can't be called in Python, or a tool is no function.
    """
    check_tools(tools)
    for name in tools:
        if not (name.isascii() and name.isidentifier()) or keyword.iskeyword(name) or name == "__result__":
            raise InvalidSetting("tools", f"{name!r} can't be the name of a function")
    if not tools:
        return ""
    functions = "\n\n".join(_function(name, tools[name]) for name in sorted(tools))
    return section("attp")["protocol"].format(example=example(tools), functions=functions)


def _function(name: str, tool: Callable[..., object]) -> str:
    documentation = (inspect.getdoc(tool) or "").replace('"""', "'''")
    ending = "\n" if "\n" in documentation else ""
    body = textwrap.indent(f'"""{documentation}{ending}"""' if documentation else "...", "    ")
    return f"def {signature(name, tool)}:\n{body}"
