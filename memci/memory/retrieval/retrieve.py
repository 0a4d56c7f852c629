"""Retrieval: answers a query with messages, lasting instructions, facts, concepts and statements.

    question ──▶ words ─────┐
             ──▶ vectors ───┼─▶ passages, best first ──▶ messages, within a budget ──▶ visits
             ──▶ its form ──┘   (a request gets lasting instructions, a question for many gets short lines)

The text of a passage is read from its page in the page store, so that it is exact.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from ...errors import EmbeddingFailed, StorageBusy, StorageFull, StorageReadOnly
from ...text.language.questions import split_questions
from ...text.language.similar import Similar
from ..backend import FoundPage, Recollection, Source
from ..owner import Session
from ..repository.passages import FoundPassage
from ..repository.store import Visit
from ..tiers.rules import DEFAULTS
from .embedders import embed
from .knowledge import add_overviews, find_concepts, find_facts, find_statements
from .layout import ROLES, Floats, Integers, Layout, PassageColumns
from .ranking import Query, Ranking, answer_certainty, rank
from .results import Results, RetrievalRequest, page_of
from .succession import Said, revocations, successors
from .vectors import VectorIndex

_DEPTH = 32
"""passages that a search reads at most for each requested message: most do not fit the budget or repeat a message"""
_FLOOR = 0.25
"""share of the best score from which a message matches: on dialogues, three quarters of those with a word of the
question are below it, and one in forty of those that answer"""
_FEW = 4_096  # passages up to which words of similar meaning are looked for: reading their postings takes time
_BRIEF = 32  # terms up to which a passage costs the same: nearly all turns of talk
_WORTH = 0.75
"""power of the length by which scores are divided where not all fits; with 1, long texts that answer are passed over"""
_TOKENS = 2  # that a term costs, with the words around it that are none
_BESIDE = 64  # messages on each side of a result that may fill a budget where a group talks
_LAST = 0.5  # score of the first passage of the last conversation, if a question asks for that, and share of a reply's
_STANDING = 0.25  # share of a budget that lasting instructions take at most, so that messages fit beside them

Allowed = NDArray[np.bool_]

_LOG = logging.getLogger(__name__)


def recollect(session: Session, request: RetrievalRequest, *, counts: bool = True) -> Recollection:
    """Answer a query. The caller holds the store's lock. O(postings of its words + passages).

    If it *counts*, the results are visited.
    """
    owner, now = session.owner, session.clock()
    owner.refresh(index=True)
    if not owner.nr:
        return Recollection(request.query)
    query = Query.of(request.query, request.now)
    ranking, allowed = _ranking(session, request, query)
    pages, certain = _pages(session, request, query, ranking, allowed)
    matches = _matches(ranking, owner.index.layout)
    found = {(page.context, page.index): page.at for page in pages}
    rules = session.given or owner.tiers.rules or DEFAULTS
    near = {page.key: page.score for page in reversed(pages)} if session.embedder.semantic else {}
    facts = find_facts(owner, query.terms, rules, near, of_user=query.asks_who)
    statements = find_statements(owner, query, found, rules.tzinfo)
    if counts:
        try:
            used = [page.episode for page in pages] + [item for item, _ in statements]
            episodes = dict.fromkeys([each for each in used if each in owner.tiers.episodes])
            matched = [] if query.asks_who else [key for key, _ in facts]
            if episodes or matched:
                owner.visit(Visit([*episodes], matched, now))
        except (StorageBusy, StorageFull, StorageReadOnly) as error:  # the results are returned all the same
            _LOG.debug("a search is not counted: %s", type(error).__name__)
    return Recollection(
        request.query,
        tuple(pages),
        tuple(fact for _, fact in facts if fact.about == "user"),
        tuple(fact for _, fact in facts if fact.about == "assistant"),
        tuple(find_concepts(owner, request.query)),
        owner.tiers.portrait,
        statements=tuple(each for _, each in statements),
        strategy=owner.tiers.profile.strategy,
        certainty=certain,
        matches=matches,
    )


def _matches(ranking: Ranking, layout: Layout) -> int:
    """Return how many messages have a word of the query, and at least `_FLOOR` of the best score. O(passages)."""
    scores = ranking.scores if ranking.own is None else ranking.scores * ranking.own
    at, (good,) = layout.columns, ((scores > 0) & (scores >= _FLOOR * ranking.scores.max(initial=0))).nonzero()
    return len(np.unique(at.page[good] << 32 | at.entry[good]))


def _ranking(session: Session, request: RetrievalRequest, query: Query) -> tuple[Ranking, Allowed]:
    """Return a score per passage, 0 for those that are excluded, and which passages are allowed."""
    owner, embedder, index = session.owner, session.embedder, session.owner.index
    index.prepare(standing=query.form == "request", whole=embedder.semantic or query.form == "order" or query.asks_last)
    vectors = _cosines(session, request.query) if embedder.semantic else None

    def ranked(asked: Query) -> Ranking:
        near: Similar = {}
        if session.weights.similar and len(index.layout) <= _FEW:
            near = index.compounds(asked.stems) if asked.joined else asked.similar
        postings = index.postings((*asked.terms, *asked.dates, *asked.topics), asked.stems, near)
        return rank(asked, postings, index.layout, vectors=vectors, weights=session.weights)

    ranking = ranked(query)
    if several := split_questions(request.query):  # what answers one of several questions is not like the others
        each = [ranked(Query.of(part, request.now)).scores for part in several]
        ranking = ranking._replace(scores=np.maximum.reduce(each))
    at = index.layout.columns
    allowed = np.ones(len(ranking.scores), bool)
    when = at.at + 60 * at.zone if request.wall and (request.since, request.until) != (None, None) else at.at
    if request.since is not None:
        allowed &= when >= request.since
    if request.until is not None:
        allowed &= when <= request.until
    ids = owner.ids_of({(place[0], place[1]) for place in request.exclude})
    if whole := [ids[place] for place in request.exclude if len(place) == 2 and place in ids]:
        allowed[_of_pages(at.page, np.sort(whole))] = False
    if parts := [ids[place[:2]] << 32 | place[2] for place in request.exclude if len(place) == 3 and place[:2] in ids]:
        allowed[np.isin(at.page << 32 | at.entry, parts)] = False
    if query.asks_last and session.weights.conversations:
        _keep_last(session, ranking.scores)
        ranking = ranking._replace(own=None)
    ranking.scores[~allowed] = 0
    return ranking, allowed


def _keep_last(session: Session, scores: Floats) -> None:
    """Replace *scores* by those of the last conversation that is over, if there is one: what was said last is best."""
    layout, talks = session.owner.index.layout, session.owner.tiers.profile.conversations
    at, last = layout.columns, max(talks, key=lambda each: each.last, default=None)
    ended = np.flatnonzero((at.page >= last.talk) & (at.page <= last.last)) if last is not None else np.zeros(0, int)
    ended = ended[at.context[ended] == at.context[ended[:1]]]
    over = [each for each in (ended, _silent(at, session.rules.silence_seconds, session.clock())) if len(each)]
    if over:
        own = max(over, key=lambda each: float(np.nan_to_num(at.at[each[-1]])))
        scores[:] = 0
        scores[own] = np.linspace(_LAST, 2 * _LAST, len(own)) * np.where(layout.replies[own], _LAST, 1)


def _silent(at: PassageColumns, silence: float, now: float) -> Integers:
    """Return the positions of the last stretch of talk that a *silence* follows, whether or not it was ended yet."""
    order = np.flatnonzero(at.role >= 0)  # -1: there is no passage
    order = order[np.argsort(at.context[order], kind="stable")]
    if not len(order):
        return order
    context, when = at.context[order], at.at[order]
    ends = np.flatnonzero(np.append((context[1:] != context[:-1]) | (np.diff(when) > silence), True))
    over = np.append(context[ends[1:]] == context[ends[:-1]], False) | (when[ends] <= now - silence)
    last = int(np.argmax(np.where(over, when[ends], -np.inf)))
    return order[ends[last - 1] + 1 if last else 0 : ends[last] + 1] if over[last] else order[:0]


def _of_pages(page: Integers, few: Integers) -> Integers:
    """Return the positions whose *page* is among a *few*, which are sorted. O(passages)."""
    near = np.flatnonzero((page >= few[0]) & (page <= few[-1]))
    return np.asarray(near[few[np.searchsorted(few, page[near])] == page[near]])


def _cosines(session: Session, query: str) -> Floats | None:
    """Return the cosine of each passage, nan without a vector; None without any, or if embedding fails. O(numbers)."""
    owner, embedder = session.owner, session.embedder
    try:
        vector = embed(embedder, [query])[0]
    except EmbeddingFailed as error:
        _LOG.warning("search continues without vectors: %s", error)
        return None
    if not vector.any():
        return None
    if owner.passage_vectors is None or owner.passage_vectors.dimension != embedder.dimension:
        index = owner.passage_vectors = VectorIndex(embedder.dimension)
        index.add(*owner.passages.vectors(embedder.name, embedder.dimension))
    if not len(owner.passage_vectors):
        return None
    return owner.passage_vectors.scores(vector, owner.index.ids, missing=float("nan"))


def _pages(
    session: Session,
    request: RetrievalRequest,
    query: Query,
    ranking: Ranking,
    allowed: Allowed,
) -> tuple[list[FoundPage], float | None]:
    """Return messages, best first, then the lasting instructions that a request gets; and the certainty."""
    scores = ranking.scores
    owner = session.owner
    ids, layout, weights = owner.index.ids, owner.index.layout, session.weights
    at = layout.columns
    best = _best_first(scores, ids, request.k)
    answer = Results(session, request, query, ranking, best)
    if request.budget is not None and not query.many:
        best = _packed(best, scores, layout, request.k, request.budget)
    if query.form == "request" and weights.clauses and not request.skip:
        standing = np.flatnonzero(allowed & (at.standing > 0))
        fitting = standing[np.lexsort((-ids[standing], -scores[standing]))]
        answer.add(best, share=1 - _STANDING)
        answer.add(fitting[: weights.clauses].tolist(), "standing", share=_STANDING)
    answer.add(best)
    answer.sort()
    answer.add_idle()
    if request.budget is not None and weights.listing and (query.many or query.lists_own(layout)):
        first = np.flatnonzero(allowed & (at.role == ROLES["user"]) & (at.part == 0))
        if not query.lists_own(layout):  # what a single user stated of themselves
            first = first[(at.speaker[first] == layout.speakers.get("", -1)) & (at.question[first] == 0)]
        answer.add_telling(first[np.argsort(ids[first])])
    elif request.budget is not None and not request.skip:
        answer.add(_beside([*answer.positions.values()], layout, allowed), "beside")
    if request.skip:
        answer.drop(request.skip)
    fit = answer.refit(ranking)
    top, asks = (float(scores.max()), bool(at.question[scores.argmax()])) if best else (0.0, False)
    sure = answer_certainty(request.query, top, fit, asks=asks)
    return add_overviews(owner, _followed(session, request, answer), answer.chains), sure


def _followed(session: Session, request: RetrievalRequest, answer: Results) -> list[FoundPage]:
    """Return the results with what was said later about the same thing; a later result comes before an earlier one.

    Of a budget, the last results give the room.
    """
    later: dict[int, tuple[FoundPassage, str, str]] = {}
    if session.weights.follows:
        told: dict[Source, list[Said]] = {each: [] for each in get_args(Source)}
        for key, position in answer.positions.items():
            page = answer.found[key]
            told[page.source].append(Said(position, page.text, page.speaker, page.role, answer.sources[key]))
        later = successors(session, told["words"])
        if answer.columns.ends.any():
            later |= revocations(session, told["words"] + told["standing"])
    found = [
        replace(page, later=page_of(*later[position], page.score))
        if (position := answer.positions.get(key, -1)) in later
        else page
        for key, page in answer.found.items()
    ]
    places = {(page.context, page.index, page.entry): at for at, page in enumerate(found)}
    order = {at: float(at) for at in range(len(found))}
    for at, page in enumerate(found):
        behind = places.get((page.later.context, page.later.index, page.later.entry), -1) if page.later else -1
        if behind > at:
            order[behind] = min(order[behind], at - 0.5)
    found = [found[at] for at in sorted(order, key=lambda at: order[at])]
    while request.budget is not None and later and found and _cost(session, found) > request.budget:
        found.pop()
    return found


def _cost(session: Session, found: Sequence[FoundPage]) -> int:
    """Return what the texts of *found* cost, in tokens."""
    shown = (piece.text for page in found for each in (page, page.later) if each is not None for piece in each.pieces)
    return sum(map(session.count, shown))


def _best_first(scores: Floats, ids: Integers, k: int) -> list[int]:
    """Return positions by score, of equal scores the earlier one first."""
    good = np.flatnonzero(scores > 0)
    if len(good) > (most := _DEPTH * min(k, 64)):
        good = good[np.argpartition(-scores[good], most)[:most]]
    return list(good[np.lexsort((ids[good], -np.round(scores[good], 5)))].tolist())


def _packed(best: list[int], scores: Floats, layout: Layout, k: int, budget: int) -> list[int]:
    """Return *best*, those first that are worth most for their length, if a *budget* does not hold the first *k*.

    Where three people or more speak, a stretch of their talk answers, so that its shortest messages count, too.
    """
    at, here = layout.columns, np.array(best, np.int64)
    tokens = _TOKENS * (at.length[here] + 1)
    if tokens[:k].sum() <= budget:
        return best
    brief = np.where(layout.in_group(here), 1, _BRIEF)
    order = np.argsort(np.log1p(-scores[here]) / np.maximum(at.length[here], brief) ** _WORTH, kind="stable")
    return list(here[order].tolist())


def _beside(found: list[int], layout: Layout, allowed: Allowed) -> list[int]:
    """Return positions beside those *found* where a group talks, the nearest first: they belong to the same stretch."""
    at, here = layout.columns, np.array(found, np.int64)
    here = here[layout.in_group(here)]
    steps = np.arange(1, _BESIDE + 1).repeat(2)
    steps[1::2] *= -1
    near = np.clip(here + steps[:, None], 0, len(layout) - 1)
    near = near[(at.context[near] == at.context[here]) & allowed[near]]
    return list(dict.fromkeys(near.tolist()))
