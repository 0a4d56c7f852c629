"""memci.testing.llm.ScriptedChat: a model without a server."""

import threading

import pytest
from pydantic import BaseModel

from memci.errors import ModelRefused, ModelUnavailable
from memci.llm import ChatModel, Reply, Usage
from memci.testing.llm import ScriptedChat
from memci.testing.llm.scripted import words

HI = [{"role": "user", "content": "Hi"}]


class Title(BaseModel):
    title: str


def test_answers_come_in_their_order():
    """Text, objects, values, messages and replies are answers, errors are raised; then it does not answer."""
    reply = Reply({"role": "assistant", "content": "r"}, Usage(5, 2, 1), "length")
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    chat = ScriptedChat(
        ["你好", {"title": "é"}, Title(title="x"), {"tool_calls": [call]}, reply, ModelRefused("a", "b")]
    )

    assert isinstance(chat, ChatModel)
    assert [chat(HI).text for _ in range(3)] == ["你好", '{"title": "é"}', '{"title":"x"}']
    assert chat(HI).message == {"role": "assistant", "content": None, "tool_calls": [call]}
    assert chat(HI) is reply
    with pytest.raises(ModelRefused):
        chat(HI)
    with pytest.raises(ModelUnavailable, match="no more answers"):
        chat(HI)
    assert (chat.ledger.total.calls, chat.ledger.total.failed) == (7, 2)


def test_calls_are_kept():
    """What it was asked is there to be looked at, and given to a function that answers."""
    chat = ScriptedChat(lambda asked: f"{asked.step} {asked.attempt} {asked.text}")

    assert chat(HI, step="page", attempt=1, answer=Title, tools=[{"type": "function"}]).text == "page 1 Hi"

    asked = chat.calls[0]
    assert (asked.messages, asked.step, asked.attempt, asked.answer) == (tuple(HI), "page", 1, Title)
    assert asked.tools == ({"type": "function"},)


def test_stream_is_the_answer_in_pieces():
    """A stream yields the text in pieces and has the reply at its end; an error is raised at its first piece."""
    chat = ScriptedChat(["one two three", ModelUnavailable("chat", "no")])
    stream = chat.stream(HI)
    with pytest.raises(ModelUnavailable):
        _ = stream.reply

    assert list(stream) == ["one ", "two ", "three"]
    assert stream.reply.text == "one two three"
    with pytest.raises(ModelUnavailable, match="no"):
        next(chat.stream(HI))


@pytest.mark.parametrize("text", ["", " ", "a", "one two", "averyverylongword and 你好你好你好你好你好", "  x  "])
def test_pieces_are_the_text(text):
    """Pieces joined are the text, and none is empty."""
    assert "".join(words(text)) == text
    assert all(words(text))


def test_threads_get_an_answer_each():
    """Many threads that ask at once get each answer once."""
    chat = ScriptedChat(str(number) for number in range(40))
    got = []
    threads = [threading.Thread(target=lambda: got.extend(chat(HI).text for _ in range(10))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(got, key=int) == [str(number) for number in range(40)]
