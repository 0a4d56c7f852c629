"""Strands Agents keep memci's promises, and its messages come back as they were."""

import pytest
from strands import Agent, ToolContext, tool
from strands.agent.conversation_manager import NullConversationManager
from strands.models.openai import OpenAIModel

from memci.adapters.strands import Memci, dump, load
from memci.errors import InvalidSetting
from memci.testing.adapters import AdapterConformance, Driver, lookup
from memci.testing.adapters.driver import PROMPT
from tests.adapters.examples import run_example
from tests.adapters.overflow import lengths_after_refusal


class StrandsDriver(Driver):
    def __init__(self, store, url, window):
        super().__init__(store, url, window)
        self.agents = {}

    def agent(self, conversation):
        if conversation not in self.agents:
            memci = Memci(self.store, conversation, window=self.window, model="gpt-4o")
            arguments = {"base_url": self.url, "api_key": "key", "max_retries": 0}
            model = OpenAIModel(client_args=arguments, model_id="gpt-4o")
            given = {"tools": [tool(lookup)], "callback_handler": None, **self.more(memci)}
            self.agents[conversation] = Agent(model, system_prompt=PROMPT, **given), memci
        return self.agents[conversation]

    def more(self, memci):
        return {"plugins": [memci]}

    async def say(self, conversation, text):
        return str(await self.agent(conversation)[0].invoke_async(text)).strip()

    def say_sync(self, conversation, text):
        return str(self.agent(conversation)[0](text)).strip()

    async def say_last(self, conversation, text):
        @tool(name="lookup", context=True)
        def last(key: str, tool_context: ToolContext) -> str:
            """Look up the key."""
            tool_context.agent.cancel(after_current_tools=True)
            return lookup(key)

        agent, _ = self.agent(conversation)
        agent.tool_registry.process_tools([last])
        await agent.invoke_async(text)
        self.agents.pop(conversation)[1].conversations.close()

    def conversations(self, conversation):
        return self.agent(conversation)[1].conversations

    def message(self, role, text, *, marked=False):
        return {"role": role, "content": [{"text": text}, *([{"cachePoint": {"type": "default"}}] if marked else [])]}

    def kinds(self):
        source = {"source": {"bytes": b"\xff\xfe\xfb" * 20}}
        image = {"image": {"format": "png", **source}}
        media = [image, {"video": {"format": "mp4", **source}}, {"document": {"format": "pdf", "name": "a", **source}}]
        thought = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "s"}}}
        hidden = {"reasoningContent": {"redactedContent": b"\xff\x00"}}
        uses = [{"toolUse": {"toolUseId": each, "name": "look", "input": {"key": each * 20}}} for each in "ab"]
        results = [
            {
                "toolResult": {
                    "toolUseId": "a",
                    "status": "success",
                    "content": [{"text": "A"}, *media, {"json": {"n": 1}}],
                }
            },
            {"toolResult": {"toolUseId": "b", "status": "error", "content": [{"text": "B"}]}},
        ]
        return [
            {"role": "user", "content": [{"text": "Look."}, {"cachePoint": {"type": "default"}}, *media]},
            {"role": "assistant", "content": [thought, hidden, {"text": "Yes."}, *uses]},
            {"role": "user", "content": results},
            {"role": "assistant", "content": [{"citationsContent": {"content": [{"text": "Done."}], "citations": []}}]},
        ]

    async def stream(self, conversation, text):
        events = [event async for event in self.agent(conversation)[0].stream_async(text)]
        pieces = [event["data"] for event in events if "data" in event]
        assert len(pieces) > 1
        return "".join(pieces)

    def context(self, conversation):
        return self.agent(conversation)[1].conversations.context(conversation)

    def close(self):
        for _, memci in self.agents.values():
            memci.conversations.close()


class TestStrands(AdapterConformance):
    driver = StrandsDriver


class Plain(StrandsDriver):
    """The same without memci, for benchmarks.adapters."""

    def more(self, memci):
        return {"conversation_manager": NullConversationManager()}


def test_messages_come_back_as_they_were():
    """Texts, images, thoughts, calls and results of both kinds are written and read without a change."""
    image = {"image": {"format": "png", "source": {"bytes": b"\x00\x01"}}}
    thought = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "s"}}}
    uses = [{"toolUse": {"toolUseId": each, "name": "lookup", "input": {"key": each}}} for each in "ab"]
    results = [
        {"toolResult": {"toolUseId": "a", "status": "success", "content": [{"text": "A"}, image]}},
        {"toolResult": {"toolUseId": "b", "status": "error", "content": [{"text": "B"}]}},
    ]
    messages = [
        {"role": "user", "content": [{"text": "Look."}, image]},
        {"role": "assistant", "content": [thought, {"text": "Yes."}, *uses]},
        {"role": "user", "content": results},
        {"role": "assistant", "content": [{"text": "Done."}]},
    ]

    assert [*load([item for message in messages for item in dump(message)])] == messages


def test_a_conversation_has_a_name(tmp_path):
    with pytest.raises(InvalidSetting, match="say which conversation"):
        Memci(tmp_path / "agent.db", "")


def test_a_request_that_is_too_long_becomes_shorter(tmp_path):
    refused, next_one = lengths_after_refusal(StrandsDriver, tmp_path / "agent.db")
    assert next_one < refused


def test_the_example_runs(tmp_path):
    assert "agent: You asked: And which city did I ask about?" in run_example("strands_agent.py", tmp_path)
