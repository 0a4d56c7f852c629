"""Noticing: what happened, day by day, and how the user is to be treated.

    every 5 closed pages   ──▶  events that matter, the day's summary
    every turn             ──▶  counters; every 10 a strategy from the last 20 messages
    six hours of silence   ──▶  the conversation before it is over: its summary stays with the profile

The pages that wait for it are rows of the store: a process that dies loses none. This module knows nothing of heat or
episodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from ..messages import Message
from ..storage import Storage
from .analysis import keep_profile
from .backend import PageRecord
from .events import INTERVAL, DailySummary, Event, conversation, day_of
from .items import dumped, put
from .owner import Owner
from .profile import STRATEGY_MESSAGES, Profile
from .reading import raw_pages
from .store import MemoryStore

if TYPE_CHECKING:
    import apsw

    from .upkeep import Rules

MOST = 50
"""pages that are looked at in one go, and that the summary of a conversation is made of"""
SILENCE_SECONDS = 6 * 3600.0
"""after which what is said is another conversation"""


def notice(storage: Storage, store: MemoryStore, owner: Owner, rules: Rules, now: float) -> int:
    """Look at the pages that closed lately, once there are five, and return how many. O(their characters)."""
    waiting = [row[0] for row in store.read_rows(_WAITING, owner.name, MOST)]
    if len(waiting) < INTERVAL:
        return 0
    pages = list(raw_pages(storage, store, waiting))
    told = [record for _, record in pages]
    found = list(rules.events(told))
    with store.change() as connection:
        if [row[0] for row in store.read_rows(_WAITING, owner.name, len(waiting))] != waiting:
            return len(waiting)  # somebody else was faster: look again
        owner.begin(connection)
        numbers = {record.key: id_ for id_, record in pages}
        for event in found:
            key = put(connection, owner.nr, "event", dumped(event), pages=[numbers[event.context, event.index]])
            owner.tiers.events[key] = event
        _days(connection, owner, pages, found, rules)
        profile = _counted(owner.tiers.profile, told, rules, now)
        profile = _ended(storage, store, connection, profile, pages, rules)
        keep_profile(connection, owner, profile, waiting)
        connection.execute("UPDATE memory_owner SET noticed = ? WHERE nr = ?", (max(waiting), owner.nr))
    owner.committed()
    return len(waiting)


_WAITING = """
SELECT g.id FROM memory_owner AS o JOIN memory_page AS g ON g.owner = o.nr
WHERE o.name = ? AND g.id > o.noticed ORDER BY g.id LIMIT ?"""


def _days(
    connection: apsw.Connection,
    owner: Owner,
    pages: Sequence[tuple[int, PageRecord]],
    found: Sequence[Event],
    rules: Rules,
) -> None:
    dated = [(day_of(record.at, rules.zone), id_, record) for id_, record in pages if record.at is not None]
    for day, group in groupby(sorted(dated, key=lambda each: (each[0], each[1])), key=lambda each: each[0]):
        members = list(group)
        keys = {record.key for _, _, record in members}
        own = [event for event in found if (event.context, event.index) in keys]
        known, summary = owner.tiers.days.get(day, (None, DailySummary(day, agent=owner.name)))
        summary = summary.updated([record for _, _, record in members], own)
        known = put(connection, owner.nr, "day", dumped(summary), id=known, pages=[id_ for _, id_, _ in members])
        owner.tiers.days[day] = known, summary


def _counted(profile: Profile, pages: Sequence[PageRecord], rules: Rules, now: float) -> Profile:
    """Return the profile after the turns of *pages*, with a new strategy if one is due."""
    messages: list[Message] = [message for page in pages for _, message in page.entries]
    for page in pages:
        if any(message.get("role") == "user" for _, message in page.entries):
            profile = profile.counted(page.at if page.at is not None else now)
    if profile.strategy_due:
        said = [message for message in messages if message.get("role") in {"user", "assistant"}]
        profile = profile.treated(*rules.strategist(said[-STRATEGY_MESSAGES:]))
    return profile


def _ended(
    storage: Storage,
    store: MemoryStore,
    connection: apsw.Connection,
    profile: Profile,
    pages: Sequence[tuple[int, PageRecord]],
    rules: Rules,
) -> Profile:
    """Return the profile with the summaries of the conversations that ended before one of *pages*."""
    for id_, page in pages:
        rows = store.read_rows(
            "SELECT c.nr, c.talk, (SELECT b.at FROM memory_page AS b WHERE b.context = c.nr AND b.id < g.id "
            "ORDER BY b.id DESC LIMIT 1) FROM memory_page AS g JOIN memory_context AS c ON c.nr = g.context "
            "WHERE g.id = ?",
            id_,
        )
        context, talk, before = rows[0]
        silent = page.at is not None and before is not None and page.at - before > SILENCE_SECONDS
        if talk is None or silent:
            connection.execute("UPDATE memory_context SET talk = ? WHERE nr = ?", (id_, context))
        if talk is not None and silent:
            spoken = store.read_rows(
                "SELECT id FROM memory_page WHERE context = ? AND id >= ? AND id < ? ORDER BY id DESC LIMIT ?",
                context,
                talk,
                id_,
                MOST,
            )
            ids = [row[0] for row in reversed(spoken)]
            profile = profile.remembered(conversation([each for _, each in raw_pages(storage, store, ids)], rules.zone))
    return profile
