"""Fact extraction: what lasts of the episodes that are used.

    heat since the last analysis ≥ 5    ──▶  the episode's new pages tell facts, and a profile
    accessed ten times                  ──▶  its pages tell concepts and relations

The first is MemoryOS's rule, the second that of the three-layer design. Every hot episode is analysed, not only the
hottest. The pages that were read are marked in the transaction that stores facts and profile. A step that fails changes
nothing and is tried again at the next maintenance, five times at most. What was erased or changed while a step was
computed is never written. This module knows nothing of how facts or concepts are found.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import replace

from ...errors import MemciError
from ..backend import PageRecord
from ..owner import Conflict, Owner, Session
from ..repository.items import dumped
from ..repository.pages import FACTS, GRAPH
from ..tiers.episodes import Episode
from ..tiers.facts import Known, facts, sources, vocabulary
from ..tiers.graph import relations
from ..tiers.profile import Learned, Profile, profiled
from ..tiers.topics import page_text
from .step import Step, StepRun, by_rule

SENT = 50
"""pages of one episode that are analysed at once"""
POISONED = 5
"""failures after which an episode is left alone"""
_LOG = logging.getLogger("memci")


def analyse(session: Session, now: float) -> int:
    """Analyse the hottest episode that is due, by rule, and return how many of its pages; 0 if none is due."""
    owner = session.owner
    skipped = owner.failed | {key for key, count in owner.failures.items() if count >= POISONED}
    for key in hot(session, now, skipped):
        done = _tried(session, learn, now, key)
        return 1 if done is None else done
    return 0


def hot(session: Session, now: float, skipped: Collection[int] = (), *, every: bool = False) -> list[int]:
    """Return the hottest episode with pages to analyse, or *every* one, the hottest first. O(episodes)."""
    rules, pages = session.rules, session.owner.pages
    heats = [
        (each.warmth.since_analysis(now, rules.heat), -key)
        for key, each in list(session.tiers().episodes.items())
        if each.warmth.visits + each.warmth.length > each.warmth.analysed_visits + each.warmth.analysed_length
        and key not in skipped
    ]
    found: list[int] = []
    for heat, negative in sorted(heats, reverse=True):
        if heat < rules.promoted or (found and not every):
            break
        if pages.untold(-negative, FACTS, 1):
            found.append(-negative)
    return found


def learn(run: StepRun) -> int:
    """Derive facts and a profile from the new pages of an episode, and return how many pages. O(their characters)."""
    owner, subject = run.owner, run.subject
    tiers = run.tiers()
    profile, episode = tiers.profile, tiers.episodes.get(subject)
    ids = owner.pages.untold(subject, FACTS, SENT)
    if episode is None or not ids:
        return 0
    pages = run.raw(ids)
    learned = _learned(run, profile, [record for _, record in pages])
    pages = _read(pages, learned.sent)
    ids = [id_ for id_, _ in pages]
    numbers = {record.key: id_ for id_, record in pages}
    words = None if run.chat is None else {id_: vocabulary(page_text(record)) for id_, record in pages}
    with run.change():
        left = owner.pages.untold(subject, FACTS, SENT)
        if not set(left).issuperset(ids) or not _same(profile, owner.tiers.profile):
            raise Conflict
        for fact in learned.facts:
            claimed = [numbers[page] for page in fact.pages or ((fact.context, fact.index),) if page in numbers] or ids
            know(owner, fact, claimed if words is None else sources(fact.text, claimed, words), run.now)
        keep_profile(owner, owner.tiers.profile.replaced(learned.text, learned.traits, now=run.now), ids)
        owner.pages.mark(ids, FACTS)
        if len(left) == len(ids):
            known = owner.tiers.episodes[subject]
            known = replace(known, warmth=known.warmth.analysed(episode.warmth), version=known.version + 1)
            keep_episode(owner, subject, known)
    return len(ids)


def promote(session: Session, now: float) -> int:
    """Let the pages of each episode that was accessed often enter the graph, by rule; return how many pages did."""
    return sum(_tried(session, relate, now, key) or 0 for key in used(session))


def used(session: Session) -> list[int]:
    """Return the episodes that were accessed often and have pages that the graph does not know. O(episodes)."""
    episodes, pages = session.tiers().episodes, session.owner.pages
    often = [key for key, each in list(episodes.items()) if each.warmth.access_count >= session.rules.accesses]
    return [key for key in often if pages.untold(key, GRAPH, 1)]


def relate(run: StepRun) -> int:
    """Derive concepts and relations from the new pages of an episode, and return how many pages. O(characters)."""
    owner, subject = run.owner, run.subject
    ids = owner.pages.untold(subject, GRAPH, SENT)
    if not ids:
        return 0
    pages = run.raw(ids)
    if run.chat is None:
        found = [relation for _, record in pages for relation in relations(record)]
        words = None
    else:
        from .prompts.facts import related

        found, sent = related(run.chat, [record for _, record in pages])
        pages = _read(pages, sent)
        words = {id_: vocabulary(page_text(record)) for id_, record in pages}
    ids = [id_ for id_, _ in pages]
    numbers = {record.key: id_ for id_, record in pages}
    found = [relation for relation in found if relation.page in numbers]
    with run.change():
        if not set(owner.pages.untold(subject, GRAPH, SENT)).issuperset(ids):
            raise Conflict
        for relation in found:
            claimed = [numbers[relation.page]]
            text = f"{relation.source}\n{relation.kind}\n{relation.target}"
            evidence = claimed if words is None else sources(text, claimed, words)
            owner.items.put("relation", dumped(relation), pages=evidence)
        owner.pages.mark(ids, GRAPH)
        owner.tiers.graph.merge(found)
    return len(ids)


def know(owner: Owner, fact: Known, pages: Collection[int], now: float) -> int:
    """Store a fact, whose evidence are *pages* (their ids), and return its id."""
    knowledge = owner.tiers.knows(fact.about)
    update = knowledge.change(fact, now)
    body = dumped(update.fact, without=["vector"])
    key = owner.items.put("fact", body, id=update.id, vector=update.fact.vector, pages=pages)
    owner.items.drop(update.evicted)
    knowledge.apply(update, key)
    return key


def keep_profile(owner: Owner, profile: Profile, pages: Sequence[int]) -> None:
    """Store the profile if it is another one; *pages* are added to its evidence."""
    tiers = owner.tiers
    if profile is not tiers.profile:
        tiers.profile_id = owner.items.put("profile", dumped(profile), id=tiers.profile_id, pages=pages)
        tiers.profile = profile


def keep_episode(owner: Owner, key: int, episode: Episode) -> None:
    """Store an episode in place of what it was."""
    owner.items.put("episode", dumped(episode, without=["embedding"]), id=key, vector=episode.embedding)
    owner.tiers.keep(key, episode)


def _learned(run: StepRun, profile: Profile, pages: Sequence[PageRecord]) -> Learned:
    """Return what *pages* tell beside the profile that stands."""
    if run.chat is not None:
        from .prompts.facts import learned

        return learned(run.chat, profile, pages)
    text, traits = profiled(profile, pages)
    return Learned(text, tuple(traits), tuple(fact for page in pages for fact in facts(page)))


def _read(
    pages: Sequence[tuple[int, PageRecord]], sent: Collection[tuple[str, int]] | None
) -> list[tuple[int, PageRecord]]:
    """Return those of *pages* that were sent (None: all); a page without messages says nothing and counts as read."""
    return [(id_, page) for id_, page in pages if sent is None or page.key in sent or not page.entries]


def _same(some: Profile, other: Profile) -> bool:
    """Return whether two are the same version; turns that were counted meanwhile are no difference."""
    return (some.version, some.text, some.traits) == (other.version, other.text, other.traits)


def _tried(session: Session, step: Step, now: float, episode: int) -> int | None:
    """Do a step by rule, and return how many pages it handled; None if it is to be tried again later.

    If it failed, that is noted: it is tried at a later maintenance, a few times.
    """
    try:
        return by_rule(session, step, now, episode)
    except Conflict:
        return None
    except Exception as error:  # noqa: BLE001 -- whatever a page makes fail: the other episodes go on
        level = logging.WARNING if isinstance(error, MemciError) else logging.ERROR
        _LOG.log(level, "analysing an episode failed: %s", type(error).__name__)
        owner = session.owner
        owner.failures[episode] = owner.failures.get(episode, 0) + 1
        owner.failed.add(episode)
        return None
