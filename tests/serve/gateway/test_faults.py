"""A provider whose answer is cut, and a client whose headers don't come."""

import http.client
import json
import socket
import threading
from types import SimpleNamespace

import pytest
import uvicorn
from starlette.responses import Response, StreamingResponse

from memci.serve import connection
from memci.serve.connection import Connection

from .kit import FORMATS, filled
from .upstream import STREAMS, WHOLE, Said

PATHS = {"openai_chat": "chat/completions", "openai_responses": "responses", "anthropic": "messages"}


def post(url, path, body, *more):
    """Send *body* and return the status and the text of the answer, as far as it came."""
    place = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
    place.putrequest("POST", f"/v1/{path}")
    for name, value in (("content-type", "application/json"), *more):
        place.putheader(name, value)
    place.endheaders(body)
    answer = place.getresponse()
    try:
        return answer.status, answer.read().decode()
    except http.client.IncompleteRead as error:
        return answer.status, error.partial.decode()
    finally:
        place.close()


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("form", FORMATS)
def test_an_answer_that_is_cut_is_an_error_in_the_clients_form(provider, gateway, form, stream, long):
    """A whole one is 502; within a stream, the error is an event behind what came."""

    def script(_seen):
        whole = WHOLE[form](Said("A long answer. " * 9), "m", (1, 1))
        if not stream:
            return Response(json.dumps(whole)[:-9], media_type="application/json", headers={"content-length": "9999"})

        async def cut():
            for number, event in enumerate(STREAMS[form](whole)):
                if number == 2:
                    yield event[: len(event) // 2]
                    raise ConnectionError
                yield event

        return StreamingResponse(cut(), media_type="text/event-stream")

    provider.script, talk = script, SimpleNamespace(items=[])
    filled(talk, 30 if long else 1)
    talk.items.append({"role": "user", "content": "Hi"})
    listed = "input" if form == "openai_responses" else "messages"
    asked = json.dumps({"model": "gpt-4o", "stream": stream, "max_tokens": 9, listed: talk.items}).encode()
    status, text = post(gateway, PATHS[form], asked, ("content-length", str(len(asked))))

    assert status == (200 if stream else 502)
    last = text.rstrip().rpartition("data: ")[2] if stream else text
    assert "ended early" in json.loads(last)["error"]["message"]
    assert not stream or text.count("data: ") > 1


@pytest.mark.parametrize("events", [0, 2])
@pytest.mark.parametrize("form", FORMATS)
def test_a_stream_that_ends_before_its_last_event_is_an_error_in_the_clients_form(provider, gateway, form, events):
    """Also if the connection ends as it should: 502 if nothing came, else an event behind what came."""

    def script(_seen):
        whole = WHOLE[form](Said("A long answer. " * 9), "m", (1, 1))
        return StreamingResponse(iter([*STREAMS[form](whole)][:events]), media_type="text/event-stream")

    provider.script, talk = script, SimpleNamespace(items=[])
    filled(talk, 30)
    listed = "input" if form == "openai_responses" else "messages"
    body = {
        "model": "gpt-4o",
        "stream": True,
        "max_tokens": 9,
        listed: [*talk.items, {"role": "user", "content": "Hi"}],
    }
    asked = json.dumps(body).encode()
    status, text = post(gateway, PATHS[form], asked, ("content-length", str(len(asked))))

    assert status == (200 if events else 502)
    assert "ended early" in json.loads(text.rstrip().rpartition("data: ")[2])["error"]["message"]


def test_a_body_in_chunks_that_names_a_length_is_forwarded_in_chunks(provider, gateway):
    """The chunks count, as HTTP says."""
    body = b"5\r\nhello\r\n0\r\n\r\n"
    status, text = post(gateway, "files", body, ("content-length", "4"), ("transfer-encoding", "chunked"))
    assert (status, text) == (200, "/v1/files hello")


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nhost: a\r\nx-slow: "])
def test_a_connection_whose_headers_do_not_come_is_closed(monkeypatch, sent):
    """From its beginning or the first byte on; one that has sent a request is not."""

    async def hello(_scope, _receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"hi"})

    place = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(hello, http=Connection, lifespan="off", log_level="critical"))
    thread = threading.Thread(target=server.run, args=([place],), daemon=True)
    thread.start()
    if not sent:
        monkeypatch.setattr(connection, "HEADER_SECONDS", 0.05)
    with socket.create_connection(place.getsockname(), timeout=30) as client:
        if sent:
            client.sendall(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
            answered = b""
            while not answered.endswith(b"hi"):
                answered += client.recv(1) or pytest.fail("the connection ended before the answer")
            monkeypatch.setattr(connection, "HEADER_SECONDS", 0.05)
            client.sendall(sent)
        assert client.recv(4_096) == b""
    server.should_exit = True
    thread.join()
    place.close()
