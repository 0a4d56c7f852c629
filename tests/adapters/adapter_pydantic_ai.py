"""Pydantic AI keeps memci's promises, with and without a history of its own."""

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from memci.adapters.pydantic_ai import Memci
from memci.testing.adapters import AdapterConformance, Driver, lookup
from memci.testing.adapters.driver import PROMPT
from tests.adapters.examples import run_example


class PydanticAIDriver(Driver):
    def __init__(self, store, url, window):
        super().__init__(store, url, window)
        self.memci = Memci(store, window=window, model="gpt-4o")
        self.histories = {}

    def agent(self):
        provider = OpenAIProvider(base_url=self.url, api_key="key")
        model = OpenAIChatModel("gpt-4o", provider=provider)
        return Agent(model, capabilities=self.capabilities(), tools=[lookup], **self.prompt())

    def capabilities(self):
        return [self.memci]

    def prompt(self):
        return {"instructions": PROMPT}

    def given(self, conversation):
        return {"conversation_id": conversation}

    def ended(self, conversation, result):
        return result.output

    async def say(self, conversation, text):
        return self.ended(conversation, await self.agent().run(text, **self.given(conversation)))

    def say_sync(self, conversation, text):
        return self.ended(conversation, self.agent().run_sync(text, **self.given(conversation)))

    async def stream(self, conversation, text):
        async with self.agent().run_stream(text, **self.given(conversation)) as result:
            parts = [part async for part in result.stream_text(delta=True, debounce_by=None)]
        assert len(parts) > 1
        return "".join(parts)

    def context(self, conversation):
        return self.memci.conversations.context(conversation)

    def close(self):
        self.memci.conversations.close()


class TestPydanticAI(AdapterConformance):
    driver = PydanticAIDriver


class KeepsItsHistory(PydanticAIDriver):
    """The program keeps the messages, and the prompt stands in the first of them."""

    def prompt(self):
        return {"system_prompt": PROMPT}

    def given(self, conversation):
        return {"conversation_id": conversation, "message_history": self.histories.get(conversation)}

    def ended(self, conversation, result):
        self.histories[conversation] = result.all_messages()
        return result.output


class TestPydanticAIHistory(AdapterConformance):
    driver = KeepsItsHistory


class Plain(KeepsItsHistory):
    """The same without memci, for benchmarks.adapters."""

    def capabilities(self):
        return []


def test_the_example_runs(tmp_path):
    assert "agent: You asked: And which city did I ask about?" in run_example("pydantic_ai_agent.py", tmp_path)
