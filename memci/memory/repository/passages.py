"""The passages of one owner, as rows, with their terms and vectors.

SQLite's full-text index keeps the terms, and is used only for its postings. Call all methods that write within a change
of the owner.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import orjson

from ..tiers.topics import Vector
from .items import halve, read_vectors
from .store import OwnerTable

NOTE, TOPIC, DAY, TALK, STRATEGY, TRAITS = range(1, 7)
"""kinds of terms that come from a model: from its texts about a page, an episode, a day, a conversation, from the
strategy, and from the traits of the user"""


class FoundPassage(NamedTuple):
    """A passage with its page: all that is needed to read and show its text."""

    id: int
    context: str
    page: int  # the page's index in its context
    turn: int
    at: float | None
    zone: int
    tier: int
    episode: int | None
    chain: int | None
    start: int
    size: int  # in characters
    entry: int
    role: str
    speaker: str

    @property
    def place(self) -> tuple[str, int, int]:
        """The place of its message: context, page and entry."""
        return self.context, self.page, self.entry


class PassageTable(OwnerTable):
    """The passages of one owner."""

    def columns(self) -> list[Any]:
        """Return all passages as columns for `Layout.fill`, and their ids, ordered by context, page, entry and part.

        Roles are the numbers of `layout.ROLES`. The statement joins each column to one text, which takes a third of the
        time of separate rows. O(passages).
        """
        [(speakers, times, *texts)] = self._store.read_rows(_COLUMNS, self._owner.nr)
        index, *numbers = (np.fromstring(text or "", np.int64, sep=",") for text in texts)
        context, page, entry, part, role, length, flags, zone, ids = numbers
        names = orjson.loads(speakers)
        plain = self._plain(names)
        speaker, at = np.array([plain[name] for name in names], object), np.array(orjson.loads(times), np.float64)
        order = np.lexsort((part, entry, index, context))
        return [each[order] for each in (context, page, entry, part, role, speaker, length, at, flags, zone, ids)]

    def add(
        self, page: int, rows: Sequence[Any], spans: Sequence[tuple[int, int]], counts: Sequence[Counter[str]]
    ) -> list[int]:
        """Add passages of *page* (its id), each with its `Row`, its start and size, and its terms; return their ids."""
        ids = []
        for span, counted, row in zip(spans, counts, rows, strict=True):
            ids.append(self._store.insert_row(_ADD, self._owner.nr, page, *self._fields(row, span)))
            text = " ".join(map(self.key, counted.elements()))
            self._store.execute("INSERT INTO memory_words(rowid, terms) VALUES (?, ?)", ids[-1], text)
        return ids

    def annotate(self, page: int, kind: int, terms: Iterable[str]) -> None:
        """Make the first passage of *page* (its id) searchable by *terms*, instead of earlier ones of this *kind*."""
        for first in self._store.read_column("SELECT min(id) FROM memory_passage WHERE page = ?", page):
            if first is not None:
                row = first + kind * _KINDS
                self._store.execute("DELETE FROM memory_words WHERE rowid = ?", row)
                if text := " ".join(map(self.key, terms)):
                    self._store.execute("INSERT INTO memory_words(rowid, terms) VALUES (?, ?)", row, text)

    def remove(self, pages: Collection[int]) -> None:
        """Remove the passages of *pages* (their ids), and all of their terms. O(their passages)."""
        for page in pages:
            self._store.execute(_REMOVE_WORDS, page)
            self._store.execute("DELETE FROM memory_passage WHERE page = ?", page)

    def postings_of(self, terms: Sequence[str], most: int | None = None) -> list[str]:
        """Return for each of *terms* the ids of its passages, once for each occurrence: "7,9,9". O(its postings).

        Of a term that occurs more often than *most*, only so many and one are read.
        """
        keys = json.dumps([self.key(term) for term in terms])
        return [text or "" for text in self._store.read_column(_POSTINGS_OF, -1 if most is None else most + 1, keys)]

    def stored(self) -> dict[str, str]:
        """Return what `postings_of` does for all terms, by the `key` of the term. O(all postings)."""
        owner = f"{self._owner.nr:x}"
        return dict(self._store.read_rows(_STORED, f"{owner}:", f"{owner};"))  # ";" comes after ":"

    def beginning(self, start: str, most: int) -> list[str]:
        """Return up to *most* terms of passages that begin with *start*; none if terms are encrypted."""
        if self._owner.cipher is not None:
            return []
        own = self.key("")
        found = self._store.read_column(_BEGINNING, own + start, f"{own}{start}\U0010ffff", most)
        return [term.removeprefix(own) for term in found]

    def find(self, ids: Sequence[int]) -> dict[int, FoundPassage]:
        """Return the passages with *ids*, without removed ones."""
        rows = self._store.read_rows(_FIND, json.dumps(ids))
        plain = self._plain(row[-1] for row in rows)
        return {row[0]: FoundPassage(*row)._replace(speaker=plain[row[-1]]) for row in rows}

    def unembedded(self, model: str, most: int, *, after: int) -> list[tuple[int, int, int, int, int]]:
        """Return up to *most* passages with larger ids than *after* that have no vector of *model*. O(passages).

        Each has its id, the id of its page, its entry, its start and its size.
        """
        return self._store.read_rows(_UNEMBEDDED, self._owner.name, after, model, most)

    def keep_vectors(self, model: str, vectors: Mapping[int, Vector]) -> None:
        """Store the vectors of passages (by their ids), and remove those of other models."""
        rows = [(model, self._seal(halve(vector), "vector of a passage", id_), id_) for id_, vector in vectors.items()]
        self._store.executemany(_KEEP_VECTOR, rows)
        self._store.execute(_DROP_VECTORS, self._owner.nr, model)

    def vectors(self, model: str, dimension: int) -> tuple[list[int], Vector]:
        """Return the ids of passages and a matrix of their vectors, of *dimension* numbers, by *model*. O(passages)."""
        size = len(self._seal(bytes(2 * dimension), "size"))
        rows = self._store.read_rows(_VECTORS, self._owner.nr, model, size)
        numbers = read_vectors(*(self._unseal(row, "vector of a passage", id_) for id_, row in rows))
        return [id_ for id_, _ in rows], numbers.reshape(-1, dimension)

    def key(self, term: str) -> str:
        """Return *term* as the index has it, with the number of the owner, so that no other owner finds it."""
        return f"{self._owner.nr:x}:{self._term(term)}"

    def _fields(self, row: Any, span: tuple[int, int]) -> tuple[Any, ...]:
        """Return the columns of a `Row` with its start and size, behind the page."""
        speaker = self._seal(row.speaker, "speaker", same=True)
        return row.entry, row.part, *span, row.role, speaker, row.length, row.flags, row.at, row.zone

    def _term(self, term: str) -> str:
        """Return *term* unchanged, or as 16 hexadecimal digits if rows are encrypted."""
        cipher = self._owner.cipher
        return term if cipher is None else cipher.mac(term.encode("utf-8", "surrogatepass"), 8).hex()

    def _plain(self, speakers: Iterable[str]) -> dict[str, str]:
        """Return the names of *speakers*, by their values in rows. O(speakers)."""
        return {name: self._unseal(name, "speaker") for name in dict.fromkeys(speakers)}


_COLUMNS = """
SELECT json_group_array(s.speaker), json_group_array(s.at), group_concat(g.page), group_concat(g.context),
    group_concat(s.page), group_concat(s.entry), group_concat(s.part),
    group_concat(CASE s.role WHEN 'user' THEN 0 WHEN 'assistant' THEN 1 ELSE 2 END), group_concat(s.length),
    group_concat(s.flags), group_concat(s.zone), group_concat(s.id)
FROM memory_passage AS s JOIN memory_page AS g ON g.id = s.page WHERE s.owner = ?"""
_STORED = """
SELECT term, group_concat(doc & 1099511627775) FROM memory_postings
WHERE term >= ? AND term < ? GROUP BY term"""
_BEGINNING = "SELECT DISTINCT term FROM memory_postings WHERE term >= ? AND term < ? LIMIT ?"
_ADD = """
INSERT INTO memory_passage(owner, page, entry, part, start, size, role, speaker, length, flags, at, zone)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id"""
_KINDS = 2**40
# Rows of memory_words from there on have the terms of a model: their number is the id plus kind times 2**40.
_POSTINGS_OF = """
SELECT (SELECT group_concat(p.doc & 1099511627775) FROM (
    SELECT doc FROM memory_postings WHERE term = j.value LIMIT ?) AS p) FROM json_each(?) AS j"""
_REMOVE_WORDS = """
DELETE FROM memory_words WHERE rowid IN (
    SELECT s.id + k.value * 1099511627776 FROM memory_passage AS s, json_each('[0, 1, 2, 3, 4, 5, 6]') AS k
    WHERE s.page = ?)"""
_FIND = """
SELECT s.id, c.name, g.page, g.turn, s.at, s.zone, g.tier, g.episode, g.chain, s.start, s.size, s.entry, s.role,
    s.speaker
FROM memory_passage AS s JOIN memory_page AS g ON g.id = s.page JOIN memory_context AS c ON c.nr = g.context
WHERE s.id IN (SELECT value FROM json_each(?))"""
_UNEMBEDDED = """
SELECT s.id, s.page, s.entry, s.start, s.size FROM memory_owner AS o JOIN memory_passage AS s ON s.owner = o.nr
WHERE o.name = ? AND s.id > ? AND NOT EXISTS
    (SELECT 1 FROM memory_vector AS v WHERE v.page = s.page AND v.passage = s.id AND v.model = ?)
ORDER BY s.id LIMIT ?"""
_KEEP_VECTOR = """
INSERT INTO memory_vector SELECT page, id, ?, owner, ? FROM memory_passage WHERE id = ?
ON CONFLICT(page, passage, model) DO UPDATE SET vector = excluded.vector"""
_DROP_VECTORS = "DELETE FROM memory_vector WHERE owner = ? AND passage > 0 AND model <> ?"
_VECTORS = """
SELECT passage, vector FROM memory_vector
WHERE owner = ? AND model = ? AND passage > 0 AND length(vector) = ?"""
