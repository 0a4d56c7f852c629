"""memci.testing.llm.ModelServer: to a client it is a model's server."""

import gc
import socket
import threading
import urllib.request

import pytest
from openai import APIConnectionError, APIStatusError, AuthenticationError, OpenAI, RateLimitError
from pydantic import BaseModel

from memci.llm import Reply, Usage
from memci.testing.llm import Cut, Hang, ModelServer, Raw, Request, Reset, Status
from tests.hostile_answers import TITLES

HI = [{"role": "user", "content": "Hi"}]


class Title(BaseModel):
    title: str


@pytest.fixture
def server():
    with ModelServer() as server:
        yield server


@pytest.fixture
def client(server):
    with OpenAI(base_url=server.base_url, api_key="any", max_retries=0) as client:
        yield client


def test_answers_come_in_their_order(server, client):
    """Text, objects, pydantic values, messages and whole replies are answers; then there are none."""
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    server.answers(
        ["你好 🌍", {"title": "é"}, Title(title="x"), message, Reply({"content": "r"}, Usage(5, 2, 1), "length")]
    )

    def ask():
        return client.chat.completions.create(model="m", messages=HI)

    assert [ask().choices[0].message.content for _ in range(3)] == ["你好 🌍", '{"title": "é"}', '{"title":"x"}']
    assert ask().choices[0].message.tool_calls[0].function.name == "f"
    last = ask()
    assert (last.choices[0].finish_reason, last.usage.prompt_tokens, last.usage.completion_tokens) == ("length", 5, 2)
    assert last.usage.prompt_tokens_details.cached_tokens == 1
    with pytest.raises(APIStatusError, match="no more answers"):
        ask()


def test_function_answers_each_request(server, client):
    """A function is given what was sent, and says what is answered."""
    server.answers(lambda request: f"{request.text} {request.answer} {request.body['model']}")

    reply = client.chat.completions.create(model="m", messages=HI)

    assert reply.choices[0].message.content == "Hi  m"
    assert isinstance(server.requests[0], Request)
    assert server.requests[0].messages == HI
    assert server.requests[0].headers["authorization"] == "Bearer any"


def test_clients_own_parser_takes_the_answers(server, client):
    """The client's own structured output works over it."""
    server.answers([{"title": "Violins"}])

    reply = client.chat.completions.parse(model="m", messages=HI, response_format=Title)

    assert reply.choices[0].message.parsed == Title(title="Violins")
    assert server.requests[0].answer == "Title"


def test_stream_is_one_of_the_clients(server, client):
    """The client reads a stream to its end, with the price if it asked for it."""
    server.answers(["one two three"] * 2)
    priced = {"stream_options": {"include_usage": True}}

    events = list(client.chat.completions.create(model="m", messages=HI, stream=True, **priced))
    plain = list(client.chat.completions.create(model="m", messages=HI, stream=True))

    assert "".join(event.choices[0].delta.content or "" for event in events if event.choices) == "one two three"
    assert events[-1].usage.total_tokens > 0
    assert [event.usage for event in plain] == [None] * len(plain)


@pytest.mark.parametrize("given", ["float", "base64", None])
def test_embeddings_are_the_same_each_time(server, client, given):
    """Equal texts have equal vectors in each encoding; texts that share words are near."""
    more = {} if given is None else {"encoding_format": given}
    answer = client.embeddings.create(model="m", input=["a violin", "the violin", "a violin", "zeppelin"], **more)
    first, near, same, far = (each.embedding for each in answer.data)
    if given == "base64":
        assert first == same != far
        return

    def cosine(one, other):
        return sum(a * b for a, b in zip(one, other, strict=True))

    assert first == same
    assert len(first) == 64
    assert cosine(first, near) > cosine(first, far)


def test_models_are_listed(client):
    """The list of models is there."""
    assert [model.id for model in client.models.list()] == ["scripted"]


def test_statuses_and_headers_arrive(server, client):
    """A fault of a status arrives as the client's error, with its header, its code and its parameter."""
    server.fails(Status(429, retry_after=7, error="slow_down", parameter="messages", headers={"X-Mine": "1"}))

    with pytest.raises(RateLimitError) as raised:
        client.chat.completions.create(model="m", messages=HI)

    assert raised.value.response.headers["retry-after"] == "7"
    assert raised.value.response.headers["x-mine"] == "1"
    assert (raised.value.code, raised.value.param) == ("slow_down", "messages")


def test_key_is_checked_where_there_is_one():
    """A server with a key takes no other."""
    with ModelServer(["ok", "ok"], api_key="right") as server:
        for key in ("right", "wrong"):
            with OpenAI(base_url=server.base_url, api_key=key, max_retries=0) as client:
                if key == "right":
                    assert client.chat.completions.create(model="m", messages=HI)
                else:
                    with pytest.raises(AuthenticationError):
                        client.chat.completions.create(model="m", messages=HI)


@pytest.mark.parametrize("fault", [Reset(), Cut("Once upon a time")])
def test_connection_may_break(server, client, fault):
    """A reset, and an answer that stops in the middle, are failures of the connection."""
    server.fails(fault)
    server.answers(["ok"])

    with pytest.raises(APIConnectionError):
        client.chat.completions.create(model="m", messages=HI)

    assert client.chat.completions.create(model="m", messages=HI).choices[0].message.content == "ok"


def test_cut_stream_has_some_of_its_text(server, client):
    """A stream that is cut has so many characters of its text, and no end."""
    server.answers([Cut("Once upon a time", after=9)])
    text = ""

    with pytest.raises(Exception, match=r"(?i)connection"):  # of the client, or of what it is made of
        for event in client.chat.completions.create(model="m", messages=HI, stream=True):
            text += event.choices[0].delta.content or ""

    assert text == "Once upon"


def test_hang_is_released_by_an_event(server, client):
    """A request that hangs is answered when the test says so, by what is next then."""
    hang = server.hangs()
    server.answers(["ok"])
    answers = []
    asking = threading.Thread(
        target=lambda: answers.append(client.chat.completions.create(model="m", messages=HI)), daemon=True
    )
    asking.start()
    assert hang.reached.wait(10)
    assert answers == []

    hang.release()
    asking.join(10)

    assert answers[0].choices[0].message.content == "ok"


def test_raw_bytes_are_sent_as_they_are(server):
    """Whatever a test wants to send is sent: bytes, type and status."""
    server.fails(Raw(b"\xff{", "text/html", 203))
    request = urllib.request.Request(server.base_url + "/models")

    with urllib.request.urlopen(request) as answer:
        assert (answer.status, answer.headers["content-type"], answer.read()) == (203, "text/html", b"\xff{")


@pytest.mark.parametrize("text", TITLES, ids=range(len(TITLES)))
def test_hostile_text_arrives_as_it_is(server, client, text):
    """Whatever a model says can be said, character for character."""
    server.answers([text])

    assert client.chat.completions.create(model="m", messages=HI).choices[0].message.content == text


def test_requests_that_are_none_are_refused(server):
    """What is no JSON object, or asks for what is not there, is an error of the client."""
    for path, body in (("/chat/completions", b"{"), ("/chat/completions", b"[]"), ("/nothing", b"{}")):
        request = urllib.request.Request(server.base_url + path, data=body)
        with pytest.raises(urllib.error.HTTPError) as raised, urllib.request.urlopen(request):
            pass
        raised.value.close()
        assert raised.value.code in {400, 404}


def test_mistake_in_the_script_is_raised_at_the_end():
    """What a script's own function raises fails the test that it belongs to; the client sees status 500."""

    def script(request):
        raise KeyError("a mistake")

    with pytest.raises(KeyError, match="a mistake"), ModelServer(script) as server:
        client = OpenAI(base_url=server.base_url, api_key="x", max_retries=0)
        with client, pytest.raises(APIStatusError):
            client.chat.completions.create(model="m", messages=HI)


@pytest.mark.filterwarnings("error")
def test_nothing_is_left_behind():
    """After the server stopped there is no thread of it, nobody listens, and what hung was let go."""
    before = set(threading.enumerate())
    hang, blanks = Hang(), Hang(blanks=True)
    with ModelServer(["ok"]) as server:
        url = server.base_url
        port = int(url.split(":")[2].split("/")[0])
        idle = OpenAI(base_url=url, api_key="x", max_retries=0)
        idle.chat.completions.create(model="m", messages=HI)
        server.fails(hang, blanks)
        hung = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]
        for each in hung[:2]:
            each.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}")
        assert hang.reached.wait(10)
        assert blanks.reached.wait(10)

    assert set(threading.enumerate()) == before
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    for each in hung:
        each.close()
    idle.close()
    gc.collect()


def test_server_may_run_again():
    """A server that stopped can be entered again, and answers what is left of its script."""
    server = ModelServer(["one", "two"])
    texts = []
    for _ in range(2):
        with server, OpenAI(base_url=server.base_url, api_key="x", max_retries=0) as client:
            texts.append(client.chat.completions.create(model="m", messages=HI).choices[0].message.content)

    assert texts == ["one", "two"]
