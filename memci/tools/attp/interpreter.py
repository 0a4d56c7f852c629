"""The part of Python that a model may write, and the walk through its syntax tree; everything else is refused.

    statement   name = [name = ...] value  |  call  |  import of a listed module, which does nothing
    value       literal  |  name  |  [value, ...]  |  (value, ...)  |  {"key": value, ...}  |  call
    call        tool(value, ..., name=value, ...)    its arguments hold no call

A walk has no loops, and reaches no objects but literals and the results of `call`, a function that it is given. A name
can hold a large value and be used often, so each value has a weight, a depth and a set of calls, and all three are
bounded.
"""

import ast
import math
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from ...errors import InvalidMessage

RESULT: Final = "__result__"

_NESTING_LIMIT: Final = 20  # deeper than arguments are, and far from Python's limit of recursion
_WEIGHT_LIMIT: Final = 65_536  # characters of literals, plus one for each value: four times the longest code
_MODULES: Final = frozenset({"math", "json", "datetime", "re", "random", "statistics"})
_CONSTRUCTS: Final[Mapping[type[ast.AST], str]] = {
    **dict.fromkeys((ast.For, ast.AsyncFor, ast.While), "a loop"),
    **dict.fromkeys((ast.If, ast.IfExp, ast.Match), "a condition"),
    **dict.fromkeys((ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef), "a definition"),
    **dict.fromkeys((ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp), "a comprehension"),
    **dict.fromkeys((ast.BinOp, ast.BoolOp, ast.UnaryOp, ast.Compare, ast.AugAssign), "an operator"),
    ast.AnnAssign: "an annotation",
    ast.Attribute: "an attribute or a method",
    ast.JoinedStr: "an f-string",
    ast.NamedExpr: "an assignment inside a value",
    ast.Starred: "unpacking with *",
    ast.Subscript: "an index or a slice",
}

Call: TypeAlias = Callable[[str, Sequence[object], Mapping[str, object]], object]


@dataclass(frozen=True, slots=True)
class Value:
    """A value of the code, and the size that it would have if it were written out."""

    content: object
    weight: int = 1
    depth: int = 0
    calls: frozenset[int] = frozenset()


class Walk:
    """One walk through a tree whose positions refer to *lines*."""

    def __init__(self, lines: Sequence[bytes], tools: Container[str], call: Call) -> None:
        self._lines = lines
        self._tools = tools
        self._call = call
        self._calls = 0
        self._names: dict[str, Value] = {}

    def names(self, tree: ast.Module) -> Mapping[str, Value]:
        """Walk the statements of *tree* in order and return the value of each name."""
        for statement in tree.body:
            self._statement(statement)
        return self._names

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                assigned = self._value(value)
                for target in targets:
                    self._names[self._target(target)] = assigned
            case ast.Expr(value=ast.Call() as call):
                self._make_call(call)
            case ast.Expr(value=ast.Name() | ast.Constant() as expression):
                raise _mistake(expression, f"this value is lost, assign it to {RESULT}")
            case ast.Expr(value=expression):
                raise _refusal(expression)
            case ast.Import(names=modules) if all(module.name in _MODULES for module in modules):
                pass
            case ast.ImportFrom(module=str(module), names=imported, level=0) if module in _MODULES:
                if any(name.name == "*" for name in imported):
                    raise _mistake(node, "a star import is not allowed")
            case ast.Import() | ast.ImportFrom():
                raise _mistake(node, "this import is not allowed, only the listed functions can be called")
            case _:
                raise _refusal(node)

    def _target(self, node: ast.expr) -> str:
        if not isinstance(node, ast.Name):
            raise _mistake(node, "only a plain name can be assigned to")
        self._check_spelling(node, node.id)
        if node.id in self._tools:
            raise _mistake(node, f"{node.id} is a function, assign to another name")
        if node.id.startswith("__") and node.id != RESULT:
            raise _mistake(node, f"names that start with __ are not allowed, but for {RESULT}")
        return node.id

    def _value(self, node: ast.expr, depth: int = 0) -> Value:
        if depth > _NESTING_LIMIT:
            raise _mistake(node, f"nested deeper than {_NESTING_LIMIT} levels")
        match node:
            case ast.Constant(value=value):
                return _literal(node, value)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return _literal(node, -number)
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                values = [self._value(element, depth + 1) for element in elements]
                contents = [value.content for value in values]
                return _container(node, contents if isinstance(node, ast.List) else tuple(contents), values)
            case ast.Dict(keys=keys, values=elements):
                names = [_key(node, key) for key in keys]
                values = [self._value(element, depth + 1) for element in elements]
                content = {name: value.content for name, value in zip(names, values, strict=True)}
                return _container(node, content, [*values, *(Value(name, 1 + len(name)) for name in names)])
            case ast.Name(id=name):
                self._check_spelling(node, name)
                if name not in self._names:
                    raise _mistake(node, f"nothing was assigned to {name:.60}, and text needs quotes")
                return self._names[name]
            case ast.Call():
                return self._make_call(node)
            case _:
                raise _refusal(node)

    def _make_call(self, node: ast.Call) -> Value:
        if not isinstance(node.func, ast.Name):
            raise _refusal(node.func)
        name = node.func.id
        self._check_spelling(node.func, name)
        if name not in self._tools:
            if name == "print":
                raise _mistake(node, f"print shows you nothing, assign to {RESULT} instead")
            raise _mistake(node, f"there is no function {name:.60}, only the listed ones")
        args = [self._argument(argument) for argument in node.args]
        kwargs: dict[str, object] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise _mistake(keyword, "unpacking with ** is not allowed")
            self._check_spelling(keyword, keyword.arg)
            if keyword.arg in kwargs:
                raise _mistake(keyword, f"the argument {keyword.arg:.60} stands twice")
            kwargs[keyword.arg] = self._argument(keyword.value)
        self._calls += 1
        try:
            return Value(self._call(name, args, kwargs), calls=frozenset({self._calls}))
        except InvalidMessage as error:
            raise _mistake(node, str(error)) from error

    def _argument(self, node: ast.expr) -> object:
        for part in ast.walk(node):
            if isinstance(part, ast.Call):
                raise _mistake(node, "a call inside a call is not allowed, assign the inner one to a name first")
        return self._value(node).content

    def _check_spelling(self, node: ast.expr | ast.keyword, name: str) -> None:
        # Python folds look-alike letters, so a name in the tree may not be the name that was written.
        if not self._lines[node.lineno - 1].startswith(name.encode(), node.col_offset):
            raise _mistake(node, f"{name:.60} is written with look-alike letters")


def _literal(node: ast.expr, value: object) -> Value:
    match value:
        case str():
            return Value(value, 1 + len(value))
        case int() | float() if not (math.isfinite(value) if isinstance(value, float) else value.bit_length() <= 64):
            raise _mistake(node, "the number is too large")
        case int() | float() | None:  # a bool is an int
            return Value(value)
        case _:
            raise _mistake(node, f"a literal of type {type(value).__name__} is not allowed")


def _key(node: ast.expr, key: ast.expr | None) -> str:
    if isinstance(key, ast.Constant) and isinstance(key.value, str):
        return key.value
    raise _mistake(key or node, "the keys of a dict must be literal strings")


def _container(node: ast.expr, content: object, values: Sequence[Value]) -> Value:
    weight = 1 + sum(value.weight for value in values)
    if weight > _WEIGHT_LIMIT:
        raise _mistake(node, f"the value is too large, at most {_WEIGHT_LIMIT:,}")
    depth = 1 + max((value.depth for value in values), default=0)
    if depth > _NESTING_LIMIT:
        raise _mistake(node, f"nested deeper than {_NESTING_LIMIT} levels")
    calls = frozenset[int]().union(*(value.calls for value in values))
    if len(calls) < sum(len(value.calls) for value in values):
        raise _mistake(node, "the result of one call stands twice in this value, once is enough")
    return Value(content, weight, depth, calls)


def _refusal(node: ast.stmt | ast.expr) -> InvalidMessage:
    construct = _CONSTRUCTS.get(type(node), type(node).__name__.lower())
    return _mistake(node, f"{construct} is not allowed, only calls of the listed functions and assignments")


def _mistake(node: ast.stmt | ast.expr | ast.keyword, reason: str) -> InvalidMessage:
    return InvalidMessage(f"line {node.lineno}", reason)
