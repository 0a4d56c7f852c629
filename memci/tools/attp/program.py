"""The code of a call, checked as a whole before any of it runs.

The tree is walked twice. The first walk is a rehearsal: it makes every check, and a call only checks its arguments and
returns a placeholder. The grammar has no branches, so the second walk, which makes the calls, takes the same steps.

                                rehearsal              performance
    r = recall_page(42)         Pending                "Oslo, 1,250 NOK"
    __result__ = [r, "NOK"]     [Pending, "NOK"]       ["Oslo, 1,250 NOK", "NOK"]

If the rehearsal refuses the code, no call was made. This module knows nothing of TOML, nor of what the syntax allows.
"""

import ast
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ...errors import InvalidMessage, StorageError
from .interpreter import RESULT, Walk
from .signatures import Pending, Tools, check_arguments

_CODE_LIMIT: Final = 16_384  # characters


@dataclass(frozen=True, slots=True)
class Program:
    """Code that passed its rehearsal: its tree, and its lines in UTF-8, to which the positions of the tree refer."""

    tree: ast.Module
    lines: Sequence[bytes]


def check(code: str, tools: Tools, *, call_limit: int) -> Program:
    """Parse *code* and rehearse it; no tool is called. O(length).

    Raises:
        InvalidMessage: If it does anything but assign literals and the results of known tools, called correctly.
    """
    program = _parsed(code)
    calls = 0

    def rehearse(name: str, args: Sequence[object], kwargs: Mapping[str, object]) -> Pending:
        nonlocal calls
        calls += 1
        if calls > call_limit:
            raise InvalidMessage(name, f"too many calls, at most {call_limit} in one reply")
        check_arguments(name, tools[name], args, kwargs)
        return Pending()

    if RESULT not in Walk(program.lines, tools, rehearse).names(program.tree):
        raise InvalidMessage("code", f"assign what you want to see to {RESULT}")
    return program


def perform(program: Program, tools: Tools) -> object:
    """Make the calls of *program* and return what it assigned to `__result__`.

    Raises:
        InvalidMessage: If a tool failed, or was passed a result of a type that it does not take.
        StorageError: If a tool raised it.
    """

    def call(name: str, args: Sequence[object], kwargs: Mapping[str, object]) -> object:
        check_arguments(name, tools[name], args, kwargs)
        try:
            return tools[name](*args, **kwargs)
        except (StorageError, MemoryError):
            raise
        except Exception as error:  # the protocol has no other place for a failure: the model reads it
            raise InvalidMessage(name, f"it failed with {type(error).__name__}: {error}") from error

    return Walk(program.lines, tools, call).names(program.tree)[RESULT].content


def _parsed(code: str) -> Program:
    if len(code) > _CODE_LIMIT:
        raise InvalidMessage("code", f"{len(code):,} characters, at most {_CODE_LIMIT:,}")
    source = code.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    if source[:1] in {" ", "\t"}:
        source = textwrap.dedent(source)
    try:
        return Program(ast.parse(source, "<attp>"), source.encode().split(b"\n"))
    except SyntaxError as error:
        raise InvalidMessage(f"line {error.lineno or 1}", f"not valid Python, {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:  # NUL, a lone surrogate, thousands of operators
        raise InvalidMessage("code", f"not valid Python, {type(error).__name__}") from error
