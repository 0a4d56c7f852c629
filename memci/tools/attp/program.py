r"""The code of a call: the part of Python that a model may write; it is checked as a whole before any of it runs.

    statement   name = [name = ...] value  |  call  |  import of a listed module, which does nothing
    value       literal  |  name  |  [value, ...]  |  (value, ...)  |  {"key": value, ...}  |  call
    call        tool(value, ..., name=value, ...)    its arguments hold no call

Its syntax tree is walked twice. The first walk is a rehearsal: a call only checks its arguments and returns a
placeholder. The grammar has no branches, so the second walk, which makes the calls, takes the same steps.

                                rehearsal              performance
    r = recall_page(42)         Pending                "Oslo, 1,250 NOK"
    __result__ = [r, "NOK"]     [Pending, "NOK"]       ["Oslo, 1,250 NOK", "NOK"]

A walk has no loops, and reaches no objects but literals and the results of calls. A name can hold a large value and be
used often, so each value has a weight, a depth and a set of calls, and all three are bounded. The model reads an
observation of it:

    [tool_result]
    status = "ok"
    target = "the price of the hotel"
    content = "1,250 NOK\nper night"

Target and content are basic strings of TOML on one line each, so no text of a tool can close its string or forge a
table; only a lone surrogate becomes U+FFFD, since TOML can't hold it.
"""

import ast
import json
import math
import re
import textwrap
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from ...errors import InvalidMessage, InvalidSetting, StorageError, brief
from .reply import ParsedReply, parse
from .signatures import Pending, Tools, check_arguments, check_tools, example

_CODE_LIMIT: Final = 16_384  # characters: far more than a few calls need, and parsed within milliseconds
_ESCAPED: Final = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")  # what JSON writes as it is: ends of lines, too

Program: TypeAlias = tuple[ast.Module, Sequence[bytes]]
"""the tree of some code, and its lines in UTF-8, to which the positions of the tree refer"""


def run(reply: ParsedReply | str, tools: Tools, *, call_limit: int = 8) -> str:
    """Check all calls of *reply*, make them, and return the observation, a message in the user's role.

    Raises:
        InvalidMessage: If *reply* is neither a text nor what `parse` returned.
        InvalidSetting: If *tools* is no mapping from names to functions, or *call_limit* is no number.
        StorageError: If a tool raised it: a fault of the store is not a mistake of the model.
    """
    check_tools(tools)
    if type(call_limit) is not int:
        raise InvalidSetting("call_limit", f"expected a number of calls (an int), got {brief(call_limit)}")
    reply = reply if isinstance(reply, ParsedReply) else parse(reply)
    if reply.status == "fail":
        return _observation("error", reply.target, f"Nothing was run, you reported a failure: {reply.message}")
    if reply.status != "success":
        return _repair(reply, reply.message or "there is no [tool_call] table", tools)
    try:
        program = check(reply.code, tools, call_limit=call_limit)
    except InvalidMessage as mistake:
        return _repair(reply, str(mistake), tools)
    try:
        result = perform(program, tools)
        content = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    except InvalidMessage as mistake:
        return _observation("error", reply.target, str(mistake))
    except (TypeError, ValueError, RecursionError) as error:
        return _observation("error", reply.target, f"__result__ can't be written as JSON: {error}")
    return _observation("ok", reply.target, content)


def check(code: str, tools: Tools, *, call_limit: int) -> Program:
    """Parse *code* and rehearse it without calling a tool. O(length)."""
    tree, lines = _parse(code)
    calls = 0

    def rehearse(name: str, args: Sequence[object], kwargs: Mapping[str, object]) -> Pending:
        nonlocal calls
        calls += 1
        if calls > call_limit:
            raise InvalidMessage(name, f"too many calls, at most {call_limit} in one reply")
        check_arguments(name, tools[name], args, kwargs)
        return Pending()

    if RESULT not in Walk(lines, tools, rehearse).names(tree):
        raise InvalidMessage("code", f"assign what you want to see to {RESULT}")
    return tree, lines


def perform(program: Program, tools: Tools) -> object:
    """Make the calls of *program* and return what it assigned to `__result__`."""

    def call(name: str, args: Sequence[object], kwargs: Mapping[str, object]) -> object:
        check_arguments(name, tools[name], args, kwargs)
        try:
            return tools[name](*args, **kwargs)
        except (StorageError, MemoryError):
            raise
        except Exception as error:  # the protocol has no other place for a failure: the model reads it
            raise InvalidMessage(name, f"it failed with {type(error).__name__}: {error}") from error

    tree, lines = program
    return Walk(lines, tools, call).names(tree)[RESULT].content


def _parse(code: str) -> Program:
    if len(code) > _CODE_LIMIT:
        raise InvalidMessage("code", f"{len(code):,} characters, at most {_CODE_LIMIT:,}")
    source = code.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    if source[:1] in {" ", "\t"}:
        source = textwrap.dedent(source)
    try:
        return ast.parse(source, "<attp>"), source.encode().split(b"\n")
    except SyntaxError as error:
        raise InvalidMessage(f"line {error.lineno or 1}", f"not valid Python, {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:  # NUL, a lone surrogate, thousands of operators
        raise InvalidMessage("code", f"not valid Python, {type(error).__name__}") from error


def _repair(reply: ParsedReply, mistake: str, tools: Tools) -> str:
    correct = f"[tool_call]\ncode = '''\n__result__ = {example(tools)}\n'''"
    return _observation("error", reply.target, f"{mistake}\nNothing was run. A correct call is:\n{correct}")


def _observation(status: Literal["ok", "error"], target: str, content: str) -> str:
    return f'[tool_result]\nstatus = "{status}"\ntarget = {_string(target)}\ncontent = {_string(content)}\n'


def _string(text: str) -> str:
    """Return *text* as a basic string of TOML, which is a string of JSON but for a few more escapes."""
    return _ESCAPED.sub(
        lambda found: "\ufffd" if found[0] >= "\ud800" else f"\\u{ord(found[0]):04x}",
        json.dumps(text, ensure_ascii=False),
    )


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
