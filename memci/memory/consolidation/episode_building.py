"""Handing over: the oldest pages of the short-term queue become part of episodes.

    #3 #4 #5   ──▶  links and chains    #3 ⇄ #4     #5
               ──▶  topics              {#3, #4} flight     {#5} dog
               ──▶  episodes            joins "Flight to Oslo"     opens "My dog is ill"

One transaction: a batch is in the queue or in episodes, never lost between. What a model said of a page is used where
it did: its title, its keywords, whether it goes on from the page before. This module knows nothing of when.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...errors import EmbeddingFailed
from ...storage import Storage
from ..backend import PageRecord
from ..owner import Change, Conflict, Owner
from ..repository.items import dumped, packed, put, unpacked
from ..repository.reading import raw_pages
from ..repository.store import MemoryStore
from ..repository.tier import MID, SHORT
from ..retrieval.embedders import Embedder, embedded
from ..tiers.chains import ChainSummary, PageFeatures, page_text
from ..tiers.episodes import Episode, best, merged, opened
from ..tiers.provenance import sources, vocabulary
from ..tiers.topics import Topic, Topics
from . import page_notes as notes
from .page_notes import Note, notes_of, plainly

if TYPE_CHECKING:
    import apsw

    from ..tiers.rules import Rules

CANDIDATES = 5
"""episodes that a topic is compared with: the nearest ones by their vectors"""


@dataclass(frozen=True, slots=True)
class _Queued:
    """A page of the batch."""

    id: int
    page: PageRecord
    text: PageFeatures
    note: Note | None


def full(store: MemoryStore, owner: Owner, capacity: int) -> bool:
    """Tell whether *capacity* pages wait in the queue. O(capacity)."""
    return len(store.read_rows(_QUEUE, owner.name, SHORT, capacity)) >= capacity


def hand_over(
    storage: Storage,
    store: MemoryStore,
    owner: Owner,
    embedder: Embedder,
    rules: Rules,
    now: float,
    *,
    topics: Topics | None = None,
    change: Change | None = None,
) -> int:
    """Move the oldest batch of a full queue into episodes, and return how many pages that were. O(their messages).

    Args:
        storage: Where the pages are.
        store: Where the memory is.
        owner: Whose memory; no lock is held.
        embedder: Of the pages' vectors.
        rules: Sizes, thresholds and steps.
        now: Seconds since 1970 UTC.
        topics: What divides the batch; default: that of the rules.
        change: The transaction in which it is written.

    Raises:
        Conflict: If the queue, or what a model said of its pages, changed meanwhile.
    """
    ids = [row[0] for row in store.read_rows(_QUEUE, owner.name, SHORT, rules.capacity)]
    if len(ids) < rules.capacity:
        return 0
    told = notes_of(store, ids[: max(1, rules.batch)])
    batch = _queued(storage, store, ids[: max(1, rules.batch)], told, embedder)
    grouped = (topics or rules.topics)([each.text for each in batch])
    if topics is not None:
        grouped = [_of_its_own(topic, [each.text for each in batch]) for topic in grouped]
    assert sorted(at for topic in grouped for at in topic.pages) == list(range(len(batch))), "a page has one topic"
    with (change or owner.change)() as connection:
        waiting = [row[0] for row in store.read_rows(_QUEUE, owner.name, SHORT, len(batch))]
        if waiting != [each.id for each in batch] or not notes.still(connection, told):
            raise Conflict
        for each in batch:
            connection.execute(
                "UPDATE memory_page SET tier = ?, summary = ?, keywords = ? WHERE id = ?",
                (MID, each.text.title, json.dumps(each.text.keywords, ensure_ascii=False), each.id),
            )
            if each.text.vector is not None:
                connection.execute(
                    "INSERT OR REPLACE INTO memory_vector VALUES (?, 0, ?, ?, ?)",
                    (each.id, embedder.name, owner.nr, packed(each.text.vector)),
                )
        tiers = owner.tiers
        tiers.chains.update(_linked(connection, store, owner, batch, rules))
        episodes, members = _joined(connection, owner, batch, grouped, rules, now)
        for key, episode in episodes.items():
            tiers.keep(key, episode)
            tiers.changed.add(key)
        tiers.episode_of.update(members)
    return len(batch)


_QUEUE = """
SELECT g.id FROM memory_owner AS o JOIN memory_page AS g ON g.owner = o.nr
WHERE o.name = ? AND g.tier = ? ORDER BY g.entered LIMIT ?"""


def _queued(
    storage: Storage,
    store: MemoryStore,
    ids: Sequence[int],
    told: Mapping[int, tuple[int, Note]],
    embedder: Embedder,
) -> list[_Queued]:
    """Return the pages *ids* with what is compared of them. O(their messages)."""
    found = []
    for id_, page in raw_pages(storage, store, ids):
        plain, note = plainly(page), told[id_][1] if id_ in told else None
        title, words = (plain.title, plain.keywords) if note is None else (note.title, note.keywords or plain.keywords)
        found.append(_Queued(id_, page, PageFeatures(page_text(page), title, words, None, page.at), note))
    try:
        vectors = embedded(embedder, [each.text.text for each in found])
    except EmbeddingFailed:  # words find them; they are embedded when an embedder answers again
        return found
    return [
        replace(each, text=replace(each.text, vector=vector if vector.any() else None))
        for each, vector in zip(found, vectors, strict=True)
    ]


def _of_its_own(topic: Topic, batch: Sequence[PageFeatures]) -> Topic:
    """Return *topic* without what a model may have told of the pages of another one: those are no evidence of it."""
    said = {at: vocabulary("\n".join((page.title, page.text, *page.keywords))) for at, page in enumerate(batch)}

    def own(text: str) -> bool:
        return set(sources(text, topic.pages, said)) <= set(topic.pages)

    titles = "\n".join(dict.fromkeys(batch[at].title for at in topic.pages))
    return replace(
        topic,
        theme=topic.theme if own(topic.theme) else batch[topic.pages[0]].title,
        keywords=tuple(word for word in topic.keywords if own(word)),
        content="\n".join(line for line in topic.content.splitlines() if own(line)) or titles,
    )


def _linked(
    connection: apsw.Connection,
    store: MemoryStore,
    owner: Owner,
    batch: Sequence[_Queued],
    rules: Rules,
) -> dict[int, ChainSummary]:
    """Link the pages of *batch* that go on from one another, the first with the last one of the batch before."""
    changed: dict[int, ChainSummary] = {}
    before, last, chain = _last(store, owner)
    for each in batch:
        goes_on = before is not None and _goes_on(before, last, each, rules)
        if not goes_on or chain is None:
            last, chain = None if not goes_on else last, None
        summary = changed.get(chain or 0) or owner.tiers.chains.get(chain or 0) or ChainSummary()
        summary = summary.updated(each.text.title)
        if each.note is not None and each.note.chain and goes_on:  # what the note comes from, the chain does
            summary = replace(summary, about=each.note.chain)
        chain = put(connection, owner.nr, "chain", dumped(summary), id=chain, pages=[each.id])
        changed[chain] = summary
        connection.execute(
            "UPDATE memory_page SET chain = ?, previous = ?, next = NULL WHERE id = ?",
            (chain, last if goes_on else None, each.id),
        )
        if goes_on and last is not None:
            connection.execute("UPDATE memory_page SET next = ? WHERE id = ?", (each.id, last))
        before, last = each.text, each.id
    connection.execute("UPDATE memory_owner SET last = ? WHERE nr = ?", (last, owner.nr))
    return changed


def _goes_on(before: PageFeatures, last: int | None, page: _Queued, rules: Rules) -> bool:
    """Tell whether a page goes on from the one before: as a model said of just these two, else by the rule."""
    if page.note is not None and page.note.continues is not None and page.note.after == last:
        return page.note.continues
    return rules.continuity(before, page.text)


def _last(store: MemoryStore, owner: Owner) -> tuple[PageFeatures | None, int | None, int | None]:
    """Return the page that was handed over last, its id and its chain."""
    found = store.read_rows(
        "SELECT g.id, g.chain, g.summary, g.keywords, g.at, v.vector FROM memory_owner AS o "
        "JOIN memory_page AS g ON g.id = o.last LEFT JOIN memory_vector AS v ON v.page = g.id AND v.passage = 0 "
        "WHERE o.nr = ?",
        owner.nr,
    )
    if not found:
        return None, None, None
    id_, chain, title, words, at, vector = found[0]
    return PageFeatures("", title, tuple(json.loads(words or "[]")), unpacked(vector), at), id_, chain


def _joined(
    connection: apsw.Connection,
    owner: Owner,
    batch: Sequence[_Queued],
    grouped: Sequence[Topic],
    rules: Rules,
    now: float,
) -> tuple[dict[int, Episode], dict[int, int]]:
    """Let each topic join the episode that it belongs to, or open one; return those, and which page is in which."""
    changed: dict[int, Episode] = {}
    members: dict[int, int] = {}
    for topic in grouped:
        pages = [batch[at] for at in topic.pages]
        times = [each.page.at for each in pages if each.page.at is not None]
        first, last = min(times, default=None), max(times, default=None)
        known = {**{key: owner.tiers.episodes[key] for key in _near(owner, topic)}, **changed}
        key = best(topic, known.items(), threshold=rules.threshold)
        if key is None:
            episode = opened(topic, now=now, first=first, last=last)
        else:
            episode = merged(known[key], topic, now=now, first=first, last=last)
        ids = [each.id for each in pages]
        body = dumped(episode, without=["embedding"])
        key = put(connection, owner.nr, "episode", body, id=key, vector=episode.embedding, pages=ids)
        connection.executemany("UPDATE memory_page SET episode = ? WHERE id = ?", [(key, each) for each in ids])
        changed[key] = episode
        members.update((each, key) for each in ids)
    return changed, members


def _near(owner: Owner, topic: Topic) -> list[int]:
    """Return the episodes that *topic* is compared with; without vectors, those that were opened last."""
    index = owner.tiers.vectors
    if topic.vector is None or index is None or index.dimension != len(topic.vector):
        return sorted(owner.tiers.episodes)[-CANDIDATES:]
    ids, _ = index.search(topic.vector, CANDIDATES)
    return [int(each) for each in ids if int(each) in owner.tiers.episodes]
