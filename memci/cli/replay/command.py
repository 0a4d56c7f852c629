"""What `memci replay` prints: the picture while it runs, then a table, or one JSON object.

    memci replay trip.json --pages        memci replay trip.json --at 40 --json

This module knows nothing of formats, or of how a command line is written.
"""

import time
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.table import Table

from ...context.context import Context
from ...context.report import Report
from ...settings import Policy, Preset
from ..output import Output, visible
from ..tables import pages_table, print_messages, report_tables
from .live_picture import Watcher
from .player import NONCE, ReplayProgress, play, replay_store
from .transcripts import Transcript, read


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """The options of `memci replay`."""

    window: int
    """tokens"""
    reply: int | None = None
    """tokens that are kept free for the answer"""
    preset: Preset | None = None
    model: str | None = None
    """counts tokens as this model does"""
    dialogue: int | None = None
    """only this conversation of the file, from 1"""
    at: int | None = None
    """stop after this turn, from 1, and print what the model would see"""
    pages: bool = False
    """list all pages"""
    store: str | None = None
    """keep the store here; None: a temporary one"""


def run_replay(output: Output, file: str, options: ReplayOptions) -> None:
    """Replay *file* and print the result.

    Raises:
        BudgetExceeded: If the conversation does not fit the window.
        MemciError: If the file or a setting makes no sense.
    """
    transcript = read(file, dialogue=options.dialogue)
    if options.at is not None:
        transcript = transcript.first(options.at)
    start = time.perf_counter()
    name = visible(Path(transcript.name).stem) or "replay"
    with (
        replay_store(options.store, name) as storage,
        Context.open(
            storage,
            id=name,
            system=transcript.system,
            model=options.model,
            window=options.window,
            reply=options.reply,
            policy=Policy(preset=options.preset),
            clock=None,
            nonce=NONCE if options.store is None else None,
        ) as context,
    ):
        if output.json:
            progress = play(context, transcript, model=options.model)
        else:
            with Watcher(output.console, f"memci replay {visible(transcript.name)}", live=output.live) as watch:
                progress = play(context, transcript, model=options.model, watch=watch)
        seconds = time.perf_counter() - start
        report = context.report()
        listed = list(context.pages()) if options.pages else None
        shown = context.render(tools=transcript.tools, strict=False)
    if output.json:
        output.print_json(
            {
                "file": file,
                "context": name,
                "store": options.store,
                "turns": progress.turns,
                "messages": progress.messages,
                "model_calls": progress.calls,
                "said_tokens": progress.said,
                "largest_request": progress.largest,
                "system_messages_left_out": transcript.left_out,
                "report": asdict(report),
                "seconds": round(seconds, 3),
                "pages": None if listed is None else [asdict(page) for page in listed],
                "rendering": None if options.at is None else shown,
            }
        )
        return
    print_replay(output, transcript, progress, report, seconds)
    if listed is not None:
        output.console.print(pages_table(listed))
    if options.at is not None:
        output.line(f"what the model sees next: {len(shown):,} messages\n", "bold")
        print_messages(output, shown)
    if options.store is not None:
        output.line(f"the store: memci inspect {options.store}")


def print_replay(
    output: Output, transcript: Transcript, progress: ReplayProgress, report: Report, seconds: float
) -> None:
    """Print the final table of a replay, which took *seconds*."""
    output.line(f"\n{transcript.name} in a window of {report.window:,} tokens", "bold")
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(justify="right", style="bold")
    table.add_column()
    table.add_row("turns", f"{progress.turns:,}", f"{progress.messages:,} messages, {progress.said:,} tokens said")
    table.add_row("model calls", f"{progress.calls:,}", f"none above {progress.largest:,} of {report.budget:,} tokens")
    table.add_row("cached", f"{report.cached:.1%}", f"of all that was sent; {report.compactions:,} compactions")
    table.add_row("seconds", f"{seconds:,.1f}", "")
    output.console.print(table)
    output.line("")
    if transcript.left_out:
        output.line(f"note: {transcript.left_out:,} later system messages differ from the first; they were left out")
    output.console.print(report_tables(report, output.console.width))
