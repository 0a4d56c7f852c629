"""The index of one owner's words: which passages have a term, and how often.

    "oslo"   ──▶   positions [3, 17, 18]   times [1, 2, 1]        positions are those of a `Layout`

What was read from the store stays in RAM, and passages are added to it as they come; after a change by another process
it is read again. This module knows nothing of scores.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...text.language.terms import extent
from ..repository.passages import PassageTable
from .layout import Integers, Layout, Row, flags_of
from .passages import Passage
from .vectors import Positions

MOST_POSTINGS = 4_000_000
"""postings of one owner that stay in RAM, at most"""

Posting = tuple[Integers, Integers]
"""the positions of the passages that have a term, ascending, and how often each has it"""


class WordIndex:
    """The passages of one owner. Not thread-safe: the caller holds the store's lock."""

    def __init__(self, table: PassageTable, rows: Sequence[tuple[Any, ...]] = ()) -> None:
        """Make an index of *rows* of the table: ids and fields of `Row`, in the order that the layout wants."""
        self._table = table
        self.layout = Layout()
        self.layout.extend(Row(*row[1:]) for row in rows)
        self.ids: Integers = np.array([row[0] for row in rows], np.int64)
        self._positions: Positions | None = None
        """of the ids; None after a change"""
        self._known: dict[str, Posting] = {}
        self._more: dict[str, list[tuple[int, int]]] = {}
        """what was added after a term was read: (position, times)"""
        self._kept = 0

    def __len__(self) -> int:
        """Return how many passages and postings are in RAM."""
        return len(self.ids) + self._kept

    def postings(self, terms: Iterable[str]) -> Mapping[str, Posting]:
        """Return which passages have each of *terms*. O(their postings), the first time."""
        if self._kept > MOST_POSTINGS:
            self._known, self._more, self._kept = {}, {}, 0
        return {term: self._of(term) for term in terms}

    def add(self, ids: Sequence[int], rows: Sequence[Row], counts: Sequence[Counter[str]]) -> None:
        """Add passages that were just stored: their *ids*, and the terms of each. O(terms)."""
        places = self.layout.extend(rows)
        self.ids, self._positions = np.append(self.ids, ids), None
        for place, counted in zip(places, counts, strict=True):
            for term, times in counted.items():
                if term in self._known:
                    self._more.setdefault(term, []).append((place, times))
                    self._kept += 1

    def read_again(self, terms: Iterable[str]) -> None:
        """Forget which passages have *terms*: the table has changed."""
        for term in terms:
            self._kept -= len(self._known.pop(term, ((),))[0]) + len(self._more.pop(term, ()))

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
        if self._positions is None:
            self._positions = Positions(self.ids)
        positions = self._positions.of(ids)
        order = np.argsort(positions)[np.count_nonzero(positions < 0) :]
        return positions[order], times.astype(np.int64)[order]


def stored(
    table: PassageTable, context: int, page: int, at: float | None, pieces: Iterable[tuple[Passage, Counter[str]]]
) -> tuple[list[int], list[Row], list[Counter[str]]]:
    """Store the passages of *page* (its id), in a change of the owner; return what `WordIndex.add` takes. O(terms)."""
    ids, rows, counts = [], [], []
    for piece, counted in pieces:
        length = extent([term for term in counted.elements() if not term.startswith("@")])
        speaker = piece.speaker.encode("utf-8", "replace").decode()  # half a surrogate pair can't be kept as text
        row = Row(context, page, piece.entry, piece.part, piece.role, speaker, length, at, flags_of(piece))
        fields = (row.entry, row.part, piece.start, len(piece.text), row.role, row.speaker, row.length, row.flags)
        ids.append(table.add(page, fields, counted.elements()))
        rows.append(row)
        counts.append(counted)
    return ids, rows, counts
