"""Maintenance: what is due is done, one step at a time.

    short-term queue full  ──▶  its oldest pages are linked, and join or open episodes
    hours of silence       ──▶  the pages of that context enter the queue; the conversation is over
    5 pages closed         ──▶  events, the day's summary, counters
    an episode is hot      ──▶  facts and the profile
    too many episodes      ──▶  the coldest leave; their pages are still found by words

A process that dies between two steps loses nothing. A step that a model does is left to a job: maintenance never waits
for a model. There are no hidden timers: the worker, a job or a test calls `maintain`.
"""

import logging
from collections.abc import Mapping
from functools import partial
from typing import Final

from ...errors import EmbeddingFailed
from ..ingest import settle
from ..owner import Session
from ..repository.items import halved, matrix
from ..repository.pages import QUARANTINED
from ..retrieval.embedders import Embedder, embedded
from ..retrieval.passages import entry_text
from ..tiers.events import INTERVAL
from ..tiers.facts import Known
from ..tiers.heat import coldest
from ..tiers.topics import Vector
from .episode_building import EPISODES, build_episodes, queue_full
from .event_detection import CONVERSATIONS, DAY_SUMMARIES, EVENTS, MOST, STRATEGIES, detect_events, events_due
from .fact_extraction import ANALYSIS, CONCEPTS, analyse, know
from .page_notes import NOTES
from .step import Step, run_by_rule

MOST_WAITING = 8
"""pages beyond those that begin a step, after which it is overdue: as many as a context feeds at once"""
BATCH = 32
"""passages that are embedded at once"""
_FAILING = 3
"""passages that fail one by one, and none before them did not: the embedder is away"""
STEPS: Final[Mapping[str, Step]] = {
    each.kind: each for each in (NOTES, EPISODES, EVENTS, ANALYSIS, CONCEPTS, DAY_SUMMARIES, CONVERSATIONS, STRATEGIES)
}
"""the steps that a model does, by the kind of their jobs, as it is stored"""
_LOG = logging.getLogger(__name__)


def maintain(session: Session, now: float) -> int:
    """Do what is due at *now* (seconds since 1970 UTC), and return how many pages moved. O(what is due).

    If the session has a model, jobs are left for the steps that it does. It is not waited for without end: a queue of
    twice its capacity is emptied by rule. After an error of the store, what was done until then stays done.
    """
    if session.store.read_only or not session.store.there:
        return 0
    owner = session.owner
    moved = 0
    with session.store.lock:
        owner.write_visits()
    settle(session, now - session.rules.silence_seconds)
    patience = 2 if session.has_model else 1
    while queue_full(owner, patience * session.rules.capacity):
        moved += run_by_rule(session, build_episodes, now)
    while run_by_rule(session, detect_events, now) if not session.has_model or events_due(owner, MOST) else 0:
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
    """Return whether far more pages wait than begin a step. Two queries."""
    owner = session.owner
    return queue_full(owner, session.rules.capacity + MOST_WAITING) or events_due(owner, INTERVAL + MOST_WAITING)


def end_session(session: Session, context: str, now: float) -> None:
    """Admit the pages of *context*, and summarize its conversation: the next page begins another one. O(its pages)."""
    if session.store.read_only or not session.store.there:
        return
    owner = session.owner
    if observed := owner.pages.observed(context):
        with owner.change():
            owner.pages.enqueue(owner.pages.ids(context, observed))
    while events_due(owner, MOST):
        run_by_rule(session, detect_events, now)
    run_by_rule(session, partial(detect_events, ending=context), now)


def schedule(session: Session, now: float) -> None:
    """Leave jobs for what is due and a model does. O(episodes)."""
    owner = session.owner
    wanted = [(step.kind, subject) for step in STEPS.values() for subject in step.due(session, now)]
    fresh = [each for each in wanted if not owner.jobs.known(*each)]
    if fresh:
        with session.store.change():
            for kind, subject in fresh:
                owner.jobs.enqueue(kind, subject)


def _save_facts(session: Session, now: float) -> None:
    """Store the facts that wait to be saved and whose pages are known. O(facts that wait)."""
    owner = session.owner
    for id_, each in list(session.tiers().savings.items()):
        if owner.pages.find(each.context, each.index):
            with owner.change():
                page = owner.pages.find(each.context, each.index)
                if page and id_ in owner.tiers.savings:
                    owner.drop([id_])
                    key, at = (each.context, each.index), each.at if each.at is not None else page.at
                    if not page.marks & QUARANTINED:
                        know(owner, Known(each.text, each.about, *key, page.turn, at, (key,)), [page.id], now)


def _embed(session: Session) -> None:
    """Embed passages that have no vector of this model yet; one that fails is asked again at the next maintenance.

    After a change of the embedder, passages are embedded again from the text of their pages, and words find them
    meanwhile. An embedder of words (`semantic` is False) makes no vectors of passages: measured, they add nothing to
    words and cost precision.
    """
    owner, embedder = session.owner, session.embedder
    last = 0
    while missing := owner.passages.unembedded(embedder.name, BATCH, after=last) if embedder.semantic else []:
        last = missing[-1].id
        pages = {id_: dict(page.entries) for id_, page in session.raw(list({each.page for each in missing}))}
        texts = {}
        for each in missing:
            message = pages.get(each.page, {}).get(each.entry)
            texts[each.id] = "" if message is None else entry_text(message)[each.start : each.start + each.size]
        vectors = _vectors(embedder, texts)
        if not vectors:
            return
        with owner.change():
            owner.passages.keep_vectors(embedder.name, vectors)
        if owner.passage_vectors is not None:
            owner.passage_vectors.add(list(vectors), matrix([*map(halved, vectors.values())], embedder.dimension))


def _vectors(embedder: Embedder, texts: Mapping[int, str]) -> dict[int, Vector]:
    """Return the vectors of *texts*: all at once, or one by one without those that fail. {} if the embedder is away."""
    try:
        return dict(zip(texts, embedded(embedder, list(texts.values())), strict=True))
    except EmbeddingFailed as error:
        _LOG.warning("passages are found by words until they are embedded: %s", error)
    found: dict[int, Vector] = {}
    for failed, (id_, text) in enumerate(texts.items()):
        try:
            found[id_] = embedded(embedder, [text])[0]
        except EmbeddingFailed:
            if failed == _FAILING and not found:
                break
    return found


def _evict(session: Session, now: float) -> None:
    """Let the coldest episodes go, if there are too many; never one that changed since the last maintenance."""
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
        for key in coldest(warmths, rules.episodes, now=now, order=rules.order, changed=changed):
            owner.pages.evict(key)
            owner.drop([key])
