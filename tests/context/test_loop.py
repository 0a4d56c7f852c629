"""The tool loop: its steps, the program's functions, and what survives when one of them goes wrong."""

import asyncio
import json

import pytest

from memci import Context, EphemeralStorage
from memci.context.loop import (
    Ask,
    Run,
    Toolbox,
    answer,
    answer_async,
    answer_own_calls,
    find_unanswered,
    next_step,
    rounds,
)

pytestmark = pytest.mark.usefixtures("no_memory")


def call(name, id_="c1", **arguments):
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


class Talk:
    """An exchange over a list: replies are messages, and requests are the messages so far."""

    def __init__(self, context):
        self.context, self.messages = context, [{"role": "user", "content": "The weather?"}]

    def request(self, *, last):
        return [*self.messages, last]

    def shorten(self, error):
        return False

    def keep(self, reply, *, last):
        self.messages.append(reply)
        return answer_own_calls(self.context, reply["tool_calls"]) if "tool_calls" in reply and not last else None

    def add(self, call, result):
        self.messages.append(result)

    @property
    def results(self):
        return [each["content"] for each in self.messages if each["role"] == "tool"]


@pytest.fixture
def context():
    with Context.open(EphemeralStorage(), id="alice", window=8_000) as opened:
        yield opened


def calling(*calls):
    return {"role": "assistant", "content": None, "tool_calls": [*calls]}


ANSWER = {"role": "assistant", "content": "It rains."}


def test_steps_when_the_outcomes_are_sent(context):
    """The steps ask, run one call after another, and ask again; nothing is done by the steps themselves."""
    talk = Talk(context)
    steps = rounds(talk, 3)

    assert next_step(steps, None) == Ask(last=False)
    assert next_step(steps, calling(call("a", "1"), call("b", "2"))) == Run(call("a", "1"))
    assert next_step(steps, "one") == Run(call("b", "2"))
    assert next_step(steps, "two") == Ask(last=False)
    assert next_step(steps, ANSWER) is None
    assert talk.results == ["one", "two"]


def test_steps_when_the_bound_is_reached(context):
    """The last step says that it is the last one."""
    steps = rounds(Talk(context), 2)

    next_step(steps, None)
    next_step(steps, calling(call("a")))
    assert next_step(steps, "one") == Ask(last=True)
    assert next_step(steps, calling(call("a"))) is None


def test_steps_when_memci_is_called(context):
    """The context answers calls of its own tools; only the others are run by the program, in the order of the calls."""
    talk = Talk(context)
    steps = rounds(talk, 3)
    next_step(steps, None)

    asked = next_step(steps, calling(call("recall_page", "1", index=7), call("weather", "2")))

    assert asked == Run(call("weather", "2"))
    assert next_step(steps, "rain") == Ask(last=False)
    assert talk.results == [
        "error: no page 7: there are no pages. Recall only pages that the contents list.",
        "rain",
    ]


async def later(city):
    await asyncio.sleep(0)
    return {"city": city}


def raising(city):
    raise ValueError("no such city")


FUNCTIONS = {
    "later": later,
    "now": lambda city: {"city": city},
    "raising": raising,
    "custom": lambda text: text.upper(),
    "strange": lambda: {"data": b"\xff", ("a", 1): 2},
    "keys": lambda: {("a", 1): 2},
}
CUSTOM = {"id": "c1", "type": "custom", "custom": {"name": "custom", "input": "oslo"}}


@pytest.mark.parametrize(
    ("asked", "result"),
    [
        (call("now", city="Oslo"), '{"city": "Oslo"}'),
        (call("later", city="Oslo"), '{"city": "Oslo"}'),
        (CUSTOM, "OSLO"),
        (call("raising", city="Oslo"), "error: ValueError: no such city"),
        (call("nothing"), 'error: there is no tool "nothing"; there are: later, now, raising, custom, strange, keys, '),
        (call("now"), "error: TypeError: "),
        (call("strange"), "{'data': b'\\xff', ('a', 1): 2}"),
        (call("keys"), '{"a,1": 2}'),
    ],
    ids=["function", "async", "custom", "it raises", "no such tool", "no argument", "no JSON", "keys"],
)
def test_tool_when_it_is_called(context, asked, result):
    """Blocking, awaited, and blocking while an event loop runs: the result is the same text."""
    toolbox = Toolbox(context, FUNCTIONS)

    async def both():
        return await toolbox.run_async(asked), toolbox.run(asked)

    for given in (toolbox.run(asked), *asyncio.run(both())):
        assert given.startswith(result)


def test_answer_when_it_is_awaited(context):
    """Blocking and asynchronous programs get the same pieces and keep the same messages."""
    replies = [calling(call("later", city="Oslo")), ANSWER]

    def ask(request):
        yield from ("It ", "", "rains.") if len(request) > 2 else ()
        yield replies[len(request) > 2]

    async def ask_async(request):
        for each in ask(request):
            yield each

    async def awaited(talk):
        return [each async for each in answer_async(talk, ask_async, Toolbox(context, FUNCTIONS), most=3)]

    one, other = Talk(context), Talk(context)
    assert list(answer(one, ask, Toolbox(context, FUNCTIONS), most=3)) == ["It ", "rains."]
    assert asyncio.run(awaited(other)) == ["It ", "rains."]
    assert one.messages == other.messages
    assert one.results == ['{"city": "Oslo"}']


def test_answer_when_it_is_closed(context):
    """A stream that is closed closes the model's stream, too."""
    closed = []

    def ask(request):
        try:
            yield from ("It ", "rains.")
        finally:
            closed.append(request)

    pieces = answer(Talk(context), ask, Toolbox(context, {}), most=3)
    assert next(pieces) == "It "
    pieces.close()

    assert len(closed) == 1


def test_unanswered_when_some_have_results():
    """The calls of the last message that have no result, in their order."""
    calls = [call("a", "1"), call("b", "2"), call("c", "3")]
    result = {"role": "tool", "tool_call_id": "2", "content": "x"}

    assert find_unanswered([calling(*calls), result]) == [calls[0], calls[2]]
    assert find_unanswered([calling(*calls), result, ANSWER]) == []
