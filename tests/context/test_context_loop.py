"""The loop of an agent: render before each call of the model."""

import json

import pytest

from memci import BudgetExceeded, Context, EphemeralStorage, OpenToolGroup
from memci.chapters.system import notice
from memci.history.events import Event
from memci.memory import NullMemory

from .kit import OWN_TOOL, call, calling, extends, opened, result, talked, turn, words

pytestmark = pytest.mark.usefixtures("no_memory")


def test_loop_of_an_agent_runs_as_it_is_written(tmp_path):
    """The example: render, call, append, answer the context's own calls, render again."""
    with Context.open(
        tmp_path / "agent.db", id="alice", system="You are a travel agent.", model="gpt-5", window=32_000
    ) as context:
        asked = "Book me a flight to Oslo."
        first = context.render(asked, tools=[OWN_TOOL])
        reply = calling(call("c1", arguments={"to": "Oslo"}), call("c2", "recall_page", {"index": 1}))
        context.append_turn(asked, reply, usage={"prompt_tokens": 400})
        answers = context.answers(reply)
        context.append_turn(*answers, result("c1"))
        second = context.render(tools=[OWN_TOOL])

    assert [each["role"] for each in first] == ["system", "user"]
    assert first[0]["content"] == f"You are a travel agent.\n\n{notice(searchable=True)}"
    assert [each["role"] for each in second] == ["system", "user", "assistant", "tool", "tool"]
    assert extends(second, first)
    assert [each["tool_call_id"] for each in second[3:]] == ["c1", "c2"]
    assert [each["tool_call_id"] for each in answers] == ["c2"]
    assert "shown in full above" in answers[0]["content"]


def test_render_of_nothing_is_the_system_message():
    """A new context shows the prompt and the notice; with neither it shows nothing."""
    assert [each["role"] for each in opened(system="Be kind.").render()] == ["system"]
    assert opened(notice=False).render() == []


def test_render_twice_gives_equal_bytes():
    """Rendering changes nothing by itself."""
    context = talked(200)

    assert json.dumps(context.render()) == json.dumps(context.render())
    assert json.dumps(context.render("x")) == json.dumps(context.render("x"))
    assert context.report().messages == 400


def test_render_twice_gives_equal_bytes_when_a_compaction_makes_more_room_than_planned():
    """What is pending is shown whole at once if it fits beside what the compaction has left."""
    context = opened(window=1_000, reply=100, memory=NullMemory(), contents_tokens=100)
    for number in range(6):
        context.append_turn(*turn(number, 12))
    context.archive(keep=0)
    context.append_turn("last " + "word " * 884)
    pending = "pending " + "word " * 366

    first, second = context.render(pending), context.render(pending)

    assert json.dumps(first) == json.dumps(second)


def test_render_extends_the_one_before_between_compactions():
    """After each append the new rendering begins with the old one, byte for byte, unless a compaction happened."""
    events: list[Event] = []
    context, before, kept = opened(on_event=events.append, window=1_400), [], 0
    for number in range(60):
        events.clear()
        user, reply = turn(number, 20)
        pending = context.render(user)
        if not any(event.kind == "compaction" for event in events):
            assert extends(pending, before)
        events.clear()
        context.append_turn(user, reply)
        after = context.render()
        if not any(event.kind == "compaction" for event in events):
            assert extends(after, pending)
            kept += 1
        before = after

    assert 40 < kept < 60, "most turns keep the prefix, and there were compactions"


def test_render_within_the_budget_whatever_was_said():
    """However much is said, the request fits; tools and pending messages included."""
    context = opened(window=1_500)
    for number in range(80):
        context.append_turn(*turn(number, 5 + 60 * (number % 3)))
        shown = context.render("pending " * (30 + 50 * (number % 4)), tools=[OWN_TOOL])

        report = context.report()
        assert report.total <= report.budget
        assert sum(words(each["content"]) + 4 for each in shown) + report.tokens["tools"] + 3 <= report.budget


def test_pending_messages_are_shown_and_not_kept():
    """What is rendered as pending is neither stored nor counted afterwards."""
    context = talked(2)
    before = context.render()

    pending = context.render("What now?")

    assert pending == [*before, {"role": "user", "content": "What now?"}]
    assert context.render() == before
    assert context.report().messages == 4


def test_render_with_an_open_tool_group_is_refused():
    """No provider takes calls without results: the error names the calls, and `strict=False` shows them anyway."""
    context = opened()
    context.append_turn("go", calling(call("a"), call("b")), result("b"))

    with pytest.raises(OpenToolGroup) as caught:
        context.render()

    assert caught.value.missing == ("a",)
    assert [each["role"] for each in context.render(strict=False)[1:]] == ["user", "assistant", "tool"]
    assert [each["role"] for each in context.render(result("a"))[1:]] == ["user", "assistant", "tool", "tool"]


def test_budget_that_can_not_be_met_is_said_with_its_parts():
    """What is irreducible is named; appending it was stored all the same."""
    context = opened(window=1_000)
    context.append_turn("go")

    with pytest.raises(BudgetExceeded) as caught:
        context.render(tools=[{"type": "function", "function": {"name": "big", "description": "word " * 2_000}}])

    assert caught.value.parts["tools"] > 2_000
    assert context.render()[-1]["content"] == "go"


def test_system_prompt_that_does_not_fit_is_refused_at_open():
    """A window in which nothing could be said is refused before it is made."""
    storage = EphemeralStorage()

    with pytest.raises(BudgetExceeded):
        opened(storage, system="word " * 4_000)

    assert storage.contexts() == []


def test_pending_result_in_an_open_group_is_shown_as_it_is_if_not_strictly():
    """strict=False shows an open group as it stands, with the pending results that belong to it."""
    context = opened()
    context.append_turn("go", calling(call("a"), call("b"), call("c")), result("a"))

    with pytest.raises(OpenToolGroup):
        context.render(result("b"))
    view = context.render(result("b"), strict=False)

    assert [message["role"] for message in view] == ["system", "user", "assistant", "tool", "tool"]
    assert [message["tool_call_id"] for message in view[3:]] == ["a", "b"]
