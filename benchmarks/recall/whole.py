"""The whole of memci behind the same door: a context on SQLite, whose window holds little, and its memory.

    append_turn(message, at=…) …   ──▶   archive, flush   ──▶   search_memory(question, k=…), then with budget=…

What the other systems are given as a list, this one is told as any agent tells it, and it finds it in its own file
again. A message that was found is one that a piece of a page comes from. This module knows nothing of scores.
"""

import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from memci import Context, Policy, SQLiteStorage
from memci.memory import MemoryBackend, Recollection, TieredMemory
from memci.memory.retrieval.embedders import Embedder
from memci.memory.retrieval.ranking import Weights

from .systems import cost, fitting
from .tasks import Talk

WINDOW = 2_000
"""tokens: nearly all of a talk leaves it"""
_MANY = 300
"""pages that are asked for with a budget: more than fit"""


class Whole:
    """A context and its memory, with vectors of *embedder* if one is given."""

    def __init__(self, embedder: Embedder | None = None, *, weights: Weights | None = None) -> None:
        self._embedder = embedder
        self._weights = weights
        self._folder = tempfile.TemporaryDirectory()

    def add(self, talk: Talk) -> None:
        storage = SQLiteStorage(Path(self._folder.name) / "talk.db", durability="fast")
        memory: MemoryBackend | None = None
        if self._embedder is not None:
            memory = TieredMemory(storage, owner="talk", embedder=self._embedder)
        self._context = Context.open(
            storage, id="talk", system="You remember.", window=WINDOW, policy=Policy(contents_tokens=1), memory=memory
        )
        self._number: dict[tuple[int, int], int] = {}
        for number, line in enumerate(talk.lines):
            at = None if line.at is None else datetime.fromtimestamp(line.at, UTC)
            (entry,) = self._context.append_turn(line.message, at=at).entries
            self._number[entry.page, entry.ordinal] = number
            self._context.render()
        self._context.append_turn("Do you remember?")  # a question opens a page, and closes the last one
        self._context.archive(keep=0)
        self._context.flush()
        if self._weights is not None:
            self.memory.session.weights = self._weights

    @property
    def context(self) -> Context:
        """The context that was told the talk."""
        return self._context

    @property
    def memory(self) -> TieredMemory:
        """The memory of its context."""
        memory = self._context.memory
        assert isinstance(memory, TieredMemory)
        return memory

    def number(self, page: int, entry: int) -> int:
        """Return which message of the talk is an entry of a page."""
        return self._number[page, entry]

    def search(self, question: str, k: int) -> list[int]:
        found = self._context.search_memory(question, k=k)
        return list(dict.fromkeys(number for number, *_ in self._pieces(found)))[:k]

    def answer(self, question: str, k: int) -> tuple[list[int], float]:
        """Return the numbers of what is found, and how sure the answer is."""
        found = self._context.search_memory(question, k=k)
        return [number for number, *_ in self._pieces(found)], found.certainty or 0.0

    def within(self, question: str, budget: int) -> list[int]:
        """Return the numbers of messages whose pieces cost at most *budget* tokens, best first."""
        found = self._context.search_memory(question, k=_MANY, budget=budget)
        return fitting(((number, cost(text, who)) for number, text, who in self._pieces(found)), budget)

    def close(self) -> None:
        self._context.close()
        self._folder.cleanup()

    def _pieces(self, found: Recollection) -> Iterator[tuple[int, str, str]]:
        for page in found.pages:
            for piece in page.pieces:
                yield self._number[page.index, piece.entry], piece.text, piece.speaker
