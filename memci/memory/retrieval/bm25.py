"""BM25: how much of a question's words each passage has, with the words that it borrows from its neighbours.

    idf    = ln(1 + (N − n + ½) / (n + ½))                       N passages, n of them have the term
    score  = Σ weight · idf · tf · (k1 + 1) / (tf + cost)        summed over the terms, divided by Σ weight · idf

    tf     how often the passage has the term, and for each neighbour its share (`Columns.lent`) of how often that one
           has it: "Which instrument?" – "The violin." is found by both words
    cost   k1, the frequency that counts half; in a long text of the assistant more, with its length (BM25's b)

A passage that has every term once scores about 1, and one that neither has nor borrows any scores 0. A term that begins
with @ is a date: it stands beside the passage, and is not lent.
"""

from collections.abc import Mapping

import numpy as np

from .layout import ENOUGH, Floats, Integers, Layout

Postings = Mapping[str, tuple[Integers, Integers]]
"""per term: the positions of the passages that have it, ascending, and how often each has it"""

_NOWHERE = (np.zeros(0, np.int64), np.zeros(0, np.int64))


def bm25(
    weights: Mapping[str, float], postings: Postings, layout: Layout, *, saturation: float = 1.0, spread: float = 1.0
) -> Floats:
    """Return the score of each passage. O(postings of the terms + passages).

    *weights* say how much each term of the question counts. *saturation* is BM25's k1, and *spread* its b, for long
    texts of the assistant only: what people write pays nothing for its length.
    """
    at = layout.columns
    count, size = len(layout), len(at.page)
    before, after, before2, after2 = at.links
    borrowing = (after, before, after2, before2)  # row by row of `lent`: which passage borrows from here
    scores = np.zeros(size + 1, np.float32)
    tf = np.zeros(size + 1, np.float32)  # the last one is for "no neighbour", position -1
    costs = None
    if layout.lecturing:
        costs = saturation * (1 + spread * at.lecture * np.maximum(at.length / ENOUGH - 1, 0))
    total = 0.0
    for term, weight in weights.items():
        positions, frequencies = postings.get(term, _NOWHERE)
        known = len(positions)
        idf = weight * float(np.log1p((count - known + 0.5) / (known + 0.5)))
        total += idf
        if not known or not idf:
            continue
        tf[positions] = frequencies
        if not term.startswith("@"):
            for link, lent in zip(borrowing, at.lent, strict=True):
                borrowers = link[positions]
                # Along one link each passage has one borrower: no position comes twice, except -1.
                tf[borrowers] += lent[borrowers] * frequencies
            tf[-1] = 0
        having = np.flatnonzero(tf != 0)  # of booleans, numpy finds them ten times as fast
        here = tf[having]
        cost = saturation if costs is None else costs[having]
        scores[having] += idf * (saturation + 1) * here / (here + cost)
        tf[having] = 0
    return scores[:-1] / max(total, 1e-6)
