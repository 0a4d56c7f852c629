r"""What every memory must do, as tests to inherit.

    class TestMyMemory(DurableMemoryConformance):
        @pytest.fixture
        def reopen(self, tmp_path):
            return lambda owner="anna": MyMemory(tmp_path / "memory", owner=owner)

        @pytest.fixture
        def memory(self, reopen):
            return reopen()

A memory that keeps nothing after close() inherits `MemoryConformance` and gives only `memory`. What it may give besides:
`stranger`, a memory of another owner in the same place, and `keep`, for one that reads the text of a page from the store
of the pages. This module knows nothing of how a memory finds things.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from threading import Thread

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from ..memory.backend import FoundPage, MemoryBackend, PageRecord, Scope
from ..messages import text_of
from .memory_machine import MemoryMachine
from .strategies import HOSTILE

Keep = Callable[[PageRecord], None]

DAY = 86_400.0
_STEPS = settings(
    max_examples=12,
    stateful_step_count=25,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],
)

TONGUES = {
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

SYNTAX = (
    '"',
    '"zeppelin',
    "NEAR(zeppelin)",
    "zeppelin*",
    "terms:zeppelin",
    "zeppelin AND (",
    "^zeppelin + -",
    "{terms}: zeppelin",
    "zeppelin NOT zeppelin",
    "'; DROP TABLE memory_page; -- zeppelin",
    "zeppelin\x01\x02\x1f",
    "zeppelin \ud83d",
    "zeppelin\u2028\u202e",
    "%s {} \\ zeppelin",
)
"""queries that a careless program takes for its own language"""


def told(
    index: int,
    *texts: str,
    context: str = "alice",
    at: float | None = None,
    quotes: Collection[int] = (),
    names: Sequence[str | None] = (),
) -> PageRecord:
    """Return page *index*, on which user and assistant say *texts* in turn."""
    messages = [
        (ordinal, {"role": ("user", "assistant")[(ordinal - 1) % 2], "content": text})
        for ordinal, text in enumerate(texts, 1)
    ]
    for (_, message), name in zip(messages, names, strict=False):
        message |= {} if name is None else {"name": name}
    return PageRecord(context, index, index - 1, tuple(messages), at, frozenset(quotes))


def found(memory: MemoryBackend, query: str, *, k: int = 20) -> list[tuple[str, int]]:
    """Return the pages that a search finds, best first."""
    return [(page.context, page.index) for page in memory.search(query, k=k).pages]


def saying(memory: MemoryBackend, word: str, *, k: int = 20) -> list[tuple[str, int]]:
    """Return the pages that a search for *word* finds with a piece that says it."""
    pages = memory.search(word, k=k).pages
    return sorted(
        (page.context, page.index)
        for page in pages
        if any(word.casefold() in piece.text.casefold() for piece in page.pieces)
    )


class MemoryConformance:
    """The promises of `memci.memory.backend.MemoryBackend`."""

    @pytest.fixture
    def memory(self) -> Iterator[MemoryBackend]:
        """Give an empty memory."""
        raise NotImplementedError("a subclass gives the memory")

    @pytest.fixture
    def stranger(self) -> MemoryBackend:
        """Give a memory of another owner in the same place."""
        pytest.skip("a subclass gives a memory of another owner")

    @pytest.fixture
    def keep(self) -> Keep:
        """Give what puts a page where the memory reads its text, before it is told of it."""
        return lambda page: None

    @pytest.fixture
    def tell(self, memory: MemoryBackend, keep: Keep) -> Callable[..., PageRecord]:
        """Give what keeps a page and has it observed."""

        def telling(*arguments: object, **more: object) -> PageRecord:
            page = told(*arguments, **more)  # type: ignore[arg-type]
            keep(page)
            memory.observe(page)
            return page

        return telling

    def test_is_a_memory(self, memory: MemoryBackend) -> None:
        """A memory has the methods of the protocol."""
        assert isinstance(memory, MemoryBackend)

    def test_empty_memory_finds_nothing(self, memory: MemoryBackend) -> None:
        """A memory that was told nothing finds nothing, has heard of nothing, forgets nothing and has nothing to do."""
        assert not memory.search("zeppelin")
        assert memory.search("zeppelin").pages == ()
        assert memory.search("zeppelin").query == "zeppelin"
        assert memory.heard("alice") == 0
        assert memory.upkeep(1.0) == 0
        for scope in (Scope(), Scope("alice"), Scope("alice", (1,))):
            assert memory.erase(scope).pages == 0

    def test_observed_page_is_found_at_once(self, memory: MemoryBackend, tell: Callable[..., PageRecord]) -> None:
        """What was observed is found by the next search, with where it is and who said it."""
        tell(1, "Where do zeppelins land?", "In Friedrichshafen.", at=3 * DAY)
        tell(2, "And submarines?", "They do not land.")

        (page, *_) = memory.search("friedrichshafen").pages

        assert (page.context, page.index, page.entry, page.turn, page.at) == ("alice", 1, 2, 0, 3 * DAY)
        assert (page.role, page.text) == ("assistant", "In Friedrichshafen.")
        assert 0 < page.score <= 1
        assert found(memory, "submarines")[0] == ("alice", 2)

    def test_every_entry_of_a_page_is_found(self, memory: MemoryBackend, tell: Callable[..., PageRecord]) -> None:
        """Whatever entry says it, the page is found, and the entry is told by its ordinal."""
        tell(1, "quokka one", "wombat two", "numbat three", "bilby four")

        for ordinal, word in enumerate(("quokka", "wombat", "numbat", "bilby"), 1):
            assert memory.search(word).pages[0].entry == ordinal

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

    @pytest.mark.parametrize("admits", [False, True], ids=["observed", "admitted"])
    def test_same_page_again_changes_nothing(self, memory: MemoryBackend, keep: Keep, admits: bool) -> None:
        """A page that is told twice, in whatever way, is there once."""
        page = told(1, "the zeppelin lands", "yes")
        keep(page)
        for _ in range(3):
            memory.observe(page)
            if admits:
                memory.admit(page)
        first = memory.search("zeppelin")
        memory.upkeep(5.0)
        memory.observe(page)

        assert [page.index for page in first.pages] == [1]
        assert len(first.pages[0].pieces) == len({(each.entry, each.start) for each in first.pages[0].pieces})
        assert found(memory, "zeppelin") == [("alice", 1)]
        assert memory.erase(Scope("alice", (1,))).pages == 1

    def test_admit_alone_is_enough(self, memory: MemoryBackend, keep: Keep) -> None:
        """A page that was never observed is found once it is admitted, and counts as heard."""
        page = told(3, "the zeppelin lands")
        keep(page)

        memory.admit(page)

        assert found(memory, "zeppelin") == [("alice", 3)]
        assert memory.heard("alice") in {0, 3}

    def test_page_with_other_entries_replaces_the_first(
        self, memory: MemoryBackend, tell: Callable[..., PageRecord]
    ) -> None:
        """Of a page that is told anew with other entries the new words are found, the old ones are not."""
        tell(1, "the zeppelin lands in Bergen", "fine")
        tell(2, "nothing of the kind", "fine")

        tell(1, "the submarine dives in Bergen", "fine")

        assert saying(memory, "zeppelin") == []
        assert saying(memory, "submarine") == [("alice", 1)]
        assert saying(memory, "Bergen") == [("alice", 1)]

    def test_entry_that_is_left_out_is_not_found(self, memory: MemoryBackend, keep: Keep) -> None:
        """An entry that a page has no more is not found; the others keep their ordinals."""
        page = told(1, "the zeppelin lands", "the submarine dives", "the tram rings")
        less = PageRecord(page.context, page.index, page.turn, (page.entries[0], page.entries[2]))
        for each in (page, less):
            keep(each)
            memory.observe(each)
            memory.admit(each)

        assert saying(memory, "submarine") == []
        assert memory.search("tram").pages[0].entry == 3

    def test_page_without_entries_is_no_hit(self, memory: MemoryBackend, tell: Callable[..., PageRecord]) -> None:
        """A page with nothing to say, or with empty messages, is taken and not found."""
        tell(1)
        tell(2, "", "   \n")
        tell(3, "zeppelin")

        assert found(memory, "zeppelin") == [("alice", 3)]
        assert memory.heard("alice") in {0, 3}

    def test_quotes_are_never_found(self, memory: MemoryBackend, tell: Callable[..., PageRecord]) -> None:
        """An answer that quotes another page is not taken in: what it says is found where it was said."""
        tell(1, "the zeppelin lands", "noted")
        tell(2, "bring it back", "the zeppelin lands, and the quagga", quotes=[2])

        assert saying(memory, "zeppelin") == [("alice", 1)]
        assert saying(memory, "quagga") == []

    def test_heard_is_the_highest_page_or_nothing(
        self, memory: MemoryBackend, tell: Callable[..., PageRecord]
    ) -> None:
        """A memory knows up to which page it was told, per context; 0 is always right."""
        for index in (1, 2, 3):
            tell(index, f"page {index}")
        tell(7, "elsewhere", context="bob")

        assert memory.heard("alice") in {0, 3}
        assert memory.heard("bob") in {0, 7}
        assert memory.heard("carol") == 0

    def test_k_bounds_the_pages(self, memory: MemoryBackend, tell: Callable[..., PageRecord]) -> None:
        """A search gives k pages at most, each once, best first."""
        for index in range(1, 9):
            tell(index, f"zeppelin number {index}", f"a zeppelin, zeppelin {index}")

        for k in (1, 3, 8, 50):
            pages = memory.search("zeppelin", k=k).pages
            assert len(pages) == min(k, 8)
            assert len({page.index for page in pages}) == len(pages)
            assert [page.score for page in pages] == sorted((page.score for page in pages), reverse=True)

    def test_budget_bounds_the_text(self, memory: MemoryBackend, tell: Callable[..., PageRecord]) -> None:
        """The texts of a search cost no more than its budget; a token is a character at least."""
        for index in range(1, 6):
            tell(index, "zeppelin " * (30 * index), "zeppelin too")

        for budget in (1, 20, 100, 1_000):
            pages = memory.search("zeppelin", budget=budget).pages
            assert sum(len(piece.text.split()) for page in pages for piece in page.pieces) <= budget
        assert memory.search("zeppelin", budget=1_000).pages

    def test_since_and_until_bound_the_time(self, memory: MemoryBackend, tell: Callable[..., PageRecord]) -> None:
        """Only pages of the time are found, both ends among them; one without a time is in no span."""
        for index in (1, 2, 3):
            tell(index, f"zeppelin {index}", at=index * DAY)
        tell(4, "zeppelin 4")

        def within(since: float | None, until: float | None) -> list[int]:
            return sorted(page.index for page in memory.search("zeppelin", k=9, since=since, until=until).pages)

        assert within(None, None) == [1, 2, 3, 4]
        assert within(2 * DAY, None) == [2, 3]
        assert within(None, 2 * DAY) == [1, 2]
        assert within(2 * DAY, 2 * DAY) == [2]
        assert within(2.5 * DAY, 2.6 * DAY) == []
        assert within(3 * DAY, 1 * DAY) == []

    def test_excluded_pages_are_not_found(self, memory: MemoryBackend, tell: Callable[..., PageRecord]) -> None:
        """What is excluded is not given, nor does it take the place of others; unknown ones are excluded, too."""
        for index in range(1, 6):
            tell(index, f"zeppelin {index}")
        tell(1, "zeppelin of another", context="bob")

        unwanted = {("alice", 1), ("alice", 2), ("alice", 99), ("nobody", 1)}
        pages = memory.search("zeppelin", k=4, exclude=unwanted).pages

        assert sorted((page.context, page.index) for page in pages) == [
            ("alice", 3), ("alice", 4), ("alice", 5), ("bob", 1)]  # fmt: skip

    def test_text_is_exact(self, memory: MemoryBackend, tell: Callable[..., PageRecord]) -> None:
        """Each piece is what its entry says from its start on, character by character."""
        texts = (
            "  Zeppelins \t are   slow.\n\n\nVery slow — “zeppelins” 🙂 " + "and then some words. " * 200 + "zeppelin",
            "齐柏林飞艇zeppelin很慢。" * 300 + "\r\nzeppelin e\u0301",
        )
        page = tell(1, *texts)
        said = {ordinal: text_of(message) for ordinal, message in page.entries}

        (hit, *_) = memory.search("zeppelin").pages

        for piece in hit.pieces:
            assert piece.text
            assert said[piece.entry][piece.start : piece.start + len(piece.text)] == piece.text

    def test_long_entry_is_found_to_its_end(self, memory: MemoryBackend, tell: Callable[..., PageRecord]) -> None:
        """What stands last in a very long message is found, and the piece that is given says it."""
        tell(1, "lorem ipsum dolor sit amet. " * 4_000 + "the quagga is last")

        assert saying(memory, "quagga") == [("alice", 1)]

    @pytest.mark.parametrize("tongue", TONGUES)
    def test_every_tongue_is_found(
        self, memory: MemoryBackend, tell: Callable[..., PageRecord], tongue: str
    ) -> None:
        """A word of any tongue finds the page that says it, first."""
        for index, (text, _) in enumerate(TONGUES.values(), 1):
            tell(index, text, "noted")

        assert found(memory, TONGUES[tongue][1])[0] == ("alice", list(TONGUES).index(tongue) + 1)

    @pytest.mark.parametrize("text", HOSTILE)
    def test_hostile_text_is_kept_as_it_is(
        self, memory: MemoryBackend, tell: Callable[..., PageRecord], text: str
    ) -> None:
        """Whatever a page says, it is taken, found by a word beside it, given exactly, and moved on like any other."""
        page = tell(1, f"{text} zeppelin {text}", text, names=[None, "tool\ud83d \x01 '\""])
        tell(2, "another one")

        (hit, *_) = memory.search("zeppelin").pages
        memory.admit(page)
        memory.upkeep(9.0)
        memory.search(text or "x")

        assert (hit.index, hit.entry) == (1, 1)
        assert f"{text} zeppelin {text}"[hit.start :].startswith(hit.text)
        assert found(memory, "another")[0] == ("alice", 2)

    @pytest.mark.parametrize("query", SYNTAX)
    def test_query_is_words_and_no_language(
        self, memory: MemoryBackend, tell: Callable[..., PageRecord], query: str
    ) -> None:
        """A query in the syntax of a search engine, or of a database, is read as words."""
        tell(1, "the zeppelin lands")
        tell(2, "the submarine dives")

        pages = found(memory, query)

        assert ("zeppelin" not in query) or pages[0] == ("alice", 1)

    @pytest.mark.parametrize("query", ["", " ", "\n", "the of and", "?!", "的", "x" * 20_000, "word " * 5_000, "🙂"])
    def test_query_that_says_nothing_is_answered(
        self, memory: MemoryBackend, tell: Callable[..., PageRecord], query: str
    ) -> None:
        """A query without a word to find, or with too many, is answered like any other."""
        tell(1, "the zeppelin lands")

        assert memory.search(query).query == query

    def test_names_that_look_alike_are_told_apart(self, memory: MemoryBackend, keep: Keep) -> None:
        """Contexts are named by whatever is a text; none is taken for another."""
        names = ("a", "A", "a ", "a%", "á", "a'b", "a\tb", "订票", "")
        for number, name in enumerate(filter(None, names), 1):
            page = told(1, f"zeppelin quokka{number}", context=name)
            keep(page)
            memory.observe(page)

        memory.erase(Scope("a"))

        for number, name in enumerate(filter(None, names), 1):
            assert saying(memory, f"quokka{number}") == ([] if name == "a" else [(name, 1)])

    def test_erased_page_is_not_found_any_more(self, memory: MemoryBackend, tell: Callable[..., PageRecord]) -> None:
        """An erased page is gone, others stay; it is counted; erasing it again is fine, and counts nothing."""
        for index in range(1, 6):
            memory.admit(tell(index, f"zeppelin quokka{index}"))

        gone = memory.erase(Scope("alice", (2, 4)))

        assert gone.pages == 2
        assert sorted(found(memory, "zeppelin")) == [("alice", 1), ("alice", 3), ("alice", 5)]
        assert saying(memory, "quokka2") == []
        assert memory.erase(Scope("alice", (2, 4, 77))).pages == 0
        assert memory.erase(Scope("nobody", (1,))).pages == 0
        assert memory.erase(Scope("alice", ())).pages == 0
        assert sorted(found(memory, "zeppelin")) == [("alice", 1), ("alice", 3), ("alice", 5)]

    def test_erased_page_can_be_told_again(self, memory: MemoryBackend, tell: Callable[..., PageRecord]) -> None:
        """A page that was erased and is told again is found again."""
        tell(1, "the zeppelin lands")
        memory.erase(Scope("alice", (1,)))

        tell(1, "the zeppelin starts")

        assert found(memory, "zeppelin") == [("alice", 1)]

    def test_erased_context_leaves_the_others(self, memory: MemoryBackend, tell: Callable[..., PageRecord]) -> None:
        """A context goes whole, as if it had never been heard of; another one stays."""
        for name in ("alice", "bob"):
            for index in (1, 2):
                memory.admit(tell(index, f"zeppelin {name} {index}", context=name))

        assert memory.erase(Scope("alice")).pages == 2

        assert sorted(found(memory, "zeppelin")) == [("bob", 1), ("bob", 2)]
        assert memory.heard("alice") == 0
        assert memory.heard("bob") in {0, 2}
        assert memory.erase(Scope("alice")).pages == 0

    def test_everything_is_erased(self, memory: MemoryBackend, tell: Callable[..., PageRecord]) -> None:
        """An empty scope is all that the owner has; the memory can be used afterwards."""
        for name in ("alice", "bob"):
            memory.admit(tell(1, f"I like zeppelins, says {name}", context=name))
        memory.upkeep(9.0)

        assert memory.erase(Scope()).pages == 2

        assert not memory.search("zeppelins")
        assert memory.heard("alice") == memory.heard("bob") == 0
        tell(2, "the zeppelin lands")
        assert found(memory, "zeppelin") == [("alice", 2)]

    def test_upkeep_loses_nothing(self, memory: MemoryBackend, tell: Callable[..., PageRecord]) -> None:
        """Whatever upkeep moves, each page is found by its own words; when nothing is due, nothing moves."""
        for index in range(1, 31):
            memory.admit(tell(index, f"topic{index % 4} quokka{index}", f"wombat{index}", at=index * 60.0))
            if index % 7 == 0:
                memory.upkeep(index * 60.0)
        memory.upkeep(9_000.0)

        assert memory.upkeep(9_000.0) == 0
        for index in range(1, 31):
            assert saying(memory, f"quokka{index}") == [("alice", index)]
            assert saying(memory, f"wombat{index}") == [("alice", index)]

    def test_owners_see_nothing_of_each_other(
        self, memory: MemoryBackend, stranger: MemoryBackend, keep: Keep
    ) -> None:
        """What one owner said is never found, heard or erased by another, also in contexts of the same name."""
        mine, theirs = told(1, "my zeppelin quokka"), told(2, "their zeppelin wombat")
        for each in (mine, theirs):
            keep(each)
        memory.admit(mine)
        stranger.admit(theirs)

        assert found(memory, "zeppelin") == found(memory, "wombat quokka") == [("alice", 1)]
        assert found(stranger, "zeppelin") == found(stranger, "wombat quokka") == [("alice", 2)]
        assert (memory.heard("alice"), stranger.heard("alice")) in {(1, 2), (0, 2), (1, 0), (0, 0)}
        stranger.erase(Scope("alice"))
        stranger.erase(Scope())
        assert found(memory, "zeppelin") == [("alice", 1)]

    def test_threads_may_use_it_at_once(self, memory: MemoryBackend, keep: Keep) -> None:
        """Six threads that tell, search, erase and look after it at once lose, mix up and repeat nothing."""
        failed: list[BaseException] = []
        pages = {
            name: [told(i, f"zeppelin {name}quokka{i}", f"{name} {i}", context=name) for i in range(1, 9)]
            for name in ("one", "two", "three", "four")
        }
        for each in (page for told_of in pages.values() for page in told_of):
            keep(each)

        def guarded(work: Callable[[], None]) -> Callable[[], None]:
            def run() -> None:
                try:
                    work()
                except BaseException as error:
                    failed.append(error)

            return run

        def write(name: str) -> None:
            for page in pages[name]:
                memory.admit(page)
                assert saying(memory, f"{name}quokka{page.index}") == [(name, page.index)]
                if page.index % 4 == 0:
                    memory.erase(Scope(name, (page.index - 1,)))

        def look() -> None:
            for i in range(12):
                memory.upkeep(float(i))
                memory.search("zeppelin", k=9)

        work = [guarded(lambda name=name: write(name)) for name in pages] + [guarded(look)] * 2  # type: ignore[misc]
        threads = [Thread(target=each) for each in work]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert failed == []
        left = sorted((name, i) for name in pages for i in (1, 2, 4, 5, 6, 8))
        assert sorted(found(memory, "zeppelin", k=99)) == left

    def test_closing_twice_is_fine(self, memory: MemoryBackend, tell: Callable[..., PageRecord]) -> None:
        """close() may be called again."""
        tell(1, "the zeppelin lands")

        memory.close()
        memory.close()

    def test_any_history_is_found_as_a_plain_dict_would(self, memory: MemoryBackend, keep: Keep) -> None:
        """Whatever is told and erased in whatever order, each page that is left is found by its word, and no other."""

        class Machine(MemoryMachine):
            backend = memory
            kept = staticmethod(keep)

        run_state_machine_as_test(Machine, settings=_STEPS)


class DurableMemoryConformance(MemoryConformance):
    """The promises of a memory that keeps what it was told after close()."""

    @pytest.fixture
    def reopen(self) -> Callable[..., MemoryBackend]:
        """Give what opens the same memory once more, beside those that are open; `owner` opens another's."""
        raise NotImplementedError("a subclass gives it")

    @pytest.fixture
    def stranger(self, memory: MemoryBackend, reopen: Callable[..., MemoryBackend]) -> Iterator[MemoryBackend]:
        """Give a memory of another owner in the same place."""
        other = reopen(owner="somebody else")
        yield other
        other.close()

    def test_reopened_memory_finds_the_same(
        self, memory: MemoryBackend, reopen: Callable[..., MemoryBackend], tell: Callable[..., PageRecord]
    ) -> None:
        """What was told is found after close() and opening again, in the same order, and counts as heard."""
        for index in range(1, 20):
            memory.admit(tell(index, f"zeppelin {index}", f"quokka{index} lives", at=index * DAY))
        memory.upkeep(30 * DAY)
        before = [_shown(page) for page in memory.search("zeppelin 7", k=9).pages]
        memory.close()

        again = reopen()

        assert [_shown(page) for page in again.search("zeppelin 7", k=9).pages] == before
        assert again.heard("alice") == 19
        again.close()

    def test_handles_see_each_other(
        self, memory: MemoryBackend, reopen: Callable[..., MemoryBackend], keep: Keep
    ) -> None:
        """What one handle was told, or erased, another one knows at its next call, and none loses the other's."""
        other = reopen()
        for index in range(1, 13):
            page = told(index, f"zeppelin quokka{index}")
            keep(page)
            (memory, other)[index % 2].admit(page)
            (memory, other)[index % 3 % 2].upkeep(float(index))
            assert found(memory, "zeppelin")
            assert len(found(other, "zeppelin")) == index

        memory.erase(Scope("alice", (5,)))
        other.erase(Scope("alice", (6,)))

        left = [("alice", index) for index in range(1, 13) if index not in {5, 6}]
        assert sorted(found(memory, "zeppelin")) == sorted(found(other, "zeppelin")) == left
        other.close()

    def test_erased_page_stays_erased(
        self, memory: MemoryBackend, reopen: Callable[..., MemoryBackend], tell: Callable[..., PageRecord]
    ) -> None:
        """What was erased is not found after close() and opening again."""
        tell(1, "the zeppelin lands")
        tell(2, "the zeppelin starts")
        memory.erase(Scope("alice", (1,)))
        memory.close()

        again = reopen()

        assert found(again, "zeppelin") == [("alice", 2)]
        again.close()


def _shown(page: FoundPage) -> tuple[object, ...]:
    return page.context, page.index, page.entry, page.start, page.text, page.role, page.turn, page.at, page.tier
