"""Chats of other programs come in as contexts, or are refused with what is wrong with them."""

import json

import pytest

from memci import EphemeralStorage
from memci.errors import InvalidMessage, InvalidSetting
from memci.history.export import exported
from memci.history.plain_chat import chat_of, imported_chat

from .kit import call, calling, opened, result, turn

SAID = [{"role": "system", "content": "Be brief."}, *turn(1), calling(call("a")), result("a"), *turn(2)]


def chat_opened(storage, system, **given):
    return opened(storage, id="chat", system=system, **given)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(SAID),
        json.dumps(SAID, indent=2),
        json.dumps({"messages": SAID, "model": "any"}),
        "\n".join(map(json.dumps, SAID)),
        "\n\n".join(map(json.dumps, SAID)) + "\n",
    ],
)
def test_import_of_a_chat(text):
    """A chat in any form becomes a context with its system prompt, and comes out as the same messages."""
    storage = EphemeralStorage()

    messages = chat_of(text.splitlines(keepends=True))

    assert messages == SAID
    assert imported_chat(storage, messages, id="chat", open_context=chat_opened) == "chat"
    assert [json.loads(line) for line in exported(storage, "chat", chat=True)] == SAID
    with opened(storage, id="chat", window=None) as context:
        assert context.verify() == []
        assert context.recall_page(2) == list(turn(2))


def test_import_of_a_chat_that_does_not_fit_its_window():
    """A long chat is archived as it would have been, had it been held here."""
    storage, here = EphemeralStorage(), EphemeralStorage()
    messages = [message for number in range(60) for message in turn(number, 20)]
    held = opened(here, id="chat", window=1_500)
    for message in messages:
        held.append_turn(message)

    def small(scratch, system):
        return opened(scratch, id="chat", system=system, window=1_500)

    imported_chat(storage, messages, id="chat", open_context=small)

    assert list(exported(storage, "chat")) == list(exported(here, "chat"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("hello", "line 1: not valid JSON"),
        ('{"role": "user", "content": "a"}\n{"role": ', "line 2: not valid JSON"),
        ('{"role": "user", "content": "a"}\n7', "line 2: expected a message"),
        ("7", "expected an export of memci, or a chat"),
        ('{"text": "a"}', "expected an export of memci, or a chat"),
        ('[{"role": "user", "content": "a"}, 5]', r"messages\[1\]: expected a message"),
        ("[" * 100_000, "nested too deeply"),
        ('[{"role": "user", "content": NaN}]', "NaN is not JSON"),
    ],
)
def test_chat_of_what_is_none(text, told):
    """What is no chat is refused with the line, or the position, and the reason."""
    with pytest.raises(InvalidSetting, match=told):
        chat_of(text.split("\n"))


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        ([], "the chat has no messages"),
        (SAID[:1], "the chat has no messages"),
        ([*SAID, {"role": "system", "content": "Be long."}], r"messages\[7\] is a system prompt"),
        ([SAID[0], {"role": "pilot", "content": "a"}], r"messages\[1\].role"),
        ([{"role": "user", "content": "a"}, {"role": "user", "content": 5}], r"messages\[1\].content"),
    ],
)
def test_import_of_a_chat_that_makes_no_sense(messages, told):
    """A message that no provider accepts is named by its position, and nothing is stored."""
    storage = EphemeralStorage()

    with pytest.raises((InvalidSetting, InvalidMessage), match=told):
        imported_chat(storage, messages, id="chat", open_context=chat_opened)

    assert storage.contexts() == []


def test_import_of_a_chat_over_a_context_is_refused():
    """A context that is there is never touched by a chat."""
    storage = EphemeralStorage()
    opened(storage, id="chat").append_turn("Hello.")

    def never(_storage, _system):
        pytest.fail("it is refused before a message is counted")

    with pytest.raises(InvalidSetting, match="there is a context 'chat' already"):
        imported_chat(storage, SAID, id="chat", open_context=never)

    assert [each["content"] for each in opened(storage, id="chat").messages()] == ["Hello."]
