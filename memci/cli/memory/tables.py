"""The tables of a memory: its queue, its episodes by heat, its chains, what is known, the graph.

    heat                since   visits   found   pages   episode
    ███████░░░   12.9     4.0        3       2       9   Flight to Oslo
                                                         2026-03-01 to 2026-03-02, flight, oslo, seat

This module knows nothing of where the values come from.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ...memory.backend import Concept, Work
from ...memory.inspect import HeldFact, LinkedPages, Overview, PageKey, QueuedPage, WarmEpisode
from ...memory.tiers.events import DailySummary, LifeEvent
from ...memory.tiers.profile import Profile
from ..output import visible

_T = TypeVar("_T")

MOST = 10
"""rows of a table"""
_BAR = 10
"""columns of the hottest episode's bar"""


def memory_tables(seen: Overview) -> RenderableType:
    """Return all that a memory holds, tier by tier."""
    parts: list[RenderableType] = [Text(summed_up(seen), style="bold")]
    parts += _section("short-term: what is handed over next first", seen.queue, queue_table)
    parts += _section("episodes, hottest first", seen.episodes, episodes_table)
    parts += _section("chains: pages that go on from one another", seen.chains, chains_table)
    parts += _section("known of the user", seen.user_facts, facts_table)
    parts += _section("known of what the assistant did", seen.assistant_facts, facts_table)
    parts += _section("events, latest first", seen.events[::-1], events_table)
    parts += _section("days, latest first", seen.days[::-1], days_table)
    parts += profile_lines(seen.profile)
    parts += work_lines(seen.work)
    if seen.counts.concepts:
        told = ", ".join(f"{visible(name)} {count:,}" for name, count in seen.concepts)
        figures = f"{seen.counts.concepts:,} concepts in {seen.counts.statements:,} statements"
        parts += [Text("\ngraph", style="bold"), Text(f"{figures}; told of most: {told}")]
        parts.append(Text("around one of them: --concept NAME", style="dim"))
    return Group(*parts)


def summed_up(seen: Overview) -> str:
    """Return a line on how many pages are where."""
    counts = seen.counts
    where = [
        f"{counts.observed:,} still in a window or listed",
        f"{counts.short:,} short-term",
        f"{counts.mid:,} in {counts.episodes:,} episodes",
    ]
    where += [f"{counts.evicted:,} of evicted episodes"] * bool(counts.evicted)
    return f"memory of {visible(seen.owner)}: {counts.pages:,} pages; {', '.join(where)}"


def queue_table(rows: Iterable[QueuedPage]) -> Table:
    """Return a line per page of the queue."""
    table = _table("page", "when", "title")
    for each in rows:
        table.add_row(_page(each.context, each.index), day(each.at), _line(each.title))
    return table


def episodes_table(rows: Sequence[WarmEpisode]) -> Table:
    """Return two lines per episode, with its heat as a bar."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=True)
    table.add_column("heat", no_wrap=True)
    for name in ("", "since", "visits", "found", "pages"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("episode", no_wrap=True, overflow="ellipsis", ratio=1)
    hottest = max((each.heat for each in rows), default=0.0)
    for each in rows:
        told = Text(visible(each.summary.partition("\n")[0]), no_wrap=True, overflow="ellipsis")
        told.append(f"\n{visible(', '.join([*_days(each.first, each.last), *each.keywords]))}", style="dim")
        figures = (f"{each.heat:.1f}", f"{each.heat_since_analysis:.1f}")
        used = (f"{each.visits:,}", f"{each.access_count:,}", f"{each.length:,}")
        table.add_row(heat_bar(each.heat, hottest), *figures, *used, told)
    return table


def heat_bar(heat: float, hottest: float) -> Text:
    """Return *heat* as a bar, as a share of the *hottest*."""
    filled = max(1, round(_BAR * heat / hottest)) if hottest > 0 < heat else 0
    return Text("█" * filled, style="red").append("░" * (_BAR - filled), style="dim")


def chains_table(rows: Iterable[LinkedPages]) -> Table:
    """Return a line per chain."""
    table = _table("pages", "chain")
    for each in rows:
        pages = list(_short(each.pages))
        shown = pages if len(pages) <= 4 else [*pages[:2], f"… {len(pages) - 3:,} more", pages[-1]]
        table.add_row(Text(" → ".join(shown)), _line(each.summary))
    return table


def facts_table(rows: Iterable[HeldFact]) -> Table:
    """Return a line per fact."""
    table = _table("page", "when", "fact")
    for each in rows:
        table.add_row(_page(each.context, each.index), day(each.at), Text(visible(each.text)))
    return table


def events_table(rows: Iterable[LifeEvent]) -> Table:
    """Return a line per event."""
    table = _table("page", "when", "weight", "who", "what")
    for each in rows:
        weight = f"{each.importance:.2f}"
        who, what = Text(visible(each.who)[:20]), Text(visible(each.what))
        table.add_row(_page(each.context, each.index), day(each.when), weight, who, what)
    return table


def days_table(rows: Iterable[DailySummary]) -> Table:
    """Return a line per day."""
    table = _table("day", "mood", "messages", "about")
    for each in rows:
        table.add_row(each.date, each.mood, f"{each.messages:,}", Text(visible(each.summary)))
    return table


def profile_lines(profile: Profile) -> Iterator[RenderableType]:
    """Yield the profile, as far as there is one."""
    if not (profile.version or profile.strategy or profile.conversations):
        return
    version = f", version {profile.version:,}" if profile.version else ""
    yield Text(f"\nprofile{version}, {profile.turns:,} turns", style="bold")
    told = [profile.text] if profile.text else []
    if not profile.text:  # it is made of the traits, where there is one
        for trait in profile.traits:
            page = f" ({page_name((trait.context, trait.index))})" if trait.context else ""
            told.append(f"{trait.dimension} {trait.level}: {trait.reason}{page}")
    told += [f"strategy: {profile.strategy}"] * bool(profile.strategy)
    told += [f"tags: {', '.join(profile.tags)}"] * bool(profile.tags)
    told += [f"conversation of {each.date or 'an unknown day'}: {each.summary}" for each in profile.conversations]
    yield from (indented(Text(visible(each))) for each in told)


def work_lines(work: Work) -> Iterator[RenderableType]:
    """Yield what a model did for the memory, by step, and what waits for it; nothing if there never was one."""
    if not (work.spent or work.waiting or work.set_aside or work.skipped):
        return
    counts = {"wait": work.waiting, "set aside": work.set_aside, "skipped": work.skipped}
    jobs = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
    yield Text(f"\na model's work{f'; jobs: {jobs}' if jobs else ''}", style="bold")
    if not work.spent:
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("step", no_wrap=True)
    for name in ("calls", "tokens in", "tokens out", "failed", "rejected"):
        table.add_column(name, justify="right", no_wrap=True)
    for step, each in sorted(work.spent.items(), key=lambda item: (-item[1].calls, item[0])):
        figures = (each.calls, each.prompt, each.completion, each.failed, each.rejected)
        table.add_row(visible(step), *(f"{count:,}" for count in figures))
    yield table


def indented(text: Text, columns: int = 2) -> Padding:
    """Return *text* with space to its left, on all its lines."""
    return Padding(text, (0, 0, 0, columns), expand=False)


def concepts_table(rows: Iterable[Concept]) -> Table:
    """Return a line per concept that is active."""
    table = _table("concept", "activation", "pages", "relations")
    for each in rows:
        pages, relations = Text(", ".join(_short(each.pages[:4]))), Text(visible("\n".join(each.relations)))
        table.add_row(Text(visible(each.name)), f"{each.activation:.2f}", pages, relations)
    return table


def page_name(page: PageKey) -> str:
    """Return how a page is called: its context and index."""
    context, index = page
    return f"{visible(context)} #{index}"


def day(at: float | None) -> str:
    """Return the day of a moment, "" if nobody said."""
    return "" if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"


def _days(first: float | None, last: float | None) -> Iterator[str]:
    if first is not None:
        yield day(first) if day(first) == day(last) else f"{day(first)} to {day(last)}"


def _short(pages: Sequence[PageKey]) -> Iterator[str]:
    """Yield names of pages, the context only where it changes."""
    last = None
    for context, index in pages:
        yield f"#{index}" if context == last else page_name((context, index))
        last = context


def _section(title: str, rows: Sequence[_T], table: Callable[[Sequence[_T]], Table]) -> Iterator[RenderableType]:
    if not rows:
        return
    yield Text(f"\n{title}", style="bold")
    yield table(rows[:MOST])
    if len(rows) > MOST:
        yield Text(f"and {len(rows) - MOST:,} more: --json lists them", style="dim")


def _page(context: str, index: int) -> Text:
    return Text(page_name((context, index)))


def _line(text: str) -> Text:
    return Text(visible(" ".join(text.split())), no_wrap=True, overflow="ellipsis")


def _table(*columns: str) -> Table:
    """Return a table whose last column takes what room is left."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=True)
    for name in columns[:-1]:
        right = name in {"weight", "messages", "activation"}
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    table.add_column(columns[-1], ratio=1, overflow="fold")
    return table
