"""Fact extraction: derives long-term knowledge from episodes that are used.

    heat since the last analysis ≥ 5    ──▶  facts and a profile, from the episode's new pages
    accessed ten times                  ──▶  concepts and relations that a model finds in its pages

The first is the rule of MemoryOS, the second that of the three-layer design. Every hot episode is analysed, not only
the hottest. The transaction that stores the results marks the pages. A step that fails is repeated at the next
maintenance, at most five times.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from ...errors import CorruptRecord, MemciError, StorageError
from ..backend import PageKey, PageRecord
from ..owner import Owner, Session
from ..repository.pages import FACTS, GRAPH, QUARANTINED
from ..repository.passages import TRAITS
from ..tiers.facts import Known, digest_of, facts_of, learn_fact, sources, vocabulary
from ..tiers.graph import Relation
from ..tiers.profile import Findings, Profile, describe_traits
from ..tiers.rules import DEFAULTS
from ..tiers.topics import page_text
from .annotation import annotate
from .step import Step, StepRun, run_by_rule

SENT = 50  # pages of one episode in one analysis: more than fit into a prompt, so that one call is enough for most
POISONED = 5  # failures after which an episode is no longer analysed by this process: as many as a job may have
_LOG = logging.getLogger(__name__)


def analyse(session: Session, now: float) -> None:
    """Derive facts from the hot episodes, by rule. O(the characters of their new pages)."""
    failures = session.owner.failures
    for key in hot_episodes(session, now):
        try:
            while failures[key] < POISONED and run_by_rule(session, learn, now, key):
                pass
        except Exception as error:  # a page may cause any error, and the other episodes go on
            if isinstance(error, StorageError) and not isinstance(error, CorruptRecord):
                raise  # the store is busy or full, or was opened before fork(): no page is the cause
            level = logging.WARNING if isinstance(error, MemciError) else logging.ERROR
            _LOG.log(level, "analysing an episode failed: %s", type(error).__name__)
            failures[key] += 1


def hot_episodes(session: Session, now: float) -> list[int]:
    """Return the hot episodes that have pages to analyse, the hottest first. O(episodes)."""
    rules, pages = session.rules, session.owner.pages
    heats = [
        (each.warmth.since_analysis(now, rules), -key)
        for key, each in list(session.tiers().episodes.items())
        if each.warmth.visits + each.warmth.length > each.warmth.analysed_visits + each.warmth.analysed_length
    ]
    keys = [-key for heat, key in sorted(heats, reverse=True) if heat >= rules.promoted]
    return [key for key in keys if pages.unmarked(key, FACTS, 1)]


def learn(run: StepRun) -> int:
    """Derive facts and a profile from the new pages of an episode; return the number of pages. O(their characters)."""
    owner, subject = run.owner, run.subject
    tiers = run.session.tiers()
    profile, episode = tiers.profile, tiers.episodes.get(subject)
    ids = owner.pages.unmarked(subject, FACTS, SENT)
    if episode is None or not ids:
        return 0
    pages = run.session.read_pages(ids)
    learned = _extract(run, profile, [record for _, record in pages])
    read = _select_read(run, pages, learned.sent)
    new = [f"{each.dimension} {each.reason}" for each in learned.traits if each not in profile.traits]
    read = read._replace(shown=_words_shown(run, read, [*new, *(fact.text for fact in learned.facts)], learned.shown))
    gained = annotate(new, dict(pages)) if run.chat is not None else {}

    def unchanged() -> bool:
        now = owner.tiers.profile  # the counts of turns may differ
        same = (now.version, now.text, now.traits) == (profile.version, profile.text, profile.traits)
        # an erasure removes the facts of a page; what was said with one in view may have words of it
        shown = owner.tiers.facts.keys() >= learned.shown.keys()
        return same and shown and set(owner.pages.unmarked(subject, FACTS, SENT)).issuperset(read.ids)

    with run.write(unchanged):
        left, now = owner.pages.unmarked(subject, FACTS, SENT), owner.tiers.profile
        for fact in learned.facts:
            keep_fact(owner, fact, read.evidence(fact.text, [(fact.context, fact.index)]), run.now)
        behind = sorted({page for text in new for page in read.evidence(text, ())}.union(read.ids))
        keep_profile(owner, now.replaced(describe_traits(learned.traits), learned.traits, now=run.now), behind)
        owner.pages.mark(read.ids, FACTS)
        owner.annotate(TRAITS, gained)
        if len(left) == len(read.ids):
            known = owner.tiers.episodes[subject]
            owner.keep(replace(known, warmth=known.warmth.analysed(episode.warmth)), id=subject)
    return len(read.ids)


def used_episodes(session: Session) -> list[int]:
    """Return the episodes that were accessed often and have pages that are not in the graph. O(episodes)."""
    episodes, pages = session.tiers().episodes, session.owner.pages
    often = [key for key, each in list(episodes.items()) if each.warmth.access_count >= session.rules.accesses]
    return [key for key in often if pages.unmarked(key, GRAPH, 1)]


def relate(run: StepRun) -> int:
    """Have a model find concepts and relations in the new pages of an episode; return the number of pages.

    Without a model, the pages are marked all the same, so that they are not read again. O(characters).
    """
    owner, subject = run.owner, run.subject
    ids = owner.pages.unmarked(subject, GRAPH, SENT)
    if not ids:
        return 0
    pages = run.session.read_pages(ids)
    found: list[Relation] = []
    sent: Collection[PageKey] = [page.key for _, page in pages]
    if run.chat is not None:
        from .prompts.facts import ask_for_relations

        found, sent = ask_for_relations(run.chat, [record for _, record in pages])
    read = _select_read(run, pages, sent)
    with run.write(lambda: set(owner.pages.unmarked(subject, GRAPH, SENT)).issuperset(read.ids)):
        for relation in found:
            text = f"{relation.source}\n{relation.kind}\n{relation.target}"
            owner.keep(relation, pages=read.evidence(text, [relation.page]))
        owner.pages.mark(read.ids, GRAPH)
    return len(read.ids)


def keep_fact(owner: Owner, fact: Known, pages: Collection[int], now: float) -> None:
    """Store a fact with its evidence, *pages* (their ids), unless a program had it removed or replaced."""
    if not fact.authored and digest_of(fact.text) in owner.tiers.removed:
        return
    fact = replace(fact, pages=tuple(pages))
    fact, id_, evicted = learn_fact(owner.tiers.facts, fact, now, (owner.tiers.rules or DEFAULTS).facts)
    owner.drop(evicted)
    owner.keep(fact, id=id_, pages=pages)


def keep_saving(owner: Owner, saving: Known, now: float) -> None:
    """Store a fact that a program gave: as a fact if its page is there, else until the page is. Call it in a change."""
    page = owner.pages.find(saving.context, saving.index)
    if saving.text and page:
        at = page.at if saving.at is None else saving.at
        if not page.marks & QUARANTINED:
            keep_fact(owner, replace(saving, turn=page.turn, at=at), [page.id], now)
    elif saving not in owner.tiers.savings.values():
        owner.keep(saving)


def keep_profile(owner: Owner, profile: Profile, pages: Sequence[int]) -> None:
    """Store the profile if it differs; add *pages* to its evidence."""
    if profile is not owner.tiers.profile:
        owner.keep(profile, id=owner.tiers.profile_id, pages=pages)


ANALYSIS = Step("analysis", learn, hot_episodes)
CONCEPTS = Step("concepts", relate, lambda session, _now: used_episodes(session))


def _extract(run: StepRun, profile: Profile, pages: Sequence[PageRecord]) -> Findings:
    """Return the traits and facts that *pages* add to the current profile."""
    tiers = run.session.tiers()
    if run.chat is not None:
        from .prompts.facts import ask_for_facts

        return ask_for_facts(run.chat, profile, pages, tiers.facts_about("user"), run.session.rules.dimensions)
    found = tuple(fact for _, fact in facts_of(enumerate(pages), tiers.facts.values()))
    return Findings(profile.traits, found, tuple(page.key for page in pages))


class _Read(NamedTuple):
    """The pages that an analysis has read."""

    ids: list[int]
    numbers: dict[tuple[str, int], int]  # their ids by context and index
    words: dict[int, frozenset[str]] | None
    """their vocabularies, if a model read them: it may take something from another page than the one it names"""
    shown: Mapping[int, frozenset[str]] = MappingProxyType({})
    """the vocabularies of earlier pages, whose facts the model saw: it may take something from these, too"""

    def evidence(self, text: str, named: Iterable[tuple[str, int]]) -> list[int]:
        """Return the pages that *text* comes from: those *named* as its source, or all if none of them was read."""
        claimed = [self.numbers[page] for page in named if page in self.numbers] or self.ids
        if self.words is None:
            return claimed
        found = sources(text, claimed, self.words)
        if not self.shown:
            return found
        own = {page: self.words[page] for page in found}
        return sources(text, found, {**self.shown, **own})


def _words_shown(
    run: StepRun, read: _Read, texts: Iterable[str], shown: Mapping[int, Known]
) -> dict[int, frozenset[str]]:
    """Return the vocabularies of the pages of those facts *shown* that have words of *texts* that no page read has.

    A fact passes on what its pages say, so what is learned with it in view goes with them. O(characters of the pages).
    """
    if not shown or read.words is None:
        return {}
    foreign = frozenset().union(*map(vocabulary, texts)).difference(*read.words.values())
    told: dict[int, set[str]] = {}
    authored: dict[int, set[str]] = {}
    for id_, fact in shown.items():
        if not foreign.isdisjoint(own := vocabulary(fact.text)):
            for each in run.owner.items.evidence(id_):
                told.setdefault(each, set()).update(own)
                # a program's own words need not stand on the page that it named
                authored.setdefault(each, set()).update(own if fact.authored else ())
    found = {}
    for id_, page in run.session.read_pages(sorted(told.keys() - read.words.keys())):
        # a page that can't be read may have said all of it
        found[id_] = vocabulary(page_text(page)) | authored[id_] if page.entries else frozenset(told[id_])
    return found


def _select_read(run: StepRun, pages: Sequence[tuple[int, PageRecord]], sent: Collection[PageKey]) -> _Read:
    """Return those of *pages* that were *sent*; a page without messages counts as read."""
    own = [(id_, page) for id_, page in pages if page.key in sent or not page.entries]
    words = None if run.chat is None else {id_: vocabulary(page_text(page)) for id_, page in own}
    return _Read([id_ for id_, _ in own], {page.key: id_ for id_, page in own}, words)
