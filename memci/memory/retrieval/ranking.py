"""Ranking: scores the passages for a question, by BM25 and further signs that a passage answers.

    question ──▶ `Query`: its terms, dates, form
                   │ BM25 over the terms, with words borrowed from neighbours                 `bm25`
                   │ + vectors: how unusually near the passage is to the question
                   │ × priors: who says it, whether it tells a time, whether it only asks …    `Weights`
                   ▼
                 a score from 0 to 1

Every prior is a field of `Weights`; 0 switches it off.
"""

import math
import operator
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...text.language import questions
from ...text.language.change import asked_topics
from ...text.language.dates import asked_dates, asks_time, without_days
from ...text.language.sentences import languages, script
from ...text.language.similar import Similar, similar
from ...text.language.terms import query_terms, stems, terms
from .bm25 import NOWHERE, Postings, bm25
from .layout import ROLES, Floats, Integers, Layout, talk_like
from .passages import sign_term

_SCALE = 1.2  # makes the score of a passage with every word of a question 0.7
_FAINT = 0.05  # minimum of the deviation of the scores of words, so that vectors count if words find nothing
_HALF = 0.5  # share of the weight of the words of a question that a message has which matches it
_LATELY = 200  # number of passages after which the answer of a tool is a third as fresh
_NEAR = (1, 1, 0.5, 0.5)
"""weights of the cosines of the neighbours one and two away, for a passage without words of its own"""
_REPLY = 0.9  # penalty for what an assistant without a name answers, if all is wanted that the one who asks said
_ELSEWHEN = 0.2  # factor for what was said on other days than those of which a question asks what was said
_LECTURED = 0.5  # value of `Layout.lecturing` above which lists are made of the user's messages only


_SURE_OF_MESSAGE = (-1.5, 0.35, 0.7, 3.2, 10.0, 1.1)
_SURE_OF_ANSWER: Mapping[str, tuple[float, ...]] = {
    "latin": (0.4, 1.0, 11.0, 4.0, -0.9),
    "han": (2.7, 2.5, 11.0, 4.0, -0.9),
}
"""weights of logistic functions, by script. Those of Latin script were chosen on dialogues and chats in English, those
of Han on statements in Chinese; each half confirmed those of the other. What asks in another script has no certainty"""


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of a search, chosen on some conversations and confirmed on others: see benchmarks/recall."""

    spread: float = 0.75  # BM25's b: how much length lowers the score, but of turns of talk
    topic: float = 0.6  # weight of the topic of a passage, if the question asks for it
    date: float = 1.2  # weight of the date of a passage, if the question names a date
    question: float = 0.15  # penalty for a question: the one who asks does not know
    speaker: float = 0.9  # bonus for a passage by a person whom the question names
    presence: float = 0.01  # score of a passage by a person whom the question names, if no other word matches
    when: float = 0.5  # bonus for a passage with a time, if the question asks for one
    user: float = 2.0
    """bonus for the user's messages, if the assistant answers in long texts; not if the question is about those"""
    fresh: float = 2.0  # bonus for late answers of a tool, since earlier ones may be outdated
    listing: bool = True
    """whether a chronological list of the user's messages has only those, and telling ones fill a budget"""
    clauses: int = 8  # lasting instructions that a request gets at most, in addition to the results
    packed: int = 4_096  # tokens of a budget for each piece of a message, after the first one
    follows: bool = True  # whether a result has what was said later about the same thing
    similar: bool = True  # whether words of similar meaning count
    conversations: bool = True  # whether a question for the last conversation gets its messages
    vectors: float = 1.0
    """weight of one standard deviation of the cosine, in standard deviations of the scores of words"""


_MONTH_AND_DAY = re.compile(r"@[a-z]+-\d+$")


class Query(NamedTuple):
    """The parts of a question."""

    terms: tuple[str, ...]
    dates: tuple[str, ...] = ()
    asks_time: bool = False
    asks_assistant: bool = False  # whether it asks about a text of the assistant
    form: questions.Form = ""
    asks_own: bool = False  # whether it asks about the person who asks
    topics: tuple[str, ...] = ()  # the terms of the topics for which it asks
    stems: Mapping[str, str] = MappingProxyType({})  # what other forms of its terms begin with
    asks_talk: bool = False  # whether it asks what a talk was about, or what happened
    asks_days: bool = False  # whether it asks what was said or happened on its dates, whatever it was
    many: bool = False  # whether it asks for many messages: a list, a count, an order, what changed
    times: Mapping[str, int] | None = None  # how often it has each term
    similar: Similar = MappingProxyType({})  # terms that mean nearly the same as its own, if it may be English
    joined: bool = False  # whether its words may be parts of longer ones, as in German
    asks_who: bool = False  # whether it asks what is known of the one who asks
    asks_last: bool = False  # whether it asks for the last conversation

    @classmethod
    def of(cls, text: str, now: date | None = None) -> "Query":
        """Parse *text*, which was asked on the day *now*. O(length)."""
        spoken = languages(text, ("latin",))
        found, dates = tuple(query_terms(text, spoken)), tuple(asked_dates(text, now))
        topics = tuple(map(sign_term, asked_topics(text)))
        form, many = questions.form_of(text), questions.asks_many(text)
        if form in ("order", "summary"):
            found = tuple(term for term in found if term not in questions.form_terms("framing")) or found
        days = False
        if talk := questions.asks_talk(text):
            plain = without_days(text) if dates else text
            rest = tuple(term for term in query_terms(plain, spoken) if term not in questions.form_terms("talked"))
            found, days = rest if rest or dates else found, bool(dates) and not rest
        about = {term: stem for term, stem in stems(text, spoken).items() if term in found}
        who, own = form != "request" and questions.asks_assistant(text), questions.asks_own(text)
        times, joined = Counter(terms(text)), "german" in spoken
        near = {term: similar(term) for term in found} if "latin" in spoken else {}
        parsed = cls(found, dates, asks_time(text), who, form, own, topics, about, talk, days, many, times, near)
        last = talk and questions.asks_last(text)
        return parsed._replace(joined=joined, asks_who=talk and questions.asks_who(text), asks_last=last)

    @property
    def spans(self) -> bool:
        """Whether its dates are each of several days, and not parts of one date."""
        return len(self.dates) > 1 and all(_MONTH_AND_DAY.match(each) for each in self.dates)

    def lists_own(self, layout: Layout) -> bool:
        """Return whether it asks for a chronological list of the user's messages, in a chat with long answers."""
        return self.form == "order" and self.asks_own and not self.asks_assistant and layout.lecturing > _LECTURED


class Ranking(NamedTuple):
    """The scores of all passages."""

    scores: Floats  # from 0 to 1; 0: nothing in common
    fit: float = 0.0
    """negative if the matches come mostly from speakers other than the one named in the question, positive if from that
    one; 0: the question names nobody"""
    words: Floats | None = None  # the scores of words and vectors alone, if the question names one of several speakers
    people: frozenset[int] = frozenset()  # the numbers of the speakers whom it names
    own: NDArray[np.bool_] | None = None
    """which passages have the words of the query themselves, and not only their neighbours; None: words do not tell"""

    def refit(self, told: Mapping[int, bool], layout: Layout) -> float:
        """Return `fit` by of whom passages tell, where that is known by position, and by who says the others."""
        if self.words is None:
            return self.fit
        present = layout.said_by(self.people)
        present[[*told]] = [*told.values()]
        return _fit(self.words, present)


def rank(
    query: Query,
    postings: Postings,
    layout: Layout,
    *,
    vectors: NDArray[np.float32] | None = None,
    weights: Weights | None = None,
) -> Ranking:
    """Return a score per passage. O(postings of the query's terms + passages).

    *vectors* are the cosines of each passage and the query, by an embedder of meanings; nan counts as the mean of the
    others.
    """
    rule = weights or Weights()
    if not len(layout):
        return Ranking(np.zeros(len(layout.columns.page), np.float32))  # rows of erased passages may be there
    times = query.times or {}
    # no name of a speaker: mostly other people say it
    asked = {term: times.get(term, 1) ** 0.5 for term in query.terms if not layout.people(term)}
    asked |= dict.fromkeys(query.dates, rule.date)
    asked |= dict.fromkeys(query.topics, rule.topic)
    length = 0.0 if query.asks_assistant else rule.spread
    found = bm25(asked, postings, layout, spread=length)
    own = _has_words(asked, postings, layout) if asked and vectors is None else None
    if vectors is not None:
        spread = float(found[layout.columns.role >= 0].std())  # -1: there is no passage
        found += rule.vectors * max(spread, _FAINT) * _deviations(vectors, layout)
    people = {number for term in query.terms for number in layout.people(term)}
    present = layout.said_by(people) if people else None
    fit, words = 0.0, None
    if present is not None and not layout.only(people):
        fit, words = _fit(found, present), found.copy()
    if present is not None:
        np.add(found, np.float32(rule.presence), out=found, where=present)
    if rule.listing and query.lists_own(layout):
        found[layout.columns.role != ROLES["user"]] = 0
    rows = np.flatnonzero(found > 0)
    scores = np.zeros(len(found), np.float32)
    scores[rows] = 1 - np.exp(-_SCALE * found[rows] * (1 + _priors(query, layout, rule, rows, present)))
    if query.asks_days:
        scores[~_said_on(query, postings, len(scores))] *= _ELSEWHEN
    return Ranking(scores, fit, words, frozenset(people), own)


def _has_words(asked: Collection[str], postings: Postings, layout: Layout) -> NDArray[np.bool_]:
    """Return which passages have `_HALF` of the terms *asked*, by their rarity, that the best one has."""
    had, count = np.zeros(len(layout.columns.page), np.float32), len(layout)
    for places in (postings.get(term, NOWHERE)[0] for term in asked):
        had[places] += math.log(1 + count / (len(places) + 1))
    return np.asarray(had >= _HALF * had.max(initial=_FAINT))


def _said_on(query: Query, postings: Postings, size: int) -> NDArray[np.bool_]:
    """Return which passages were said on the days that *query* names."""
    said = np.zeros((len(query.dates), size), bool)
    for row, term in zip(said, query.dates, strict=True):
        row[postings.get(term, NOWHERE)[0]] = True
    return np.asarray(said.any(0) if query.spans else said.all(0))


def certainty(score: float, best: Sequence[float], fit: float = 0.0) -> float:
    """Return the probability that a message with this *score* answers: of a hundred with 0.8, about eighty do.

    *best* are the scores of the ten best messages, best first: a score far above the others is more likely to answer.
    *fit* is that of the `Ranking`.
    """
    own, *others = map(_unscale, (score, *best[:2], *best[9:10]))
    tenth, rival = others[2] if len(others) > 2 else 0.0, others[:2]
    beside = rival[0] if rival and own < rival[0] else rival[1] if len(rival) > 1 else 0.0
    own = math.log(own + 1e-3)
    return _logistic(_SURE_OF_MESSAGE, own, own - math.log(tenth + 0.05), own - math.log(beside + 0.05), *_parts(fit))


def answer_certainty(question: str, best: float, fit: float, *, asks: bool) -> float | None:
    """Return the probability that one of the first five messages answers, calibrated like `certainty`.

    None if it was calibrated for no question in this script.

    Args:
        question: What is asked.
        best: The score of the best message.
        fit: That of the `Ranking`.
        asks: Whether the best message is a question.
    """
    weights = _SURE_OF_ANSWER.get(script(question))
    return None if weights is None else _logistic(weights, math.log(_unscale(best) + 1e-3), *_parts(fit), asks)


def _logistic(weights: Sequence[float], *signs: float) -> float:
    return 1 / (1 + math.exp(-sum(map(operator.mul, weights, (1.0, *signs)))))


def _parts(fit: float) -> tuple[float, float]:
    return min(fit, 0.0), max(fit, 0.0)


def _unscale(score: float) -> float:
    return -math.log(1 - min(score, 1 - 1e-6)) / _SCALE


def _fit(found: Floats, present: NDArray[np.bool_]) -> float:
    """Return the logarithm of the best score where *present*, minus that of the best other score."""
    named, others = (found * present).max(initial=0), (found * ~present).max(initial=0)
    return math.log((named + 0.05) / (others + 0.05))


def _deviations(vectors: NDArray[np.float32], layout: Layout) -> Floats:
    """Return how many deviations the cosine of each passage, with its neighbours', is above the mean, or 0."""
    known = ~np.isnan(vectors)
    if not known.any():
        return np.zeros(len(vectors), np.float32)
    at = layout.columns
    near = np.append(np.where(known, vectors, vectors[known].mean()), np.float32(0))
    around, taken = near[:-1].copy(), np.ones(len(vectors), np.float32)
    for link, lent, far in zip(at.links, at.lent, _NEAR, strict=False):
        around += far * lent * near[link]
        taken += far * lent
    around /= taken
    above = (around - around[known].mean()) / (around[known].std() + 1e-6)
    return np.asarray(np.maximum(above, 0), np.float32)


def _priors(query: Query, layout: Layout, rule: Weights, rows: Integers, present: NDArray[np.bool_] | None) -> Floats:
    at = layout.columns
    # Only in quick talk: a long explanation for an assistant often ends with a question, too.
    quick = talk_like(at.whole[rows]) * (at.lent[1][rows] > 0)
    prior: Floats = -rule.question * at.question[rows] * quick
    if not query.asks_assistant:
        if query.many and (query.asks_own or query.asks_talk):  # a brief reply tells nothing
            prior -= np.maximum(_REPLY, talk_like(at.whole[rows])) * layout.replies[rows]
        prior += rule.user * layout.lecturing * (at.role[rows] == ROLES["user"])
    if rule.fresh and (tools := np.flatnonzero(at.role[rows] == ROLES["tool"])).size:
        prior[tools] += rule.fresh * np.exp((at.nth[rows[tools]] - len(layout)) / _LATELY)
    if present is not None:
        prior[present[rows]] += rule.speaker
    if query.asks_time:
        prior += rule.when * at.timed[rows]
    return prior
