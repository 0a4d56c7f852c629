"""Upkeep: what is due is done, one step at a time.

    short-term full    ──▶  its oldest pages become linked, and join or open episodes
    5 pages closed     ──▶  events, the day's summary, counters; a conversation that ended
    an episode is hot  ──▶  facts and the profile; used often: its concepts enter the graph
    too many episodes  ──▶  the coldest leave; their pages stay findable by words

Each step computes first and then writes in one transaction. A process that dies between two steps loses nothing, and a
step whose data was changed by another process starts again. A step that a model does is left to a job: maintenance
never waits for a model. There are no hidden timers: the worker, a job or a test calls `maintain`. This module knows
nothing of searching.
"""

import logging
from collections.abc import Callable

from ...errors import EmbeddingFailed
from ...storage import Storage
from ..ingest import SELECT_PAGE
from ..owner import Conflict, Owner, owner_of
from ..repository import job_queue as jobs
from ..repository.items import drop
from ..repository.reading import QUARANTINED
from ..repository.store import MemoryStore
from ..repository.tier import EVICTED
from ..retrieval.embedders import Embedder
from ..retrieval.passage_vectors import embed
from ..tiers.events import INTERVAL
from ..tiers.facts import About, Known
from ..tiers.heat import coldest
from ..tiers.rules import Rules
from .episode_building import full, hand_over
from .event_detection import MOST, notice, waits
from .fact_extraction import analyse, hot, know, promote, used

_LOG = logging.getLogger("memci")


def maintain(
    storage: Storage,
    store: MemoryStore,
    name: str,
    embedder: Embedder,
    rules: Rules,
    now: float,
    *,
    modelled: bool = False,
) -> int:
    """Do what is due for the owner *name*, and return how many pages moved. O(what is due).

    Args:
        storage: Where the pages are.
        store: Where the memory is.
        name: Whose memory.
        embedder: Of passages.
        rules: Sizes, thresholds and steps.
        now: Seconds since 1970 UTC.
        modelled: Whether a model does the steps that it can: jobs are left for it. It is not waited for without end:
            a queue of twice its capacity is handed over without it.

    Raises:
        StorageError: If a page or the memory can't be read or written; what was done until then stays done.
    """
    if store.read_only or not store.there:
        return 0
    owner = owner_of(store, name)
    owner.failed.clear()
    moved = 0
    patience = 2 if modelled else 1
    while full(store, owner, patience * rules.capacity):
        moved += _again(lambda: hand_over(storage, store, owner, embedder, rules, now))
    while waits(store, owner, MOST if modelled else INTERVAL):
        _again(lambda: notice(storage, store, owner, rules, now, modelled=modelled))
    saved(store, owner, now)
    if modelled:
        schedule(store, owner, rules, now)
    else:
        while analyse(storage, store, owner, rules, now):
            pass
        promote(storage, store, owner, rules)
    _embed(storage, store, owner, embedder)
    _evict(store, owner, rules, now)
    return moved


def schedule(store: MemoryStore, owner: Owner, rules: Rules, now: float) -> None:
    """Leave jobs for what is due and a model does. O(episodes)."""
    with store.lock:
        owner.refresh()
        grown = [key for key, each in owner.tiers.episodes.items() if each.grown]
    wanted = [("handover", 0)] if full(store, owner, rules.capacity) else []
    wanted += [("notice", 0)] if waits(store, owner) else []
    wanted += [("episode", key) for key in grown]
    wanted += [("analysis", key) for key in hot(store, owner, rules, now, every=True)]
    wanted += [("graph", key) for key in used(store, owner, rules)]
    fresh = [each for each in wanted if not jobs.known(store, owner.nr, *each)]
    if fresh:
        with store.change() as connection:
            for kind, subject in fresh:
                jobs.enqueue(connection, owner.nr, kind, subject)


def saved(store: MemoryStore, owner: Owner, now: float) -> int:
    """Learn what is to be saved word by word, and return how much that was. O(what waits to be saved)."""
    with store.lock:
        owner.refresh()
    waiting = jobs.savings(store, owner.nr, now=True)
    for each in waiting:
        with owner.change() as connection:
            known = store.read_rows(SELECT_PAGE, owner.name, each.context, each.index)
            if known and not known[0][3] & QUARANTINED and jobs.take(connection, each):
                about: About = "assistant" if each.about == "assistant" else "user"
                key = each.context, each.index
                at = each.at if each.at is not None else known[0][5]
                know(connection, owner, Known(each.text, about, *key, known[0][4], at, (key,)), [known[0][0]], now)
            else:
                jobs.take(connection, each)
    return len(waiting)


def _again(step: Callable[[], int]) -> int:
    try:
        return step()
    except Conflict:  # another process was faster: whoever called looks again
        return 0


def _embed(storage: Storage, store: MemoryStore, owner: Owner, embedder: Embedder) -> None:
    """Embed what has no vector yet; an embedder that fails is asked again at the next maintenance."""
    try:
        while embed(storage, store, owner, embedder):
            pass
    except EmbeddingFailed as error:
        _LOG.warning("passages are found by words until they are embedded: %s", error)


def _evict(store: MemoryStore, owner: Owner, rules: Rules, now: float) -> int:
    """Let the coldest episodes go, if there are too many; never one that changed since the last maintenance."""
    with store.lock:
        owner.refresh()
        changed, owner.tiers.changed = owner.tiers.changed, set()
        if len(owner.tiers.episodes) <= rules.episodes:
            return 0
    with owner.change() as connection:
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
            owner.tiers.keep(each, None)
        drop(connection, gone)
        left = owner.tiers.episodes
        owner.tiers.episode_of = {page: each for page, each in owner.tiers.episode_of.items() if each in left}
    return len(gone)
