"""Episode building: moves the oldest pages of the short-term queue into chains and episodes.

    #3 #4 #5   ──▶  stretches           #3 → #4 (flight)     #5 (dog)
               ──▶  chains              #3 → #4 goes on from #2      #5 begins one: the chain of #4 is over
               ──▶  episodes            the chain of #4 returns to "Flight to Oslo", or stays an episode of its own

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
from ..tiers.episodes import best_episode, join_episodes, open_episode, returning
from ..tiers.facts import sources, vocabulary
from ..tiers.notes import Note
from ..tiers.topics import (
    AHEAD,
    Chain,
    PageFeatures,
    Topic,
    begins_with_greeting,
    name_topic,
    names_of,
    page_text,
    topic_of,
    words_of,
)
from .annotation import annotate
from .page_notes import extract_title
from .step import Step, StepRun

ASKED = 10  # pages that a model is asked about at once: so two topics are enough for them (MemoryOS: a whole queue)


class _Queued(NamedTuple):
    """A page of the batch, or one that waits behind it, with its features."""

    id: int
    page: PageRecord
    features: PageFeatures


class _Stretch(NamedTuple):
    """Pages of the batch that continue one another."""

    context: str
    pages: list[int]  # their positions in the batch
    goes_on: bool  # whether it continues the last chain of its context
    topic: int  # the number of a model's topic of its first page; -1: there are none


def is_queue_full(owner: Owner, capacity: int) -> bool:
    """Return whether at least *capacity* pages are in the queue. O(capacity)."""
    return len(owner.pages.queue(capacity)) >= capacity


def build_episodes(run: StepRun) -> int:
    """Move the oldest batch of a full queue into chains and episodes, and return how many pages.

    A model says which pages are about one thing; without one, their words do. O(messages of the batch, and of the pages
    behind it that show where the talk goes).
    """
    owner, rules = run.owner, run.session.rules
    queue = owner.pages.queue(max(rules.capacity, rules.batch + AHEAD))
    if len(queue) < rules.capacity:
        return 0
    ids, tiers = queue[: rules.batch], run.session.tiers()
    notes = owner.items.notes(ids)
    going = {context: tiers.chains[key] for context, key in tiers.going.items()}
    batch, ahead = _read_queued(run, ids, queue[rules.batch : rules.batch + AHEAD], notes)
    if run.chat is not None or rules.threshold is not None:  # else no vector is compared
        batch = _embed(run, batch)
    topics = _ask_for_topics(run, batch, going)
    stretches = _divide(run, batch, ahead, going, topics)
    named = _name(batch, going, stretches, topics)
    gained: dict[int, list[str]] = {}
    for stretch, topic in zip(stretches, named if topics else (), strict=bool(topics)):
        own_pages = {batch[at].id: batch[at].page for at in stretch.pages}
        gained |= annotate([topic.theme, *topic.keywords, topic.content], own_pages)

    def same() -> bool:
        last = {context: owner.tiers.chains[key] for context, key in owner.tiers.going.items()}
        return owner.pages.queue(len(ids)) == ids and owner.items.notes(ids) == notes and last == going

    with run.write(same):
        chains: dict[int, int] = {}  # by the topic of a model
        for stretch, topic in zip(stretches, named, strict=True):
            _keep(run, batch, stretch, topic, topics, chains)
        owner.annotate(TOPIC, gained)
    return len(batch)


def _read_queued(
    run: StepRun, ids: Sequence[int], behind: Sequence[int], notes: Mapping[int, tuple[int, Note]]
) -> tuple[list[_Queued], list[_Queued]]:
    """Return the pages *ids* with their features, and those *behind* with their words alone. O(their messages)."""
    read = run.session.read_pages([*ids, *behind])
    names = names_of(page for _, page in read)
    batch, ahead = [], []
    for id_, page in read:
        found = PageFeatures("", at=page.at, words=words_of(page, names), greets=begins_with_greeting(page))
        if id_ not in ids:
            ahead.append(_Queued(id_, page, found))
            continue
        title, words = extract_title(page)
        if id_ in notes:
            title, words = notes[id_][1].title, notes[id_][1].keywords or words
        batch.append(_Queued(id_, page, replace(found, text=page_text(page), title=title, keywords=words)))
    return batch, ahead


def _embed(run: StepRun, batch: list[_Queued]) -> list[_Queued]:
    """Return *batch* with vectors, by which topics of a model and episodes are compared. O(characters)."""
    try:
        vectors = embed(run.session.embedder, [each.features.text for each in batch])
    except EmbeddingFailed:  # they have no vectors then, but searches find them by their words
        return batch
    return [
        each._replace(features=replace(each.features, vector=vector if vector.any() else None))
        for each, vector in zip(batch, vectors, strict=True)
    ]


def _divide(
    run: StepRun,
    batch: Sequence[_Queued],
    ahead: Sequence[_Queued],
    going: Mapping[str, Chain],
    topics: Sequence[Topic],
) -> list[_Stretch]:
    """Return the stretches of *batch*: by the topics of a model and the gaps, or else by words."""
    gap = run.session.rules.gap_seconds
    topic_of_page = {at: number for number, topic in enumerate(topics) for at in topic.pages}
    found: list[_Stretch] = []
    current: dict[str, tuple[_Stretch | None, Chain]] = {context: (None, chain) for context, chain in going.items()}
    for at, each in enumerate(batch):
        context = each.page.context
        stretch, chain = current.get(context, (None, None))
        before = -1 if stretch is None else stretch.pages[-1]
        together = stretch is not None and (not topics or before // ASKED == at // ASKED)
        said = None
        if topics and together:
            said = topic_of_page[before] == topic_of_page[at]
        elif topics:
            said = topics[topic_of_page[at]].goes_on
        if chain is None or chain.is_over(each.features, gap):
            same = False
        elif said is None:
            coming = [other.features for other in (*batch[at:], *ahead) if other.page.context == context]
            same = chain.goes_on(coming, gap)
        else:
            same = said
        if stretch is None or not (together and same):
            stretch = _Stretch(context, [], same, topic_of_page.get(at, -1))
            found.append(stretch)
        stretch.pages.append(at)
        own = chain if chain is not None and same else Chain(context)
        current[context] = stretch, own.updated(each.features)
    return found


def _ask_for_topics(run: StepRun, batch: Sequence[_Queued], going: Mapping[str, Chain]) -> list[Topic]:
    """Return the topics that a model names of a batch, `ASKED` pages at once. Without a model, there are none."""
    if run.chat is None:
        return []
    from .prompts.episodes import ask_for_themes

    last, found = going.get(batch[0].page.context), list[Topic]()
    before = "" if last is None else str(last)
    for start in range(0, len(batch), ASKED):
        topics = ask_for_themes(run.chat, [each.features for each in batch[start : start + ASKED]], before)
        found += [replace(each, pages=tuple(start + at for at in each.pages)) for each in topics]
        before = max(found, key=lambda each: each.pages[-1]).theme
    return found


def _name(
    batch: Sequence[_Queued], going: Mapping[str, Chain], stretches: Sequence[_Stretch], topics: Sequence[Topic]
) -> list[Topic]:
    """Return the topic of each of *stretches*: by a model's topic of its pages, or else by their words.

    A topic may have stretches in several episodes, so each gets only what its own pages are evidence of: else it would
    keep words of a page that is erased elsewhere.
    """
    pages = [each.features for each in batch]
    if not topics:
        return [topic_of(pages, stretch.pages) for stretch in stretches]
    last = going.get(batch[0].page.context)
    said = {at: vocabulary("\n".join((page.title, page.text, *page.keywords))) for at, page in enumerate(pages)}
    said[len(pages)] = vocabulary("" if last is None else str(last))
    found = []
    for stretch in stretches:
        own = _drop_foreign_texts(topics[stretch.topic], stretch.pages, pages, said)
        found.append(name_topic(pages, stretch.pages, own))
    return found


def _drop_foreign_texts(
    topic: Topic, own_pages: Sequence[int], batch: Sequence[PageFeatures], said: dict[int, frozenset[str]]
) -> Topic:
    """Return *topic* without texts that may come from other pages than *own_pages*, its only evidence."""

    def own(text: str) -> bool:
        return set(sources(text, own_pages, said)) <= set(own_pages)

    titles = "\n".join(dict.fromkeys(batch[at].title for at in own_pages))
    return replace(
        topic,
        theme=topic.theme if own(topic.theme) else batch[own_pages[0]].title,
        keywords=tuple(word for word in topic.keywords if own(word)),
        content="\n".join(line for line in topic.content.splitlines() if own(line)) or titles,
    )


def _keep(
    run: StepRun,
    batch: Sequence[_Queued],
    stretch: _Stretch,
    topic: Topic,
    topics: Sequence[Topic],
    chains: dict[int, int],
) -> None:
    """Store the pages of a stretch about *topic* with their chain and episode; one that is over may return to another.

    *chains* are those of the batch so far, by the topic of a model: all its stretches are in one episode.
    """
    owner, tiers, pages = run.owner, run.owner.tiers, [batch[at] for at in stretch.pages]
    last = tiers.going.get(stretch.context)
    if not stretch.goes_on and last is not None:
        _settle(run, last)
    key = last if stretch.goes_on else None
    chain = tiers.chains[key] if key is not None else Chain(stretch.context)
    like = chain if chain.episode or stretch.topic not in chains else tiers.chains[chains[stretch.topic]]
    known = like.episode if like.episode in tiers.episodes else None
    episode = open_episode(topic, [each.features for each in pages], run.now)
    if known is not None:
        episode = join_episodes(tiers.episodes[known], episode, run.now)
    ids = [each.id for each in pages]
    known = owner.keep(episode, id=known, pages=ids)
    for each in pages:
        chain = chain.updated(each.features)
    whole = topics and {*stretch.pages} == {*topics[stretch.topic].pages}
    for point in [topic.content] if whole else [each.features.title for each in pages]:
        chain = chain.noted(point)
    key = owner.keep(replace(chain, episode=known), id=key, pages=ids)
    if topics:
        chains[stretch.topic] = key
    for each in pages:
        owner.pages.into_tier(each.id, each.features, key, known, run.session.embedder.name)
    owner.changed.add(known)


def _settle(run: StepRun, key: int) -> None:
    """Move a chain that is over into the episode to which it returns, if it is alone in its own."""
    owner, tiers, rules = run.owner, run.owner.tiers, run.session.rules
    own = tiers.chains[key].episode
    chains = {other: each for other, each in tiers.chains.items() if each.episode in tiers.episodes}
    if key not in chains or sum(each.episode == own for each in chains.values()) > 1:
        return
    if rules.threshold is None:
        into = returning(key, chains, tiers.profiles)
    else:
        into = best_episode(own, tiers.episodes, rules)
    if into is None:
        return
    owner.keep(
        join_episodes(tiers.episodes[into], tiers.episodes[own], run.now), id=into, pages=owner.items.evidence(own)
    )
    owner.keep(replace(tiers.chains[key], episode=into), id=key)
    owner.pages.regroup(own, into)
    owner.drop([own])
    owner.changed.add(into)


EPISODES = Step("topics", build_episodes, lambda session, _: [0] * is_queue_full(session.owner, session.rules.capacity))
