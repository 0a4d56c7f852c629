"""The index of one owner's words: which passages have a term, and how often.

    "oslo"   ──▶   positions [3, 17, 18]   times [1, 2, 1]        positions are those of a `Layout`

What was read from the store stays in RAM, and passages are added to it as they come; after a change by another process
it is read again. This module knows nothing of scores.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ...text.language.terms import extent
from ..repository.passages import PassageTable
from .layout import Integers, Layout, Row, flags_of
from .passages import Passage, passage_terms

MOST_POSTINGS = 4_000_000
"""postings of one owner that stay in RAM, at most"""

Posting = tuple[Integers, Integers]
"""the positions of the passages that have a term, ascending, and how often each has it"""


class WordIndex:
    """The passages of one owner. Not thread-safe: the caller holds the store's lock."""

    def __init__(self, table: PassageTable) -> None:
        self._table = table
        self._clear()

    def _clear(self) -> None:
        self.layout = Layout()
        self._ids = np.zeros(0, np.int64)
        self._sorted: tuple[Integers, Integers] | None = None
        self._known: dict[str, Posting] = {}
        self._more: dict[str, list[tuple[int, int]]] = {}
        """what was added after a term was read: (position, times)"""
        self._kept = 0

    def reload(self) -> None:
        """Read everything again. O(passages)."""
        self._clear()
        found = self._table.all()  # in the order that the layout wants
        self.layout.extend(Row(*row[1:]) for row in found)
        self._extend_ids([row[0] for row in found])

    def postings(self, terms: Iterable[str]) -> Mapping[str, Posting]:
        """Return which passages have each of *terms*. O(their postings), the first time."""
        if self._kept > MOST_POSTINGS:
            self._known, self._more, self._kept = {}, {}, 0
        return {term: self._of(term) for term in terms}

    def add(self, ids: Sequence[int], rows: Sequence[Row], counts: Sequence[Counter[str]]) -> None:
        """Add passages that were just stored: their *ids*, and the terms of each. O(terms)."""
        places = self.layout.extend(rows)
        self._extend_ids(ids)
        for place, counted in zip(places, counts, strict=True):
            for term, times in counted.items():
                if term in self._known:
                    self._more.setdefault(term, []).append((place, times))
                    self._kept += 1

    def ids(self, positions: Integers) -> list[int]:
        """Return the ids of the passages at *positions*."""
        found: list[int] = self._ids[positions].tolist()
        return found

    def _extend_ids(self, ids: Sequence[int]) -> None:
        self._ids = np.concatenate([self._ids, np.array(ids, np.int64)])
        self._sorted = None

    def _of(self, term: str) -> Posting:
        known = self._known.get(term)
        if known is None:
            known = self._known[term] = self._read(term)
            self._kept += len(known[0])
        elif more := self._more.pop(term, None):
            positions, times = np.array(more, np.int64).T
            known = self._known[term] = np.append(known[0], positions), np.append(known[1], times)
        return known

    def _read(self, term: str) -> Posting:
        ids, times = np.unique(np.array(self._table.having(term), np.int64), return_counts=True)
        if self._sorted is None:
            order = np.argsort(self._ids)
            self._sorted = order, self._ids[order]
        order, sorted_ids = self._sorted
        at = np.minimum(np.searchsorted(sorted_ids, ids), max(0, len(sorted_ids) - 1))
        there = sorted_ids[at] == ids if len(sorted_ids) else np.zeros(len(ids), bool)
        positions = order[at[there]]
        by_place = np.argsort(positions)
        return positions[by_place], times[there].astype(np.int64)[by_place]


def analysed(pieces: Sequence[Passage], at: float | None) -> list[tuple[Passage, Counter[str]]]:
    """Return each passage with the terms that it is found by, and how often. O(characters)."""
    return [(piece, Counter(passage_terms(piece, at))) for piece in pieces]


def stored(
    table: PassageTable, context: int, page: int, at: float | None, pieces: Sequence[tuple[Passage, Counter[str]]]
) -> tuple[list[int], list[Row], list[Counter[str]]]:
    """Store the passages of *page* (its id) in a change of the owner. O(terms).

    Returns:
        What `WordIndex.add` takes: the ids, the rows and the terms of the passages.
    """
    ids, rows = [], []
    for piece, counted in pieces:
        length = extent([term for term in counted.elements() if not term.startswith("@")])
        speaker = piece.speaker.encode("utf-8", "replace").decode()  # half a surrogate pair can't be kept as text
        row = Row(context, page, piece.entry, piece.part, piece.role, speaker, length, at, flags_of(piece))
        fields = (row.entry, row.part, piece.start, len(piece.text), row.role, row.speaker, row.length, row.flags)
        ids.append(table.add(page, fields, counted.elements()))
        rows.append(row)
    return ids, rows, [counted for _, counted in pieces]
