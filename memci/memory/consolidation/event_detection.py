"""Event detection: what happened, day by day, and how the user is to be treated.

    every 5 closed pages   ──▶  events that matter, the day's summary
    every turn             ──▶  counters; every 10 turns a strategy from the last 20 messages
    six hours of silence   ──▶  the conversation before is over: its summary stays with the profile

The pages that wait are rows of the store, so that a process that dies loses none. With a model, the events are those of
its notes, and its jobs for the days, the conversations and the strategy begin here. This module knows nothing of heat
or episodes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

from ...messages import Message
from ..backend import PageRecord
from ..owner import Conflict, Owner
from ..repository.items import dumped
from ..tiers.events import INTERVAL, LEAST, DailySummary, LifeEvent, conversation, day_of, events
from ..tiers.profile import STRATEGY_MESSAGES, Profile, strategy
from .fact_extraction import keep_profile
from .page_notes import Notes, notes_of, unchanged
from .step import StepRun

MOST = 50
"""pages that are looked at in one go, and that the summary of a conversation is made of"""
SILENCE_SECONDS = 6 * 3600.0
"""after which the next message begins another conversation"""
_RECENT = 2 * STRATEGY_MESSAGES
"""pages that the last messages are looked for in, at most"""

Pages = Sequence[tuple[int, PageRecord]]
"""pages with their ids"""


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


def events_due(owner: Owner, least: int = INTERVAL) -> bool:
    """Return whether the events of *least* closed pages were not detected yet. O(least)."""
    return len(owner.pages.new(least)) >= least


def detect_events(run: StepRun, subject: int = 0, body: str = "") -> int:  # noqa: ARG001 -- a step; there is one queue
    """Detect the events of the pages that closed lately, once there are five; return how many. O(their characters)."""
    owner, zone = run.owner, run.rules.zone
    new = owner.pages.new(MOST)
    if len(new) < INTERVAL:
        return 0
    ids = [id_ for id_, quarantined in new if not quarantined]
    pages = run.raw(ids)
    notes = notes_of(owner, ids)
    found = _events(pages, notes)
    talks = _talks(owner, pages)
    over = [(each, _spoken(run, each)) for each in talks.ended]
    ends = [conversation([page for _, page in said], zone) for _, said in over]
    older = [id_ for _, said in over for id_, _ in said]
    tiers = run.tiers()
    before, known = tiers.profile, dict(tiers.days)
    days = _days(run, known, pages, found)
    counted = _counted(before, pages, run.now)
    treatment = strategy(_said(pages)) if counted.strategy_due else None
    with run.change():
        now = owner.tiers.profile
        same = (before.turns, before.strategy_turns) == (now.turns, now.strategy_turns)
        same = same and all(owner.tiers.days.get(day) == known.get(day) for day in days)
        same = same and all(owner.pages.talk(context) == talk for context, talk in talks.before.items())
        same = same and owner.pages.new(len(new)) == new and unchanged(owner, notes) and owner.pages.all_there(older)
        if not same:
            raise Conflict
        evidence = _evidence(owner, pages, notes, found)
        for event in found:
            owner.tiers.events[owner.items.put("event", dumped(event), pages=evidence[event])] = event
        past = _keep_days(owner, days, evidence)
        profile = _counted(now, pages, run.now)
        profile = profile if treatment is None else profile.treated(*treatment)
        for each in ends:
            profile = profile.remembered(each)
        keep_profile(owner, profile, [*older, *ids])
        owner.pages.set_talks(talks.after)
        owner.pages.set_noticed(max(id_ for id_, _ in new))
        if run.session.has_model:
            for ended, _ in over:
                owner.jobs.enqueue("conversation", ended.last, json.dumps(ended))
            if treatment is not None:
                owner.jobs.enqueue("strategy", 0, json.dumps(max(ids)))
            for day in past:
                owner.jobs.enqueue("day", day, json.dumps(max(ids)))
    return len(new)


def summarize_day(run: StepRun, subject: int, body: str = "") -> int:  # noqa: ARG001 -- a step
    """Let a model summarize a day that is over. Without one, its keywords stand. O(its messages)."""
    owner = run.owner
    days = [(date, day) for date, (id_, day) in run.tiers().days.items() if id_ == subject]
    if run.chat is None or not days:
        return 0
    ((date, day),) = days
    ids = owner.items.evidence(subject)
    own = [page for _, page in run.raw(ids) if page.entries and page.at is not None]
    own = [page for page in own if day_of(page.at or 0.0, run.rules.zone) == date]
    if not own:
        return 0
    from .prompts.days import day as summarized

    after = summarized(run.chat, day, own)
    with run.change():
        if owner.tiers.days.get(date) != (subject, day) or not owner.pages.all_there(ids):
            raise Conflict
        owner.items.put("day", dumped(after), id=subject)
        owner.tiers.days[date] = subject, after
    return len(own)


def summarize_conversation(run: StepRun, subject: int, body: str) -> int:  # noqa: ARG001 -- a step
    """Let a model summarize a conversation that is over. Without one, its titles stand. O(its messages)."""
    owner = run.owner
    said = _spoken(run, Ended(*json.loads(body)))
    ids, pages = [id_ for id_, _ in said], [page for _, page in said]
    if run.chat is None or not pages:
        return 0
    from .prompts.days import conversation as summarized

    plain = conversation(pages, run.rules.zone)
    after = summarized(run.chat, pages, run.rules.zone)
    with run.change():
        known = owner.tiers.profile.conversations
        if plain in known:  # else a page of it was erased, or five others came since
            at = known.index(plain)
            both = (*known[:at], after, *known[at + 1 :])
            keep_profile(owner, replace(owner.tiers.profile, conversations=both), ids)
    return len(pages)


def revise_strategy(run: StepRun, subject: int, body: str) -> int:  # noqa: ARG001 -- a step
    """Let a model say how to treat the user, by the last messages. Without one, the rule's strategy stands."""
    owner = run.owner
    before = run.tiers().profile
    if run.chat is None or not owner.nr:
        return 0
    from .prompts.strategy import treated

    pages: list[tuple[int, PageRecord]] = []
    for id_ in owner.pages.until(int(json.loads(body)), _RECENT):
        pages[:0] = run.raw([id_])
        if len(_said(pages)) >= STRATEGY_MESSAGES:
            break
    ids = [id_ for id_, _ in pages]
    advice, tags = treated(run.chat, _said(pages))
    with run.change():
        profile = owner.tiers.profile
        same = (profile.strategy, profile.strategy_turns) == (before.strategy, before.strategy_turns)
        if not same or not owner.pages.all_there(ids):
            raise Conflict
        if advice:
            revised = replace(profile.treated(advice, tags), strategy_turns=profile.strategy_turns)
            keep_profile(owner, revised, ids)
    return len(pages)


def _spoken(run: StepRun, ended: Ended) -> list[tuple[int, PageRecord]]:
    """Return the pages of a conversation, the last `MOST` of them. O(their messages)."""
    return run.raw(run.owner.pages.between(*ended, MOST))


def _events(pages: Pages, notes: Notes) -> list[LifeEvent]:
    """Return the events of *pages*, in order: those that a model noted, else those that the rules find."""
    plain = events([record for id_, record in pages if id_ not in notes])
    found: list[LifeEvent] = []
    for id_, record in pages:
        if id_ in notes:
            found += [event for event in notes[id_][1].events if event.importance > LEAST]
        else:
            found += [event for event in plain if (event.context, event.index) == record.key]
    return found


def _evidence(owner: Owner, pages: Pages, notes: Notes, found: Sequence[LifeEvent]) -> dict[LifeEvent, list[int]]:
    """Return the pages that each event comes from: those of the note that says it, or its own."""
    numbers = {record.key: id_ for id_, record in pages}
    evidence: dict[LifeEvent, list[int]] = {}
    for event in found:
        page = numbers[event.context, event.index]
        evidence[event] = owner.items.evidence(notes[page][0]) if page in notes else [page]
    return evidence


def _days(
    run: StepRun, known: Mapping[str, tuple[int, DailySummary]], pages: Pages, found: Sequence[LifeEvent]
) -> dict[str, tuple[DailySummary, Pages]]:
    """Return what becomes of the days of *pages*, each with its pages. O(their characters)."""
    dated = [(day_of(record.at, run.rules.zone), id_, record) for id_, record in pages if record.at is not None]
    days: dict[str, tuple[DailySummary, Pages]] = {}
    for day, group in groupby(sorted(dated, key=lambda each: (each[0], each[1])), key=lambda each: each[0]):
        members = [(id_, record) for _, id_, record in group]
        keys = {record.key for _, record in members}
        own = [event for event in found if (event.context, event.index) in keys]
        summary = known[day][1] if day in known else DailySummary(day, agent=run.session.name)
        days[day] = summary.updated([record for _, record in members], own), members
    return days


def _keep_days(
    owner: Owner, days: Mapping[str, tuple[DailySummary, Pages]], evidence: Mapping[LifeEvent, Sequence[int]]
) -> list[int]:
    """Store *days*, and return the ids of those that are over, with the one that was the latest until now."""
    known = owner.tiers.days
    touched = {*days, max(known, default="")}
    for day, (summary, members) in days.items():
        keys = {record.key for _, record in members}
        own = [pages for event, pages in evidence.items() if (event.context, event.index) in keys]
        pages = {id_ for id_, _ in members}.union(*own)
        id_ = owner.items.put("day", dumped(summary), id=known[day][0] if day in known else None, pages=pages)
        known[day] = id_, summary
    return [known[day][0] for day in sorted(touched - {"", max(known, default="")})]


def _counted(profile: Profile, pages: Pages, now: float) -> Profile:
    """Return the profile after the turns of *pages*."""
    for _, page in pages:
        if any(message.get("role") == "user" for _, message in page.entries):
            profile = profile.counted(page.at if page.at is not None else now)
    return profile


def _said(pages: Pages) -> list[Message]:
    """Return the last messages of *pages*."""
    messages: list[Message] = [message for _, page in pages for _, message in page.entries]
    return [message for message in messages if message.get("role") in {"user", "assistant"}][-STRATEGY_MESSAGES:]


def _talks(owner: Owner, pages: Pages) -> _Talks:
    """Return the conversations that ended before one of *pages*, and where those begin that go on."""
    before: dict[int, int | None] = {}
    after: dict[int, int] = {}
    ended: list[Ended] = []
    for id_, page in pages:
        for context, known, latest, at in owner.pages.talks(id_):
            before.setdefault(context, known)
            talk = after.get(context, known)
            silent = page.at is not None and at is not None and page.at - at > SILENCE_SECONDS
            if talk is None or silent:
                after[context] = id_
            if talk is not None and silent and latest is not None:
                ended.append(Ended(context, talk, latest))
    return _Talks(before, after, ended)
