"""Folding: within the ceiling, nothing lost, oldest first, no block touched without need."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.chapters.chapter import Entry
from memci.chapters.contents import ContentsPage, ListedPage
from memci.chapters.folding import RANGE_COLUMNS, RANGE_PAGES, OverCeiling, Revision
from tests.invariants import check_contents


def quarters(text: str) -> int:
    return -(-len(text) // 4)


def weigh(message: dict) -> int:
    return 4 + quarters(message["content"])


def line(index: int, entries: int = 4, words: int = 8) -> ListedPage:
    """Return a line; its entries are those of `told`."""
    TOLD[index] = [Entry(index, at, "user", "word " * words) for at in range(1, max(entries, 1) + 1)]
    return ListedPage.of(index, f"harbour{index} crane{index}", (), quarters)


TOLD: dict[int, list[Entry]] = {}


def step(contents: ContentsPage, new: list[ListedPage], ceiling: int, order=sorted, **shares: float):
    limit = OverCeiling(ceiling, **shares)
    return Revision(
        contents,
        new,
        limit,
        entries=lambda index, room: TOLD[index],
        order=order,
        nonce="00000000",
        count=quarters,
        weigh=weigh,
    ).fold()


def grown(batches: int, size: int, ceiling: int) -> tuple[ContentsPage, list[int]]:
    contents, gone = ContentsPage(), []
    for batch in range(batches):
        contents, unloaded = step(contents, [line(batch * size + at) for at in range(1, size + 1)], ceiling)
        gone += unloaded
    return contents, gone


def test_new_lines_are_one_new_block_behind_the_older_ones():
    """Below the ceiling a compaction adds a block, and takes the entries of the one before: bytes before that stay."""
    contents = ContentsPage()
    for index in (1, 2, 3):
        before = contents
        contents, unloaded = step(contents, [line(index)], 10_000)

        assert unloaded == ()

    assert contents.blocks[0] is before.blocks[0]
    assert [bool(block.lines[0].entries) for block in contents.blocks] == [False, False, True]
    assert contents.blocks[1].message["content"] in before.blocks[1].message["content"].replace(
        "".join(f"  {each.ordinal} user: {each.summary}\n" for each in TOLD[2])[:-1] + "\n", ""
    )


def test_entries_take_what_the_lines_leave_newest_first():
    """A line of its own comes before any entry; of the newest block, the newest pages show theirs."""
    contents, unloaded = step(ContentsPage(), [line(index) for index in range(1, 9)], 220)

    shown = [bool(each.entries) for each in contents.lines.values()]

    assert len(shown) == 8
    assert not unloaded
    assert shown == sorted(shown)
    assert {True, False} == set(shown)


def test_compaction_without_new_lines_is_the_one_before():
    """Nothing new and nothing too large: nothing changes."""
    contents, _ = step(ContentsPage(), [line(1)], 10_000)

    assert step(contents, [], 10_000) == (contents, ())
    assert step(contents, [], contents.tokens) == (contents, ())


@given(
    st.lists(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 30)), min_size=1, max_size=12), max_size=8),
    st.integers(0, 1_500),
    st.booleans(),
)
def test_ceiling_holds_and_no_page_is_lost(batches, ceiling, backwards):
    """After every compaction: within the ceiling, and each page is listed once or was unloaded once."""

    def order(indexes):
        return sorted(indexes, reverse=backwards)

    contents, listed, gone, index = ContentsPage(), set(), set(), 0
    for batch in batches:
        new = []
        for entries, words in batch:
            index += 1
            new.append(line(index, entries, words))

        contents, unloaded = step(contents, new, ceiling, order)

        assert contents.tokens <= ceiling
        assert contents.tokens == sum(weigh(block.message) for block in contents.blocks)
        assert len(set(unloaded)) == len(unloaded)
        assert not gone & set(unloaded)
        gone |= set(unloaded)
        listed = set(range(1, index + 1)) - gone
        check_contents(contents, sorted(listed))


def test_folding_is_deterministic():
    """The same steps give the same bytes."""
    assert grown(12, 5, 600) == grown(12, 5, 600)


def test_lines_fold_oldest_first():
    """What is within a range is older than what has a line of its own."""
    contents, _ = grown(12, 8, 400)

    assert contents.ranges
    assert max(index for each in contents.ranges for index in each.pages) < min(contents.lines)


def test_fold_goes_down_to_its_target():
    """Once the ceiling is passed, lines fold to 85 % of it; entries may take the rest until the next compaction."""
    contents, _ = grown(3, 8, 10_000)
    full = contents.bare("00000000", weigh).tokens

    folded, _ = step(contents, [line(99)], full)

    without = folded.bare("00000000", weigh).tokens
    assert 0.6 * full < without <= 0.85 * full
    assert without <= folded.tokens <= full


def test_ranges_hold_a_bounded_number_of_pages_and_terms():
    """A range line stays short enough to read."""
    contents, _ = grown(60, 5, 2_500)

    assert contents.ranges
    assert all(len(each.pages) <= RANGE_PAGES for each in contents.ranges)
    assert all(sum(len(term) for _, term in each.terms) <= RANGE_COLUMNS for each in contents.ranges)
    assert any(each.terms for each in contents.ranges)
    assert [each.pages[0] for each in contents.ranges] == sorted(each.pages[0] for each in contents.ranges)


def test_a_term_of_a_range_that_the_user_quotes_stands_in_quotation_marks():
    """However often its range is folded anew."""
    contents, shown, told = ContentsPage(), 0, {1: "Shorten it · “zeppelin hangar”", 2: "“Ahoy” · glockenspiel"}
    for index in range(1, 40):
        TOLD[index] = [Entry(index, 1, "user", "word")]
        new = ListedPage.of(index, told.get(index, f"harbour{index} crane{index}"), (), quarters)
        contents, _ = step(contents, [new], 160, ranges=0.9)
        terms = dict(contents.blocks[0].ranges[0].terms) if contents.blocks[0].ranges else {}
        assert "zeppelin" not in terms.get(1, "") or "“zeppelin hangar”" in terms[1]
        assert "glocken" not in terms.get(2, "") or not terms[2].endswith("”")
        shown += "zeppelin" in terms.get(1, "")
    assert shown > 1


def test_a_call_with_an_empty_argument_is_a_term_of_a_range():
    """The empty text between two commas stands in no quotation marks."""
    contents, shown = ContentsPage(), set()
    for index in range(1, 40):
        TOLD[index] = [Entry(index, 1, "user", "word")]
        line = "zeppelin, , quark" if index == 1 else "harbour crane"
        contents, _ = step(contents, [ListedPage.of(index, line, (), quarters)], 160, ranges=0.9)
        shown |= {term for each in contents.ranges for _, term in each.terms}
    assert "zeppelin, , quark" in shown


def test_a_negator_alone_is_no_term_of_a_range():
    """It tells nothing where what it answers is not shown."""
    contents = ContentsPage()
    for index in range(1, 40):
        TOLD[index] = [Entry(index, 1, "user", "word")]
        new = ListedPage.of(index, "Not · and it is so" if index == 1 else f"harbour{index} crane{index}", (), quarters)
        contents, _ = step(contents, [new], 160, ranges=0.9)
        assert not contents.blocks[0].ranges or 1 not in dict(contents.blocks[0].ranges[0].terms)


def test_ranges_take_their_share_and_then_unload_in_order():
    """Range lines take 15 % of the ceiling at most; what has no place there is unloaded in the order that is asked."""
    contents, gone = grown(200, 5, 500)

    assert sum(quarters(each.told()) for each in contents.ranges) <= 0.15 * 500
    assert gone == sorted(gone), "oldest first, as `order` says"
    assert gone


def test_unloading_follows_the_order_that_is_asked():
    """Whoever is first in the order leaves first: here the newest of what has folded into ranges."""
    contents, _ = grown(20, 5, 500)
    ranged = [index for each in contents.ranges for index in each.pages]
    assert ranged

    _, unloaded = step(
        contents, [line(index) for index in range(101, 111)], 500, lambda each: sorted(each, reverse=True)
    )

    assert list(unloaded) == sorted(unloaded, reverse=True)


@pytest.mark.parametrize("room", [0, -20])
def test_ceiling_of_nothing_unloads_everything(room):
    """With no room at all, or if instructions and parts take more, nothing is listed, and every page is unloaded."""
    contents, unloaded = step(ContentsPage(), [line(1), line(2)], room)

    assert (contents.tokens, contents.listed) == (0, [])
    assert sorted(unloaded) == [1, 2]


def test_counter_whose_sums_do_not_add_up_ends_all_the_same():
    """A counter that counts a whole dearer than its parts is met by folding further, not by folding for ever."""

    def dear(message: dict) -> int:
        return 3 * quarters(message["content"])

    contents, _ = Revision(
        ContentsPage(),
        [line(index) for index in range(1, 20)],
        OverCeiling(300),
        entries=lambda index, room: TOLD[index],
        order=sorted,
        nonce="00000000",
        count=quarters,
        weigh=dear,
    ).fold()

    assert contents.tokens <= 300


def test_counter_whose_sums_do_not_add_up_costs_as_little_as_it_must():
    """Where a block costs more than its lines, a fold aims lower until it fits, and not at nothing."""
    new = [line(index) for index in range(1, 61)]

    page, _ = Revision(
        ContentsPage(),
        new,
        OverCeiling(600),
        entries=lambda index, room: TOLD[index],
        order=sorted,
        nonce="00000000",
        count=quarters,
        weigh=lambda message: 2 * weigh(message),
    ).fold()

    assert 400 < page.tokens <= 600
