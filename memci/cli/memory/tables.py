"""The tables of a memory: its queue, its episodes by heat, its chains, facts, events, the graph.

    heat                since   visits   found   pages   episode
    ███████░░░   12.9     4.0        3       2       9   Flight to Oslo
                                                         2026-03-01 to 2026-03-02, flight, oslo, seat

This module knows nothing of where the values come from.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from ..output import many, visible
from ..tables import cell, clipped, table

if TYPE_CHECKING:
    from ...memory.backend import PageKey, Work
    from ...memory.inspect import Counts, HeldFact, Overview, QueuedPage, WarmEpisode
    from ...memory.tiers.events import LifeEvent
    from ...memory.tiers.profile import Profile

COUNTED = ("queue", "episodes", "facts", "events", "concepts")
"""the columns of what an owner has"""
MOST = 10
"""rows of a table"""
_BAR = 10
"""columns of the hottest episode's bar"""


def memory_tables(seen: "Overview", *, brief: bool = False) -> RenderableType:
    """Return all that a memory holds, tier by tier; *brief*: what is known, the profile and the episodes only."""
    parts: list[RenderableType] = [Text(summed_up(seen), style="bold")]
    facts = [*_facts("known of the user", seen.user_facts)]
    facts += _facts("known of what the assistant did", seen.assistant_facts)
    episodes = list(_episodes(seen.episodes))
    if brief:
        return Group(*parts, *facts, *profile_lines(seen.profile), *episodes)
    parts += _section(
        "short-term: the page that moves next is first",
        ("page", "when", "title"),
        [(_page(each), day(each.at), clipped(each.title)) for each in seen.queue],
    )
    chains = [(Text(" → ".join(_few(each.pages))), clipped(each.summary)) for each in seen.chains]
    parts += [*episodes, *_section("chains: pages that continue one another", ("pages", "chain"), chains), *facts]
    parts += _section(
        "events, latest first",
        ("page", "when", "weight", "who", "what"),
        [
            (_page(each), day(each.when), f"{each.importance:.2f}", each.who[:20], each.what)
            for each in reversed(seen.events)
        ],
        figures=("weight",),
    )
    parts += _section(
        "days, latest first",
        ("day", "mood", "messages", "about"),
        [(each.date, each.felt or "–", each.messages, each.summary) for each in reversed(seen.days)],
        figures=("messages",),
    )
    parts += [*profile_lines(seen.profile), *work_lines(seen.work)]
    if seen.counts.concepts:
        names = ", ".join(f"{name} {count:,}" for name, count in seen.concepts)
        figures = f"{seen.counts.concepts:,} concepts in {seen.counts.statements:,} statements"
        parts += [Text("\ngraph", style="bold"), cell(f"{figures}; most statements: {names}")]
    return Group(*parts)


def counted(own: "Counts") -> tuple[int, ...]:
    """Return the figures of the columns `COUNTED`."""
    return own.short, own.episodes, own.user_facts + own.assistant_facts, own.events, own.concepts


def summed_up(seen: "Overview") -> str:
    """Return a line on how many pages are where."""
    counts = seen.counts
    where = [
        f"{counts.observed:,} still in a window or listed",
        f"{counts.short:,} short-term",
        f"{counts.mid:,} in {counts.episodes:,} episodes",
    ]
    where += [f"{counts.evicted:,} of evicted episodes"] * bool(counts.evicted)
    return f"memory of {visible(seen.owner)}: {many(counts.pages, 'page')}; {', '.join(where)}"


def _facts(title: str, facts: Iterable["HeldFact"]) -> Iterator[RenderableType]:
    rows = [(_page(each), day(each.at), each.text) for each in facts]
    return _section(title, ("page", "when", "fact"), rows)


def _episodes(episodes: Sequence["WarmEpisode"]) -> Iterator[RenderableType]:
    """Yield a table with two lines per episode, and its heat as a bar."""
    figures = ("", "since", "visits", "found", "pages")
    hottest = max((each.heat for each in episodes), default=0.0)
    rows = []
    for each in episodes:
        about = Text(visible(each.summary.partition("\n")[0]), no_wrap=True, overflow="ellipsis")
        days = " to ".join(dict.fromkeys(filter(None, (day(each.first), day(each.last)))))
        about.append(f"\n{visible(', '.join([*([days] if days else []), *each.keywords]))}", style="dim")
        filled = max(1, round(_BAR * each.heat / hottest)) if each.heat > 0 else 0
        bar = Text("█" * filled, style="red").append("░" * (_BAR - filled), style="dim")
        heat = (bar, f"{each.heat:.1f}", f"{each.heat_since_analysis:.1f}")
        rows.append((*heat, each.visits, each.access_count, each.length, about))
    return _section("episodes, hottest first", ("heat", *figures, "episode"), rows, figures=figures)


def profile_lines(profile: "Profile") -> Iterator[RenderableType]:
    """Yield the profile, as far as there is one."""
    if not (profile.version or profile.strategy or profile.conversations):
        return
    version = f", version {profile.version:,}" if profile.version else ""
    yield Text(f"\nprofile{version}, {many(profile.turns, 'turn')}", style="bold")
    lines = [profile.text] if profile.text else []
    if not profile.text:  # where there is a text, it was made of the traits
        for trait in profile.traits:
            page = f" ({page_name(trait.context, trait.index)})" if trait.context else ""
            lines.append(f"{trait.dimension} {trait.level}: {trait.reason}{page}")
    lines += [f"strategy: {profile.strategy}"] * bool(profile.strategy)
    lines += [f"tags: {', '.join(profile.tags)}"] * bool(profile.tags)
    lines += [
        f"conversation of {each.date or 'an unknown day'}: {each.summary}"
        for each in profile.conversations
        if each.summary
    ]
    yield from (indented(Text(visible(each))) for each in lines)


def work_lines(work: "Work") -> Iterator[RenderableType]:
    """Yield what a model did for the memory, by step, and the jobs that wait; nothing if there never was a model."""
    if not (work.spent or work.waiting or work.set_aside or work.skipped):
        return
    jobs_by_state = {"wait": work.waiting, "set aside": work.set_aside, "skipped": work.skipped}
    jobs = ", ".join(f"{count:,} {name}" for name, count in jobs_by_state.items() if count)
    yield Text(f"\na model's work{f'; jobs: {jobs}' if jobs else ''}", style="bold")
    if not work.spent:
        return
    figures = ("calls", "tokens in", "tokens out", "failed", "rejected")
    rows = (
        (step, each.calls, each.prompt, each.completion, each.failed, each.rejected)
        for step, each in sorted(work.spent.items(), key=lambda item: (-item[1].calls, item[0]))
    )
    yield table("step", *figures, rows=rows, figures=figures)


def indented(text: Text, columns: int = 2) -> Padding:
    """Return *text* with space to its left, on all its lines."""
    return Padding(text, (0, 0, 0, columns), expand=False)


def page_name(context: str, index: int) -> str:
    """Return the name of a page: its context and index."""
    return f"{visible(context)} #{index}"


def day(at: float | None) -> str:
    """Return the day of *at*, in seconds since 1970 UTC; "" if it is not known."""
    return "" if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"


def _few(pages: Sequence["PageKey"]) -> list[str]:
    """Return names of pages, the context only where it changes; of many, the first two and the last."""
    names, last = [], None
    for context, index in pages:
        names.append(f"#{index}" if context == last else page_name(context, index))
        last = context
    return names if len(names) <= 4 else [*names[:2], f"… {len(names) - 3:,} more", names[-1]]


def _section(
    title: str, names: Sequence[str], rows: Sequence[Iterable[object]], *, figures: Collection[str] = ()
) -> Iterator[RenderableType]:
    """Yield a title and a table of the first *rows*, the last column as wide as it can be; nothing without rows."""
    if not rows:
        return
    yield Text(f"\n{title}", style="bold")
    yield table(*names, rows=rows[:MOST], figures=figures, fills=names[-1])
    if len(rows) > MOST:
        yield Text(f"and {len(rows) - MOST:,} more: memci inspect STORE --memory --json lists them", style="dim")


def _page(each: "QueuedPage | HeldFact | LifeEvent") -> str:
    return page_name(each.context, each.index)
