"""The loop over the plain clients keeps memci's promises."""

import asyncio
import json
from functools import partial

import pytest
from openai import AsyncOpenAI, OpenAI

from memci import Context
from memci.adapters.agent import Agent
from memci.adapters.clients import anthropic, gemini, openai_chat, openai_responses
from memci.testing.adapters import AdapterConformance, Driver, lookup, played
from memci.testing.adapters.conformance import plainly, talk
from memci.testing.adapters.driver import PROMPT
from tests.adapters.examples import run_example
from tests.adapters.providers import Provider


class ClientDriver(Driver):
    def __init__(self, store, url, window):
        super().__init__(store, url, window)
        self.contexts = {}

    def agent(self, conversation, kind):
        client = kind(base_url=self.url, api_key="key", max_retries=0)
        return Agent(openai_chat(client, model="gpt-4o"), self.context(conversation), [lookup])

    async def say(self, conversation, text):
        return await self.agent(conversation, AsyncOpenAI).arun(text)

    def say_sync(self, conversation, text):
        assert "".join(self.agent("streamed", OpenAI).stream(text)) == f"Answer to {text}."
        return self.agent(conversation, OpenAI).run(text)

    async def stream(self, conversation, text):
        parts = [part async for part in self.agent(conversation, AsyncOpenAI).astream(text)]
        assert len(parts) > 1
        return "".join(parts)

    def context(self, conversation):
        if conversation not in self.contexts:
            given = {"system": PROMPT, "window": self.window, "model": "gpt-4o"}
            self.contexts[conversation] = Context.open(self.store, conversation, **given)
        return self.contexts[conversation]

    def close(self):
        for context in self.contexts.values():
            context.close()


class TestOpenAIClient(AdapterConformance):
    driver = ClientDriver


async def sends_everything(ask, messages, text):
    """Run a plain loop over *messages* for the user's *text*: *ask* gets all of them, and the tool."""
    schema = {"name": "lookup", "parameters": {"type": "object", "properties": {"key": {"type": "string"}}}}
    messages.append({"role": "user", "content": text})
    while True:
        reply = await ask(messages=messages, tools=[{"type": "function", "function": schema}])
        messages.append(reply.choices[0].message.model_dump(exclude_none=True))
        calls = reply.choices[0].message.tool_calls
        if not calls:
            return messages[-1]["content"]
        for call in calls:
            result = lookup(json.loads(call.function.arguments)["key"])
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


class Plain(ClientDriver):
    """A plain loop that sends everything, for benchmarks.adapters."""

    async def say(self, conversation, text):
        messages = self.contexts.setdefault("list", [{"role": "system", "content": PROMPT}])
        ask = AsyncOpenAI(base_url=self.url, api_key="key", max_retries=0).chat.completions.create
        return await sends_everything(partial(ask, model="gpt-4o"), messages, text)

    def close(self):
        """There is nothing to close."""


def test_what_a_tool_raises_is_answered(tmp_path):
    """A mistake of the model, or of the tool, is what the model reads."""

    def half(number: int) -> float:
        """Return the half of a number."""
        if number % 2:
            raise ValueError("it is odd")
        return number / 2

    with Context.open(tmp_path / "agent.db", "a", window=4_000) as context:
        agent = Agent(openai_chat(OpenAI(api_key="key"), model="gpt-4o"), context, [half])
        (schema,) = agent._schemas
        assert schema["function"]["description"] == "Return the half of a number."
        assert schema["function"]["parameters"]["properties"] == {"number": {"title": "Number", "type": "integer"}}
        calls = [
            {"id": "c", "type": "function", "function": {"name": "half", "arguments": text}}
            for text in ('{"number": 4}', '{"number": 3}', '{"n": 1}', "{")
        ]
        results = [agent._toolbox.run(call) for call in calls]
    assert results[:2] == ["2.0", "error: ValueError: it is odd"]
    assert "number" in results[2] and "not valid JSON" in results[3]


def test_the_example_runs(tmp_path):
    assert "agent: You asked: And which city did I ask about?" in run_example("plain_client.py", tmp_path)


def agents(form, context, url):
    from anthropic import Anthropic, AsyncAnthropic
    from google import genai

    if form == "openai_responses":
        clients = [kind(base_url=f"{url}/v1", api_key="key", max_retries=0) for kind in (OpenAI, AsyncOpenAI)]
        made = [openai_responses(each, model="m") for each in clients]
    elif form == "anthropic":
        clients = [kind(base_url=url, api_key="key", max_retries=0) for kind in (Anthropic, AsyncAnthropic)]
        made = [anthropic(each, model="m", max_tokens=100) for each in clients]
    else:
        client = genai.Client(api_key="key", http_options={"base_url": url})
        made = [gemini(each, model="m") for each in (client, client.aio)]
    return [Agent(each, context, [lookup]) for each in made]


@pytest.mark.parametrize("form", ["openai_responses", "anthropic", "gemini"])
def test_every_provider_has_the_loop(form, tmp_path):
    """Blocking, asynchronous and streamed: parallel calls, a loop of tools within the budget, messages, usage."""
    with Provider(played) as provider, Context.open(tmp_path / "agent.db", "a", system=PROMPT, window=4_000) as context:
        blocking, asynchronous = agents(form, context, provider.url)

        async def said():
            assert await asynchronous.arun("look up kiwi, plum") == "Answer to look up kiwi, plum."
            return "".join([piece async for piece in asynchronous.astream("look up fig, pear")])

        assert blocking.run("look up apple, berry") == "Answer to look up apple, berry."
        assert "".join(blocking.stream("look up nut, lime")) == "Answer to look up nut, lime."
        assert asyncio.run(said()) == "Answer to look up fig, pear."
        assert blocking.run("step 16 date") == "Answer to step 16 date."
        assert provider.problems == []
        assert max(context.count(json.dumps(body)) for body in provider.bodies) < 5_000
        told = [plainly(message) for message in context.messages()]
        asked = ("look up apple, berry", "look up nut, lime", "look up kiwi, plum", "look up fig, pear", "step 16 date")
        assert told == [each for text in asked for each in talk(text)]
        assert len(context.calls()) == len(provider.bodies) == 25
        assert all(call.input == 50 for call in context.calls())
        assert context.verify() == []
