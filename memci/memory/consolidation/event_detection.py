"""Event detection: collects events, counts days, ends conversations, and queues jobs for a model's summaries of them.

    5 closed pages, or one that waited for hours   ──▶  the events in a model's notes, the counts of the day; without a
                                                        model, what the user states of themselves
    every turn                                     ──▶  counters; every 10 turns a job for the strategy
    a note that is written later                   ──▶  its events, at once
    six hours of silence, or `end_session`         ──▶  the end of a conversation: its summary is kept in the profile

If a conversation continues after all, by the times of its pages, its new summary replaces the first one. The pages that
wait are rows of the store, so that a process that dies loses none.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import tzinfo
from itertools import groupby
from math import inf
from typing import NamedTuple

from ...messages import Message
from ..backend import PageRecord
from ..owner import Owner, Session
from ..repository.passages import DAY, STRATEGY, TALK
from ..tiers.events import ConversationSummary, DailySummary, LifeEvent, conversation, day_of
from ..tiers.facts import facts_of
from .annotation import annotate
from .fact_extraction import keep_fact, keep_profile
from .step import Step, StepRun

MOST = 50  # pages of one run, and of the summary of a conversation: more would not fit into a prompt

Pages = Sequence[tuple[int, PageRecord]]  # pages with their ids


class Ended(NamedTuple):
    """A conversation that is over."""

    context: int  # the number of its context
    first: int  # ids of its pages
    last: int


def are_events_due(owner: Owner, least: int, until: float = -inf) -> bool:
    """Return whether *least* new pages wait, or a page of *until* or earlier, or a conversation is silent since then.

    O(least + contexts).
    """
    new = owner.pages.new(least)
    if len(new) >= least or until == -inf:
        return len(new) >= least
    if any(at is not None and at <= until for *_, at in new):
        return True
    return any(_is_silent(owner, name, at, until) for _, name, *_, at in owner.pages.open_conversations(None))


def detect_events(run: StepRun, ending: str | None = None) -> int:
    """Collect the events of new pages, if five wait or one waits for long, and summarize conversations that are over.

    End the conversation in the context *ending* in any case. Return the number of pages. O(their characters).
    """
    owner, rules = run.owner, run.session.rules
    zone, until = rules.tzinfo, run.now - rules.silence_seconds
    new = owner.pages.new(MOST)
    if ending is None and not are_events_due(owner, rules.event_interval, until):
        new = []
    ids = [id_ for id_, quarantined, _ in new if not quarantined]
    pages = run.session.read_pages(ids)
    begun, ended = talks = _find_conversations(run, pages, until, ending)
    if not new and not begun:
        return 0
    notes = owner.items.notes(ids)
    noted = [(id_, event) for id_, _ in pages if id_ in notes for event in notes[id_][1].events]
    told = [] if run.session.has_model else facts_of(pages, run.session.tiers().facts.values())
    found = [(id_, event) for id_, event in noted if event.importance > rules.event_importance]
    over = [(each, said) for each in ended if (said := _read_conversation(run, each))]
    ends = [_summarized(talk, [page for _, page in said], zone) for talk, said in over]
    older = [id_ for _, said in over for id_, _ in said]
    tiers = run.session.tiers()
    before, known = tiers.profile, dict(tiers.days)
    days = _update_days(run, known, pages, found)

    def same() -> bool:
        now = owner.tiers.profile
        return (
            (before.turns, before.strategy_turns) == (now.turns, now.strategy_turns)
            and all(owner.tiers.days.get(day) == known.get(day) for day in days)
            and owner.pages.new(len(new)) == new
            and _find_conversations(run, pages, until, ending) == talks
            and owner.items.notes(ids) == notes
            and owner.pages.all_there(older)
        )

    with run.write(same):
        for id_, fact in told:
            keep_fact(owner, fact, [id_], run.now)
        for id_, event in found:
            owner.keep(event, pages=[id_])
        past = _keep_days(owner, days)
        profile = owner.tiers.profile
        for _, page in pages:
            if any(message.get("role") == "user" for _, message in page.entries):
                profile = profile.counted(page.at if page.at is not None else run.now)
        treat = run.session.has_model and profile.turns - profile.strategy_turns >= rules.strategy_interval
        profile = replace(profile, strategy_turns=profile.turns) if treat else profile
        for each in ends:
            profile = profile.remembered(each, rules.conversations)
        keep_profile(owner, profile, [*older, *ids])
        owner.pages.set_conversations(begun)
        if new:
            owner.pages.set_detected(max(id_ for id_, *_ in new))
        if run.session.has_model:
            for talk in ended:
                owner.jobs.enqueue("conversation", talk.first, json.dumps(talk))
            if treat:
                owner.jobs.enqueue("strategy", 0, json.dumps(max(ids)))
            for day in past:
                owner.jobs.enqueue("day", day, json.dumps(max(ids)))
    return len(new)


def keep_late_events(run: StepRun, id_: int, page: PageRecord, events: Sequence[LifeEvent]) -> None:
    """Keep the *events* of a note within a change, if its page was counted before the note was written. O(events)."""
    owner, rules = run.owner, run.session.rules
    if (new := owner.pages.new(1)) and id_ >= new[0][0]:
        return
    known = owner.tiers.events.values()
    found = [each for each in events if each.importance > rules.event_importance and each not in known]
    for event in found:
        owner.keep(event, pages=[id_])
    date = "" if page.at is None else day_of(page.at, rules.tzinfo)
    if found and date in owner.tiers.days:
        key, day = owner.tiers.days[date]
        owner.keep(day.with_events(found), id=key)


def summarize_day(run: StepRun) -> int:
    """Have a model summarize a day that is over; without one, do nothing. O(its messages)."""
    owner, subject = run.owner, run.subject
    days = [(date, day) for date, (id_, day) in run.session.tiers().days.items() if id_ == subject]
    if run.chat is None or not days:
        return 0
    ((date, day),) = days
    ids = owner.items.evidence(subject)
    own = {id_: page for id_, page in run.session.read_pages(ids) if page.entries and page.at is not None}
    own = {id_: page for id_, page in own.items() if day_of(page.at or 0.0, run.session.rules.tzinfo) == date}
    if not own:
        return 0
    from .prompts.days import ask_for_day

    after = ask_for_day(run.chat, day, list(own.values()))
    gained = annotate([after.summary], own)
    with run.write(lambda: owner.tiers.days.get(date) == (subject, day) and owner.pages.all_there(ids)):
        owner.keep(after, id=subject)
        owner.annotate(DAY, gained)
    return len(own)


def summarize_conversation(run: StepRun) -> int:
    """Have a model summarize a conversation that is over; without one, its titles stay. O(its messages)."""
    owner, zone = run.owner, run.session.rules.tzinfo
    ended = Ended(*json.loads(run.body))
    said = _read_conversation(run, ended)
    ids, pages = [id_ for id_, _ in said], [page for _, page in said]
    if run.chat is None or not pages:
        return 0
    from .prompts.days import ask_for_conversation

    plain = _summarized(ended, pages, zone)
    after = ask_for_conversation(run.chat, plain, pages, zone)
    gained = annotate([after.summary, *after.key_topics, *after.notable_moments], dict(said))
    with run.write(lambda: True):
        # else a page of it was erased, or five other conversations followed
        if plain in owner.tiers.profile.conversations:
            keep_profile(owner, owner.tiers.profile.remembered(after, run.session.rules.conversations), ids)
            owner.annotate(TALK, gained)
    return len(pages)


def revise_strategy(run: StepRun) -> int:
    """Have a model write the strategy, from the last messages; without one, do nothing."""
    owner = run.owner
    before = run.session.tiers().profile
    if run.chat is None or not owner.nr:
        return 0
    from .prompts.strategy import ask_for_strategy

    most = run.session.rules.strategy_messages
    pages: list[tuple[int, PageRecord]] = []
    for id_ in owner.pages.until(int(json.loads(run.body)), 2 * most):  # most pages have two messages or more
        pages[:0] = run.session.read_pages([id_])
        if len(_last_messages(pages, most)) >= most:
            break
    ids = [id_ for id_, _ in pages]
    advice, tags = ask_for_strategy(run.chat, _last_messages(pages, most))
    gained = annotate([advice, *tags], dict(pages))

    def same() -> bool:
        now = owner.tiers.profile
        unrevised = (now.strategy, now.strategy_turns) == (before.strategy, before.strategy_turns)
        return unrevised and owner.pages.all_there(ids)

    with run.write(same):
        if advice:
            keep_profile(owner, replace(owner.tiers.profile, strategy=advice, tags=tags), ids)
            owner.annotate(STRATEGY, gained)
    return len(pages)


def _summarized(ended: Ended, pages: Sequence[PageRecord], zone: tzinfo) -> ConversationSummary:
    return replace(conversation(pages, zone), talk=ended.first, last=ended.last)


def _read_conversation(run: StepRun, ended: Ended) -> list[tuple[int, PageRecord]]:
    """Return the pages of a conversation, the last `MOST` of them. O(their messages)."""
    return run.session.read_pages(run.owner.pages.between(*ended, MOST))


def _update_days(
    run: StepRun, known: Mapping[str, tuple[int, DailySummary]], pages: Pages, found: Sequence[tuple[int, LifeEvent]]
) -> dict[str, tuple[DailySummary, Collection[int]]]:
    """Return the updated summaries of the days of *pages*, each with its pages. O(their characters)."""
    zone = run.session.rules.tzinfo
    dated = [(day_of(record.at, zone), id_, record) for id_, record in pages if record.at is not None]
    days: dict[str, tuple[DailySummary, Collection[int]]] = {}
    for day, group in groupby(sorted(dated, key=lambda each: each[:2]), key=lambda each: each[0]):
        members = {id_: record for _, id_, record in group}
        own = [event for id_, event in found if id_ in members]
        summary = known[day][1] if day in known else DailySummary(day, agent=run.session.name)
        summary = summary.updated(list(members.values()), own)
        days[day] = summary, list(members)
    return days


def _keep_days(owner: Owner, days: Mapping[str, tuple[DailySummary, Collection[int]]]) -> list[int]:
    """Store *days*, and return the ids of those that are over, including the one that was the latest before."""
    known = owner.tiers.days
    touched = {*days, max(known, default="")}
    for day, (summary, pages) in days.items():
        owner.keep(summary, id=known[day][0] if day in known else None, pages=pages)
    return [known[day][0] for day in sorted(touched - {"", max(known, default="")})]


def _last_messages(pages: Pages, most: int) -> list[Message]:
    messages = (message for _, page in pages for _, message in page.entries)
    return [message for message in messages if message.get("role") in {"user", "assistant"}][-most:]


def _is_silent(owner: Owner, context: str, at: float | None, until: float) -> bool:
    """Return whether *context*, whose last page is of *at*, has had no page since *until*."""
    return at is not None and at <= until and owner.fed.get(context, -inf) <= until


def _find_conversations(
    run: StepRun, pages: Pages, until: float, ending: str | None
) -> tuple[dict[int, int | None], list[Ended]]:
    """Return which conversations begin, continue or end with *pages*, or end since they have no page after *until*.

    First, by context, the first page of the current one (see `conversation_before`; None: it ended); then those ended.
    """
    rows, silence = run.owner.pages, run.session.rules.silence_seconds
    begun: dict[int, int | None] = {}
    ended: list[Ended] = []
    latest: dict[int, tuple[int, float | None]] = {}
    for id_, page in pages:
        for context, known, before, at in rows.conversation_before(id_):
            talk = begun.get(context, known)
            silent = page.at is not None and at is not None and page.at - at > silence
            if talk is not None and talk > 0 and silent and before is not None:
                ended.append(Ended(context, talk, before))
            begun[context] = id_ if talk is None or silent else abs(talk)
            latest[context] = id_, page.at
    for context, name, known, noted, when in rows.open_conversations(ending):
        talk = begun.get(context, known)
        last, at = latest.get(context, (noted, when))
        if talk is not None and (name == ending or (talk > 0 and _is_silent(run.owner, name, at, until))):
            begun[context] = None if name == ending else -talk
            ended += [Ended(context, talk, last)] if talk > 0 else []
    return begun, ended


def _due(session: Session, now: float) -> list[int]:
    return [0] * are_events_due(session.owner, session.rules.event_interval, now - session.rules.silence_seconds)


EVENTS = Step("events", detect_events, _due)
DAY_SUMMARIES = Step("day", summarize_day)
CONVERSATIONS = Step("conversation", summarize_conversation)
STRATEGIES = Step("strategy", revise_strategy)
