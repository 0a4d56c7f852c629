"""The tables of a memory: its queue, its episodes by heat, its chains, facts, events, the graph.

    heat                since   visits   found   pages   episode
    ███████░░░   12.9     4.0        3       2       9   Flight to Oslo
                                                         2026-03-01 to 2026-03-02, flight, oslo, seat

This module knows nothing of where the values come from.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ...memory.backend import PageKey, Work
from ...memory.inspect import HeldFact, LinkedPages, Overview, QueuedPage, WarmEpisode
from ...memory.tiers.events import DailySummary, LifeEvent
from ...memory.tiers.profile import Profile
from ..output import visible
from ..tables import cell, clipped, numbers, table

_T = TypeVar("_T")

MOST = 10
"""rows of a table"""
_BAR = 10
"""columns of the hottest episode's bar"""


def memory_tables(seen: Overview, *, brief: bool = False) -> RenderableType:
    """Return all that a memory holds, tier by tier; *brief*: what is known, the profile and the episodes only."""
    parts: list[RenderableType] = [Text(summed_up(seen), style="bold")]
    facts = [
        *_section("known of the user", seen.user_facts, facts_table),
        *_section("known of what the assistant did", seen.assistant_facts, facts_table),
    ]
    episodes = _section("episodes, hottest first", seen.episodes, episodes_table)
    if brief:
        return Group(*parts, *facts, *profile_lines(seen.profile), *episodes)
    parts += _section("short-term: the page that moves next is first", seen.queue, queue_table)
    parts += [*episodes, *_section("chains: pages that continue one another", seen.chains, chains_table), *facts]
    parts += _section("events, latest first", seen.events[::-1], events_table)
    parts += _section("days, latest first", seen.days[::-1], days_table)
    parts += [*profile_lines(seen.profile), *work_lines(seen.work)]
    if seen.counts.concepts:
        names = ", ".join(f"{name} {count:,}" for name, count in seen.concepts)
        figures = f"{seen.counts.concepts:,} concepts in {seen.counts.statements:,} statements"
        parts += [Text("\ngraph", style="bold"), cell(f"{figures}; most statements: {names}")]
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
    made = table("page", "when", "title", fills="title")
    for each in rows:
        made.add_row(_page(each.context, each.index), day(each.at), clipped(each.title))
    return made


def episodes_table(rows: Sequence[WarmEpisode]) -> Table:
    """Return two lines per episode, with its heat as a bar."""
    figures = ("", "since", "visits", "found", "pages")
    made = table("heat", *figures, "episode", figures=figures, fills="episode")
    hottest = max((each.heat for each in rows), default=0.0)
    for each in rows:
        about = Text(visible(each.summary.partition("\n")[0]), no_wrap=True, overflow="ellipsis")
        about.append(f"\n{visible(', '.join([*_days(each.first, each.last), *each.keywords]))}", style="dim")
        heat = (f"{each.heat:.1f}", f"{each.heat_since_analysis:.1f}")
        use = numbers((each.visits, each.access_count, each.length))
        made.add_row(heat_bar(each.heat, hottest), *heat, *use, about)
    return made


def heat_bar(heat: float, hottest: float) -> Text:
    """Return *heat* as a bar, as a share of the *hottest*."""
    filled = max(1, round(_BAR * heat / hottest)) if hottest > 0 < heat else 0
    return Text("█" * filled, style="red").append("░" * (_BAR - filled), style="dim")


def chains_table(rows: Iterable[LinkedPages]) -> Table:
    """Return a line per chain."""
    made = table("pages", "chain", fills="chain")
    for each in rows:
        pages = list(_short(each.pages))
        shown = pages if len(pages) <= 4 else [*pages[:2], f"… {len(pages) - 3:,} more", pages[-1]]
        made.add_row(Text(" → ".join(shown)), clipped(each.summary))
    return made


def facts_table(rows: Iterable[HeldFact]) -> Table:
    """Return a line per fact."""
    made = table("page", "when", "fact", fills="fact")
    for each in rows:
        made.add_row(_page(each.context, each.index), day(each.at), cell(each.text))
    return made


def events_table(rows: Iterable[LifeEvent]) -> Table:
    """Return a line per event."""
    made = table("page", "when", "weight", "who", "what", figures=("weight",), fills="what")
    for each in rows:
        who = cell(each.who[:20])
        made.add_row(_page(each.context, each.index), day(each.when), f"{each.importance:.2f}", who, cell(each.what))
    return made


def days_table(rows: Iterable[DailySummary]) -> Table:
    """Return a line per day."""
    made = table("day", "mood", "messages", "about", figures=("messages",), fills="about")
    for each in rows:
        made.add_row(each.date, each.mood, f"{each.messages:,}", cell(each.summary))
    return made


def profile_lines(profile: Profile) -> Iterator[RenderableType]:
    """Yield the profile, as far as there is one."""
    if not (profile.version or profile.strategy or profile.conversations):
        return
    version = f", version {profile.version:,}" if profile.version else ""
    yield Text(f"\nprofile{version}, {profile.turns:,} turns", style="bold")
    lines = [profile.text] if profile.text else []
    if not profile.text:  # where there is a text, it was made of the traits
        for trait in profile.traits:
            page = f" ({page_name((trait.context, trait.index))})" if trait.context else ""
            lines.append(f"{trait.dimension} {trait.level}: {trait.reason}{page}")
    lines += [f"strategy: {profile.strategy}"] * bool(profile.strategy)
    lines += [f"tags: {', '.join(profile.tags)}"] * bool(profile.tags)
    lines += [f"conversation of {each.date or 'an unknown day'}: {each.summary}" for each in profile.conversations]
    yield from (indented(Text(visible(each))) for each in lines)


def work_lines(work: Work) -> Iterator[RenderableType]:
    """Yield what a model did for the memory, by step, and the jobs that wait; nothing if there never was a model."""
    if not (work.spent or work.waiting or work.set_aside or work.skipped):
        return
    jobs_by_state = {"wait": work.waiting, "set aside": work.set_aside, "skipped": work.skipped}
    jobs = ", ".join(f"{count:,} {name}" for name, count in jobs_by_state.items() if count)
    yield Text(f"\na model's work{f'; jobs: {jobs}' if jobs else ''}", style="bold")
    if not work.spent:
        return
    figures = ("calls", "tokens in", "tokens out", "failed", "rejected")
    made = table("step", *figures, figures=figures)
    for step, each in sorted(work.spent.items(), key=lambda item: (-item[1].calls, item[0])):
        counts = numbers((each.calls, each.prompt, each.completion, each.failed, each.rejected))
        made.add_row(cell(step), *counts)
    yield made


def indented(text: Text, columns: int = 2) -> Padding:
    """Return *text* with space to its left, on all its lines."""
    return Padding(text, (0, 0, 0, columns), expand=False)


def page_name(page: PageKey) -> str:
    """Return the name of a page: its context and index."""
    context, index = page
    return f"{visible(context)} #{index}"


def day(at: float | None) -> str:
    """Return the day of *at*, in seconds since 1970 UTC; "" if it is not known."""
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
        yield Text(f"and {len(rows) - MOST:,} more: memci inspect STORE --memory --json lists them", style="dim")


def _page(context: str, index: int) -> Text:
    return Text(page_name((context, index)))
