"""What `memci replay` prints: the picture while it runs, then a table, or one JSON object.

    memci replay trip.json --pages        memci replay trip.json --at 40 --json

This module knows nothing of formats, or of how a command line is written.
"""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...context.context import Context
from ...context.report import Report
from ...messages import Message
from ...settings import Preset
from ..output import Output, visible
from ..tables import pages_table, print_messages, report_tables
from .live_picture import Watcher
from .player import NONCE, Tally, play, store_for
from .transcripts import Transcript, read


def replayed(
    output: Output,
    file: Path,
    *,
    window: int,
    reply: int | None,
    preset: Preset | None,
    model: str | None,
    dialogue: int | None,
    at: int | None,
    pages: bool,
    store: Path | None,
) -> None:
    """Replay *file* and print what became of it.

    Raises:
        BudgetExceeded: If the conversation does not fit the window.
        MemciError: If the file or a setting makes no sense.
    """
    transcript = read(file, dialogue=dialogue)
    if at is not None:
        transcript = transcript.first(at)
    start = time.perf_counter()
    name = visible(Path(transcript.name).stem) or "replay"
    with (
        store_for(store, name) as storage,
        Context.open(
            storage,
            id=name,
            system=transcript.system,
            model=model,
            window=window,
            reply=reply,
            preset=preset,
            nonce=NONCE if store is None else None,
        ) as context,
    ):
        if output.json:
            tally = play(context, transcript, model=model)
        else:
            with Watcher(output.console, f"memci replay {visible(transcript.name)}", live=output.live) as watch:
                tally = play(context, transcript, model=model, watch=watch)
        seconds = time.perf_counter() - start
        report = context.report()
        listed = list(context.pages()) if pages else None
        shown = context.render(tools=transcript.tools, strict=False)
    if output.json:
        output.print_json(
            {
                "file": str(file),
                "context": name,
                "store": None if store is None else str(store),
                **figures_of(transcript, tally),
                "report": asdict(report),
                "seconds": round(seconds, 3),
                "pages": None if listed is None else [asdict(page) for page in listed],
                "rendering": None if at is None else shown,
            }
        )
    else:
        print_replay(output.console, transcript, tally, report, seconds)
        if listed is not None:
            output.console.print(pages_table(listed))
        if at is not None:
            _print_rendering(output.console, shown)
        if store is not None:
            output.console.print(visible(f"the store: memci inspect {store}"), soft_wrap=True)


def print_replay(console: Console, transcript: Transcript, tally: Tally, report: Report, seconds: float) -> None:
    """Print the final table of a replay."""
    console.print(Text(f"\n{visible(transcript.name)} in a window of {report.window:,} tokens", style="bold"))
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(justify="right", style="bold")
    table.add_column()
    table.add_row("turns", f"{tally.turns:,}", f"{tally.messages:,} messages, {tally.said:,} tokens said")
    table.add_row("model calls", f"{tally.calls:,}", f"none above {tally.largest:,} of {report.budget:,} tokens")
    table.add_row("cached", f"{report.cached:.1%}", f"of all that was sent; {report.compactions:,} compactions")
    table.add_row("seconds", f"{seconds:,.1f}", "")
    console.print(table)
    console.print()
    if transcript.left_out:
        console.print(f"note: {transcript.left_out:,} later system messages differ from the first; they were left out")
    console.print(report_tables(report, console.width))


def figures_of(transcript: Transcript, tally: Tally) -> dict[str, Any]:
    """Return the figures of a replay, for JSON."""
    return {
        "turns": tally.turns,
        "messages": tally.messages,
        "model_calls": tally.calls,
        "said_tokens": tally.said,
        "largest_request": tally.largest,
        "system_messages_left_out": transcript.left_out,
    }


def _print_rendering(console: Console, messages: list[Message]) -> None:
    console.print(Text(f"what the model sees next: {len(messages):,} messages\n", style="bold"))
    print_messages(console, messages)
