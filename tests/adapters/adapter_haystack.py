"""Haystack's agents keep memci's promises, and its messages come back as they were."""

from base64 import b64encode

from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage, FileContent, ImageContent, ReasoningContent, TextContent, ToolCall
from haystack.tools import tool
from haystack.utils import Secret

from memci.adapters.haystack import MemciChatGenerator, dump, load
from memci.messages import text_of
from memci.testing.adapters import AdapterConformance, Driver, lookup
from memci.testing.adapters.driver import PROMPT
from memci.testing.llm.server import ModelServer
from tests.adapters.examples import run_example
from tests.adapters.overflow import lengths_after_refusal


class HaystackDriver(Driver):
    def __init__(self, store, url, window):
        super().__init__(store, url, window)
        self.agents = {}

    def model(self):
        return OpenAIChatGenerator(Secret.from_token("key"), model="gpt-4o", api_base_url=self.url, max_retries=0)

    def agent(self, conversation):
        if conversation not in self.agents:
            memci = MemciChatGenerator(self.model(), self.store, conversation, window=self.window, model="gpt-4o")
            given = {"system_prompt": PROMPT, "max_agent_steps": 60}
            self.agents[conversation] = Agent(chat_generator=memci, tools=[tool(lookup), *memci.tools], **given), memci
        return self.agents[conversation][0]

    async def say(self, conversation, text):
        done = await self.agent(conversation).run_async([ChatMessage.from_user(text)])
        return done["messages"][-1].text

    def say_sync(self, conversation, text):
        return self.agent(conversation).run([ChatMessage.from_user(text)])["messages"][-1].text

    async def say_last(self, conversation, text):
        memci = MemciChatGenerator(self.model(), self.store, conversation, window=self.window, model="gpt-4o")
        given = {"system_prompt": PROMPT, "exit_conditions": ["lookup"], "hooks": memci.hooks}
        agent = Agent(chat_generator=memci, tools=[tool(lookup), *memci.tools], **given)
        await agent.run_async([ChatMessage.from_user(text)])
        memci.conversations.close()

    def conversations(self, conversation):
        self.agent(conversation)
        return self.agents[conversation][1].conversations

    def message(self, role, text, *, marked=False):
        return ChatMessage.from_user(text) if role == "user" else ChatMessage.from_assistant(text)

    def kinds(self):
        data = b64encode(b"\xff\xfe\xfb" * 20).decode()
        image, file = ImageContent(data, "image/png", detail="low"), FileContent(data, "application/pdf", "a.pdf")
        calls = [ToolCall("look", {"key": each * 20}, each, extra={"signed": each}) for each in "abc"]
        return [
            ChatMessage.from_user(content_parts=["Look.", image, file, "here"], name="ann"),
            ChatMessage.from_assistant("Yes.", tool_calls=calls, reasoning=ReasoningContent("Hm.", extra={"id": "r"})),
            ChatMessage.from_tool([TextContent("shot"), image], calls[0]),
            ChatMessage.from_tool("failed", calls[1], error=True),
            ChatMessage.from_tool("", calls[2]),
            ChatMessage.from_assistant("Done."),
        ]

    async def stream(self, conversation, text):
        pieces = []

        async def piece(chunk):
            pieces.append(chunk.content)

        await self.agent(conversation).run_async([ChatMessage.from_user(text)], streaming_callback=piece)
        assert len(pieces) > 3
        return "".join(filter(None, pieces))

    def context(self, conversation):
        self.agent(conversation)
        return self.agents[conversation][1].conversations.context(conversation)

    def close(self):
        for _, memci in self.agents.values():
            memci.conversations.close()


class TestHaystack(AdapterConformance):
    driver = HaystackDriver


class Plain(HaystackDriver):
    """The same without memci: the list of all runs is given again, for benchmarks.adapters."""

    async def say(self, conversation, text):
        if conversation not in self.agents:
            given = {"system_prompt": PROMPT, "max_agent_steps": 60}
            self.agents[conversation] = Agent(chat_generator=self.model(), tools=[tool(lookup)], **given), []
        agent, told = self.agents[conversation]
        done = await agent.run_async([*told, ChatMessage.from_user(text)])
        told[:] = [each for each in done["messages"] if not each.is_from("system")]
        return told[-1].text

    def close(self):
        """There is nothing to close."""


def test_messages_come_back_as_they_were():
    """Texts, calls, thoughts and results are written and read without a change."""
    calls = [ToolCall("lookup", {"key": each}, each) for each in "ab"]
    messages = [
        ChatMessage.from_user("Look."),
        ChatMessage.from_assistant("Yes.", tool_calls=calls, reasoning="Hm."),
        ChatMessage.from_assistant("Done."),
    ]

    assert [*load([item for message in messages for item in dump(message)])] == messages


def test_a_list_that_the_program_keeps_is_shown_as_it_is(tmp_path):
    """It holds the prompt of each run, and the program may remove messages from it, or all."""
    with ModelServer(lambda request: f"It is {request.text}") as server:
        driver = HaystackDriver(tmp_path / "agent.db", server.base_url, 4_000)
        kept = []
        for text in "abc":
            kept = driver.agent("alice").run([*kept, ChatMessage.from_user(text)])["messages"]
        rest = [each for each in kept if each.text not in {"a", "It is a"}]
        for kept in (rest, []):
            driver.agent("alice").run([*kept, ChatMessage.from_user("d")])
        shown = [[text_of(each) for each in request.messages[1:]] for request in server.requests[3:]]
        prompts = {text_of(request.messages[0]) for request in server.requests}
        driver.close()

    assert shown == [["b", "It is b", "c", "It is c", "d"], ["d"]]
    assert len(prompts) == 1


def test_a_request_that_is_too_long_becomes_shorter(tmp_path):
    refused, next_one = lengths_after_refusal(HaystackDriver, tmp_path / "agent.db")
    assert next_one < refused


def test_the_example_runs(tmp_path):
    assert "agent: You asked: And which city did I ask about?" in run_example("haystack_agent.py", tmp_path)
