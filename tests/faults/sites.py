"""Small mistakes: the places of a module where one can be made, and the module with it.

    if self.tokens > budget:    ──▶   >=   if not …   and/or   a call left out   a number one higher or lower

Each is one change of the text, so a survivor can be read as a line of code. Assertions, annotations, logging, texts of
errors and what only a checker of types reads stay as they are: no test should care. This module knows nothing of how
mutants are run.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .mutations import Mutant

_COMPARED: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
_CALCULATED: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.FloorDiv: ("//", "*"),
}
_TAKEN = {"min": "max", "max": "min", "any": "all", "all": "any"}
_LEFT_ALONE = (ast.Assert, ast.Raise, ast.Import, ast.ImportFrom, ast.JoinedStr)
_UNTESTED = frozenset({"_check", "__repr__", "__str__", "__reduce__"})


class Site(NamedTuple):
    """One place where a mistake can be made."""

    function: str
    """as `reach` names it; "memci/window/window.py:" outside of functions"""
    mutant: Mutant
    """its killer is empty: the tests that reach the function are"""


class _Change(NamedTuple):
    start: int
    end: int
    new: str


def sites(root: Path, path: str) -> Iterator[Site]:
    """Yield the places of the module *path*, from its top to its end."""
    text = (root / path).read_text("utf-8")
    data = text.encode()
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for function, node in _nodes(ast.parse(text), ""):
        for change in _changes(node, data, starts):
            old, new = _unique(data, change)
            if old is None:
                continue
            number = data.count(b"\n", 0, change.start) + 1
            was, line = data[change.start : change.end].decode().strip(), text.splitlines()[number - 1].strip()
            short = was if len(was) < len(line) else "it"
            name = f"{path}:{number} {short:.60} → {change.new or 'nothing'}: {line:.100}"
            yield Site(f"{path}:{function}", Mutant(name, path, old, new, ""))


def _nodes(node: ast.AST, function: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield the nodes that may be changed, with the outermost function (and its class) that they are in."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _LEFT_ALONE) or _is_typing(child) or _is_log(child):
            continue
        inside = function
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if child.name in _UNTESTED:
                continue
            if not function or isinstance(node, ast.ClassDef):
                inside = f"{function}.{child.name}".lstrip(".")
        if isinstance(child, ast.arguments):  # defaults are changed, annotations are not
            for default in (*child.defaults, *filter(None, child.kw_defaults)):
                yield function, default
            continue
        yield inside, child
        if isinstance(child, ast.AnnAssign):
            if child.value is not None:
                yield inside, child.value
                yield from _nodes(child.value, inside)
            continue
        yield from _nodes(child, inside)


def _is_typing(node: ast.AST) -> bool:
    """Return whether *node* is for checkers of types only, or a decorator's flag."""
    typing = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return typing or (isinstance(node, ast.keyword) and node.arg in {"frozen", "slots", "maxsize"})


def _is_log(node: ast.AST) -> bool:
    """Return whether *node* writes a line to the log."""
    called = node.value.func if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
    return (
        isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id.upper() == "_LOG"
    )


def _changes(node: ast.AST, data: bytes, starts: list[int]) -> Iterator[_Change]:
    """Yield the mistakes that *node* can be."""
    start, end = _span(node, starts)
    text = data[start:end]
    if isinstance(node, ast.Compare):
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            yield from _between(left, right, _COMPARED.get(type(operator)), data, starts)
            left = right
    elif isinstance(node, ast.BoolOp):
        swapped = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            yield from _between(left, right, swapped, data, starts)
    elif isinstance(node, ast.BinOp):
        yield from _between(node.left, node.right, _CALCULATED.get(type(node.op)), data, starts)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield _Change(start, start + len("not "), "")
    elif isinstance(node, ast.Constant) and type(node.value) is int and text.isdigit():
        yield _Change(start, end, str(node.value + 1))
        if node.value:
            yield _Change(start, end, str(node.value - 1))
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield _Change(start, end, str(not node.value))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _TAKEN:
        yield _Change(start, start + len(node.func.id), _TAKEN[node.func.id])
    elif isinstance(node, ast.If | ast.IfExp) and isinstance(node.test, ast.Name | ast.Attribute | ast.Call):
        start, end = _span(node.test, starts)
        yield _Change(start, end, f"not ({data[start:end].decode()})")
    elif isinstance(node, ast.AugAssign | ast.Continue | ast.Break) or _is_call(node):
        yield _Change(start, end, "pass")


def _is_call(node: ast.AST) -> bool:
    """Return whether *node* is a call of which nothing is kept."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)


def _between(
    left: ast.AST, right: ast.AST, swapped: tuple[str, str] | None, data: bytes, starts: list[int]
) -> Iterator[_Change]:
    """Yield the change of the operator between *left* and *right*, where nothing but brackets stands beside it."""
    start, end = _span(left, starts)[1], _span(right, starts)[0]
    between = data[start:end]
    if swapped is not None and between.count(swapped[0].encode()) == 1:
        at = start + between.index(swapped[0].encode())
        yield _Change(at, at + len(swapped[0]), swapped[1])


def _span(node: ast.AST, starts: list[int]) -> tuple[int, int]:
    """Return where *node* begins and ends, in bytes."""
    if not isinstance(node, ast.expr | ast.stmt):
        return 0, 0
    assert node.end_lineno is not None and node.end_col_offset is not None, "a parsed node has its end"
    return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset


def _unique(data: bytes, change: _Change) -> tuple[str, str] | tuple[None, None]:
    """Return a text of whole lines around *change* that is in *data* once, and what stands there with the change."""
    start, end = data.rfind(b"\n", 0, change.start) + 1, data.find(b"\n", change.end) + 1
    while data.count(data[start:end]) != 1:
        if not start:
            return None, None
        start = data.rfind(b"\n", 0, start - 1) + 1
    new = data[start : change.start] + change.new.encode() + data[change.end : end]
    return data[start:end].decode(), new.decode()
