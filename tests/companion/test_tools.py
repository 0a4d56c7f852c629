"""Tools in an answer: the caller's and the context's in one loop, and what is left when it is broken off."""

import json

import pytest

from memci import Context, EphemeralStorage
from memci.companion import Companion
from memci.companion.turn import ROUNDS, tidy
from memci.context.loop import find_unanswered
from memci.text.interface import section

STOPPED, FAILED = (section("companion")[name] for name in ("stopped", "failed"))

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def companion(context, chat, weather=lambda city: {"city": city, "degrees": 12}, **settings):
    return Companion(context, chat, tools=[WEATHER], functions={"weather": weather}, analysis=False, **settings)


def several(*calls):
    """One message that makes the calls of several."""
    return calls[0] | {"tool_calls": [call for message in calls for call in message["tool_calls"]]}


def results(context):
    return [message["content"] for message in context.messages() if message["role"] == "tool"]


def then(*answers):
    """Answers one after another."""
    left = list(answers)
    return lambda messages: left.pop(0)


def test_tools_when_the_model_calls_them(context, scripted):
    """The caller's tools and those of the context are called in one loop, in order, and stored with the turn."""
    context.append_turn("The code is 4711.", {"role": "assistant", "content": "Noted."})
    context.append_turn("And now?", {"role": "assistant", "content": "Now what?"})
    context.archive(keep=0)
    chat = scripted()
    both = several(
        chat.call("weather", city="Oslo"),
        chat.call("recall_page", index=1, entry=None, offset=None),
        chat.call("weather", city="Bergen"),
    )
    chat.answer = then(both, "It is 12 °C, and the code is 4711.")

    answer = companion(context, chat).respond("The weather, and the code?")

    first, second, third = results(context)[-3:]
    assert json.loads(first) == {"city": "Oslo", "degrees": 12}
    assert "The code is 4711." in second and second.startswith("<memci:recall ")
    assert json.loads(third)["city"] == "Bergen"
    assert [m["role"] for m in answer.messages] == ["user", "assistant", "tool", "tool", "tool", "assistant"]
    assert answer.calls == 2
    assert [tool["function"]["name"] for tool in chat.requests[0][2]] == ["weather", "recall_page", "search_memory"]


def test_tools_when_the_model_speaks_between(context, scripted):
    """What is said along with a call is part of the answer, as it was streamed."""
    chat = scripted()
    chat.answer = then(chat.call("weather", city="Oslo") | {"content": "Let me look."}, "It is 12 °C.")

    stream = companion(context, chat).stream("The weather?")

    assert "".join(stream) == stream.answer.text == "Let me look.\n\nIt is 12 °C."


def raising(error):
    def weather(city):
        raise error

    return weather


@pytest.mark.parametrize(
    ("weather", "told"),
    [
        (raising(ValueError("no such city")), "error: ValueError: no such city"),
        (raising(OSError("gateway\udcff")), "error: OSError: gateway\\udcff"),
        (lambda city: {"city": {1, 2}}, '{"city": [1, 2]}'),
        (lambda city: "12 °C\ud800", "12 °C\\ud800"),
        (lambda: "no city", "error: TypeError: "),
    ],
    ids=["raises", "raises what is no text", "a set", "not text", "takes nothing"],
)
def test_tool_when_it_goes_wrong(context, scripted, weather, told):
    """What goes wrong in a tool is its result: the type and what it says."""
    chat = scripted()
    chat.answer = then(chat.call("weather", city="Oslo"), "Sorry.")

    companion(context, chat, weather).respond("The weather?")

    assert results(context)[0].startswith(told)


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("wether", "{}", 'error: there is no tool "wether"; there are: weather, recall_page, search_memory'),
        ("weather", "{", "error: the arguments are not valid JSON: call weather again with a JSON object"),
        ("weather", "[]", "error: the arguments are not an object: call weather again with a JSON object"),
        ("weather", "[" * 100_000, "error: the arguments are not valid JSON: call weather again with a JSON object"),
    ],
    ids=["unknown", "malformed", "a list", "deep"],
)
def test_tool_when_the_call_is_wrong(context, scripted, name, arguments, told):
    """A mistake of the model is answered with what would be right."""
    chat = scripted()
    call = chat.call(name)
    call["tool_calls"][0]["function"]["arguments"] = arguments
    chat.answer = then(call, "Sorry.")

    companion(context, chat).respond("The weather?")

    assert results(context) == [told]


def test_tool_when_its_result_is_huge(context, scripted):
    """A result that fits no window is stored and shown clipped: the request stays within the budget."""
    chat = scripted()
    chat.answer = then(chat.call("weather", city="Oslo"), "It rains.")

    companion(context, chat, lambda city: "rain " * 300_000).respond("The weather?")

    assert results(context)[0].endswith("[cut: the result has 1,500,000 characters]")
    assert max(chat.cost(messages, tools) for _, messages, tools in chat.requests) <= context.report().budget


def test_tools_when_the_model_never_ends(context, scripted):
    """After some rounds the model is asked once more, without tools; what it says then is the answer."""
    chat = scripted()

    def answer(messages):
        return "Enough." if "no more tools" in str(messages[-1]["content"]) else chat.call("weather", city="Oslo")

    chat.answer = answer

    given = companion(context, chat).respond("The weather?")

    assert (given.text, given.calls) == ("Enough.", ROUNDS + 1)
    assert chat.requests[-1][2] == []
    assert not any("no more tools" in str(message["content"]) for message in context.messages())


def test_tools_when_the_model_calls_all_the_same(context, scripted):
    """Calls that nothing was offered for are dropped; with nothing said, there is no answer, but what ran is kept."""
    chat = scripted()
    chat.answer = lambda messages: chat.call("weather", city="Oslo")

    with pytest.raises(Exception, match="empty") as caught:
        companion(context, chat).respond("The weather?")

    assert caught.value.__notes__ == ["what the tools did until then is stored: page #1"]
    assert list(context.messages())[-1]["content"] == FAILED
    assert len(results(context)) == ROUNDS


def test_model_when_it_fails_behind_a_tool(context, scripted, down):
    """Effects are not forgotten: what ran is stored with a mark, and the error says where."""
    chat = scripted()
    chat.answer = then(chat.call("weather", city="Oslo"), down, "It is 12 °C.")
    asked = companion(context, chat)

    with pytest.raises(type(down)) as caught:
        asked.respond("The weather?")

    assert caught.value.__notes__ == ["what the tools did until then is stored: page #1"]
    assert [m["role"] for m in context.messages()] == ["user", "assistant", "tool", "assistant"]
    assert asked.respond("So?").text == "It is 12 °C."


def test_model_when_it_fails_behind_a_recall(context, scripted, down):
    """The context's own tools have no effects: nothing is stored."""
    chat = scripted()
    chat.answer = then(chat.call("search_memory", query="x", since=None, until=None), down)

    with pytest.raises(type(down)):
        companion(context, chat).respond("The weather?")

    assert list(context.messages()) == []


def test_stream_when_it_is_closed(context, scripted):
    """Closed in the middle, the message and what was said so far are stored, with a mark."""
    with companion(context, scripted(lambda messages: "one two three")).stream("Count.") as stream:
        next(stream)
        next(stream)

    assert (stream.answer.text, stream.answer.stopped) == ("one two", True)
    assert [m["content"] for m in context.messages()] == ["Count.", f"one two\n{STOPPED}"]


def test_stream_when_it_is_closed_at_once(context, chat):
    """A stream of which nothing was taken was never asked: nothing is stored."""
    stream = companion(context, chat).stream("Count.")

    stream.close()

    assert (list(context.messages()), chat.requests, stream.answer) == ([], [], None)


def test_respond_when_it_is_interrupted(context, scripted):
    """Ctrl-C while the model thinks keeps the message."""
    with pytest.raises(KeyboardInterrupt):
        companion(context, scripted(lambda messages: KeyboardInterrupt())).respond("Count.")

    assert [m["content"] for m in context.messages()] == ["Count.", STOPPED]


def test_respond_when_it_is_interrupted_in_the_analysis(context, scripted):
    """Ctrl-C before the model was asked for the answer keeps the message as well."""
    asked = Companion(context, scripted(analysis=lambda messages: KeyboardInterrupt()))

    with pytest.raises(KeyboardInterrupt):
        asked.respond("Count.")

    assert [m["content"] for m in context.messages()] == ["Count.", STOPPED]


def test_respond_when_it_is_interrupted_in_a_tool(context, scripted):
    """Ctrl-C in the second of three calls: the first has its result, the others say that they were stopped."""
    chat = scripted()
    chat.answer = then(several(*(chat.call("weather", city=city) for city in ("Oslo", "Bergen", "Bodø"))))

    def weather(city):
        if city == "Bergen":
            raise KeyboardInterrupt
        return "rain"

    with pytest.raises(KeyboardInterrupt):
        companion(context, chat, weather).respond("The weather?")

    told = results(context)
    assert told[0] == "rain"
    assert ["stopped" in text for text in told[1:]] == [True, True]
    assert list(context.messages())[-1]["content"] == STOPPED
    context.render("Go on.")


def test_stream_when_its_context_was_closed(scripted):
    """A stream that is dropped after its context was closed does no harm."""
    context = Context.open(EphemeralStorage(), id="gone", window=8_000)
    stream = companion(context, scripted(lambda messages: "one two three")).stream("Count.")
    next(stream)
    context.close()

    stream.close()

    assert stream.answer is None


def test_on_tool_when_a_tool_was_called(context, scripted):
    """`on_tool` gets each call with its result."""
    chat, seen = scripted(), []
    chat.answer = then(chat.call("weather", city="Oslo"), "It rains.")

    companion(context, chat, lambda city: "rain", on_tool=lambda call, result: seen.append((call, result))).respond("?")

    assert [(call["function"]["name"], result["content"]) for call, result in seen] == [("weather", "rain")]


def test_tidy_when_calls_have_no_ids():
    """Each call gets an id of its own, and nothing else of the message changes."""
    calls = [
        {"type": "function", "function": {"name": "a", "arguments": "{}"}, "id": id_} for id_ in ("x", "x", "", None)
    ]

    tidied = tidy({"role": "assistant", "content": None, "tool_calls": calls, "reasoning": "r"})

    ids = [call["id"] for call in tidied["tool_calls"]]
    assert ids[0] == "x" and len(set(ids)) == 4 and all(ids)
    assert tidied["reasoning"] == "r"
    assert tidy({"role": "assistant", "content": "x", "tool_calls": []}) == {"role": "assistant", "content": "x"}


def test_unanswered_when_all_have_results():
    """Calls that have their results are left alone."""
    call = {"id": "c1", "type": "function", "function": {"name": "a", "arguments": "{}"}}
    asked = {"role": "assistant", "content": None, "tool_calls": [call]}

    assert find_unanswered([asked, {"role": "tool", "tool_call_id": "c1", "content": "x"}]) == []
    assert find_unanswered([asked]) == [call]
