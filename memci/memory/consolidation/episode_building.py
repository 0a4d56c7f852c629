"""Episode building: moves the oldest pages of the short-term queue into chains and episodes.

    #3 #4 #5   ──▶  chains              #3 → #4     #5
               ──▶  topics              {#3, #4} flight     {#5} dog
               ──▶  episodes            joins "Flight to Oslo"     opens "My dog is ill"

It is one transaction, so a batch is either in the queue or in episodes. If a model described a page, its title and
keywords are used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ...errors import EmbeddingFailed
from ..backend import PageRecord
from ..owner import Owner
from ..repository.passages import TOPIC
from ..retrieval.embedders import embed
from ..tiers.episodes import Episode, best_episode, merge_topic, open_episode
from ..tiers.facts import sources, vocabulary
from ..tiers.notes import Note
from ..tiers.topics import ChainSummary, PageFeatures, Topic, continues, page_text, topics
from .annotation import annotate
from .page_notes import extract_title
from .step import Step, StepRun

CANDIDATES = 5
"""episodes that a topic is compared with, the nearest by vector: so the cost does not grow with the episodes"""


class _Queued(NamedTuple):
    """A page of the batch, with its features."""

    id: int
    page: PageRecord
    features: PageFeatures


def is_queue_full(owner: Owner, capacity: int) -> bool:
    """Return whether at least *capacity* pages are in the queue. O(capacity)."""
    return len(owner.pages.queue(capacity)) >= capacity


def build_episodes(run: StepRun) -> int:
    """Move the oldest batch of a full queue into episodes, and return how many pages. O(their messages).

    A model divides the batch into topics; without one, the pages are clustered.
    """
    owner, rules = run.owner, run.session.rules
    ids = owner.pages.queue(rules.capacity)
    if len(ids) < rules.capacity:
        return 0
    ids = ids[: max(1, rules.batch)]
    notes = owner.items.notes(ids)
    batch = _read_queued(run, ids, notes)
    divided = _divide_into_topics(run, [each.features for each in batch])
    assert sorted(at for topic in divided for at in topic.pages) == list(range(len(batch))), "a page has one topic"
    gained: dict[int, list[str]] = {}
    for topic in divided if run.chat is not None else ():
        own_pages = {batch[at].id: batch[at].page for at in topic.pages}
        gained |= annotate([topic.theme, *topic.keywords, topic.content], own_pages)
    with run.write(lambda: owner.pages.queue(len(ids)) == ids and owner.items.notes(ids) == notes):
        chains, episodes = _link(owner, batch), _join(run, batch, divided)
        for at, each in enumerate(batch):
            owner.pages.into_tier(each.id, each.features, chains[at], episodes[at], run.session.embedder.name)
        owner.pages.set_last(batch[-1].id)
        owner.changed.update(episodes.values())
        owner.annotate(TOPIC, gained)
    return len(batch)


def _read_queued(run: StepRun, ids: Sequence[int], notes: Mapping[int, tuple[int, Note]]) -> list[_Queued]:
    """Return the pages *ids* with their features. O(their messages)."""
    found = []
    for id_, page in run.session.read_pages(ids):
        title, words = extract_title(page)
        if id_ in notes:
            title, words = notes[id_][1].title, notes[id_][1].keywords or words
        found.append(_Queued(id_, page, PageFeatures(page_text(page), title, words, None, page.at)))
    try:
        vectors = embed(run.session.embedder, [each.features.text for each in found])
    except EmbeddingFailed:  # they have no vectors then, but searches find them by their words
        return found
    return [
        each._replace(features=replace(each.features, vector=vector if vector.any() else None))
        for each, vector in zip(found, vectors, strict=True)
    ]


def _divide_into_topics(run: StepRun, batch: Sequence[PageFeatures]) -> list[Topic]:
    """Return the topics of a batch; if a model names them, without texts that it took from pages of another topic."""
    if run.chat is None:
        return topics(batch)
    if len(batch) == 1:
        found = topics(batch)
    else:
        from .prompts.episodes import ask_for_themes

        found = ask_for_themes(run.chat, batch)
    said = {at: vocabulary("\n".join((page.title, page.text, *page.keywords))) for at, page in enumerate(batch)}
    return [_drop_foreign_texts(topic, batch, said) for topic in found]


def _drop_foreign_texts(topic: Topic, batch: Sequence[PageFeatures], said: dict[int, frozenset[str]]) -> Topic:
    """Return *topic* without texts that may come from pages of another one, which are no evidence of it."""

    def own(text: str) -> bool:
        return set(sources(text, topic.pages, said)) <= set(topic.pages)

    titles = "\n".join(dict.fromkeys(batch[at].title for at in topic.pages))
    return replace(
        topic,
        theme=topic.theme if own(topic.theme) else batch[topic.pages[0]].title,
        keywords=tuple(word for word in topic.keywords if own(word)),
        content="\n".join(line for line in topic.content.splitlines() if own(line)) or titles,
    )


def _link(owner: Owner, batch: Sequence[_Queued]) -> list[int]:
    """Put each page of *batch* into the chain of the page before it, or into a new one; return the chain of each."""
    last = owner.pages.last()
    before, chain = (None, None) if last is None else (last.features, last.chain)
    chains = []
    for each in batch:
        if before is None or not continues(before, each.features):
            chain = None
        summary = owner.tiers.chains.get(chain or 0, ChainSummary()).updated(each.features.title)
        chain, before = owner.keep(summary, id=chain, pages=[each.id]), each.features
        chains.append(chain)
    return chains


def _join(run: StepRun, batch: Sequence[_Queued], divided: Sequence[Topic]) -> dict[int, int]:
    """Merge each topic into the episode that it is like, or open one; return the episode of each page of *batch*."""
    owner, changed, joined = run.owner, dict[int, Episode](), dict[int, int]()
    for topic in divided:
        pages = [batch[at] for at in topic.pages]
        times = [each.page.at for each in pages if each.page.at is not None]
        known = {**{key: owner.tiers.episodes[key] for key in _nearest_episodes(owner, topic)}, **changed}
        key = best_episode(topic, known.items(), threshold=run.session.rules.threshold)
        if key is None:
            episode = open_episode(topic, now=run.now, times=times)
        else:
            episode = merge_topic(known[key], topic, now=run.now, times=times)
        key = owner.items.put(episode, id=key, pages=[each.id for each in pages])
        changed[key] = episode
        joined |= dict.fromkeys(topic.pages, key)
    for key, episode in changed.items():  # only now, since all topics are compared with the same episodes
        owner.tiers.keep(key, episode)
    return joined


def _nearest_episodes(owner: Owner, topic: Topic) -> list[int]:
    """Return the episodes to compare with *topic*; without vectors, those that were opened last."""
    index = owner.tiers.vectors
    if topic.vector is None or index is None or index.dimension != len(topic.vector):
        return sorted(owner.tiers.episodes)[-CANDIDATES:]
    ids, _ = index.search(topic.vector, CANDIDATES)
    return [int(each) for each in ids if int(each) in owner.tiers.episodes]


EPISODES = Step("topics", build_episodes, lambda session, _: [0] * is_queue_full(session.owner, session.rules.capacity))
