"""The index of one owner's words over packed rows: a search reads the postings of its terms, and the blocks they name.

    "oslo"  ──▶  postings of block 0 and 7  ──▶  columns of block 0 and 7        nothing else of the owner is read

What was read stays in RAM. Each block says at which revision of the owner it changed last: after a change, by this
process or another, only the blocks that changed are read again. This module knows nothing of scores.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ..retrieval.layout import Integers, Row
from ..retrieval.postings import MOST_POSTINGS, Posting, WordIndex
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
        """the revision of the owner as of which all is"""
        self._words: dict[int, dict[str, Posting]] = {}
        """the postings of a block, by term"""

    def __len__(self) -> int:
        return (len(self.layout.loaded) << BLOCK_BITS) + self._kept

    def refresh(self) -> None:
        """Read which blocks changed, if any did. One query, and one for the speakers."""
        revision = self._passages.revision
        if revision == self._seen:
            return
        states = {block: BlockState(*state) for block, *state in self._passages.changed(self._seen)}
        self.layout.know(states, self._passages.speakers())
        if len(self.ids) < len(self.layout.columns.page):
            self.ids = self._passages.nr * NUMBERS + np.arange(len(self.layout.columns.page))
        for block in states:
            self._kept -= sum(len(numbers) for numbers, _ in self._words.pop(block, {}).values())
        if states:
            self._known = {}
        self._seen = revision

    def prepare(self, *, standing: bool, whole: bool) -> None:
        """Read what a search needs beside its terms: blocks with lasting instructions, or all."""
        self.refresh()
        if standing or whole:
            self._load(block for block, state in self.layout.states.items() if whole or state.standing)

    def postings(self, terms: Iterable[str]) -> Mapping[str, Posting]:
        """Return which passages have each of *terms*; their blocks are in RAM then. O(their postings + blocks)."""
        self.refresh()
        if self._kept > MOST_POSTINGS:
            self._known, self._words, self._kept = {}, {}, 0
        wanted = list(dict.fromkeys(terms))
        self._fetch(wanted)
        found = super().postings(wanted)
        if len(self.layout.loaded) == len(self.layout.states):
            return found
        posted = np.unique(np.concatenate([np.zeros(0, np.int64), *(numbers for numbers, _ in found.values())]))
        # Other passages of those whom the question names come behind what is posted.
        named = any(self.layout.people(term) for term in wanted)
        self._load(self.layout.states if named and len(posted) < _FEW else np.unique(posted >> BLOCK_BITS).tolist())
        near = self.layout.columns.links[:, posted]
        self._load(np.flatnonzero(np.bincount(near[near >= 0] >> BLOCK_BITS)).tolist())
        return found

    def add(self, ids: Sequence[int], rows: Sequence[Row], counts: Sequence[Counter[str]]) -> None:
        """Do nothing: the blocks say that they changed."""

    def read_again(self, terms: Iterable[str]) -> None:
        """Do nothing: the blocks say that they changed."""

    def _of(self, term: str) -> Posting:
        if term not in self._known:
            self._fetch([term])
            parts = [self._words[block][term] for block in sorted(self.layout.states)]
            numbers = np.concatenate([np.zeros(0, np.int64), *(each for each, _ in parts)])
            self._known[term] = numbers, np.concatenate([np.zeros(0, np.int64), *(each for _, each in parts)])
        return self._known[term]

    def _fetch(self, terms: Sequence[str]) -> None:
        """Read the postings of *terms* in the blocks where they are not known."""
        words = [self._words.setdefault(block, {}) for block in self.layout.states]
        missing = [
            block for block, known in zip(self.layout.states, words, strict=True) if not known.keys() >= set(terms)
        ]
        if not missing:
            return
        for block in missing:
            self._words[block].update(dict.fromkeys(terms, _NONE))
        for term, block, read in self._passages.read_postings(terms, missing):
            self._words[block][term] = posting = _posting(read)
            self._kept += len(posting[0])

    def _load(self, blocks: Iterable[int]) -> None:
        missing = [each for each in blocks if each not in self.layout.loaded]
        for block, columns in self._passages.read_blocks(missing) if missing else ():
            self.layout.load(block, columns)


_FEW = 2_048
"""as many passages as a search looks at, at most"""
_NONE: Posting = (np.zeros(0, np.int64), np.zeros(0, np.int64))


def _posting(read: bytes) -> Posting:
    rows = np.frombuffer(read, POSTING)
    numbers: Integers = rows["number"].astype(np.int64)
    times: Integers = rows["times"].astype(np.int64)
    if not rows["kind"].any():
        return numbers, times
    numbers, place = np.unique(numbers, return_inverse=True)
    return numbers, np.bincount(place, times).astype(np.int64)
