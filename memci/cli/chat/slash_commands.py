"""Slash commands: views and changes of the conversation while it runs.

Looking does not count as use: no page stays listed longer for it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from ...errors import InvalidSetting, PageNotFound
from ...messages import text_of
from ...storage import Storage
from ..memory.overview import memory_tables, read_memory, work_lines
from ..memory.search import found_lines
from ..printer import Part, many, visible
from ..tables import ReportTables, clip, message_lines, pages_table, table, with_title
from ..transfer import write_export

if TYPE_CHECKING:
    from ...context.context import Context
    from ...llm import Ledger

LATEST = 20  # pages that /pages lists: about one screen


@dataclass(frozen=True, slots=True)
class Talk:
    """The open conversation and its store, for slash commands."""

    path: str
    storage: Storage
    context: "Context"
    ledger: "Ledger"

    def view(self) -> "Context":
        """Return a read-only view of the context: reading it does not count as use."""
        from ...context.context import Context

        return Context.view(self.storage, self.context.id, owner=self.context.owner)


def is_command(text: str) -> bool:
    """Return whether *text* is a command: it begins with one slash; two stand for a message that begins with one."""
    return text.startswith("/") and not text.startswith("//")


def run_command(talk: Talk, text: str) -> list[Part] | None:
    """Run the command *text*, and return its output, or None if it ends the conversation."""
    name, _, rest = text.partition(" ")
    if name == "/quit":
        return None
    run = {usage.partition(" ")[0]: run for usage, (_, run) in COMMANDS.items()}.get(name)
    if run is None:
        known = "there is no such command: /help lists them; // begins a message with /"
        raise InvalidSetting(visible(name)[:40], known)
    return [*run(talk, rest.strip())]


def _help(_talk: Talk, _rest: str) -> Iterator[Part]:
    grid = Table.grid(padding=(0, 3))
    for usage, (meaning, _run) in COMMANDS.items():
        grid.add_row(Text(usage, style="bold", no_wrap=True), meaning)
    grid.add_row(Text("/quit", style="bold"), "leave; Ctrl-D and Ctrl-C do the same")
    yield grid


def _pages(talk: Talk, rest: str) -> Iterator[Part]:
    pages = list(talk.context.pages())
    shown = pages if rest == "all" else pages[-LATEST:]
    with talk.view() as context:
        yield pages_table([with_title(context, page) for page in shown])
    if len(shown) < len(pages):
        yield f"the latest {len(shown):,} of {len(pages):,}: /pages all", "dim"


def _page(talk: Talk, rest: str) -> Iterator[Part]:
    with talk.view() as context:
        yield from message_lines(context.recall_page(_number(rest, "/page")))


def _memory(talk: Talk, _rest: str) -> Iterator[Part]:
    seen, _ = read_memory(talk.storage, talk.context.owner)
    work = talk.context.report().work
    if not seen:
        yield "the memory is empty: a page is fed to it once the next one is open and the context is idle"
    else:
        yield from memory_tables(seen, brief=True)
    if work is not None:
        yield from work_lines(work)
    yield f"all of it: memci inspect {talk.path} --memory", "dim"


def _search(talk: Talk, rest: str) -> Iterator[Part]:
    if not rest:
        raise InvalidSetting("/search", "what for? /search WORDS")
    with talk.view() as context:
        found = context.search_memory(rest)
    yield from found_lines(replace(found, pending=0), talk.context.id)
    if found.pending:
        yield f"and {found.pending:,} of the latest pages are not searchable yet, but soon", "dim"


def _cost(talk: Talk, _rest: str) -> Iterator[Part]:
    total = talk.ledger.total
    if not total.calls:
        yield "no call of the model yet"
        return
    figures = ("calls", "prompt", "completion", "cached", "failed")
    rows = ((step, *(getattr(spent, name) for name in figures)) for step, spent in talk.ledger.steps.items())
    footer = ("in all", *(getattr(total, name) for name in figures))
    yield table("step", *figures, rows=rows, footer=footer, figures=figures)
    report = talk.context.report()
    cached = f"{report.cached:.1%} of what was sent began as the request before"
    yield f"{cached}; {many(report.compactions, 'compaction')}"


def _pin(talk: Talk, rest: str, name: str = "/pin") -> Iterator[Part]:
    index = _number(rest, name)
    (talk.context.pin if name == "/pin" else talk.context.unpin)(index)
    yield f"#{index} stays in the window" if name == "/pin" else f"#{index} may be archived again"


def _undo(talk: Talk, _rest: str) -> Iterator[Part]:
    try:
        taken = talk.context.undo()
    except PageNotFound:
        raise InvalidSetting("/undo", "there is nothing to take back") from None
    yield clip(f"taken back, {many(len(taken), 'message')}: {text_of(taken[0]) if taken else ''}")


def _archive(talk: Talk, _rest: str) -> Iterator[Part]:
    pages = talk.context.archive()
    archived = ", ".join(f"#{index}" for index in pages)
    yield f"archived: {archived}" if pages else "there is nothing to archive"


def _export(talk: Talk, rest: str) -> Iterable[Part]:
    target = rest or f"{''.join(each if each.isalnum() else '-' for each in talk.context.id)[:60]}.jsonl"
    return write_export(talk.storage, [talk.context.id], target).view


COMMANDS: dict[str, tuple[str, Callable[[Talk, str], Iterable[Part]]]] = {
    "/help": ("this list", _help),
    "/window": ("where the tokens and the pages are", lambda talk, _rest: [ReportTables(talk.context.report())]),
    "/pages [all]": (f"the latest {LATEST} pages, or all", _pages),
    "/page N": ("page N, word for word", _page),
    "/memory": ("what is known: facts, profile, episodes, jobs", _memory),
    "/search WORDS": ("what the memory finds, outside the window", _search),
    "/cost": ("calls and tokens of the model, by step", _cost),
    "/pin N": ("keep page N in the window", _pin),
    "/unpin N": ("let page N go again", partial(_pin, name="/unpin")),
    "/undo": ("take the last turn back", _undo),
    "/archive": ("archive old pages now", _archive),
    "/export [FILE]": ("write the conversation to a new file, for memci import", _export),
}
"""the slash commands: meaning and function of each"""


def _number(rest: str, name: str) -> int:
    digits = rest.removeprefix("#")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 15):
        raise InvalidSetting(name, f"which page? {name} 42")
    return int(digits)
