"""Chats of other programs are read and become contexts, or are refused with what is wrong with them."""

import json

import pytest

from memci import Context, EphemeralStorage
from memci.errors import InvalidMessage, InvalidSetting
from memci.history.export import export_lines
from memci.history.plain_chat import export_chat, read_chat

from .kit import call, calling, opened, result, turn

pytestmark = pytest.mark.usefixtures("no_memory")

SAID = [{"role": "system", "content": "Be brief."}, *turn(1), calling(call("a")), result("a"), *turn(2)]
ASKED = {"role": "user", "content": "Which train to Delft?"}
REPLY = {"role": "assistant", "content": "The 9:04."}
RULES = {"role": "system", "content": "Be brief."}


def read(*values):
    """The chat of a file: a value as JSON, or several as JSON lines."""
    return read_chat([json.dumps(each) + "\n" for each in values], "file.json")


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

    with Context.import_(storage, text.splitlines(keepends=True), id="chat", window=2_000) as context:
        assert [json.loads(line) for line in export_lines(storage, "chat", chat=True)] == SAID
        assert context.verify() == []
        assert context.recall_page(2) == list(turn(2))


def test_import_of_a_chat_that_does_not_fit_its_window():
    """A long chat is archived as it would have been, had it been held here."""
    here = EphemeralStorage()
    messages = [message for number in range(60) for message in turn(number, 20)]
    held = opened(here, id="chat", window=1_500)
    for message in messages:
        held.append_turn(message)

    lines = export_chat(read(messages), "chat", lambda store, _: opened(store, id="chat", window=1_500).append_turn)

    assert list(lines) == list(export_lines(here, "chat"))


@pytest.mark.parametrize(
    "values", [[{"messages": [RULES, ASKED]}, {"messages": [RULES, REPLY]}], [RULES, ASKED, REPLY]]
)
def test_read_chat_when_there_are_json_lines(values):
    """A message per line, or a conversation per line, gives the same messages, joined."""
    chat = read(*values)

    assert (chat.messages, chat.system, chat.left_out, len(chat.pages())) == ((ASKED, REPLY), "Be brief.", (), 1)


def test_read_chat_when_trajectories_are_joined():
    """Trajectories follow each other; equal system messages are skipped, the places of others are kept."""
    tool = {"type": "function", "function": {"name": "trains", "parameters": {}}}
    other = {"role": "system", "content": "Be long."}

    chat = read([{"traj": [RULES, ASKED, REPLY]}, {"traj": [RULES, ASKED], "tools": [tool]}, {"traj": [other, ASKED]}])

    assert chat.messages == (ASKED, REPLY, ASKED, ASKED)
    assert (chat.system, chat.left_out, len(chat.pages()), chat.tools) == ("Be brief.", ("[2].traj[0]",), 3, (tool,))
    assert [len(page) for page in chat.pages()] == [2, 1, 1]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "is empty"),
        (" \n\n", "is empty"),
        ("[]", "holds no messages"),
        ([RULES], "holds no messages"),
        ("hello", "line 1, column 1: not valid JSON"),
        ('[{"role": "user",\n "content": }]', "line 2, column 13: not valid JSON"),
        ('{"role": "user", "content": "a"}\n{"role"\n', "line 2, column 8: not valid JSON"),
        ('{"role": "user", "content": "a"}\n7', "line 2: expected a message"),
        ("7", "expected a message (an object with a role), got int"),
        ("{}", "no conversation: its keys are none"),
        ({"id": 1, "text": "a"}, "no conversation: its keys are 'id', 'text'"),
        ([ASKED, 5], "[1]: expected a message (an object with a role), got int"),
        ({"messages": [ASKED, {"text": "a"}]}, "messages[1]: expected a message"),
        ({"messages": [ASKED, {"role": "pilot", "content": "a"}]}, "messages[1].role: expected 'user', 'assistant'"),
        ([{"role": ["user"], "content": "a"}], "[0].role: expected"),
        ([{"role": "user"}], "[0].content: is missing"),
        ("[" * 100_000, "nested too deeply"),
        ("[" * 400 + "1" + "]" * 400, "expected a message"),
        ('[{"role": "user", "content": NaN}]', "NaN is not JSON"),
        ("1" * 6_000, "not valid JSON"),
    ],
)
def test_read_chat_when_there_is_none(content, told):
    """What is no chat is refused with the name of its file, the place and the reason."""
    text = content if isinstance(content, str) else json.dumps(content)

    with pytest.raises((InvalidSetting, InvalidMessage)) as caught:
        read_chat(text.split("\n"), "file.json")

    assert told in str(caught.value)
    assert str(caught.value).startswith("file.json: ")


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        ([], "holds no messages"),
        (SAID[:1], "holds no messages"),
        ([*SAID, {"role": "system", "content": "Be long."}], r"\[7\] is a system prompt"),
        ([ASKED, RULES], r"\[1\] is a system prompt"),
        ([SAID[0], {"role": "pilot", "content": "a"}], r"\[1\].role"),
        ([ASKED, result("a")], r"file: \[1\]: no tool call"),
    ],
)
def test_import_of_a_chat_that_makes_no_sense(messages, told):
    """A message that no provider accepts is named by its position, and nothing is stored."""
    storage = EphemeralStorage()

    with pytest.raises((InvalidSetting, InvalidMessage), match=told):
        Context.import_(storage, [json.dumps(messages)], id="chat", window=2_000)

    assert storage.contexts() == []


def test_import_of_a_chat_over_a_context_is_refused():
    """A context that is there is never touched by a chat."""
    storage = EphemeralStorage()
    opened(storage, id="chat").append_turn("Hello.")

    with pytest.raises(InvalidSetting, match="there is a context 'chat' already"):
        Context.import_(storage, [json.dumps(SAID)], id="chat", window=2_000)

    assert [each["content"] for each in opened(storage, id="chat").messages()] == ["Hello."]
