"""memci.llm.Chat over a real socket, with the real client: what is sent, and what comes back."""

import gc
import os
import subprocess
import sys
import threading

import pytest

from memci.errors import CeilingReached, InvalidSetting, ModelRefused
from memci.llm import Call, Chat, ChatModel, Ledger, Reply, Spent, Usage
from memci.testing.llm import ModelServer, Raw, Status

HI = [{"role": "user", "content": "Hi"}]
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "東京"}'}}
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}


def test_answer_comes_back_exactly(server, chat):
    """Text of any script comes back character for character, with what it cost and who said it."""
    text = "你好 🌍\n\u2028 — “quoted” \t é"
    server.answers([Reply({"role": "assistant", "content": text}, Usage(9, 4, 2))])

    reply = chat(HI)

    assert reply == Reply({"role": "assistant", "content": text}, Usage(9, 4, 2), "stop", "test-model")
    assert isinstance(chat, ChatModel)


def test_request_says_what_was_given(server, chat_over):
    """Messages, model, tools and the provider's own parameters arrive as they were given; nothing else is sent."""
    server.answers(["ok"])
    messages = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "你好 🌍"}]

    chat_over(server, max_tokens=7, temperature=0.5, extra={"top_k": 3})(messages, tools=[TOOL])

    assert server.requests[0].body == {
        "model": "test-model",
        "messages": messages,
        "tools": [TOOL],
        "max_tokens": 7,
        "temperature": 0.5,
        "top_k": 3,
    }


def test_tool_calls_come_back(server, chat):
    """Tool calls come back as the model made them, and the message is one that a context takes."""
    server.answers([{"role": "assistant", "content": None, "tool_calls": [CALL]}])

    reply = chat(HI, tools=[TOOL])

    assert reply.message == {"role": "assistant", "content": None, "tool_calls": [CALL]}
    assert (reply.finish, reply.text) == ("tool_calls", "")


def test_unknown_fields_are_kept(server, chat):
    """What a provider adds to a message stays in it; fields that are null are left out."""
    server.answers([{"role": "assistant", "content": "4", "reasoning": {"steps": [1]}, "refusal": None, "audio": None}])

    assert chat(HI).message == {"role": "assistant", "content": "4", "reasoning": {"steps": [1]}}


def test_answer_without_a_price_is_free_for_the_reply_and_estimated_for_the_ledger(chat_over):
    """Where a server does not say what a call cost, the reply has zeros, and the ledger an estimate."""
    with ModelServer(["x" * 400], usage=False) as server:
        chat = chat_over(server)

        assert chat(HI).usage == Usage()
        assert chat.ledger.total.completion == 100


@pytest.mark.parametrize(
    "usage", [None, [], "many", {"prompt_tokens": -1, "completion_tokens": 1e300}, {"prompt_tokens": "9"}]
)
def test_nonsense_about_the_price_is_nothing(server, chat, usage):
    """What is no count of tokens counts as none."""
    import json

    body = {"choices": [{"message": {"content": "ok"}}], "usage": usage}
    server.answers([Raw(json.dumps(body))])

    assert chat(HI).usage == Usage()


# -- where the server is ------------------------------------------------------------------------------------------


def test_local_server_needs_no_key(server, chat):
    """A server that is named by its address is asked without a key of ours."""
    server.answers(["ok"])

    assert chat(HI).text == "ok"
    assert server.requests[0].headers["authorization"] == "Bearer none"


def test_environment_names_model_server_and_key(monkeypatch):
    """MEMCI_MODEL, OPENAI_BASE_URL and OPENAI_API_KEY are used where nothing is given; arguments win."""
    with ModelServer(["one", "two"], api_key="secret") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "secret")
        monkeypatch.setenv("MEMCI_MODEL", "from-the-environment")
        with Chat() as chat, Chat("given") as other:
            assert [chat(HI).model, other(HI).model] == ["from-the-environment", "given"]


def test_wrong_key_is_refused_at_once_and_never_shown(chat_over):
    """A key that the server does not take is refused without another try, and stands in no message."""
    with ModelServer(["ok"], api_key="secret") as server, pytest.raises(ModelRefused, match="401") as raised:
        chat_over(server, api_key="sk-wrong")(HI)

    assert len(server.requests) == 1
    assert "sk-wrong" not in str(raised.value)
    assert not raised.value.retryable


def test_own_client_is_used_and_stays_open(server):
    """A client of the caller's own is used as it is, and not closed."""
    from openai import OpenAI

    server.answers(["one", "two"])
    with OpenAI(base_url=server.base_url, api_key="mine", max_retries=7) as client:
        with Chat("m", client=client) as chat:
            assert chat(HI).text == "one"
        assert chat(HI).text == "two"

    assert server.requests[1].headers["authorization"] == "Bearer mine"


def test_chat_is_usable_after_close(server, chat):
    """close() gives the connections back; a later call opens new ones."""
    server.answers(["one", "two"])
    chat(HI)

    chat.close()
    chat.close()

    assert chat(HI).text == "two"


def test_chat_that_is_not_closed_leaves_no_connection_behind(server):
    """A chat that nobody uses any more closes its connections: no warning of an open socket."""
    server.answers(["one"])
    chat = Chat("m", base_url=server.base_url)
    chat(HI)
    connections = chat._client._client

    del chat
    gc.collect()

    assert connections.is_closed


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"model": ""}, "model"),
        ({"model": None}, "model"),
        ({"base_url": None}, "api_key"),
        ({"base_url": "localhost:1"}, "base_url"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": float("nan")}, "timeout"),
        ({"timeout": True}, "timeout"),
        ({"tries": 0}, "tries"),
        ({"tries": 1.5}, "tries"),
        ({"max_tokens": 0}, "max_tokens"),
    ],
)
def test_settings_that_make_no_sense_are_named(settings, name):
    """What can't work is said when the chat is made, by the name of the setting."""
    given = {"model": "m", "base_url": "http://127.0.0.1:1/v1", **settings}

    with pytest.raises(InvalidSetting) as raised:
        Chat(given.pop("model"), **given)

    assert raised.value.name == name


def test_missing_package_is_said_with_what_installs_it(tmp_path):
    """Without the package `openai`, the module can be imported, and a chat says what to install."""
    code = """
import sys
import memci, memci.llm
from memci.llm import Chat, Embeddings, ask, Ledger
assert "openai" not in sys.modules
sys.modules["openai"] = None
import importlib.util
importlib.util.find_spec = lambda name, *more: None
for kind in (Chat, Embeddings):
    try:
        kind("m", base_url="http://localhost:1/v1")
    except memci.errors.InvalidSetting as error:
        assert "pip install 'memci[llm]'" in str(error), error
    else:
        raise AssertionError(kind)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.stderr == ""
    assert done.returncode == 0


def test_importing_memci_loads_no_model_code(tmp_path):
    """A context without a model pays nothing for models: neither client nor pydantic nor asyncio is loaded."""
    code = "import sys, memci, memci.llm; print({'openai', 'pydantic', 'asyncio', 'memci.llm.chat'} & set(sys.modules))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.stdout.strip() == "set()", done.stderr


# -- the ledger ---------------------------------------------------------------------------------------------------


def test_ledger_adds_up_per_step(server, chat):
    """Calls and tokens are added up by step, and in all."""
    server.answers(lambda request: Reply({"role": "assistant", "content": "ok"}, Usage(10, 2, 1)))
    chat(HI, step="page")
    chat(HI, step="page")
    chat(HI)

    assert chat.ledger.steps == {
        "page": Spent(calls=2, prompt=20, completion=4, cached=2),
        "chat": Spent(calls=1, prompt=10, completion=2, cached=1),
    }
    assert chat.ledger.total == Spent(calls=3, prompt=30, completion=6, cached=3)
    assert chat.ledger.total.tokens == 36


def test_ceiling_is_reached_before_a_call(server, chat_over, clock):
    """When the tokens of a period are spent nothing is sent any more, until the next period."""
    ledger = Ledger(24, period_seconds=3600, clock=clock)
    server.answers(lambda request: Reply({"role": "assistant", "content": "ok"}, Usage(10, 2)))
    chat, other = chat_over(server, ledger=ledger), chat_over(server, ledger=ledger)
    chat(HI)
    other(HI)

    with pytest.raises(CeilingReached, match="24 tokens are spent, 24 are allowed"):
        chat(HI, step="page")
    assert len(server.requests) == 2
    assert chat.paused == 0.0
    clock.now += 3600
    assert other(HI).text == "ok"
    assert ledger.total.tokens == 36


def test_ceiling_holds_for_threads_that_share_it(server, chat_over):
    """Chats in many threads pass a shared ceiling by no more than the calls that were under way."""
    ledger = Ledger(120)
    server.answers(lambda request: Reply({"role": "assistant", "content": "ok"}, Usage(10, 2)))
    refused = []

    def talk() -> None:
        chat = chat_over(server, ledger=ledger)
        try:
            while True:
                chat(HI)
        except CeilingReached as error:
            refused.append(error)

    threads = [threading.Thread(target=talk) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(refused) == 4
    assert ledger.total.calls == len(server.requests)
    assert ledger.total.tokens == 12 * len(server.requests)
    assert 10 <= len(server.requests) <= 13


# -- traces -------------------------------------------------------------------------------------------------------


def test_each_call_is_reported(server, chat_over):
    """`on_call` gets what a call was for, how often it was sent, how it ended and what it cost; never a text."""
    calls: list[Call] = []
    chat = chat_over(server, on_call=calls.append, tries=4)
    server.fails(Status(503), Status(429), Raw("{SECRET"))
    server.answers([Reply({"role": "assistant", "content": "SECRET"}, Usage(9, 4, 2), "length")])

    chat([{"role": "user", "content": "SECRET"}], step="page", attempt=1)
    server.fails(Status(401, message="SECRET"))
    with pytest.raises(ModelRefused):
        chat(HI)

    assert [(call.step, call.attempt, call.tries, call.error, call.status, call.finish) for call in calls] == [
        ("page", 1, 3, "Unusable", None, ""),
        ("page", 1, 4, None, None, "length"),
        ("chat", 0, 1, "AuthenticationError", 401, ""),
    ]
    assert calls[1].usage == Usage(9, 4, 2)
    assert "SECRET" not in repr(calls)


def test_listener_that_raises_breaks_nothing(server, chat_over):
    """What a listener raises does not reach who called."""
    server.answers(["ok"])

    def broken(call: Call) -> None:
        raise RuntimeError(call.step)

    assert chat_over(server, on_call=broken)(HI).text == "ok"


def test_threads_share_a_chat(server, chat):
    """Threads that call one chat at once each get the answer to their own question."""
    server.answers(lambda request: f"You said {request.text}")
    wrong = []

    def talk(name: int) -> None:
        for turn in range(5):
            text = f"{name}-{turn}"
            if chat([{"role": "user", "content": text}]).text != f"You said {text}":
                wrong.append(text)

    threads = [threading.Thread(target=talk, args=(name,)) for name in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert wrong == []
    assert chat.ledger.total.calls == 30
