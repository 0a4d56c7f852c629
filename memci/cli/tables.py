"""The pieces that people see: tables, a window as a bar, a context's report, its pages and messages.

████▒▒▒▒▒▒▒▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓░░░····╱╱╱╱╱
██ system & tools  600  ▒▒ contents  900  ▓▓ active 4,000  ░░ open  200  ·· free 1,297  ╱╱ reply 1,000
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import zip_longest
from typing import TYPE_CHECKING

from rich import box
from rich.columns import Columns
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..errors import CorruptRecord
from ..messages import Message, call_body, call_name, text_of, tool_calls
from .printer import Part, visible

if TYPE_CHECKING:
    from ..context.context import Context
    from ..context.report import Report
    from ..history.reader import PageInfo

WIDEST = 100  # columns of a picture of the window, at most: longer lines are hard to follow
_PAGES = (
    ("open", "open"),
    ("active", "active: in full"),
    ("archived", "archived: on a line of their own"),
    ("folded", "folded: several on one line"),
    ("unloaded", "unloaded: kept, not listed"),
    ("undone", "undone: taken back"),
)


def table(
    *names: str,
    rows: Iterable[Iterable[object]] = (),
    footer: Sequence[object] = (),
    figures: Collection[str] = (),
    fills: str = "",
) -> Table:
    """Return a table with the columns *names*, their cells in *rows* (see `cell`), and a last row, below a line.

    The columns *figures* are aligned to the right and never wrapped. The column *fills* takes the width that is left.
    """
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=bool(fills), show_footer=bool(footer))
    for name, last in zip_longest(names, footer, fillvalue=""):
        head, end = str(name), cell(last)
        if head in figures:
            made.add_column(head, end, justify="right", no_wrap=True)
        else:
            made.add_column(head, end, overflow="fold", ratio=1 if head == fills else None, min_width=min(5, len(head)))
    for row in rows:
        made.add_row(*map(cell, row))
    return made


def grid(*rows: tuple[str, str, str]) -> Table:
    """Return lines of a name, a figure and what it is."""
    made = Table.grid(padding=(0, 2))
    made.add_column()
    made.add_column(justify="right", style="bold")
    for each in rows:
        made.add_row(*each)
    return made


def cell(value: object) -> Text:
    """Return *value* as a cell: a number with commas, "–" for None, a text with its control characters escaped."""
    if isinstance(value, Text):
        return value
    return Text(visible(f"{value:,}" if isinstance(value, int) else "–" if value is None else str(value)))


def clip(text: str) -> Text:
    """Return *text* as a cell of one line, cut with "…" where the column ends."""
    return Text(visible(" ".join(text.split())), no_wrap=True, overflow="ellipsis")


def indent(text: Text, columns: int = 2) -> Padding:
    """Return *text* with space to its left, on all its lines."""
    return Padding(text, (0, 0, 0, columns), expand=False)


def page_name(context: str, index: int) -> str:
    """Return the name of a page: its context and index."""
    return f"{visible(context)} #{index}"


def day(at: float | None) -> str:
    """Return the day of *at*, in seconds since 1970 UTC; "" if it is not known."""
    return "" if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"


def window_bar(report: "Report", width: int) -> Text:
    """Return the window as a bar of *width* columns."""
    bar = Text(no_wrap=True)
    reached = drawn = 0
    for shade, colour, _, tokens in _parts(report):
        reached += tokens
        end = min(width, round(width * reached / report.window))
        bar.append(shade * (end - drawn), style=colour)
        drawn = end
    return bar


def legend(report: "Report") -> RenderableType:
    """Return what the shades of the bar mean, with the tokens of each, in as many columns as there is room for."""
    labels = [
        Text(shade * 2, style=colour).append(f" {name} {tokens:>6,}", style="default")
        for shade, colour, name, tokens in _parts(report)
    ]
    return Columns(labels, padding=(0, 2))


def _parts(report: "Report") -> list[tuple[str, str, str, int]]:
    """Return shade, colour, name and tokens of each part of a window."""
    tokens = report.tokens
    fixed = sum(tokens.get(name, 0) for name in ("system", "segments", "tools", "framing"))
    return [
        ("█", "blue", "system & tools", fixed),
        ("▒", "magenta", "contents", tokens["contents"]),
        ("▓", "green", "active", tokens["active"]),
        ("░", "yellow", "open", tokens["open"]),
        ("·", "bright_black", "free", max(0, report.budget - report.total)),
        ("╱", "bright_black", "reply", report.window - report.budget),
    ]


@dataclass(frozen=True, slots=True)
class ReportTables:
    """Where the tokens and the pages are: a bar and two tables, side by side if the terminal is wide enough."""

    report: "Report"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the bar, the tables, and the warnings of the report."""
        report, wide = self.report, min(options.max_width, WIDEST)
        tokens = table(
            *("the request", "tokens", ""),
            rows=((name, cost, f"{cost / report.budget:.1%}") for name, cost in report.tokens.items()),
            footer=("in all", report.total, f"of {report.budget:,}"),
            figures=("tokens", ""),
        )
        pages = table(
            *("pages", ""),
            rows=((description, report.pages[state]) for state, description in _PAGES),
            footer=("in all", sum(report.pages.values())),
            figures=("",),
        )
        both = Table.grid(padding=(0, 3))
        both.add_row(tokens, pages)
        yield from (window_bar(report, wide), legend(report), both)
        yield from (Text(f"note: {warning}", style="yellow") for warning in report.warnings)


def with_title(context: "Context", page: "PageInfo") -> "PageInfo":
    """Return *page* with a title: the text of its first message, if it has no line in the contents. O(messages)."""
    title = page.title
    if title is None and page.where not in {"undone", "erased"}:
        try:
            title = " ".join(text_of(context.recall_page(page.index)[0])[:400].split())
        except CorruptRecord as error:
            title = f"can't be read: {error.reason}"
    return replace(page, title=title)


def pages_table(pages: Iterable["PageInfo"]) -> Table:
    """Return a line per page."""
    figures = ("turn", "entries", "recalls")
    rows = (
        (
            f"#{each.index}",
            each.where + ", pinned" * each.pinned,
            each.turn,
            each.entries,
            each.recall_count,
            clip(title),
        )
        for each, title in ((page, page.title or "") for page in pages)
    )
    return table("page", "where", *figures, "title", rows=rows, figures=("page", *figures), fills="title")


def message_lines(messages: Iterable[Message]) -> Iterator[Part]:
    """Yield lines with all of *messages*, each under its role."""
    for position, message in enumerate(messages):
        call_id = f" {message['tool_call_id']}" if message["role"] == "tool" else ""
        yield f"── {position} {message['role']}{call_id}", "bold cyan"
        if text := text_of(message):
            yield text
        for call in tool_calls(message):
            yield f"{call['id']}: {call_name(call)}({arguments_of(call)})", "yellow"


def arguments_of(call: Message) -> str:
    """Return the arguments of a tool *call*, as the model wrote them."""
    body = call_body(call)
    return str(body.get("arguments") or body.get("input") or "")
