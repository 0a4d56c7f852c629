"""`memci search`: pages with the words that were found, facts and concepts.

It does not count as use, unless --count is given. Pages that the memory was not fed yet are found as well: a copy of
the memory is fed all pages of the owner then, and deleted after the search.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

from rich.text import Text
from typer import Argument, Option

from ...errors import InvalidSetting
from ...storage import Storage
from ...text.moments import full
from ..options import CONTEXT, Store, Str
from ..printer import Part, Result, visible
from ..stores import choose_owner, count_waiting, open_store
from ..tables import cell, day, indent, page_name
from .consolidate import feed

if TYPE_CHECKING:
    from ...memory import TieredMemory
    from ...memory.backend import Fact, FoundPage, Recollection

MARKED = "bold yellow"  # style of the words of the query
_TIERS = {
    "observed": "still in a window or listed",
    "short": "short-term",
    "mid": "in an episode",
    "evicted": "of an evicted episode",
}


def run_search(
    store: Store,
    query: Annotated[str, Argument(metavar="QUERY", help="What to look for, in the words that were probably used.")],
    *,
    context: Annotated[
        Str, Option(*CONTEXT, metavar="ID", help="Search as this context: without the pages in its window.")
    ] = None,
    owner: Annotated[Str, Option(metavar="NAME", help="In all contexts of this owner; default: the only one.")] = None,
    k: Annotated[int, Option("-k", min=1, metavar="N", help="How many pages at most.")] = 5,
    since: Annotated[Str, Option(metavar="DATE", help="Only pages from then on: 2026-03-01, or ISO 8601.")] = None,
    until: Annotated[Str, Option(metavar="DATE", help="Only pages until then; a date is its end.")] = None,
    count: Annotated[bool, Option("--count", help="Count it as use: the heat of what is found rises.")] = False,
) -> Result:
    """Find pages and facts in the memory. Changes nothing, unless --count."""
    from ...context.context import Context
    from ...tools.search_memory import bounded

    if not query.strip():
        raise InvalidSetting("QUERY", "expected what to look for, got an empty text")
    asked = bounded(query, since, until)
    with ExitStack() as stack:
        storage = stack.enter_context(open_store(store, write=count))
        name = choose_owner(storage, store, context=context, owner=owner)
        memory = _memory(stack, storage, name, count=count)
        if context is None:
            found = memory.search(query, k=k, since=asked.since, until=asked.until, wall=asked.wall)
        else:
            opened = stack.enter_context(Context.view(storage, context, memory=memory, owner=name))
            found = opened.search_memory(query, k=k, since=since, until=until)
        found = replace(found, pending=count_waiting(storage, memory))
    return Result({"store": store, "owner": name, "context": context, **asdict(found)}, found_lines(found, context))


def _memory(stack: ExitStack, storage: Storage, owner: str, *, count: bool) -> "TieredMemory":
    """Return the memory of *owner*; if pages wait for it, and none may be fed, a copy that was fed all of them."""
    from ...memory import TieredMemory

    memory = stack.enter_context(closing(TieredMemory(storage, owner=owner, read_only=not count)))
    if count or not count_waiting(storage, memory):
        return memory
    path = Path(stack.enter_context(TemporaryDirectory(prefix="memci-"))) / "memory.db"
    memory = stack.enter_context(closing(TieredMemory(storage, owner=owner, path=path)))
    for record in storage.contexts(owner=owner):
        feed(storage, record.id, memory)
    return memory


def found_lines(found: "Recollection", context: str | None) -> Iterator[Part]:
    """Yield *found* as lines: pages first, the words of the query marked; *context* is the one that searched."""
    for position, page in enumerate(found.pages, 1):
        yield _headline(position, page)
        yield indent(mark_words(page.text, found.query), 3)
        yield from (indent(Text("… ").append(mark_words(each.text, found.query)), 3) for each in page.more)
    yield from _facts("known of the user", found.user_facts, found.query)
    yield from _facts("known of what the assistant did", found.assistant_facts, found.query)
    if found.concepts:
        yield "related", "bold"
        for each in found.concepts:
            yield indent(cell(f"{each.name} {each.activation:.2f}: {'; '.join(each.relations)}"))
    if not found:
        yield cell(f"nothing was found for {found.query!r}")
    if context is not None:
        yield f"pages in the window of {context} were left out", "dim"
    if found.pending:
        yield f"{found.pending:,} pages are not searchable yet: memci consolidate feeds them", "yellow"


def mark_words(text: str, query: str) -> Text:
    """Return *text* with the words of *query* marked, also where they have another form. O(characters)."""
    from ...serve.query_words import find_words

    shown = Text(visible(text))
    for start, end in find_words(shown.plain, query):
        shown.stylize(MARKED, start, end)
    return shown


def _headline(position: int, page: "FoundPage") -> Text:
    who = f"{page.role} {visible(page.speaker)}" if page.speaker else page.role
    when = f", {full(page.said)}" if page.said is not None else ""
    line = Text(f"{position}. ")
    line.append(page_name(page.context, page.index), style="bold cyan")
    line.append(f" entry {page.entry}, {who}{page.whose and f', {page.whose}'}, turn {page.turn}{when}")
    return line.append(f" · {_TIERS[page.tier]} · {page.score:.2f}", style="dim")


def _facts(title: str, facts: Sequence["Fact"], query: str) -> Iterator[Part]:
    if facts:
        yield title, "bold"
    for each in facts:
        when = f", {day(each.at)}" if each.at is not None else ""
        source = f"  {page_name(each.context, each.index)}{when} · {each.score:.2f}"
        yield indent(mark_words(each.text, query).append(source, style="dim"))
