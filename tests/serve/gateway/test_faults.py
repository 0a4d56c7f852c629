"""A provider whose answer is cut, an error or compressed, and a client whose headers don't come."""

import gzip
import http.client
import json
import socket
import struct
import sys
import threading
import zlib
from types import SimpleNamespace

import httpx2
import pytest
import uvicorn
from starlette.responses import JSONResponse, Response, StreamingResponse

from memci.serve import connection
from memci.serve.connection import Connection
from memci.serve.gateway import app

from .kit import FORMATS, filled
from .upstream import STREAMS, WHOLE, Said, Served

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


def asked(form, long, *, stream=False):
    """Return the body of a request, and the header that says its length; a *long* one is rewritten."""
    talk = SimpleNamespace(items=[])
    filled(talk, 30 if long else 1)
    talk.items.append({"role": "user", "content": "Hi"})
    listed = "input" if form == "openai_responses" else "messages"
    body = json.dumps({"model": "gpt-4o", "stream": stream, "max_tokens": 99, listed: talk.items}).encode()
    return body, ("content-length", str(len(body)))


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

    provider.script = script
    status, text = post(gateway, PATHS[form], *asked(form, long, stream=stream))

    assert status == (200 if stream else 502)
    last = text.rstrip().rpartition("data: ")[2] if stream else text
    assert "ended early" in json.loads(last)["error"]["message"]
    assert not stream or text.count("data: ") > 1
    for line in text.splitlines() if stream else ():  # no part of the event that was cut is left for the client to read
        assert not line.startswith("data: ") or json.loads(line[6:])


ERRORS = {
    "openai_chat": b'data: {"error": {"message": "boom", "type": "server_error"}}\n\n',
    "openai_responses": b'event: error\ndata: {"type": "error", "code": "server_error", "message": "boom"}\n\n',
    "anthropic": b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": "boom"}}\n\n',
}


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("form", FORMATS)
def test_an_error_that_the_provider_says_within_a_stream_is_the_only_one(provider, gateway, form, long):
    """No error of the gateway follows it."""

    def script(_seen):
        whole = WHOLE[form](Said("A long answer. " * 9), "m", (1, 1))
        return StreamingResponse(iter([*[*STREAMS[form](whole)][:2], ERRORS[form]]), media_type="text/event-stream")

    provider.script = script
    status, text = post(gateway, PATHS[form], *asked(form, long, stream=True))
    assert (status, text.count("boom"), text.count("error:") + text.count("memci")) == (200, 1, 0)
    assert text.endswith("}\n\n")


@pytest.mark.parametrize("form", FORMATS)
def test_a_reply_that_is_an_error_comes_as_it_came(provider, gateway, form):
    """Some providers send one with the status 200; it may come behind a call of memci's tools, too."""
    body = b'{"error": {"message": "boom", "code": 500}}'
    call = ("m1", "recall_page", {"index": 2})
    for first in (None, Said("", (call,))):
        answers = iter([*([first] if first else []), Response(body, media_type="application/json")])
        provider.script = lambda _seen, answers=answers: next(answers)
        assert post(gateway, PATHS[form], *asked(form, long=True)) == (200, body.decode())


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("form", FORMATS)
def test_an_answer_in_an_unknown_coding_keeps_its_name(provider, gateway, form, long):
    """Its bytes come as they came, so the client must be told how to read them; what is decoded has no name."""
    for coding, body in (("x-unknown", b"\x0b\x02fake"), ("gzip", gzip.compress(b"{}"))):
        headers = {"content-encoding": coding, "content-type": "application/json"}
        provider.script = lambda _seen, body=body, headers=headers: Response(body, headers=headers)
        request = httpx2.Request("POST", f"{gateway}/v1/{PATHS[form]}", content=asked(form, long)[0])
        with httpx2.Client(timeout=60) as client:
            answer = client.send(request, stream=True)
            raw = b"".join(answer.iter_raw())
        told = answer.headers.get("content-encoding")
        assert (told, raw) == (("x-unknown", body) if coding == "x-unknown" else (None, b"{}"))


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
@pytest.mark.parametrize("form", FORMATS)
def test_a_compressed_request_is_managed(provider, gateway, form, coding):
    """It is untouched until something is archived; what memci writes is not compressed."""
    for long, view in ((False, b"untouched"), (True, b"rewritten")):
        plain = asked(form, long)[0]
        body = gzip.compress(plain) if coding == "gzip" else zlib.compress(plain)
        headers = {"content-encoding": coding, "content-type": "application/json"}
        answer = httpx2.post(f"{gateway}/v1/{PATHS[form]}", content=body, headers=headers, timeout=60)
        seen = provider.seen[-1]
        assert answer.headers["x-memci-view"].encode() == view
        if long:
            assert "content-encoding" not in seen.headers
            assert seen.tools == ["recall_page", "search_memory"]
        else:
            assert (seen.headers["content-encoding"], seen.body) == (coding, body)


def test_a_request_in_zstd_is_managed_where_python_reads_it(provider, gateway, monkeypatch):
    """Or where backports.zstd is installed; here a module of the same names stands for both."""
    reads = SimpleNamespace(ZstdDecompressor=lambda: zlib.decompressobj(31), ZstdError=zlib.error)
    monkeypatch.setitem(sys.modules, "compression", None)
    monkeypatch.setitem(sys.modules, "backports", SimpleNamespace(zstd=reads))
    answer = httpx2.post(
        f"{gateway}/v1/messages",
        content=gzip.compress(asked("anthropic", long=True)[0]),
        headers={"content-encoding": "zstd", "content-type": "application/json"},
        timeout=60,
    )
    assert answer.headers["x-memci-view"] == "rewritten"
    assert "content-encoding" not in provider.seen[-1].headers


def test_a_compressed_request_that_memci_cannot_read_is_forwarded(provider, store, monkeypatch):
    """Damaged, cut, or larger than memci reads when it is decompressed, or of another coding."""
    provider.script = None  # the provider can't read them either
    for name in ("compression", "backports"):
        monkeypatch.setitem(sys.modules, name, None)
    with Served(app(store, upstream=provider.url, window=6_000, max_body=20_000)) as url:
        for body in (b"no gzip", gzip.compress(b"{}")[:-4], gzip.compress(b" " * 30_000), b"zstd"):
            headers = {"content-encoding": "zstd" if body == b"zstd" else "gzip"}
            answer = httpx2.post(f"{url}/v1/chat/completions", content=body, headers=headers, timeout=60)
            assert (answer.headers["x-memci-view"], provider.seen[-1].body) == ("passed", body)


@pytest.mark.parametrize("events", [0, 2])
@pytest.mark.parametrize("form", FORMATS)
def test_a_stream_that_ends_before_its_last_event_is_an_error_in_the_clients_form(provider, gateway, form, events):
    """Also if the connection ends as it should: 502 if nothing came, else an event behind what came."""

    def script(_seen):
        whole = WHOLE[form](Said("A long answer. " * 9), "m", (1, 1))
        return StreamingResponse(iter([*STREAMS[form](whole)][:events]), media_type="text/event-stream")

    provider.script = script
    status, text = post(gateway, PATHS[form], *asked(form, long=True, stream=True))

    assert status == (200 if events else 502)
    assert "ended early" in json.loads(text.rstrip().rpartition("data: ")[2])["error"]["message"]


def test_a_body_in_chunks_that_names_a_length_is_forwarded_in_chunks(provider, gateway):
    """The chunks count, as HTTP says."""
    body = b"5\r\nhello\r\n0\r\n\r\n"
    status, text = post(gateway, "files", body, ("content-length", "4"), ("transfer-encoding", "chunked"))
    assert (status, text) == (200, "/v1/files hello")


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("form", FORMATS)
def test_nothing_is_sent_to_a_client_that_went(provider, gateway, form, long, caplog):
    """asyncio would warn of each part, and a provider may send many at once."""

    def script(_seen):
        raw = b"".join(STREAMS[form](WHOLE[form](Said("A long answer. " * 9_000), "m", (1, 1))))
        return StreamingResponse(iter([raw]), media_type="text/event-stream")

    provider.script = script
    body, length = asked(form, long, stream=True)
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", int(gateway.rpartition(":")[2])), timeout=30) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # it goes at once
            head = f"POST /v1/{PATHS[form]} HTTP/1.1\r\nhost: localhost\r\n{': '.join(length)}\r\n\r\n"
            client.sendall(head.encode() + body)
            client.recv(100)
        assert post(gateway, PATHS[form], *asked(form, False))[0] == 200
    assert [each.message for each in caplog.records if each.name == "asyncio"] == []


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


@pytest.mark.parametrize("status", [200, 429])
@pytest.mark.parametrize("form", FORMATS)
def test_a_stream_says_why_a_later_step_failed(provider, gateway, form, status):
    """The provider's own words, as an event behind what came, and of the kind that the status has."""
    answers = iter([Said("Let me see. ", (("m1", "recall_page", {"index": 2}),))])
    failed = JSONResponse({"error": {"message": "slow down", "type": "busy"}}, status)
    provider.script = lambda _seen: next(answers, failed)
    told, text = post(gateway, PATHS[form], *asked(form, long=True, stream=True))
    error = json.loads(text.rstrip().rpartition("data: ")[2])["error"]
    assert (told, text.count("slow down")) == (200, 2 if form == "openai_responses" else 1)
    assert error["message"] == f"the provider answered {status} to a further step: busy: slow down"
    assert error["type"] in ({"rate_limit_error"} if status == 429 else {"server_error", "api_error"})
