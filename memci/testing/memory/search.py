"""What every memory must find: all that was said, in every language, exactly, within the bounds of a search.

    observe(page), search("friedrichshafen")    ──▶  #1, entry 2, "In Friedrichshafen."

This is a part of `memci.testing.memory.conformance.MemoryConformance`, which has the fixtures; inherit that one.
This module knows nothing of how a memory finds things.
"""

import pytest

from ...memory.backend import MemoryBackend, PageRecord
from ...messages import text_of
from .pages import DAY, Keep, Tell, found

LANGUAGES = {
    "Chinese": ("我下个月搬到上海的静安区住。", "上海"),
    "Chinese without a sign": ("妹妹最喜欢的水果是榴莲", "榴莲"),
    "Japanese": ("来週の会議は横浜で開かれます。", "横浜"),
    "Japanese, kana": ("コーヒーよりココアがいいです", "ココア"),
    "Korean": ("우리 강아지 이름은 보리입니다.", "강아지"),
    "Russian": ("Мою собаку зовут Жучка.", "Жучка"),
    "Arabic": ("أسكن في مدينة مراكش.", "مراكش"),
    "accents": ("We met at the Café Québécois.", "québécois"),
}
"""what is said, and a word to find it by"""


class MemorySearch:
    """What was said is found."""

    def test_observed_page_is_found_at_once(self, memory: MemoryBackend, tell: Tell) -> None:
        """What was observed is found by the next search, with where it is and who said it."""
        tell(1, "Where do zeppelins land?", "In Friedrichshafen.", at=3 * DAY)
        tell(2, "And submarines?", "They do not land.")

        (page, *_) = memory.search("friedrichshafen").pages

        assert (page.context, page.index, page.entry, page.turn, page.at) == ("alice", 1, 2, 0, 3 * DAY)
        assert (page.role, page.text) == ("assistant", "In Friedrichshafen.")
        assert 0 < page.score <= 1
        assert found(memory, "submarines")[0] == ("alice", 2)

    def test_call_and_its_result_are_found(self, memory: MemoryBackend, keep: Keep) -> None:
        """The arguments of a tool call and the tool's answer are found, as well as what people said."""
        call = {"id": "c1", "type": "function", "function": {"name": "fares", "arguments": '{"to": "Ouagadougou"}'}}
        messages = (
            {"role": "user", "content": "How much is it?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "fare HXQ77 costs 812"},
        )
        page = PageRecord("alice", 1, 0, tuple(enumerate(messages, 1)))
        keep(page)
        memory.observe(page)

        assert memory.search("Ouagadougou").pages[0].entry == 2
        assert (memory.search("HXQ77").pages[0].entry, memory.search("HXQ77").pages[0].role) == (3, "tool")

    def test_budget_bounds_the_text(self, memory: MemoryBackend, tell: Tell) -> None:
        """The texts of a search cost no more than its budget; a token is a character at least."""
        for index in range(1, 6):
            tell(index, "zeppelin " * (30 * index), "zeppelin too")

        for budget in (1, 20, 100, 1_000):
            pages = memory.search("zeppelin", budget=budget).pages
            assert sum(len(piece.text.split()) for page in pages for piece in page.pieces) <= budget
        assert memory.search("zeppelin", budget=1_000).pages

    def test_search_is_bounded(self, memory: MemoryBackend, tell: Tell) -> None:
        """At most k pages of the time are found, both ends among them, best first, in no place of one excluded."""
        for index in range(1, 7):
            tell(index, f"zeppelin {index}", f"a zeppelin, zeppelin {index}", at=index * DAY if index < 4 else None)
        tell(1, "zeppelin of another", context="bob")
        unwanted = {("alice", 1), ("alice", 2), ("alice", 99), ("nobody", 1)}

        for bounds, expected in (
            ({"k": 50}, [1, 1, 2, 3, 4, 5, 6]),
            ({"since": 2 * DAY}, [2, 3]),
            ({"until": 2 * DAY}, [1, 2]),
            ({"since": 2 * DAY, "until": 2 * DAY}, [2]),
            ({"since": 2.5 * DAY, "until": 2.6 * DAY}, []),
            ({"since": 3 * DAY, "until": DAY}, []),
            ({"k": 5, "exclude": unwanted}, [1, 3, 4, 5, 6]),
        ):
            pages = memory.search("zeppelin", **bounds).pages
            assert sorted(page.index for page in pages) == expected, bounds
        for k in (1, 3, 7):
            pages = memory.search("zeppelin", k=k).pages
            assert len({(page.context, page.index) for page in pages}) == len(pages) == k
            assert [page.score for page in pages] == sorted((page.score for page in pages), reverse=True)

    def test_text_is_exact(self, memory: MemoryBackend, tell: Tell) -> None:
        """Each piece is what its entry says from its start on, by character, to the end of a very long one."""
        texts = (
            "  Zeppelins \t are   slow.\n\n\nVery slow — “zeppelins” 🙂 " + "and then some words. " * 200 + "zeppelin",
            "齐柏林飞艇zeppelin很慢。" * 300 + "\r\nzeppelin e\u0301",
            "lorem ipsum dolor sit amet. " * 4_000 + "the quagga is last",
        )
        page = tell(1, *texts)
        said = {ordinal: text_of(message) for ordinal, message in page.entries}

        for word in ("zeppelin", "quagga"):
            (hit, *_) = memory.search(word).pages
            assert any(word in piece.text for piece in hit.pieces)
            for piece in hit.pieces:
                assert piece.text
                assert said[piece.entry][piece.start : piece.start + len(piece.text)] == piece.text

    @pytest.mark.parametrize("language", LANGUAGES)
    def test_every_language_is_found(self, memory: MemoryBackend, tell: Tell, language: str) -> None:
        """A word of any language finds the page that says it, first."""
        for index, (text, _) in enumerate(LANGUAGES.values(), 1):
            tell(index, text, "noted")

        assert found(memory, LANGUAGES[language][1])[0] == ("alice", list(LANGUAGES).index(language) + 1)
