"""The live picture of a window: what fills it, how it grew and was archived, what a prompt cache keeps.

    ████▒▒▒▒▒▒▒▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓░░░····╱╱╱╱╱    the window: a bar of all its parts
      ▂▄▆█ ▂▄▆█ ▂▄▆█ ▂▄▆█ ▂▄▆█ ▂▄▆█ ▂▄▆█ ▂▄▆█ ▂▄▆█     its size, call by call: the drops are compactions
    ▆███████████████████████████████████████████████

Each part has a shade of its own besides its colour. This module knows nothing of how the figures come about.
"""

import time
from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ...context.context import Context
from ...context.report import Report
from .player import Tally, Watch

PARTS = (
    ("system & tools", "█", "blue"),
    ("contents", "▒", "magenta"),
    ("active", "▓", "green"),
    ("open", "░", "yellow"),
)
"""Parts of a request, with the shade and the colour of each; framing is drawn with the system."""
_FREE, _REPLY = ("·", "bright_black"), ("╱", "bright_black")
_STEPS = " ▁▂▃▄▅▆▇█"
_WIDEST = 100
_FRAMES_PER_SECOND = 15
_LINES = 5
"""Progress lines where there is no terminal."""


class Watcher:
    """Shows a replay while it runs: a picture on a terminal, some plain lines elsewhere.

    Args:
        console: Where to.
        title: What is replayed.
        live: Whether to draw the picture.
        seconds: How long the replay should take at least, so that one can follow; only with the picture.
    """

    def __init__(self, console: Console, title: str, *, live: bool, seconds: float = 0) -> None:
        self._console = console
        self._title = title
        self._seconds = seconds
        self._live = Live(console=console, auto_refresh=False, transient=True) if live else None
        self._start = self._drawn = 0.0

    def __enter__(self) -> Watch:
        self._start = time.monotonic()
        if self._live is not None:
            self._live.start()
        return self._watch

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def _watch(self, context: Context, tally: Tally) -> None:
        if self._live is None:
            every = -(-tally.total // _LINES)
            if tally.messages % every == 0 and tally.messages < tally.total:
                self._console.print(progress_line(context.report(), tally), soft_wrap=True)
            return
        now = time.monotonic()
        early = self._start + self._seconds * tally.messages / tally.total - now
        if early > 0.02:
            time.sleep(early)
        if now - self._drawn > 1 / _FRAMES_PER_SECOND:
            self._drawn = now
            width = min(self._console.width, _WIDEST)
            self._live.update(picture(self._title, context.report(), tally, width=width), refresh=True)


def picture(title: str, report: Report, tally: Tally, *, width: int) -> RenderableType:
    """Return the picture of a window, *width* columns wide."""
    turn = f"turn {tally.turn:,} of {tally.turns:,}"
    head = Text(title, style="bold", no_wrap=True, overflow="ellipsis")
    head.truncate(max(8, width - len(turn) - 2), overflow="ellipsis", pad=True)
    head.append(" " * max(0, width - head.cell_len - len(turn)) + turn, style="not bold")
    done = round(width * tally.messages / tally.total)
    bar = Text("━" * done, style="cyan").append("─" * (width - done), style="bright_black")
    return Group(
        head,
        bar,
        Text(),
        Text(f"the request: {report.total:,} of {report.budget:,} tokens", style="bold"),
        window_bar(report, width),
        legend(report, width),
        Text(),
        Text("its size, call by call; at each drop, old pages are archived", style="bold"),
        history(tally.sizes, report.budget, width),
        Text(),
        figures(report, tally),
    )


def window_bar(report: Report, width: int) -> Text:
    """Return the window as a bar of *width* columns: the parts of the request, what is free, the reply's share."""
    bar = Text(no_wrap=True)
    sizes = [(_shown(report)[name], shade, colour) for name, shade, colour in PARTS]
    sizes += [(max(0, report.budget - report.total), *_FREE), (report.window - report.budget, *_REPLY)]
    reached = drawn = 0
    for tokens, shade, colour in sizes:
        reached += tokens
        end = min(width, round(width * reached / report.window))
        bar.append(shade * (end - drawn), style=colour)
        drawn = end
    return bar


def legend(report: Report, width: int) -> Text:
    """Return what the shades of the bar mean, with the tokens of each, in one line or two."""
    shown = _shown(report)
    items = [(shade, colour, name, shown[name]) for name, shade, colour in PARTS]
    items.append((*_FREE, "free", max(0, report.budget - report.total)))
    items.append((*_REPLY, "reply", report.window - report.budget))
    labels = [f"{name} {tokens:>6,}" for _, _, name, tokens in items]
    columns = len(items) if sum(map(len, labels)) + 5 * len(items) <= width else 3
    text = Text(no_wrap=True)
    for position, ((shade, colour, _, _), label) in enumerate(zip(items, labels, strict=True)):
        column = position % columns
        room = max(len(each) for each in labels[column::columns])
        name, tokens = label.rsplit(maxsplit=1)
        text.append(shade * 2, style=colour)
        text.append(f" {name}{tokens:>{room - len(name)}}")
        last = position == len(items) - 1
        text.append("" if last else "\n" if column == columns - 1 else "  ")
    return text


def history(sizes: Sequence[int], budget: int, width: int) -> Text:
    """Return the latest of *sizes* as bars, two lines high."""
    steps = len(_STEPS) - 1
    heights = [min(2 * steps, -(-2 * steps * size // max(1, budget))) for size in sizes[-width:]]
    upper = "".join(_STEPS[max(0, height - steps)] for height in heights)
    lower = "".join(_STEPS[min(steps, height)] for height in heights)
    return Text(f"{upper}\n{lower}", style="cyan", no_wrap=True)


def figures(report: Report, tally: Tally) -> Table:
    """Return the figures below the picture: what was said, where its pages are, what is cached."""
    table = Table.grid(padding=(0, 1))
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_column()
    pages = report.pages
    table.add_row("said", f"{tally.said:,}", f"tokens in {tally.messages:,} messages")
    table.add_row("pages", f"{pages['open'] + pages['active']:,}", "in full")
    table.add_row("", f"{pages['archived']:,}", "archived, on a line of their own")
    table.add_row("", f"{pages['folded']:,}", "folded: several on one line")
    table.add_row("", f"{pages['unloaded']:,}", "unloaded: kept, not listed any more")
    table.add_row("cache", f"{report.cached:.1%}", f"of all that was sent; {report.compactions:,} compactions")
    return table


def progress_line(report: Report, tally: Tally) -> str:
    """Return a replay's progress in one plain line."""
    total = f"{tally.total:,}"
    return (
        f"message {f'{tally.messages:,}':>{len(total)}} of {total}: {tally.said:>9,} tokens said, "
        f"{report.total:>7,} shown, {report.compactions:,} compactions"
    )


def _shown(report: Report) -> dict[str, int]:
    tokens = report.tokens
    fixed = tokens["system"] + tokens["tools"] + tokens["framing"]
    return {"system & tools": fixed, "contents": tokens["contents"], "active": tokens["active"], "open": tokens["open"]}
