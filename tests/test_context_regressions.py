"""What the machine of `tests/machine` found once, each as small as it came to be."""

from typing import Any

import pytest

from memci import Context, EphemeralStorage, Policy
from memci.errors import BudgetExceeded
from memci.memory import NullMemory
from tests.door import open_context
from tests.invariants import check

TEXT = "Oslo, 12 May. " * 20
CALL = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}}


def opened(storage: EphemeralStorage, **options: Any) -> Context:
    """Return the context, made or opened again."""
    return open_context(storage, id="x", nonce="00000000", **options)


def test_a_usage_that_comes_alone_is_kept_when_the_context_is_reopened() -> None:
    """Calibration is stored also when no message comes with it."""
    storage = EphemeralStorage()
    context = opened(storage, window=1_000)
    context.append_turn("Hello")
    context.render()
    context.append_turn(usage={"prompt_tokens": context.report().total * 2})
    budget = context.report().budget

    again = opened(storage)

    assert budget < 875
    assert again.report().budget == budget


def test_a_recount_lasts_when_the_context_is_opened_once_more() -> None:
    """Counts by another vocabulary are those of every later opening, not of the first one only."""
    storage = EphemeralStorage()
    opened(storage, window=3_000, model="gpt-4o").append_turn("机票和行李" * 20)

    context = opened(storage, model="gpt-4")
    recounted = context.report().tokens["open"]
    context.append_turn("行李", opens_page=False)

    assert recounted == 124
    assert opened(storage).report().tokens == context.report().tokens


def test_an_op_that_is_repeated_starts_no_compaction() -> None:
    """A duplicate changes nothing, also when a compaction would have something to do."""
    context = opened(EphemeralStorage(), window=3_000, active_pages=1, never_recalled=1)
    for position in range(3):
        context.append_turn(f"Question {position}", op_id=f"op{position}")
    context.archive(keep=0)
    context.append_turn("Question 3")
    context.archive(keep=0)
    context.pin(3)
    context.append_turn("Question 4")
    context.pin(4)
    context.append_turn("Question 5")
    context.recall_page(1)
    before, compactions = context.render(), context.report().compactions

    receipt = context.append_turn("Question 0", op_id="op0")

    assert receipt.duplicate
    assert (context.render(), context.report().compactions) == (before, compactions)


def test_a_context_whose_pinned_page_outgrew_the_window_can_be_reopened() -> None:
    """Opening with equal settings never locks anyone out: the page can be unpinned, undone or read."""
    storage = EphemeralStorage()
    context = opened(storage, window=1_000)
    context.append_turn("Book me a flight.")
    context.pin(1)
    for _ in range(12):
        context.append_turn({"role": "assistant", "content": TEXT})
    before = outcome(context)

    again = opened(storage)

    assert outcome(again) == before
    assert len(again.undo()) == 13


def test_a_pinned_page_with_a_late_result_comes_back_as_dear_as_it_is() -> None:
    """A late result is counted as it is shown, framed, also when its page was away."""
    storage = EphemeralStorage()
    context = opened(storage, window=8_000)
    context.append_turn("First", {"role": "assistant", "content": None, "tool_calls": [CALL]})
    context.append_turn("Second", {"role": "tool", "tool_call_id": "c1", "content": "found"}, "Third", "Fourth")
    context.archive(keep=0)
    context.pin(2)
    context.archive(keep=0)

    view = context.render()

    window = context._parts.window
    assert window.tokens == window.own_tools + 3 + sum(window.weigh(message) for message in view)


def test_a_late_result_and_an_equal_one_that_is_not_late_cost_what_they_show() -> None:
    """What was counted as late while it was pending is not taken for the cost of the same bytes in place."""
    storage = EphemeralStorage()
    context = opened(storage, window=8_000)
    result = {"role": "tool", "tool_call_id": "c1", "content": "found"}
    reply = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    turn = ["First", reply, result, result, {"role": "assistant", "content": "Done."}]
    context.render(*turn)
    context.append_turn(*turn)

    view = context.render()

    window = context._parts.window
    assert window.tokens == window.own_tools + 3 + sum(window.weigh(message) for message in view)


@pytest.mark.parametrize("pending", [False, True])
def test_a_late_result_that_is_clipped_fits_with_its_frame(pending: bool) -> None:
    """The frame of a late result and what it escapes are within what the clip allows, and the compaction was enough."""
    context = opened(EphemeralStorage(), window=3_000)
    reply = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    late = {"role": "tool", "tool_call_id": "c1", "content": "def f(x):\n\treturn x\n" * 300}
    context.append_turn("Hello", reply, "flight " * 450)
    said = [{"role": "assistant", "content": "flight " * 450}, *({"role": "user", "content": "flight " * 450},) * 2]
    context.append_turn(*said, *(() if pending else (late,)), opens_page=False)
    rest = (late,) if pending else ()

    view = context.render(*rest)

    window, compactions = context._parts.window, context.report().compactions
    cost = window.own_tools + 3 + sum(window.weigh(message) for message in view)
    assert "tokens elided" in view[-1]["content"]
    assert cost == context._parts.renderer.predicted <= window.limits.budget
    assert context.render(*rest) == view
    assert context.report().compactions == compactions


@pytest.mark.parametrize("pending", [False, True])
@pytest.mark.parametrize("late", [False, True])
def test_a_result_that_no_clip_makes_small_enough_is_refused(late: bool, pending: bool) -> None:
    """A name, or the id of a late result, can't be clipped: what does not fit is said, and no compaction begins for
    it."""
    context = opened(EphemeralStorage(), window=1_000)
    call_id, name = ("é " * 900, "search") if late else ("c1", "name " * 900)
    result = {"role": "tool", "tool_call_id": call_id, "name": name, "content": TEXT}
    context.append_turn("Hello", {"role": "assistant", "content": None, "tool_calls": [{**CALL, "id": call_id}]})
    if late:
        context.append_turn("Never mind.")
    context.append_turn(*(() if pending else (result,)))
    rest = (result,) if pending else ()
    with pytest.raises(BudgetExceeded):
        context.render(*rest)
    compactions = context.report().compactions

    with pytest.raises(BudgetExceeded) as refused:
        context.render(*rest)

    assert refused.value.parts["latest messages"] > 900
    assert context.report().compactions == compactions


def test_rendering_twice_what_is_pending_is_the_same_when_results_were_clipped_for_it() -> None:
    """What the compaction clipped came out smaller than it had to: what is pending gets the rest at once, not later."""
    context = opened(EphemeralStorage(), window=3_000)
    calls = [{**CALL, "id": f"c{number}"} for number in range(6)]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "- item\n" * 190} for call in calls]
    context.append_turn("Hello", {"role": "assistant", "content": None, "tool_calls": calls}, *results[:3])

    view = context.render(*results[3:])

    window, compactions = context._parts.window, context.report().compactions
    cost = window.own_tools + 3 + sum(window.weigh(message) for message in view)
    assert all("tokens elided" in message["content"] for message in view[-6:])
    assert cost == context._parts.renderer.predicted <= window.limits.budget
    assert context.render(*results[3:]) == view
    assert context.report().compactions == compactions == 1


def test_an_open_page_without_a_users_message_never_gives_everything_away() -> None:
    """A context that begins with the assistant's messages can be opened again after most of its first page has left."""
    storage = EphemeralStorage()
    context = opened(storage, window=1_000, memory=NullMemory())
    reply = {"role": "assistant", "content": "Oslo, 12 May. " * 22}
    for _ in range(3):
        context.append_turn(reply)
    context.render("flight " * 130, reply)
    before = context.render()

    again = opened(storage, memory=NullMemory())

    check(again._parts.window)
    assert again.render() == before
    assert again.undo() == [reply] * 3


def test_a_page_that_began_without_a_users_message_loses_none_when_more_leave() -> None:
    """What stands first when others have left is not the task that the page began with: it may leave, too."""
    context = opened(EphemeralStorage(), window=1_000)
    reply = {"role": "assistant", "content": "Done."}
    seen = [{"role": "user", "content": f"{number} {TEXT}"} for number in range(20)]
    context.append_turn(reply, *seen[:10], reply, opens_page=False)
    first = context._parts.window.active.open.head.message
    context.append_turn(*seen[10:], reply, opens_page=False)

    pages = list(context.pages())

    assert first in seen
    assert [page.entries for page in pages] == [23]
    assert len(context.render()) < 20
    assert context.undo() == [reply, *seen[:10], reply, *seen[10:], reply]


def test_a_page_restored_after_a_recount_costs_the_same_when_the_context_is_reopened() -> None:
    """What a pinned page costs when it comes back is stored, if another vocabulary counted it before."""
    storage = EphemeralStorage()
    context = opened(storage, window=3_000, model="gpt-4")
    context.append_turn("Hello", "机票和行李" * 20, "And?")
    context.archive(keep=0)
    context = opened(storage, model="gpt-4o")
    context.pin(2)
    context.archive(keep=1)
    tokens = context.report().tokens

    again = opened(storage)

    assert tokens["active"] == 104
    assert again.report().tokens == tokens


def test_a_short_text_beside_long_calls_can_be_archived() -> None:
    """A summary is made of whatever a message holds; that it has no room for the text is no error."""
    storage = EphemeralStorage()
    context = opened(storage, window=8_000)
    arguments = '"path":"""query":"0123456789a789' + "abcdef0123456789" * 6 + 'abcdef012345"'
    functions = [{"name": "run", "arguments": ""}, {"name": "search", "arguments": arguments}]
    calls = [{"id": f"c{at}", "type": "function", "function": each} for at, each in enumerate(functions)]
    said = {"role": "assistant", "content": "~", "tool_calls": calls, "x-unknown": {"b": 1, "a": [2**70]}}
    context.append_turn("First", "Second", said, "Third")

    assert context.archive(keep=0) == (1, 2)


def outcome(context: Context) -> object:
    """Return what is rendered, or why it is not."""
    try:
        return context.render()
    except BudgetExceeded as error:
        return error.parts


@pytest.mark.parametrize("offset", [6, 10**9])
def test_an_offset_behind_the_end_is_no_recall(offset: int) -> None:
    """A mistake is answered and does not keep the page's line alive."""
    storage = EphemeralStorage()
    context = opened(storage, window=8_000)
    context.append_turn("First", "Second", "Third")
    context.archive(keep=0)
    arguments = f'{{"index": 2, "entry": 1, "offset": {offset + 1}}}'

    answer = context.answer({"id": "r", "function": {"name": "recall_page", "arguments": arguments}})

    assert answer["content"].startswith("error: ")
    assert [page.recall_count for page in context.pages()] == [0, 0, 0]


def test_a_page_that_was_taken_back_leaves_no_part_in_the_next_contents() -> None:
    """Contents that were made while it was open, and changed nothing, are not shown once it is gone."""
    context = opened(EphemeralStorage(), window=3_000)
    context.append_turn("Question")
    for position in range(30):
        context.append_turn({"role": "assistant", "content": f"{position} {TEXT}"})
    context.render()
    context.archive(keep=0)
    context.archive(keep=0)
    assert context._parts.window.contents.parts
    context.undo()

    context.archive(keep=0)

    assert context._parts.window.contents.parts == ()
    check(context._parts.window)


def test_the_past_names_no_later_page_that_was_taken_back() -> None:
    """What the memory is yet to be told of later pages is nothing to a state before them."""
    storage = EphemeralStorage()
    context = opened(storage, window=3_000)
    for position in range(3):
        context.append_turn(f"Question {position}")
    context.undo()
    context.append_turn("Question 3")

    with Context.view(storage, id="x", at=0, memory=NullMemory()) as past:
        assert past.verify() == []


def test_a_late_result_in_front_of_the_contents_stands_there_when_it_is_read_again() -> None:
    """A reader shows the first page as the writer does, also what came late and behind no call."""
    storage = EphemeralStorage()
    context = opened(storage, window=3_000)
    result = {"role": "tool", "tool_call_id": "c1", "content": "a result"}
    context.append_turn("Question", {"role": "assistant", "content": None, "tool_calls": [CALL]}, result)
    context.append_turn({"role": "assistant", "content": "Done."}, {**result, "content": "once more"})
    for position in range(40):
        context.append_turn(f"{position} {TEXT}")
        context.render()
    assert len(context._parts.window.active.lead_view) == 5

    with opened(storage, read_only=True) as reader:
        assert reader.render() == context.render()


def test_lines_of_what_left_a_page_give_way_to_a_smaller_contents_page() -> None:
    """If the Contents Page may cost less than before, the lines of parts become fewer, and everything fits."""
    storage = EphemeralStorage()

    def step(context: Context, number: int) -> None:
        function = {"name": "bash", "arguments": f'{{"command": "pytest tests/test_{number}.py src/file_{number}.py"}}'}
        call = {"id": f"c{number}", "type": "function", "function": function}
        told = f"src/file_{number}.py: TypeError id_{number}\n" + f"line {number}\n" * 150
        context.append_turn({"role": "assistant", "content": None, "tool_calls": [call]})
        context.append_turn({"role": "tool", "tool_call_id": f"c{number}", "content": told})

    with opened(storage, window=8_000, reply=1_000, policy=Policy(preset="economy")) as context:
        context.append_turn("Repair the package.")
        for number in range(60):
            step(context, number)
        assert context.report().tokens["contents"] > 80

    with opened(storage, window=4_000, policy=Policy(contents_tokens=80)) as context:
        for number in range(60, 70):
            step(context, number)
        context.render()
        assert 0 < context.report().tokens["contents"] <= 80
