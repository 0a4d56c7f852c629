"""`memci inspect --memory`: the contents of a memory, tier by tier.

Looking does not count as use: no heat rises.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.text import Text

from ...storage import Storage
from ...storage.opening import name_of
from ..printer import Part, Result, many, visible
from ..stores import choose_owner, count_waiting, list_owners
from ..tables import cell, clip, day, indent, page_name, table

if TYPE_CHECKING:
    from ...memory.backend import PageKey, Work
    from ...memory.inspect import Counts, HeldFact, Overview, QueuedPage, WarmEpisode
    from ...memory.tiers.events import LifeEvent
    from ...memory.tiers.profile import Profile

COUNTED = ("queue", "episodes", "facts", "events", "concepts")  # columns of the table of owners
MOST = 10  # rows of a table, at most: several tables fit a screen; --json has all rows
_BAR = 10  # width of the hottest episode's bar, in characters


def inspect_memory(storage: Storage, path: str, *, context: str | None, owner: str | None) -> Result:
    """Return the contents of one memory: of *owner*, of the owner of *context*, or of the only owner.

    If none is named and there are several, return the figures of each.
    """
    names = list_owners(storage)
    if context is None and owner is None and len(names) != 1:
        return _compare(path, [read_memory(storage, name) for name in names])
    seen, waits = read_memory(storage, choose_owner(storage, path, context=context, owner=owner))
    facts = asdict(seen) | _figures(seen, waits) | {"store": path}
    facts["days"] = [asdict(each) | {"mood": each.felt} for each in seen.days]
    facts["concepts"] = [{"name": name, "statements": count} for name, count in seen.concepts]
    return Result(facts, _show(seen, waits))


def read_memory(storage: Storage, owner: str) -> tuple["Overview", int]:
    """Return the contents of the memory of *owner*, and how many pages wait for it."""
    from ...memory import TieredMemory
    from ...memory.inspect import overview

    with closing(TieredMemory(storage, owner=owner, read_only=True)) as memory:
        return overview(memory), count_waiting(storage, memory)


def _compare(path: str, rows: Sequence[tuple["Overview", int]]) -> Result:
    facts = {"store": path, "owners": [_figures(seen, waits) for seen, waits in rows]}
    if not rows:
        return Result(facts, [f"{name_of(path)} holds no contexts, and no memory"])
    figures = ("pages", *COUNTED, "waiting")
    cells = ((seen.owner, seen.counts.pages, *column_figures(seen.counts), waits) for seen, waits in rows)
    hint = ("one of them: memci inspect STORE --memory --owner NAME", "dim")
    return Result(facts, [table("owner", *figures, rows=cells, figures=figures), hint])


def _show(seen: "Overview", waits: int) -> Iterator[Part]:
    if not seen:
        why = "no page was closed yet"
        if waits:
            why = f"{waits:,} pages wait: a program feeds them when its context is idle, or memci consolidate does"
        yield f"{seen.owner}: the memory is empty: {why}"
        return
    yield from memory_tables(seen)
    if waits:
        yield f"\n{waits:,} pages wait: memci consolidate feeds them", "yellow"


def _figures(seen: "Overview", waits: int) -> dict[str, Any]:
    return {"owner": seen.owner, "counts": asdict(seen.counts), "waiting": waits}


def memory_tables(seen: "Overview", *, brief: bool = False) -> Iterator[Part]:
    """Yield the contents of a memory, tier by tier; *brief*: only facts, profile and episodes."""
    yield sum_up(seen), "bold"
    facts = [*_facts("known of the user", seen.user_facts)]
    facts += _facts("known of what the assistant did", seen.assistant_facts)
    if brief:
        yield from (*facts, *profile_lines(seen.profile), *_episodes(seen.episodes))
        return
    yield from _section(
        "short-term: the page that moves next is first",
        ("page", "when", "title"),
        [(_page(each), day(each.at), clip(each.title)) for each in seen.queue],
    )
    yield from _episodes(seen.episodes)
    chains = [(Text(" → ".join(_few(each.pages))), clip(each.summary)) for each in seen.chains]
    yield from _section("chains: pages that continue one another", ("pages", "chain"), chains)
    yield from facts
    yield from _section(
        "events, latest first",
        ("page", "when", "weight", "who", "what"),
        [
            (_page(each), day(each.when), f"{each.importance:.2f}", each.who[:20], each.what)
            for each in reversed(seen.events)
        ],
        figures=("weight",),
    )
    yield from _section(
        "days, latest first",
        ("day", "mood", "messages", "about"),
        [(each.date, each.felt or "–", each.messages, each.summary) for each in reversed(seen.days)],
        figures=("messages",),
    )
    yield from (*profile_lines(seen.profile), *work_lines(seen.work))
    if seen.counts.concepts:
        names = ", ".join(f"{name} {count:,}" for name, count in seen.concepts)
        figures = f"{seen.counts.concepts:,} concepts in {seen.counts.statements:,} statements"
        yield "\ngraph", "bold"
        yield cell(f"{figures}; most statements: {names}")


def column_figures(own: "Counts") -> tuple[int, ...]:
    """Return the figures of the columns `COUNTED`."""
    return own.short, own.episodes, own.user_facts + own.assistant_facts, own.events, own.concepts


def sum_up(seen: "Overview") -> str:
    """Return a line with the number of pages in each tier."""
    counts = seen.counts
    where = [
        f"{counts.observed:,} still in a window or listed",
        f"{counts.short:,} short-term",
        f"{counts.mid:,} in {counts.episodes:,} episodes",
    ]
    where += [f"{counts.evicted:,} of evicted episodes"] * bool(counts.evicted)
    return f"memory of {visible(seen.owner)}: {many(counts.pages, 'page')}; {', '.join(where)}"


def _facts(title: str, facts: Iterable["HeldFact"]) -> Iterator[Part]:
    rows = [(_page(each), day(each.at), each.text) for each in facts]
    return _section(title, ("page", "when", "fact"), rows)


def _episodes(episodes: Sequence["WarmEpisode"]) -> Iterator[Part]:
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


def profile_lines(profile: "Profile") -> Iterator[Part]:
    """Yield the profile, nothing if there is none."""
    if not (profile.version or profile.strategy or profile.conversations):
        return
    version = f", version {profile.version:,}" if profile.version else ""
    yield f"\nprofile{version}, {many(profile.turns, 'turn')}", "bold"
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
    yield from (indent(Text(visible(each))) for each in lines)


def work_lines(work: "Work") -> Iterator[Part]:
    """Yield the calls of a model for the memory, by step, and the jobs that wait; nothing without a model."""
    if not (work.spent or work.waiting or work.set_aside or work.skipped):
        return
    jobs_by_state = {"wait": work.waiting, "set aside": work.set_aside, "skipped": work.skipped}
    jobs = ", ".join(f"{count:,} {name}" for name, count in jobs_by_state.items() if count)
    yield f"\na model's work{f'; jobs: {jobs}' if jobs else ''}", "bold"
    if not work.spent:
        return
    figures = ("calls", "tokens in", "tokens out", "failed", "rejected")
    rows = (
        (step, each.calls, each.prompt, each.completion, each.failed, each.rejected)
        for step, each in sorted(work.spent.items(), key=lambda item: (-item[1].calls, item[0]))
    )
    yield table("step", *figures, rows=rows, figures=figures)


def _few(pages: Sequence["PageKey"]) -> list[str]:
    """Return names of pages, with the context where it changes; of many, only the first two and the last."""
    names, last = [], None
    for context, index in pages:
        names.append(f"#{index}" if context == last else page_name(context, index))
        last = context
    return names if len(names) <= 4 else [*names[:2], f"… {len(names) - 3:,} more", names[-1]]


def _section(
    title: str, names: Sequence[str], rows: Sequence[Iterable[object]], *, figures: Collection[str] = ()
) -> Iterator[Part]:
    """Yield a title and a table of the first *rows*, the last column as wide as it can be; nothing without rows."""
    if not rows:
        return
    yield f"\n{title}", "bold"
    yield table(*names, rows=rows[:MOST], figures=figures, fills=names[-1])
    if len(rows) > MOST:
        yield f"and {len(rows) - MOST:,} more: memci inspect STORE --memory --json lists them", "dim"


def _page(each: "QueuedPage | HeldFact | LifeEvent") -> str:
    return page_name(each.context, each.index)
