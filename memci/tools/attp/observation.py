r"""The observation: what the model reads after a call, a [tool_result] table in TOML.

    [tool_result]
    status = "ok"
    target = "the price of the hotel"
    content = "1,250 NOK\nper night"

Target and content are basic strings on one line each, so no text of a tool can close its string or forge a table.
`tomllib.loads(observation)["tool_result"]["content"]` is exactly the result; only a lone surrogate becomes U+FFFD,
since TOML can't hold it. This module knows nothing of how a reply is parsed or of how its code is walked.
"""

import json
import re
from typing import Final, Literal

from ...errors import InvalidMessage
from .program import check, perform
from .reply import ParsedReply, parse
from .signatures import Tools, example

# Every character that str.splitlines treats as the end of a line is here: a result stays on one line.
_ESCAPED: Final = re.compile('[\x00-\x1f"\\\\\x7f-\x9f\u2028\u2029\ud800-\udfff]')
_SHORT: Final = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def run(reply: ParsedReply | str, tools: Tools, *, call_limit: int = 8) -> str:
    """Make the calls of *reply* and return the observation, to be appended as a user message.

    All of the code is checked before its first call is made.

    Raises:
        StorageError: If a tool raised it: a fault of the store is not a mistake of the model.
    """
    reply = parse(reply) if isinstance(reply, str) else reply
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


def _repair(reply: ParsedReply, mistake: str, tools: Tools) -> str:
    correct = f"[tool_call]\ncode = '''\n__result__ = {example(tools)}\n'''"
    return _observation("error", reply.target, f"{mistake}\nNothing was run. A correct call is:\n{correct}")


def _observation(status: Literal["ok", "error"], target: str, content: str) -> str:
    return f'[tool_result]\nstatus = "{status}"\ntarget = {_string(target)}\ncontent = {_string(content)}\n'


def _string(text: str) -> str:
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    if "\ud800" <= character <= "\udfff":
        return "\ufffd"
    return _SHORT.get(character, f"\\u{ord(character):04x}")
