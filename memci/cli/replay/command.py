"""What `memci replay` prints: the picture while it runs, then a table, or one JSON object.

    memci replay trip.json --pages        memci replay trip.json --at 40 --json

This module knows nothing of formats.
"""

import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

from typer import Argument, Option

from ...errors import InvalidSetting
from ..app import Int, Json, NoLive, Str, Window, tokens
from ..output import Output, many, terminal, visible
from ..show import titled
from ..source import Source, read_conversation
from ..tables import grid, pages_table, print_messages, report_tables
from .live_picture import watching
from .player import NONCE, ReplayProgress, play, replay_store

if TYPE_CHECKING:
    from ...context.report import Report
    from ...history.plain_chat import PlainChat


def run_replay(
    file: Annotated[str, Argument(metavar="FILE", help="A conversation in JSON or JSON lines; - is standard input.")],
    *,
    window: Window = 8_000,
    reply: Annotated[Int, tokens(help="For the answer; default min(4096, window / 8).")] = None,
    preset: Annotated[Str, Option(metavar="NAME", help="balanced, economy, verbatim or original.")] = None,
    model: Annotated[Str, Option(metavar="NAME", help="Counts tokens as this model does.")] = None,
    at: Annotated[Int, Option(metavar="TURN", help="Stop after this turn; print what the model would see.")] = None,
    pages: Annotated[bool, Option("--pages", help="List all pages at the end.")] = False,
    store: Annotated[Str, Option(metavar="PATH", help="Keep the store here; default: a temporary file.")] = None,
    json: Json = False,
    no_live: NoLive = False,
) -> None:
    """See what a window does with a recorded conversation.

    It reads JSON and JSON lines: chat messages ({"messages": […]}, […] or one per line), trajectories of agents
    ([{"traj": […]}, …], joined end to end), and what memci export wrote.
    """
    from ...context.context import Context
    from ...settings import Policy, Preset

    output = terminal(json=json, no_live=no_live)
    source = Source(file)
    chat = read_conversation(source)
    if at is not None:
        chat = first_turns(chat, at)
    start = time.perf_counter()
    name = visible(Path(chat.name).stem) or "replay"
    with (
        replay_store(store, name) as storage,
        Context.open(
            storage,
            id=name,
            system=chat.system,
            model=model,
            window=window,
            reply=reply,
            policy=Policy(preset=cast("Preset | None", preset)),
            clock=None,
            nonce=NONCE if store is None else None,
        ) as context,
    ):
        with watching(output, f"memci replay {visible(chat.name)}") as watch:
            progress = play(context, chat, watch, model=model)
        seconds = time.perf_counter() - start
        report = context.report()
        listed = [titled(context, page) for page in context.pages()] if pages else None
        shown = context.render(tools=chat.tools, strict=False)
    if output.json:
        output.print_json(
            {
                "file": file,
                "context": name,
                "store": store,
                "turns": progress.turns,
                "messages": progress.messages,
                "model_calls": len(progress.sizes),
                "said_tokens": progress.said,
                "largest_request": progress.largest,
                "system_messages_left_out": len(chat.left_out),
                "report": asdict(report),
                "seconds": round(seconds, 3),
                "pages": None if listed is None else [asdict(page) for page in listed],
                "rendering": None if at is None else shown,
            }
        )
        return
    print_replay(output, chat, progress, report, seconds)
    if listed is not None:
        output.console.print(pages_table(listed))
    if at is not None:
        output.line(f"what the model sees next: {many(len(shown), 'message')}\n", "bold")
        print_messages(output, shown)
    if store is not None:
        output.line(f"the store: memci inspect {store}")


def first_turns(chat: "PlainChat", turns: int) -> "PlainChat":
    """Return the first *turns* turns of *chat*, which has so many."""
    pages = chat.pages()
    if not 1 <= turns <= len(pages):
        raise InvalidSetting("--at", f"{chat.name} has the turns 1 to {len(pages):,}, not {turns:,}")
    return replace(chat, messages=chat.messages[: sum(map(len, pages[:turns]))])


def print_replay(output: Output, chat: "PlainChat", progress: ReplayProgress, report: "Report", seconds: float) -> None:
    """Print the final table of a replay, which took *seconds*."""
    output.line(f"\n{chat.name} in a window of {report.window:,} tokens", "bold")
    figures = grid(
        ("turns", f"{progress.turns:,}", f"{many(progress.messages, 'message')}, {progress.said:,} tokens said"),
        ("model calls", f"{len(progress.sizes):,}", f"none above {progress.largest:,} of {report.budget:,} tokens"),
        ("cached", f"{report.cached:.1%}", f"of all that was sent; {many(report.compactions, 'compaction')}"),
        ("seconds", f"{seconds:,.1f}", ""),
    )
    output.console.print(figures)
    output.line("")
    if chat.left_out:
        output.line(f"note: {len(chat.left_out):,} system messages differ from the first message; they were left out")
    output.console.print(report_tables(report, output.console.width))
