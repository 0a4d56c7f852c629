"""The live picture of a window: its parts, its size over time, and the share that a prompt cache keeps.

████▒▒▒▒▒▒▒▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓░░░····╱╱╱╱╱    the window: a bar of all its parts
▂▄▆█ ▂▄▆█ ▂▄▆█ ▂▄▆█ ▂▄▆█ ▂▄▆█ ▂▄▆█ ▂▄▆█ ▂▄▆█     its size, call by call: the drops are compactions
▆███████████████████████████████████████████████
"""

import time
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from ..printer import Printer, many
from ..tables import WIDEST, grid, legend, window_bar
from .player import ReplayProgress

if TYPE_CHECKING:
    from ...context.context import Context
    from ...context.report import Report

_STEPS = " ▁▂▃▄▅▆▇█"  # the heights of a column in one line
_FRAMES_PER_SECOND = 15  # enough to look smooth; drawing takes a few percent of the time then
_LINES = 5  # progress lines where there is no terminal: a log stays short


def watch(
    printer: Printer,
    title: str,
    context: "Context",
    replay: Iterable[ReplayProgress],
    *,
    still: bool = False,
    seconds: float = 0,
) -> ReplayProgress:
    """Run *replay* and show it: a picture on a terminal, some lines elsewhere, nothing as JSON. Return the last state.

    *still* forbids the picture. With the picture it takes so many *seconds* at least, so that one can follow it.
    """
    console, start, drawn = printer.console, time.monotonic(), 0.0
    is_live = printer.live and not still
    with Live(console=console, auto_refresh=False, transient=True) if is_live else nullcontext() as live:
        for progress in replay:
            if live is None:
                every = -(-progress.total // _LINES)
                if progress.messages % every == 0 and progress.messages < progress.total and not printer.json:
                    console.print(progress_line(context.report(), progress), soft_wrap=True)
                continue
            early = start + seconds * progress.messages / progress.total - time.monotonic()
            if early > 0.02:
                time.sleep(early)
            if time.monotonic() - drawn > 1 / _FRAMES_PER_SECOND:
                drawn = time.monotonic()
                width = min(console.width, WIDEST)
                live.update(picture(title, context.report(), progress, width=width), refresh=True)
    return progress


def picture(title: str, report: "Report", progress: ReplayProgress, *, width: int) -> RenderableType:
    """Return the picture of a window, *width* columns wide."""
    turn = f"turn {progress.turn:,} of {progress.turns:,}"
    head = Text(title, style="bold", no_wrap=True, overflow="ellipsis")
    head.truncate(max(8, width - len(turn) - 2), overflow="ellipsis", pad=True)
    head.append(" " * max(0, width - head.cell_len - len(turn)) + turn, style="not bold")
    done = round(width * progress.messages / progress.total)
    bar = Text("━" * done, style="cyan").append("─" * (width - done), style="bright_black")
    return Group(
        head,
        bar,
        Text(),
        Text(f"the request: {report.total:,} of {report.budget:,} tokens", style="bold"),
        window_bar(report, width),
        legend(report),
        Text(),
        Text("its size, call by call; at each drop, old pages are archived", style="bold"),
        history(progress.sizes, report.budget, width),
        Text(),
        grid(
            ("said", f"{progress.said:,}", f"tokens in {progress.messages:,} messages"),
            ("pages", f"{report.pages['open'] + report.pages['active']:,}", "in full"),
            ("", f"{report.pages['archived']:,}", "archived, on a line of their own"),
            ("", f"{report.pages['folded']:,}", "folded: several on one line"),
            ("", f"{report.pages['unloaded']:,}", "unloaded: kept, not listed any more"),
            ("cache", f"{report.cached:.1%}", f"of all that was sent; {many(report.compactions, 'compaction')}"),
        ),
    )


def history(sizes: Sequence[int], budget: int, width: int) -> Text:
    """Return the latest of *sizes* as bars, two lines high."""
    steps = len(_STEPS) - 1
    heights = [min(2 * steps, -(-2 * steps * size // max(1, budget))) for size in sizes[-width:]]
    upper = "".join(_STEPS[max(0, height - steps)] for height in heights)
    lower = "".join(_STEPS[min(steps, height)] for height in heights)
    return Text(f"{upper}\n{lower}", style="cyan", no_wrap=True)


def progress_line(report: "Report", progress: ReplayProgress) -> str:
    """Return a replay's progress in one plain line."""
    total = f"{progress.total:,}"
    return (
        f"message {f'{progress.messages:,}':>{len(total)}} of {total}: {progress.said:>9,} tokens said, "
        f"{report.total:>7,} shown, {many(report.compactions, 'compaction')}"
    )
