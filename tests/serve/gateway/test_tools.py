"""memci's tools: called by the model, answered inside, and never seen by the client."""

import json

import anthropic
import openai
import pytest
from starlette.responses import JSONResponse, StreamingResponse

from memci import Context
from memci.serve.answer import MOST_ROUNDS
from memci.serve.gateway import app

from .kit import FORMATS, TOOL, Talk, filled
from .upstream import Said, Served, chat, responses, responses_stream

RECALL = ("m1", "recall_page", {"index": 3})
READ = ("c1", "read", {"path": "a"})
each = pytest.mark.parametrize(("form", "stream"), [(form, stream) for form in FORMATS for stream in (False, True)])


@each
def test_a_recall_is_answered_inside(provider, gateway, store, form, stream):
    """The client gets one answer: both texts, what both requests cost, no call; later requests extend the earlier."""

    def script(seen):
        if seen.results:
            found = "Question 2." in seen.results[-1]
            return Said("Question 2 was asked." if found else "Not found.", thought="I found it.")
        return (
            Said("Let me look. ", (RECALL,), "I must look.") if "What was" in seen.text else Said("Noted.", (), "Hm.")
        )

    with Talk(form, gateway, stream=stream) as talk:
        filled(talk)
        provider.script = script
        before = len(provider.seen)
        assert talk.say("What was my third question?") == "Let me look. Question 2 was asked."
        assert talk.calls == []
        asked, again = provider.seen[before:]
        assert talk.usage[0] == sum(len(each.body) // 4 for each in (asked, again))
        assert talk.say("Thanks.") == "Noted."

    later = provider.seen[-1]
    assert asked.items == again.items[: len(asked.items)]
    assert again.items == later.items[: len(again.items)]
    assert "Let me look" not in json.dumps(later.items[len(again.items) :])
    signed = [each for item in later.items for each in item.get("reasoning_details", ())]
    assert form != "openai_chat" or [each["signature"] for each in signed] == ["of I must look.", "of I found it."]
    assert [each["signature"] for each in signed] == [f"of {each['text']}" for each in signed]
    roles = ["assistant", "user", "assistant", "tool", "assistant", "user"]
    (info,) = Context.list(store)
    with Context.view(store, info.id) as context:
        assert [each["role"] for each in context.messages()][-6:] == roles


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(("order", "stream"), [((RECALL, READ), True), ((READ, RECALL), True), ((READ, RECALL), False)])
def test_calls_of_both_in_one_message(provider, store, form, stream, order):
    """The client sees its own call only; the model gets both results together, also after a restart of the gateway."""
    with Served(app(store, upstream=provider.url, window=6_000)) as url:
        talk = Talk(form, url, stream=stream)
        filled(talk)
        provider.script = lambda seen: Said("Both: ", order, "Two.") if "Read the" in seen.text else Said("Done.")
        assert talk.say("Read the file, and what was my third question?") == "Both: "
        assert [name for _, name in talk.calls] == ["read"]
        provider.split = 7
        if form == "openai_chat":  # a client adds a field, and writes the arguments anew
            (called,) = talk.items[-1]["tool_calls"]
            called |= {"index": 0, "function": {"name": "read", "arguments": '{"path":"a"}'}}
    with Served(app(store, upstream=provider.url, window=6_000)) as url:
        talk.moved(url)
        assert talk.give("c1", "the file") == "Done."
        results = provider.seen[-1].results
        assert len(results) == 2 and any("Question 2." in text for text in results) and "the file" in results
        assert talk.say("Go on.") == "Done."
        talk.client.close()
    names = json.dumps(provider.seen[-1].items)
    assert names.count('"recall_page"') == 1 and names.count('"read"') == 1
    assert len(Context.list(store)) == 1


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("order", [(RECALL, READ), (RECALL,)])
def test_an_answer_that_a_client_writes_anew_is_the_same_one(provider, gateway, store, form, order):
    """It leaves out the thoughts and white space around texts, and sends a text of Responses in its short form."""

    def written(item):
        if "content" not in item:
            return [] if item.get("type") == "reasoning" else [item]
        if not isinstance(item["content"], list):
            return [{**item, "content": item["content"].strip()}]
        if form == "openai_responses":
            return [{"role": "assistant", "content": item["content"][0]["text"].strip()}]
        blocks = [each for each in item["content"] if each["type"] != "thinking"]
        return [
            {**item, "content": [{**each, "text": each["text"].strip()} if "text" in each else each for each in blocks]}
        ]

    provider.script = lambda seen: (
        Said("\n\nI look. \n", order, "I must.") if "Read the" in seen.text else Said("\n\nDone.\n", (), "Good.")
    )
    with Talk(form, gateway) as talk:
        filled(talk)
        start = len(talk.items) + 1
        talk.say("Read the file, and what was my third question?")
        if order == (RECALL, READ):
            talk.give("c1", "the file")
        answered = provider.seen[-1].items
        for question in ("Thanks.", "And on."):
            talk.items[start:] = [made for item in talk.items[start:] for made in written(item)]
            talk.say(question)
    assert provider.seen[-1].items[: len(answered)] == answered
    assert len(Context.list(store)) == 1


@pytest.mark.parametrize("form", FORMATS)
def test_ids_that_a_provider_gives_again_are_those_of_other_calls(provider, gateway, store, form):
    """The result of the client's call has the id that a recall had."""
    first = ("call_0", *RECALL[1:])

    def script(seen):
        asked = "What was" in seen.text
        return Said("", (first,)) if asked else Said("", (("call_0", *READ[1:]),)) if asked_of(seen) else Said("Done.")

    def asked_of(seen):
        return seen.results and "Question 2." in seen.results[-1]

    provider.script = script
    with Talk(form, gateway) as talk:
        filled(talk)
        talk.say("What was my third question?")
        assert talk.give(*talk.calls[0][:1], "the file") == "Done."
        assert talk.say("Go on.") == "Done."
    assert json.dumps(provider.seen[-1].items).count("the file") == 1
    assert "Question 2." in json.dumps(provider.seen[-1].items[-6:])
    assert len(Context.list(store)) == 1


@pytest.mark.parametrize("short", [False, True])
@pytest.mark.parametrize("stream", [False, True])
def test_a_recall_beside_a_call_that_the_provider_answers_is_answered_inside(provider, gateway, stream, short):
    """A shell of the provider's own comes with its result: the client has nothing to answer, and sends no empty field.

    The recall stands in its next request, too, even if the client sends texts in their *short* form.
    """
    container = {"type": "container_reference", "container_id": "cntr_1"}
    shell = {"id": "sh_1", "type": "shell_call", "call_id": "s1", "status": "completed", "environment": container}
    shell["action"] = {"commands": ["ls"], "timeout_ms": None, "max_output_length": None}
    printed = [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]
    ran = {"id": "so_1", "type": "shell_call_output", "call_id": "s1", "status": "completed", "output": printed}
    searched = {"type": "search", "query": "q", "sources": None}
    search = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": searched}

    def script(seen):
        if seen.text == "Thanks.":
            return Said("Fine.")
        if any("Question 2." in text for text in seen.results):
            return Said("It was question 2.")
        whole = responses(Said("I list them.", (RECALL,)), "gpt-4o", (5, 5))
        whole["output"][1:1] = [shell, {**ran, "max_output_length": None}, search]
        return (
            StreamingResponse(responses_stream(whole), media_type="text/event-stream")
            if stream
            else JSONResponse(whole)
        )

    with Talk("openai_responses", gateway, stream=stream) as talk:
        filled(talk)
        provider.script = script
        start = len(talk.items) + 1
        assert talk.say("What was my third question?") == "I list them.It was question 2."
        kinds = ["message", "shell_call", "shell_call_output", "web_search_call"]
        assert [each.type for each in talk.reply.output] == [*kinds, "message"]
        asked = provider.seen[-1].items
        assert [each.get("type") for each in asked[-6:]] == [*kinds, "function_call", "function_call_output"]
        for at in (start, -1) if short else ():
            talk.items[at] = {"role": "assistant", "content": talk.items[at]["content"][0]["text"]}
        assert talk.say("Thanks.") == "Fine."
        assert provider.seen[-1].items[: len(asked)] == asked


@pytest.mark.parametrize(("form", "stream"), [(FORMATS[0], True), (FORMATS[1], False), (FORMATS[2], True)])
def test_the_model_may_not_recall_for_ever(provider, gateway, form, stream):
    """After seven rounds the model must answer; if it calls again, the client sees what it said."""
    with Talk(form, gateway, stream=stream) as talk:
        filled(talk)
        provider.script = lambda seen: Said(".", ((f"m{len(provider.seen)}", "recall_page", {"index": 3}),))
        before = len(provider.seen)
        assert talk.say("What was my third question?") == "." * MOST_ROUNDS
        assert talk.calls == []
        rounds = provider.seen[before:]
        assert len(rounds) == MOST_ROUNDS
        assert ["tool_choice" in each.json for each in rounds] == [False] * (MOST_ROUNDS - 1) + [True]
        provider.script = lambda seen: Said("Fine.")
        assert talk.say("Enough.") == "Fine."


def test_a_recall_in_an_answer_that_is_cut_is_not_stored(provider, gateway):
    """It may be half of what the model meant: the client gets the text, and the model never sees the call again."""

    def script(seen):
        whole = chat(Said("Let me", (RECALL,)), "gpt-4o", (5, 5))
        whole["choices"][0]["finish_reason"] = "length"
        return JSONResponse(whole) if seen.text == "What was it?" else Said("Fine.")

    with Talk("openai_chat", gateway) as talk:
        filled(talk)
        provider.script = script
        assert (talk.say("What was it?"), talk.calls) == ("Let me", [])
        assert talk.say("Go on.") == "Fine."
    assert b'"tool_calls"' not in provider.seen[-1].body


@pytest.mark.parametrize(("form", "stream"), [(FORMATS[0], True), (FORMATS[1], True), (FORMATS[2], False)])
def test_a_provider_that_fails_in_a_later_round_is_asked_again_from_there(provider, gateway, form, stream):
    """The client gets the error, as an event if its answer has begun; when it repeats, nothing is recalled twice."""
    asked = []

    def script(seen):
        asked.append(bool(seen.results))
        if not seen.results:
            return Said("", (RECALL,))
        return JSONResponse({"error": {"message": "down"}}, 500) if len(asked) == 2 else Said("Found.")

    with Talk(form, gateway, stream=stream) as talk:
        filled(talk)
        provider.script = script
        with pytest.raises((openai.APIError, anthropic.APIError)):
            talk.say("What was my third question?")
        assert talk.ask() == "Found."
    assert asked == [False, True, True]


def test_a_client_with_a_tool_of_the_same_name_keeps_it(provider, gateway):
    """Its calls are its own; memci adds neither tools nor notice then."""
    with Talk("openai_chat", gateway) as talk:
        own = {"type": "function", "function": {"name": "recall_page", "parameters": {"type": "object"}}}
        talk.tools = [own]
        filled(talk)
        provider.script = lambda seen: Said("", (RECALL,)) if not seen.results else Said("Done.")
        talk.say("What was it?")
        assert talk.calls == [("m1", "recall_page")]
        assert talk.give("m1", "nothing") == "Done."
    assert provider.seen[-1].tools == ["recall_page"]
    assert "Earlier parts" not in provider.seen[-1].items[0]["content"]


@pytest.mark.parametrize("form", FORMATS)
def test_a_cost_that_is_stored_while_a_request_is_answered_is_no_conflict(provider, gateway, store, form):
    """The request before may store what it cost late: a recall goes on, and the client gets its answer.

    If another request stores messages meanwhile, the cost is stored behind them.
    """

    def script(seen):
        if seen.results:
            return Said("Found.")
        (info,) = Context.list(store)
        with Context.open(store, info.id, owner=info.owner) as context:
            if "What was" in seen.text:
                context.append_turn(usage={"input_tokens": 9, "output_tokens": 1})
                return Said("", (RECALL,))
            context.append_turn({"role": "assistant", "content": "Of another request."})
        return Said("Noted.")

    with Talk(form, gateway) as talk:
        filled(talk)
        provider.script = script
        assert talk.say("What was my third question?") == "Found."
        assert talk.say("Thanks.") == "Noted."
    (info,) = Context.list(store)
    with Context.view(store, info.id) as context:
        assert context.report().cost.calls == 4


def test_functions_of_old_get_no_tools_beside_them(provider, gateway):
    """A provider refuses a request with both."""
    with Talk("openai_chat", gateway) as talk:
        filled(talk)
        listed = [*talk.items, {"role": "user", "content": "Hi"}]
        talk.client.chat.completions.create(model="gpt-4o", messages=listed, functions=[TOOL])
    asked = provider.seen[-1].json
    assert ("tools" in asked, "search_memory" in json.dumps(asked)) == (False, False)
    assert len(json.dumps(asked)) < len(json.dumps(listed))


def test_calls_of_old_are_managed(provider, gateway):
    """They are archived and shortened as calls of tools are, and sent in the form in which they came."""
    listed = []
    for number in range(30):
        listed += [
            {"role": "user", "content": f"Question {number}."},
            {"role": "assistant", "content": None, "function_call": {"name": "read", "arguments": "{}"}},
            {
                "role": "function",
                "name": "read",
                "content": f"File {number}. " + "words " * (3_000 if number > 28 else 200),
            },
            {"role": "assistant", "content": "Read."},
        ]
    with Talk("openai_chat", gateway) as talk:
        for turns in (1, 29, 30):
            asked = [*listed[: 4 * turns], {"role": "user", "content": "Hi"}]
            made = talk.client.chat.completions.with_raw_response.create(
                model="gpt-4o", messages=asked, functions=[TOOL]
            )
            assert made.headers["x-memci-view"] == ("untouched" if turns == 1 else "rewritten")
    for seen in provider.seen:
        assert "tool_calls" not in seen.body.decode() and "tools" not in seen.json
        roles = [each["role"] + ("*" if "function_call" in each else "") for each in seen.items]
        assert roles.count("function") == roles.count("assistant*") > 0
        assert all(roles[at - 1] == "assistant*" for at, role in enumerate(roles) if role == "function")
    assert len(provider.seen[-1].body) < 30_000
    results = [each["content"] for each in provider.seen[-1].items if each["role"] == "function"]
    assert len(results[-1]) < 9_000 < len(listed[-2]["content"])


@pytest.mark.parametrize("form", FORMATS)
def test_a_model_that_takes_no_tools_is_asked_without_them(provider, gateway, form):
    """The provider's refusal is not shown; neither are the tools, nor the notice that names them, to the model."""

    def script(seen):
        said = {"error": {"message": "gemma3:latest does not support tools", "type": "api_error"}}
        return JSONResponse(said, 400) if seen.tools else Said("Hello!")

    provider.script = script
    with Talk(form, gateway) as talk:
        talk.tools = []
        filled(talk)
        assert talk.say("Hi") == "Hello!"
    assert b"search_memory" not in provider.seen[-1].body
    assert len(provider.seen) == 2


@pytest.mark.parametrize("identity", [None, "credential"])
def test_the_model_is_told_of_other_conversations_where_it_can_search_them(provider, store, identity):
    """Without an identity each conversation has a memory of its own."""
    served = app(store, upstream=provider.url, window=6_000, identity=identity)
    with Served(served) as url, Talk("anthropic", url) as talk:
        filled(talk)
        talk.say("Hi")
    assert provider.seen[-1].body.count(b"other conversations") == (2 if identity else 0)
    assert b"To find anything that was said before" in provider.seen[-1].body
