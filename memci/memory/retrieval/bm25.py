"""BM25: scores passages by the words of a question, including words of their neighbours.

    idf    = ln(1 + (N − n + ½) / (n + ½))                       N passages, n of them have the term itself
    score  = Σ weight · idf · tf · 2 / (tf + cost)               summed over the terms, divided by Σ weight · idf

    tf     how often the passage has the term, plus a share (`PassageColumns.lent`) of how often each neighbour has it:
           "Which instrument?" – "The violin." is found by both words. A word of similar meaning counts less than once
    cost   1, the frequency that counts half; more in a passage that is longer than most (`Layout.excess`, BM25's b)

A passage with every term once scores about 1, one without any term scores 0. A term that begins with @ is a date: it
belongs to the passage alone, and neighbours get no share of it. In a large memory, common terms that together weigh
less than the rarer ones count only where the rarer ones are best.
"""

from collections.abc import Mapping

import numpy as np

from .layout import Floats, Integers, Layout, talk_like

Postings = Mapping[str, tuple[Integers, Integers | Floats]]
"""by term: the positions of the passages that have it, and how often each has it; below 1: a word of similar meaning"""

NOWHERE = (np.zeros(0, np.int64), np.zeros(0, np.int64))
"""the postings of a term that no passage has; one object, since a question asks for many such terms"""
_COMMON = 4_096  # passages from which a term is common, and in which common terms count: twice what a search looks at


def bm25(weights: Mapping[str, float], postings: Postings, layout: Layout, *, spread: float = 0.75) -> Floats:
    """Return the score of each passage. O(postings of the terms + passages).

    *weights* are those of the terms of the question. *spread* is BM25's b; its k1 is 1.
    """
    at = layout.columns
    count, size = len(layout), len(at.page)
    scores = np.zeros(size + 1, np.float32)
    tf = np.zeros(size + 1, np.float32)  # the last one is for position -1: no neighbour
    idfs = {}
    for term, weight in weights.items():
        known = np.count_nonzero(postings.get(term, NOWHERE)[1] >= 1)
        idfs[term] = weight * float(np.log1p((count - known + 0.5) / (known + 0.5)))
    total, common = sum(idfs.values()), _common(idfs, postings)
    best: Integers | None = None
    for term in sorted(idfs, key=common.__contains__):
        positions, frequencies = postings.get(term, NOWHERE)
        if not len(positions) or not idfs[term]:
            continue
        if (frequencies < 1).any():  # a long text, and a stretch of a group's talk, have similar words of anything
            quick = talk_like(at.whole[positions]) * ~layout.in_group(positions)
            frequencies = np.where(frequencies < 1, frequencies * quick, frequencies)
        tf[positions] = frequencies
        lending = [] if term.startswith("@") else layout.lending
        if term in common:
            if best is None:
                best = np.flatnonzero(scores)
                best = best[np.argpartition(-scores[best], _COMMON)[:_COMMON]] if len(best) > _COMMON else best
            having = best
            here = tf[having]
            for lender, _, lent in lending:
                here += lent[having] * tf[lender[having]]
            tf[positions] = 0
        else:
            for _, borrower, lent in lending:
                borrowers = borrower[positions]
                # A passage is the neighbour of one other at most on this side: only position -1 may occur twice.
                tf[borrowers] += lent[borrowers] * frequencies
            tf[-1] = 0
            having = np.flatnonzero(tf != 0)  # numpy is ten times as fast with booleans
            here = tf[having]
            tf[having] = 0
        costs = 1 + spread * layout.excess[having]
        scores[having] += idfs[term] * 2 * here / (here + costs)
    return scores[:-1] / max(total, 1e-6)


def _common(idfs: Mapping[str, float], postings: Postings) -> set[str]:
    """Return the most common terms, as many as together weigh less than the rest; none that few passages have."""
    found, left = set[str](), sum(idfs.values()) / 2
    for term in sorted(idfs, key=lambda term: -len(postings.get(term, NOWHERE)[0])):
        left -= idfs[term]
        if left <= 0 or len(postings.get(term, NOWHERE)[0]) <= _COMMON:
            break
        found.add(term)
    return found
