"""What `memci replay` prints: the picture while it runs, then a table, or one JSON object.

    memci replay trip.json --pages        memci replay trip.json --at 40 --json

This module knows nothing of formats, or of how a command line is written.
"""

import time
from dataclasses import asdict
from pathlib import Path
from typing import cast, get_args

from ...context.context import Context
from ...context.report import Report
from ...errors import InvalidSetting
from ...settings import Policy, Preset
from ..output import Output, visible
from ..tables import grid, pages_table, print_messages, report_tables
from .live_picture import watching
from .player import NONCE, ReplayProgress, play, replay_store
from .transcripts import Transcript, read


def run_replay(
    output: Output,
    *,
    file: str,
    window: int,
    reply: int | None,
    preset: str | None,
    model: str | None,
    dialogue: int | None,
    at: int | None,
    pages: bool,
    store: str | None,
) -> None:
    """Replay *file* and print the result."""
    if preset is not None and preset not in get_args(Preset):
        raise InvalidSetting("--preset", f"{preset!r} is none of {', '.join(get_args(Preset))}")
    transcript = read(file, dialogue=dialogue)
    if at is not None:
        transcript = transcript.first(at)
    start = time.perf_counter()
    name = visible(Path(transcript.name).stem) or "replay"
    with (
        replay_store(store, name) as storage,
        Context.open(
            storage,
            id=name,
            system=transcript.system,
            model=model,
            window=window,
            reply=reply,
            policy=Policy(preset=cast("Preset | None", preset)),
            clock=None,
            nonce=NONCE if store is None else None,
        ) as context,
    ):
        with watching(output, f"memci replay {visible(transcript.name)}") as watch:
            progress = play(context, transcript, watch, model=model)
        seconds = time.perf_counter() - start
        report = context.report()
        listed = list(context.pages()) if pages else None
        shown = context.render(tools=transcript.tools, strict=False)
    if output.json:
        output.print_json(
            {
                "file": file,
                "context": name,
                "store": store,
                "turns": progress.turns,
                "messages": progress.messages,
                "model_calls": progress.calls,
                "said_tokens": progress.said,
                "largest_request": progress.largest,
                "system_messages_left_out": transcript.left_out,
                "report": asdict(report),
                "seconds": round(seconds, 3),
                "pages": None if listed is None else [asdict(page) for page in listed],
                "rendering": None if at is None else shown,
            }
        )
        return
    print_replay(output, transcript, progress, report, seconds)
    if listed is not None:
        output.console.print(pages_table(listed))
    if at is not None:
        output.line(f"what the model sees next: {len(shown):,} messages\n", "bold")
        print_messages(output, shown)
    if store is not None:
        output.line(f"the store: memci inspect {store}")


def print_replay(
    output: Output, transcript: Transcript, progress: ReplayProgress, report: Report, seconds: float
) -> None:
    """Print the final table of a replay, which took *seconds*."""
    output.line(f"\n{transcript.name} in a window of {report.window:,} tokens", "bold")
    figures = grid(
        ("turns", f"{progress.turns:,}", f"{progress.messages:,} messages, {progress.said:,} tokens said"),
        ("model calls", f"{progress.calls:,}", f"none above {progress.largest:,} of {report.budget:,} tokens"),
        ("cached", f"{report.cached:.1%}", f"of all that was sent; {report.compactions:,} compactions"),
        ("seconds", f"{seconds:,.1f}", ""),
    )
    output.console.print(figures)
    output.line("")
    if transcript.left_out:
        output.line(f"note: {transcript.left_out:,} later system messages differ from the first; they were left out")
    output.console.print(report_tables(report, output.console.width))
