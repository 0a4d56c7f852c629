"""What the provider gets: the client's bytes until something is archived, then memci's view, within its window."""

import json

import pytest

from memci import Context
from memci.serve.gateway import app

from .kit import FORMATS, SYSTEM, Talk
from .upstream import Served

LONG = "The depot of line {0} opens at {0} and has {0} tracks. " * 12


def spoken(talk, turns, first=0):
    for number in range(first, first + turns):
        talk.say(f"Question {number}. " + LONG.format(number))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("form", FORMATS)
def test_bytes_are_untouched_until_something_is_archived(provider, store, form, stream):
    """Each body arrives as the SDK wrote it; later ones fit the window, with memci's tools and notice, and stay so."""
    sent = []
    with Served(app(store, upstream=provider.url, window=6_000)) as url, Talk(form, url, stream=stream) as talk:
        talk.client._client.event_hooks["request"].append(lambda request: sent.append(request.read()))
        spoken(talk, 32)

    same = [seen.body == body for seen, body in zip(provider.seen, sent, strict=True)]
    first = same.index(False)
    assert first > 4 and not any(same[first:])
    for seen in provider.seen[first:]:
        assert seen.tools == ["read", "recall_page", "search_memory"]
        assert len(seen.body) < 6_000 * 4.5
        assert "Earlier parts of this conversation" in json.dumps([seen.json.get("system"), seen.json])
    assert seen.items[-1] == json.loads(sent[-1])["input" if form == "openai_responses" else "messages"][-1]
    (info,) = Context.list(store)
    with Context.view(store, info.id) as context:
        assert context.report().messages == 63
        assert context.system == SYSTEM
        assert context.report().cost.calls == 32
