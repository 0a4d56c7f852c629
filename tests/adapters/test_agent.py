"""The loop over a plain client: what is stored when a run is broken off and repeated. Clients are functions here."""

import asyncio

import pytest

from memci import Context, EphemeralStorage
from memci.adapters.clients import Client
from memci.adapters.loop import MOST, Agent
from memci.errors import BudgetExceeded, InvalidSetting, ModelUnavailable
from memci.formats.streams import streamed


def said(content, *calls):
    message = {"role": "assistant", "content": content}
    if calls:
        made = [{"id": id_, "type": "function", "function": {"name": "half", "arguments": text}} for id_, text in calls]
        message["tool_calls"] = made
    return {"object": "chat.completion", "choices": [{"message": message}], "usage": {"prompt_tokens": 9}}


class Model:
    """A client that gives its answers one after another; an error is raised."""

    def __init__(self, *answers):
        self.answers, self.requests = list(answers), []
        self.client = Client("openai_chat", self.create, self.events, lambda: streamed("openai_chat"))

    def create(self, **request):
        self.requests.append(request["messages"])
        given = self.answers.pop(0)
        if isinstance(given, BaseException):
            raise given
        return given

    def events(self, **request):
        yield from self.create(**request)


async def half(number: int) -> float:
    """Return the half of a number."""
    if number == 13:
        raise KeyboardInterrupt
    return number / 2


@pytest.fixture
def context():
    with Context.open(EphemeralStorage(), id="alice", window=8_000) as opened:
        yield opened


def texts(context):
    return [message["content"] for message in context.messages()]


def test_run_when_it_is_repeated_behind_an_error(context):
    """With its name the question is stored once, and the run goes on behind the tools that ran."""
    model = Model(said(None, ("1", '{"number": 4}')), ConnectionError("reset"), said("It is 2."))
    agent = Agent(model.client, context, [half])

    with pytest.raises(ConnectionError):
        agent.run("Half of four?", op_id="q1")

    assert agent.run("Half of four?", op_id="q1") == "It is 2."
    assert texts(context) == ["Half of four?", None, "2.0", "It is 2."]


def test_run_when_it_is_repeated_behind_its_answer(context):
    """The answer that is stored is given again; the model is not asked."""
    agent = Agent(Model(said("Hello.")).client, context)

    assert agent.run("Hi", op_id="q1") == "Hello."
    assert agent.run("Hi", op_id="q1") == "Hello."
    assert "".join(agent.stream("Hi", op_id="q1")) == "Hello."
    assert texts(context) == ["Hi", "Hello."]


def test_run_when_another_message_came_after_it(context):
    """A repetition can't go on in an older turn: the error says so."""
    agent = Agent(Model(said("Hello."), said("Bye.")).client, context)
    agent.run("Hi", op_id="q1")
    agent.run("Go", op_id="q2")

    with pytest.raises(InvalidSetting, match="not the last one"):
        agent.run("Hi", op_id="q1")


def test_run_when_the_one_before_was_stopped_in_a_tool(context):
    """Calls that got no result are answered as stopped, so that the conversation goes on."""
    model = Model(said(None, ("1", '{"number": 4}'), ("2", '{"number": 13}')), said("So be it."))
    agent = Agent(model.client, context, [half])

    with pytest.raises(KeyboardInterrupt):
        agent.run("Half of four and thirteen?")

    assert agent.run("And now?") == "So be it."
    assert texts(context)[2] == "2.0"
    assert "stopped" in texts(context)[3]
    assert texts(context)[4:] == ["And now?", "So be it."]


def test_run_when_it_is_repeated_behind_a_stop_in_a_tool(context):
    """The repetition goes on behind the calls that were stopped; the question is not asked again."""
    model = Model(said(None, ("1", '{"number": 13}')), said("So be it."))
    agent = Agent(model.client, context, [half])

    with pytest.raises(KeyboardInterrupt):
        agent.run("Half of thirteen?", op_id="q1")

    assert agent.run("Half of thirteen?", op_id="q1") == "So be it."
    assert texts(context)[0::3] == ["Half of thirteen?", "So be it."]


def test_run_when_the_model_never_ends(context):
    """The bound ends it, and every call has its result."""
    model = Model(*(said(None, (str(number), '{"number": 4}')) for number in range(MOST)))

    assert Agent(model.client, context, [half]).run("Half of four?") == ""
    assert len(model.requests) == MOST
    context.render("And now?")


def test_stream_when_it_is_cut(context):
    """An answer without an end is an error, and nothing of it is stored."""
    model = Model([{"choices": [{"delta": {"content": "Hel"}}]}])

    with pytest.raises(ModelUnavailable, match="cut"):
        list(Agent(model.client, context).stream("Hi"))

    assert texts(context) == []


def test_astream_when_a_tool_is_asynchronous(context):
    """An asynchronous function runs in the event loop of the caller."""
    loops = []

    async def where(number: int) -> str:
        """Say where it runs."""
        loops.append(asyncio.get_running_loop())
        return str(number)

    model = Model(said(None, ("1", '{"number": 4}')), said("Here."))
    model.answers[0]["choices"][0]["message"]["tool_calls"][0]["function"]["name"] = "where"

    async def create(**request):
        return model.create(**request)

    async def run():
        client = Client("openai_chat", create, create, lambda: streamed("openai_chat"))
        return asyncio.get_running_loop(), await Agent(client, context, [where]).arun("Where?")

    here, text = asyncio.run(run())

    assert (text, loops) == ("Here.", [here])


@pytest.mark.parametrize("hidden", [0, 3_000])
def test_run_when_the_provider_counts_more(hidden):
    """A request that is too long for it is made once more, shorter; no turn is lost, and the count is learnt."""
    refused = []

    def create(**request):
        tokens = sum(context.count(str(each["content"])) + 4 for each in request["messages"]) + hidden
        if tokens > 8_000:
            refused.append(tokens)
            limit = "This model's maximum context length is 8000 tokens."
            raise ValueError(f"{limit} However, your messages resulted in {tokens} tokens.")
        return {**said("ok " + "word " * 40), "usage": None}

    with Context.open(EphemeralStorage(), "alice", system="S", window=8_000, model="gpt-4o") as context:
        agent = Agent(Client("openai_chat", create, create, lambda: streamed("openai_chat")), context)
        for number in range(100):
            assert agent.run(f"question {number} " + "abcde " * 40)
        assert len(refused) <= 3
        assert bool(refused) == (hidden > 0) == (context.report().ratio > 1.1)


def test_run_when_a_shorter_request_fails_too(context):
    """A request is made once more at most, and only for its length."""
    for _ in range(6):
        context.append_turn("word " * 400, {"role": "assistant", "content": "word " * 500})
    long = ValueError("maximum context length is 8000 tokens, your messages resulted in 9000 tokens")
    for errors in ([long, ValueError("no")], [ValueError("no")]):
        model = Model(*errors)
        with pytest.raises(ValueError, match=str(errors[-1])):
            Agent(model.client, context).run("Hi")
        assert len(model.requests) == len(errors)


def test_run_when_the_provider_counts_far_more(context):
    """More than three times as many tokens are no matter of counting: the error gives both counts."""
    long = ValueError("maximum context length is 8000 tokens, your messages resulted in 9000 tokens")
    with pytest.raises(BudgetExceeded, match="counted") as caught:
        Agent(Model(long).client, context).run("Hi")
    assert caught.value.__cause__ is long
