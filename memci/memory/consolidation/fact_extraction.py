"""Analysis: what lasts of what is warm.

    heat since the last analysis ≥ 5    ──▶  the episode's new pages tell facts, and a profile
    accessed ten times                  ──▶  its pages tell concepts and relations

The first road is MemoryOS's, the second the three-layer design's. Every hot episode is analysed, not only the hottest.
The pages that were sent are marked when facts and profile both came back, in the same transaction. A step that fails
changes nothing and is tried again at the next maintenance, five times at most. What was erased or changed while a step
was computed is never written. This module knows nothing of how facts or concepts are found.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...errors import MemciError
from ...storage import Storage
from ..backend import PageRecord
from ..owner import Change, Conflict, Owner
from ..repository.items import drop, dumped, put
from ..repository.reading import FACTS, GRAPH, QUARANTINED, raw_pages
from ..repository.store import MemoryStore, fetched
from ..tiers.chains import page_text
from ..tiers.facts import Known
from ..tiers.profile import Profile
from ..tiers.provenance import sources, vocabulary
from ..tiers.relations import Page, Relation
from ..tiers.traits import Trait

if TYPE_CHECKING:
    import apsw

    from ..tiers.rules import Rules

SENT = 50
"""pages of one episode that are analysed at once"""
POISONED = 5
"""failures after which an episode is left alone"""
_LOG = logging.getLogger("memci")


@dataclass(frozen=True, slots=True)
class Learned:
    """What pages tell of the user, and of what the assistant did."""

    facts: Sequence[Known] = ()
    text: str = ""
    """of a whole new profile"""
    traits: Sequence[Trait] = ()
    sent: Collection[Page] | None = None
    """the pages that were read; None: all of them"""


Learner = Callable[[Profile, Sequence[PageRecord]], Learned]
"""Return what pages tell, beside the profile that stands."""
Relater = Callable[[Sequence[PageRecord]], tuple[Sequence[Relation], Collection[Page]]]
"""Return what pages tell of concepts, and the pages that were read."""


def analyse(storage: Storage, store: MemoryStore, owner: Owner, rules: Rules, now: float) -> int:
    """Analyse the hottest episode that is due, and return how many of its pages; 0 if none is due."""
    skipped = owner.failed | {key for key, count in owner.failures.items() if count >= POISONED}
    for key in hot(store, owner, rules, now, skipped):
        try:
            return learn(storage, store, owner, rules, now, key)
        except Conflict:
            return 1
        except Exception as error:  # noqa: BLE001 -- a step may be anybody's: its failure changes nothing
            _failed(owner, key, error)
            return 1
    return 0


def hot(
    store: MemoryStore, owner: Owner, rules: Rules, now: float, skipped: Collection[int] = (), *, every: bool = False
) -> list[int]:
    """Return the hottest episode with pages to analyse, or *every* one, the hottest first. O(episodes)."""
    with store.lock:
        owner.refresh()
        heats = [
            (each.warmth.since_analysis(now, rules.heat), -key)
            for key, each in owner.tiers.episodes.items()
            if each.warmth.visits + each.warmth.length > each.warmth.analysed_visits + each.warmth.analysed_length
            and key not in skipped
        ]
    found: list[int] = []
    for heat, negative in sorted(heats, reverse=True):
        if heat < rules.promoted or (found and not every):
            break
        if store.read_rows(f"{_UNTOLD} LIMIT 1", -negative, FACTS | QUARANTINED):
            found.append(-negative)
    return found


def learn(
    storage: Storage,
    store: MemoryStore,
    owner: Owner,
    rules: Rules,
    now: float,
    key: int,
    *,
    learner: Learner | None = None,
    change: Change | None = None,
) -> int:
    """Let the pages of an episode that are new tell facts and a profile; return how many did. O(their characters).

    Args:
        storage: Where the pages are.
        store: Where the memory is.
        owner: Whose memory; no lock is held.
        rules: Thresholds and steps.
        now: Seconds since 1970 UTC.
        key: The episode.
        learner: A model that learns; default: the facts and the profiler of the rules.
        change: The transaction in which it is written.

    Raises:
        Conflict: If a page or the profile changed meanwhile.
    """
    with store.lock:
        owner.refresh()
        profile, episode = owner.tiers.profile, owner.tiers.episodes.get(key)
    ids = [row[0] for row in store.read_rows(f"{_UNTOLD} LIMIT ?", key, FACTS | QUARANTINED, SENT)]
    if episode is None or not ids:
        return 0
    pages = list(raw_pages(storage, store, ids))
    learned = (learner or _plain(rules))(profile, [record for _, record in pages])
    pages = _read(pages, learned.sent)
    ids = [id_ for id_, _ in pages]
    words = {id_: vocabulary(page_text(record)) for id_, record in pages} if learner is not None else None
    with (change or owner.change)() as connection:
        left = fetched(connection, f"{_UNTOLD} LIMIT ?", key, FACTS | QUARANTINED, SENT)
        if not {row[0] for row in left}.issuperset(ids) or not _same(profile, owner.tiers.profile):
            raise Conflict
        numbers = {record.key: id_ for id_, record in pages}
        for fact in learned.facts:
            claimed = [numbers[page] for page in fact.pages or ((fact.context, fact.index),) if page in numbers] or ids
            know(connection, owner, fact, claimed if words is None else sources(fact.text, claimed, words), now)
        keep_profile(connection, owner, owner.tiers.profile.replaced(learned.text, learned.traits, now=now), ids)
        connection.executemany("UPDATE memory_page SET analyzed = analyzed | ? WHERE id = ?", [(FACTS, n) for n in ids])
        known = owner.tiers.episodes[key]
        if len(left) == len(ids):
            known = replace(known, warmth=known.warmth.analysed(episode.warmth), version=known.version + 1)
            put(connection, owner.nr, "episode", dumped(known, without=["embedding"]), id=key, vector=known.embedding)
            owner.tiers.keep(key, known)
    return len(ids)


def promote(storage: Storage, store: MemoryStore, owner: Owner, rules: Rules) -> int:
    """Let the pages of each episode that was accessed often tell the graph; return how many pages did."""
    count = 0
    for key in used(store, owner, rules):
        try:
            count += relate(storage, store, owner, rules, key)
        except Conflict:  # what is left of it is due still
            continue
        except Exception as error:  # noqa: BLE001 -- likewise
            _failed(owner, key, error)
    return count


def used(store: MemoryStore, owner: Owner, rules: Rules) -> list[int]:
    """Return the episodes that were accessed often, and have pages that the graph does not know. O(episodes)."""
    with store.lock:
        owner.refresh()
        often = [key for key, each in owner.tiers.episodes.items() if each.access_count >= rules.accesses]
    return [key for key in often if store.read_rows(f"{_UNTOLD} LIMIT 1", key, GRAPH | QUARANTINED)]


def relate(
    storage: Storage,
    store: MemoryStore,
    owner: Owner,
    rules: Rules,
    key: int,
    *,
    relater: Relater | None = None,
    change: Change | None = None,
) -> int:
    """Let the pages of an episode that are new tell the graph; return how many did. Arguments are those of `learn`.

    Raises:
        Conflict: If a page changed meanwhile.
    """
    ids = [row[0] for row in store.read_rows(f"{_UNTOLD} LIMIT ?", key, GRAPH | QUARANTINED, SENT)]
    if not ids:
        return 0
    pages = list(raw_pages(storage, store, ids))
    if relater is None:
        told: Sequence[Relation] = [relation for _, record in pages for relation in rules.relations(record)]
    else:
        told, sent = relater([record for _, record in pages])
        pages = _read(pages, sent)
    ids = [id_ for id_, _ in pages]
    numbers = {record.key: id_ for id_, record in pages}
    words = {id_: vocabulary(page_text(record)) for id_, record in pages} if relater is not None else None
    with (change or owner.change)() as connection:
        left = {row[0] for row in fetched(connection, f"{_UNTOLD} LIMIT ?", key, GRAPH | QUARANTINED, SENT)}
        if not left.issuperset(ids):
            raise Conflict
        for relation in told:
            if relation.page in numbers:
                claimed = [numbers[relation.page]]
                text = f"{relation.source}\n{relation.kind}\n{relation.target}"
                from_ = claimed if words is None else sources(text, claimed, words)
                put(connection, owner.nr, "relation", dumped(relation), pages=from_)
        connection.executemany("UPDATE memory_page SET analyzed = analyzed | ? WHERE id = ?", [(GRAPH, n) for n in ids])
        owner.tiers.graph.merge(relation for relation in told if relation.page in numbers)
    return len(ids)


def know(connection: apsw.Connection, owner: Owner, fact: Known, pages: Collection[int], now: float) -> int:
    """Learn a fact, whose evidence are *pages* (their ids), and return its id."""
    knowledge = owner.tiers.knows(fact.about)
    change = knowledge.change(fact, now)
    body = dumped(change.fact, without=["vector"])
    key = put(connection, owner.nr, "fact", body, id=change.id, vector=change.fact.vector, pages=pages)
    drop(connection, change.evicted)
    knowledge.apply(change, key)
    return key


def keep_profile(connection: apsw.Connection, owner: Owner, profile: Profile, pages: Sequence[int]) -> None:
    """Store the profile, if it is another one; *pages* are what it comes from now, too."""
    tiers = owner.tiers
    if profile is tiers.profile:
        return
    tiers.profile_id = put(connection, owner.nr, "profile", dumped(profile), id=tiers.profile_id, pages=pages)
    tiers.profile = profile


_UNTOLD = "SELECT id FROM memory_page WHERE episode = ? AND analyzed & ? = 0 ORDER BY id"


def _plain(rules: Rules) -> Learner:
    def learner(profile: Profile, pages: Sequence[PageRecord]) -> Learned:
        facts = [fact for page in pages for fact in rules.facts(page)]
        return Learned(facts, *rules.profiler(profile, pages))

    return learner


def _read(pages: Sequence[tuple[int, PageRecord]], sent: Collection[Page] | None) -> list[tuple[int, PageRecord]]:
    """Return those of *pages* that were read; one without a message says nothing, and counts as read."""
    return [(id_, page) for id_, page in pages if sent is None or page.key in sent or not page.entries]


def _same(some: Profile, other: Profile) -> bool:
    """Tell whether two are the same version; turns that were counted meanwhile are no difference."""
    return (some.version, some.text, some.traits) == (other.version, other.text, other.traits)


def _failed(owner: Owner, episode: int, error: Exception) -> None:
    """Note that a step failed for an episode: it is tried again at a later maintenance, a few times."""
    level = logging.WARNING if isinstance(error, MemciError) else logging.ERROR
    _LOG.log(level, "analysing an episode failed: %s", type(error).__name__)
    owner.failures[episode] = owner.failures.get(episode, 0) + 1
    owner.failed.add(episode)
