"""`memci demo`: replay a conversation, recall a page with the model's tool, and open the context again.

200 turns  ──▶  a picture of 8,000 tokens  ──▶  recall_page(7): word for word?  ──▶  reopened: the same bytes?
"""

import json
import time
from collections.abc import Sequence
from importlib import resources
from typing import TYPE_CHECKING, Annotated

from typer import Option

from ...messages import Message
from ..options import NoLive, Window
from ..printer import Part, Printer, Result, proof
from .command import figures_of, first_turns, replay_lines
from .live_picture import watch
from .player import NONCE, play, replay_store

if TYPE_CHECKING:
    from ...context.context import Context
    from ...history.plain_chat import PlainChat

TURNS = 200  # turns of the conversation
_SECONDS = 6.0  # shortest time of the picture: slow enough to follow


def run_demo(
    *,
    window: Window = 8_000,
    no_live: NoLive = False,
    turns: Annotated[int, Option("--turns", min=20, max=TURNS, hidden=True)] = TURNS,
    printer: Printer,
) -> Result:
    """Watch a window of 8,000 tokens at work, over 200 turns. One of its pages is recalled, word for word."""
    from ...context.context import Context

    chat = first_turns(conversation(), turns)
    start = time.perf_counter()
    with replay_store(None, "demo") as storage:
        with Context.open(storage, id="demo", system=chat.system, window=window, nonce=NONCE) as context:
            title, steps = "memci demo: a travel desk", play(context, chat)
            progress = watch(printer, title, context, steps, still=no_live, seconds=_SECONDS)
            seconds = time.perf_counter() - start
            view = [*replay_lines(chat, progress, report := context.report(), seconds)]
            exact, lines = _recall(context, chat.pages())
            before = json.dumps(context.render(tools=chat.tools))
        with Context.open(storage, id="demo") as context:
            same = json.dumps(context.render(tools=chat.tools)) == before
    reopened = proof(same, f"closed and opened again, it renders {'the same' if same else 'other'} bytes")
    hint = ("\nnow one of yours: memci replay FILE; how to use it in an agent: README.md", "bold")
    facts = {**figures_of(progress), "report": report, "recalled_exactly": exact, "same_when_reopened": same}
    return Result(facts, [*view, *lines, reopened, hint], exact and same)


def conversation() -> "PlainChat":
    """Return the conversation of the demo. O(its 200 turns)."""
    from ...history.plain_chat import read_chat

    text = (resources.files(__package__) / "travel_desk.json").read_text("utf-8")
    return read_chat(text.split("\n"), "a travel desk")


def recall(context: "Context", index: int) -> str:
    """Let the model call `recall_page` for page *index*, and return the answer that it reads."""
    function = {"name": "recall_page", "arguments": json.dumps({"index": index, "entry": None, "offset": None})}
    call = {"id": f"recall_{index}", "type": "function", "function": function}
    reply: Message = {"role": "assistant", "content": None, "tool_calls": [call]}
    (answer,) = context.answers(reply)
    context.append_turn(reply, answer)
    return str(answer["content"])


def _recall(context: "Context", pages: Sequence[Sequence[Message]]) -> tuple[bool, list[Part]]:
    """Recall an archived page; return whether it is as it was appended, and lines about it."""
    from ...text.sanitize import quote
    from ...tools.recall_page import quotable

    gone = [page for page in context.pages() if page.where in {"archived", "folded", "unloaded"}]
    if not gone:
        return True, [f"  all {len(pages):,} pages still fit this window: nothing to recall"]
    fits = [page for page in gone if page.where == "archived"] or gone
    index = max(fits, key=lambda page: (min(page.entries, 4), -len(json.dumps(pages[page.index - 1])))).index
    original = list(pages[index - 1])
    context.append_turn(f"What exactly was it that I asked on page {index}, and what did you find?")
    answer = recall(context, index)
    quotations = [quote(quotable(message)[0]) for message in original]
    whole = "\nnext: " not in answer
    same = context.recall_page(index) == original and (not whole or all(each in answer for each in quotations))
    result = "word for word" if same else "changed"
    line = proof(same, f"the model called recall_page({index}): its {len(original)} messages came back {result}")
    return same, [line, (f"  {original[0]['content']}", "dim")]
