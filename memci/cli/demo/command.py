"""`memci demo`: a conversation, a page of it recalled by the model's tool, and the context opened again.

    200 turns  ──▶  a picture of 8,000 tokens  ──▶  recall_page(7): word for word?  ──▶  reopened: the same bytes?

The conversation is `travel_desk.json`, which `memci replay` reads too. Three colleagues plan their trips in English,
Chinese and Japanese: flights are searched in pairs, a gateway times out, prices and references matter later. This
module knows nothing of how the picture is drawn.
"""

import json
import re
import time
from collections.abc import Sequence
from importlib import resources
from typing import Annotated

from rich.text import Text
from typer import Option

from ...context.context import Context
from ...history.plain_chat import PlainChat, read_chat
from ...messages import Message
from ..app import NoLive, Window, command
from ..output import Output, terminal
from ..replay.command import first_turns, print_replay
from ..replay.live_picture import watching
from ..replay.player import NONCE, play, replay_store

TURNS = 200
"""turns of the conversation"""
_SECONDS = 6.0
"""how long the picture is shown at least, so that one can follow it"""
_QUOTATION = re.compile(r'^(\d+) \w+( \(json\))?(?: from character [\d,]+)?: (".*")$')
_NEXT = re.compile(r"^next: recall_page\((.*)\)$")


@command("demo")
def run_demo(
    *,
    window: Window = 8_000,
    no_live: NoLive = False,
    turns: Annotated[int, Option("--turns", min=20, max=TURNS, hidden=True)] = TURNS,
) -> bool:
    """Watch a window at work: a conversation of 200 turns in 8,000 tokens, and a page of it recalled word for word."""
    output = terminal(no_live=no_live)
    chat = first_turns(conversation(), turns)
    start = time.perf_counter()
    with replay_store(None, "demo") as storage:
        with Context.open(storage, id="demo", system=chat.system, window=window, nonce=NONCE) as context:
            with watching(output, "memci demo: a travel desk", seconds=_SECONDS) as watch:
                progress = play(context, chat, watch)
            seconds = time.perf_counter() - start
            print_replay(output, chat, progress, context.report(), seconds)
            exact = _recall(output, context, chat.pages())
            before = json.dumps(context.render(tools=chat.tools))
        with Context.open(storage, id="demo") as context:
            same = json.dumps(context.render(tools=chat.tools)) == before
    _print_proof(output, same, f"closed and opened again, it renders {'the same' if same else 'other'} bytes")
    output.line("\nnow one of yours: memci replay FILE; how to use it in an agent: README.md", "bold")
    return exact and same


def conversation() -> PlainChat:
    """Return the conversation of the demo. O(its 200 turns)."""
    text = (resources.files(__package__) / "travel_desk.json").read_text("utf-8")
    return read_chat(text.split("\n"), "a travel desk")


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


def _recall(output: Output, context: Context, pages: Sequence[Sequence[Message]]) -> bool:
    """Recall a page that left the window long ago; return whether it comes back as it was appended."""
    gone = [page for page in context.pages() if page.where in {"archived", "folded", "unloaded"}]
    if not gone:
        output.line(f"  all {len(pages):,} pages still fit this window: nothing to recall")
        return True
    index = max(gone, key=lambda page: (page.where == "archived", page.entries, -page.index)).index
    original = list(pages[index - 1])
    context.append_turn(f"What exactly was it that I asked on page {index}, and what did you find?")
    quoted = recalled(context, index)
    expected = [message["content"] if message.get("tool_calls") is None else message for message in original]
    same = [each for _, each in quoted] == expected and context.recall_page(index) == original
    result = "word for word" if same else "changed"
    _print_proof(
        output, same, f"the model called recall_page({index}): its {len(original)} messages came back {result}"
    )
    output.console.print(f"  {original[0]['content']}", style="dim")
    return same


def _print_proof(output: Output, well: bool, text: str) -> None:
    mark = Text("✓ ", style="green") if well else Text("✗ ", style="red")
    output.console.print(mark.append(text, style="default"))
