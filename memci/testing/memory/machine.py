"""A Hypothesis state machine that compares a memory with a dict of pages.

    observe, admit, replace, erase a page, a context, all, maintain   ──▶  each remaining page is found by its word
    after every step                                                  ──▶  no word of a removed page is found

Every page has a word that no other page has, and gets another one when it is replaced. Each run ends by erasing all, so
that all runs can use one memory.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import count

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from ...memory.backend import MemoryBackend, PageRecord, Scope

_words = count(1)
_contexts = st.sampled_from(["one", "two"])
_indexes = st.integers(1, 6)
_ordinals = st.integers(1, 4)
_texts = ["a flight to Oslo", "the dog is ill", "订一张机票", "a violin and its strings", "", " \n"]
_others = st.dictionaries(_ordinals, st.sampled_from(_texts), max_size=3)


class MemoryMachine(RuleBasedStateMachine):
    """Subclass it with `backend`, the memory, and `kept`, which stores a page where the memory reads its text."""

    backend: MemoryBackend
    kept: Callable[[PageRecord], None]

    def __init__(self) -> None:
        super().__init__()
        self.pages: dict[tuple[str, int], tuple[PageRecord, str]] = {}
        """the pages that must be found, with their words"""
        self.gone: list[str] = []
        """words of removed pages"""
        self.highest: dict[str, int] = {}
        """the highest page of each context that was observed"""
        self.now = 1_000_000.0

    @rule(
        context=_contexts, index=_indexes, ordinal=_ordinals, others=_others, admits=st.booleans(), dated=st.booleans()
    )
    def tell(self, context: str, index: int, ordinal: int, others: dict[int, str], admits: bool, dated: bool) -> None:
        """Send a new page, or replace one with another text, perhaps with fewer or empty messages."""
        self.now += 600
        word = f"quokka{next(_words):06}"
        texts = {**others, ordinal: f"{others.get(ordinal, '')} {word}"}
        said = tuple(
            (place, {"role": ("assistant", "user")[place % 2], "content": text})
            for place, text in sorted(texts.items())
        )
        page = PageRecord(context, index, index - 1, said, self.now if dated else None)
        self.kept(page)
        if page.key in self.pages:
            self.gone.append(self.pages[page.key][1])
        (self.backend.admit if admits else self.backend.observe)(page)
        self.pages[page.key] = page, word
        self.highest[context] = max(index, self.highest.get(context, 0))
        self._finds(page, word)

    @precondition(lambda self: self.pages)
    @rule(data=st.data(), admits=st.booleans())
    def tell_again(self, data: st.DataObject, admits: bool) -> None:
        """Send a known page again, unchanged."""
        page, word = self.pages[data.draw(st.sampled_from(sorted(self.pages)))]
        (self.backend.admit if admits else self.backend.observe)(replace(page))
        self._finds(page, word)

    @rule(context=_contexts, indexes=st.none() | st.sets(_indexes, max_size=3))
    def erase(self, context: str, indexes: set[int] | None) -> None:
        """Erase pages or a whole context, which may not exist."""
        named = [key for key in self.pages if key[0] == context and (indexes is None or key[1] in indexes)]
        assert self.backend.erase(Scope(context, indexes)).pages == len(named), "removed pages are counted"
        if indexes is None:
            assert self.backend.acknowledged(context) == 0, "nothing of the context is acknowledged"
            self.highest.pop(context, None)
        self.gone += [self.pages.pop(key)[1] for key in named]

    @rule(hours=st.integers(0, 2_000))
    def maintain(self, hours: int) -> None:
        """Do maintenance."""
        self.now += 3600.0 * hours
        self.backend.maintain(self.now)
        assert self.backend.maintain(self.now) == 0, "nothing is due after maintenance"

    @precondition(lambda self: self.pages or self.gone)
    @rule(data=st.data())
    def search(self, data: st.DataObject) -> None:
        """Search for a page that exists, and for a removed one."""
        if self.pages:
            self._finds(*self.pages[data.draw(st.sampled_from(sorted(self.pages)))])
        if self.gone:
            self._finds_not(data.draw(st.sampled_from(self.gone)))

    def teardown(self) -> None:
        """Check all pages at the end, and erase all for the next run."""
        for page, word in self.pages.values():
            self._finds(page, word)
        for word in self.gone[-9:]:
            self._finds_not(word)
        for name, told in self.highest.items():
            there = max((index for context, index in self.pages if context == name), default=0)
            assert self.backend.acknowledged(name) in {0, *range(there, told + 1)}, "existing pages are acknowledged"
        assert self.backend.erase(Scope()).pages == len(self.pages), "removed pages are counted"
        for _, word in self.pages.values():
            assert not self.backend.search(word).pages
        assert not any(map(self.backend.acknowledged, ("one", "two", "three")))

    def _finds(self, page: PageRecord, word: str) -> None:
        pages = self.backend.search(word, k=3).pages
        assert pages, f"a page is found by its word: {page.key}"
        assert (pages[0].context, pages[0].index) == page.key, "it is the first result"
        assert word in pages[0].text, "the text has the word"
        said = dict(page.entries)[pages[0].entry]
        assert word in said["content"], "the result names the message with the word"
        assert pages[0].role == said["role"], "the result has the role of the message"
        assert 0 < pages[0].score <= 1, "the score is from 0 to 1"
        assert len({(each.context, each.index, each.entry) for each in pages}) == len(pages), (
            "each message is found once"
        )
        assert len(pages[0].pieces) == len({(each.entry, each.start) for each in pages[0].pieces}), (
            "each piece is found once"
        )
        assert (pages[0].turn, pages[0].at) == (page.turn, page.at), "the result has turn and time of the page"

    def _finds_not(self, word: str) -> None:
        for page in self.backend.search(word, k=3).pages:
            assert all(word not in piece.text for piece in page.pieces), "a removed word is not found"
            assert (page.context, page.index) in self.pages, "only existing pages are found"
