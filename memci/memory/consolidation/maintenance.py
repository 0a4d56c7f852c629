"""Maintenance: does the steps that are due, one after the other.

    short-term queue full  ──▶  move its oldest pages into chains and episodes
    hours of silence       ──▶  put the pages of that context into the queue, and end the conversation
    5 pages closed         ──▶  collect events, update the day and the counters
    an episode is hot      ──▶  derive facts and the profile
    too many episodes      ──▶  evict the coldest; searches still find their pages by words

A process that dies between two steps loses nothing. The steps of a model are queued as jobs: maintenance never waits
for a model. There are no timers: the worker, a job or a test calls `maintain`.
"""

import logging
from collections.abc import Mapping
from functools import partial
from typing import Final

from ...errors import EmbeddingFailed
from ...formats.utterance import entry_text
from ..ingest import settle
from ..owner import Session
from ..repository.items import halve, read_vectors
from ..retrieval.embedders import Embedder, embed
from ..tiers.heat import coldest
from ..tiers.topics import Vector
from .episode_building import EPISODES, build_episodes, is_queue_full
from .event_detection import CONVERSATIONS, DAY_SUMMARIES, EVENTS, MOST, STRATEGIES, are_events_due, detect_events
from .fact_extraction import ANALYSIS, CONCEPTS, analyse, keep_saving
from .page_notes import NOTES
from .step import Step, run_by_rule

MOST_WAITING = 8
"""pages beyond those that start a step, after which the step is overdue: as many as a context sends at once"""
BATCH = 32  # passages that are embedded at once: a usual batch of embedding servers, and about 4,000 tokens
_FAILING = 3
"""consecutive failures after which the embedder counts as unavailable: single passages may fail for their content"""
STEPS: Final[Mapping[str, Step]] = {
    each.kind: each for each in (NOTES, EPISODES, EVENTS, ANALYSIS, CONCEPTS, DAY_SUMMARIES, CONVERSATIONS, STRATEGIES)
}
"""the steps that a model does, by the kind of their jobs, as it is stored"""
_LOG = logging.getLogger(__name__)


def maintain(session: Session, now: float) -> int:
    """Do what is due at *now* (seconds since 1970 UTC), and return how many pages moved. O(what is due).

    If the session has a model, its steps are queued as jobs. It does not wait for the model indefinitely: a queue of
    twice its capacity is emptied by rule. After an error of the store, the steps done so far stay done.
    """
    if session.store.read_only or not session.store.there:
        return 0
    owner = session.owner
    moved = 0
    with session.store.lock:
        owner.write_visits()
    settle(session, now - session.rules.silence_seconds)
    patience = 2 if session.has_model else 1
    while is_queue_full(owner, patience * session.rules.capacity):
        moved += run_by_rule(session, build_episodes, now)
    while run_by_rule(session, detect_events, now) if not session.has_model or are_events_due(owner, MOST) else 0:
        pass
    _save_facts(session, now)
    if session.has_model:
        schedule(session, now)
    else:
        analyse(session, now)
    _embed(session)
    _evict(session, now)
    return moved


def overdue(session: Session) -> bool:
    """Return whether far more pages wait than are needed to start a step. Three queries."""
    owner, rules = session.owner, session.rules
    full = is_queue_full(owner, rules.capacity + MOST_WAITING)
    return full or are_events_due(owner, rules.event_interval + MOST_WAITING)


def end_session(session: Session, context: str, now: float) -> None:
    """Admit the pages of *context*, and end and summarize its conversation. O(its pages)."""
    if session.store.read_only or not session.store.there:
        return
    owner = session.owner
    if observed := owner.pages.observed(context):
        with owner.change():
            owner.pages.enqueue(owner.pages.ids_of(context, observed).values())
    while are_events_due(owner, MOST):
        run_by_rule(session, detect_events, now)
    run_by_rule(session, partial(detect_events, ending=context), now)


def schedule(session: Session, now: float) -> None:
    """Queue jobs for the steps of a model that are due. O(episodes)."""
    owner = session.owner
    wanted = [(step.kind, subject) for step in STEPS.values() for subject in step.due(session, now)]
    fresh = [each for each in wanted if not owner.jobs.known(*each)]
    if fresh:
        with session.store.change():
            for kind, subject in fresh:
                owner.jobs.enqueue(kind, subject)


def _save_facts(session: Session, now: float) -> None:
    """Store the facts whose pages have arrived. O(facts that wait)."""
    owner = session.owner
    for id_, each in list(session.tiers().savings.items()):
        if each.text and owner.pages.find(each.context, each.index):
            with owner.change():
                if id_ in owner.tiers.savings:
                    owner.drop([id_])
                    keep_saving(owner, each, now)


def _embed(session: Session) -> None:
    """Embed the passages that have no vector of this model; retry those that fail at the next maintenance.

    After a change of the embedder, all passages are embedded again from the text of their pages, and words find them
    meanwhile. An embedder of words (`semantic` is False) makes no vectors of passages: in measurements they added
    nothing to words and cost precision.
    """
    owner, embedder = session.owner, session.embedder
    last = 0
    while missing := owner.passages.unembedded(embedder.name, BATCH, after=last) if embedder.semantic else []:
        last = missing[-1][0]
        pages = {id_: dict(page.entries) for id_, page in session.read_pages(list({page for _, page, *_ in missing}))}
        texts = {}
        for id_, page, entry, start, size in missing:
            message = pages.get(page, {}).get(entry)
            texts[id_] = "" if message is None else entry_text(message)[start : start + size]
        vectors = _embed_texts(embedder, texts)
        if not vectors:
            return
        with owner.change():
            owner.passages.keep_vectors(embedder.name, vectors)
        if owner.passage_vectors is not None:
            rows = read_vectors(*map(halve, vectors.values())).reshape(len(vectors), -1)
            owner.passage_vectors.add(list(vectors), rows)


def _embed_texts(embedder: Embedder, texts: Mapping[int, str]) -> dict[int, Vector]:
    """Return the vectors of *texts*: embed all at once, or else one by one; {} if the embedder is unavailable."""
    try:
        return dict(zip(texts, embed(embedder, list(texts.values())), strict=True))
    except EmbeddingFailed as error:
        _LOG.warning("passages can't be embedded now, and are found by words only: %s", error)
    found: dict[int, Vector] = {}
    for failed, (id_, text) in enumerate(texts.items()):
        try:
            found[id_] = embed(embedder, [text])[0]
        except EmbeddingFailed:
            if failed == _FAILING and not found:
                break
    return found


def _evict(session: Session, now: float) -> None:
    """Evict the coldest episodes, if there are too many; never one that changed since the last maintenance."""
    owner, rules = session.owner, session.rules
    with session.store.lock:
        owner.refresh()
        changed, owner.changed = owner.changed, set()
        if len(owner.tiers.episodes) <= rules.episodes:
            return
    with owner.change():
        tiers = owner.tiers
        warmths = {key: each.warmth for key, each in tiers.episodes.items()}
        changed = changed | owner.changed
        for key in coldest(warmths, rules, now=now, changed=changed):
            owner.pages.evict(key)
            owner.drop([key, *(chain for chain, each in tiers.chains.items() if each.episode == key)])
