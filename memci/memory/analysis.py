"""Analysis: what lasts of what is warm.

    heat since the last analysis ≥ 5    ──▶  the episode's new pages tell facts, and a profile
    accessed ten times                  ──▶  its pages tell concepts and relations

The first road is MemoryOS's, the second the three-layer design's. Every hot episode is analysed, not only the hottest.
The pages that were sent are marked when facts and profile both came back, in the same transaction; a step that fails
changes nothing, and is tried again at the next upkeep, five times at most. This module knows nothing of how facts or
concepts are found.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..errors import MemciError
from ..storage import Storage
from .graph import Relation
from .heat import Warmth
from .items import drop, dumped, put
from .knowledge import Known
from .owner import Owner
from .profile import Profile
from .reading import raw_pages
from .store import MemoryStore, fetched

if TYPE_CHECKING:
    import apsw

    from .upkeep import Rules

SENT = 50
"""pages of one episode that are analysed at once"""
POISONED = 5
"""failures after which an episode is left alone"""
_LOG = logging.getLogger("memci")


def analyse(storage: Storage, store: MemoryStore, owner: Owner, rules: Rules, now: float) -> int:
    """Analyse the hottest episode that is due, and return how many of its pages; 0 if none is due."""
    due = _due(store, owner, rules, now)
    if due is None:
        return 0
    key, warmth, ids = due
    pages = list(raw_pages(storage, store, ids))
    told = [record for _, record in pages]
    with store.lock:
        owner.refresh()
        profile = owner.tiers.profile
    try:
        facts = [fact for record in told for fact in rules.facts(record)]
        text, traits = rules.profiler(profile, told)
    except Exception as error:  # noqa: BLE001 -- a step may be anybody's: its failure changes nothing
        _failed(store, owner, key, error)
        return len(ids)
    with store.change() as connection:
        owner.begin(connection)
        known = owner.tiers.episodes.get(key)
        numbers = {record.key: id_ for id_, record in pages}
        learned = [_learned(connection, owner, fact, numbers, now) for fact in facts]
        keep_profile(connection, owner, owner.tiers.profile.replaced(text, traits, now=now), ids)
        connection.executemany("UPDATE memory_page SET analyzed = 1 WHERE id = ?", [(each,) for each in ids])
        if known is not None:
            known = replace(known, warmth=known.warmth.analysed(warmth), version=known.version + 1)
            put(connection, owner.nr, "episode", dumped(known, without=["embedding"]), id=key, vector=known.embedding)
            owner.tiers.keep(key, known)
    owner.committed()
    assert all(learned), "each fact has an id"
    return len(ids)


def promote(storage: Storage, store: MemoryStore, owner: Owner, rules: Rules, now: float) -> int:  # noqa: ARG001
    """Let the pages of each episode that was accessed often tell the graph; return how many pages did."""
    with store.lock:
        owner.refresh()
        used = [key for key, each in owner.tiers.episodes.items() if each.access_count >= rules.accesses]
    count = 0
    for key in used:
        ids = [
            row[0]
            for row in store.read_rows(
                "SELECT id FROM memory_page WHERE episode = ? AND analyzed < 2 LIMIT ?", key, SENT
            )
        ]
        pages = list(raw_pages(storage, store, ids))
        try:
            told = [(id_, relation) for id_, record in pages for relation in rules.relations(record)]
        except Exception as error:  # noqa: BLE001 -- likewise
            _failed(store, owner, key, error)
            continue
        if ids:
            _promoted(store, owner, ids, told)
        count += len(ids)
    return count


def _due(store: MemoryStore, owner: Owner, rules: Rules, now: float) -> tuple[int, Warmth, list[int]] | None:
    """Return the hottest episode with pages to analyse: its id, its warmth, the pages."""
    with store.lock:
        owner.refresh()
        failed = owner.failures
        hot = [
            (each.warmth.since_analysis(now, rules.heat), -key)
            for key, each in owner.tiers.episodes.items()
            if each.warmth.visits + each.warmth.length > each.warmth.analysed_visits + each.warmth.analysed_length
            and failed.get(key, 0) < POISONED
            and key not in owner.tiers.failed
        ]
        for heat, negative in sorted(hot, reverse=True):
            if heat < rules.promoted:
                return None
            rows = store.read_rows(
                "SELECT id FROM memory_page WHERE episode = ? AND analyzed = 0 ORDER BY id LIMIT ?", -negative, SENT
            )
            if rows:
                return -negative, owner.tiers.episodes[-negative].warmth, [row[0] for row in rows]
    return None


def _learned(
    connection: apsw.Connection, owner: Owner, fact: Known, numbers: dict[tuple[str, int], int], now: float
) -> int:
    knowledge = owner.tiers.knows(fact.about)
    change = knowledge.change(fact, now)
    pages = [numbers[page] for page in change.fact.pages if page in numbers]
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


def _promoted(store: MemoryStore, owner: Owner, ids: Sequence[int], told: Sequence[tuple[int, Relation]]) -> None:
    with store.change() as connection:
        owner.begin(connection)
        left = {
            row[0]
            for each in ids
            for row in fetched(connection, "SELECT id FROM memory_page WHERE id = ? AND analyzed < 2", each)
        }
        fresh = [(id_, relation) for id_, relation in told if id_ in left]
        for id_, relation in fresh:
            put(connection, owner.nr, "relation", dumped(relation), pages=[id_])
        connection.executemany("UPDATE memory_page SET analyzed = 2 WHERE id = ?", [(each,) for each in left])
        owner.tiers.graph.merge(relation for _, relation in fresh)
    owner.committed()


def _failed(store: MemoryStore, owner: Owner, episode: int, error: Exception) -> None:
    """Note that a step failed for an episode: it is tried again at a later upkeep, a few times."""
    level = logging.WARNING if isinstance(error, MemciError) else logging.ERROR
    _LOG.log(level, "analysing an episode failed: %s", type(error).__name__)
    with store.lock:
        owner.failures[episode] = owner.failures.get(episode, 0) + 1
        owner.tiers.failed.add(episode)
