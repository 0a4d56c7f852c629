r"""The code of a call: it is checked as a whole before any of it runs, and the model reads an observation of it.

The first walk is a rehearsal: a call only checks its arguments and returns a placeholder. The grammar has no branches,
so the second walk, which makes the calls, takes the same steps.

                                rehearsal              performance
    r = recall_page(42)         Pending                "Oslo, 1,250 NOK"
    __result__ = [r, "NOK"]     [Pending, "NOK"]       ["Oslo, 1,250 NOK", "NOK"]

    [tool_result]
    status = "ok"
    target = "the price of the hotel"
    content = "1,250 NOK\nper night"

Target and content are basic strings of TOML on one line each, so no text of a tool can close its string or forge a
table; only a lone surrogate becomes U+FFFD, since TOML can't hold it.
"""

import ast
import json
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

from ...errors import InvalidMessage, InvalidSetting, StorageError, brief
from .interpreter import RESULT, Walk
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
