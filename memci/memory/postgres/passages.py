"""The passages of one owner in Postgres: rows, with their words and columns packed by block.

    add(page 57)      numbers 301 to 304 in block 0: four rows, one row for each term and block, one for the block
    remove([57])      cuts the postings of these numbers out, and makes the passages beside the gap neighbours

Call all methods that write within a change of the owner.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from ..repository.passages import PassageTable
from ..repository.store import OwnerKey
from ..retrieval.layout import ROLES, STANDING, Row, length_counts
from .sheet import AROUND, BLOCK_BITS, NUMBERS, PASSAGE, POSTING, pack_passages

_LONGEST = 500  # characters of a term that are stored unchanged: longer ones do not fit into an index of Postgres
_NAME = 200  # characters of the name of a speaker that are indexed
_MESSAGE = 256  # passages of one message at most


class PackedPassages(PassageTable):
    """The passages of one owner."""

    def __init__(self, owner: OwnerKey, read_packed: Callable[..., list[tuple[Any, ...]]]) -> None:
        super().__init__(owner)
        self.read_packed = read_packed
        """reads rows with bytes, like `read_rows` of the store"""
        self.index: Any = None
        """the `PackedIndex` of the passages"""

    @property
    def nr(self) -> int:
        """The number of the owner."""
        return self._owner.nr

    @property
    def revision(self) -> int:
        """The revision of the owner in this process."""
        return int(getattr(self._owner, "revision", 0))

    def add(
        self, page: int, rows: Sequence[Any], spans: Sequence[tuple[int, int]], counts: Sequence[Counter[str]]
    ) -> list[int]:
        """Add the passages of *page* (its id), each with the terms of its *counts*; return their ids."""
        if not rows:
            return []
        end = self._store.insert_row(_NUMBER, len(rows), self.nr)
        numbers = np.arange(end - len(rows) + 1, end + 1)
        names = [each._replace(speaker=each.speaker[:_NAME]) for each in rows]
        speakers = self._count_speakers(names)
        before, after = self._around(rows[0].context, page)
        own, now, was = pack_passages(numbers, names, speakers, before=before, after=after)
        ids = (self.nr * NUMBERS + numbers).tolist()
        values = [
            (id_, self.nr, page, *self._fields(row, span), each.tobytes())
            for id_, span, each, row in zip(ids, spans, own, rows, strict=True)
        ]
        self._store.executemany(_ADD, values)
        self._put(now)
        self._note((own, 1), (now, 1), (was, -1))
        self._post(zip(numbers.tolist(), counts, [0] * len(rows), strict=True))
        if int(numbers[0] - 1) >> BLOCK_BITS != end >> BLOCK_BITS:
            self._store.execute(_SEAL, self.nr, end >> BLOCK_BITS)
        return ids

    def annotate(self, page: int, kind: int, terms: Iterable[str]) -> None:
        """Make the first passage of *page* (its id) searchable by *terms*, instead of earlier ones of this *kind*."""
        first = self._store.read_value("SELECT min(id) FROM memory_passage WHERE page = ?", page)
        if first is None:
            return
        number, gained = first % NUMBERS, Counter(terms)
        for (known,) in self._store.read_rows(_GLOSS, page, kind):
            self._strip(self.read_packed(_POSTINGS, self.nr, known, [number >> BLOCK_BITS]), [number], kind)
            self._store.execute("DELETE FROM memory_gloss WHERE page = ? AND kind = ?", page, kind)
        if gained:
            self._store.execute("INSERT INTO memory_gloss VALUES (?, ?, ?)", page, kind, list(map(self._key, gained)))
            self._post([(number, gained, kind)])
        self._store.execute(_TOUCH, self.nr, number >> BLOCK_BITS)

    def remove(self, pages: Collection[int]) -> None:
        """Remove the passages of *pages* (their ids), and all of their terms. O(their blocks)."""
        wanted = list(pages)
        places = self._store.read_rows(_PLACES, wanted)
        removed = self.read_packed(_REMOVE, wanted)
        gone = self._read(removed)
        self._store.execute("DELETE FROM memory_gloss WHERE page = ANY(?)", wanted)
        if not len(gone):
            return
        said = Counter(int(each["speaker"]) for each, row in zip(gone, removed, strict=True) if row[1] != "tool")
        self._store.executemany(_UNCOUNT, [(count, self.nr, number) for number, count in said.items()])
        self._store.execute(_FORGET_SPEAKERS, self.nr)
        self._note((gone, -1))
        for block in np.unique(gone["number"] >> BLOCK_BITS).tolist():
            self._strip(self.read_packed(_ALL_POSTINGS, self.nr, block), gone["number"])
        for context, page in places:
            before, after = self._around(context, page)
            _, now, was = pack_passages(np.zeros(0, np.int64), [], {}, before=before, after=after)
            self._put(now)
            self._note((now, 1), (was, -1))

    def beginning(self, start: str, most: int) -> list[str]:
        """Return up to *most* terms of passages that begin with *start*; none if terms are encrypted."""
        if self._owner.cipher is not None:
            return []
        return self._store.read_column(_BEGINNING, self.nr, start, f"{start}\U0010ffff", most)

    def changed(self, since: int) -> list[tuple[Any, ...]]:
        """Return the blocks that changed after the revision *since*: number, and the fields of `BlockState`."""
        return self._store.read_rows(_CHANGED, self.nr, since)

    def speakers(self) -> list[tuple[int, str, int]]:
        """Return the number, name and count of passages of each speaker. O(speakers)."""
        rows = self._store.read_rows(_SPEAKERS, self.nr)
        plain = self._plain(name for _, name, _ in rows)
        return [(nr, plain[name], count) for nr, name, count in rows]

    def read_postings(self, terms: Sequence[str], blocks: Sequence[int]) -> list[tuple[str, int, bytes]]:
        """Return term, block and `POSTING`s of *terms* in *blocks*. O(what is returned)."""
        keys = {self._key(term): term for term in terms}
        rows = self.read_packed(_POSTINGS, self.nr, list(keys), list(blocks))
        return [(keys[key], block, read) for key, block, read in rows]

    def read_blocks(self, blocks: Sequence[int]) -> list[tuple[int, bytes]]:
        """Return the `PASSAGE`s of *blocks*. O(their passages)."""
        rows = self.read_packed(_BLOCKS, self.nr, list(blocks))
        return [(block, read or b"") for block, read in rows]

    def _count_speakers(self, rows: Sequence[Row]) -> dict[str, int]:
        """Count the passages of each speaker, and return the speakers' numbers."""
        counts = dict.fromkeys((each.speaker for each in rows), 0)
        for each in rows:
            counts[each.speaker] += each.role != "tool"
        return {
            name: self._store.insert_row(_SPEAKER, self.nr, self._seal(name, "speaker", same=True), count)
            for name, count in counts.items()
        }

    def _around(self, context: int, page: int) -> tuple[Any, Any]:
        """Return the passages before and after a page (its id) that `pack_passages` needs, in order."""
        before = self.read_packed(_BEFORE, context, page, AROUND)
        after = self.read_packed(_AFTER, context, page, AROUND + _MESSAGE)
        return self._read(before[::-1]), self._read(after)

    def _put(self, changed: Any) -> None:
        """Store the columns of changed passages."""
        ids = (self.nr * NUMBERS + changed["number"].astype(np.int64)).tolist()
        rows = [(each.tobytes(), id_) for each, id_ in zip(changed, ids, strict=True)]
        self._store.executemany("UPDATE memory_passage SET columns = ? WHERE id = ?", rows)

    def _note(self, *noted: tuple[Any, int]) -> None:
        """Add passages to the states of their blocks, or subtract them (-1), and mark the blocks as changed."""
        states: dict[int, Any] = {}
        for passages, sign in noted:
            blocks = (passages["number"] >> BLOCK_BITS).astype(np.int64)
            for block in np.unique(blocks).tolist():
                own = passages[blocks == block]
                others = own[own["role"] != ROLES["user"]]
                standing = np.count_nonzero(own["flags"] & STANDING)
                counts = length_counts(own["lent"].T, own["whole"], own["role"])
                lengths = counts.sum(), (counts * own["length"]).sum()
                state = np.array([len(own), len(others), others["lecture"].sum(dtype=np.float64), standing, *lengths])
                states[block] = states.get(block, 0) + sign * state
        rows = [
            (block, int(alive), int(others), float(lecture), int(standing), float(counted), float(extent), self.nr)
            for block, (alive, others, lecture, standing, counted, extent) in states.items()
        ]
        self._store.executemany(_NOTE, rows)

    def _post(self, posted: Iterable[tuple[int, Counter[str], int]]) -> None:
        """Add postings: for each number its terms, and their kind."""
        rows: dict[tuple[str, int], list[tuple[int, int, int]]] = {}
        for number, counts, kind in posted:
            for term, times in counts.items():
                rows.setdefault((self._key(term), number >> BLOCK_BITS), []).append((number, min(times, 65535), kind))
        terms, blocks = [term for term, _ in rows], [block for _, block in rows]
        self._store.execute(
            _POST, self.nr, terms, blocks, [np.array(each, POSTING).tobytes() for each in rows.values()]
        )

    def _strip(self, rows: Sequence[tuple[str, int, bytes]], numbers: Any, kind: int | None = None) -> None:
        """Remove the postings of *numbers*, of one kind or all, from *rows*. O(postings)."""
        read = [np.frombuffer(row[2], POSTING) for row in rows]
        if not read:
            return
        every = np.concatenate(read)
        gone = np.isin(every["number"], numbers) & (True if kind is None else every["kind"] == kind)
        left, emptied = [], []
        start = 0
        for postings, (term, block, _) in zip(read, rows, strict=True):
            cut = gone[start : start + len(postings)]
            start += len(postings)
            if cut.all():
                emptied.append((self.nr, term, block))
            elif cut.any():
                left.append((postings[~cut].tobytes(), self.nr, term, block))
        self._store.executemany("DELETE FROM memory_word WHERE owner = ? AND term = ? AND block = ?", emptied)
        self._store.executemany(_LEFT, left)

    def _key(self, term: str) -> str:
        """Return *term* as the index has it; of one that is too long, its beginning and a digest."""
        own = self._term(term)
        if len(own) <= _LONGEST:
            return own
        return f"{own[:_LONGEST]}\x02{blake2b(own.encode('utf-8', 'surrogatepass'), digest_size=16).hexdigest()}"

    @staticmethod
    def _read(rows: Sequence[tuple[Any, ...]]) -> Any:
        return np.frombuffer(b"".join(row[0] for row in rows), PASSAGE)


_NUMBER = "UPDATE memory_owner SET passages = passages + ? WHERE nr = ? RETURNING passages"
_ADD = "INSERT INTO memory_passage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_SPEAKER = """
INSERT INTO memory_speaker(owner, name, passages) VALUES (?, ?, ?)
ON CONFLICT (owner, name) DO UPDATE SET passages = memory_speaker.passages + excluded.passages RETURNING nr"""
_UNCOUNT = "UPDATE memory_speaker SET passages = passages - ? WHERE owner = ? AND nr = ?"
_FORGET_SPEAKERS = """
DELETE FROM memory_speaker AS s WHERE s.owner = ? AND s.passages = 0 AND NOT EXISTS (
    SELECT 1 FROM memory_passage AS p
    WHERE p.id >= s.owner << 32 AND p.id < (s.owner + 1) << 32 AND p.speaker = s.name)"""
_SPEAKERS = "SELECT nr, name, passages FROM memory_speaker WHERE owner = ? AND passages > 0 ORDER BY nr"
_BEFORE = """
SELECT s.columns FROM memory_page AS g JOIN memory_passage AS s ON s.page = g.id
WHERE g.context = ? AND g.page <= (SELECT page FROM memory_page WHERE id = ?)
ORDER BY g.page DESC, s.entry DESC, s.part DESC LIMIT ?"""
_AFTER = """
SELECT s.columns FROM memory_page AS g JOIN memory_passage AS s ON s.page = g.id
WHERE g.context = ? AND g.page > (SELECT page FROM memory_page WHERE id = ?)
ORDER BY g.page, s.entry, s.part LIMIT ?"""
_PLACES = "SELECT context, id FROM memory_page WHERE id = ANY(?) ORDER BY context, page"
_REMOVE = "DELETE FROM memory_passage WHERE page = ANY(?) RETURNING columns, role"
_NOTE = """
INSERT INTO memory_block AS b SELECT nr, ?, revision, ?, ?, ?, ?, ?, ? FROM memory_owner WHERE nr = ?
ON CONFLICT (owner, block) DO UPDATE SET revision = excluded.revision, alive = b.alive + excluded.alive,
others = b.others + excluded.others, lecture = b.lecture + excluded.lecture,
standing = b.standing + excluded.standing, counted = b.counted + excluded.counted,
extent = b.extent + excluded.extent, columns = NULL"""
_TOUCH = """
UPDATE memory_block SET revision = (SELECT revision FROM memory_owner WHERE nr = owner) WHERE owner = ? AND block = ?"""
# A block has 2048 numbers, and an owner 2^32: see sheet.py.
_PASSAGES = """(
    SELECT string_agg(p.columns, ''::bytea ORDER BY p.id) FROM memory_passage AS p
    WHERE p.id >= (b.owner << 32) + (b.block << 11) AND p.id < (b.owner << 32) + ((b.block + 1) << 11))"""
_SEAL = (
    "UPDATE memory_block AS b SET columns = " + _PASSAGES + " WHERE b.owner = ? AND b.block < ? AND b.columns IS NULL"
)
_BLOCKS = (
    "SELECT b.block, coalesce(b.columns, "
    + _PASSAGES
    + ") FROM memory_block AS b WHERE b.owner = ? AND b.block = ANY(?)"
)
_CHANGED = """
SELECT block, alive, others, lecture, standing, counted, extent FROM memory_block WHERE owner = ? AND revision > ?"""
_POST = """
INSERT INTO memory_word AS w SELECT ?, * FROM unnest(?::text[], ?::bigint[], ?::bytea[])
ON CONFLICT (owner, term, block) DO UPDATE SET postings = w.postings || excluded.postings"""
_POSTINGS = "SELECT term, block, postings FROM memory_word WHERE owner = ? AND term = ANY(?) AND block = ANY(?)"
_ALL_POSTINGS = "SELECT term, block, postings FROM memory_word WHERE owner = ? AND block = ?"
_LEFT = "UPDATE memory_word SET postings = ? WHERE owner = ? AND term = ? AND block = ?"
_GLOSS = "SELECT terms FROM memory_gloss WHERE page = ? AND kind = ?"
_BEGINNING = """
SELECT DISTINCT term FROM memory_word WHERE owner = ? AND term >= ? AND term < ? ORDER BY term LIMIT ?"""
