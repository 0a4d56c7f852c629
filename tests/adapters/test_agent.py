"""The loop over a plain client: what is stored when a run is broken off and repeated. Clients are functions here."""

import asyncio
from threading import Event
from types import SimpleNamespace

import pytest
from pydantic import BaseModel

from memci import Agent, AsyncContext, Context, EphemeralStorage
from memci.adapters.clients import Client
from memci.errors import (
    AnswerRejected,
    BudgetExceeded,
    CeilingReached,
    InvalidSetting,
    ModelUnavailable,
    OpConflict,
    WriteConflict,
)
from memci.formats.streams import streamed
from memci.messages import text_of

pytestmark = pytest.mark.usefixtures("no_memory")


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
    """A late repetition gets the answer that is stored; the name of another question is refused."""
    agent = Agent(Model(said("Hello."), said("Bye.")).client, context)
    agent.run("Hi", op_id="q1")
    agent.run("Go", op_id="q2")

    assert agent.run("Hi", op_id="q1") == "Hello."
    with pytest.raises(OpConflict):
        agent.run("Hi there", op_id="q1")


def test_run_when_it_can_not_go_on(context):
    """A question without an answer can't be repeated behind the next one."""
    model = Model(said(None, ("1", '{"number": 4}')), ConnectionError("reset"), said("Bye."))
    agent = Agent(model.client, context, [half])
    with pytest.raises(ConnectionError):
        agent.run("Half of four?", op_id="q1")
    agent.run("Go", op_id="q2")

    with pytest.raises(InvalidSetting, match="gone on"):
        agent.run("Half of four?", op_id="q1")


def test_run_when_it_is_repeated_without_a_name(context):
    """As long as a question has no answer, asking it again continues: it is stored once, and no tool runs again."""
    model = Model(ConnectionError("503"), said(None, ("1", '{"number": 4}')), ConnectionError("503"), said("It is 2."))
    agent = Agent(model.client, context, [half])
    for _ in range(2):
        with pytest.raises(ConnectionError):
            agent.run("Half of four?")

    assert agent.run("Half of four?") == "It is 2."
    assert texts(context) == ["Half of four?", None, "2.0", "It is 2."]


def test_run_when_another_process_goes_on(tmp_path):
    """A run that was killed between two steps continues from the store, also if the question alone was stored."""
    with Context.open(tmp_path / "agent.db", "alice", window=8_000) as context, pytest.raises(KeyboardInterrupt):
        Agent(Model(said(None, ("1", '{"number": 4}')), KeyboardInterrupt()).client, context, [half]).run("Half?")
    with Context.open(tmp_path / "agent.db", "alice") as context:
        assert Agent(Model(said("It is 2.")).client, context, [half]).run("Half?") == "It is 2."
        assert texts(context) == ["Half?", None, "2.0", "It is 2."]
        context.append_turn("Hi", op_id="q1")
        assert Agent(Model(said("Hello.")).client, context).run("Hi", op_id="q1") == "Hello."
        assert texts(context)[4:] == ["Hi", "Hello."]


def test_run_when_the_model_invents_a_tool_and_recalls(context):
    """A tool that does not exist is answered, so is a recall: the model reads both and goes on."""
    context.append_turn("The code is 4711.", {"role": "assistant", "content": "Noted."})
    calls = said(None, ("1", "{}"), ("2", '{"index": 1, "entry": null, "offset": null}'))
    for call, name in zip(calls["choices"][0]["message"]["tool_calls"], ("quarter", "recall_page"), strict=True):
        call["function"]["name"] = name
    model = Model(calls, said("4711."))

    assert Agent(model.client, context, [half]).run("What is the code?") == "4711."
    invented, recalled = (message["content"] for message in model.requests[1][-2:])
    assert 'no tool "quarter"' in invented and "half" in invented
    assert "shown in full above" in recalled


def test_run_when_another_writer_was_first(context):
    """What another handle stored before is read; a change while the model answers is a conflict: the call goes on."""

    def create(**request):
        asked.append(request["messages"])
        if len(asked) == 1:
            other.append_turn("Me, too.")
        return said("Hello.")

    asked = []
    with Context.open(context._storage, "alice") as other:
        other.append_turn("First.", {"role": "assistant", "content": "Yes."})
        agent = Agent(Client("openai_chat", create, create, print), context)
        with pytest.raises(WriteConflict):
            agent.run("Hi")
        assert agent.run("Hi") == "Hello."
    assert texts(context) == ["First.", "Yes.", "Me, too.", "Hi", "Hello."]
    assert any("First." in str(message) for message in asked[0])


class Half(BaseModel):
    number: float


@pytest.mark.parametrize("answer", ['{"number": 2}', '```json\n{"number": 2}\n```'])
def test_run_when_an_object_is_asked_for(context, answer):
    """An answer of another form is refused with the reason, which is not stored; what comes back is the object."""
    model = Model(said("It is 2."), said(answer))
    agent = Agent(model.client, context)

    assert agent.run("Half of four?", op_id="q1", output=Half) == Half(number=2)
    assert agent.run("Half of four?", op_id="q1", output=Half) == Half(number=2)
    assert "no JSON object" in model.requests[1][-1]["content"]
    assert texts(context) == ["Half of four?", answer]


def test_run_when_an_object_never_comes(context):
    """After three answers the run fails, and nothing of it is stored."""
    with pytest.raises(AnswerRejected, match="no Half"):
        Agent(Model(*[said("It is 2.")] * 3).client, context).run("Half of four?", output=Half)

    assert texts(context) == []


def client_of(form, seen):
    """Return a stand-in for a provider's client, with its methods and its way of an answer."""

    def create(**request):
        seen.append(request)
        text = '{"number": 2}'
        if form == "openai_responses":
            part = {"type": "output_text", "text": text, "annotations": []}
            item = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]}
            return {"object": "response", "output": [item]}
        if form == "anthropic":
            return {"type": "message", "role": "assistant", "content": [{"type": "text", "text": text}]}
        if form == "gemini":
            return {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}}]}
        return said(text)

    made = SimpleNamespace(create=create)
    if form == "anthropic":
        return SimpleNamespace(messages=made)
    if form == "gemini":
        return SimpleNamespace(models=SimpleNamespace(generate_content=create, generate_content_stream=create))
    return SimpleNamespace(chat=SimpleNamespace(completions=made), responses=made)


@pytest.mark.parametrize(
    ("form", "given", "asked"),
    [
        ("openai_chat", {}, ("response_format", "json_schema", "strict")),
        ("openai_responses", {"store": False}, ("text", "format", "strict")),
        ("anthropic", {"max_tokens": 1_000}, ("output_config", "format", "schema")),
        ("gemini", {}, ("config", "response_json_schema", "properties")),
    ],
)
def test_a_plain_client_is_called_as_it_is(form, given, asked):
    """The client's methods say whose it is; model and length of the answer are the context's."""
    seen = []
    opened = Context.open(EphemeralStorage(), "a", system="S", model="gpt-4o", window=8_000, format=form)

    with opened as context:
        assert Agent(client_of(form, seen), context).run("Half of four?", output=Half).number == 2

    assert {"model": "gpt-4o", **given}.items() <= seen[0].items()
    for key in asked:
        seen[0] = seen[0][key]
    assert seen[0]


@pytest.mark.parametrize(
    ("client", "given", "message"),
    [
        (object(), {}, "expected one of OpenAI"),
        (Client, {}, "got the class"),
        (client_of("openai_chat", []), {"model": None}, "say which"),
        (Client("openai_chat", print, print, print), {"model": "m"}, "where the client is wrapped"),
        (client_of("openai_chat", []), {"steps": 0}, "from 1"),
        (client_of("openai_chat", []), {"tools": [half, half]}, "a name of its own"),
        (client_of("openai_chat", []), {"tools": [lambda: None]}, "functions that have a name"),
    ],
)
def test_what_is_no_agent_is_refused(client, given, message):
    """A wrong client, model or tool is named before anything is asked."""
    with Context.open(EphemeralStorage(), "a", model="gpt-4o") as context, pytest.raises(InvalidSetting, match=message):
        Agent(client, context, **given)


def test_run_when_the_client_is_of_the_other_kind(context):
    """A blocking call of an asynchronous client says what to call, and so does the opposite."""

    async def create(**request):
        return said("Hello.")

    with pytest.raises(InvalidSetting, match="await agent"):
        Agent(Client("openai_chat", create, create, print), context).run("Hi")
    with pytest.raises(InvalidSetting, match="blocking"):
        asyncio.run(Agent(Model(said("Hello.")).client, context).arun("Hi"))


def test_arun_when_it_is_cancelled():
    """The question can be asked again: what was stored is whole, and the answer comes once."""

    async def create(**request):
        if len(asked) == 1:
            asked.append(request)
            raise asyncio.CancelledError
        asked.append(request)
        return said(None, ("1", '{"number": 4}')) if len(asked) == 1 else said("It is 2.")

    async def run():
        client = Client("openai_chat", create, create, print)
        async with AsyncContext.open(EphemeralStorage(), "alice", window=8_000) as context:
            with pytest.raises(asyncio.CancelledError):
                await Agent(client, context, [half]).arun("Half?", op_id="q1")
            assert await Agent(client, context, [half]).arun("Half?", op_id="q1") == "It is 2."
            return [message["content"] async for message in context.messages()]

    asked = []
    assert asyncio.run(run()) == ["Half?", None, "2.0", "It is 2."]


@pytest.mark.parametrize("fails", [False, True])
def test_arun_when_it_is_cancelled_in_a_blocking_tool(fails):
    """The tool goes on in its thread, and its result is stored: what it did is known."""
    gone, stop = Event(), []

    def slow():
        """Do something."""
        stop[0]()
        gone.wait(30)
        if fails:
            raise OSError("no room")
        return "sent"

    async def create(**_request):
        call = {"id": "1", "type": "function", "function": {"name": "slow", "arguments": "{}"}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        return {"object": "chat.completion", "choices": [{"message": message}]}

    async def run():
        client, loop = Client("openai_chat", create, create, print), asyncio.get_running_loop()
        async with AsyncContext.open(EphemeralStorage(), "alice", window=8_000) as context:
            task = asyncio.ensure_future(Agent(client, context, [slow]).arun("Send it."))
            stop.append(lambda: loop.call_soon_threadsafe(lambda: (task.cancel(), loop.call_soon(gone.set))))
            with pytest.raises(asyncio.CancelledError):
                await task
            return [message["content"] async for message in context.messages()]

    assert asyncio.run(run()) == ["Send it.", None, "error: OSError: no room" if fails else "sent"]


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
    """The bound ends it, every call has its result, and a repetition goes on."""
    model = Model(*(said(None, (str(number), '{"number": 4}')) for number in range(3)), said("It is 2."))
    agent = Agent(model.client, context, [half], steps=3)

    with pytest.raises(CeilingReached, match="3 calls"):
        agent.run("Half of four?")

    context.render("And now?")
    assert agent.run("Half of four?") == "It is 2."
    assert texts(context).count("Half of four?") == 1


@pytest.mark.parametrize("given", [{"refusal": "I can't."}, {"content": [{"type": "refusal", "refusal": "I can't."}]}])
def test_run_when_the_model_refuses(context, given):
    """A refusal is the answer; a stream and a repeated run give it, too."""
    refused = said(None)
    refused["choices"][0]["message"] |= given
    agent = Agent(Model(refused).client, context)
    assert [agent.run("Hi", op_id="one"), agent.run("Hi", op_id="one")] == ["I can't.", "I can't."]

    pieces = [{"choices": [{"delta": {"refusal": each}}]} for each in ("I ", "can't.")]
    model = Model([*pieces, {"choices": [{"delta": {}, "finish_reason": "stop"}]}])
    assert list(Agent(model.client, context).stream("Then this?")) == ["I ", "can't."]
    assert text_of([*context.messages()][-1]) == "I can't."


@pytest.mark.parametrize("role", ["assistant", "system"])
def test_run_when_it_is_asked_with_a_message_of_another(context, role):
    """A question is the user's: what is no question is refused before anything is asked or stored."""
    with pytest.raises(InvalidSetting, match=f"got a message of '{role}'"):
        Agent(Model().client, context).run({"role": role, "content": "Hi"})
    assert texts(context) == []


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
    assert (sum(caught.value.parts.values()), caught.value.budget) == (9_000, 7_000)


def test_run_when_the_window_is_far_smaller_than_the_context_was_told():
    """A server may run a model with a short context: the error gives what was counted, and what the server takes."""
    short = ValueError("maximum context length is 4096 tokens, your messages resulted in 9000 tokens")
    with Context.open(EphemeralStorage(), "a", window=32_000, reply=1_000) as context:
        context.append_turn("word " * 8_000, {"role": "assistant", "content": "Fine."})
        with pytest.raises(BudgetExceeded) as caught:
            Agent(Model(short).client, context).run("Hi")
    assert 8_000 < sum(caught.value.parts.values()) <= 9_000
    assert caught.value.budget == 3_096


TOO_LONG = {"error": {"code": 400, "message": "maximum context length is 7000 tokens; your messages have 7600 tokens."}}
ANSWERED = [{"choices": [{"delta": {"content": "Ok."}, "finish_reason": "stop"}]}]


@pytest.mark.parametrize(("refused", "answer"), [(TOO_LONG, said("Ok.")), ([TOO_LONG], ANSWERED)])
def test_run_when_the_refusal_comes_with_status_200(context, refused, answer):
    """Some servers answer with an error in place of a reply, or of the first event."""
    for _ in range(6):
        context.append_turn("word " * 400, {"role": "assistant", "content": "word " * 500})
    agent = Agent(Model(refused, answer).client, context)
    assert "".join(agent.stream("Hi")) if isinstance(answer, list) else agent.run("Hi") == "Ok."
    assert context.report().ratio > 1.1


@pytest.mark.parametrize("usage", [{}, {"completion_tokens": 5}, {"prompt_tokens": -1}, "many"])
def test_run_when_the_usage_can_not_be_read(context, usage):
    """The answer is paid for."""
    assert Agent(Model({**said("Ok."), "usage": usage}).client, context).run("Hi") == "Ok."
    assert context.report().cost.calls == 0
