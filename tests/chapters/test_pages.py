"""Pages as views on a list."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.chapters.chapter import Chapter, Entry, Page
from memci.chapters.messagelist import MessageList, MessageNode
from tests.invariants import check


def node(seq: int, role: str = "user", tokens: int = 1) -> MessageNode:
    return MessageNode({"role": role, "content": str(seq)}, tokens, seq=seq)


def test_page_without_messages_is_empty():
    """A page without messages has no length, no cost, no entries."""
    page = Page(7, base=3)

    assert (len(page), page.tokens, list(page), list(page.entries())) == (0, 0, [], [])
    assert repr(page) == "<Page #7 of 0>"


@given(st.lists(st.integers(1, 6), min_size=1, max_size=6))
def test_page_holds_its_own_run_only(sizes):
    """However many pages share a list, each walks from its head to its tail and never into the next."""
    chapter, seq = Chapter(), 0
    for index, size in enumerate(sizes, 1):
        page = chapter.open_page(index, seq)
        for _ in range(size):
            chapter.extend(page, node(seq, tokens=seq + 1))
            seq += 1

    pages = list(chapter)

    assert [len(page) for page in pages] == sizes
    assert [each.seq for page in pages for each in page] == list(range(seq))
    assert sum(page.tokens for page in pages) == chapter.messages.tokens


def test_entries_count_the_messages_of_the_interaction_from_one():
    """An entry is named by page and ordinal; it has its role."""
    chapter = Chapter()
    page = chapter.open_page(4, base=10)
    nodes = [node(10), node(11, "assistant"), node(12, "tool")]
    for each in nodes:
        chapter.extend(page, each)

    entries = list(page.entries())

    assert entries == [Entry(4, 1, "user"), Entry(4, 2, "assistant"), Entry(4, 3, "tool")]


def test_ordinals_stay_where_a_long_page_was_split():
    """The part that was cut out and the part that stayed keep the numbers that they had."""
    chapter = Chapter()
    page = chapter.open_page(1, base=0)
    nodes = [node(seq) for seq in range(6)]
    for each in nodes:
        chapter.extend(page, each)

    chapter.cut(page, nodes[1], nodes[3])

    aside = Chapter()
    part = aside.open_page(2, base=0)
    for seq in (1, 2, 3):
        aside.extend(part, node(seq))

    assert [entry.ordinal for entry in page.entries()] == [1, 5, 6]
    assert list(part.entries()) == [Entry(2, 2, "user"), Entry(2, 3, "user"), Entry(2, 4, "user")]


def test_check_finds_a_page_whose_messages_are_out_of_order():
    """A page whose messages do not stand in the order in which they came fails its check."""
    messages = MessageList()
    first, second = MessageNode({"role": "user"}, 1, seq=1), MessageNode({"role": "assistant"}, 1, seq=0)
    messages.append(first)
    messages.append(second)
    page = Page(1, 0)
    page.head, page.tail = first, second

    with pytest.raises(AssertionError, match="order"):
        check(page)
