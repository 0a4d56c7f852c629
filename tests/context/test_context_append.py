"""Appending: what is taken, what a receipt tells."""

import types
from datetime import UTC, datetime

import pytest

from memci import InvalidMessage
from memci.context.report import Receipt
from memci.errors import InvalidSetting

from .kit import call, calling, opened, result, talked, turn

pytestmark = pytest.mark.usefixtures("no_memory")


def test_receipt_tells_what_was_stored():
    """Page, entries, sequence number: the handles by which everything is found again."""
    context = talked(2)

    receipt = context.append_turn(*turn(3), op_id="op")

    assert isinstance(receipt, Receipt)
    assert (receipt.page, receipt.seq, receipt.op_id, receipt.duplicate) == (3, 4, "op", False)
    assert [(each.page, each.ordinal, each.role) for each in receipt.entries] == [(3, 1, "user"), (3, 2, "assistant")]


def test_receipt_of_several_pages_names_each():
    """One append may close and open pages; every entry knows its own, the receipt the last."""
    receipt = opened().append_turn("a", {"role": "assistant", "content": "b"}, "c", "d")

    assert receipt.page == 3
    assert [(each.page, each.ordinal) for each in receipt.entries] == [(1, 1), (1, 2), (2, 1), (3, 1)]


def test_receipt_of_nothing_is_empty():
    """Appending no message is allowed, and stores none."""
    context = opened()

    assert context.append_turn() == Receipt(0, (), 0)
    assert context.report().messages == 0


def test_user_message_closes_the_page_unless_it_is_an_observation():
    """`opens_page=False` extends the open page by a message in the user's role."""
    context = opened()
    context.append_turn("task")

    observed = context.append_turn("observation", opens_page=False)
    asked = context.append_turn("next")

    assert ((observed.page, observed.entries[0].ordinal), asked.page) == ((1, 2), 2)
    assert context.report().turn == 1


def test_assistant_first_is_a_page():
    """A context may begin with the assistant, and is rendered as it is."""
    context = opened(notice=False)

    context.append_turn({"role": "assistant", "content": "Hello!"}, "Hi")

    assert context.render() == [{"role": "assistant", "content": "Hello!"}, {"role": "user", "content": "Hi"}]
    assert [page.entries for page in context.pages()] == [1, 1]


def test_append_takes_sdk_objects_and_mappings():
    """What an SDK returned is appended as it is, with the fields that were set."""
    chat = pytest.importorskip("openai.types.chat")
    context = opened(notice=False)
    reply = chat.ChatCompletionMessage.model_validate(calling(call("c1")))

    context.append_turn(types.MappingProxyType({"role": "user", "content": "hi"}), reply, result("c1"))

    assert list(context.messages()) == [{"role": "user", "content": "hi"}, calling(call("c1")), result("c1")]


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        ({"role": "function", "content": "obey"}, "messages[1].role"),
        ({"role": "user", "content": float("nan")}, "messages[1].content"),
        ({"role": "user", "content": "x", "extra": (1, 2)}, "messages[1].extra"),
        ({"role": "user", "content": "x", "at": datetime(2026, 1, 1)}, "messages[1].at"),  # noqa: DTZ001
        (result("never"), "messages[1].tool_call_id"),
        (4, "messages[1]"),
    ],
)
def test_append_of_a_wrong_message_leaves_no_trace(wrong, path):
    """All or none: a wrong message is refused with its place, and the good ones before it are not stored."""
    context = talked(1)
    before = context.render()

    with pytest.raises(InvalidMessage) as caught:
        context.append_turn("good", wrong)

    assert caught.value.path.startswith(path)
    assert context.render() == before
    assert context.append_turn("next").seq == 2


def test_append_copies_what_it_takes():
    """Whoever changes a message afterwards changes neither the window nor the store."""
    context, message = opened(), {"role": "user", "content": [{"type": "text", "text": "before"}]}
    context.append_turn(message)

    message["content"][0]["text"] = "after"

    assert context.render()[-1]["content"][0]["text"] == "before"


def test_moment_is_for_information_only():
    """Any order of moments is taken, in either form; what is no moment is refused."""
    context = opened()
    context.append_turn("a", at=datetime(2026, 5, 2, tzinfo=UTC))
    context.append_turn("b", at="2026-05-01T10:00:00")

    with pytest.raises(InvalidSetting, match="at"):
        context.append_turn("c", at="yesterday")

    assert [each["content"] for each in context.messages()] == ["a", "b"]
