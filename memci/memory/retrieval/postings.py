"""The index of one owner's words: which passages have a term, and how often.

    "oslo"   ──▶   positions [3, 17, 18]   times [1, 2, 1]        positions are those of a `Layout`

The store holds a row for each passage, and its terms in a full-text index of SQLite, which is used for its postings.
What was read stays in RAM, and passages are added to it as they come; after a change by another process it is read
again. This module knows nothing of scores.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import apsw
import numpy as np

from ...text.language.terms import extent
from ..repository.store import MemoryStore
from .layout import Integers, Layout, Row, flags_of
from .passages import Passage, passage_terms

MOST_POSTINGS = 4_000_000
"""postings of one owner that stay in RAM, at most"""

Posting = tuple[Integers, Integers]
"""the positions of the passages that have a term, ascending, and how often each has it"""

_SELECT = """
SELECT s.id, g.context, s.page, s.entry, s.part, s.role, s.speaker, s.length, g.at, s.flags, g.page
FROM memory_passage AS s JOIN memory_page AS g ON g.id = s.page
WHERE s.owner = ? ORDER BY g.context, g.page, s.entry, s.part"""


class WordIndex:
    """The passages of one owner. Not thread-safe: the caller holds the store's lock."""

    def __init__(self, store: MemoryStore, owner: int) -> None:
        self._store = store
        self._owner = owner
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
        found = self._store.read_rows(_SELECT, self._owner)  # in the order that the layout wants
        self.layout.extend(Row(*row[1:10]) for row in found)
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
        found = self._store.read_rows("SELECT doc FROM memory_postings WHERE term = ?", owned(self._owner, term))
        if not found:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        ids, times = np.unique(np.fromiter((row[0] for row in found), np.int64, len(found)), return_counts=True)
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
    connection: apsw.Connection,
    owner: int,
    context: int,
    page: int,
    at: float | None,
    pieces: Sequence[tuple[Passage, Counter[str]]],
) -> tuple[list[int], list[Row], list[Counter[str]]]:
    """Store the passages of a page, and return what `WordIndex.add` takes. O(terms)."""
    ids, rows = [], []
    for piece, counted in pieces:
        length = extent([term for term in counted.elements() if not term.startswith("@")])
        speaker = piece.speaker.encode("utf-8", "replace").decode()  # half a surrogate pair can't be kept as text
        row = Row(context, page, piece.entry, piece.part, piece.role, speaker, length, at, flags_of(piece))
        connection.execute(
            "INSERT INTO memory_passage VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (owner, page, row.entry, row.part, piece.start, len(piece.text), *row[4:7], row.flags),
        )
        ids.append(connection.last_insert_rowid())
        text = " ".join(owned(owner, term) for term in counted.elements())
        connection.execute("INSERT INTO memory_words(rowid, terms) VALUES (?, ?)", (ids[-1], text))
        rows.append(row)
    return ids, rows, [counted for _, counted in pieces]


def removed(connection: apsw.Connection, page: int) -> None:
    """Remove the passages of a page. O(its passages)."""
    connection.execute(
        "DELETE FROM memory_words WHERE rowid IN (SELECT id FROM memory_passage WHERE page = ?)", (page,)
    )
    connection.execute("DELETE FROM memory_passage WHERE page = ?", (page,))


def owned(owner: int, term: str) -> str:
    """Return *term* as a term of *owner*: a query of another owner can't find it."""
    return f"{owner:x}:{term}"
