"""A hypothesis machine that drives a memory beside a dict of pages.

    observe, admit, replace, erase a page, a context, all, maintain   ──▶  each page that is left is found by its word
    after every step                                                  ──▶  no word is found that no page says (any more)

Every page gets a word that no other page has, and another one when it is replaced. Each run ends by erasing all, so
that one memory serves all runs.
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
    """Subclass it with the `backend` to drive, and `kept`, which puts a page where it reads its text."""

    backend: MemoryBackend
    kept: Callable[[PageRecord], None]

    def __init__(self) -> None:
        super().__init__()
        self.pages: dict[tuple[str, int], tuple[PageRecord, str]] = {}
        """what is to be found: the page, and its word"""
        self.gone: list[str] = []
        """words that no page has any more"""
        self.highest: dict[str, int] = {}
        """the highest page that it was shown of each context"""
        self.now = 1_000_000.0

    @rule(
        context=_contexts, index=_indexes, ordinal=_ordinals, others=_others, admits=st.booleans(), dated=st.booleans()
    )
    def tell(self, context: str, index: int, ordinal: int, others: dict[int, str], admits: bool, dated: bool) -> None:
        """Tell of a page, a new one or another text for one that is known, perhaps with fewer or empty entries."""
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
        """Tell of a page that is known, as it is."""
        page, word = self.pages[data.draw(st.sampled_from(sorted(self.pages)))]
        (self.backend.admit if admits else self.backend.observe)(replace(page))
        self._finds(page, word)

    @rule(context=_contexts, indexes=st.none() | st.sets(_indexes, max_size=3))
    def erase(self, context: str, indexes: set[int] | None) -> None:
        """Erase pages, or a whole context, which may not be there."""
        named = [key for key in self.pages if key[0] == context and (indexes is None or key[1] in indexes)]
        assert self.backend.erase(Scope(context, indexes)).pages == len(named), "what went is counted"
        if indexes is None:
            assert self.backend.acknowledged(context) == 0, "it is as if it had never been observed"
            self.highest.pop(context, None)
        self.gone += [self.pages.pop(key)[1] for key in named]

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
        """See that everything is as it should be, at the end, and erase all, for the next run."""
        for page, word in self.pages.values():
            self._finds(page, word)
        for word in self.gone[-9:]:
            self._finds_not(word)
        for name, told in self.highest.items():
            there = max((index for context, index in self.pages if context == name), default=0)
            assert self.backend.acknowledged(name) in {0, *range(there, told + 1)}, "what is there was acknowledged"
        assert self.backend.erase(Scope()).pages == len(self.pages), "what went is counted"
        for _, word in self.pages.values():
            assert not self.backend.search(word).pages
        assert not any(map(self.backend.acknowledged, ("one", "two", "three")))

    def _finds(self, page: PageRecord, word: str) -> None:
        pages = self.backend.search(word, k=3).pages
        assert pages, f"a page is found by its word: {page.key}"
        assert (pages[0].context, pages[0].index) == page.key, "and before all others"
        assert word in pages[0].text, "and the text says it"
        said = dict(page.entries)[pages[0].entry]
        assert word in said["content"], "and the entry that says it is named"
        assert pages[0].role == said["role"], "and who said it"
        assert 0 < pages[0].score <= 1, "and how well it fits"
        assert len({(each.context, each.index, each.entry) for each in pages}) == len(pages), "and each message once"
        assert len(pages[0].pieces) == len({(each.entry, each.start) for each in pages[0].pieces}), "each piece once"
        assert (pages[0].turn, pages[0].at) == (page.turn, page.at), "and it is told when that was"

    def _finds_not(self, word: str) -> None:
        for page in self.backend.search(word, k=3).pages:
            assert all(word not in piece.text for piece in page.pieces), "what is gone is not found"
            assert (page.context, page.index) in self.pages, "what is found is there"
