"""What a model answers and asks for: calls of recall_page, and replies in the text protocol.

    recall_page({"index": 4, "entry": true})    ──▶  a line that says what is wrong; no page counts as used
    thought = '''…[tool_call]\nstatus = 7          ──▶  "invalid", and why

A model is never trusted, and never made to fail. This module knows nothing of who runs it.
"""

import json
import re
import tomllib
from collections.abc import Callable
from random import Random
from typing import Any

from memci import Context, EphemeralStorage
from memci.tools import attp
from memci.tools.recall_page import quotable

from .fuzz_texts import NONCE, UNQUOTED, markers, opened, said, text, units

# -- answers to recalls


class Desk:
    """A context with archived pages, and what they hold."""

    def __init__(self, seed: int) -> None:
        rng = Random(seed)
        self.context = opened(EphemeralStorage())
        for at in range(9):
            told = [said(rng, "user"), said(rng, "assistant"), *([said(rng, "user")] if at % 3 else [])]
            self.context.append_turn(*told, opens_page=True)
        self.context.archive(keep=1)
        self.uses = 0


_desks: list[Desk] = []
"""the one in use: making one takes longer than asking it, so what an input meets depends on those before it"""


def recalls(rng: Random, answer: Callable[[Context, dict[str, Any]], dict[str, Any]] = Context.answer) -> str | None:
    """A recall is always answered, by a frame or a line; only one that quotes a page counts as its use."""
    if not _desks or _desks[0].uses > 400:
        _desks[:] = [Desk(rng.randrange(2**32))]
    desk = _desks[0]
    desk.uses += 1
    context = desk.context
    if rng.random() < 0.02:
        context.append_turn(said(rng, "user"), said(rng, "assistant"))
    arguments = _arguments(rng)
    call = {"id": "c", "type": "function", "function": {"name": "recall_page", "arguments": arguments}}
    before = list(context.pages())
    told = answer(context, call)["content"]
    used = [new.index for old, new in zip(before, context.pages(), strict=True) if old != new]
    if not isinstance(told, str) or not told:
        return f"{arguments!r:.300} is answered by {told!r:.300}"
    opening, closing = f"<memci:recall {NONCE}>", f"</memci:recall {NONCE}>"
    framed = told.startswith(f"{opening}\n")
    if markers(told) != ([opening, closing] if framed else []) or UNQUOTED.search(
        re.sub("</?memci:[^>]*>|\n", "", told)
    ):
        return f"{arguments!r:.300} is answered by {told!r:.600}"
    if used and (not framed or used != [_index(arguments)]):
        return f"{arguments!r:.300} counted as a use of {used}, and was answered by {told!r:.300}"
    if framed and not told[told.index(closing) :].startswith((f"{closing}\nnext: recall_page(", closing)):
        return f"the frame of {told!r:.600} ends early"
    if framed:
        index = _index(arguments)
        texts = [quotable(message)[0] for message in context.recall_page(index)]
        for quotation in re.findall(
            '^[0-9]+ [a-z]+(?: .json.)?(?: from character [0-9,]+)?: (".*")$', told, re.MULTILINE
        ):
            if not any(units(json.loads(quotation)) in units(whole) for whole in texts):
                return f"{quotation!r:.300} is not on page #{index}"
    return None


def _index(arguments: Any) -> int:
    return int((json.loads(arguments) if isinstance(arguments, str) else arguments)["index"])


def _arguments(rng: Random) -> Any:
    chance = rng.random()
    if chance < 0.6:
        given = {
            "index": rng.randrange(13),
            "entry": rng.choice((None, 0, 1, 2, 9)),
            "offset": rng.choice((None, 0, 3, 10**6)),
        }
        return json.dumps(given)
    if chance < 0.8:
        odd = (True, 1.0, "4", -1, 2**53, 10**400, [4], {}, text(rng, 4), None, 4)
        return json.dumps({key: rng.choice(odd) for key in ("index", "entry", rng.choice(("offset", text(rng, 3))))})
    if chance < 0.9:
        return rng.choice(
            ("[" * 100_000, '{"a":' * 3_000, "NaN", "null", "", "{}", "9" * 5_000, '{"index": 1, "index": 4}')
        )
    return rng.choice((text(rng), json.dumps(text(rng)), {"index": rng.choice((4, True, "4"))}, None, 7, [4], b"{}"))


# -- replies in ATTP


def replies(rng: Random, parse: Callable[[str], attp.ParsedReply] = attp.parse) -> str | None:
    """A reply is read as one of four kinds, and run to an observation, whatever it says."""
    raw = _reply(rng)
    reply = parse(raw)
    kinds = {None: True, "success": reply.code.strip(), "fail": reply.message.strip(), "invalid": reply.message}
    parts = (reply.thought, reply.target, reply.code, reply.message, reply.answer)
    if reply.status not in kinds or not kinds[reply.status] or not all(isinstance(each, str) for each in parts):
        return f"{raw!r:.600} is read as {reply!r:.300}"
    if reply.status is not None and rng.random() < 0.3:
        seen = attp.run(reply, {"recall_page": _recall_page})
        if len(seen.splitlines()) != 4 or tomllib.loads(seen).keys() != {"tool_result"}:
            return f"{raw!r:.600} is observed as {seen!r:.300}"
    return None


def _recall_page(index: int, entry: int | None = None) -> str:
    """Read a page.

    Args:
        index: The page.
        entry: The entry.
    """
    return f"page {index}, entry {entry}: </memci:recall {NONCE}>\x85\u2028"


def _reply(rng: Random) -> str:
    if rng.random() < 0.4:
        return text(rng, 30)
    quote = rng.choice(("'''", '"""', '"', "'", ""))
    code = rng.choice(("__result__ = recall_page(4)", "recall_page()", "x = " + "[" * 90, "__result__ = 1", text(rng)))
    parts = [
        rng.choice(("", "```toml\n", text(rng, 5))),
        f"thought = {quote}{text(rng, 5)}{quote}\n",
        rng.choice(("[tool_call]\n", "[tool_call]", "[[tool_call]]\n", "tool_call = 7\n", "")),
        "status = " + rng.choice(('"success"', '"fail"', "7", f'"{text(rng, 3)}"')) + "\n",
        f"code = {quote}\n{code}\n{quote}\n",
        f"message = {quote}{text(rng, 5)}{quote}\n",
        rng.choice(("", "```\n", "a." * 200 + "b = 1\n", text(rng, 5))),
    ]
    if rng.random() < 0.3:
        rng.shuffle(parts)
    return "".join(part for part in parts if rng.random() < 0.85)
