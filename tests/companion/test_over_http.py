"""The companion over a real socket, with the real client: answers, tools, faults, a Ctrl-C in the middle."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from memci import Context, EphemeralStorage, SQLiteStorage
from memci.companion import Companion
from memci.errors import ModelRefused, ModelUnavailable
from memci.llm import Chat
from memci.testing.llm import Cut, ModelServer, Raw, Reset, Status
from memci.text.interface import section
from tests.hostile_answers import HTML

STOPPED = section("companion")["stopped"]

QUIET = {
    "thinking": "",
    "need_memory_search": False,
    "memory_search_query": None,
    "should_save_memory": False,
    "memory_to_save": None,
}
SEARCH = QUIET | {"need_memory_search": True, "memory_search_query": "aisle seat"}


def call(name, id="c1", **arguments):  # noqa: A002 -- the call's
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "tool_calls": [{"id": id, "type": "function", "function": function}]}


@pytest.fixture
def server():
    with ModelServer() as started:
        yield started


@pytest.fixture
def chat(server):
    with Chat("gpt-4o", base_url=server.base_url) as made:
        yield made


def stored(context):
    return [(message["role"], message.get("content")) for message in context.messages()]


def test_respond_over_http(server, chat, context):
    """An analysis and an answer, and what the server says they cost."""
    server.answers([QUIET, "Hello, Ada."])

    answer = Companion(context, chat).respond("I am Ada.")

    assert (answer.text, answer.calls) == ("Hello, Ada.", 2)
    assert answer.usage.prompt > 100
    assert [request.answer for request in server.requests] == ["AnalysisResult", ""]
    assert set(chat.ledger.steps) == {"analysis", "chat"}


def test_stream_over_http(server, chat, context):
    """The pieces are the stream's, whole characters though its bytes are torn apart."""
    server.chunk = 1
    server.answers([QUIET, "您要靠过道的座位，因为您的膝盖不好。"])

    with Companion(context, chat).stream("我坐飞机要什么座位？") as stream:
        pieces = list(stream)

    assert len(pieces) > 1
    assert "".join(pieces) == stream.answer.text == "您要靠过道的座位，因为您的膝盖不好。"
    assert stored(context)[1] == ("assistant", "您要靠过道的座位，因为您的膝盖不好。")


def test_tools_over_http(server, chat, context):
    """A tool of the caller's and a page that is recalled, in one streamed turn."""
    context.append_turn("The code is 4711.", {"role": "assistant", "content": "Noted."})
    context.append_turn("Thanks.", {"role": "assistant", "content": "You are welcome."})
    context.archive(keep=0)
    schema = {"name": "door", "parameters": {"type": "object", "properties": {"code": {"type": "string"}}}}
    companion = Companion(
        context,
        chat,
        tools=[{"type": "function", "function": schema}],
        functions={"door": lambda code: f"opened by {code}"},
    )
    recall = call("recall_page", index=1, entry=None, offset=None)
    server.answers([QUIET, recall, call("door", "c2", code="4711"), "It is open."])

    with companion.stream("Open the door.") as stream:
        text = "".join(stream)

    assert text == "It is open."
    results = [message["content"] for message in stream.answer.messages if message["role"] == "tool"]
    assert "The code is 4711." in results[0] and results[1] == "opened by 4711"
    assert [m["role"] for m in server.requests[-1].messages[-5:]] == ["user", "assistant", "tool", "assistant", "tool"]


def test_memory_over_http(server, chat, context):
    """What was said long ago, or in another conversation of the same user, reaches the model with its place."""
    store = EphemeralStorage()
    with (
        Context.open(store, id="before", owner="ada", window=8_000, clock=None) as before,
        Context.open(store, id="now", owner="ada", window=8_000) as now,
    ):
        before.append_turn("I always want an aisle seat.", {"role": "assistant", "content": "Noted."})
        before.append_turn("Bye.", {"role": "assistant", "content": "Bye."})
        before.flush()
        server.answers([SEARCH, "At the aisle."])

        answer = Companion(now, chat).respond("Where do I sit?")

        assert {page.context for page in answer.recollection.pages} == {"before"}
        told = server.requests[-1].messages[-2]["content"]
        assert '[another conversation] turn 0, user: "I always want an aisle seat."' in told


@pytest.mark.parametrize(
    "fault", [HTML, Raw("{not json"), Status(500), Reset(), Status(400), Cut("{", after=1)], ids=repr
)
def test_analysis_when_the_server_fails(server, chat, context, fault):
    """Whatever happens to the first call, the user gets an answer."""
    failing = [fault] * 6

    def answer(request):
        return failing.pop() if request.answer and failing else "Here."

    server.answers(answer)

    assert Companion(context, chat).respond("Hello?").text == "Here."


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Status(500), ModelUnavailable),
        (Status(401), ModelRefused),
        (Reset(), ModelUnavailable),
        (Cut("Once upon a time", after=9), ModelUnavailable),
    ],
    ids=repr,
)
def test_stream_when_the_server_fails(server, chat, context, fault, error):
    """A model that fails is an error, in the middle of an answer as well; nothing is stored."""
    server.answers(lambda request: QUIET if request.answer else fault)

    with pytest.raises(error):
        list(Companion(context, chat).stream("Hello?"))

    assert stored(context) == []


def test_stream_when_it_is_interrupted(tmp_path):
    """Ctrl-C in another process while the answer comes: the message and what was said are in the store."""
    script = """
        import signal
        import sys
        from memci import Context
        from memci.companion import Companion
        from memci.llm import Chat

        signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever this was started by ignores
        with Context.open(sys.argv[1], id="alice", window=8_000) as context:
            stream = Companion(context, Chat("gpt-4o", base_url=sys.argv[2]), analysis=False).stream("Tell me a tale.")
            with stream:
                for piece in stream:
                    print(piece, end="", flush=True)
    """

    def answer(request):
        return "Once upon a time " + "and again " * 20_000

    with ModelServer(answer) as server:
        teller = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(script), str(tmp_path / "agent.db"), server.base_url],
            bufsize=0,  # what a buffer has read ahead, communicate() does not see
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        )
        begun = teller.stdout.read(4)
        teller.send_signal(signal.SIGINT)
        told = begun + teller.communicate(timeout=60)[0]

    with Context.view(SQLiteStorage(tmp_path / "agent.db"), id="alice") as context:
        question, answered = stored(context)
    assert question == ("user", "Tell me a tale.")
    assert answered[1].startswith("Once ") and answered[1].endswith(STOPPED)
    assert len(answered[1]) < 200_000
    assert abs(len(told) - len(answered[1].removesuffix(f"\n{STOPPED}"))) < 20
