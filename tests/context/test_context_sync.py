"""Sync: a framework keeps the whole list, and the context stores what is new of it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memci import Context, EphemeralStorage, SQLiteStorage
from memci.errors import Diverged, InvalidMessage, InvalidSetting, StorageFull
from memci.memory import NullMemory

pytestmark = pytest.mark.usefixtures("no_memory")

SYSTEM = {"role": "system", "content": "Be brief."}


def turn(number: int) -> list[dict]:
    return [{"role": "user", "content": f"question {number}"}, {"role": "assistant", "content": f"answer {number}"}]


def opened(store=None, name: str = "alice", **settings) -> Context:
    return Context.open(store or EphemeralStorage(), name, system="Be brief.", window=4_000, **settings)


@settings(max_examples=25)
@given(st.lists(st.integers(0, 7), min_size=1, max_size=6), st.booleans())
def test_each_message_is_stored_once_whatever_the_steps(steps, front):
    """Whatever grows between two calls is stored, and nothing twice."""
    messages = [SYSTEM] if front else []
    with opened() as context:
        for step in steps:
            new = [message for number in range(step) for message in turn(number)]
            messages += new
            assert context.sync(messages) == new
            assert context.sync(messages) == []
        assert list(context.messages()) == messages[front:]


def test_it_goes_on_where_another_process_stopped(tmp_path):
    """The place is found by what is stored, so that no cursor dies with a process."""
    messages = [message for number in range(30) for message in turn(number)]
    with opened(tmp_path / "agent.db") as context:
        context.sync(messages[:41])
    with opened(tmp_path / "agent.db") as context:
        assert context.sync(messages) == messages[41:]
        assert list(context.messages()) == messages


@pytest.mark.parametrize(
    ("changed", "position", "shared"),
    [
        (lambda each: [*each[:4], {"role": "user", "content": "another"}], 4, 1),
        (lambda each: each[:5], 5, 1),
        (lambda each: [{"role": "user", "content": "another"}, *each[1:]], 0, None),
    ],
)
def test_a_list_that_diverged_says_where(changed, position, shared):
    """What differs, or is missing at the end, is named; a fork at the turn takes the list."""
    messages = [message for number in range(4) for message in turn(number)]
    store = EphemeralStorage()
    with opened(store) as context:
        context.sync(messages)
        with pytest.raises(Diverged) as caught:
            context.sync([SYSTEM, *changed(messages)])
        assert (caught.value.position, caught.value.turn) == (position + 1, shared)
        assert list(context.messages()) == messages
        if shared is not None:
            with context.fork("other", at=shared) as fork:
                fork.sync(changed(messages))
                assert list(fork.messages()) == changed(messages)


def test_what_was_taken_back_may_come_again_and_what_was_erased_counts_as_equal():
    """An undo shortens the list; an erasure does not."""
    messages = [message for number in range(4) for message in turn(number)]
    with opened() as context:
        context.sync(messages)
        assert context.sync(messages) == []
        context.undo()
        assert context.sync([*messages[:6], *turn(9)]) == turn(9)
        context.erase(2)
        assert context.sync([*messages[:6], *turn(9), *turn(10)]) == turn(10)


def test_what_was_erased_after_it_was_compared_counts_as_equal():
    """One message of a page goes, and another one later: both stand in the list as the framework has them by now."""
    messages = [message for number in range(3) for message in turn(number)]
    with opened() as context:
        for page, entry in ((1, 1), (2, 2)):
            context.sync(messages)
            context.erase(page, entry)
            messages[2 * page - 3 + entry] = {"role": messages[2 * page - 3 + entry]["role"], "content": "[erased]"}
            assert context.sync(messages) == []


def test_items_of_other_providers_are_compared_as_they_came():
    """A list of Responses items grows by items; its position counts them."""
    items = [
        {"role": "user", "content": "Which trains?"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"},
        {"type": "function_call", "call_id": "c1", "name": "trains", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "the 9:15"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "At nine."}]},
    ]
    with opened(format="openai_responses") as context:
        assert len(context.sync(items[:4])) == 3
        assert [each["content"] for each in context.sync(items)] == ["At nine."]
        assert context.render() == items
        with pytest.raises(Diverged) as caught:
            context.sync([*items[:3], {**items[3], "output": "another"}, items[4]])
        assert caught.value.position == 3


def test_what_is_wrong_with_a_list_is_said_before_anything_is_stored():
    """A wrong message is named by its place, and nothing of the list is stored."""
    with opened() as context:
        with pytest.raises(InvalidMessage, match=r"messages\[2\]"):
            context.sync([*turn(0), {"role": "robot", "content": "hi"}])
        for wrong in ("Hi", 5):
            with pytest.raises(InvalidSetting, match="messages"):
                context.sync(wrong)
        assert list(context.messages()) == []


def test_an_append_is_known_by_its_name(tmp_path):
    """`known` says what is stored, also of what was taken back, as of a turn and in a fork."""
    with opened(SQLiteStorage(tmp_path / "agent.db")) as context:
        context.append_turn(*turn(0), op_id="first")
        context.append_turn(*turn(1), op_id="second")
        with context.fork("other", at=0) as fork:
            fork.append_turn(*turn(2), op_id="third")
            assert not fork.known("second") and fork.known("third")
        context.undo()
        assert context.known("second") and not context.known("third")
        with pytest.raises(InvalidSetting, match="op_id"):
            context.known("")


def test_a_list_is_read_in_the_format_that_is_named():
    """What several formats write alike is of that format; the same list in another one has the same messages."""
    items = [
        {"role": "user", "content": [{"type": "text", "text": "Which trains?"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "The 9:15."}]},
    ]
    with opened() as context:
        with pytest.raises(InvalidSetting, match="format"):
            context.sync(items, format="morse")
        assert [each.native.items for each in context.sync(items, format="anthropic")] == [[each] for each in items]
        assert context.sync(items, format="anthropic") == []
        assert context.render(format="anthropic")[-2:] == items
        assert context.sync(items) == []


class Filling(EphemeralStorage):
    """A store that is full when the messages behind the first 10,000 come, once."""

    full = True

    def commit(self, transition):
        if self.full and transition.head >= 10_000:
            self.full = False
            raise StorageFull("no space left")
        return super().commit(transition)


def test_a_long_list_is_stored_in_parts_and_goes_on_where_it_stopped():
    """A part is stored whole or not at all; the next call stores what is left, also the result of an open call."""
    call = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    messages = [{"role": "user", "content": "Go on."}]
    messages += [{"role": "assistant", "content": "On."}] * 9_998
    messages += [{"role": "assistant", "content": None, "tool_calls": [call]}]
    messages += [{"role": "tool", "tool_call_id": "c1", "content": "found"}, {"role": "assistant", "content": "Yes."}]
    with Context.open(Filling(), "alice", window=1_000_000, memory=NullMemory()) as context:
        with pytest.raises(StorageFull):
            context.sync(messages)
        assert context.report().messages == 10_000

        assert context.sync(messages) == messages[10_000:]
        assert context.sync(messages) == []
        assert context.render()[-3:] == messages[-3:]


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3), st.booleans()), max_size=6), st.booleans())
def test_a_list_that_holds_the_end_only_goes_on_behind_what_is_stored(runs, erases):
    """A framework keeps one run, and perhaps some turns before it: each message is stored once, whatever it kept."""
    everything = []
    with opened() as context:
        for number, (steps, kept, restarted) in enumerate(runs):
            kept_messages = everything[-2 * kept :] if kept else []
            run = [message for step in range(steps) for message in turn(10 * number + step)]
            for end in range(1, len(run) + 1):
                context.sync([*kept_messages, *run[:end]], whole=False)
                if restarted:
                    context.refresh()
            everything += run
            assert context.sync(run, whole=False) == []
            if erases:
                context.erase(number + 1, 1)
        stored = [message["content"] for message in context.messages()]
        assert len(stored) == len(everything)
        assert all(text in ("[erased]", message["content"]) for text, message in zip(stored, everything, strict=True))


def test_a_list_that_begins_as_the_conversation_does_is_the_whole_of_it():
    """One message follows, also one that was there before; more of them that differ have diverged."""
    hello, again = turn(0), [{"role": "user", "content": "question 0"}]
    with opened() as context:
        context.sync([*hello, *turn(1)], whole=False)
        assert context.sync([], whole=False) == []
        with pytest.raises(Diverged) as caught:
            context.sync([*hello, *turn(2)], whole=False)
        assert caught.value.position == 2
        assert context.sync(again, whole=False) == again
        assert context.sync([*again, {"role": "assistant", "content": "Once more."}], whole=False)
        assert len(list(context.messages())) == 6


def test_a_position_counts_an_item_with_several_results_once():
    """Results of parallel calls stand in one item of an Anthropic list, which counts once in a position behind it."""
    calls = [{"type": "tool_use", "id": each, "name": "find", "input": {}} for each in ("c1", "c2", "c3")]
    found = [{"type": "tool_result", "tool_use_id": each["id"], "content": "found"} for each in calls]
    items = [
        {"role": "user", "content": "Find three."},
        {"role": "assistant", "content": calls},
        {"role": "user", "content": found},
        {"role": "assistant", "content": [{"type": "text", "text": "Three."}]},
        {"role": "user", "content": "And a fourth?"},
    ]
    with opened(format="anthropic") as context:
        assert len(context.sync(items)) == 7
        assert context.render() == items
        for at in range(1, 5):
            other = {"role": items[at]["role"], "content": "another"}
            with pytest.raises(Diverged) as caught:
                context.sync([*items[:at], other])
            assert caught.value.position == at


def test_what_a_framework_writes_anew_is_not_stored_again():
    """A mark that moves, a new id, or an empty answer that is left out is no difference; what is stored stays."""

    def listed(count):
        return [
            {
                "role": "user",
                "content": [
                    {
                        "type": "text",
                        "text": f"q{at}",
                        **({"cache_control": {"type": "ephemeral"}} if at == count - 1 else {}),
                    }
                ],
            }
            if half == 0
            else {"role": "assistant", "content": f"a{at}"}
            for at in range(count)
            for half in (0, 1)
        ]

    with opened(format="anthropic") as context:
        for count in range(1, 6):
            assert len(context.sync(listed(count))) == 2
        stored = [*context.messages()]
        assert "cache_control" in stored[0].native.items[0]["content"][0]

        context.append_turn("Hm?", {"role": "assistant", "content": []})
        whole = [*listed(5), {"role": "user", "content": "Hm?"}, {"role": "user", "content": "Hello?"}]
        assert [each["content"] for each in context.sync(whole)] == ["Hello?"]
        assert context.sync(whole) == []


def test_another_beginning_before_the_same_messages_is_an_edit_or_a_compaction():
    """As many messages in front: an edit. Fewer: a summary of them, and the conversation goes on."""
    messages = [message for number in range(4) for message in turn(number)]
    other = {"role": "user", "content": "[redacted]"}
    for changed in ([other, *messages[1:]], [other, *messages[1:3]], [other, *messages]):
        with opened() as context:
            context.sync(messages, whole=False)
            with pytest.raises(Diverged) as caught:
                context.sync(changed, whole=False)
            assert (caught.value.position, caught.value.turn) == (0, None)
    with opened() as context:
        context.sync(messages, whole=False)
        assert context.sync([other, *messages[4:], *turn(4)], whole=False) == turn(4)
        with pytest.raises(Diverged) as caught:
            context.sync([*messages[2:6], *turn(9)], whole=False)
        assert (caught.value.position, caught.value.turn) == (4, 2)
