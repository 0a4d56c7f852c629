"""Retrieval: answers a query with messages, lasting instructions, facts, concepts and statements.

    question ──▶ words ─────┐
             ──▶ vectors ───┼─▶ passages, best first ──▶ messages, within a budget ──▶ visits
             ──▶ its form ──┘   (a request gets lasting instructions, a question for many gets short lines)

The text of a passage is read from its page in the page store, so that it is exact.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import EmbeddingFailed, StorageBusy, StorageFull, StorageReadOnly
from ...formats.provenance import own_words, spans_of, whose
from ...formats.utterance import entry_text
from ...messages import Message
from ...text.language.instructions import instructions
from ...text.language.questions import split_questions
from ...text.language.sentences import is_small_talk, sentences
from ...text.language.terms import terms
from ...text.provenance import Span
from ..backend import FoundPage, PageKey, Recollection, Shown, Source, Tier
from ..owner import Session
from ..repository.page_source import Place, read_messages
from ..repository.pages import EVICTED, MID, OBSERVED, SHORT
from ..repository.passages import FoundPassage
from ..repository.store import Visit
from ..tiers.rules import DEFAULTS
from .embedders import Embedder, embed
from .knowledge import add_overviews, find_concepts, find_facts, find_statements
from .layout import ROLES, Floats, Integers, Layout, is_question
from .passages import pieces
from .ranking import Query, Ranking, answer_certainty, certainty, rank
from .subject import tells_of
from .succession import Said, revocations, successors
from .vectors import VectorIndex

_DEPTH = 32
"""passages that a search reads at most for each requested message: most do not fit the budget or repeat a message"""
_AT_ONCE = (8, 32)  # passages that the first query reads at least, and any query at most
_WIDEST = 16  # characters that a token has at most, nearly always: longer passages cannot fit, and are not read
_CRUMB = 4  # tokens that are too few for any passage
_MISSES = 32  # consecutive passages that do not fit, after which the search stops
_REPEATS = 24  # messages with equal words that are counted: more would only be read to be counted
_ECHO = 0.5  # share of the best score of a message that another piece of it needs to be shown, too
_FLOOR = 0.25
"""share of the best score from which a message matches: on dialogues, three quarters of those with a word of the
question are below it, and one in forty of those that answer"""
_LINE = 240  # width of a result, if a question asks for many: about 50 tokens, as long as most messages between people
_SPREAD = 512  # messages over time that are looked at to fill a budget, at most
_SAME = 0.6  # share of the words of a question that another one about the same has
_FEW = 8  # words of an acknowledgement, of thanks or of a goodbye, at most
_STANDING = 0.25  # share of a budget that lasting instructions take at most, so that messages fit beside them
_RIVALS = 10  # messages with which each is compared for its certainty; `certainty` was chosen with so many
_MOST = 64  # pieces of a message that are shown at most, without a budget

Allowed = NDArray[np.bool_]

_TIERS: dict[int, Tier] = {OBSERVED: "observed", SHORT: "short", MID: "mid", EVICTED: "evicted"}
_LOG = logging.getLogger(__name__)


class RetrievalRequest(NamedTuple):
    """A query; its fields are the arguments of `MemoryBackend.search`."""

    query: str
    k: int = 5
    budget: int | None = None
    since: float | None = None
    until: float | None = None
    exclude: frozenset[Shown] = frozenset()
    wall: bool = False
    now: date | None = None
    skip: int = 0


def recollect(session: Session, request: RetrievalRequest, *, counts: bool = True) -> Recollection:
    """Answer a query. The caller holds the store's lock. O(postings of its words + passages).

    If it *counts*, the results are visited.
    """
    owner, now = session.owner, session.clock()
    owner.refresh(index=True)
    if not owner.nr:
        return Recollection(request.query, retrieved_at=now)
    query = Query.of(request.query, request.now)
    ranking, allowed = _ranking(session, request, query)
    pages, certain = _pages(session, request, query, ranking, allowed)
    matches = _matches(ranking.scores, owner.index.layout)
    found = {(page.context, page.index): page.at for page in pages}
    rules = session.given or owner.tiers.rules or DEFAULTS
    near = {page.key: page.score for page in reversed(pages)} if session.embedder.semantic else {}
    facts = find_facts(owner, query.terms, rules, near)
    statements = find_statements(owner, query, found, rules.tzinfo)
    if counts:
        try:
            used = [page.episode for page in pages] + [item for item, _ in statements]
            episodes = dict.fromkeys([each for each in used if each in owner.tiers.episodes])
            if episodes or facts:
                owner.visit(Visit([*episodes], [key for key, _ in facts], now))
        except (StorageBusy, StorageFull, StorageReadOnly) as error:  # the results are returned all the same
            _LOG.debug("a search is not counted: %s", type(error).__name__)
    return Recollection(
        request.query,
        tuple(pages),
        tuple(fact for _, fact in facts if fact.about == "user"),
        tuple(fact for _, fact in facts if fact.about == "assistant"),
        tuple(find_concepts(owner, request.query)),
        owner.tiers.portrait,
        now,
        statements=tuple(each for _, each in statements),
        strategy=owner.tiers.profile.strategy,
        certainty=certain,
        matches=matches,
    )


def _matches(scores: Floats, layout: Layout) -> int:
    """Return how many messages have at least `_FLOOR` of the best score. O(passages)."""
    at, (good,) = layout.columns, ((scores > 0) & (scores >= _FLOOR * scores.max(initial=0))).nonzero()
    return len(set(zip(at.page[good].tolist(), at.entry[good].tolist(), strict=True)))


def _ranking(session: Session, request: RetrievalRequest, query: Query) -> tuple[Ranking, Allowed]:
    """Return a score per passage, 0 for those that are excluded, and which passages are allowed."""
    owner, embedder, index = session.owner, session.embedder, session.owner.index
    index.prepare(standing=query.form == "request", whole=embedder.semantic or query.form == "order")
    vectors = _cosines(session, _vector(embedder, request.query)) if embedder.semantic else None

    def ranked(asked: Query) -> Ranking:
        postings = index.postings((*asked.terms, *asked.dates, *asked.topics), asked.stems)
        return rank(asked, postings, index.layout, vectors=vectors, weights=session.weights)

    ranking = ranked(query)
    if several := split_questions(request.query):  # what answers one of several questions is not like the others
        each = [ranked(Query.of(part, request.now)).scores for part in several]
        ranking = ranking._replace(scores=np.maximum.reduce(each))
    at = index.layout.columns
    allowed = np.ones(len(ranking.scores), bool)
    when = at.at + 60 * at.zone if request.wall else at.at
    if request.since is not None:
        allowed &= when >= request.since
    if request.until is not None:
        allowed &= when <= request.until
    ids = owner.ids_of({(place[0], place[1]) for place in request.exclude})
    if whole := [ids[place] for place in request.exclude if len(place) == 2 and place in ids]:
        allowed[_of_pages(at.page, np.sort(whole))] = False
    parts: dict[int, list[int]] = {}
    for place in request.exclude:
        if len(place) == 3 and place[:2] in ids:
            parts.setdefault(ids[place[:2]], []).append(place[2])
    for page, entries in parts.items():
        allowed[(at.page == page) & np.isin(at.entry, entries)] = False
    ranking.scores[~allowed] = 0
    return ranking, allowed


def _of_pages(page: Integers, few: Integers) -> Integers:
    """Return the positions whose *page* is among a *few*, which are sorted. O(passages)."""
    near = np.flatnonzero((page >= few[0]) & (page <= few[-1]))
    found: Integers = near[few[np.searchsorted(few, page[near])] == page[near]]
    return found


def _vector(embedder: Embedder, query: str) -> Floats:
    """Return *query* as a vector; zeros if the embedder fails."""
    vector: Floats = np.zeros(embedder.dimension, np.float32)
    try:
        vector = embed(embedder, [query])[0]
    except EmbeddingFailed as error:
        _LOG.warning("search continues without vectors: %s", error)
    return vector


def _cosines(session: Session, vector: Floats) -> Floats | None:
    """Return the cosine of each passage, nan without a vector; None if no passage has one. O(numbers)."""
    owner, embedder = session.owner, session.embedder
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
    answer = _Answer(session, request, query, ranking, best)
    if query.form == "request" and weights.clauses and not request.skip:
        standing = np.flatnonzero(allowed & (at.standing > 0))
        fitting = standing[np.lexsort((-ids[standing], -scores[standing]))]
        answer.add(best, share=1 - _STANDING)
        answer.add(fitting[: weights.clauses].tolist(), "standing", share=_STANDING)
    answer.add(best)
    answer.add_idle()
    if request.budget is not None and weights.listing and (query.many or query.lists_own(layout)):
        first = np.flatnonzero(allowed & (at.role == ROLES["user"]) & (at.part == 0))
        if not query.lists_own(layout):  # what a single user stated of themselves
            first = first[(at.speaker[first] == layout.speakers.get("", -1)) & (at.question[first] == 0)]
        answer.add(_evenly(first[np.argsort(ids[first])]), "time")
    if request.skip:
        answer.drop(request.skip)
    fit = answer.refit(ranking)
    top, asks = (float(scores[best[0]]), bool(at.question[best[0]])) if best else (0.0, False)
    sure = answer_certainty(request.query, top, fit, asks=asks)
    return add_overviews(owner, _followed(session, request, answer), answer.chains), sure


def _followed(session: Session, request: RetrievalRequest, answer: "_Answer") -> list[FoundPage]:
    """Return the results with what was said later about the same thing; a later result comes before an earlier one.

    Of a budget, the last results give the room.
    """
    later: dict[int, tuple[FoundPassage, str, str]] = {}
    if session.weights.follows:
        told: dict[Source, list[Said]] = {"words": [], "standing": [], "time": []}
        for key, position in answer.positions.items():
            page = answer.found[key]
            told[page.source].append(Said(position, page.text, page.speaker, page.role))
        later = successors(session, told["words"])
        if answer.columns.ends.any():
            later |= revocations(session, told["words"] + told["standing"])
    found = [
        replace(page, later=_page_of(*later[position], page.score))
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


class _Answer:
    """Collects at most k messages within a budget of tokens. *best* are positions, best first."""

    def __init__(
        self, session: Session, request: RetrievalRequest, query: Query, ranking: Ranking, best: Sequence[int]
    ) -> None:
        self.found: dict[tuple[int, int], FoundPage] = {}
        """by page (its id) and entry"""
        self._session, self._scores, self._fit = session, ranking.scores, ranking.fit
        self.columns = session.owner.index.layout.columns
        self._keys: dict[int, tuple[int, int]] = {}
        """page (its id) and entry of each position that was read"""
        self._most, self._left, self._missed = request.k + request.skip, request.budget, 0
        self._skip = request.skip
        # the terms by which each result is cut to a line, if the question asks for many
        self._asked = frozenset(query.terms) if query.many and request.budget is not None else None
        self._budget, self._spared = request.budget, 0
        self._standing, self._beside = False, 0  # whether instructions are added, and how many were
        # positions of passages that tell nothing: they only ask the same, or say that it is not known
        self._idle: list[int] | None = []
        self._terms = frozenset(query.terms) if is_question(request.query) else None
        self._shown: set[int] = set()
        self.positions: dict[tuple[int, int], int] = {}
        """position of the first piece of each message"""
        self.chains: dict[PageKey, int | None] = {}
        self._same: dict[tuple[str, str, str], tuple[int, int]] = {}
        """the message that is shown for all with the same words by the same speaker"""
        self._repeats = 0
        self._firsts: dict[tuple[int, int], float] = {}
        """score of the first piece of each message"""
        self._rivals = self._messages(best)
        self._pieces = _MOST if self._left is None else max(1, self._left // session.weights.packed)
        if self._asked is not None or query.form == "order":
            self._pieces = 1
        self._read: dict[Place, Message | None] = {}
        """messages that were read; None: it no longer exists"""
        self._spans: dict[Place, list[Span]] = {}
        """whose words the parts of the messages are that are shown"""

    def add(self, positions: Sequence[int], source: Source = "words", *, share: float = 1.0) -> None:
        """Add passages at *positions*, best first, until there are k messages, or they cost a *share* of the budget."""
        self._spared = max(0, (self._left or 0) - int((self._budget or 0) * share))
        self._standing, self._missed = source == "standing", 0
        at, here = self.columns, np.array(positions, np.int64)
        keys = zip(at.page[here].tolist(), at.entry[here].tolist(), strict=True)
        self._keys.update(zip(positions, keys, strict=True))
        owner, left = self._session.owner, iter(positions)
        size = min(max(_AT_ONCE[0], self._most), _AT_ONCE[1])
        while part := list(islice(filter(self._wanted, left), size)):
            ids = owner.index.ids[part].tolist()
            rows = owner.passages.find(ids)
            places = [rows[id_].place for id_ in ids if id_ in rows]
            for position, id_ in zip(part, ids, strict=True):
                if self._repeats > _REPEATS:
                    return
                if self._left is not None and (self._left < _CRUMB or self._missed > _MISSES):
                    return
                passage = rows.get(id_) if self._wanted(position) else None
                if passage is not None and (source == "standing" or not self._too_wide(passage)):
                    self._take(position, passage, source, places)
            if len(self.found) - self._beside >= self._most:  # only further pieces of these messages are wanted
                left = iter([each for each in left if self._keys[each] in self.found])
            size = min(2 * size, _AT_ONCE[1])

    def add_idle(self) -> None:
        """Add the passages that tell nothing, which were left out so far."""
        idle, self._idle = self._idle, None
        self.add(idle or [])

    def drop(self, count: int) -> None:
        """Drop the first *count* results."""
        for key in list(self.found)[:count]:
            del self.found[key], self.positions[key]

    def refit(self, ranking: Ranking) -> float:
        """Return how well what was found fits the people whom the question names, now that its text is known."""
        layout = self._session.owner.index.layout
        if ranking.words is None:
            return self._fit
        named, others = layout.names(ranking.people)
        told, speaker = {}, self.columns.speaker
        for key, position in self.positions.items():
            speaks = int(speaker[position]) in ranking.people
            told[position] = tells_of(self.found[key].text, named, others, speaks=speaks)
        self._fit = ranking.refit(told, layout)
        for key, page in self.found.items():
            score = certainty(self._firsts[key], self._rivals, self._fit)
            self.found[key] = replace(page, score=score)
        return self._fit

    def _messages(self, positions: Sequence[int]) -> list[float]:
        """Return the scores of the first `_RIVALS` messages of *positions*."""
        at = self.columns
        messages: dict[tuple[int, int], float] = {}
        for each in positions:
            messages.setdefault((int(at.page[each]), int(at.entry[each])), float(self._scores[each]))
            if len(messages) == _RIVALS:
                break
        return [*messages.values()]

    def _wanted(self, position: int) -> bool:
        if position in self._shown:
            return False
        known = self.found.get(key := self._keys[position])
        if known is None:
            # instructions are in addition to the k messages that were requested
            return self._standing or len(self.found) - self._beside < self._most
        return len(known.more) + 1 < self._pieces and bool(self._scores[position] >= _ECHO * self._firsts[key])

    def _too_wide(self, passage: FoundPassage) -> bool:
        wide = self._left is not None and passage.size > _WIDEST * self._left
        self._missed += wide
        return wide

    def _message(self, place: Place, places: Sequence[Place]) -> Message | None:
        """Return the message at *place*. Read with it as many of the next *places* as may still be taken."""
        if place not in self._read:
            fresh = dict.fromkeys(each for each in places[places.index(place) :] if each not in self._read)
            few = list(fresh)[: max(1, self._most - len(self.found) + self._beside + self._repeats)]
            self._read |= dict.fromkeys(few) | read_messages(self._session.storage, few)
        return self._read[place]

    def _take(self, position: int, passage: FoundPassage, source: Source, places: Sequence[Place]) -> None:
        message = self._message(passage.place, places)
        score = float(self._scores[position])
        shown = _found_page(message, passage, certainty(score, self._rivals, self._fit), source)
        if message is None or shown is None:
            return
        if source == "standing" and (shown := _clauses(shown, own_words(message))) is None:
            return
        if self.columns.length[position] <= _FEW and is_small_talk(shown.text):
            return
        if (
            self._idle is not None
            and source == "words"
            and (self.columns.unknown[position] or (self.columns.question[position] and self._repeats_it(shown.text)))
        ):
            self._idle.append(position)
            return
        if self._keys[position] not in self.found and (same := self._same.get(_words_of(shown))):
            self._shown.add(position)
            self._repeats += 1
            first = self.found[same]
            later = (shown.at or 0.0) > (first.at or 0.0)
            latest = replace(shown, whose=self._whose(message, passage)) if later else first
            self.found[same] = replace(latest, score=first.score, more=first.more, times=first.times + 1)
            return
        if self._asked is not None:
            shown = _line(shown, self._asked)
        if self._left is not None and (len(self.found) >= self._skip or self._keys[position] in self.found):
            cost = self._session.count(shown.text)
            if cost > self._left - self._spared:
                self._missed += 1
                return  # a shorter one may fit
            self._left, self._missed = self._left - cost, 0
        self._shown.add(position)
        self.chains[passage.context, passage.page] = passage.chain
        shown = replace(shown, whose=self._whose(message, passage))
        if known := self.found.get(key := self._keys[position]):
            self.found[key] = replace(known, more=(*known.more, *shown.pieces))
            return
        self.found[key], self._firsts[key], self.positions[key] = shown, score, position
        self._same[_words_of(shown)] = key
        self._beside += source == "standing"

    def _repeats_it(self, text: str) -> bool:
        """Return whether *text* does nothing but ask about the same as the query, which is a question."""
        if self._terms is None or len(self._terms.intersection(terms(text))) < _SAME * len(self._terms):
            return False
        return sum(1 for _ in sentences(text)) == 1

    def _whose(self, message: Message, passage: FoundPassage) -> str:
        """Return whose words *passage* of *message* has. O(characters) once for each message."""
        if passage.place not in self._spans:
            self._spans[passage.place] = spans_of(message)
        return whose(message, passage.start, passage.start + passage.size, self._spans[passage.place])


def _words_of(page: FoundPage) -> tuple[str, str, str]:
    return page.role, page.speaker, " ".join(page.text.casefold().split())


def _line(found: FoundPage, asked: frozenset[str]) -> FoundPage:
    """Return *found* with the part of its text that has most of the terms *asked*, `_LINE` wide at most."""
    parts = pieces(found.text, _LINE)
    if len(parts) < 2:
        return found
    best = max(range(len(parts)), key=lambda at: (len(asked.intersection(terms(parts[at]))), -at))
    before = len("".join(parts[:best]))
    text = parts[best].strip()
    return replace(found, text=text, start=found.start + before + parts[best].index(text))


def _clauses(found: FoundPage, own: str) -> FoundPage | None:
    """Return *found* with only the part of its text that has lasting instructions; None without such a part.

    *own* is the text of the message with what is not the user's own masked.
    """
    own = own[found.start : found.start + len(found.text)]
    places = [(found.text.find(each), len(each)) for each in instructions(found.text, own)]
    if not places:
        return None
    start, end = max(0, min(place for place, _ in places)), max(place + size for place, size in places)
    return replace(found, text=found.text[start:end], start=found.start + start)


def _evenly(positions: Integers) -> list[int]:
    """Return at most `_SPREAD` of *positions*, in an order whose beginnings lie about evenly (van der Corput)."""
    positions = positions[np.unique(np.linspace(0, max(len(positions) - 1, 0), _SPREAD).astype(int))[: len(positions)]]
    width = max(len(positions) - 1, 1).bit_length()
    order = sorted(range(len(positions)), key=lambda each: int(f"{each:0{width}b}"[::-1], 2))
    return [int(positions[each]) for each in order]


def _best_first(scores: Floats, ids: Integers, k: int) -> list[int]:
    """Return positions by score, of equal scores the earlier one first."""
    good = np.flatnonzero(scores > 0)
    if len(good) > (most := _DEPTH * min(k, 64)):
        good = good[np.argpartition(-scores[good], most)[:most]]
    return list(good[np.lexsort((ids[good], -np.round(scores[good], 5)))].tolist())


def _found_page(message: Message | None, passage: FoundPassage, score: float, source: Source) -> FoundPage | None:
    """Return the result for *passage*, a piece of *message*; None if the message no longer has it."""
    text = "" if message is None else entry_text(message)
    index, start, end = passage.page, passage.start, passage.start + passage.size
    if message is None or len(text) < end:
        _LOG.warning(
            "page #%d differs from what the memory observed: it is observed again after its next change", index
        )
        return None
    speaker = str(message.get("name") or passage.speaker)
    return _page_of(passage, text[start:end], speaker, score, source)


def _page_of(passage: FoundPassage, text: str, speaker: str, score: float, source: Source = "words") -> FoundPage:
    found = (passage.context, passage.page, passage.entry, score, text, passage.role, passage.turn, passage.at)
    return FoundPage(*found, speaker, passage.start, _TIERS[passage.tier], passage.episode, source, zone=passage.zone)
