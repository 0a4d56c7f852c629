"""The agents of smolagents keep memci's promises, those that call tools and those that write code."""

import asyncio
import json
from typing import ClassVar

import pytest
from PIL import Image
from smolagents import CodeAgent, FinalAnswerStep, LogLevel, OpenAIModel, ToolCallingAgent, tool
from smolagents.models import ChatMessage, ChatMessageStreamDelta, MessageRole

from memci.adapters.smolagents import Memci, dump, group_steps, load, message_of
from memci.formats.envelope import function_call
from memci.messages import text_of, tool_calls
from memci.testing.adapters import AdapterConformance, Driver
from memci.testing.adapters import lookup as found
from memci.testing.adapters.driver import PROMPT, answered
from memci.testing.llm.server import ModelServer
from tests.adapters.examples import run_example
from tests.adapters.overflow import lengths_after_refusal


@tool
def lookup(key: str) -> str:
    """Return what is known.

    Args:
        key: of what
    """
    return found(key)


def as_pairs(messages):
    """Return what the model reads as prose, with the results of calls as such."""
    for message in messages:
        text = text_of(message)
        if message["role"] == "user" and text.startswith("Observation:"):
            result, _, task = text.partition("\nNew task:\n")
            yield {"role": "tool", "content": result}
            if task:
                yield {"role": "user", "content": task}
        else:
            yield {**message, "content": text}


class SmolagentsDriver(Driver):
    lacks: ClassVar = {
        "a_cancelled_run_leaves_no_half": "a run of smolagents is blocking, and is stopped between steps"
    }
    has = frozenset({"final_answer"})

    def __init__(self, store, url, window):
        super().__init__(store, url, window)
        self.memci = Memci(store, window=window, model="gpt-4o")

    @staticmethod
    def play(request):
        messages = [*as_pairs(request.messages)]
        answer = answered(messages)
        calls = answer.get("tool_calls") or [function_call("call_final", "final_answer", {"answer": answer["content"]})]
        ids = (f"call_{len(messages):04}_{number}" for number in range(len(calls)))
        return {"role": "assistant", "content": None, "tool_calls": [{**call, "id": next(ids)} for call in calls]}

    def made(self, *, stream=False):
        model = OpenAIModel("gpt-4o", api_base=self.url, api_key="key", client_kwargs={"max_retries": 0})
        agent = ToolCallingAgent([lookup], model, stream_outputs=stream, max_steps=50, verbosity_level=LogLevel.OFF)
        agent.prompt_templates["system_prompt"] = PROMPT
        return agent

    def agent(self, conversation, *, stream=False):
        return self.memci.attach(self.made(stream=stream), conversation)

    async def say(self, conversation, text):
        return await asyncio.to_thread(self.say_sync, conversation, text)

    def say_sync(self, conversation, text):
        return self.agent(conversation).run(text)

    async def stream(self, conversation, text):
        parts = [*self.agent(conversation, stream=True).run(text, stream=True)]
        assert len([part for part in parts if isinstance(part, ChatMessageStreamDelta)]) > 3
        assert isinstance(parts[-1], FinalAnswerStep)
        return parts[-1].output

    def message(self, role, text, *, marked=False):
        return (message_of(MessageRole(role), text),)

    def kinds(self):
        image = {"type": "image", "image": Image.new("RGB", (8, 8), (1, 2, 3))}
        calls = [function_call(each, "look", {"key": each * 20}) for each in "ab"]
        calls = [
            {**each, "function": {**each["function"], "arguments": json.loads(each["function"]["arguments"])}}
            for each in calls
        ]
        return group_steps(
            [
                ChatMessage(MessageRole.USER, [{"type": "text", "text": "Look."}, image]),
                message_of(MessageRole.ASSISTANT, "I think."),
                message_of(MessageRole.TOOL_CALL, f"Calling tools:\n{calls}"),
                ChatMessage(MessageRole.USER, [image, image]),
                message_of(MessageRole.TOOL_RESPONSE, "Observation:\none\ntwo"),
                message_of(MessageRole.TOOL_CALL, f"Calling tools:\n{calls[:1]}"),
                ChatMessage(MessageRole.USER, [image]),
            ]
        )

    def same(self, message):
        return [(each.role, [part.get("text") or part["image"].tobytes() for part in each.content]) for each in message]

    def told(self, conversation):
        told = []
        for message in self.context(conversation).messages():
            text, calls = text_of(message), tool_calls(message)
            if calls and calls[0]["function"]["name"] == "final_answer":
                answer = json.loads(calls[0]["function"]["arguments"])["answer"]
                told.append({"role": "assistant", "content": answer})
            elif message["role"] != "tool" or text != text_of(told[-1]):
                told.append({**message, "content": text.removeprefix("New task:\n") or None})
        return told

    def context(self, conversation):
        return self.memci.conversations.context(conversation)

    def close(self):
        self.memci.close()


class TestSmolagents(AdapterConformance):
    driver = SmolagentsDriver


class Plain(SmolagentsDriver):
    """The same without memci, with the list of all runs, for benchmarks.adapters."""

    one: ClassVar = {}

    def say_sync(self, conversation, text):
        if self not in self.one:
            self.one[self] = self.made()
        return self.one[self].run(text, reset=False)


@pytest.fixture
def memci(tmp_path):
    memci = Memci(tmp_path / "agent.db", window=6_000, model="gpt-4o")
    yield memci
    memci.close()


def code(text):
    return f"Thought: I do it.\n<code>\n{text}\n"


def test_an_agent_that_writes_code_has_the_window(memci):
    """Its code and what it printed are a call and its result; the tools of memci are functions that it calls."""
    wanted = [f'print(lookup("fig{number}"))' for number in range(20)]
    script = [*wanted, 'print(search_memory("fig3", None, None))', 'final_answer("done")']
    with ModelServer([code(each) for each in script]) as server:
        model = OpenAIModel("gpt-4o", api_base=server.base_url, api_key="key")
        agent = CodeAgent([lookup], model, max_steps=30, verbosity_level=LogLevel.OFF)
        agent.prompt_templates["system_prompt"] = PROMPT
        assert memci.attach(agent, "a").run("Look up all figs.") == "done"
        context = memci.conversations.context("a")
        assert context.id == "a"
        sizes = [sum(context.count(text_of(each)) + 4 for each in request.messages) for request in server.requests]
        assert max(sizes) <= context.window
        assert "fig3" in text_of(server.requests[-1].messages[-1])
    stored = [call for message in context.messages() for call in tool_calls(message)]
    assert [call["function"]["arguments"] for call in stored] == script
    assert context.verify() == []
    assert len(context.calls()) == len(script)


def test_a_step_that_failed_is_kept(memci):
    """The error of a step follows its call, and the conversation goes on where it was, also with the list kept."""
    with ModelServer([code("1 / 0"), code('final_answer("a")'), code('final_answer("b")')]) as server:
        model = OpenAIModel("gpt-4o", api_base=server.base_url, api_key="key")
        agent = memci.attach(CodeAgent([], model, verbosity_level=LogLevel.OFF), "a")
        assert [agent.run("Do it.", reset=reset) for reset in (True, False)] == ["a", "b"]
    context = memci.conversations.context("a")
    assert context.id == "a"
    errors = [message for message in context.messages() if "Error:" in text_of(message)]
    assert [message["role"] for message in errors] == ["tool"]


def test_a_run_of_too_many_steps_is_kept(memci):
    """The error that ends it belongs to no call; the answer that the user got is stored, and the next run reads it."""
    with ModelServer([code("print(1)"), code("print(2)"), "It is 2.", code('final_answer("b")')]) as server:
        model = OpenAIModel("gpt-4o", api_base=server.base_url, api_key="key")
        agent = memci.attach(CodeAgent([], model, max_steps=2, verbosity_level=LogLevel.OFF), "a")
        assert [agent.run("Do it.", reset=reset) for reset in (True, False)] == ["It is 2.", "b"]
    context = memci.conversations.context("a")
    assert context.id == "a"
    end, answer = [
        each for each in context.messages() if text_of(each).endswith("It is 2.") or "max steps" in str(each)
    ]
    assert (end["role"], answer) == ("user", {"role": "assistant", "content": "It is 2."})
    assert "It is 2." in [text_of(message) for message in server.requests[-1].messages]


def test_steps_come_back_as_the_same_prose(memci):
    """What memci writes is what smolagents wrote: calls, results in one line or in many, texts."""
    with ModelServer([code('print("one\\ntwo")'), code('final_answer("a")')]) as server:
        model = OpenAIModel("gpt-4o", api_base=server.base_url, api_key="key")
        agent = memci.attach(CodeAgent([], model, verbosity_level=LogLevel.OFF), "a")
        agent.run("Do it.")
    groups = group_steps(agent.write_memory_to_messages()[1:])
    assert [*load([item for group in groups for item in dump(group)])] == groups
    assert memci.conversations.messages("a") == groups


def final(request):
    """Return a final answer, as a ToolCallingAgent wants it."""
    answer = {"answer": "You asked: " + request.text.strip().rsplit("\n", 1)[-1]}
    return {"role": "assistant", "content": None, "tool_calls": [function_call("call_1", "final_answer", answer)]}


@pytest.mark.parametrize("how", ["say", "stream"])
def test_a_request_that_is_too_long_becomes_shorter(tmp_path, how):
    """Streamed, the agent tells the step's error; the request after it is shorter."""
    refused, next_one = lengths_after_refusal(SmolagentsDriver, tmp_path / "agent.db", SmolagentsDriver.play, how=how)
    assert next_one < refused


def test_the_example_runs(tmp_path):
    printed = run_example("smolagents_agent.py", tmp_path, script=final)
    assert "agent: You asked: And which city did I ask about?" in printed
