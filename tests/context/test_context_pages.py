"""Pages: archive, pin, undo, split."""

import json
import re

import pytest

from memci import BudgetExceeded, Context, EphemeralStorage, PageNotFound, Policy
from memci.errors import InvalidSetting, Undone, WriteConflict
from memci.history.erase import erase
from memci.memory import NullMemory
from tests.invariants import check

from .kit import again, call, calling, opened, result, talked, turn, where

pytestmark = pytest.mark.usefixtures("no_memory")


def test_archive_leaves_what_a_gap_would_leave():
    """A compaction now archives oldest first, the task last, down to half of the room, and no further; a second one
    finds nothing to do."""
    context = talked(30, size=30)
    sizes = {page.index: page.tokens for page in context._parts.window.active}
    level = context.report().levels.cold

    archived = context.archive()

    left = sum(sizes.values()) - sum(sizes[index] for index in archived) - context._parts.window.words
    assert archived == tuple(range(2, 2 + len(archived)))
    assert left <= level < left + sizes[archived[-1]]
    assert context.archive() == ()


def test_archive_keeps_as_many_pages_as_are_asked_for():
    """`keep` closed pages stay, the task among them, beside the open one."""
    context = talked(9)

    archived = context.archive(keep=2)

    assert archived == (2, 3, 4, 5, 6, 7)
    assert [index for index, place in where(context).items() if place != "archived"] == [1, 8, 9]


@pytest.mark.parametrize("keep", [-1, 1.5, "1", True])
def test_archive_with_a_keep_that_makes_no_sense_is_refused(keep):
    """A number of pages is an integer from 0."""
    with pytest.raises(InvalidSetting, match="keep"):
        talked(3).archive(keep=keep)


class Asked(EphemeralStorage):
    """A store that notes which rows of pages are asked for by their numbers."""

    def pages_at(self, context, indexes):
        self.__dict__.setdefault("asked", []).extend(indexes)
        return super().pages_at(context, indexes)


def test_an_opening_reads_no_row_of_a_listed_page():
    """However many pages are listed: they are read once, when one is recalled, a compaction needs them, or both."""
    store = Asked()
    context = talked(9, storage=store)
    listed = context.archive(keep=2)
    context.close()
    store.asked.clear()

    with again(store, memory=NullMemory()) as context:
        context.render()
        context.append_turn(*turn(9))
        assert store.asked == []
        assert context.recall_page(listed[0]) == [*turn(listed[0])]
        assert context.archive(keep=0)
        assert sorted(store.asked) == [*listed]
        check(context._parts.window)


def test_a_handle_whose_listed_pages_are_gone_says_so():
    """Another handle erased the context after this one had opened it: a conflict, and no page without messages."""
    store = EphemeralStorage()
    with talked(9, storage=store) as context:
        listed = context.archive(keep=2)
    stale = again(store, memory=NullMemory())
    erase(store, context="alice")

    with pytest.raises(WriteConflict):
        stale.recall_page(listed[0])


def test_archived_messages_leave_the_window():
    """What is archived is no longer shown but by a line, and no longer counted but by that."""
    context = talked(6, size=40)
    before = context.report().total

    context.archive(keep=0)

    shown = [each["content"] for each in context.render()]
    assert shown[1].startswith("<memci:contents 00000000>\n#1 1 word\n")
    assert shown[2:] == [each["content"] for each in turn(6, 40)]
    assert context.report().total < before
    check(context._parts.window)


def test_turns_are_those_of_the_window():
    """`turns` gives the last pages that stand in full, oldest first, and never more than there are."""
    context = talked(6)
    context.archive(keep=2)

    assert context.turns(2) == [list(turn(5)), list(turn(6))]
    assert [messages[0]["content"] for messages in context.turns(9)] == [turn(each)[0]["content"] for each in (1, 5, 6)]
    assert context.turns(0) == []


def test_pinned_page_stays_and_unpinned_goes():
    """A pin exempts from archiving; without it the page goes like others."""
    context = talked(5)
    context.pin(2)
    context.archive(keep=0)
    pinned = where(context)
    context.unpin(2)
    context.archive(keep=0)

    assert (pinned[2], pinned[3], where(context)[2]) == ("active", "archived", "archived")


def test_pin_of_an_archived_page_restores_it_at_the_next_compaction():
    """A page that is pinned when it is gone comes back at the next compaction, where it stood, and not before."""
    context = talked(5)
    whole = context.render()
    context.archive(keep=0)
    context.pin(2)
    shown = context.render()
    context.append_turn("next")

    context.archive(keep=0)

    assert "question 2 word word word " not in [each["content"] for each in shown]
    assert whole[3:5] == [each for each in context.render() if each in whole[3:5]]
    assert where(context)[2] == "active"
    assert [page.index for page in context.pages() if page.pinned] == [2]
    check(context._parts.window)


def test_pin_survives_a_restart_and_is_counted_as_it_is_shown():
    """A page that was restored costs what it shows, before and after a restart, late results included."""
    storage = EphemeralStorage()
    context = opened(storage)
    context.append_turn("a", calling(call("k"), call("never")))
    context.append_turn("b")
    context.append_turn(result("k", "late " * 50), "c", "d")
    context.archive(keep=0)
    context.pin(1)
    context.pin(2)
    context.archive(keep=0)

    for each in (context, opened(storage)):
        window = each._parts.window
        shown = sum(window.weigh(message) for message in [*window.active.lead_view, *window.active.view])
        assert window.active.messages.tokens == shown
        check(window)
    assert json.dumps(opened(storage).render()) == json.dumps(context.render())


def test_pin_that_leaves_no_room_is_refused():
    """Pins, system and a quarter for the open page fit, or the pin is refused and nothing changed."""
    context = opened(window=1_500)
    for number in range(8):
        context.append_turn(*turn(number, 110))
    pinned = 0
    with pytest.raises(BudgetExceeded) as caught:
        for index in range(1, 8):
            context.pin(index)
            pinned += 1

    assert 1 <= pinned < 7
    assert "pinned" in caught.value.parts
    assert sum(page.pinned for page in context.pages()) == pinned
    context.render("still " * 100)


def test_archived_pages_that_were_pinned_come_back_beside_an_open_page_that_is_full():
    """`pin` counts what the compaction counts that brings the pages back."""
    context = opened(window=1_500)
    for number in range(60):
        context.append_turn(*turn(number, 10))
    context.archive(keep=0)
    with pytest.raises(BudgetExceeded):
        for index in range(1, 60):
            context.pin(index)

    context.append_turn("still " * 400)
    context.archive(keep=0)
    assert {page.where for page in context.pages() if page.pinned} == {"active"}
    assert context.report().total <= context.report().budget


@pytest.mark.parametrize("act", ["pin", "unpin"])
def test_pin_of_no_page_is_not_found(act):
    """Only pages that were given out can be pinned or unpinned."""
    for index in (0, 9, True, "1"):
        with pytest.raises(PageNotFound):
            getattr(talked(2), act)(index)


def test_undo_takes_back_the_newest_interaction():
    """The messages come back in order; the window, recall and search show nothing of them any more."""
    context = talked(2)
    before = context.render()
    receipt = context.append_turn("oops", calling(call("a")), result("a"))

    taken = context.undo()

    assert taken == [{"role": "user", "content": "oops"}, calling(call("a")), result("a")]
    assert context.render() == before
    assert where(context)[receipt.page] == "undone"
    assert [each["content"] for each in context.messages()] == [each["content"] for n in (1, 2) for each in turn(n)]
    with pytest.raises(Undone):
        context.recall_page(receipt.page)
    check(context._parts.window)


def test_undo_twice_takes_back_two():
    """Each undo takes back one more; numbers are not used again."""
    context = talked(3)

    first, second = context.undo(), context.undo()
    receipt = context.append_turn("again")

    assert (first[0]["content"][:10], second[0]["content"][:10]) == ("question 3", "question 2")
    assert (receipt.page, receipt.seq) == (4, 6)
    assert where(context) == {1: "active", 2: "undone", 3: "undone", 4: "open"}
    check(context._parts.window)


def test_undo_of_nothing_says_so():
    """There is nothing to take back in a new context, or when all was taken back."""
    context = opened()
    with pytest.raises(PageNotFound):
        context.undo()
    context.append_turn("a")
    context.undo()

    for take_back in (context.undo, context.pop):
        with pytest.raises(PageNotFound, match="there are no pages"):
            take_back()

    assert context.render()[1:] == []


def test_undo_of_the_task_lets_the_next_page_be_the_task():
    """When the first page was taken back, the first one after it is archived last."""
    context = opened()
    context.append_turn("a mistake")
    context.undo()
    for number in range(2, 9):
        context.append_turn(*turn(number))

    context.archive(keep=1)

    assert [index for index, place in where(context).items() if place == "active"] == [2]


def test_undo_of_an_archived_page_takes_its_line():
    """The newest interaction may be archived already: its line goes too."""
    context = talked(3)
    context.archive(keep=0)
    context.undo()

    context.undo()

    assert where(context) == {1: "archived", 2: "undone", 3: "undone"}
    assert "#2" not in json.dumps(context.render())
    check(context._parts.window)


def test_op_id_after_undo_answers_undone():
    """A retry of what was taken back is not stored again, and is no success either."""
    context = opened()
    context.append_turn("a", op_id="op")
    context.undo()

    with pytest.raises(Undone):
        context.append_turn("a", op_id="op")

    assert list(context.messages()) == []


def outgrown(storage: object = None, rounds: int = 40, **given: object) -> Context:
    """A context whose first interaction has outgrown its window, by tool calls."""
    context = opened(storage, window=1_200, **given)
    context.append_turn("the task")
    for number in range(rounds):
        context.append_turn(calling(call(f"c{number}")), result(f"c{number}", f"result {number} " + "word " * 40))
        context.render()
    return context


def test_units_leave_a_page_that_outgrows_the_window():
    """The oldest units of the open page leave; the task and the newest calls stay, and the page keeps its entries."""
    context = outgrown()

    shown = context.render()

    assert [(page.index, page.where, page.entries) for page in context.pages()] == [(1, "open", 81)]
    assert any(each["content"] == "the task" for each in shown)
    assert "result 39" in shown[-1]["content"]
    assert len(shown) < 40
    assert re.search(r"^#1 entries 2–\d+", shown[2]["content"].splitlines()[1]), "what left is listed"
    assert context.report().turn == 0
    check(context._parts.window)


@pytest.mark.parametrize("again", [False, True])
def test_what_left_the_open_page_is_recalled_by_a_range(again):
    """A range of entries is recalled byte for byte, and what is shown is not quoted again."""
    storage = EphemeralStorage()
    context = outgrown(storage)
    if again:
        context = opened(storage, window=1_200)
    said = list(context.messages())

    assert context.recall_page(1, 4, 7) == said[3:7]
    answer = context.answer(call("r", "recall_page", {"index": 1, "entry": 2, "offset": None, "last": 3}))["content"]
    assert "page #1 of turn 0, entries 2 to 3 of 1 to 81" in answer
    assert json.loads(re.search(r"^3 tool: (.*)$", answer, re.MULTILINE)[1]) == said[2]["content"]
    assert "entry 4" not in answer and "next:" not in answer
    assert context.answer(call("r", "recall_page", {"index": 1, "entry": 81}))["content"].startswith("page #1 is shown")


def test_entries_that_left_keep_their_numbers():
    """An entry that left the open page is found under the number that it had."""
    context = outgrown()

    for ordinal in (1, 2, 3, 40, 81):
        [message] = context.recall_page(1, ordinal)
        assert message == list(context.messages())[ordinal - 1]


def test_undo_takes_what_left_the_open_page_too():
    """However much of an interaction has left the window: one undo takes all of it."""
    storage = EphemeralStorage()
    context = outgrown(storage)
    pages = len(list(context.pages()))

    taken = context.undo()

    assert len(taken) == 81
    assert taken[0]["content"] == "the task"
    assert set(where(context).values()) == {"undone"}
    assert list(context.messages()) == []
    assert context.append_turn("again").page == pages + 1
    check(context._parts.window)
    assert json.dumps(opened(storage, window=1_200).render()) == json.dumps(context.render())


def waiting_for_x(*before: dict, storage: object = None) -> Context:
    """A context of 1,000 tokens whose open page ends in a large tool group that waits for the result of x."""
    context = opened(storage, window=1_000)
    context.append_turn(*before)
    context.append_turn(calling(call("x"), call("y"), call("z")), result("y", "r " * 140), result("z", "r " * 140))
    return context


def test_open_group_stays_whole_when_a_pending_message_starts_an_compaction():
    """Making room for a message that is not appended after all never takes the open tool group apart."""
    storage = EphemeralStorage()
    said = [{"role": "assistant", "content": "a " * 100}] * 3
    context = waiting_for_x({"role": "user", "content": "task"}, *said, storage=storage)

    context.render("p " * 450)
    context.append_turn(result("x", "the result"))

    shown = context.render()
    assert json.dumps(shown).count("the result") == 1
    assert json.dumps(opened(storage, window=None).render()) == json.dumps(shown)
    check(context._parts.window)


def test_page_that_is_split_keeps_something():
    """However little room there is, the open page is never empty."""
    context = waiting_for_x(*[{"role": "assistant", "content": "a " * 140}] * 2)

    context.render("p " * 560)

    check(context._parts.window)
    assert all(page.entries > 0 for page in context.pages())


def test_late_result_that_is_clipped_stays_clipped_behind_an_open_group():
    """What was shown clipped is shown so in every rendering, also with pending messages."""
    context = opened(window=2_000)
    context.append_turn("go", calling(call("x")), "next", calling(call("y")), result("x", "late " * 3_000))
    before = [each for each in context.render(strict=False) if "late result" in str(each["content"])]

    after = [each for each in context.render("never mind") if "late result" in str(each["content"])]

    assert after == before
    assert context.report().total <= context.report().budget


def test_pinned_pages_that_can_not_come_back_do_not_stop_what_fits():
    """A compaction that fails after an append is no reason not to render: another handle shows the same."""
    storage = EphemeralStorage()
    with opened(storage) as context:
        for number in range(1, 7):
            context.append_turn(*turn(number, 200))
        context.archive(keep=0)
        for index in (2, 3, 4):
            context.pin(index)
    with again(storage, window=1_500, policy=Policy(active_pages=1)) as context:
        for number in range(7, 10):
            context.append_turn(*turn(number, 20))
        assert context._parts.compactor._failed
        shown = context.render()
        pending = context.render("And now?")
        with again(storage) as other:
            assert other.render() == shown
            assert other.render("And now?") == pending


def test_a_group_that_the_pending_message_ends_is_no_reason_to_refuse_it():
    """Calls and results that do not fit beside a pinned page may be split off once the next message ends them."""
    names = [f"call{number}" for number in range(10)]
    with opened(window=1_500) as context:
        context.append_turn(*turn(1, 200))
        context.append_turn({"role": "user", "content": "next"})
        context.pin(1)
        context.append_turn(calling(*names), *(result(name, "word " * 60) for name in names))
        with pytest.raises(BudgetExceeded):
            context.render()
        assert context.render("And now?")[-1] == {"role": "user", "content": "And now?"}
