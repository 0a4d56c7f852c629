"""Ranking: from a question to a score per passage. BM25, and what else tells that a passage answers.

    question ──▶ `Query`: its terms, dates, form
                   │ BM25 over the terms, with what passages borrow from their neighbours     `bm25`
                   │ + vectors: how unusually near the passage is to the question
                   │ × priors: who says it, whether it tells a time, whether it only asks …    `Weights`
                   ▼
                 a score from 0 to 1

Every prior is a field of `Weights`, and off at 0.
"""

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...text.language.dates import asked_dates, asks_time
from ...text.language.questions import Form, asks_assistant, asks_own, form_of, framing
from ...text.language.terms import query_terms
from .bm25 import Postings, bm25
from .layout import ROLES, Floats, Integers, Layout, talk_like

_SCALE = 1.2
"""a passage that has every word of a question once comes to 0.7"""
_FAINT = 0.05
"""the least deviation that scores of words are taken to have, so that vectors count where words find nothing"""
_LATELY = 200
"""passages after which a tool's answer is a third as fresh"""
_WHOLE = 8
"""terms of a passage that says something by itself"""
_SUBSTANCE: Floats = np.log1p(np.arange(_WHOLE + 1, dtype=np.float32))
"""by the number of its terms, up to these"""
_LECTURED = 0.5
"""`Layout.lecturing` from which on only the user tells of the user"""


_SURE_OF_MESSAGE = (-1.5, 0.35, 0.7, 3.2, 10.0, 1.1)
_SURE_OF_ANSWER = (0.4, 1.0, 11.0, 4.0, -0.9)
"""how sure a score is: logistic functions, chosen on dialogues and chats, each half confirmed on the other"""


@dataclass(frozen=True, slots=True)
class Weights:
    """What counts how much. Chosen on conversations, confirmed on others: see benchmarks/recall."""

    saturation: float = 1.0
    """BM25's k1: the frequency that counts half of what a word can"""
    spread: float = 1.0
    """BM25's b: how much a piece of an assistant's long answer pays for its length"""
    name: float = 0.0
    """what a speaker's name counts as a word: it is the others who say it"""
    date: float = 1.2
    """what the date beside a passage counts, where the question names one"""
    substance: float = 0.06
    """for length: grows with the logarithm of it, up to 8 terms; what is longer takes the room of others"""
    question: float = 0.15
    """against a turn that asks: who asks does not know"""
    speaker: float = 0.9
    """for a passage by a person whom the question names"""
    presence: float = 0.01
    """the score of a passage by a person whom the question names, where it has no other word"""
    when: float = 0.5
    """for a passage that tells a time, where the question asks for one"""
    lecture: float = 0.6
    """against an assistant's long answer, which has the words of many questions; not if the question is about it"""
    user: float = 2.0
    """for what the user said, where the assistant answers in long texts; not if the question is about its answers"""
    fresh: float = 2.0
    """for what a tool answered lately: its answers go stale, and a later one tells how things are now"""
    framing: float = 0.0
    """what a word counts by which an order or a summary is asked for"""
    listing: bool = True
    """whether a list of what the user said, in order, is only that, and is filled up evenly over time"""
    clauses: int = 8
    """lasting instructions that a request gets, at most, beside what is found"""
    packed: int = 4_096
    """tokens of a budget for each piece of a message, after the first one"""
    vectors: float = 1.0
    """what one standard deviation of cosine counts, in standard deviations of the words' scores"""


class Query(NamedTuple):
    """A question, taken apart."""

    terms: tuple[str, ...]
    dates: tuple[str, ...] = ()
    asks_time: bool = False
    asks_assistant: bool = False
    """whether it asks for something that the assistant wrote"""
    form: Form = ""
    asks_own: bool = False
    """whether it asks about the one who asks"""

    @classmethod
    def of(cls, text: str) -> "Query":
        """Take *text* apart. O(length)."""
        found, dates = tuple(query_terms(text)), tuple(asked_dates(text))
        return cls(found, dates, asks_time(text), asks_assistant(text), form_of(text), asks_own(text))

    @property
    def framing(self) -> frozenset[str]:
        """Its terms that only ask for an order or a summary; none if it has no others."""
        asking = framing() if self.form in ("order", "summary") else frozenset()
        return asking if not asking.issuperset(self.terms) else frozenset()

    def lists_own(self, layout: Layout) -> bool:
        """Return whether it wants in order what the user said: of a chat whose other side gives long answers."""
        return self.form == "order" and self.asks_own and layout.lecturing > _LECTURED


class Ranking(NamedTuple):
    """How well each passage answers."""

    scores: Floats
    """from 0 to 1; 0: nothing in common"""
    fit: float = 0.0
    """below 0: the words are rather those of other people than of the one whom the question names, who may never have
    said such a thing; above 0: rather that one's. 0: it names nobody"""


def rank(
    query: Query,
    postings: Postings,
    layout: Layout,
    *,
    vectors: NDArray[np.float32] | None = None,
    weights: Weights | None = None,
) -> Ranking:
    """Return a score per passage. O(postings of the query's terms + passages).

    *vectors* are the cosines of each passage and the query, by an embedder that knows meanings; for nan, the mean of
    the others stands.
    """
    rule = weights or Weights()
    if not len(layout):
        return Ranking(np.zeros(0, np.float32))
    terms = {term: rule.name if layout.people(term) else 1.0 for term in query.terms}
    terms |= dict.fromkeys(query.dates, rule.date)
    terms |= dict.fromkeys(query.framing.intersection(terms), rule.framing)
    found = bm25(terms, postings, layout, saturation=rule.saturation, spread=rule.spread)
    if vectors is not None:
        spread = float(found[layout.columns.role >= 0].std())  # -1: no passage is there
        found += rule.vectors * max(spread, _FAINT) * _deviations(vectors, layout)
    people = {number for term in query.terms for number in layout.people(term)}
    present = layout.said_by(people) if people else None
    fit = 0.0
    if present is not None:
        fit = 0.0 if layout.only(people) else _fit(found, present)
        np.add(found, np.float32(rule.presence), out=found, where=present)
    if rule.listing and query.lists_own(layout):
        found[layout.columns.role != ROLES["user"]] = 0
    rows = np.flatnonzero(found > 0)
    scores = np.zeros(len(found), np.float32)
    scores[rows] = 1 - np.exp(-_SCALE * found[rows] * (1 + _priors(query, layout, rule, rows, present)))
    return Ranking(scores, fit)


def certainty(score: float, best: Sequence[float], fit: float = 0.0) -> float:
    """Return how likely a message answers that has this *score*: of a hundred with 0.8, about eighty do.

    *best* are the scores of the ten best messages, best first: what stands out from the others is likelier. *fit* is
    that of the `Ranking`.
    """
    own, *others = map(_unscale, (score, *best[:2], *best[9:10]))
    tenth, rival = others[2] if len(others) > 2 else 0.0, others[:2]
    beside = rival[0] if rival and own < rival[0] else rival[1] if len(rival) > 1 else 0.0
    own = math.log(own + 1e-3)
    return _logistic(_SURE_OF_MESSAGE, own, own - math.log(tenth + 0.05), own - math.log(beside + 0.05), *_parts(fit))


def answer_certainty(best: float, fit: float, *, asks: bool) -> float:
    """Return how likely one of the first five messages answers: of a hundred questions with 0.8, about eighty do.

    Args:
        best: The score of the best message.
        fit: That of the `Ranking`.
        asks: Whether the best message is itself a question.
    """
    return _logistic(_SURE_OF_ANSWER, math.log(_unscale(best) + 1e-3), *_parts(fit), asks)


def _logistic(weights: Sequence[float], *signs: float) -> float:
    return 1 / (1 + math.exp(-sum(map(operator.mul, weights, (1.0, *signs)))))


def _parts(fit: float) -> tuple[float, float]:
    return min(fit, 0.0), max(fit, 0.0)


def _unscale(score: float) -> float:
    return -math.log(1 - min(score, 1 - 1e-6)) / _SCALE


def _fit(found: Floats, present: NDArray[np.bool_]) -> float:
    """Return by how much the best score of those who are *present* is above the best of the others (logarithms)."""
    named, others = (found * present).max(initial=0), (found * ~present).max(initial=0)
    return math.log((named + 0.05) / (others + 0.05))


def _deviations(vectors: NDArray[np.float32], layout: Layout) -> Floats:
    """Return by how many deviations the cosine of each passage, with its neighbours', is above the mean, or 0."""
    known = ~np.isnan(vectors)
    if not known.any():
        return np.zeros(len(vectors), np.float32)
    at = layout.columns
    near = np.append(np.where(known, vectors, vectors[known].mean()), np.float32(0))
    around, taken = near[:-1].copy(), np.ones(len(vectors), np.float32)
    for link, lent, far in zip(at.links, at.lent, (1, 1, 0.5, 0.5), strict=True):
        around += far * lent * near[link]
        taken += far * lent
    around /= taken
    above = (around - around[known].mean()) / (around[known].std() + 1e-6)
    unusual: Floats = np.maximum(above, 0).astype(np.float32)
    return unusual


def _priors(query: Query, layout: Layout, rule: Weights, rows: Integers, present: NDArray[np.bool_] | None) -> Floats:
    at = layout.columns
    before, after = at.lent[0][rows] > 0, at.lent[1][rows] > 0
    talk = talk_like(at.whole[rows])
    # A short statement that stands alone is whole, however short: between such, length says nothing.
    told = np.where(before | after, 1, 1 - talk)
    prior: Floats = np.zeros(len(rows), np.float32)
    prior += rule.substance / np.log1p(_WHOLE) * _SUBSTANCE[np.minimum(at.length[rows], _WHOLE).astype(np.int64)] * told
    # Only in quick talk: who explains something to an assistant at length asks something in the end, too.
    prior -= rule.question * at.question[rows] * talk * after
    if not query.asks_assistant:
        prior -= rule.lecture * at.lecture[rows]
        prior += rule.user * layout.lecturing * (at.role[rows] == ROLES["user"])
    if rule.fresh and (tools := np.flatnonzero(at.role[rows] == ROLES["tool"])).size:
        prior[tools] += rule.fresh * np.exp((at.nth[rows[tools]] - len(layout)) / _LATELY)
    if present is not None:
        prior[present[rows]] += rule.speaker
    if query.asks_time:
        prior += rule.when * at.timed[rows]
    return prior
