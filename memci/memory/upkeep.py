"""Upkeep: what is due is done, one step at a time.

    short-term full    ──▶  its oldest pages become linked, and join or open episodes
    5 pages closed     ──▶  events, the day's summary, counters; a conversation that ended
    an episode is hot  ──▶  facts and the profile; used often: its concepts enter the graph
    too many episodes  ──▶  the coldest leave; their pages stay findable by words

Each step reckons first and is one transaction then: a process that dies between two has lost nothing, and one whose
ground was changed by another process begins anew. There are no hidden timers: `upkeep` is called by the worker, by a
job, by tests. This module knows nothing of searching.
"""

import logging
from dataclasses import dataclass, field
from datetime import UTC, tzinfo

from ..errors import EmbeddingFailed
from ..storage import Storage
from .admission import EVICTED
from .analysis import analyse, promote
from .chains import Continuity, continuity
from .embedders import Embedder
from .embedding import embed
from .events import Events, events
from .graph import Extractor as RelationExtractor
from .graph import relations
from .handing import hand_over
from .heat import PAPER, PROMOTED, Heat, Order, coldest
from .items import drop
from .knowledge import Extractor as FactExtractor
from .knowledge import facts
from .noticing import notice
from .owner import Owner, owner_of
from .profile import Profiler, Strategist, profiled, strategy
from .store import MemoryStore
from .topics import Topics, topics

_LOG = logging.getLogger("memci")


@dataclass(frozen=True, slots=True)
class Rules:
    """Sizes and thresholds of the tiers, and the steps that a model may take over."""

    capacity: int = 10
    """pages of the short-term queue"""
    handover: int = 3
    """pages that leave it at once when it is full: a quarter, as the three-layer design's 50 of 200"""
    episodes: int = 2000
    """how many there may be (the paper: 200)"""
    threshold: float = 0.6
    """likeness at which a topic joins an episode (the paper)"""
    promoted: float = PROMOTED
    """heat since its last analysis at which an episode is analysed"""
    accesses: int = 10
    """accesses at which an episode's concepts enter the graph"""
    order: Order = "heat"
    """which episodes are evicted: the coldest, or those accessed least often"""
    heat: Heat = PAPER
    continuity: Continuity = field(default_factory=continuity)
    topics: Topics = topics
    facts: FactExtractor = facts
    profiler: Profiler = profiled
    strategist: Strategist = strategy
    relations: RelationExtractor = relations
    events: Events = events
    zone: tzinfo = UTC
    """where days begin, for daily summaries"""


def upkeep(storage: Storage, store: MemoryStore, name: str, embedder: Embedder, rules: Rules, now: float) -> int:
    """Do what is due for the owner *name*, and return how many pages moved. O(what is due).

    Raises:
        StorageError: If a page or the memory can't be read or written; what was done until then stays done.
    """
    if store.read_only or not store.there:
        return 0
    owner = owner_of(store, name)
    owner.tiers.failed.clear()
    moved = 0
    while batch := hand_over(storage, store, owner, embedder, rules, now):
        moved += batch
    while notice(storage, store, owner, rules, now):
        pass
    while analyse(storage, store, owner, rules, now):
        pass
    promote(storage, store, owner, rules, now)
    _embed(storage, store, owner, embedder)
    _evict(store, owner, rules, now)
    return moved


def _embed(storage: Storage, store: MemoryStore, owner: Owner, embedder: Embedder) -> None:
    """Embed what has no vector yet; an embedder that fails is asked again at the next upkeep."""
    try:
        while embed(storage, store, owner, embedder):
            pass
    except EmbeddingFailed as error:
        _LOG.warning("passages are found by words until they are embedded: %s", error)


def _evict(store: MemoryStore, owner: Owner, rules: Rules, now: float) -> int:
    """Let the coldest episodes go, if there are too many; never one that changed since the last upkeep."""
    with store.lock:
        owner.refresh()
        changed, owner.tiers.changed = owner.tiers.changed, set()
        if len(owner.tiers.episodes) <= rules.episodes:
            return 0
    with store.change() as connection:
        owner.begin(connection)
        warmths = {key: each.warmth for key, each in owner.tiers.episodes.items()}
        gone = coldest(
            warmths,
            rules.episodes,
            now=now,
            order=rules.order,
            weights=rules.heat,
            changed=changed | owner.tiers.changed,
        )
        for each in gone:
            connection.execute("UPDATE memory_page SET tier = ?, episode = NULL WHERE episode = ?", (EVICTED, each))
        drop(connection, gone)
    owner.committed()
    for each in gone:
        owner.tiers.keep(each, None)
    left = owner.tiers.episodes
    owner.tiers.episode_of = {page: each for page, each in owner.tiers.episode_of.items() if each in left}
    return len(gone)
