"""Who may come in, what is passed on as it is, and how errors look to the client."""

import http.client
import json
import socket
import threading
from operator import attrgetter
from unittest.mock import Mock

import anthropic
import openai
import pytest
from starlette.responses import JSONResponse, Response

from memci.errors import InvalidSetting, StorageBusy
from memci.serve import gateway as serving
from memci.serve.gateway import app

from .kit import FORMATS, Talk, filled
from .upstream import Served


def asked(url, method, path, body=None, **headers):
    """Return status, headers and body of one request."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
    connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    found = answer.status, dict(answer.getheaders()), answer.read()
    connection.close()
    return found


def test_only_this_machine_comes_in(provider, gateway):
    """A Host or an Origin of elsewhere is refused: no web page reaches the gateway by a name of its own."""
    assert asked(gateway, "GET", "/v1/models")[0] == 200
    assert asked(gateway, "GET", "/v1/models", host="evil.example")[0] == 403
    assert asked(gateway, "GET", "/metrics", host="evil.example")[0] == 403
    assert asked(gateway, "POST", "/v1/messages", b"{}", origin="https://evil.example")[0] == 403
    assert asked(gateway, "GET", "/v1/models", origin="null")[0] == 403
    assert asked(gateway, "GET", "/v1/models", origin="http://localhost:3000")[0] == 200
    assert len(provider.seen) == 2


def test_a_token_is_wanted_where_it_is_set(provider, store):
    """Without it nothing but the health is answered; it is not passed on. Named hosts and formats are, too."""
    settings = {"token": "secret", "hosts": ["Gate.example"], "formats": ["openai_chat"]}
    with Served(app(store, upstream=provider.url, window=6_000, **settings)) as url:
        with Talk("anthropic", url) as talk, pytest.raises(anthropic.AuthenticationError, match="x-memci-token"):
            talk.say("Hi")
        with Talk("openai_chat", url, **{"x-memci-token": "secret"}) as talk:
            assert talk.say("Hi") == "Hello!"
        assert asked(url, "GET", "/healthz")[0] == 200
        assert asked(url, "GET", "/metrics", x_memci_token="wrong")[0] == 401
        status, _, text = asked(url, "GET", "/metrics", x_memci_token="secret", host="gate.example:80")
        assert status == 200
        assert b'memci_gateway_requests_total{format="openai_chat",view="untouched"} 1' in text
        assert b"memci_gateway_added_seconds_count 1" in text
        given = {"x_memci_token": "secret", "origin": "https://gate.example"}
        assert asked(url, "POST", "/x/v1/messages", b'{"messages": [{}]}', **given)[1]["x-memci-view"] == "passed"
    assert [seen.headers.get("x-memci-token") for seen in provider.seen] == [None, None]


def test_everything_else_is_passed_on_as_it_comes(provider, gateway, caplog):
    """Path, query, method, body and headers, both ways; also lists that are elsewhere, or that memci can't read."""
    caplog.set_level("INFO")
    own = {"anthropic_beta": "new-1", "x_unknown": "1", "te": "trailers"}
    status, headers, body = asked(gateway, "POST", "/v1/files?purpose=x%2Fy&key=secret", b"\0\1 bytes", **own)
    assert (status, body, headers["x-request-id"]) == (200, b"/v1/files \0\1 bytes", "r1")
    assert headers["x-memci-view"] == "passed"
    assert asked(gateway, "GET", "/v1/models")[1]["x-memci-view"] == "passed"
    got = provider.seen[0].headers
    assert (got["anthropic-beta"], got["x-unknown"], "te" in got) == ("new-1", "1", False)
    assert got["host"] == provider.url.removeprefix("http://")
    assert asked(gateway, "POST", "/x/v1/messages", b'{"messages": [{"role": "secret", "content": "Hi"}]}')[0] == 200
    assert "secret" not in caplog.text
    for body in (
        b'{"input": "Hi", "previous_response_id": "resp_0"}',
        b'{"input": [{"role": "user", "content": "Hi"}], "n": 2}',
        b'{"input": [{"type": "item_reference", "id": "msg_0"}, {"role": "user", "content": "Hi"}]}',
        b'{"input": [{"id": "msg_0"}, {"role": "user", "content": "Hi"}]}',
    ):
        status, headers, _ = asked(gateway, "POST", "/v1/responses", body, content_type="application/json")
        assert (status, headers["x-memci-view"], provider.seen[-1].body) == (200, "passed", body)


HI = {"role": "user", "content": "Hi"}


@pytest.mark.parametrize("path", ["chat/completions", "responses", "messages"])
@pytest.mark.parametrize(
    ("view", "odd"),
    [
        ("passed", {"n": [1]}),
        ("passed", {"messages": [HI, {"role": [], "content": "x"}]}),
        ("passed", {"messages": [{"role": {}}]}),
        ("untouched", {"system": "\ud800", "instructions": "\ud800"}),
        ("untouched", {"messages": [HI, {"role": "assistant", "content": "x", "output": 1}]}),
    ],
)
def test_a_request_of_any_form_is_left_to_the_provider(provider, gateway, path, view, odd):
    """A value of a wrong type is no error of the gateway: the provider says what it thinks of it."""
    listed = "input" if path == "responses" else "messages"
    plain = {"model": "gpt-4o", "messages": [HI, {"role": "assistant", "content": "Hello!"}]}
    for wanted, body in (("untouched", plain), (view, {**plain, **odd})):
        raw = json.dumps({**body, listed: body["messages"]}).encode()
        status, headers, _ = asked(gateway, "POST", f"/x/v1/{path}", raw)
        assert (status, headers.get("x-memci-view"), provider.seen[-1].body) == (200, wanted, raw)


@pytest.mark.parametrize("path", ["chat/completions", "responses", "messages"])
def test_a_long_request_of_any_form_is_left_to_the_provider(provider, gateway, path):
    """Also where memci would write it anew: a prompt that is no text, a call without a name."""
    long = [{"role": role, "content": 900 * f"{role} "} for role in 9 * ("user", "assistant")]
    items = [*long, {**HI, "function_call": {}}, HI]
    body = {"model": "gpt-4o", "messages": items, "input": items, "system": 1, "instructions": 1}
    status, headers, _ = asked(gateway, "POST", f"/x/v1/{path}", json.dumps(body).encode())
    assert (status, headers.get("x-memci-view")) == (200, "rewritten" if path == "chat/completions" else "passed")


@pytest.mark.parametrize("form", FORMATS)
def test_unknown_fields_and_betas_stay_when_the_list_is_rewritten(provider, gateway, form):
    """The rest of the body comes as the client sent it, and so do its headers."""
    with Talk(form, gateway, **{"anthropic-beta": "context-1m"}) as talk:
        filled(talk)
        where = {"openai_chat": "chat.completions", "openai_responses": "responses", "anthropic": "messages"}
        create = attrgetter(where[form])(talk.client).create
        listed = "input" if form == "openai_responses" else "messages"
        more = {"max_tokens": 100} if form == "anthropic" else {}
        asked_ = {listed: [*talk.items, {"role": "user", "content": "Hi"}], "model": "gpt-4o"}
        create(**asked_, **more, extra_body={"brand_new": {"a": [1.5, None, "ü"]}, "temperature": 0.125})

    seen = provider.seen[-1]
    assert seen.tools == ["recall_page", "search_memory"]
    assert (seen.json["brand_new"], seen.json["temperature"]) == ({"a": [1.5, None, "ü"]}, 0.125)
    assert seen.headers["anthropic-beta"] == "context-1m"


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("long", [False, True])
def test_errors_of_the_provider_come_as_they_came(provider, gateway, form, long):
    """Status, body and headers: the SDK raises what it would raise without the gateway."""
    body = {"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}
    provider.script = lambda seen: JSONResponse(body, 429, {"retry-after": "7"})
    library = anthropic if form == "anthropic" else openai
    with Talk(form, gateway, stream=True) as talk, pytest.raises(library.RateLimitError) as caught:
        if long:
            filled(talk)
        talk.say("Hi")
    assert caught.value.response.headers["retry-after"] == "7"
    assert json.loads(caught.value.response.content) == body


@pytest.mark.parametrize("form", FORMATS)
def test_errors_of_the_gateway_have_the_form_of_the_format(provider, store, form):
    """A provider that is not there, a body that is too large, a window that is not known, or that is too small."""
    library = anthropic if form == "anthropic" else openai
    with (
        Served(app(store, upstream="http://127.0.0.1:1", window=6_000, max_body=20_000)) as url,
        Talk(form, url) as talk,
    ):
        with pytest.raises(library.InternalServerError, match="can't be reached"):
            talk.say("Hi")
        with pytest.raises(library.APIStatusError, match="larger than 20,000") as caught:
            talk.say("x" * 20_000)
        assert caught.value.status_code == 413
        assert asked(url, "POST", "/v1/messages", b" " * 20_000)[0] == 502
    with Served(app(store, upstream=provider.url)) as url:
        with Talk(form, url, model="mystery") as talk, pytest.raises(library.BadRequestError, match="--window"):
            talk.say("Hi")
        with Talk(form, url, model="gpt-4o") as talk:
            assert talk.say("Hi") == "Hello!"
    with Served(app(store, upstream=provider.url, window=3_000)) as url, Talk(form, url) as talk:
        talk.tools = json.loads(
            json.dumps(talk.tools).replace("Read a file.", "Read a file, " + "word by word, " * 800)
        )
        with pytest.raises(library.BadRequestError, match=r"tools [23],\d{3} .* larger window.*memci serve: --window"):
            talk.say("Hi")


def test_errors_of_the_gateway_for_what_is_passed_have_the_clients_form(provider, gateway):
    """Calls of Gemini are passed on, and others of Anthropic's; only a refusal is the gateway's own."""
    path = "/v1beta/models/gemini-2.5-pro:generateContent"
    assert asked(gateway, "POST", path, b"{}")[0] == 200
    status, _, body = asked(gateway, "POST", path, b"{}", host="evil.example")
    error = json.loads(body)["error"]
    assert (status, error["code"], error["status"]) == (403, 403, "PERMISSION_DENIED")
    body = asked(gateway, "GET", "/v1/models", host="evil.example", anthropic_version="2023-06-01")[2]
    assert json.loads(body)["error"]["type"] == "permission_error"


def test_a_store_that_is_busy_is_the_servers_fault(gateway, monkeypatch):
    """Clients repeat what is answered with 503, and not what is answered with 400."""
    monkeypatch.setattr(serving, "Conversation", Mock(side_effect=StorageBusy("locked")))
    body = b'{"model": "gpt-4o", "messages": [{"role": "user", "content": "Hi"}]}'
    assert asked(gateway, "POST", "/v1/chat/completions", body)[0] == 503


def test_a_provider_that_does_not_answer_is_not_called_unreachable(store):
    """It accepts the connection and closes it."""
    with socket.create_server(("127.0.0.1", 0)) as place:
        closing = threading.Thread(target=lambda: [place.accept()[0].close() for _ in range(1)], daemon=True)
        closing.start()
        with Served(app(store, upstream=f"http://127.0.0.1:{place.getsockname()[1]}", window=6_000)) as url:
            status, _, body = asked(url, "GET", "/v1/models")
        closing.join()
    assert (status, b"gave no answer" in body) == (502, True)


def test_what_makes_no_sense_is_said_at_the_start(store):
    """An upstream that is none, a format that is none, an empty token, behind which anybody could name any user."""
    local = {"upstream": "http://localhost"}
    for wrong in ({"upstream": "api.openai.com"}, {**local, "formats": ["gemini"]}, {**local, "token": ""}):
        with pytest.raises(InvalidSetting):
            app(store, **wrong)


def test_a_broken_answer_is_broken_for_the_client(provider, gateway):
    """What is no JSON or no event comes as it came."""
    provider.script = lambda seen: Response("<html>", media_type="text/html")
    raw = json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": "Hi"}]}).encode()
    assert asked(gateway, "POST", "/v1/chat/completions", raw)[2] == b"<html>"
    long = [{"role": "user", "content": f"Question {n}. " + "words " * 300} for n in range(30)]
    raw = json.dumps({"model": "gpt-4o", "messages": long}).encode()
    assert asked(gateway, "POST", "/v1/chat/completions", raw)[2] == b"<html>"
