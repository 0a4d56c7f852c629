"""An index of passages in RAM: the postings and the layout that `memci.memory.retrieval.ranking` works on.

    shelf = Shelf()
    shelf.add(entries, page=0, at=1683554160.0)
    rank(Query.of("…"), shelf.postings, shelf.layout)

What a store does with tables, this does with dicts. This module knows nothing of scores.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from memci.memory.retrieval.layout import Layout, Row, flags_of
from memci.memory.retrieval.passages import Passage, passage_terms, passages
from memci.messages import Message
from memci.text.language.terms import extent
from memci.text.moments import local

Numbers = NDArray[np.int64]


class Postings(Mapping[str, tuple[Numbers, Numbers]]):
    """Where terms stand, as arrays; made of lists when they are asked for, and kept until more is added."""

    def __init__(self) -> None:
        self._lists: dict[str, tuple[list[int], list[int]]] = {}
        self._arrays: dict[str, tuple[Numbers, Numbers]] = {}

    def add(self, position: int, terms: Sequence[str]) -> None:
        for term, frequency in Counter(terms).items():
            positions, frequencies = self._lists.setdefault(term, ([], []))
            positions.append(position)
            frequencies.append(frequency)
            self._arrays.pop(term, None)

    def __getitem__(self, term: str) -> tuple[Numbers, Numbers]:
        if term not in self._arrays:
            positions, frequencies = self._lists[term]
            self._arrays[term] = np.array(positions), np.array(frequencies)
        return self._arrays[term]

    def __iter__(self) -> Iterator[str]:
        return iter(self._lists)

    def __len__(self) -> int:
        return len(self._lists)


class Shelf:
    """The passages of one owner."""

    def __init__(self, layout: Layout | None = None) -> None:
        self.layout = layout if layout is not None else Layout()
        self.postings = Postings()
        self.passages: list[Passage] = []
        self.terms: list[list[str]] = []

    def add(
        self, entries: Sequence[tuple[int, Message]], *, page: int, at: float | None = None, context: int = 0
    ) -> range:
        """Add the messages of a page and return the positions of their passages."""
        cut = passages(entries)
        found = [passage_terms(passage, None if at is None else local(at, 0)) for passage in cut]
        rows = [
            Row(
                context,
                page,
                passage.entry,
                passage.part,
                passage.role,
                passage.speaker,
                extent(terms),
                at,
                flags_of(passage),
            )
            for passage, terms in zip(cut, found, strict=True)
        ]
        positions = self.layout.extend(rows)
        for position, terms in zip(positions, found, strict=True):
            self.postings.add(position, terms)
        self.passages += cut
        self.terms += found
        return positions
