"""What the provider gets: the client's bytes until something is archived, then memci's view, within its window."""

import json
from threading import Event
from types import SimpleNamespace

import anyio
import pytest

from memci import Context, Policy
from memci.serve.conversation import Caller, Conversation, Options
from memci.serve.gateway import app
from memci.serve.streams import stream_of
from memci.serve.wire import PATHS, ClientRequest
from memci.storage.ephemeral import EphemeralStorage

from .kit import FORMATS, LONG, SYSTEM, Talk, filled
from .upstream import Said, Served, chat


def spoken(talk, turns, first=0):
    for number in range(first, first + turns):
        talk.say(f"Question {number}. " + LONG.format(number))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("form", FORMATS)
def test_bytes_are_untouched_until_something_is_archived(provider, store, form, stream):
    """Each body arrives as the SDK wrote it; later ones fit the window, with memci's tools and notice, and stay so."""
    with Served(app(store, upstream=provider.url, window=6_000)) as url, Talk(form, url, stream=stream) as talk:
        spoken(talk, 32)

    same = [seen.body == body for seen, body in zip(provider.seen, talk.sent, strict=True)]
    first = same.index(False)
    assert first > 4 and not any(same[first:])
    for seen in provider.seen[first:]:
        assert seen.tools == ["read", "recall_page", "search_memory"]
        assert len(seen.body) < 6_000 * 4.5
        assert "Earlier parts of this conversation" in json.dumps([seen.json.get("system"), seen.json])
    assert seen.items[-1] == json.loads(talk.sent[-1])["input" if form == "openai_responses" else "messages"][-1]
    (info,) = Context.list(store)
    with Context.view(store, info.id) as context:
        assert context.report().messages == 63
        assert context.system == SYSTEM
        assert context.report().cost.calls == 32


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("form", FORMATS)
def test_a_stream_comes_as_it_comes(provider, gateway, form, long):
    """The client has the first event while the provider still holds back the second one."""
    provider.hold = Event()
    with Talk(form, gateway) as talk:
        if long:
            filled(talk)
        listed = "input" if form == "openai_responses" else "messages"
        talk.items.append({"role": "user", "content": "Hi"})
        body = {"model": "gpt-4o", "stream": True, "max_tokens": 9, listed: talk.items}
        path = {"openai_chat": "chat/completions", "openai_responses": "responses", "anthropic": "messages"}[form]
        with talk.client._client.stream("POST", f"{gateway}/v1/{path}", json=body) as answer:
            parts = answer.iter_raw()
            first = next(parts)
            assert first.endswith(b"\n\n") and not provider.hold.is_set()
            provider.hold.set()
            rest = b"".join(parts)
    assert answer.headers["x-memci-view"] == ("rewritten" if long else "untouched")
    assert rest.count(b"data: ") > 3


@pytest.mark.parametrize("form", FORMATS)
def test_a_message_larger_than_the_window_is_clipped_and_can_be_recalled(provider, store, form):
    """Nothing is archived yet, but the list does not fit: the model gets the message's head and tail, and the tools."""
    with Served(app(store, upstream=provider.url, window=6_000)) as url, Talk(form, url) as talk:
        talk.say("One line. " * 6_000)
    (seen,) = provider.seen
    assert len(seen.body) < 6_000 * 4.5
    assert "tokens elided: recall_page(index=1, entry=1)" in json.dumps(seen.items)
    assert "recall_page" in seen.tools


LAST = {"openai_chat": b"[DONE]", "openai_responses": b"response.completed", "anthropic": b"message_stop"}


async def left_at_the_end(application, form, body):
    """Ask *application* for a stream, and go away while its last event is sent."""
    gone, asked = anyio.Event(), [{"type": "http.request", "body": body, "more_body": False}]

    async def receive():
        if asked:
            return asked.pop()
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        if LAST[form] in message.get("body", b""):
            gone.set()
            await anyio.sleep_forever()

    path = next(path for path, each in PATHS.items() if each == form)
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"authorization", b"Bearer key-1")]
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1" + path.removeprefix("/v1"),
        "query_string": b"",
        "headers": headers,
    }
    async with application.router.lifespan_context(application) as state:
        await application({**scope, "state": state}, receive, send)


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("form", FORMATS)
def test_the_cost_of_a_call_is_stored_if_the_client_leaves_behind_the_last_event(provider, store, form, long):
    """What the provider counted is kept, also if nobody reads the end of the stream."""
    items = [{"role": "user", "content": "Hi"}]
    if long:
        talk = SimpleNamespace(items=[])
        filled(talk)
        items = talk.items + items
    listed = "input" if form == "openai_responses" else "messages"
    asked = {"model": "gpt-4o", "stream": True, "max_tokens": 9, listed: items}
    if form == "openai_chat":
        asked["stream_options"] = {"include_usage": True}

    anyio.run(left_at_the_end, app(store, upstream=provider.url, window=6_000), form, json.dumps(asked).encode())

    (info,) = Context.list(store)
    with Context.view(store, info.id) as context:
        assert context.report().cost.calls == 1


def opened(items, *, storage=None, model="unknown", window=None, policy=None, **fields):
    """The conversation of a request of Chat Completions, in memory."""
    raw = json.dumps({"model": model, "messages": items, **fields}).encode()
    request = ClientRequest("openai_chat", raw, raw)
    return Conversation(storage or EphemeralStorage(), Caller("key", None), Options(window, None, policy), request)


SUMMARY = "Your task is to create a detailed summary of the conversation so far."


@pytest.mark.parametrize(
    ("asked", "window", "reply"),
    [
        ({"model": "gpt-4o", "max_tokens": 16_000}, 128_000, 16_000),
        ({"model": "gpt-4o", "max_tokens": 100_000, "window": 200_000}, 128_000, 64_000),
        ({"model": "gpt-4o", "max_tokens": 9_000, "window": 6_000}, 6_000, 0),  # it fits into the model's own window
        ({"model": "gpt-4o", "max_tokens": 9_000, "window": 126_000}, 126_000, 7_000),
        ({"max_tokens": 64_000, "window": 6_000}, 6_000, 1_500),
        ({"max_tokens": 500, "max_completion_tokens": 700, "window": 6_000}, 6_000, 700),
        ({"model": "gpt-4", "text": SUMMARY + "x" * 20_000, "window": 6_000}, 8_192, None),
        ({"text": SUMMARY + " " * 20_000, "window": 6_000}, 20_136, None),
    ],
)
def test_the_room_of_a_request(asked, window, reply):
    """The smaller one of both windows, and of the reply what the model's own window has not beyond that."""
    made = opened([{"role": "user", "content": asked.pop("text", "Hi")}], **asked)
    assert made.context.window == window
    assert reply is None or made.context.reply == reply
    made.close()


def test_more_than_moves_in_a_list_is_a_fork():
    """Files and a question are some ten messages; each is taken back by itself."""
    storage = EphemeralStorage()
    first, *others = [{"role": "user", "content": f"Text {at}."} for at in range(66)]
    for items in ([first, *others], [first, {"role": "assistant", "content": "Yes."}, others[0]]):
        opened(items, storage=storage, window=6_000).close()
    assert len([*storage.contexts()]) == 2


def test_a_further_round_goes_on_behind_others():
    """Another request of the same list has stored its own messages meanwhile; calls of memci's tools are counted."""
    storage, talk = EphemeralStorage(), SimpleNamespace(items=[])
    filled(talk)
    made = opened([*talk.items, {"role": "user", "content": "Hi"}], storage=storage, window=6_000)
    with Context.open(storage, made.context.id) as other:
        other.append_turn({"role": "assistant", "content": "Hello!"})
    assert b"Hi" in made.next_request(last=False)
    reply = stream_of("openai_chat", made.own, {})
    reply.begin(final=False)
    reply.take(chat(Said("", (("m1", "recall_page", {"index": 3}), ("c1", "read", {}))), "m", (1, 1)))
    assert made.keep(reply, last=False) is None
    assert made.called == {"recall_page": 1}
    made.close()


def test_results_are_shown_whole_where_the_model_has_no_tool_to_read_on():
    """A client with functions of old gets no tools of memci's."""
    talk = SimpleNamespace(items=[])
    filled(talk)
    call = {"role": "assistant", "content": None, "function_call": {"name": "read", "arguments": "{}"}}
    bulk = "".join(f"src/part_{at}.py: def read_part_{at}(path)\n" for at in range(60))
    new = [{"role": "user", "content": "Read."}, call, {"role": "function", "name": "read", "content": bulk}]
    for functions in ([], [{"name": "read"}]):
        given = {"window": 8_000, "policy": Policy(preset="economy", gate=400), "functions": functions}
        given["storage"] = EphemeralStorage()
        opened(talk.items, **given).close()
        made = opened(talk.items + new, **given)
        assert (b"read_part_30(" in made.sent) == bool(functions)
        made.close()


@pytest.mark.parametrize("form", FORMATS)
def test_large_results_become_digests_after_the_first_compaction(provider, store, form):
    """Until then a body goes as it came; from then on new bulk is shown as a digest, and stays so."""
    bulk = "".join(f"src/part_{at}.py: def read_part_{at}(path)\n" for at in range(200))
    served = app(store, upstream=provider.url, window=8_000, policy=Policy(preset="economy", gate=400))

    def script(seen):
        asked = "Read " in json.dumps(seen.items[-1])
        return Said("", ((f"c{len(provider.seen)}", "read", {}),)) if asked else Said("Done.")

    provider.script = script
    with Served(served) as url, Talk(form, url) as talk:
        talk.say("Read part 1.")
        talk.give(talk.calls[0][0], bulk)
        early = provider.seen[-1]
        (info,) = Context.list(store)
        with Context.view(store, info.id) as context:
            assert context.report().gated_tokens == 0
        filled(talk)
        spoken(talk, 2, first=40)
        talk.say("Read part 2.")
        talk.give(talk.calls[0][0], bulk)
        late = provider.seen[-1]
        spoken(talk, 1, first=50)
        after = provider.seen[-1]
        metrics = talk.client._client.get(f"{url}/metrics").text

    assert early.body == talk.sent[1]
    assert "read_part_99(" not in json.dumps(late.items[-1]) and "recall_page(index=" in json.dumps(late.items[-1])
    assert after.items[: len(late.items)] == late.items
    assert "memci_gateway_gate_tokens_total" in metrics
