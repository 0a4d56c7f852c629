"""`memci demo`: a conversation, a page of it recalled by the model's tool, and the context opened again.

    200 turns  ──▶  a picture of 8,000 tokens  ──▶  recall_page(7): word for word?  ──▶  reopened: the same bytes?

This module knows nothing of how the picture is drawn.
"""

import json
import re
import time
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from ...context.context import Context
from ...messages import Message
from ..output import Output
from ..replay.command import print_replay
from ..replay.formats import Step
from ..replay.live_picture import Watcher
from ..replay.player import NONCE, play, store_for
from ..replay.transcripts import Transcript
from .script import SYSTEM
from .script import turns as story
from .travel_tools import TOOLS

_SECONDS = 6.0
"""How long the picture is shown, so that one can follow it."""
_QUOTATION = re.compile(r'^(\d+) \w+( \(json\))?(?: from character [\d,]+)?: (".*")$')
_NEXT = re.compile(r"^next: recall_page\((.*)\)$")


def demonstrated(output: Output, *, window: int, turns: int) -> bool:
    """Run the demo and return whether it kept its promises.

    Raises:
        BudgetExceeded: If the window is too small for the conversation.
    """
    console, said = output.console, list(story(turns))
    steps = tuple(Step(message) for turn in said for message in turn)
    transcript = Transcript("a travel desk", steps, SYSTEM, TOOLS)
    start = time.perf_counter()
    with store_for(None, "demo") as storage:
        with Context.open(storage, id="demo", system=SYSTEM, window=window, nonce=NONCE) as context:
            with Watcher(console, "memci demo: a travel desk", live=output.live, seconds=_SECONDS) as watch:
                tally = play(context, transcript, watch=watch)
            seconds = time.perf_counter() - start
            print_replay(console, transcript, tally, context.report(), seconds)
            exact = _recall(console, context, said)
            before = json.dumps(context.render(tools=TOOLS))
        with Context.open(storage, id="demo") as context:
            same = json.dumps(context.render(tools=TOOLS)) == before
    _print_proof(console, same, f"closed and opened again, it renders {'the same' if same else 'other'} bytes")
    console.print("\nnow one of yours: memci replay FILE; how to use it in an agent: README.md", style="bold")
    return exact and same


def recalled(context: Context, index: int) -> list[tuple[int, Message | str]]:
    """Let the model call `recall_page` for page *index* until it has all; return (entry, what was quoted).

    A quotation is the text of an entry, or its message where that is more than text.
    """
    pieces: dict[int, str] = {}
    whole: set[int] = set()
    arguments = json.dumps({"index": index, "entry": None, "offset": None})
    while arguments:
        call = {
            "id": f"recall_{len(pieces)}",
            "type": "function",
            "function": {"name": "recall_page", "arguments": arguments},
        }
        reply: Message = {"role": "assistant", "content": None, "tool_calls": [call]}
        (answer,) = context.answers(reply)
        context.append_turn(reply, answer)
        arguments = ""
        for line in answer["content"].splitlines():
            if found := _QUOTATION.match(line):
                entry = int(found[1])
                pieces[entry] = pieces.get(entry, "") + json.loads(found[3])
                whole |= {entry} if found[2] else set()
            elif following := _NEXT.match(line):
                arguments = following[1]
    return [(entry, json.loads(text) if entry in whole else text) for entry, text in pieces.items()]


def _recall(console: Console, context: Context, said: Sequence[list[Message]]) -> bool:
    """Ask for something that left the window long ago, and tell whether what comes back is what was said."""
    gone = [page for page in context.pages() if page.where in {"archived", "folded", "unloaded"}]
    if not gone:
        console.print(f"  all {len(said):,} pages still fit this window: nothing to recall")
        return True
    index = max(gone, key=lambda page: (page.where == "archived", page.entries, -page.index)).index
    original = said[index - 1]
    context.append_turn(f"What exactly was it that I asked on page {index}, and what did you find?")
    quoted = recalled(context, index)
    expected = [message["content"] if message.get("tool_calls") is None else message for message in original]
    same = [each for _, each in quoted] == expected and context.recall_page(index) == original
    told = "word for word" if same else "changed"
    _print_proof(console, same, f"the model called recall_page({index}): its {len(original)} messages came back {told}")
    console.print(f"  {original[0]['content']}", style="dim")
    return same


def _print_proof(console: Console, well: bool, told: str) -> None:
    mark = Text("✓ ", style="green") if well else Text("✗ ", style="red")
    console.print(mark.append(told, style="default"))
