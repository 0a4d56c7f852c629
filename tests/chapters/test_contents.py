"""The Contents Page as a value: what its lines tell and what each costs."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.chapters.chapter import Entry
from memci.chapters.contents import Block, ContentsPage, ListedPage, ListedRange, begun, runs
from tests.invariants import check_contents


def weigh(message: dict) -> int:
    return len(message["content"])


ENTRIES = (
    Entry(42, 1, "user", "Move my return."),
    Entry(42, 2, "assistant", "find(OI5L9G)"),
    Entry(42, 3, "tool", "9 keys"),
    Entry(42, 4, "assistant", "Done: 12 May."),
)
LINE = ListedPage.of(42, "Change of flight", ENTRIES, len)


def line(index: int) -> ListedPage:
    return ListedPage.of(index, f"title {index}", [Entry(index, 1, "user", f"said {index}")], len)


def block(*lines: ListedPage, ranges: tuple[ListedRange, ...] = ()) -> Block:
    return Block.of(lines, ranges, "00000000", weigh)


def test_line_tells_its_title_and_every_entry():
    """A full line is the page's number and title, and one indented line per entry."""
    assert LINE.told() == (
        "#42 Change of flight\n"
        "  1 user: Move my return.\n"
        "  2 assistant: find(OI5L9G)\n"
        "  3 tool: 9 keys\n"
        "  4 assistant: Done: 12 May.\n"
    )


def test_line_without_its_entries_costs_less():
    """A bare line tells what the page is about, and costs what it tells."""
    bare = LINE.bare

    assert bare.told() == "#42 Change of flight\n"
    assert [each.tokens for each in (LINE, bare)] == [len(each.told()) for each in (LINE, bare)]
    assert bare.bare is bare


def test_joined_pages_share_a_line():
    """A line names every page that it stands for; what is left of one whose own page goes is a range."""
    joined = ListedPage.of(5, "Refund", (), len, (6, 7))
    contents = ContentsPage((block(joined, line(8)),))

    assert joined.told() == "#5–#7 Refund\n"
    assert sorted(contents.listed) == [5, 6, 7, 8]
    assert contents.lines[7] is joined
    assert contents.without(frozenset({6}), "00000000", weigh).lines[7].told() == "#5, #7 Refund\n"
    rest = contents.without(frozenset({5}), "00000000", weigh)
    assert rest.ranges == (ListedRange((6, 7), ()),)
    check_contents(rest, [6, 7, 8])


@pytest.mark.parametrize(
    ("pages", "told"),
    [((12,), "#12"), ((12, 13), "#12–#13"), ((1, 2, 3, 7), "#1–#3, #7"), ((1, 3, 5), "#1, #3, #5"), ((), "")],
)
def test_runs_are_told_shortly(pages, told):
    """Numbers in a row are told by their ends."""
    assert runs(pages) == told


@given(st.sets(st.integers(1, 60)).map(sorted))
def test_runs_name_every_page(pages):
    """Whoever reads a range line knows exactly which pages it stands for."""
    named = []
    for part in runs(pages).split(", ") if pages else []:
        first, _, last = part.replace("#", "").partition("–")
        named += range(int(first), int(last or first) + 1)

    assert named == pages


def test_range_tells_numbers_and_titles():
    """A range line names its pages and some of their titles."""
    folded = ListedRange((1, 2, 3), ((1, "Oslo"), (3, "Refund")))

    assert folded.told() == "#1–#3: Oslo · Refund\n"
    assert folded.without(frozenset({3})).told() == "#1–#2: Oslo\n"
    assert ListedRange((1, 2), ()).told() == "#1–#2\n"
    assert folded.without(frozenset({9})) is folded


def test_block_is_a_framed_message_of_the_user():
    """A block is data: the user's role, a frame with the nonce, ranges before lines."""
    made = block(line(3), ranges=(ListedRange((1, 2), ()),))

    assert made.message["role"] == "user"
    assert made.message["content"] == (
        "<memci:contents 00000000>\n#1–#2\n#3 title 3\n  1 user: said 3\n</memci:contents 00000000>"
    )
    assert made.tokens == weigh(made.message)


def test_contents_page_lists_its_pages():
    """All listed pages are found, with lines of their own or within ranges."""
    contents = ContentsPage((block(line(3), ranges=(ListedRange((1, 2), ()),)), block(line(4), line(5))))

    assert sorted(contents.listed) == [1, 2, 3, 4, 5]
    assert list(contents.lines) == [3, 4, 5]
    assert contents.tokens == sum(each.tokens for each in contents.blocks)
    check_contents(contents, [1, 2, 3, 4, 5])


@pytest.mark.parametrize("archived", [[1], [1, 2, 3], [2, 1, 1]])
def test_check_finds_a_page_that_is_not_listed_once(archived):
    """Every archived page is on exactly one line, else the check says so."""
    contents = ContentsPage((block(line(1), line(2)),))

    with pytest.raises(AssertionError, match="exactly one line"):
        check_contents(contents, archived)


def test_check_finds_a_page_that_is_listed_twice():
    """A page on two lines is found."""
    contents = ContentsPage((block(line(1)), block(line(1))))

    with pytest.raises(AssertionError, match="listed twice"):
        check_contents(contents, [1])


def test_without_leaves_the_bytes_of_other_blocks():
    """Only the blocks that listed what goes are made anew; an empty one goes."""
    contents = ContentsPage((block(line(1)), block(line(2), line(3)), block(ranges=(ListedRange((4, 5), ()),))))

    rest = contents.without(frozenset({1, 3, 4}), "00000000", weigh)

    assert sorted(rest.listed) == [2, 5]
    assert len(rest.blocks) == 2
    assert contents.without(frozenset({99}), "00000000", weigh) == contents
    kept = contents.without(frozenset({1}), "00000000", weigh)
    assert all(new is old for new, old in zip(kept.blocks, contents.blocks[1:], strict=True))


def test_range_tells_the_days_of_the_pages_that_it_has_left():
    """Where pages leave it, their days do, too; a page without a day tells none."""
    early, late = date(2023, 7, 16), date(2023, 8, 11)
    whole = ListedRange((1, 2, 3, 4), (), begun((1, 2, 3, 4), {1: early, 2: early, 4: late}))

    assert whole.told() == "#1–#4 (16 Jul 2023–11 Aug)\n"
    assert whole.without(frozenset({1})).told() == "#2–#4 (16 Jul 2023–11 Aug)\n"
    assert whole.without(frozenset({1, 2})).told() == "#3–#4 (11 Aug 2023)\n"
    assert whole.without(frozenset({1, 2, 4})).told() == "#3\n"
