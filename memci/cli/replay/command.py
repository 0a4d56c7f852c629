"""`memci replay`: see what a window does with a recorded conversation."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

from typer import Argument, Option

from ...errors import InvalidSetting
from ..files import Source, read_conversation
from ..options import Int, NoLive, Preset, Str, Window, tokens
from ..printer import Part, Printer, Result, many, visible
from ..tables import ReportTables, grid, message_lines, pages_table, with_title
from .live_picture import watch
from .player import NONCE, ReplayProgress, play, replay_store

if TYPE_CHECKING:
    from ...context.report import Report
    from ...history.plain_chat import PlainChat


def run_replay(
    file: Annotated[str, Argument(metavar="FILE", help="A conversation in JSON or JSON lines; - is standard input.")],
    *,
    window: Window = 8_000,
    reply: Annotated[Int, tokens(help="Room for the answer; default min(4096, window / 8).")] = None,
    preset: Preset = None,
    model: Annotated[Str, Option(metavar="NAME", help="Count tokens for this model.")] = None,
    at: Annotated[Int, Option(metavar="TURN", help="Stop after this turn; print what the model would see.")] = None,
    pages: Annotated[bool, Option("--pages", help="List all pages at the end.")] = False,
    store: Annotated[Str, Option(metavar="PATH", help="Keep the store here; default: a temporary file.")] = None,
    no_live: NoLive = False,
    printer: Printer,
) -> Result:
    """See what a window does with a recorded conversation.

    It reads JSON and JSON lines: chat messages ({"messages": […]}, […] or one per line), trajectories of agents
    ([{"traj": […]}, …], joined end to end), and what memci export wrote.
    """
    from ...context.context import Context
    from ...settings import Policy
    from ...settings import Preset as PresetName

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
            policy=Policy(preset=cast("PresetName | None", preset)),
            clock=None,
            nonce=NONCE if store is None else None,
        ) as context,
    ):
        title = f"memci replay {visible(chat.name)}"
        progress = watch(printer, title, context, play(context, chat, model=model), still=no_live)
        seconds = time.perf_counter() - start
        report = context.report()
        listed = [with_title(context, page) for page in context.pages()] if pages else None
        shown = context.render(tools=chat.tools, strict=False)
    facts = {
        "file": file,
        "context": name,
        "store": store,
        **figures_of(progress),
        "system_messages_left_out": len(chat.left_out),
        "report": report,
        "seconds": round(seconds, 3),
        "pages": listed,
        "rendering": None if at is None else shown,
    }
    view = [*replay_lines(chat, progress, report, seconds)]
    if listed is not None:
        view.append(pages_table(listed))
    if at is not None:
        view.append((f"what the model sees next: {many(len(shown), 'message')}\n", "bold"))
        view += message_lines(shown)
    if store is not None:
        view.append(f"the store: memci inspect {store}")
    return Result(facts, view)


def first_turns(chat: "PlainChat", turns: int) -> "PlainChat":
    """Return the first *turns* turns of *chat*, which must have as many."""
    pages = chat.pages()
    if not 1 <= turns <= len(pages):
        raise InvalidSetting("--at", f"{chat.name} has the turns 1 to {len(pages):,}, not {turns:,}")
    return replace(chat, messages=chat.messages[: sum(map(len, pages[:turns]))])


def figures_of(progress: ReplayProgress) -> dict[str, int]:
    """Return the figures of a replay, as --json prints them."""
    return {
        "turns": progress.turns,
        "messages": progress.messages,
        "model_calls": len(progress.sizes),
        "said_tokens": progress.said,
        "largest_request": progress.largest,
    }


def replay_lines(chat: "PlainChat", progress: ReplayProgress, report: "Report", seconds: float) -> Iterator[Part]:
    """Yield the figures of a replay, which took *seconds*, and the last state of the window."""
    yield f"\n{chat.name} in a window of {report.window:,} tokens", "bold"
    yield grid(
        ("turns", f"{progress.turns:,}", f"{many(progress.messages, 'message')}, {progress.said:,} tokens said"),
        ("model calls", f"{len(progress.sizes):,}", f"none above {progress.largest:,} of {report.budget:,} tokens"),
        ("cached", f"{report.cached:.1%}", f"of all that was sent; {many(report.compactions, 'compaction')}"),
        ("seconds", f"{seconds:,.1f}", ""),
    )
    yield ""
    if chat.left_out:
        yield f"note: {len(chat.left_out):,} system messages differ from the first message; they were left out"
    yield ReportTables(report)
