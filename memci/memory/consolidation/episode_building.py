"""Episode building: the oldest pages of the short-term queue become part of episodes.

    #3 #4 #5   ──▶  chains              #3 → #4     #5
               ──▶  topics              {#3, #4} flight     {#5} dog
               ──▶  episodes            joins "Flight to Oslo"     opens "My dog is ill"

All of it is one transaction: a batch is in the queue or in episodes, never lost between the two. If a model described a
page, its title and its keywords are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ...errors import EmbeddingFailed
from ..backend import PageRecord
from ..owner import Owner
from ..repository.passages import TOPIC
from ..retrieval.embedders import embedded
from ..tiers.episodes import Episode, best, merged, opened
from ..tiers.facts import sources, vocabulary
from ..tiers.notes import Notes
from ..tiers.topics import ChainSummary, PageFeatures, Topic, continues, page_text, topics
from .annotation import annotation
from .page_notes import plainly, unchanged
from .step import Step, StepRun

CANDIDATES = 5
"""episodes that a topic is compared with: the nearest ones by their vectors"""


class _Queued(NamedTuple):
    """A page of the batch."""

    id: int
    page: PageRecord
    features: PageFeatures


def queue_full(owner: Owner, capacity: int) -> bool:
    """Return whether *capacity* pages wait in the queue. O(capacity)."""
    return len(owner.pages.queue(capacity)) >= capacity


def build_episodes(run: StepRun) -> int:
    """Move the oldest batch of a full queue into episodes, and return how many pages. O(their messages).

    A model divides the batch into topics; without one, they are clustered.
    """
    owner, rules = run.owner, run.session.rules
    ids = owner.pages.queue(rules.capacity)
    if len(ids) < rules.capacity:
        return 0
    ids = ids[: max(1, rules.batch)]
    notes = owner.items.notes(ids)
    batch = _queued(run, ids, notes)
    divided = _divided(run, [each.features for each in batch])
    assert sorted(at for topic in divided for at in topic.pages) == list(range(len(batch))), "a page has one topic"
    gained: dict[int, list[str]] = {}
    for topic in divided if run.chat is not None else ():
        own_pages = {batch[at].id: batch[at].page for at in topic.pages}
        gained |= annotation([topic.theme, *topic.keywords, topic.content], own_pages)
    with run.write(lambda: owner.pages.queue(len(ids)) == ids and unchanged(owner, notes)):
        chains, episodes = _link(owner, batch), _join(run, batch, divided)
        for at, each in enumerate(batch):
            owner.pages.into_tier(each.id, each.features, chains[at], episodes[at], run.session.embedder.name)
        owner.pages.set_last(batch[-1].id)
        owner.changed.update(episodes.values())
        owner.annotate(TOPIC, gained)
    return len(batch)


def _queued(run: StepRun, ids: Sequence[int], notes: Notes) -> list[_Queued]:
    """Return the pages *ids* with the features that are compared. O(their messages)."""
    found = []
    for id_, page in run.session.raw(ids):
        title, words = plainly(page)
        if id_ in notes:
            title, words = notes[id_][1].title, notes[id_][1].keywords or words
        found.append(_Queued(id_, page, PageFeatures(page_text(page), title, words, None, page.at)))
    try:
        vectors = embedded(run.session.embedder, [each.features.text for each in found])
    except EmbeddingFailed:  # words find them; they are embedded when an embedder answers again
        return found
    return [
        each._replace(features=replace(each.features, vector=vector if vector.any() else None))
        for each, vector in zip(found, vectors, strict=True)
    ]


def _divided(run: StepRun, batch: Sequence[PageFeatures]) -> list[Topic]:
    """Return the topics of a batch: as a model names them, without what it took from pages of another topic."""
    if run.chat is None:
        return topics(batch)
    if len(batch) == 1:
        found = topics(batch)
    else:
        from .prompts.episodes import themes

        found = themes(run.chat, batch)
    said = {at: vocabulary("\n".join((page.title, page.text, *page.keywords))) for at, page in enumerate(batch)}
    return [_of_its_own(topic, batch, said) for topic in found]


def _of_its_own(topic: Topic, batch: Sequence[PageFeatures], said: dict[int, frozenset[str]]) -> Topic:
    """Return *topic* without texts that may come from pages of another one: those are no evidence of it."""

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
    """Chain the pages of *batch* that go on from one another, the first with the last of the batch before.

    Return the chain of each.
    """
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
    """Let each topic join the episode that it belongs to, or open one; return the episode of each page of *batch*."""
    owner, changed, joined = run.owner, dict[int, Episode](), dict[int, int]()
    for topic in divided:
        pages = [batch[at] for at in topic.pages]
        times = [each.page.at for each in pages if each.page.at is not None]
        known = {**{key: owner.tiers.episodes[key] for key in _near(owner, topic)}, **changed}
        key = best(topic, known.items(), threshold=run.session.rules.threshold)
        if key is None:
            episode = opened(topic, now=run.now, times=times)
        else:
            episode = merged(known[key], topic, now=run.now, times=times)
        key = owner.items.put(episode, id=key, pages=[each.id for each in pages])
        changed[key] = episode
        joined |= dict.fromkeys(topic.pages, key)
    for key, episode in changed.items():  # only now: the topics of a batch are compared with the same episodes
        owner.tiers.keep(key, episode)
    return joined


def _near(owner: Owner, topic: Topic) -> list[int]:
    """Return the episodes that *topic* is compared with; without vectors, those that were opened last."""
    index = owner.tiers.vectors
    if topic.vector is None or index is None or index.dimension != len(topic.vector):
        return sorted(owner.tiers.episodes)[-CANDIDATES:]
    ids, _ = index.search(topic.vector, CANDIDATES)
    return [int(each) for each in ids if int(each) in owner.tiers.episodes]


EPISODES = Step("topics", build_episodes, lambda session, _: [0] * queue_full(session.owner, session.rules.capacity))
