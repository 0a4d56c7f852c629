"""Pages for tests of a memory, and the results of searches for them.

told(1, "Where do zeppelins land?", "In Friedrichshafen.")    a page of a user's message and its answer
found(memory, "zeppelin")                                     [("alice", 1)]
saying(memory, "zeppelin")                                    those of them with a piece that says it
"""

from collections.abc import Callable, Collection, Sequence

from ...memory.backend import MemoryBackend, PageRecord
from ...messages import Message

DAY = 86_400.0

Keep = Callable[[PageRecord], None]  # Stores a page where a memory reads its text.

Tell = Callable[..., PageRecord]  # Makes a page like `told`, stores it, and has the memory observe it.


def told(
    index: int,
    *texts: str,
    context: str = "alice",
    at: float | None = None,
    quotes: Collection[int] = (),
    names: Sequence[str | None] = (),
) -> PageRecord:
    """Return page *index*, on which the user and the assistant say *texts* in turn."""
    spoken: list[Message] = [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(texts)]
    named = [*names, *([None] * len(texts))]
    messages = [each if name is None else {**each, "name": name} for each, name in zip(spoken, named, strict=False)]
    return PageRecord(context, index, index - 1, tuple(enumerate(messages, 1)), at, frozenset(quotes))


def found(memory: MemoryBackend, query: str, *, k: int = 20) -> list[tuple[str, int]]:
    """Return the different pages that a search finds, best first."""
    return list(dict.fromkeys((page.context, page.index) for page in memory.search(query, k=k).pages))


def saying(memory: MemoryBackend, word: str) -> list[tuple[str, int]]:
    """Return the pages that a search for *word* finds, and of which a piece has the word."""
    pages = memory.search(word, k=20).pages
    return sorted(
        {
            (page.context, page.index)
            for page in pages
            if any(word.casefold() in piece.text.casefold() for piece in page.pieces)
        }
    )
