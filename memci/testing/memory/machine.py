"""A hypothesis machine that drives a memory beside a dict of pages.

    observe, admit, replace, erase a page, a context, all, maintain   ──▶  each page that is left is found by its word
    after every step                                                  ──▶  no word is found that no page says (any more)

Every page gets a word that no other page has, and another one when it is replaced. Each run takes contexts that no run
before had, so that one memory serves all runs. This module knows nothing of how a memory finds things.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import count

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from ...memory.backend import MemoryBackend, PageRecord, Scope

_runs = count()
_words = count(1)
_contexts = st.sampled_from(["one", "two"])
_indexes = st.integers(1, 6)
_topics = st.sampled_from(["a flight to Oslo", "the dog is ill", "订一张机票", "a violin and its strings"])


class MemoryMachine(RuleBasedStateMachine):
    """Subclass it with the `backend` to drive, and `kept`, which puts a page where it reads its text."""

    backend: MemoryBackend
    kept: Callable[[PageRecord], None]

    def __init__(self) -> None:
        super().__init__()
        self.run = next(_runs)
        self.pages: dict[tuple[str, int], tuple[PageRecord, str]] = {}
        """what is to be found: the page, and its word"""
        self.gone: list[str] = []
        """words that no page has any more"""
        self.now = 1_000_000.0

    @rule(context=_contexts, index=_indexes, topic=_topics, admits=st.booleans(), dated=st.booleans())
    def tell(self, context: str, index: int, topic: str, admits: bool, dated: bool) -> None:
        """Tell of a page, a new one or another text for one that is known."""
        self.now += 600
        word = f"quokka{next(_words):06}"
        said = ({"role": "user", "content": f"{topic} {word}"}, {"role": "assistant", "content": f"Yes: {topic}."})
        at = self.now if dated else None
        page = PageRecord(f"{context} {self.run}", index, index - 1, tuple(enumerate(said, 1)), at)
        self.kept(page)
        if page.key in self.pages:
            self.gone.append(self.pages[page.key][1])
        (self.backend.admit if admits else self.backend.observe)(page)
        self.pages[page.key] = page, word
        self._finds(page, word)

    @precondition(lambda self: self.pages)
    @rule(data=st.data(), admits=st.booleans())
    def tell_again(self, data: st.DataObject, admits: bool) -> None:
        """Tell of a page that is known, as it is."""
        page, word = self.pages[data.draw(st.sampled_from(sorted(self.pages)))]
        (self.backend.admit if admits else self.backend.observe)(replace(page))
        self._finds(page, word)

    @rule(context=_contexts, indexes=st.sets(_indexes, max_size=3))
    def erase(self, context: str, indexes: set[int]) -> None:
        """Erase pages, some of which may not be there."""
        named = {(f"{context} {self.run}", index) for index in indexes} & self.pages.keys()
        assert self.backend.erase(Scope(f"{context} {self.run}", indexes)).pages == len(named), "what went is counted"
        self._drop(named)

    @rule(context=_contexts)
    def erase_context(self, context: str) -> None:
        """Erase a context, which may not be there."""
        name = f"{context} {self.run}"
        named = {key for key in self.pages if key[0] == name}
        assert self.backend.erase(Scope(name)).pages == len(named), "what went is counted"
        assert self.backend.acknowledged(name) == 0, "it is as if it had never been observed"
        self._drop(named)

    @rule(hours=st.integers(0, 2_000))
    def maintain(self, hours: int) -> None:
        """Let it do what is due."""
        self.now += 3600.0 * hours
        self.backend.maintain(self.now)
        assert self.backend.maintain(self.now) == 0, "what is done is not due any more"

    @precondition(lambda self: self.pages or self.gone)
    @rule(data=st.data())
    def search(self, data: st.DataObject) -> None:
        """Search for a page that is there, and for one that is not."""
        if self.pages:
            self._finds(*self.pages[data.draw(st.sampled_from(sorted(self.pages)))])
        if self.gone:
            self._finds_not(data.draw(st.sampled_from(self.gone)))

    def teardown(self) -> None:
        """See that everything is as it should be, at the end."""
        for page, word in self.pages.values():
            self._finds(page, word)
        for word in self.gone[-9:]:
            self._finds_not(word)
        for name in {context for context, _ in self.pages}:
            highest = max(index for context, index in self.pages if context == name)
            acknowledged = self.backend.acknowledged(name)
            assert acknowledged == 0 or acknowledged >= highest, "what is there was acknowledged"
        for name in ("one", "two"):
            self.backend.erase(Scope(f"{name} {self.run}"))

    def _drop(self, keys: set[tuple[str, int]]) -> None:
        for key in keys:
            self.gone.append(self.pages.pop(key)[1])

    def _finds(self, page: PageRecord, word: str) -> None:
        pages = self.backend.search(word, k=3).pages
        assert pages, f"a page is found by its word: {page.key}"
        assert (pages[0].context, pages[0].index) == page.key, "and before all others"
        assert word in pages[0].text, "and the text says it"
        assert [each.index for each in pages if (each.context, each.index) == page.key] == [page.index], "and once"
        assert len(pages[0].pieces) == len({(each.entry, each.start) for each in pages[0].pieces}), "each piece once"
        assert (pages[0].turn, pages[0].at) == (page.turn, page.at), "and it is told when that was"

    def _finds_not(self, word: str) -> None:
        for page in self.backend.search(word, k=3).pages:
            assert all(word not in piece.text for piece in page.pieces), "what is gone is not found"
            assert (page.context, page.index) in self.pages, "what is found is there"
