"""G01–G20: the linked-list design. Where the thing does not exist here, what could go wrong in the same way."""

import json
import threading

import pytest

from memci import BudgetExceeded, EphemeralStorage, InvalidMessage, SQLiteStorage, StorageError
from memci.chapters.active import ActiveChapter
from memci.chapters.chapter import Chapter
from memci.chapters.folding import OverCeiling
from memci.chapters.messagelist import MessageList, MessageNode
from memci.errors import InvalidSetting, PageNotFound
from memci.rows import PageRow, PageState
from memci.segments.clipping import clip_message
from memci.settings import settings
from memci.tokens import counter_for, message_tokens
from tests.invariants import check

from ..context.kit import calling, opened, result, talked, turn, words


def node(text: str, seq: int = 0) -> MessageNode:
    return MessageNode({"role": "user", "content": text}, 1, seq=seq)


class FailingStorage(EphemeralStorage):
    """A store that refuses to write while `broken`."""

    broken = False

    def commit(self, transition):
        if self.broken:
            raise StorageError("no space left")
        return super().commit(transition)


def test_g01_archived_pages_leave_the_message_list():
    """What is archived is detached from the list: the window shrinks."""
    context = talked(6, size=50)
    before = context.report().total

    context.archive(keep=2)

    active = context._parts.window.active
    assert len(active.messages) == 2 * 3
    assert sum("word word" in each["content"] for each in context.render() if "<memci" not in each["content"]) == 2 * 3
    assert context.report().total < before
    check(context._parts.window)


def test_g02_messages_of_closed_pages_do_not_vanish():
    """u1 a1 u2 a2 u3 a3 is rendered as u1 a1 u2 a2 u3 a3, and each page holds its own."""
    context = opened(notice=False)
    for number in (1, 2, 3):
        context.append_turn({"role": "user", "content": f"u{number}"})
        context.append_turn({"role": "assistant", "content": f"a{number}"})

    assert [each["content"] for each in context.render()] == ["u1", "a1", "u2", "a2", "u3", "a3"]
    assert [[node.message["content"] for node in page] for page in context._parts.window.active] == [
        ["u1", "a1"],
        ["u2", "a2"],
        ["u3", "a3"],
    ]


def test_g03_every_lock_that_is_taken_is_given_back():
    """A call that fails leaves the context usable, from any thread."""
    context = talked(1)
    with pytest.raises(InvalidMessage):
        context.append_turn({"role": "robot", "content": "x"})
    with pytest.raises(PageNotFound):
        context.recall_page(9)
    rendered: list[list[dict]] = []

    other = threading.Thread(target=lambda: rendered.append(context.render()))
    other.start()
    other.join(timeout=10)

    assert rendered == [context.render()]


def test_g04_page_is_archived_under_the_index_that_it_was_given():
    """Page 1 is #1 in the window, in the archive and for recall."""
    context = talked(6)
    given = {page.index: context.recall_page(page.index) for page in context.pages()}

    context.archive(keep=0)

    assert {page.index: context.recall_page(page.index) for page in context.pages()} == given
    assert given[1] == list(turn(1))
    assert "\n#1 1 word" in context.render()[1]["content"]


def test_g05_tool_calls_survive_every_way():
    """Calls, ids and arguments are the same in the window, after archiving, after a restart and by recall."""
    storage = EphemeralStorage()
    context = opened(storage)
    messages = [{"role": "user", "content": "go"}, calling("a", "b"), result("a"), result("b")]
    context.append_turn(*messages)
    assert context.render()[1:] == messages
    assert opened(storage).render()[1:] == messages

    context.append_turn("next")
    context.archive(keep=0)

    assert json.dumps(opened(storage).recall_page(1)) == json.dumps(messages)
    assert json.dumps(list(context.messages())[:4]) == json.dumps(messages)


def test_g06_entries_keep_their_identity():
    """The handles of a receipt name the same messages when the page is archived."""
    context = opened()
    receipt = context.append_turn(*turn(1))
    context.append_turn("next")

    context.archive(keep=0)

    line = context._parts.window.common.archive.contents.lines[1]
    shown = [(each.page, each.ordinal, each.role) for each in line.entries]
    assert shown
    assert set(shown) <= {(each.page, each.ordinal, each.role) for each in receipt.entries}
    assert [context.recall_page(each.page, each.ordinal) for each in receipt.entries] == [[each] for each in turn(1)]


def test_g07_append_after_the_last_page_was_detached_is_not_lost():
    """Detach the last page, append another: the list holds it, and its length is the walk."""
    chapter = Chapter()
    for index in (1, 2):
        chapter.extend(chapter.open_page(index, index), node(f"page {index}", index))
    chapter.detach(2)

    chapter.extend(chapter.open_page(3, 3), node("page 3", 3))

    assert [each.message["content"] for each in chapter.messages] == ["page 1", "page 3"]
    assert len(chapter.messages) == 2
    assert len(chapter) == 2
    check(chapter)


def test_g08_removed_page_is_gone_from_list_and_map():
    """Removing a page removes its messages too, and its index resolves to nothing."""
    active = ActiveChapter(nonce="00000000", interrupted=1)
    for index in (1, 2):
        active.open_page(index, index)
        active.append(node(f"page {index}", index))

    active.remove([1])

    assert 1 not in active
    assert active.page(1) is None
    assert [each.message["content"] for each in active.messages] == ["page 2"]
    assert [each["content"] for each in active.view] == ["page 2"]


def test_g09_node_can_not_be_in_two_lists():
    """A second attach is refused before a link is touched."""
    one, other, shared = MessageList(), MessageList(), node("shared")
    one.append(shared)

    with pytest.raises(ValueError, match="in a list"):
        other.append(shared)
    with pytest.raises(ValueError, match="in a list"):
        one.append(shared)

    assert (list(one), list(other)) == ([shared], [])
    check(one)
    check(other)


def test_g10_recall_gives_the_content_not_a_clip():
    """The designed recall exists: every character comes back, to code and to the model."""
    text = "".join(f"{number:04d} " for number in range(150))
    context = opened()
    context.append_turn(text, {"role": "assistant", "content": "ok"}, "next")
    context.archive(keep=0)

    answer = context.answer({"id": "c", "function": {"name": "recall_page", "arguments": '{"index": 1}'}})

    assert context.recall_page(1)[0]["content"] == text
    assert json.dumps(text) in answer["content"]
    assert len(text) > 184


def test_g11_clipping_does_not_cut_characters():
    """Summaries and clips of any script are whole characters."""
    text = "数据库迁移完成👩‍👩‍👧‍👦。" * 3_000
    count = counter_for("gpt-4o")
    view = clip_message(
        {"role": "user", "content": text}, 300, page=1, ordinal=1, count=count, weigh=lambda m: message_tokens(m, count)
    )
    context = opened(counter=lambda each: len(each) // 2)
    context.append_turn(text, "next")
    context.archive(keep=0)

    for shown in (view["content"], context.render()[1]["content"]):
        assert shown.encode().decode() == shown
        assert "\ufffd" not in shown
    head, _, tail = view["content"].partition("\n[…")
    assert text.startswith(head)
    assert text.endswith(tail.split("…]\n")[1])


def test_g12_indexes_survive_a_restart(tmp_path):
    """After a restart indexes go on where they were, and no old page is overwritten."""
    for number in range(1, 4):
        with opened(tmp_path / "a.db") as context:
            assert context.append_turn(*turn(number)).page == number
            context.archive(keep=0)

    with opened(tmp_path / "a.db") as context:
        assert [context.recall_page(index) for index in (1, 2, 3)] == [list(turn(number)) for number in (1, 2, 3)]


def test_g13_ceiling_counts_what_is_rendered_and_every_rule_runs():
    """The Contents Page, frames and all, is within its ceiling at every moment, and rules m and p run as well."""
    context = opened(window=2_000, contents_tokens=150, never_recalled=30, active_pages=2)
    for number in range(60):
        context.append_turn(*turn(number, 12))
        blocks = [each for each in context.render() if each["content"].startswith("<memci:contents")]
        assert sum(words(each["content"]) + 4 for each in blocks) <= 150

    unloaded = [page.index for page in context.pages() if page.where == "unloaded"]
    assert set(range(2, 20)) <= set(unloaded)


def test_g13_least_recently_used_is_reckoned_in_turns():
    """What leaves first is decided by turns and indexes, by no clock."""
    pages = [
        PageRow(1, 0, 1, 0, PageState.ARCHIVED, archived_turn=1, recall_count=1, last_recalled_turn=9),
        PageRow(2, 1, 2, 1, PageState.ARCHIVED, archived_turn=5),
        PageRow(3, 2, 3, 2, PageState.ARCHIVED, archived_turn=5),
    ]

    assert OverCeiling(100).order(pages) == OverCeiling(100).order(pages[::-1]) == [2, 3, 1]


def test_g14_failed_archiving_leaves_the_page_where_it_was():
    """When the store fails, the page is in the window as before, and nothing is half done."""
    storage = FailingStorage()
    context = talked(5, storage=storage)
    before, report = context.render(), context.report().tokens
    storage.broken = True

    with pytest.raises(StorageError):
        context.archive(keep=0)

    assert (context.render(), context.report().tokens) == (before, report)
    check(context._parts.window)
    storage.broken = False
    assert context.archive(keep=0) == (1, 2, 3, 4)


def test_g14_failed_append_is_nowhere():
    """An append that could not be stored is not shown either, and can be tried again."""
    storage = FailingStorage()
    context = talked(1, storage=storage)
    before = context.render()
    storage.broken = True
    with pytest.raises(StorageError):
        context.append_turn(*turn(2))
    storage.broken = False

    assert context.render() == before
    assert context.append_turn(*turn(2)).seq == 2
    check(context._parts.window)


def test_g15_recalling_and_appending_at_once_is_safe():
    """A recall changes a counter under the same lock as everything else: none is lost."""
    context = talked(8)
    context.archive(keep=0)
    barrier = threading.Barrier(4)

    def recall() -> None:
        barrier.wait()
        for index in range(1, 8):
            context.recall_page(index)

    threads = [threading.Thread(target=recall) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [page.recall_count for page in context.pages()][:7] == [1] * 7
    check(context._parts.window)


def test_g16_interrupted_write_leaves_the_state_before(tmp_path):
    """What was not committed is not there after a restart; what was committed is."""
    path = tmp_path / "a.db"
    with opened(path) as context:
        context.append_turn(*turn(1))
        with pytest.raises(InvalidMessage):
            context.append_turn("good", {"role": "user", "content": float("inf")})

    with opened(path) as context:
        assert list(context.messages()) == list(turn(1))
        assert context.verify() == []


def test_g17_recalled_page_shows_its_count_and_an_absolute_turn():
    """A line that is written again tells how often the page was recalled, and when, in absolute turns."""
    context = talked(4, never_recalled=1)
    context.archive(keep=0)
    context.append_turn("x")
    context.archive(keep=0)
    context.recall_page(2)
    context.append_turn("y")

    context.archive(keep=0)

    line = next(line for line in context.render()[1]["content"].splitlines() if line.startswith("#2"))
    assert line.endswith("(recalled once, last in turn 4)")
    assert "ago" not in line


def test_g18_settings_that_are_not_given_are_never_zero():
    """With the window alone every number has a sane default: nothing is archived or unloaded at once."""
    chosen = settings({"window": 8_000}, None)[0]
    original = settings({"window": 32_000, "preset": "original"}, None)[0]

    assert (chosen.reply, chosen.contents_tokens) == (1_000, 700)
    assert (chosen.active_pages, chosen.never_recalled, chosen.stale) == (None, None, None)
    assert (original.active_pages, original.never_recalled, original.stale) == (5, 10, 20)
    assert [page.where for page in talked(5).pages()] == ["active"] * 4 + ["open"]
    for name in ("active_pages", "never_recalled", "stale"):
        with pytest.raises(InvalidSetting):
            settings({"window": 8_000, name: 0}, None)


def test_g19_page_knows_its_index():
    """A page's index is its own, from 1, rising by one, wherever it is looked at."""
    context = talked(4)

    assert [page.index for page in context._parts.window.active] == [1, 2, 3, 4]
    assert [page.index for page in context.pages()] == [1, 2, 3, 4]
    assert sorted(context._parts.window.rows) == [1, 2, 3, 4]


def test_g20_long_entries_of_the_user_are_summarised_too():
    """A line is short whoever spoke: the user's entries are not kept verbatim in the contents."""
    context = opened()
    context.append_turn("Please book it. " + "word " * 400, {"role": "assistant", "content": "word " * 400}, "next")

    context.archive(keep=0)

    block = context.render()[1]["content"]
    assert "Please book it." in block
    assert words(block) < 120


# -- the tree design


def test_g01_window_can_not_hold_more_than_its_budget():
    """The sum of it: whatever is appended, either the rendering fits or the error says what can't."""
    context = opened(window=1_000)
    for number in range(50):
        context.append_turn(*turn(number, 90 if number % 5 == 0 else 9))
        try:
            context.render()
        except BudgetExceeded:
            pytest.fail("pages of this size can always be archived")
        assert context.report().total <= context.report().budget


def test_sqlite_store_is_one_file_per_store_not_per_page(tmp_path):
    """Pages are rows: no file is named after a page, so none can be overwritten by another (G12, G16)."""
    storage = SQLiteStorage(tmp_path / "a.db")
    context = talked(9, storage=storage)
    context.archive(keep=0)
    storage.close()

    assert {each.name.split(".db")[0] for each in tmp_path.iterdir()} == {"a"}
