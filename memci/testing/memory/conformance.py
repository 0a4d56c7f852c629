r"""Tests of the promises of a memory backend, for inheritance.

    class TestMyMemory(DurableMemoryConformance):
        @pytest.fixture
        def reopen(self, tmp_path):
            return lambda owner="anna": MyMemory(tmp_path / "memory", owner=owner)

        @pytest.fixture
        def memory(self, reopen):
            return reopen()

The suite has two parts. `MemoryContract` is what a context relies on: nothing is lost, mixed up, or found after it was
erased. `MemoryQuality` is what a good search finds: calls of tools, any language, rare words, other forms of a word.
`MemoryConformance` is both. The tests of a memory that is lost after close() inherit one of these and define only
`memory`; of one that lasts, `DurableMemoryContract` or `DurableMemoryConformance`. They may also define `stranger`, a
memory of another owner in the same place, and `keep`, for a memory that reads the text of a page from the store.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from ...memory.backend import FoundPage, MemoryBackend, PageRecord, Scope
from ...messages import text_of
from .machine import MemoryMachine
from .pages import DAY, Keep, Tell, found, saying, told

Reopen = Callable[..., MemoryBackend]  # Opens the same memory again, beside open ones; `owner` selects another owner.

_STEPS = settings(
    max_examples=8,
    stateful_step_count=25,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],
)

_TEXTS = tomllib.loads(Path(__file__).with_name("texts.toml").read_text("utf-8"))
HOSTILE: Sequence[str] = (*_TEXTS["hostile"], "x" * 20_000, "word " * 5_000)
"""texts and queries that a careless program interprets, cuts or can't store"""
LANGUAGES: Mapping[str, Sequence[str]] = _TEXTS["languages"]
"""a text, and a word that must find it"""


class _Fixtures:
    """What both parts need."""

    @pytest.fixture
    def memory(self) -> Any:
        """Return an empty memory."""
        raise NotImplementedError("define `memory` in a subclass")

    @pytest.fixture
    def stranger(self) -> MemoryBackend:
        """Return a memory of another owner in the same place."""
        pytest.skip("the subclass has no memory of another owner")

    @pytest.fixture
    def keep(self) -> Keep:
        """Return a function that stores a page where the memory reads its text."""
        return lambda _: None

    @pytest.fixture
    def tell(self, memory: MemoryBackend, keep: Keep) -> Tell:
        """Return a function that stores a page and has the memory observe it."""

        def telling(*arguments: object, **more: object) -> PageRecord:
            page = told(*arguments, **more)  # type: ignore[arg-type]
            keep(page)
            memory.observe(page)
            return page

        return telling


class MemoryContract(_Fixtures):
    """The promises of `memci.memory.backend.MemoryBackend`, on which a context relies."""

    def test_empty_memory_finds_nothing(self, memory: MemoryBackend) -> None:
        """An empty memory finds, acknowledges and erases nothing, and may be closed twice."""
        assert isinstance(memory, MemoryBackend)
        assert memory.search("zeppelin").pages == ()
        assert memory.search("zeppelin").query == "zeppelin"
        assert memory.acknowledged("alice") == 0
        assert memory.maintain(1.0) == 0
        for scope in (Scope(), Scope("alice"), Scope("alice", (1,))):
            assert memory.erase(scope).pages == 0
        memory.close()
        memory.close()

    @pytest.mark.parametrize(
        "query",
        ["oslo", "When did I move to Oslo?", "List all cities that I moved to, in order.", "What did I say last?"],
    )
    def test_emptied_memory_finds_nothing(self, memory: MemoryBackend, tell: Tell, query: str) -> None:
        """Whatever is asked, nothing is left of an owner whose pages are erased."""
        tell(1, "I moved to Oslo.", "Noted.")
        memory.erase(Scope("alice"))
        for budget in (None, 400):
            assert memory.search(query, budget=budget).pages == ()

    def test_page_without_entries_is_no_hit(self, memory: MemoryBackend, tell: Tell) -> None:
        """A page without messages, or with empty ones, is accepted and not found."""
        tell(1)
        tell(2, "", "   \n")
        tell(3, "zeppelin")

        assert found(memory, "zeppelin") == [("alice", 3)]
        assert memory.acknowledged("alice") in {0, 3}

    def test_quotes_are_never_found(self, memory: MemoryBackend, tell: Tell) -> None:
        """A message that quotes another page is not found: the other page is."""
        tell(1, "the zeppelin lands", "noted")
        tell(2, "bring it back", "the zeppelin lands, and the quagga", quotes=[2])

        assert saying(memory, "zeppelin") == [("alice", 1)]
        assert saying(memory, "quagga") == []

    def test_maintenance_loses_nothing(self, memory: MemoryBackend, tell: Tell) -> None:
        """After any maintenance, each page is found by its own words. If nothing is due, nothing moves."""
        for index in range(1, 31):
            memory.admit(tell(index, f"topic{index % 4} quokka{index:02}", f"wombat{index:02}", at=index * 60.0))
            if index % 7 == 0:
                memory.maintain(index * 60.0)
        memory.maintain(9_000.0)

        assert memory.maintain(9_000.0) == 0
        for index in range(1, 31):
            assert saying(memory, f"quokka{index:02}") == [("alice", index)]
            assert saying(memory, f"wombat{index:02}") == [("alice", index)]

    def test_owners_see_nothing_of_each_other(self, memory: MemoryBackend, stranger: MemoryBackend, keep: Keep) -> None:
        """An owner never finds, acknowledges or erases pages of another, even in contexts of the same name."""
        mine, theirs = told(1, "my zeppelin quokka"), told(2, "their zeppelin wombat")
        for each in (mine, theirs):
            keep(each)
        memory.admit(mine)
        stranger.admit(theirs)

        assert found(memory, "zeppelin") == found(memory, "wombat quokka") == [("alice", 1)]
        assert found(stranger, "zeppelin") == found(stranger, "wombat quokka") == [("alice", 2)]
        assert (memory.acknowledged("alice"), stranger.acknowledged("alice")) in {(1, 2), (0, 2), (1, 0), (0, 0)}
        stranger.erase(Scope("alice"))
        stranger.erase(Scope())
        assert found(memory, "zeppelin") == [("alice", 1)]

    def test_budget_bounds_the_text(self, memory: MemoryBackend, tell: Tell) -> None:
        """The texts of a search cost no more than its budget; a token has at least one character."""
        for index in range(1, 6):
            tell(index, "zeppelin " * (30 * index), "zeppelin too")

        for budget in (1, 20, 100, 1_000):
            pages = memory.search("zeppelin", budget=budget).pages
            assert sum(len(piece.text.split()) for page in pages for piece in page.pieces) <= budget
        assert memory.search("zeppelin", budget=1_000).pages

    def test_search_is_bounded(self, memory: MemoryBackend, tell: Tell) -> None:
        """At most k messages of the time are found, both ends among them, best first, in no place of one excluded."""
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
            ({"k": 9, "exclude": unwanted}, [1, 3, 4, 5, 6]),
        ):
            pages = memory.search("zeppelin", **bounds).pages
            assert sorted(index for _, index in {(page.context, page.index) for page in pages}) == expected, bounds
        shown = {("alice", 2, 1), ("alice", 3, 1), ("alice", 3, 2), ("alice", 99, 1)}
        pages = memory.search("zeppelin", k=50, exclude=shown).pages
        found = {(page.context, page.index, page.entry) for page in pages}
        assert ("alice", 2, 2) in found
        assert not found & shown, "messages are left out one by one"
        for k in (1, 3, 7):
            pages = memory.search("zeppelin", k=k).pages
            assert len({(page.context, page.index, page.entry) for page in pages}) == len(pages) == k
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

    @pytest.mark.parametrize("text", HOSTILE)
    def test_hostile_text_is_kept_as_it_is(self, memory: MemoryBackend, tell: Tell, text: str) -> None:
        """Texts, names and queries are plain words in any syntax, and texts stay exact."""
        page = tell(1, f"{text} zeppelin {text}", text, names=[text, text])
        tell(2, "another one")

        (hit, *_) = memory.search("zeppelin").pages
        asked = memory.search(f"zeppelin {text}")
        memory.admit(page)
        memory.maintain(9.0)

        assert (hit.index, hit.entry, hit.speaker) == (1, 1, text)
        assert f"{text} zeppelin {text}"[hit.start :].startswith(hit.text)
        assert (asked.query, asked.pages[0].index) == (f"zeppelin {text}", 1)
        assert memory.search(text).query == text
        assert found(memory, "another")[0] == ("alice", 2)

    def test_names_that_look_alike_are_told_apart(self, memory: MemoryBackend, tell: Tell) -> None:
        """Any text is a name of a context, and no two names are confused."""
        names = ("a", "A", "a ", "a%", "á", "a'b", "a\tb", "订票")
        for number, name in enumerate(names, 1):
            tell(1, f"zeppelin quokka{number}", context=name)

        memory.erase(Scope("a"))

        for number, name in enumerate(names, 1):
            assert saying(memory, f"quokka{number}") == ([] if name == "a" else [(name, 1)])

    def test_threads_may_use_it_at_once(self, memory: MemoryBackend, keep: Keep) -> None:
        """Six threads that feed, search, erase and maintain at once lose, confuse and repeat nothing."""
        names = ("one", "two", "three", "four")
        pages = {
            name: [told(i, f"zeppelin {name}quokka{i}", f"{name} {i}", context=name) for i in range(1, 9)]
            for name in names
        }
        for each in chain.from_iterable(pages.values()):
            keep(each)

        def write(name: str) -> None:
            for page in pages[name]:
                memory.admit(page)
                assert saying(memory, f"{name}quokka{page.index}") == [(name, page.index)]
                if page.index % 4 == 0:
                    memory.erase(Scope(name, (page.index - 1,)))

        def look() -> None:
            for i in range(12):
                memory.maintain(float(i))
                memory.search("zeppelin", k=9)

        with ThreadPoolExecutor(6) as pool:
            working = [*(pool.submit(write, name) for name in names), pool.submit(look), pool.submit(look)]
        for done in working:
            done.result()

        left = sorted((name, i) for name in names for i in (1, 2, 4, 5, 6, 8))
        assert sorted(found(memory, "zeppelin", k=99)) == left

    def test_any_history_is_found_as_a_plain_dict_would(self, memory: MemoryBackend, keep: Keep) -> None:
        """After pages are fed and erased in any order, each remaining page is found by its word, and no other."""

        class Machine(MemoryMachine):
            backend = memory
            kept = staticmethod(keep)

        run_state_machine_as_test(Machine, settings=_STEPS)


class MemoryQuality(_Fixtures):
    """What a good search finds, beyond the contract."""

    def test_call_and_its_result_are_found(self, memory: MemoryBackend, keep: Keep) -> None:
        """The arguments of a tool call and the answer of the tool are found."""
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

    @pytest.mark.parametrize("language", LANGUAGES)
    def test_every_language_is_found(self, memory: MemoryBackend, tell: Tell, language: str) -> None:
        """A word of any language finds the page that says it, first."""
        for index, (text, _) in enumerate(LANGUAGES.values(), 1):
            tell(index, text, "noted")

        assert found(memory, LANGUAGES[language][1])[0] == ("alice", list(LANGUAGES).index(language) + 1)

    def test_rare_word_counts_more_than_common_ones(self, memory: MemoryBackend, tell: Tell) -> None:
        """Among pages with the other words of a question, the page with its rare word comes first."""
        for index in range(1, 16):
            tell(index, f"Where did you put the tea number {index}?", "I put it where you put the cups.")
        tell(16, "The spare key is under the blue pot.", "Noted.")

        assert found(memory, "Where did I put the spare key?")[0] == ("alice", 16)

    def test_other_forms_of_a_word_are_found(self, memory: MemoryBackend, tell: Tell) -> None:
        """A plural, and other forms of a verb."""
        tell(1, "We adopted two kittens.", "How sweet.")
        tell(2, "The roof leaks again.", "Call the roofer.")

        assert found(memory, "Which kitten did they adopt?")[0] == ("alice", 1)


class MemoryConformance(MemoryContract, MemoryQuality):
    """Both parts."""


class DurableMemoryContract(MemoryContract):
    """The promises of a memory that lasts after close()."""

    @pytest.fixture
    def reopen(self) -> Reopen:
        """Return a function that opens the memory again."""
        raise NotImplementedError("define `reopen` in a subclass")

    @pytest.fixture
    def stranger(self, reopen: Reopen) -> Iterator[MemoryBackend]:
        """Return a memory of another owner in the same place."""
        other = reopen(owner="somebody else")
        yield other
        other.close()

    def test_reopened_memory_finds_the_same(self, memory: MemoryBackend, reopen: Reopen, tell: Tell) -> None:
        """After close() and reopening, the same pages are found in the same order, and erased ones are not."""
        for index in range(1, 20):
            memory.admit(tell(index, f"zeppelin {index}", f"quokka{index} lives", at=index * DAY))
        memory.maintain(30 * DAY)
        assert memory.erase(Scope("alice", (2, 7))).pages == 2
        before = [_shown(page) for page in memory.search("zeppelin 7", k=9).pages]
        memory.close()

        again = reopen()

        assert [_shown(page) for page in again.search("zeppelin 7", k=9).pages] == before
        assert again.acknowledged("alice") == 19
        assert saying(again, "quokka2") == saying(again, "quokka7") == []
        again.close()

    def test_handles_see_each_other(self, memory: MemoryBackend, reopen: Reopen, keep: Keep) -> None:
        """A handle sees at its next call what another handle fed or erased, and none loses the changes of another."""
        other = reopen()
        for index in range(1, 13):
            page = told(index, f"zeppelin quokka{index}")
            keep(page)
            (memory, other)[index % 2].admit(page)
            (memory, other)[index % 3 % 2].maintain(float(index))
            assert found(memory, "zeppelin")
            assert len(found(other, "zeppelin")) == index

        memory.erase(Scope("alice", (5,)))
        other.erase(Scope("alice", (6,)))

        left = [("alice", index) for index in range(1, 13) if index not in {5, 6}]
        assert sorted(found(memory, "zeppelin")) == sorted(found(other, "zeppelin")) == left
        other.close()


class DurableMemoryConformance(DurableMemoryContract, MemoryQuality):
    """Both parts, of a memory that lasts after close()."""


def _shown(page: FoundPage) -> tuple[object, ...]:
    return page.context, page.index, page.entry, page.start, page.text, page.role, page.turn, page.at, page.tier
