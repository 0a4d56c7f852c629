"""Scores of passages, in the way people talk.

    query  ──▶  where its terms stand  ──▶  lent to neighbours  ──▶  one BM25  ──▶  priors  ──▶  score
    "When did Mel paint the lake?"  paint ▪ lake ▪   ½ beside, ⅓ two away       who, when, what

The word that a question asks by is often said by the other speaker one turn before: so a turn borrows its neighbours'
words (how many, `layout` decides: much in quick talk, little in long texts). Every prior is a field of `Weights`, and
off at 0. This module knows nothing of storage: postings and columns come in as arrays.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...text.language.dates import asked_dates, asks_time
from ...text.language.terms import is_single, query_terms
from .columns import ROLES, Floats, Integers, Layout, talk_like

Postings = Mapping[str, tuple[Integers, Integers]]
"""per term: the positions that have it, ascending, and how often each"""


@dataclass(frozen=True, slots=True)
class Weights:
    """What counts how much. Chosen on conversations, confirmed on others: see benchmarks/recall."""

    saturation: float = 1.0
    """BM25's k1: the frequency that counts half of what a word can"""
    substance: float = 0.125
    """for saying something: grows with the logarithm of the length, up to 30 terms"""
    question: float = 0.15
    """against a turn that asks: who asks does not know"""
    speaker: float = 0.9
    """for what somebody said whom the question names"""
    presence: float = 0.01
    """what it counts that somebody said it whom the question names, where no word does"""
    name: float = 0.0
    """what a speaker's name counts as a word: it is said by the others"""
    when: float = 0.5
    """for a passage that tells a time, where the question asks for one"""
    date: float = 1.2
    """what the date beside a passage counts, where the question names one"""
    lecture: float = 0.6
    """against an assistant's long answer, which has the words of many questions; not where the question is about it"""
    spread: float = 1.0
    """BM25's b: how much a piece of such an answer pays for its length; what people write pays nothing"""
    fresh: float = 2.0
    """for what a tool said lately: its answers go stale, and a later one tells how things are now"""
    single: float = 0.3
    """what a single character counts, beside the pairs, in writing without spaces"""
    vectors: float = 1.0
    """what one standard deviation of cosine counts, in standard deviations of the words' scores"""
    spelling: float = 0.1
    """the same for vectors of spelling, for passages without any word of a query of unknown words"""


@dataclass(frozen=True, slots=True)
class Query:
    """A question, taken apart."""

    terms: tuple[str, ...]
    dates: tuple[str, ...] = ()
    asks_time: bool = False
    addresses: bool = False
    """it asks for what the assistant said"""

    @classmethod
    def of(cls, text: str) -> "Query":
        """Take *text* apart. O(length)."""
        addresses = _ADDRESSES.search(text) is not None
        return cls(tuple(query_terms(text)), tuple(asked_dates(text)), asks_time(text), addresses)


_ADDRESSES = re.compile(
    r"\b(?:did|have|had|were) you\b|\byour (?:\w+ )?(?:advice|suggestion|recommendation|answer|reply|explanation)"
    r"|\byou(?:'d|'ve| had| have| also)? (?:said|told|suggest|recommend|advise|mention|gave|explain|wrote|propose)"
    r"|\bassistant\b|[你您](?:当时|之前|上次)?(?:说|建议|推荐|提到|告诉|给)|助手|あなたが|推薦して|당신이",
    re.IGNORECASE,
)
_ENOUGH = 30
"""terms of a turn that says all it can"""
_SCALE = 1.2
"""a passage that says all of a question once comes to 0.7"""
_FAINT = 0.05
"""the deviation that scores of words have at least, so that vectors speak where words are silent"""
_LATELY = 200
"""passages after which a tool's answer is a third as fresh"""


@dataclass(frozen=True, slots=True)
class Found:
    """A page that was found."""

    context: int
    page: int
    position: int
    """of its passage that fits best"""
    score: float


def rank(
    query: Query,
    postings: Postings,
    layout: Layout,
    *,
    vectors: NDArray[np.float32] | None = None,
    semantic: bool = True,
    weights: Weights | None = None,
) -> Floats:
    """Return a score from 0 to 1 per passage; 0: nothing in common. O(postings of the query's terms + passages).

    Args:
        query: What is looked for.
        postings: At least those of the query's terms.
        layout: The passages that the postings' positions mean.
        vectors: Cosine of each passage and the query, if there are vectors; nan: none yet, the mean stands for it.
        semantic: Whether the vectors know meanings; those of spelling count as far as words are unknown.
        weights: What counts how much.
    """
    rule = weights or Weights()
    if not len(layout):
        return np.zeros(0, np.float32)
    said, unknown = _words(query, postings, layout, rule)
    if vectors is not None:
        near = _unusual(vectors, layout)
        if semantic:
            said += rule.vectors * max(float(said.std()), _FAINT) * near
        else:
            said = np.where(said > 0, said, rule.spelling * unknown * _FAINT * near)
    people = {number for term in query.terms for number in layout.people(term)}
    present = np.isin(layout.columns.speaker, list(people)) if people else None
    if present is not None:
        said[present] += rule.presence
    found = np.flatnonzero(said > 0)
    scores = np.zeros(len(layout), np.float32)
    scores[found] = 1 - np.exp(-_SCALE * said[found] * (1 + _priors(query, layout, rule, found, present)))
    return scores


def best_pages(
    scores: Floats, layout: Layout, k: int, *, allowed: NDArray[np.bool_] | None = None, least: float = 0.0
) -> list[Found]:
    """Return the *k* pages with the best passages, best first; of equals the later. O(passages).

    Args:
        scores: What `rank` gave.
        layout: Where the passages are.
        k: How many pages at most.
        allowed: Per passage, whether it may be found; None: each.
        least: Scores up to this are as good as none.
    """
    hopeful = np.flatnonzero(scores > least if allowed is None else (scores > least) & allowed)
    at = layout.columns
    wanted = 4 * k
    while True:
        top = hopeful
        if len(top) > wanted:
            top = top[np.argpartition(-scores[top], wanted)[:wanted]]
        top = top[np.lexsort((-top, -scores[top]))]
        _, first = np.unique((at.context[top] << 32) + at.page[top], return_index=True)
        if len(first) >= k or len(top) == len(hopeful):
            best = top[np.sort(first)[:k]]
            return [Found(int(at.context[i]), int(at.page[i]), int(i), float(scores[i])) for i in best]
        wanted *= 4


def _words(query: Query, postings: Postings, layout: Layout, rule: Weights) -> tuple[Floats, float]:
    """Return the share of the query's weight that each passage, with what it borrows, says; and that nobody says."""
    at = layout.columns
    count = len(layout)
    sides = (at.after, at.before, at.after2, at.before2)  # row by row of `lent`: who borrows from here
    scores = np.zeros(count + 1, np.float32)
    tf = np.zeros(count + 1, np.float32)  # the last one takes what has no neighbour
    costs = rule.saturation * (1 + rule.spread * at.lecture * np.maximum(at.length / _ENOUGH - 1, 0))
    total = unknown = 0.0
    for term in (*query.terms, *query.dates):
        positions, frequencies = postings.get(term, _NOWHERE)
        marked = term.startswith("@")
        known = len(positions)
        idf = float(np.log1p((count - known + 0.5) / (known + 0.5)))
        idf *= rule.date if marked else rule.name if layout.people(term) else rule.single if is_single(term) else 1
        if not idf:
            continue
        total += idf
        if not known:
            unknown += idf
            continue
        tf[positions] = frequencies
        if not marked:
            for side, link in enumerate(sides):
                borrowers = link[positions]
                # of each link a passage has one end: no borrower comes twice, but the one that is none
                tf[borrowers] += at.lent[side][borrowers] * frequencies
            tf[-1] = 0
        having = np.flatnonzero(tf)
        here = tf[having]
        scores[having] += idf * (rule.saturation + 1) * here / (here + costs[having])
        tf[having] = 0
    return scores[:-1] / max(total, 1e-6), unknown / max(total, 1e-6)


def _unusual(vectors: NDArray[np.float32], layout: Layout) -> Floats:
    """Return by how many deviations the cosine of each passage, with what it borrows, is above the mean; else 0."""
    known = ~np.isnan(vectors)
    if not known.any():
        return np.zeros(len(vectors), np.float32)
    at = layout.columns
    near = np.append(np.where(known, vectors, vectors[known].mean()), np.float32(0))
    around, taken = near[:-1].copy(), np.ones(len(vectors), np.float32)
    for side, (link, far) in enumerate(((at.before, 1), (at.after, 1), (at.before2, 0.5), (at.after2, 0.5))):
        around += far * at.lent[side] * near[link]
        taken += far * at.lent[side]
    around /= taken
    above = (around - around[known].mean()) / (around[known].std() + 1e-6)
    unusual: Floats = np.maximum(above, 0).astype(np.float32)
    return unusual


def _priors(query: Query, layout: Layout, rule: Weights, rows: Integers, present: NDArray[np.bool_] | None) -> Floats:
    at = layout.columns
    prior = np.zeros(len(rows), np.float32)
    prior += rule.substance / np.log1p(_ENOUGH) * np.log1p(np.minimum(at.length[rows], _ENOUGH))
    # in quick talk alone: who tells an assistant at length how things are asks something in the end, too
    prior -= rule.question * at.question[rows] * talk_like(at.whole[rows]) * (at.lent[1][rows] > 0)
    if rule.lecture and not query.addresses:
        prior -= rule.lecture * at.lecture[rows]
    if rule.fresh and (tools := np.flatnonzero(at.role[rows] == ROLES["tool"])).size:
        prior[tools] += rule.fresh * np.exp((rows[tools] - len(layout)) / _LATELY)
    if present is not None:
        prior[present[rows]] += rule.speaker
    if query.asks_time:
        prior += rule.when * at.timed[rows]
    return prior


_NOWHERE = (np.zeros(0, np.int64), np.zeros(0, np.int64))
