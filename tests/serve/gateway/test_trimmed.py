"""Lists that a client trims at their front: they go on in their conversation, which has what was trimmed."""

import json
from contextlib import closing
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.responses import JSONResponse

from memci import Context, EphemeralStorage
from memci.formats.identity import identity
from memci.memory import TieredMemory
from memci.serve.conversation import Caller, Conversation, Options
from memci.serve.gateway import app
from memci.serve.trimmed import Recent
from memci.serve.wire import ClientRequest

from .kit import FORMATS, LONG, Talk
from .upstream import Said, Served

KEPT = 8  # items that the client keeps


def answers(provider):
    """Let *provider* answer each question in other words, and search if it is told to and can."""

    def script(seen):
        if seen.text == "Search!" and b"search_memory" in seen.body:
            return Said("", (("m1", "search_memory", {"query": "bank PIN"}),))
        return Said("I know now." if seen.results else f"Answer {len(provider.seen)}.")

    provider.script = script


def trimmed(talk):
    """Trim the list of *talk* at its front: it begins with a message of the user."""
    talk.items = talk.items[-KEPT:]
    return talk


def texts(context):
    return [str(message["content"]) for message in context.messages() if message["role"] == "user"]


@pytest.mark.parametrize("form", FORMATS)
def test_a_list_that_moves_on_is_one_conversation_and_goes_as_it_came(provider, store, form):
    """Also behind a restart, and while another conversation of the same user goes on; what was trimmed is stored."""
    answers(provider)
    said = [[f"Question {number} of {name}." for number in range(20)] for name in ("one", "two")]
    talks = [Talk(form, "http://127.0.0.1:1") for _ in said]
    for part in (slice(0, 12), slice(12, 20)):
        with Served(app(store, upstream=provider.url, window=6_000, identity="credential")) as url:
            for talk in talks:
                talk.moved(url)
            for both in zip(*(each[part] for each in said), strict=True):
                for talk, text in zip(talks, both, strict=True):
                    trimmed(talk).say(text)
    for talk in talks:
        talk.client.close()

    assert [seen.body for seen in provider.seen] == [
        body for pair in zip(*(t.sent for t in talks), strict=True) for body in pair
    ]
    found = []
    for info in Context.list(store):
        with Context.view(store, info.id) as context:
            found.append(texts(context))
            assert context.report().cost.calls == 20 and context.verify() == []
            assert {call.predicted for call in context.calls()[-8:]} == {0}  # they say nothing of what it counts
    assert sorted(found) == said


@pytest.mark.parametrize("named", [False, True])
def test_what_a_client_trimmed_is_archived_once_its_list_does_not_fit(provider, store, named):
    """The model can read it then; hidden rounds in between, and a clip, are no other conversation."""
    answers(provider)
    more = {"x-memci-conversation": "trip"} if named else {}
    served = app(store, upstream=provider.url, window=4_000, identity=None if named else "credential")
    with Served(served) as url, Talk("openai_chat", url, **more) as talk:
        talk.say("Hello.")
        talk.say("My bank PIN is 4711-ALICE.")
        for number in range(24):
            trimmed(talk).say(f"Question {number}. " + (3 if number > 12 else 1) * LONG.format(number))
            if number % 5 == 0:
                trimmed(talk).say("Search!")

    (info,) = Context.list(store)
    with Context.view(store, info.id) as context:
        assert texts(context)[:2] == ["Hello.", "My bank PIN is 4711-ALICE."] and len(texts(context)) == 31
        assert context.verify() == []
    assert "4711-ALICE" in json.dumps(provider.seen[-1].items)


def test_a_trimmed_list_that_the_provider_refuses_as_too_long_is_sent_shorter(provider, store):
    """The window of the model is smaller than it was said to be."""

    def script(seen):
        tokens = len(seen.body) // 2  # twice as many as the text has
        if tokens > 5_000:
            said = f"maximum context length is 5000 tokens. However, your messages resulted in {tokens} tokens."
            return JSONResponse({"error": {"message": said, "type": "invalid_request_error"}}, 400)
        return Said(f"Answer {len(provider.seen)}.")

    provider.script = script
    served = app(store, upstream=provider.url, window=5_500, model="unknown", identity="credential")
    with Served(served) as url, Talk("openai_chat", url, model="unknown") as talk:
        for number in range(12):
            trimmed(talk).say(f"Question {number}. " + 4 * LONG.format(number))
    assert len(Context.list(store)) == 1


def test_the_same_words_again_and_again_are_one_conversation(provider, store):
    """The list begins where it goes on with all that follows, of many places with its first message."""
    provider.script = lambda _seen: Said("Nothing new.")
    with (
        Served(app(store, upstream=provider.url, window=6_000, identity="credential")) as url,
        Talk("openai_chat", url) as talk,
    ):
        for number in range(40):
            trimmed(talk).say("Check my inbox." if number % 8 else f"Question {number}.")
    (info,) = Context.list(store)
    with Context.view(store, info.id) as context:
        assert [text for text in texts(context) if "Q" in text] == [f"Question {number}." for number in range(0, 40, 8)]


CHANGES = st.lists(
    st.tuples(st.sampled_from(["grow", "trim", "delete", "edit", "head", "forget"]), st.integers(0, 10_000)),
    min_size=4,
    max_size=24,
)


@given(CHANGES, st.sampled_from([3_000, 30_000]), st.booleans())
@settings(deadline=None)
def test_a_list_is_the_end_of_its_conversation_and_what_was_deleted_is_not_found(changes, window, named):
    """Whatever was trimmed, edited or deleted before, in one process or in several."""
    storage, recent, number, deleted = EphemeralStorage(), Recent(), count(1), []
    caller = Caller("key", "anna", "trip" if named else None)

    def said(role):
        return {"role": role, "content": f"<{next(number)}> " + "some plain words of it " * 30}

    items = [said("user")]
    for change, where in changes:
        at = 2 + where % max(1, len(items) - 2)
        first = at - at % 2  # a question of the user
        raw = json.dumps({"model": "gpt-4o", "messages": items}).encode()
        made = Conversation(storage, caller, Options(window), ClientRequest("openai_chat", raw, raw), recent)
        stored = [identity(message) for message in made.context.messages()]
        assert stored[-len(items) :] == [identity(item) for item in items]
        assert items[-1]["content"][:40].encode() in made.sent
        assert made.context.verify() == []
        made.close()
        with closing(TieredMemory(storage, owner="anna", read_only=True)) as memory:
            found = str([memory.search(word, k=5).pages for word in deleted[-3:]])
        assert not [word for word in deleted if word in made.sent.decode() or word in found]

        items.append(said("assistant"))
        gone, new = slice(0), []
        match change:
            case "trim":
                items = items[first:] if len(items) - first > 4 else items
            case "delete" if first + 2 < len(items):
                gone = slice(first, first + 2)
            case "edit" if at < len(items):
                gone, new = slice(at, at + 1), [said(items[at]["role"])]
            case "head" if len(items) > 8:
                gone = slice(2, -4)
            case "forget":
                recent = Recent()
        deleted += [item["content"].partition(" ")[0] for item in items[gone]]
        items[gone] = new
        items.append(said("user"))


def test_recent_conversations_are_bounded():
    recent = Recent()
    for number in range(10_000):
        recent.note(f"owner {number}", "context")
    for number in [*range(20), 15]:
        recent.note("owner 9999", f"context {number}")
    assert recent.of("owner 0") == () and recent.of("owner 9998") == ("context",)
    assert recent.of("owner 9999") == tuple(f"context {number}" for number in (15, 19, 18, 17, 16, 14, 13, 12))
