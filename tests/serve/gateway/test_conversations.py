"""Which context a request finds: by its list, its credential and its headers; forks, restarts, many clients at once."""

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from starlette.responses import JSONResponse

from memci import Context
from memci.serve.gateway import app

from .kit import FORMATS, LONG, Talk, filled
from .upstream import Said, Served


def stored(store):
    """The texts of each context in *store*, by its id."""
    found = {}
    for info in Context.list(store):
        with Context.view(store, info.id) as context:
            found[info.id] = [message["content"] for message in context.messages()]
    return found


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("identity", [None, "credential"])
def test_an_edited_history_forks_at_the_last_shared_turn(provider, store, form, identity):
    """The old branch stays as it was, the new one has the list as it is now, and each goes on in its own context."""
    with Served(app(store, upstream=provider.url, window=6_000, identity=identity)) as url, Talk(form, url) as talk:
        for text in ("one", "two", "three"):
            talk.say(text)
        before = [*talk.items]
        talk.items = talk.items[: len(talk.items) * 2 // 3]
        talk.say("another")
        talk.say("and on")
        edited, talk.items = talk.items, before
        talk.say("four")

    branches = sorted(texts[::2] for texts in stored(store).values())
    assert branches == [["one", "two", "another", "and on"], ["one", "two", "three", "four"]]
    assert len(edited) == len(before)
    forks = [info.id for info in Context.list(store) if info.parent]
    assert len(forks) == (identity is not None)  # each owner has messages of its own
    for name in forks:
        with Context.view(store, name) as fork:
            assert fork.report().turn == 3


def test_equal_histories_of_two_credentials_never_meet(provider, store):
    """Each has its own context and owner; a header names the conversation. No credential is stored.

    A named list without its front takes nothing back: it gets a context of its own.
    """
    with Served(app(store, upstream=provider.url, window=6_000)) as url:
        for key in ("sk-alpha", "sk-beta"):
            with Talk("openai_chat", url, key=key) as talk:
                talk.say("The same.")
                talk.say("Still the same.")
        with Talk("openai_chat", url, **{"x-memci-conversation": "trip"}) as talk:
            talk.say("The same.")
            talk.say("Two.")
            talk.items = talk.items[2:]
            talk.say("Three.")

    found = Context.list(store)
    assert (len(found), len({info.owner for info in found})) == (4, 3)
    assert ["The same.", "Hello!", "Two."] in stored(store).values()
    assert [info.id.endswith(":named:trip") for info in found].count(True) == 1
    raw = b"".join(path.read_bytes() for path in store.parent.iterdir())
    assert b"sk-alpha" not in raw and b"sk-beta" not in raw
    assert "x-memci-conversation" not in {name for seen in provider.seen for name in seen.headers}
    assert provider.seen[0].headers["authorization"] == "Bearer sk-alpha"


def test_marks_of_the_cache_move_and_are_no_change(provider, store):
    """A mark on the newest message moves on with each request: the list is the same one, and at most four are sent."""
    with Served(app(store, upstream=provider.url, window=6_000)) as url, Talk("anthropic", url, marks=True) as talk:
        filled(talk)
        for number in range(4):
            talk.say(f"Go on {number}.")

    assert len(stored(store)) == 1
    for seen in provider.seen:
        assert "cache_control" in json.dumps(seen.items[-1])
        assert 2 <= json.dumps(seen.json).count("cache_control") <= 4
        assert seen.json["system"][0]["cache_control"] == {"type": "ephemeral"}


def test_many_clients_at_once_and_a_restart(provider, store):
    """32 clients talk at the same time, the gateway is restarted in the middle: each list is stored whole, once."""
    talks = []
    for turn in ("first", "second"):
        with Served(app(store, upstream=provider.url, window=6_000)) as url, ThreadPoolExecutor(32) as clients:
            talks = talks or [Talk(FORMATS[n % 3], url, stream=n % 2 == 0) for n in range(32)]

            def speak(number, talk, url=url, turn=turn):
                talk.moved(url)
                return talk.say(f"client {number} says the {turn}")

            assert list(clients.map(speak, range(32), talks)) == ["Hello!"] * 32
    for talk in talks:
        talk.client.close()

    texts = sorted(each[::2] for each in stored(store).values())
    assert texts == sorted([f"client {n} says the first", f"client {n} says the second"] for n in range(32))


def test_a_system_prompt_and_a_model_that_change_are_no_other_conversation(provider, store):
    """Clients write the time into their prompt, and ask a smaller model in between: nothing is archived for that."""
    with Served(app(store, upstream=provider.url, window=6_000)) as url, Talk("openai_chat", url) as talk:
        for number in range(8):
            talk.system, talk.model = f"It is {number} o'clock.", ("gpt-4o", "gpt-5-mini")[number % 2]
            talk.say(f"Question {number}. " + LONG.format(number))
        filled(talk)
        talk.say("And now?")

    assert [seen.body for seen in provider.seen[:-1]] == talk.sent[:-1]
    assert provider.seen[-1].items[0]["content"].startswith("It is 7 o'clock.\n\n# Earlier parts")
    (info,) = Context.list(store)
    with Context.view(store, info.id) as context:
        assert context.model == "gpt-4o"


def test_a_request_that_comes_again_stores_nothing_and_a_shorter_list_is_a_fork(provider, store):
    """A retry is the same list; a list without its end goes on in a context of its own, where it is found again."""
    with Served(app(store, upstream=provider.url, window=6_000)) as url, Talk("anthropic", url) as talk:
        for text in ("one", "two"):
            talk.say(text)
        for _ in range(2):
            talk.items = talk.items[:3]
            talk.ask()
        assert len(stored(store)) == 1
        for _ in range(2):
            talk.items = talk.items[:1]
            talk.ask()
    assert sorted(map(len, stored(store).values())) == [1, 3]


def test_clients_of_one_conversation_at_once_store_it_once(provider, store):
    """Eight copies of a client send the same list at the same time, twice: none fails, nothing is stored twice."""
    before = []
    with Served(app(store, upstream=provider.url, window=6_000)) as url, ThreadPoolExecutor(8) as clients:
        for text in ("one", "two"):

            def speak(talk, text=text):
                talk.say(text)
                talk.client.close()
                return talk.items

            talks = [Talk("openai_chat", url) for _ in range(8)]
            for talk in talks:
                talk.items = [*before]
            (before, *others) = clients.map(speak, talks)
            assert all(each == before for each in others)

    (texts,) = stored(store).values()
    assert texts == ["one", "Hello!", "two"]


def test_edits_of_one_place_are_found_at_once(provider, store):
    """However often a message behind parallel results is written anew, each version has a branch, found again."""
    calls = [{"type": "tool_use", "id": each, "name": "read", "input": {}} for each in ("c1", "c2", "c3")]
    results = [{"type": "tool_result", "tool_use_id": each["id"], "content": "Read."} for each in calls]
    past = [
        {"role": "user", "content": "Read three."},
        {"role": "assistant", "content": calls},
        {"role": "user", "content": results},
        {"role": "assistant", "content": [{"type": "text", "text": "Three."}]},
    ]
    served = app(store, upstream=provider.url, window=6_000, identity="credential")
    with Served(served) as url, Talk("anthropic", url) as talk:
        for _ in range(2):
            for number in range(10):
                talk.items = [*past]
                talk.say(f"version {number}")

    found = Context.list(store)
    assert len(found) == 10
    (first,) = (info.id for info in found if info.parent is None)
    assert {info.parent for info in found} == {None, first}, "each is a fork of the first one, not of another version"


@pytest.mark.parametrize("form", FORMATS)
def test_an_answer_that_the_client_begins_for_the_model_is_no_fork(provider, store, form):
    """It stands at the end of a list, and in the next one, whole, in its place: longer, another one, or not at all."""
    asked = {"role": "user", "content": "As JSON."}
    lists = [[begun] for begun in ("{", "[", "[1", "")] + [["[1, 2]", "And on."]]
    served = app(store, upstream=provider.url, window=6_000, identity="credential")
    with Served(served) as url, Talk(form, url) as talk:
        filled(talk)
        past = [*talk.items, asked]
        for begun, *more in lists:
            answer = [{"role": "assistant", "content": begun}] if begun else []
            talk.items = [*past, *answer, *({"role": "user", "content": each} for each in more)]
            talk.ask()

    assert [seen.text for seen in provider.seen] == ["{", "[", "[1", "As JSON.", "And on."]
    (texts,) = stored(store).values()
    assert texts[-3:] == ["As JSON.", "[1, 2]", "And on."]


@pytest.mark.parametrize("kept", ["one", "both", "own"])
@pytest.mark.parametrize("form", FORMATS)
def test_a_recall_behind_an_answer_that_the_client_began_is_no_fork(provider, store, form, kept):
    """The client sends the answer behind what it began in one message, or in two, or the answer alone."""
    recall = ("m1", "recall_page", {"index": 3})

    def script(seen):
        return Said("1}") if seen.results else Said('"a": ', (recall,)) if seen.text == "{" else Said("Fine.")

    provider.script = script
    with Served(app(store, upstream=provider.url, window=6_000)) as url, Talk(form, url) as talk:
        filled(talk)
        talk.items += [{"role": "user", "content": "As JSON."}, {"role": "assistant", "content": "{"}]
        assert talk.ask() == '"a": 1}'
        if kept != "both":
            begun = "{" if kept == "one" else ""
            at = next(at for at, item in enumerate(talk.items) if item.get("content") == "{")
            talk.items[at:] = [{"role": "assistant", "content": begun + '"a": 1}'}]
        for question in ("Thanks.", "And on."):
            assert talk.say(question) == "Fine."

    (texts,) = stored(store).values()
    assert texts[-4:] == ["1}", "Thanks.", "Fine.", "And on."]


@pytest.mark.parametrize("form", FORMATS)
def test_more_than_the_window_holds_behind_an_edited_end_is_archived(provider, store, form):
    """The newest message had no answer yet; it is edited, and the list goes on far beyond the window."""
    with Served(app(store, upstream=provider.url, window=6_000)) as url, Talk(form, url) as talk:
        talk.say("one")
        provider.script = lambda seen: JSONResponse({"error": {"message": "busy"}}, 503)
        with pytest.raises(Exception, match="busy"):
            talk.say("two")
        provider.script = lambda seen: Said("Hello!")
        talk.items[-1] = {"role": "user", "content": "edited two"}
        talk.items.append({"role": "assistant", "content": "Fine."})
        filled(talk)
        assert talk.say("And on.") == "Hello!"

    texts = [each for each in stored(store).values() if "edited two" in each]
    assert [("two" in each, each[-1]) for each in texts] == [(False, "And on.")]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("said", ["", "I look. "])
def test_a_list_that_is_sent_twice_at_once_is_answered_twice(provider, store, form, said):
    """Both models search before either is answered: the slower one goes on behind the search of the faster one.

    If the clients have seen a text already, each goes on behind its own, in a branch of its own.
    """
    provider.hold, asked, talks = Event(), [], []

    def script(seen):
        if seen.results:
            return Said("The tool said: " + seen.results[-1])
        asked.append(seen)
        if len(asked) == 2:
            provider.hold.set()
        return Said(said, ((f"m{len(asked)}", "search_memory", {"query": "depot of line 2"}),))

    provider.script = script
    with Served(app(store, upstream=provider.url, window=6_000)) as url, ThreadPoolExecutor(2) as clients:
        for _ in range(2):
            talks.append(Talk(form, url, stream=True))
            filled(talks[-1])
        answers = [*clients.map(lambda talk: talk.say("Search!"), talks)]
        for talk in talks:
            talk.client.close()
    assert ["line 2" in answer for answer in answers] == [True, True]
    assert [answer.startswith(said + "The tool said: ") for answer in answers] == [True, True]
    branches = [*stored(store).values()]
    counted = [(texts.count("Search!"), json.dumps(texts).count("<memci:memory ")) for texts in branches]
    assert counted == [(1, 1)] * (2 if said else 1)
