"""Noticing: what happened, day by day, and how the user is to be treated.

    every 5 closed pages   ──▶  events that matter, the day's summary
    every turn             ──▶  counters; every 10 a strategy from the last 20 messages
    six hours of silence   ──▶  the conversation before it is over: its summary stays with the profile

The pages that wait for it are rows of the store: a process that dies loses none. With a model, events are those that it
noted page by page, and the rest is made better by jobs that begin here. This module knows nothing of heat or episodes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from ...messages import Message
from ...storage import Storage
from ..backend import PageRecord
from ..owner import Change, Conflict, Owner
from ..repository.items import dumped, put
from ..repository.job_queue import enqueue
from ..repository.reading import QUARANTINED, raw_pages, there
from ..repository.store import MemoryStore, fetched
from ..tiers.events import INTERVAL, LEAST, DailySummary, LifeEvent, conversation, day_of
from ..tiers.profile import Profile
from ..tiers.traits import STRATEGY_MESSAGES
from . import page_notes as notes
from .fact_extraction import keep_profile
from .page_notes import Note, notes_of

if TYPE_CHECKING:
    import apsw

    from ..tiers.rules import Rules

MOST = 50
"""pages that are looked at in one go, and that the summary of a conversation is made of"""
SILENCE_SECONDS = 6 * 3600.0
"""after which what is said is another conversation"""
_RECENT = 2 * STRATEGY_MESSAGES
"""pages that the last messages are looked for in, at most"""

Told = Sequence[tuple[int, PageRecord]]
"""pages by their ids"""


class Ended(NamedTuple):
    """A conversation that is over."""

    context: int
    first: int
    """ids of its pages"""
    last: int


@dataclass(frozen=True, slots=True)
class _Talks:
    """Where the conversations of contexts begin."""

    before: Mapping[int, int | None]
    after: Mapping[int, int]
    ended: Sequence[Ended]


def waits(store: MemoryStore, owner: Owner, least: int = INTERVAL) -> bool:
    """Tell whether *least* pages closed that nobody looked at. O(least)."""
    return len(store.read_rows(_WAITING, owner.name, least)) >= least


def notice(
    storage: Storage,
    store: MemoryStore,
    owner: Owner,
    rules: Rules,
    now: float,
    *,
    modelled: bool = False,
    change: Change | None = None,
) -> int:
    """Look at the pages that closed lately, once there are five, and return how many. O(their characters).

    Args:
        storage: Where the pages are.
        store: Where the memory is.
        owner: Whose memory; no lock is held.
        rules: The steps.
        now: Seconds since 1970 UTC.
        modelled: Whether a model is to make better what is found here: its jobs are left.
        change: The transaction in which it is written.

    Raises:
        Conflict: If what it was reckoned from changed meanwhile.
    """
    rows = store.read_rows(_WAITING, owner.name, MOST)
    if len(rows) < INTERVAL:
        return 0
    waiting, fine = [row[0] for row in rows], [id_ for id_, analyzed in rows if not analyzed & QUARANTINED]
    pages = list(raw_pages(storage, store, fine))
    told = notes_of(store, fine)
    found = _events(pages, told, rules)
    talks = _talks(store, pages)
    over = [(each, list(spoken(storage, store, each))) for each in talks.ended]
    ends = [conversation([page for _, page in said], rules.zone) for _, said in over]
    older = [id_ for _, said in over for id_, _ in said]
    with store.lock:
        owner.refresh()
        before, known = owner.tiers.profile, dict(owner.tiers.days)
    days = _days(owner.name, known, pages, found, rules)
    counted = _counted(before, pages, now)
    strategy = rules.strategist(_said(pages)) if counted.strategy_due else None
    with (change or owner.change)() as connection:
        ground = store.read_rows(_WAITING, owner.name, len(waiting)) == rows and notes.still(connection, told)
        same = (before.turns, before.strategy_turns) == (
            owner.tiers.profile.turns,
            owner.tiers.profile.strategy_turns,
        )
        same = same and all(owner.tiers.days.get(day) == known.get(day) for day in days)
        if not ground or not same or not _as_before(connection, talks) or not there(connection, older):
            raise Conflict
        from_ = _sources(connection, pages, told, found)
        for event in found:
            key = put(connection, owner.nr, "event", dumped(event), pages=from_[event])
            owner.tiers.events[key] = event
        gone_by = _keep_days(connection, owner, days, from_)
        profile = _counted(owner.tiers.profile, pages, now)
        profile = profile if strategy is None else profile.treated(*strategy)
        for each in ends:
            profile = profile.remembered(each)
        keep_profile(connection, owner, profile, [*older, *fine])
        for context, talk in talks.after.items():
            connection.execute("UPDATE memory_context SET talk = ? WHERE nr = ?", (talk, context))
        connection.execute("UPDATE memory_owner SET noticed = ? WHERE nr = ?", (max(waiting), owner.nr))
        if modelled:
            for ended, _ in over:
                enqueue(connection, owner.nr, "conversation", ended.last, json.dumps(ended))
            if strategy is not None:
                enqueue(connection, owner.nr, "strategy", 0, json.dumps(max(fine)))
            for day in gone_by:
                enqueue(connection, owner.nr, "day", day, json.dumps(max(fine)))
    return len(waiting)


def spoken(storage: Storage, store: MemoryStore, ended: Ended) -> Told:
    """Return the pages of a conversation, the last `MOST` of them. O(their messages)."""
    found = store.read_rows(
        "SELECT id FROM memory_page WHERE context = ? AND id BETWEEN ? AND ? AND analyzed & ? = 0 "
        "ORDER BY id DESC LIMIT ?",
        *ended,
        QUARANTINED,
        MOST,
    )
    return list(raw_pages(storage, store, [row[0] for row in reversed(found)]))


def last_said(storage: Storage, store: MemoryStore, owner: int, until: int) -> tuple[list[int], list[Message]]:
    """Return the last messages up to the page *until* (its id), and the ids of their pages. O(their characters)."""
    rows = store.read_rows(
        "SELECT id FROM memory_page WHERE owner = ? AND id <= ? AND analyzed & ? = 0 ORDER BY id DESC LIMIT ?",
        owner,
        until,
        QUARANTINED,
        _RECENT,
    )
    pages: list[tuple[int, PageRecord]] = []
    for (id_,) in rows:
        pages[:0] = list(raw_pages(storage, store, [id_]))
        if len(_said(pages)) >= STRATEGY_MESSAGES:
            break
    return [id_ for id_, _ in pages], _said(pages)


_WAITING = """
SELECT g.id, g.analyzed & 4 FROM memory_owner AS o JOIN memory_page AS g ON g.owner = o.nr
WHERE o.name = ? AND g.id > o.noticed ORDER BY g.id LIMIT ?"""


def _events(pages: Told, told: Mapping[int, tuple[int, Note]], rules: Rules) -> list[LifeEvent]:
    """Return the events of *pages*, in order: those that a model noted, else those that the rules find."""
    plain = rules.events([record for id_, record in pages if id_ not in told])
    found: list[LifeEvent] = []
    for id_, record in pages:
        if id_ in told:
            found += [event for event in told[id_][1].events if event.importance > LEAST]
        else:
            found += [event for event in plain if (event.context, event.index) == record.key]
    return found


def _sources(
    connection: apsw.Connection, pages: Told, told: Mapping[int, tuple[int, Note]], found: Sequence[LifeEvent]
) -> dict[LifeEvent, list[int]]:
    """Return the pages that each event comes from: those of the note that told it, or its own."""
    numbers = {record.key: id_ for id_, record in pages}
    from_: dict[LifeEvent, list[int]] = {}
    for event in found:
        page = numbers[event.context, event.index]
        if page in told:
            rows = fetched(connection, "SELECT page FROM memory_evidence WHERE item = ?", told[page][0])
            from_[event] = [row[0] for row in rows]
        else:
            from_[event] = [page]
    return from_


def _days(
    name: str, known: Mapping[str, tuple[int, DailySummary]], pages: Told, found: Sequence[LifeEvent], rules: Rules
) -> dict[str, tuple[DailySummary, Told]]:
    """Return what becomes of the days of *pages*, each with its pages. O(their characters)."""
    dated = [(day_of(record.at, rules.zone), id_, record) for id_, record in pages if record.at is not None]
    days: dict[str, tuple[DailySummary, Told]] = {}
    for day, group in groupby(sorted(dated, key=lambda each: (each[0], each[1])), key=lambda each: each[0]):
        members = [(id_, record) for _, id_, record in group]
        keys = {record.key for _, record in members}
        own = [event for event in found if (event.context, event.index) in keys]
        summary = known[day][1] if day in known else DailySummary(day, agent=name)
        days[day] = summary.updated([record for _, record in members], own), members
    return days


def _keep_days(
    connection: apsw.Connection,
    owner: Owner,
    days: Mapping[str, tuple[DailySummary, Told]],
    from_: Mapping[LifeEvent, Sequence[int]],
) -> list[int]:
    """Store *days*, and return the ids of those that are over, with the one that was the latest until now."""
    known = owner.tiers.days
    touched = {*days, max(known, default="")}
    for day, (summary, members) in days.items():
        keys = {record.key for _, record in members}
        own = [pages for event, pages in from_.items() if (event.context, event.index) in keys]
        evidence = {id_ for id_, _ in members}.union(*own)
        id_ = put(
            connection, owner.nr, "day", dumped(summary), id=known[day][0] if day in known else None, pages=evidence
        )
        known[day] = id_, summary
    return [known[day][0] for day in sorted(touched - {"", max(known, default="")})]


def _counted(profile: Profile, pages: Told, now: float) -> Profile:
    """Return the profile after the turns of *pages*."""
    for _, page in pages:
        if any(message.get("role") == "user" for _, message in page.entries):
            profile = profile.counted(page.at if page.at is not None else now)
    return profile


def _said(pages: Told) -> list[Message]:
    """Return the last messages of *pages*."""
    messages: list[Message] = [message for _, page in pages for _, message in page.entries]
    return [message for message in messages if message.get("role") in {"user", "assistant"}][-STRATEGY_MESSAGES:]


def _talks(store: MemoryStore, pages: Told) -> _Talks:
    """Return the conversations that ended before one of *pages*, and where those begin that go on."""
    before: dict[int, int | None] = {}
    after: dict[int, int] = {}
    ended: list[Ended] = []
    for id_, page in pages:
        for context, known, latest, at in store.read_rows(_TALK, id_):
            before.setdefault(context, known)
            talk = after.get(context, known)
            silent = page.at is not None and at is not None and page.at - at > SILENCE_SECONDS
            if talk is None or silent:
                after[context] = id_
            if talk is not None and silent:
                ended.append(Ended(context, talk, latest))
    return _Talks(before, after, ended)


_TALK = """
SELECT c.nr, c.talk, b.id, b.at FROM memory_page AS g JOIN memory_context AS c ON c.nr = g.context
LEFT JOIN memory_page AS b ON b.id = (
    SELECT max(p.id) FROM memory_page AS p WHERE p.context = g.context AND p.id < g.id)
WHERE g.id = ?"""


def _as_before(connection: apsw.Connection, talks: _Talks) -> bool:
    """Tell whether the conversations begin where they did."""
    return all(
        fetched(connection, "SELECT talk FROM memory_context WHERE nr = ?", context) == [(talk,)]
        for context, talk in talks.before.items()
    )
