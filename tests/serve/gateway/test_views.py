"""What the provider gets: the client's bytes until something is archived, then memci's view, within its window."""

import json
from threading import Event

import pytest

from memci import Context
from memci.serve.gateway import app

from .kit import FORMATS, LONG, SYSTEM, Talk, filled
from .upstream import Served


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
