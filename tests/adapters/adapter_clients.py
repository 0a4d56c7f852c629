"""The loop over OpenAI's plain client keeps memci's promises."""

from openai import AsyncOpenAI, OpenAI

from memci import Context
from memci.adapters.clients import openai_chat
from memci.adapters.loop import Agent
from memci.testing.adapters import AdapterConformance, Driver, lookup
from memci.testing.adapters.driver import PROMPT
from tests.adapters.examples import run_example


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
            {"type": "function", "function": {"name": "half", "arguments": text}}
            for text in ('{"number": 4}', '{"number": 3}', '{"n": 1}', "{")
        ]
        results = [agent._result(call) for call in calls]
    assert results[:2] == ["2.0", "ValueError: it is odd"]
    assert all("number" in result for result in results[2:])


def test_the_example_runs(tmp_path):
    assert "agent: You asked: And which city did I ask about?" in run_example("plain_client.py", tmp_path)
