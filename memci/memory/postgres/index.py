"""The index of words of one owner, over packed rows: a search reads the postings of its terms, and their blocks.

    "oslo"  ──▶  postings of block 0 and 7  ──▶  columns of block 0 and 7        nothing else of the owner is read

Blocks that were read stay in RAM. Each block has the revision of the owner at its last change. After a change by any
process, only the changed blocks are read again.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...text.language.similar import Similar
from ..retrieval.bm25 import NOWHERE, Postings
from ..retrieval.layout import Integers, Row
from ..retrieval.postings import A_TERM, MOST_POSTINGS, Posting, WordIndex
from .passages import PackedPassages
from .sheet import BLOCK_BITS, NUMBERS, POSTING, BlockState, Sheet


class PackedIndex(WordIndex):
    """The passages of one owner. Not thread-safe: the caller holds the store's lock."""

    def __init__(self, passages: PackedPassages) -> None:
        super().__init__(passages)
        passages.index = self
        self._passages = passages
        self.layout: Sheet = Sheet()
        self._seen = 0
        """the revision of the owner that the index shows"""
        self._stale: dict[str, set[int]] = {}
        """blocks whose postings must be read again, by term"""

    def __len__(self) -> int:
        return (len(self.layout.loaded) << BLOCK_BITS) + self._kept

    def refresh(self) -> None:
        """Read which blocks have changed, if there is a new revision. Two queries."""
        revision = self._passages.revision
        if revision == self._seen:
            return
        states = {block: BlockState(*state) for block, *state in self._passages.changed(self._seen)}
        self.layout.know(states, self._passages.speakers())
        if len(self.ids) < len(self.layout.columns.page):
            self.ids = self._passages.nr * NUMBERS + np.arange(len(self.layout.columns.page))
        for term in self._known if states else ():
            self._stale.setdefault(term, set()).update(states)
        self._seen = revision

    def prepare(self, *, standing: bool, whole: bool) -> None:
        """Read blocks that a search needs beside its terms: those with lasting instructions, or all."""
        self.refresh()
        if standing or whole:
            self._load(block for block, state in self.layout.states.items() if whole or state.standing)

    def postings(
        self, terms: Iterable[str], stems: Mapping[str, str] | None = None, similar: Similar | None = None
    ) -> Postings:
        """Return the postings of *terms*, and load their blocks. O(their postings + blocks)."""
        wanted = list(dict.fromkeys(terms))
        found = super().postings(wanted, stems, similar)
        # If the question names a speaker, other passages of the speaker follow.
        if any(self.layout.people(term) for term in wanted) and len(_posted(found.values())) < _FEW:
            self._load(self.layout.states)
        return found

    def exact(self, terms: Iterable[str], most: int | None = None) -> dict[str, Posting]:
        """Return the postings of just these *terms*, as `WordIndex.exact`, and load their blocks."""
        self.refresh()
        if self._kept > MOST_POSTINGS:
            self._known, self._stale, self._kept = {}, {}, 0
        found = super().exact(terms, most)
        if len(self.layout.loaded) < len(self.layout.states):
            posted = _posted(found.values())
            self._load(_blocks_of(posted))
            near = self.layout.columns.links[:, posted]
            self._load(_blocks_of(near[near >= 0]))
        return found

    def add(self, ids: Sequence[int], rows: Sequence[Row], counts: Sequence[Counter[str]]) -> None:
        """Do nothing: blocks have revisions."""

    def read_again(self) -> None:
        """Do nothing: blocks have revisions."""

    def _read_all(self, lookups: int) -> None:
        """Do nothing: the postings of all terms of a search are read at once."""

    def _fetch(self, terms: Iterable[str], most: int | None = None) -> None:  # noqa: ARG002 -- all are read
        """Read the postings of *terms* that are not in RAM, and those in changed blocks."""
        self._update([term for term in terms if term not in self._known], set(self.layout.states))
        changed = [term for term in terms if term in self._stale]
        self._update(changed, set().union(*(self._stale[term] for term in changed)))

    def _update(self, terms: Sequence[str], blocks: Collection[int]) -> None:
        """Read the postings of *terms* in *blocks*, which replace those in RAM."""
        read: dict[str, dict[int, bytes]] = {term: {} for term in terms}
        for term, block, postings in self._passages.read_postings(terms, [*blocks]) if terms else ():
            read[term][block] = postings
        for term, parts in read.items():
            known = self._known.get(term, NOWHERE)
            left = ~np.isin(known[0] >> BLOCK_BITS, [*blocks])
            fresh = _posting(b"".join(parts[block] for block in sorted(parts)))
            numbers, times = (np.append(old[left], new) for old, new in zip(known, fresh, strict=True))
            order = np.argsort(numbers, kind="stable")
            self._kept += len(numbers) - len(known[0]) + A_TERM * (term not in self._known)
            self._known[term] = numbers[order], times[order]
            self._stale.pop(term, None)

    def _load(self, blocks: Iterable[int]) -> None:
        missing = [each for each in blocks if each not in self.layout.loaded]
        for block, columns in self._passages.read_blocks(missing) if missing else ():
            self.layout.load(block, columns)


_FEW = 2_048  # passages that a search reads at most (32 · 64)


def _posted(postings: Iterable[tuple[Integers, Any]]) -> Integers:
    """Return the numbers that any of *postings* has, each once."""
    return np.unique(np.concatenate([NOWHERE[0], *(numbers for numbers, _ in postings)]))


def _blocks_of(numbers: Integers) -> list[int]:
    """Return the blocks of *numbers*. O(numbers)."""
    return np.flatnonzero(np.bincount(numbers >> BLOCK_BITS)).tolist()


def _posting(read: bytes) -> Posting:
    rows = np.frombuffer(read, POSTING)
    numbers: Integers = rows["number"].astype(np.int64)
    times: Integers = rows["times"].astype(np.int64)
    if not rows["kind"].any():
        return numbers, times
    numbers, place = np.unique(numbers, return_inverse=True)
    return numbers, np.bincount(place, times).astype(np.int64)
