"""What the tests of the companion share: contexts, and a model that is a function."""

import json
from itertools import count

import pytest

from memci import Context, EphemeralStorage
from memci.errors import ModelUnavailable
from memci.llm.model import Reply, Usage
from memci.tokens import counter_for, message_tokens, tools_tokens

QUIET = {
    "thinking": "",
    "need_memory_search": False,
    "memory_search_query": None,
    "should_save_memory": False,
    "memory_to_save": None,
}
"""an analysis that wants nothing"""


class Scripted:
    """A model that answers as a function says, and keeps the requests.

    The function gets the messages, and gives a text, a message, or an error. An analysis is answered by `analysis`.
    """

    def __init__(self, answer=lambda messages: "Yes.", analysis=None):
        self.answer, self.analysis = answer, analysis or (lambda messages: QUIET)
        self.requests = []
        """(step, messages, tools)"""
        self._ids = count(1)

    def __call__(self, messages, /, *, step="chat", tools=(), answer=None, **_):
        self.requests.append((step, [dict(message) for message in messages], list(tools)))
        given = self.analysis(messages) if step == "analysis" else self.answer(messages)
        if isinstance(given, BaseException):
            raise given
        if isinstance(given, dict) and "role" not in given:
            given = json.dumps(given)
        message = {"role": "assistant", "content": given} if isinstance(given, str) else given
        return Reply(message, Usage(self.cost(messages, tools), 5), "stop", "scripted")

    def stream(self, messages, *, step="chat", tools=()):
        return Pieces(self(messages, step=step, tools=tools))

    def cost(self, messages, tools=()):
        tokens = counter_for(None)
        return sum(message_tokens(each, tokens) for each in messages) + tools_tokens(tools, tokens) + 3

    def asked(self, step="chat"):
        """The messages of the requests for *step*."""
        return [messages for each, messages, _ in self.requests if each == step]

    def call(self, name, **arguments):
        """A message that calls a tool."""
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"id": f"c{next(self._ids)}", "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}


class Pieces:
    """A reply that comes a word at a time."""

    def __init__(self, reply):
        self._whole, self.reply, self.closed = reply, None, False

    def __iter__(self):
        for word in self._whole.text.split(" "):
            yield word if word == self._whole.text.split(" ")[0] else f" {word}"
        self.reply = self._whole

    def close(self):
        self.closed = True


@pytest.fixture
def chat():
    return Scripted()


@pytest.fixture
def context():
    with Context.open(EphemeralStorage(), id="alice", system="Be kind.", window=8_000, nonce="5eed0001") as opened:
        yield opened


@pytest.fixture
def down():
    """The error of a model that can't be reached."""
    return ModelUnavailable("chat", "no server")


@pytest.fixture
def scripted():
    """Makes a model of a function."""
    return Scripted


@pytest.fixture
def front():
    """Gives the memory prompt of a request, "" if there is none."""

    def prompt(messages):
        return next((m["content"] for m in messages if str(m["content"]).startswith("<memci:companion ")), "")

    return prompt
