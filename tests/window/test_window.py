"""The window: when a compaction is due, what it lists and in which order, and what its small facts are bounded by."""

import json

from memci import EphemeralStorage
from memci.window.state import WAITING, WindowState
from tests.context.kit import again, calling, opened, talked, turn, where
from tests.invariants import check


def listed(context) -> list[list[int]]:
    """Return the pages of each block of the contents that have a line of their own."""
    return [[line.index for line in block.lines] for block in context._parts.window.contents.blocks]


def stored_state(storage) -> dict:
    return json.loads(storage.load("alice")[0].state)


def test_pinned_pages_do_not_count_as_active_ones():
    """Beside two pinned pages, two others may stay: with a third one a compaction is due, and not before."""
    asked = []
    context = talked(2, active_pages=2, rules=[lambda _, turn: asked.append(turn) or []])
    context.pin(1)
    context.pin(2)
    for number in (3, 4, 5):
        context.append_turn(*turn(number))
    assert asked == []

    context.append_turn(*turn(6))

    assert (asked, context.report().compactions) == ([5], 1)
    assert {where(context)[index] for index in (1, 2)} == {"active"}


def test_open_page_that_is_pinned_counts_for_no_closed_one():
    """A pin on the open page leaves as many closed pages as before."""
    storage = EphemeralStorage()
    talked(3, storage=storage).pin(3)

    context = again(storage, active_pages=1)
    context.append_turn(turn(3)[1])

    assert where(context) == {1: "archived", 2: "archived", 3: "open"}


def test_latest_calls_that_wait_are_remembered_and_no_more():
    """However many calls are interrupted, the state stays small; a late result is taken all the same."""
    storage = EphemeralStorage()
    context = opened(storage)
    made = [f"c{number}" for number in range(WAITING + 40)]

    context.append_turn("Go.", calling(*made[:100]), "And?", calling(*made[100:]), "Well?")

    assert stored_state(storage)["waiting"] == made[40:]
    context.append_turn({"role": "tool", "tool_call_id": "c0", "content": "late"})


def test_state_keeps_the_marks_of_pages_that_are_left():
    """What was undone or erased loses its pin, its place in the queue and its part as the task; others keep theirs."""
    state = WindowState("00000000", pins=(1, 2), relist=(2, 3), task=1)

    assert state.without({2}) == WindowState("00000000", pins=(1,), relist=(3,), task=1)
    assert state.without({1, 3}) == WindowState("00000000", pins=(2,), relist=(2,), task=None)


def test_late_result_is_clipped_as_far_as_it_goes():
    """The frame may cost more than the limit alone: then the least is left of the text, never all of it."""
    window = opened(window=8_000)._parts.window
    late = {"role": "tool", "tool_call_id": "c1", "content": "<word> " * 500}

    for limit in range(1, 90):
        view, tokens, clip = window.clip(late, limit, 1, 1, late=True)

        assert clip >= 1
        assert "elided" in view["content"]
        assert tokens <= max(limit, 80)


def test_pages_are_listed_by_number_and_one_that_was_recalled_is_not_unloaded():
    """A page that was unloaded and recalled gets its line before younger ones; no rule takes it away at once."""
    storage, events, gone = EphemeralStorage(), [], []
    context = talked(3, storage=storage, rules=[lambda pages, _: gone], on_event=events.append)
    context.archive(keep=0)
    gone.append(1)
    context.append_turn(*turn(4))
    context.archive(keep=0)
    assert where(context)[1] == "unloaded"

    context.recall_page(2)  # it has its line
    for number in (5, 6):  # in two turns: it is noted once
        context.recall_page(1)
        context.append_turn(*turn(number))
    assert stored_state(storage)["relist"] == [1]
    events.clear()
    context.archive(keep=0)

    assert listed(context)[-1] == [1, 4, 5]
    assert stored_state(storage)["relist"] == []
    assert where(context)[1] == "archived"


def test_page_that_was_recalled_and_pinned_comes_back_and_is_not_listed():
    """One place for each page: in the window or on the contents."""
    context = talked(3, rules=[lambda pages, _: [1]])
    context.archive(keep=0)
    context.append_turn(*turn(4))
    context.archive(keep=0)
    assert where(context)[1] == "unloaded"
    context.recall_page(1)
    context.pin(1)

    context.archive(keep=0)

    assert where(context)[1] == "active"
    assert 1 not in [index for block in listed(context) for index in block]


def test_page_of_a_range_that_was_recalled_is_not_unloaded():
    """It gets a line of its own again, and no event says that it was unloaded."""
    events, gone = [], []
    context = talked(30, 60, rules=[lambda pages, _: gone], on_event=events.append, contents_tokens=90)
    context.archive(keep=0)
    ranged = context._parts.window.contents.ranges[0].pages[0]
    context.recall_page(ranged)
    gone.append(ranged)
    context.append_turn(*turn(31))
    events.clear()

    context.archive(keep=0)

    assert where(context)[ranged] == "archived"
    assert ranged not in [index for event in events if event.kind == "unload" for index in event.pages]


def test_mark_on_a_page_that_needs_no_line_does_no_harm():
    """A page with a line of its own keeps it, one in the window stays there, a pinned one comes back: no line twice."""
    context = talked(6)
    context.archive(keep=2)
    before = listed(context)
    writer, window = context._parts.writer, context._parts.window
    writer.store_state(window.state._replace(relist=(2, 5), pins=(3,)))
    writer.store_state(window.state._replace(relist=(2, 3, 5)))

    context.archive(keep=2)

    assert before == [[2, 3, 4]]  # the task leaves last
    assert listed(context) == [[2, 4]]
    assert {where(context)[index] for index in (1, 3, 5)} == {"active"}
    check(window)
