"""What must hold of the structures of a window and of a memory after every step: `check` asserts it."""

from functools import singledispatch

from memci.chapters.active import ActiveChapter
from memci.chapters.chapter import Chapter, Page
from memci.chapters.contents import ArchiveChapter, check_order
from memci.chapters.messagelist import MessageList
from memci.memory.tiers.graph import FAN, Graph, _strength
from memci.messages import tool_calls
from memci.segments.common import CommonSegment
from memci.window.window import Window


@singledispatch
def check(value):
    """Assert what must hold of *value*, and of all that it consists of. O(all of it)."""
    raise TypeError(f"nothing is known of {type(value).__name__}")


@check.register
def _(window: Window):
    check(window.common)
    assert set(window.rows) == {page.index for page in window.active}, "every active page has its row"
    opened, head = window.active.open, window.record.head
    assert window.record.open_page == (None if opened is None else opened.index), "the record names the open page"
    for page in window.active:
        seqs = [seq for span in window.rows[page.index].shown(head) for seq in range(*span)]
        assert [node.seq for node in page] == seqs, "a page shows the entries that its row says"
        away = {seq for span in window.rows[page.index].spans(head) for seq in range(*span)} - set(seqs)
        parts = [each for each in window.contents.parts if each.page == page.index]
        listed = [page.base + ordinal - 1 for each in parts for ordinal in range(each.first, each.last + 1)]
        assert len(set(listed)) == len(listed), "no entry is on two lines"
        assert set(listed).isdisjoint(seqs), "what is listed has left the window"
        assert page is not opened or away <= set(listed), "what left the open page is listed"
    assert all(each.page in window.rows for each in window.contents.parts), "parts are of pages that are shown"


@check.register
def _(segment: CommonSegment):
    check(segment.archive)
    check(segment.active)
    assert not any(page.index in segment.archive.rows for page in segment.active), "a page is in one place"
    for node in segment.active.messages:
        if tool_calls(node.message):
            assert node.group is not None, "every call is in its group"


@check.register
def _(chapter: Chapter):
    check(chapter.messages)
    nodes = iter(chapter.messages)
    for page in chapter:
        check(page)
        for node in page:
            assert next(nodes, None) is node, "the pages cover the list, in order"
    assert next(nodes, None) is None, "no message is outside the pages"


@check.register
def _(chapter: ActiveChapter):
    check.dispatch(Chapter)(chapter)
    drawn = list(chapter.lead_view), list(chapter.view), chapter.closed_view, chapter.alone
    chapter._redraw()
    again = chapter.lead_view, chapter.view, chapter.closed_view, chapter.alone
    assert drawn == again, "the kept rendering equals a new one"
    assert chapter.open is None or list(chapter)[-1] is chapter.open, "the open page is the last one"


@check.register
def _(chapter: ArchiveChapter):
    check.dispatch(Chapter)(chapter)
    check_contents(chapter.contents, chapter.rows)
    assert chapter.messages.tokens == chapter.contents.tokens, "the list costs what the Contents Page costs"


def check_contents(contents, archived):
    """Assert what must hold of a Contents Page of the pages *archived*."""
    listed = contents.listed
    assert len(set(listed)) == len(listed), "no page is listed twice"
    assert sorted(listed) == sorted(archived), "every archived page is on exactly one line"
    check_order([(each.lines or each.ranges, each.told, each.instructions, each.parts) for each in contents.blocks])


@check.register
def _(page: Page):
    assert (page.head is None) == (page.tail is None), "a page has both ends or none"
    nodes = list(page)
    assert not nodes or nodes[-1] is page.tail, "the tail is reached from the head"
    seqs = [node.seq for node in nodes]
    assert seqs == sorted(set(seqs)), "the messages of a page are in the order of appending"
    assert all(seq >= page.base for seq in seqs), "ordinals count from 1"


@check.register
def _(messages: MessageList):
    length = tokens = 0
    node = messages.end
    while True:
        assert node.next.prev is node, "links mirror each other"
        node = node.next
        if node is messages.end:
            break
        assert node.owner is messages, "every node refers to its list"
        length += 1
        tokens += node.tokens
        assert length <= len(messages), "the walk ends at the sentinel"
    assert length == len(messages), "the length equals the walk"
    assert tokens == messages.tokens, "the token sum equals the walk"


@check.register
def _(graph: Graph):
    for key, node in graph._nodes.items():
        own = [edge for edge in graph._edges.values() if key in (edge.source, edge.target)]
        assert node.edges == own, "a concept has its relations"
        assert all(edge.weight == sum(edge.pages.values()) > 0 for edge in own), "a weight counts statements"
        assert node.weight == sum(edge.weight for edge in own), "the weight of a concept counts them all"
        assert graph.relations(key, FAN) == sorted(own, key=_strength)[:FAN], "the strongest are kept"
