"""Chapters: pages that tile one list, wherever one leaves."""

import subprocess
import sys
from operator import attrgetter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from memci.chapters.chapter import Chapter, Entry
from memci.chapters.contents import ArchiveChapter, Block, ContentsPage, ListedPage
from memci.chapters.messagelist import MessageNode
from memci.chapters.system import SystemChapter, notice
from memci.rows import PageRow, PageState
from tests.invariants import check


def node(seq: int, tokens: int = 1) -> MessageNode:
    return MessageNode({"role": "user", "content": str(seq)}, tokens, seq=seq)


def filled(*sizes: int) -> Chapter:
    chapter, seq = Chapter(), 0
    for index, size in enumerate(sizes, 1):
        page = chapter.open_page(index, seq)
        for _ in range(size):
            chapter.extend(page, node(seq))
            seq += 1
    return chapter


def seqs(chapter: Chapter) -> dict[int, list[int]]:
    return {page.index: [each.seq for each in page] for page in chapter}


class AgainstAPlainDict(RuleBasedStateMachine):
    """Pages come at the end and leave from anywhere; a dict of lists does the same."""

    def __init__(self) -> None:
        super().__init__()
        self.chapter = Chapter()
        self.model: dict[int, list[int]] = {}
        self.seq = self.index = 0
        self.away = []

    @rule()
    def open_page(self) -> None:
        self.index += 1
        self.chapter.open_page(self.index, self.seq)
        self.model[self.index] = []

    @precondition(lambda self: self.model)
    @rule(size=st.integers(1, 4))
    def extend_the_last(self, size: int) -> None:
        index = list(self.model)[-1]
        for _ in range(size):
            self.chapter.extend(self.chapter.page(index), node(self.seq, self.seq % 7))
            self.model[index].append(self.seq)
            self.seq += 1

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def detach(self, data: st.DataObject) -> None:
        index = data.draw(st.sampled_from(list(self.model)))
        page = self.chapter.page(index)
        assert page.detach()
        assert not page.detach()
        assert [each.seq for each in page] == self.model.pop(index)
        assert index not in self.chapter
        self.away.append(page)

    @precondition(lambda self: self.away)
    @rule(data=st.data())
    def add(self, data: st.DataObject) -> None:
        page = self.away.pop(data.draw(st.integers(0, len(self.away) - 1)))
        run = [each.seq for each in page]
        if run and any(other and other[0] <= run[-1] and run[0] <= other[-1] for other in self.model.values()):
            with pytest.raises(ValueError, match="overlap"):
                self.chapter.add(page)
            return
        self.chapter.add(page)
        self.model = {each.index: self.model.get(each.index, [*map(attrgetter("seq"), page)]) for each in self.chapter}

    @precondition(lambda self: len(self.model) > 1)
    @rule(data=st.data(), seq=st.integers(0, 40))
    def extend_any(self, data: st.DataObject, seq: int) -> None:
        """A message joins any page, if it belongs there; else it is refused, and nothing has changed."""
        index = data.draw(st.sampled_from(list(self.model)))
        page, each = self.chapter.page(index), node(seq)
        then = [one for other, run in self.model.items() for one in (*run, *([seq] if other == index else []))]
        if page.base <= seq and then == sorted(set(then)):
            self.chapter.extend(page, each)
            self.model[index].append(seq)
            self.seq = max(self.seq, seq + 1)
        else:
            with pytest.raises(ValueError, match="does not belong"):
                self.chapter.extend(page, each)
            assert each.owner is None

    @precondition(lambda self: any(self.model.values()))
    @rule(data=st.data())
    def cut(self, data: st.DataObject) -> None:
        index = data.draw(st.sampled_from([index for index, run in self.model.items() if run]))
        run = self.model[index]
        first = data.draw(st.integers(0, len(run) - 1))
        last = data.draw(st.integers(first, len(run) - 1))
        page = self.chapter.page(index)
        nodes = list(page)
        self.chapter.cut(page, nodes[first], nodes[last])
        del run[first : last + 1]

    @invariant()
    def tiles_the_list(self) -> None:
        check(self.chapter)
        assert seqs(self.chapter) == self.model
        listed = [each.seq for each in self.chapter.messages]
        assert listed == [seq for run in self.model.values() for seq in run] == sorted(listed)
        assert len(self.chapter) == len(self.model)


TestAgainstAPlainDict = AgainstAPlainDict.TestCase
TestAgainstAPlainDict.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


def test_page_comes_back_where_its_messages_belong():
    """Whatever order pages come back in, and into which chapter."""
    chapter = filled(2, 3, 2, 1)
    pages = [chapter.page(index) for index in (2, 4, 1)]
    for page in pages:
        page.detach()

    for page in pages:
        chapter.add(page)

    assert seqs(chapter) == {1: [0, 1], 2: [2, 3, 4], 3: [5, 6], 4: [7]}
    check(chapter)


def overlapping(start: int, size: int, index: int = 9):
    aside = Chapter()
    page = aside.open_page(index, start)
    for seq in range(start, start + size):
        aside.extend(page, node(seq))
    return aside.detach(index)


@pytest.mark.parametrize(("start", "size"), [(0, 1), (1, 2), (3, 1), (0, 9), (5, 1)])
def test_page_that_overlaps_another_is_refused(start, size):
    chapter, page = filled(2, 3, 2), overlapping(start, size)
    chapter.detach(3)
    chapter.add(overlapping(5, 2, index=3))

    with pytest.raises(ValueError, match="overlap"):
        chapter.add(page)

    assert seqs(chapter) == {1: [0, 1], 2: [2, 3, 4], 3: [5, 6]}
    assert page.chapter is None
    check(chapter)


def test_add_of_a_page_that_is_in_a_chapter_is_refused():
    chapter, other = filled(2), filled(1, 1)

    with pytest.raises(ValueError, match="in a chapter already"):
        chapter.add(other.page(2))
    with pytest.raises(ValueError, match="in a chapter already"):
        chapter.add(overlapping(7, 1, index=1))

    assert (seqs(chapter), seqs(other)) == ({1: [0, 1]}, {1: [0], 2: [1]})


def test_extend_refuses_what_would_mix_two_pages():
    """A message of another place, one that is in a list, and a page of another chapter; nothing has changed then."""
    chapter, other = filled(2, 2), filled(1)
    first = chapter.page(1)

    for page, each in ((first, node(9)), (first, node(1)), (other.page(1), node(7)), (chapter.page(2), first.head)):
        with pytest.raises(ValueError, match=r"does not belong|not in this chapter|in a list"):
            chapter.extend(page, each)

    assert seqs(chapter) == {1: [0, 1], 2: [2, 3]}
    check(chapter)
    check(other)


def test_run_of_another_page_is_not_cut():
    chapter = filled(2, 2)

    with pytest.raises(ValueError, match="is not a run of"):
        chapter.cut(chapter.page(1), chapter.page(1).head, chapter.page(2).tail)

    assert seqs(chapter) == {1: [0, 1], 2: [2, 3]}
    check(chapter)


def test_wrong_calls_are_refused_without_assertions_too():
    """`python -O` removes assertions, and no check of the structures."""
    code = """
from memci.chapters import Chapter, MessageList, MessageNode
chapter, one = Chapter(), MessageNode({"role": "user", "content": "a"}, 1)
page = chapter.open_page(1, 0)
chapter.extend(page, one)
for wrong in (lambda: chapter.extend(page, one), lambda: MessageList().append(one), lambda: chapter.open_page(1, 0),
              lambda: chapter.add(page), lambda: MessageList().reweigh(one, 2)):
    try:
        wrong()
    except ValueError:
        continue
    raise SystemExit("nothing was refused")
"""
    assert subprocess.run([sys.executable, "-O", "-c", code], check=False).returncode == 0


def test_detach_takes_the_whole_run_and_nothing_else():
    """A page that leaves takes all of its messages along; the pages beside it keep theirs."""
    chapter = filled(2, 3, 2)

    page = chapter.detach(2)

    assert [each.seq for each in page] == [2, 3, 4]
    assert seqs(chapter) == {1: [0, 1], 3: [5, 6]}
    assert chapter.page(2) is None
    check(chapter)


def test_detach_of_a_page_that_is_not_there_changes_nothing():
    """A page can't leave twice."""
    chapter = filled(1, 1)
    chapter.detach(1)

    with pytest.raises(KeyError):
        chapter.detach(1)

    assert seqs(chapter) == {2: [1]}
    check(chapter)


def test_open_page_with_an_index_that_is_taken_is_refused():
    """An index is given out once."""
    chapter = filled(1)

    with pytest.raises(ValueError, match="in this chapter already"):
        chapter.open_page(1, 5)


def test_check_finds_a_message_outside_the_pages():
    """A message that no page holds breaks the tiling, and the check says so."""
    chapter = filled(2)
    chapter.messages.append(node(9))

    with pytest.raises(AssertionError, match="outside the pages"):
        check(chapter)


@pytest.mark.parametrize(("first", "last", "left"), [(0, 1, [2, 3]), (1, 2, [0, 3]), (2, 3, [0, 1]), (0, 3, [])])
def test_cut_moves_the_ends_of_its_page(first, last, left):
    """Wherever a run is cut out of a page, its head and tail are the first and last that stay."""
    chapter = filled(4)
    page = chapter.page(1)
    nodes = list(page)

    chapter.cut(page, nodes[first], nodes[last])

    assert [each.seq for each in page] == left
    assert (page.head and page.head.seq, page.tail and page.tail.seq) == ((left[0], left[-1]) if left else (None, None))
    check(chapter)


def weigh(message: dict) -> int:
    return len(message["content"])


NOTICE = notice(searchable=False)


def test_system_chapter_is_one_message_with_prompt_and_notice():
    """The developer's prompt comes first, the notice after it, in one system message that is weighed."""
    chapter = SystemChapter("Be kind.", notice=NOTICE, weigh=weigh)

    [only] = chapter.messages

    assert only.message == {"role": "system", "content": f"Be kind.\n\n{NOTICE}"}
    assert chapter.messages.tokens == len("Be kind.\n\n") + len(NOTICE)


@pytest.mark.parametrize(
    ("prompt", "told", "shown"),
    [
        (None, False, []),
        ("", False, []),
        ("A", False, ["A"]),
        (None, True, [NOTICE]),
        ("", True, [NOTICE]),
    ],
)
def test_system_chapter_shows_what_there_is(prompt, told, shown):
    """Without prompt and notice there is no system message at all."""
    chapter = SystemChapter(prompt, notice=NOTICE if told else None, weigh=weigh)

    assert [each.message["content"] for each in chapter.messages] == shown


def test_archive_chapter_shows_an_compaction_as_its_list():
    """Each block is one node; another compaction takes the place of the one before."""
    chapter = ArchiveChapter()
    for indexes in ((1, 2), (1, 2, 3), ()):
        blocks = [
            Block.of([ListedPage.of(index, "t", [Entry(index, 1, "user", "s")], len)], (), "00000000", weigh)
            for index in indexes
        ]
        contents = ContentsPage(tuple(blocks))

        chapter.show(contents, {index: PageRow(index, 0, 1, 0, PageState.ARCHIVED) for index in indexes})

        assert [each.view for each in chapter.messages] == [block.message for block in blocks]
        assert chapter.messages.tokens == contents.tokens
        check(chapter)
