"""The web application of docs/servers.md, served over HTTP to many clients at once."""

import http.client
import json
import re
import socket
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Thread

import pytest

from memci import Context
from memci.testing.llm.server import ModelServer

pytest.importorskip("starlette")
uvicorn = pytest.importorskip("uvicorn")

DOCUMENT = Path(__file__).parents[1] / "docs" / "servers.md"
CLIENTS, CONVERSATIONS, TURNS = 20, 5, 2
LONGEST_SECONDS = 60


def application():
    """Return the application that the document shows."""
    (code,) = re.findall(r"```python \(not run: a test serves it\)\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    names = {"__name__": "app"}
    exec(compile(code, str(DOCUMENT), "exec"), names)
    return names["app"]


def reply_to(request):
    return f"Re: {request.messages[-1]['content']}"


@pytest.fixture
def model():
    """A server of a model whose replies name the message that they answer."""
    with ModelServer(reply_to) as started:
        yield started


@pytest.fixture
def port(model, tmp_path, monkeypatch):
    """Serve the application, and return its port."""
    with socket.socket() as listening:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("OPENAI_BASE_URL", model.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        listening.bind(("127.0.0.1", 0))
        listening.listen(4 * CLIENTS)
        server = uvicorn.Server(uvicorn.Config(application(), log_level="critical", http="h11", ws="none"))
        thread = Thread(target=server.run, args=([listening],))
        thread.start()
        yield listening.getsockname()[1]
        server.should_exit = True
        thread.join()


def asked(port, conversation, text=None, key=None):
    """Return status and answer of one request: for what was said, or to say *text*."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LONGEST_SECONDS)
    headers = {"content-type": "application/json", "idempotency-key": key or "", "user": "ada"}
    body = None if text is None else json.dumps({"text": text})
    connection.request("GET" if text is None else "POST", f"/conversations/{conversation}", body, headers)
    answer = connection.getresponse()
    status, found = answer.status, json.loads(answer.read())
    connection.close()
    return status, found


def told(messages):
    """Return (message, reply) of each pair in *messages*; whatever is no pair is shown as it is."""
    said = [(each["role"], each["content"]) for each in messages]
    pairs = list(zip(said[::2], said[1::2], strict=True))
    assert all(asker == "user" and answerer == "assistant" for (asker, _), (answerer, _) in pairs)
    return [(text, reply) for (_, text), (_, reply) in pairs]


def test_many_clients_at_once_are_each_answered_once_and_in_order(port):
    """20 clients talk in 5 conversations and press each button twice: each message and reply is stored once, in order.

    No request fails, and the second one of a key gets the reply of the first.
    """
    began = Barrier(CLIENTS)

    def client(number):
        statuses, texts = [], [f"client {number} turn {turn}" for turn in range(TURNS)]
        began.wait()
        for text in texts:
            with ThreadPoolExecutor(2) as buttons:
                both = list(buttons.map(lambda _, text=text: asked(port, number % CONVERSATIONS, text, text), range(2)))
            assert [found for _, found in both] == [{"reply": f"Re: {text}"}] * 2
            statuses += [status for status, _ in both]
        return texts, statuses

    with ThreadPoolExecutor(CLIENTS) as clients:
        done = list(clients.map(client, range(CLIENTS)))

    stored = {number: told(asked(port, number)[1]) for number in range(CONVERSATIONS)}
    assert Counter(status for _, statuses in done for status in statuses) == {200: 2 * CLIENTS * TURNS}
    for number, (texts, _) in enumerate(done):
        pairs = stored[number % CONVERSATIONS]
        assert [pair for pair in pairs if pair[0] in texts] == [(text, f"Re: {text}") for text in texts]
    assert sum(map(len, stored.values())) == CLIENTS * TURNS


def test_a_request_that_met_another_writer_is_repeated(port, model):
    """A writer without a lock is faster while the model answers: 409; the same request again is answered, stored once.

    A key that comes with another message is refused, and so is a message that is none.
    """
    note = {"role": "user", "content": "The gate has changed."}

    def interrupted(request):
        model.answers(reply_to)
        with Context.open("agents.db", "alice") as context:
            context.append_turn(note, opens_page=False)
        return reply_to(request)

    model.answers(interrupted)

    answers = [asked(port, "alice", text, "1") for text in ("Which gate?", "Which gate?", "Which gate?", "Another?")]

    assert [status for status, _ in answers] == [409, 200, 200, 422]
    assert answers[1][1] == answers[2][1] == {"reply": "Re: Which gate?"}
    assert [each["content"] for each in asked(port, "alice")[1]] == [
        "The gate has changed.",
        "Which gate?",
        "Re: Which gate?",
    ]
    assert asked(port, "alice", {"no": "text"}, "2")[0] == 422
