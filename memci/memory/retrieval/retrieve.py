"""Retrieval: what a memory answers to a question. Passages by their words and vectors, pages of near episodes, facts.

    question ──▶ words ─────┐
             ──▶ vectors ───┼─▶ passages, best first ──▶ pages, in a budget ──▶ counted as visited
             ──▶ episodes ──┘   (they add pages that words miss, and break ties; they hide nothing)

The text of a passage is read from its page in the page store, so that what is shown is exact. This module knows nothing
of how a score comes about.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import NamedTuple

import numpy as np

from ...errors import EmbeddingFailed, StorageBusy, StorageFull, StorageReadOnly
from ...messages import Message
from ..backend import FoundPage, Recollection, Tier
from ..owner import Owner, Session
from ..repository.page_source import page_reader
from ..repository.pages import EVICTED, MID, OBSERVED, SHORT
from ..repository.passages import FoundPassage
from .embedders import Embedder, embedded
from .knowledge import concepts, known, visit
from .layout import Floats, Integers
from .passages import entry_text
from .ranking import Query, rank
from .vectors import VectorIndex

EPISODES = 5
"""episodes whose pages a search looks at (the paper's m)"""
LEAST = 0.1
"""cosine from which an episode, or a page of one, is near (the paper's released code)"""
_DEPTH = 32
"""passages that a search looks at, at most, for each page that is asked for"""
_AT_ONCE = 32
"""passages whose rows are read with one query"""
_WIDEST = 16
"""characters of a token, at most, nearly always: a longer passage does not fit and is not read"""
_CRUMB = 4
"""tokens of a budget that are too few for any passage"""
_MISSES = 32
"""passages in a row that did not fit, after which no more are tried"""
_ECHO = 0.5
"""the share of a page's best score from which another passage of it is shown, too"""

_TIERS: dict[int, Tier] = {OBSERVED: "observed", SHORT: "short", MID: "mid", EVICTED: "evicted"}
_LOG = logging.getLogger("memci")


class RetrievalRequest(NamedTuple):
    """What is looked for; the fields are those of `MemoryBackend.search`."""

    query: str
    k: int = 5
    budget: int | None = None
    since: float | None = None
    until: float | None = None
    exclude: frozenset[tuple[str, int]] = frozenset()


def recollect(session: Session, request: RetrievalRequest, *, counts: bool = True) -> Recollection:
    """Return what the owner knows of the query. The store's lock is held. O(postings of its words + passages).

    What is found is visited, if that *counts*.
    """
    owner, now = session.owner, session.clock()
    owner.refresh(index=True)
    if not owner.nr or not len(owner.index.layout):
        return Recollection(request.query, retrieved_at=now)
    scores, near = _scores(session, request)
    pages = _pages(session, request, scores, near, now)
    facts = {about: known(owner, request.query, about) for about in ("user", "assistant")}
    if counts:
        try:
            visit(owner, [page.episode for page in pages], [key for each in facts.values() for key, _ in each], now)
        except (StorageBusy, StorageFull, StorageReadOnly) as error:  # what was found is returned all the same
            _LOG.debug("a search is not counted: %s", type(error).__name__)
    return Recollection(
        request.query,
        tuple(pages),
        tuple(fact for _, fact in facts["user"]),
        tuple(fact for _, fact in facts["assistant"]),
        tuple(concepts(owner, request.query)),
        owner.tiers.profile.text,
        now,
    )


def _scores(session: Session, request: RetrievalRequest) -> tuple[Floats, set[int]]:
    """Return a score per passage, 0 for one that is excluded, and the ids of pages near the query by their episode."""
    owner, embedder = session.owner, session.embedder
    query, index = Query.of(request.query), owner.index
    vector = cache(lambda: _vector(embedder, request.query))  # made when it is first needed
    vectors = _cosines(session, vector()) if embedder.semantic else None
    scores = rank(query, index.postings((*query.terms, *query.dates)), index.layout, vectors=vectors)
    at = index.layout.columns
    words_suffice = not embedder.semantic and len(np.unique(at.page[scores > 0])) >= request.k
    near = {} if words_suffice else _near_pages(session, vector, 2 * request.k)
    for page, cosine in near.items():
        own = at.page == page
        if own.any() and not scores[own].any():
            scores[np.flatnonzero(own)[0]] = LEAST * cosine
    if request.since is not None:
        scores[~(at.at >= request.since)] = 0
    if request.until is not None:
        scores[~(at.at <= request.until)] = 0
    by_context: dict[str, list[int]] = {}
    for context, number in request.exclude:
        by_context.setdefault(context, []).append(number)
    if excluded := [id_ for each in by_context.items() for id_ in owner.pages.ids(*each)]:
        scores[np.isin(at.page, excluded)] = 0
    return scores, set(near)


def _vector(embedder: Embedder, query: str) -> Floats:
    """Return *query* as a vector; zeros if the embedder fails."""
    vector: Floats = np.zeros(embedder.dimension, np.float32)
    try:
        vector = embedded(embedder, [query])[0]
    except EmbeddingFailed as error:
        _LOG.warning("search goes on without vectors: %s", error)
    return vector


def _cosines(session: Session, vector: Floats) -> Floats | None:
    """Return the cosine of each passage and a query, nan for one without a vector, None if all are. O(numbers)."""
    owner, embedder = session.owner, session.embedder
    if not vector.any():
        return None
    if owner.passage_vectors is None or owner.passage_vectors.dimension != embedder.dimension:
        index = owner.passage_vectors = VectorIndex(embedder.dimension)
        if known := owner.passages.vectors(embedder.name, embedder.dimension):
            ids, rows = zip(*known, strict=True)
            index.add(ids, np.stack(rows))
    if not len(owner.passage_vectors):
        return None
    return owner.passage_vectors.scores(vector, owner.index.ids, missing=float("nan"))


def _near_pages(session: Session, question: Callable[[], Floats], most: int) -> dict[int, float]:
    """Return up to *most* pages (their ids) of the nearest episodes that are near themselves, with their cosine."""
    index = session.owner.tiers.vectors
    if index is None or index.dimension != session.embedder.dimension or not (vector := question()).any():
        return {}
    found: dict[int, float] = {}
    for episode, nearness in zip(*index.search(vector, EPISODES), strict=True):
        if nearness < LEAST:
            break
        for page, own in session.owner.pages.vectors(int(episode), session.embedder.name):
            cosine = float(own @ vector)
            if cosine >= LEAST:
                found[page] = cosine
    return dict(sorted(found.items(), key=lambda each: -each[1])[:most])


def _pages(session: Session, request: RetrievalRequest, scores: Floats, near: set[int], now: float) -> list[FoundPage]:
    """Return pages with their best passages, within k and the budget, best first."""
    owner, left, missed = session.owner, request.budget, 0
    found: dict[int, FoundPage] = {}
    read = page_reader(session.storage)
    page_of = owner.index.layout.columns.page

    def useful(position: int) -> bool:
        known = found.get(int(page_of[position]))
        return len(found) < request.k if known is None else scores[position] >= _ECHO * known.score

    for position, passage in _passages(session, _best_first(owner, page_of, scores, request.k, now), useful):
        page, score = int(page_of[position]), float(scores[position])
        if not useful(position):
            continue
        if left is not None and (left < _CRUMB or missed > _MISSES):
            break
        if left is not None and passage.size > _WIDEST * left:
            missed += 1
            continue
        record = read(passage.context, passage.page)
        message = None if record is None else dict(record.entries).get(passage.entry)
        shown = _shown(message, passage, score)
        if shown is None:
            continue
        if left is not None:
            cost = session.count(shown.text)
            if cost > left:
                missed += 1
                continue  # a shorter one may fit
            left, missed = left - cost, 0
        if known := found.get(page):
            found[page] = replace(known, more=(*known.more, *shown.pieces))
        else:
            found[page] = replace(shown, source="episode" if page in near and score <= LEAST else "words")
    return list(found.values())


def _best_first(owner: Owner, page_of: Integers, scores: Floats, k: int, now: float) -> list[int]:
    """Return positions by score; of equal ones that of the warmer episode first, then the earlier one."""
    good = np.flatnonzero(scores > 0)
    if len(good) > (most := _DEPTH * min(k, 64)):
        good = good[np.argpartition(-scores[good], most)[:most]]
    rounded = np.round(scores[good], 5)
    _, group, sizes = np.unique(rounded, return_inverse=True, return_counts=True)
    coldness = np.zeros(len(good))
    warmths: dict[int, float] = {}
    for tied in np.flatnonzero(sizes[group] > 1).tolist():
        page = int(page_of[good[tied]])
        if page not in warmths:
            warmths[page] = owner.tiers.warmth(page, now)
        coldness[tied] = -warmths[page]
    return list(good[np.lexsort((good, coldness, -rounded))].tolist())


def _passages(
    session: Session, positions: Sequence[int], useful: Callable[[int], bool]
) -> Iterator[tuple[int, FoundPassage]]:
    """Yield each of *positions* that is *useful* with the row of its passage; some are read at a time."""
    left = iter(positions)
    while part := list(islice(filter(useful, left), _AT_ONCE)):
        ids = session.owner.index.ids[part].tolist()
        found = session.owner.passages.find(ids)
        yield from ((position, found[id_]) for position, id_ in zip(part, ids, strict=True) if id_ in found)


def _shown(message: Message | None, passage: FoundPassage, score: float) -> FoundPage | None:
    """Return the page of *passage*, a piece of *message*; None if the page does not have it any more."""
    text = "" if message is None else entry_text(message)
    context, index, start, end = passage.context, passage.page, passage.start, passage.start + passage.size
    if message is None or len(text) < end:
        _LOG.warning("page #%d is not what the memory knows of it: it is observed again at the next change", index)
        return None
    found = (context, index, passage.entry, min(1.0, score), text[start:end], passage.role, passage.turn, passage.at)
    speaker = str(message.get("name") or passage.speaker)
    return FoundPage(*found, speaker, start, _TIERS[passage.tier], passage.episode)
