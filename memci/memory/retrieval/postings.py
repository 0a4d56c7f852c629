"""The index of words of one owner: which passages have a term, and how often.

Postings that were read stay in RAM, and new passages are added to them. After a change by another process, the index is
read again.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from string import ascii_lowercase
from typing import Any

import numpy as np

from ...text.language.similar import Similar
from ...text.language.terms import extent
from ...text.language.terms import terms as stemmed
from ...text.moments import zone_of
from ..repository.passages import PassageTable
from .bm25 import NOWHERE, Postings
from .layout import Floats, Integers, Layout, Row, flags_of
from .passages import Passage, greeting_term
from .vectors import Positions

MOST_POSTINGS = 4_000_000  # postings of one owner in RAM at most: some 64 MB
A_TERM = 16
"""postings whose RAM a term takes beside them, also one that no passage has: questions never run out of those"""

_BEGINNING = 7  # characters of an identifier that are enough to find it: as many as a short Git hash has
_SPELLED = 5  # letters of a word that may be misspelled, at least: shorter words have too many neighbours
_SIMILAR = 20  # identifiers with the same beginning at most: more than that means that it identifies nothing
_RARE = 5  # passages that have a rare word at most, or a hundredth of all
_AT_ONCE = 4_096  # passages of an owner whose postings may be read all at once, at most: more would delay a search
_A_READ = 8  # passages whose postings can be read in the time of a query for one term
_TIMES = 2  # how often a passage has a term, on average, at most
_FORMS = 40  # terms with the same stem that are looked at, at most
_PART = 4  # letters of a part of a compound, at least, and one less before it: shorter ones are in many words
_ENDING = 3  # letters behind a stem, at most: "konzert" finds "konzerten", not "konzertsaal"
_SIMILAR_COUNTS = 0.25  # of once, at most: how much a turn of talk has a term that has only a similar one

Posting = tuple[Integers, Integers]
"""the positions of the passages that have a term, ascending, and how often each has it"""


class WordIndex:
    """The passages of one owner. Not thread-safe: the caller holds the store's lock."""

    def __init__(self, table: PassageTable, columns: Sequence[Any] = ()) -> None:
        """Index the passages of the table, given as its *columns*; default: none. O(passages)."""
        self._table = table
        self.layout = Layout()
        self.ids: Integers = NOWHERE[0]
        if len(columns):
            *fields, self.ids = columns
            self.layout.fill(fields, nth=np.argsort(np.argsort(self.ids)))
        self._positions: Positions | None = None
        """positions of the ids; None after a change"""
        self._lookups = 0
        """number of queries for single terms"""
        self._stored: dict[str, str] | None = None
        """the ids of the passages that have each term, as in the table, if all were read at once"""
        self._known: dict[str, Posting] = {}
        self._common: dict[str, int] = {}
        """terms that occur more often than so many times, and were not read"""
        self._more: dict[str, list[tuple[int, int]]] = {}
        """postings that were added after a term was read: (position, times)"""
        self._kept = 0

    def __len__(self) -> int:
        """Return the number of passages and postings in RAM."""
        return len(self.ids) + self._kept

    def prepare(self, *, standing: bool, whole: bool) -> None:
        """Read passages that a search needs beside its terms: with lasting instructions, or all. Here, do nothing."""

    def postings(
        self, terms: Iterable[str], stems: Mapping[str, str] | None = None, similar: Similar | None = None
    ) -> Postings:
        """Return the postings of *terms*, or of terms like an unknown one. O(postings), the first time.

        Those of a term in *stems* include those of other terms that begin with its stem; those of one in *similar*, the
        passages that only have a similar one, less than once.
        """
        wanted = list(dict.fromkeys(terms))
        forms: dict[str, list[str]] = {}
        for term, stem in (stems or {}).items():
            alike = {each for each in self._table.beginning(stem, _FORMS) if len(each) <= len(stem) + _ENDING}
            alike.update(stemmed(stem))  # "kurs" itself is stemmed as an English plural
            forms[term] = sorted(alike - {term})
        similar = similar or {}
        near = [term for each in similar.values() for term, _ in each]
        calls = {greeting_term(term): term for term in wanted if not term.startswith("@")}
        every = self.exact(
            dict.fromkeys([*wanted, *(each for alike in forms.values() for each in alike), *near, *calls])
        )
        for call, term in calls.items():
            self.layout.greet(term, every[call][0])
        found = {term: every[term] for term in wanted}
        found |= {term: _merge([found[term], *(every[each] for each in alike)]) for term, alike in forms.items()}
        unknown = [term for term, (positions, _) in found.items() if not positions.size]
        # Misspellings can take 5 ms a word: look for them only if the query has little else.
        spelled = 2 * len(unknown) >= len(found)
        found |= {term: self._like(term, spelled=spelled) for term in unknown}
        return found | {
            term: _with_similar(found[term], [(every[each], how) for each, how in near])
            for term, near in similar.items()
            if near
        }

    def exact(self, terms: Iterable[str], most: int | None = None) -> dict[str, Posting]:
        """Return the postings of just these *terms*, or only of those that at most so many passages have.

        O(postings), the first time; of a term that is left out, O(*most*), once.
        """
        if self._kept > MOST_POSTINGS:
            self.read_again()
        wanted = list(terms)
        self._fetch(wanted, None if most is None else _TIMES * most)
        for term in self._more.keys() & wanted:
            new = np.array(self._more.pop(term), np.int64).T
            self._known[term] = np.append(self._known[term][0], new[0]), np.append(self._known[term][1], new[1])
        found = {term: known for term in wanted if (known := self._known.get(term)) is not None}
        return found if most is None else {term: each for term, each in found.items() if len(each[0]) <= most}

    def compounds(self, stems: Mapping[str, str]) -> Similar:
        """Return, for each term of *stems*, the words of passages that end with its stem, and those that it joins.

        "kurs" is in "tangokurs", and "umzugstermin" joins "umzug" and "termin". O(different words).
        """
        if (stored := self._read_all(_AT_ONCE)) is None:
            every = self._table.beginning("", _AT_ONCE)
        else:
            every = [key.removeprefix(self._table.key("")) for key in stored]
        found = {}
        for term, stem in ((term, stem) for term, stem in stems.items() if len(stem) >= _PART):
            last = min(stemmed(stem), default=stem)
            near = {each for each in every if (at := each.rfind(last)) >= _PART - 1 and at + len(last) >= len(each) - 2}
            halves = (half for at in range(_PART, len(term) - _PART + 1) for half in (term[:at], term[at:]))
            near.update(part for half in halves for part in stemmed(half) if len(part) >= _PART)
            found[term] = [(each, 1.0) for each in sorted(near.intersection(every) - {term})]
        return found

    def add(self, ids: Sequence[int], rows: Sequence[Row], counts: Sequence[Counter[str]]) -> None:
        """Add passages that were stored, with the terms of each. O(terms)."""
        places = self.layout.extend(rows)
        self.ids, self._positions = np.append(self.ids, ids), None
        stored = self._stored = self._stored if len(self.ids) <= _AT_ONCE else None
        for place, id_, counted in zip(places, ids, counts, strict=True):
            for term, times in counted.items():
                if stored is not None:
                    key = self._table.key(term)
                    stored[key] = stored.get(key, "") + f",{id_}" * times
                if term in self._known:
                    self._more.setdefault(term, []).append((place, times))
                    self._kept += 1

    def read_again(self) -> None:
        """Drop all postings in RAM, because the table has changed by other means than `add`."""
        self._stored, self._known, self._common, self._more, self._kept = None, {}, {}, {}, 0

    def _fetch(self, terms: Iterable[str], most: int | None = None) -> None:
        """Read the postings of *terms* that are not in RAM; not those of a term that occurs more often than *most*."""
        fresh = [each for each in terms if each not in self._known]
        if most is not None:
            fresh = [each for each in fresh if self._common.get(each, 0) < most]
        if not fresh:
            return
        stored = self._read_all(len(fresh))
        if stored is not None:
            read = {term: stored.get(self._table.key(term), "").lstrip(",") for term in fresh}
        else:
            read = dict(zip(fresh, self._table.postings_of(fresh, most), strict=True))
            for term in [each for each, ids in read.items() if most is not None and ids.count(",") >= most]:
                self._common[term] = most or 0
                del read[term]
        if self._positions is None:
            self._positions = Positions(self.ids)
        positions = self._positions.of(np.fromstring(",".join(filter(None, read.values())), np.int64, sep=","))
        # by term and position, in one number
        size, numbers = max(len(self.ids), 1), np.arange(len(read))
        places = np.repeat(numbers * size, [ids.count(",") + bool(ids) for ids in read.values()]) + positions
        places, times = np.unique(places[positions >= 0], return_counts=True)
        ends, positions = np.searchsorted(places, (numbers + 1) * size), places % size
        for term, start, end in zip(read, [0, *ends], ends, strict=False):
            self._known[term] = (positions[start:end], times[start:end]) if start < end else NOWHERE
        self._kept += len(places) + A_TERM * len(read)

    def _like(self, term: str, *, spelled: bool) -> Posting:
        """Return the postings of terms that are similar to *term*, which no passage has.

        These are identifiers that begin with *term*, or, with *spelled*, rare words that differ by one letter: one
        more, one less, another one, or two exchanged.
        """
        known: list[str] = []
        if any(map(str.isdigit, term)):
            known = self._table.beginning(term, _SIMILAR) if len(term) >= _BEGINNING else []
        elif spelled and term.isascii() and len(term) >= _SPELLED:
            known = list({*_misspellings(term)})
        rare = self.exact(known, max(_RARE, len(self.layout) // 100))
        for each in [each for each, (having, _) in rare.items() if not having.size]:
            del self._known[each]  # hundreds for each misspelled word
            self._kept -= A_TERM
        like = [posting for posting in rare.values() if posting[0].size]
        return _merge(like) if like else NOWHERE

    def _read_all(self, lookups: int) -> dict[str, str] | None:
        """Return the postings of all terms, once so many terms were queried that this costs no more; else None."""
        self._lookups += lookups
        if self._stored is None and len(self.ids) <= min(_AT_ONCE, _A_READ * self._lookups):
            self._stored = self._table.stored()
        return self._stored


def _with_similar(own: Posting, near: Sequence[tuple[Posting, float]]) -> tuple[Integers, Floats]:
    every = [(having, _SIMILAR_COUNTS * how) for (having, _), how in near if having.size]
    shares = np.repeat([each for _, each in every], [len(having) for having, _ in every])
    positions, first = np.unique(np.concatenate([own[0], *(having for having, _ in every)]), return_index=True)
    return positions, np.append(own[1], shares)[first].astype(np.float32)


def _merge(postings: Sequence[Posting]) -> Posting:
    """Return *postings* as those of one term."""
    positions, where = np.unique(np.concatenate([each[0] for each in postings]), return_inverse=True)
    times = np.concatenate([each[1] for each in postings])
    return positions, np.bincount(where, times, len(positions)).astype(np.int64)


def _misspellings(word: str) -> Iterator[str]:
    """Yield the words that differ from *word* by one letter: missing, exchanged, another or additional. O(letters)."""
    for at in range(len(word) + 1):
        start, end = word[:at], word[at:]
        yield from (start + letter + end for letter in ascii_lowercase)
        if end:
            yield start + end[1:]
            yield from (start + letter + end[1:] for letter in ascii_lowercase)
            yield start + end[1:2] + end[:1] + end[2:]


def store_passages(
    table: PassageTable, context: int, page: int, pieces: Iterable[tuple[Passage, datetime | None, Counter[str]]]
) -> tuple[list[int], list[Row], list[Counter[str]]]:
    """Store the passages of *page* (its id), each with its time and terms, within a change. O(terms).

    Return the arguments for `WordIndex.add`.
    """
    rows, spans, counts = [], [], []
    for piece, when, counted in pieces:
        length = extent(counted.elements())
        speaker = piece.speaker.encode("utf-8", "replace").decode()  # half a surrogate pair can't be stored as text
        at, zone = (None, 0) if when is None else (when.timestamp(), zone_of(when))
        row = Row(context, page, piece.entry, piece.part, piece.role, speaker, length, at, flags_of(piece), zone)
        rows.append(row)
        spans.append((piece.start, len(piece.text)))
        counts.append(counted)
    return table.add(page, rows, spans, counts), rows, counts
