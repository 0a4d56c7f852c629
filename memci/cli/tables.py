"""The tables that stay on the screen: a context's report, its pages, the contexts of a store.

    the request        tokens      pages
    system              1,339      open                 1
    contents              901      active              14

This module knows nothing of where the values come from.
"""

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..context.report import Report
from ..history.reader import PageInfo
from ..messages import Message, call_name, text_of, tool_calls
from ..storage.protocol import ContextRecord
from .output import visible
from .replay.live_picture import legend, window_bar

_WIDEST = 100
_PLACES = (
    ("open", "open"),
    ("active", "active: in full"),
    ("archived", "archived: on a line of their own"),
    ("folded", "folded: several on one line"),
    ("unloaded", "unloaded: kept, not listed"),
    ("undone", "undone: taken back"),
)


def report_tables(report: Report, width: int) -> RenderableType:
    """Return where the tokens and the pages are: a bar and two tables, side by side if *width* allows."""
    tokens = Table(box=box.SIMPLE_HEAD, padding=(0, 1), show_footer=True, pad_edge=False)
    tokens.add_column("the request", footer="in all")
    tokens.add_column("tokens", justify="right", footer=f"{report.total:,}")
    tokens.add_column("", justify="right", footer=f"of {report.budget:,}")
    for name, cost in report.tokens.items():
        tokens.add_row(name, f"{cost:,}", f"{cost / report.budget:.1%}")
    pages = Table(box=box.SIMPLE_HEAD, padding=(0, 1), show_footer=True, pad_edge=False)
    pages.add_column("pages", footer="in all")
    pages.add_column("", justify="right", footer=f"{sum(report.pages.values()):,}")
    for place, told in _PLACES:
        pages.add_row(told, f"{report.pages[place]:,}")
    both = Table.grid(padding=(0, 3))
    both.add_row(tokens, pages)
    wide = min(width, _WIDEST)
    notes = [Text(f"note: {warning}", style="yellow") for warning in report.warnings]
    return Group(window_bar(report, wide), legend(report, wide), both, *notes)


def pages_table(pages: Iterable[PageInfo]) -> Table:
    """Return a line per page."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=True)
    table.add_column("page", justify="right", no_wrap=True)
    table.add_column("where", no_wrap=True)
    for name in ("turn", "entries", "recalls"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("title", no_wrap=True, overflow="ellipsis", ratio=1)
    for page in pages:
        title = Text(visible(page.title or ""), no_wrap=True, overflow="ellipsis")
        where = page.where + (", pinned" if page.pinned else "")
        figures = (f"{page.turn:,}", f"{page.entries:,}", f"{page.recall_count:,}")
        table.add_row(f"#{page.index}", where, *figures, title)
    return table


def contexts_table(rows: Sequence[tuple[ContextRecord, int, int]]) -> Table:
    """Return a line per context: its record, its window, its compactions."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("context", overflow="fold")
    table.add_column("owner", overflow="fold")
    for name in ("messages", "pages", "turns", "window", "compactions"):
        table.add_column(name, justify="right", no_wrap=True)
    forks = any(record.parent is not None for record, _, _ in rows)
    if forks:
        table.add_column("fork of", overflow="fold")
    for record, window, compactions in rows:
        figures = (record.head, record.next_page - 1, turns_of(record), window, compactions)
        parent = [Text(f"{visible(record.parent)} at {record.base:,}" if record.parent else "")] if forks else []
        table.add_row(
            Text(visible(record.id)), Text(visible(record.owner)), *(f"{each:,}" for each in figures), *parent
        )
    return table


def turns_of(record: ContextRecord) -> int:
    """Return how many interactions a context has, the open one with them."""
    return record.turn + (record.open_page is not None)


def contents_of(messages: Iterable[Message]) -> list[Message]:
    """Return those of *messages* that are the Contents Page."""
    return [message for message in messages if text_of(message).startswith("<memci:contents ")]


def print_messages(console: Console, messages: Iterable[Message]) -> None:
    """Print *messages* so that a human can read them, each under its role."""
    for position, message in enumerate(messages):
        told = f" {message['tool_call_id']}" if message["role"] == "tool" else ""
        console.print(Text(f"── {position} {message['role']}{visible(told)}", style="bold cyan"))
        if text := text_of(message):
            console.print(Text(visible(text)), soft_wrap=True)
        for call in tool_calls(message):
            body = call.get("function") or call.get("custom") or {}
            arguments = body.get("arguments") or body.get("input") or ""
            console.print(
                Text(visible(f"{call['id']}: {call_name(call)}({arguments})"), style="yellow"), soft_wrap=True
            )
