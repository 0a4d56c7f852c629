"""Microsoft Agent Framework keeps memci's promises."""

import asyncio
from base64 import b64encode
from typing import ClassVar

import pytest
from agent_framework import Agent, AgentSession, Content, InMemoryHistoryProvider, Message
from agent_framework.openai import OpenAIChatCompletionClient
from openai import AsyncOpenAI

from memci.adapters.agent_framework import Memci, dump, load
from memci.messages import text_of
from memci.testing.adapters import AdapterConformance, Driver, lookup
from memci.testing.adapters.driver import PROMPT
from memci.testing.llm.server import ModelServer
from tests.adapters.examples import run_example
from tests.adapters.overflow import lengths_after_refusal


class AgentFrameworkDriver(Driver):
    lacks: ClassVar = {"blocking_calls_do_the_same": "Agent Framework has no blocking calls"}

    def __init__(self, store, url, window):
        super().__init__(store, url, window)
        self.memci = Memci(store, window=window, model="gpt-4o")
        self.sessions = {}

    def running(self, conversation, text, *, stream=False):
        openai = AsyncOpenAI(base_url=self.url, api_key="key", max_retries=0)
        client = OpenAIChatCompletionClient("gpt-4o", async_client=openai)
        agent = Agent(client, PROMPT, tools=[lookup], context_providers=self.providers())
        session = self.sessions.setdefault(conversation, AgentSession(session_id=conversation))
        return agent.run(text, session=session, stream=stream)

    def providers(self):
        return [self.memci]

    async def say(self, conversation, text):
        return (await self.running(conversation, text)).text

    def say_sync(self, conversation, text):
        raise NotImplementedError

    async def stream(self, conversation, text):
        updates = [update async for update in self.running(conversation, text, stream=True)]
        assert len(updates) > 3
        return "".join(update.text for update in updates)

    def message(self, role, text, *, marked=False):
        return Message(role, [text])

    def kinds(self):
        data = b64encode(b"\xff\xfe\xfb" * 20).decode()
        links = [("https://x.test/a.png", "image/png"), ("https://x.test/a.wav", "audio/wav")]
        links += [(f"data:{each};base64,{data}", each) for each in ("image/png", "application/pdf")]
        media = [Content.from_uri(url, media_type=kind) for url, kind in links]
        found = [Content.from_text("r")]
        return [
            Message("user", ["Look.", *media, Content.from_hosted_file("file_1")]),
            Message(
                "assistant",
                [
                    Content.from_text_reasoning(text="Hm.", protected_data="SIG"),
                    Content.from_mcp_server_tool_call("m", "find", server_name="docs", arguments={"a": 1}),
                    Content.from_mcp_server_tool_result("m", output=found),
                    "Yes.",
                    Content.from_function_call("a", "look", arguments='{"key": "aaaaaaaaaaaaaaaaaaaa"}'),
                    Content.from_function_call("b", "look", arguments="{}"),
                ],
            ),
            Message("tool", [Content.from_function_result("a", result=[*found, media[2]])]),
            Message("tool", [Content.from_function_result("b", result={"n": [1]})]),
            Message("assistant", ["Done"]),
            Message(
                "user",
                [
                    Content.from_function_approval_response(
                        approved=True, id="i", function_call=Content.from_function_call("q", "f", arguments="{}")
                    )
                ],
            ),
            Message("assistant", [Content.from_error(message="failed")]),
        ]

    def same(self, message):
        return message.role, [each.to_dict(exclude={"raw_representation"}) for each in message.contents]

    def context(self, conversation):
        return self.memci.conversations.context(conversation)

    def close(self):
        self.memci.close()


class TestAgentFramework(AdapterConformance):
    driver = AgentFrameworkDriver


class Plain(AgentFrameworkDriver):
    """The same without memci, for benchmarks.adapters."""

    def providers(self):
        return [InMemoryHistoryProvider()]


def test_what_a_message_holds_comes_back():
    """Text, media, thoughts, calls and results are written as the same items again; hosted calls stay as they are."""
    given = [
        Message(
            "user", ["look", Content.from_data(b"0" * 20, "image/png"), Content.from_data(b"1", "application/pdf")]
        ),
        Message(
            "assistant",
            [
                Content.from_text_reasoning(text="I think.", protected_data="signed"),
                Content.from_mcp_server_tool_call("zero", "find", server_name="docs", arguments={"a": 1}),
                "Looking.",
                Content.from_function_call("one", "lookup", arguments='{"key":"a"}'),
                Content.from_function_call("two", "lookup", arguments={"key": "b"}),
            ],
        ),
        Message("tool", [Content.from_function_result("one", result="found")]),
        Message("tool", [Content.from_function_result("two", result=["a", 1])]),
        Message("assistant", ["done"]),
    ]
    items = [item for message in given for item in dump(message)]
    assert [len([*dump(message)]) for message in given] == [1] * 5
    assert [item for message in load(items) for item in dump(message)] == items
    assert [message.text for message in load(items)] == [message.text for message in given]


def test_other_prompts_of_a_run_lead_too(tmp_path):
    """System messages in the list stand in the prompt; the notice follows them."""
    memci = Memci(tmp_path / "agent.db", window=4_000)
    with ModelServer(["Hello."]) as server:
        openai = AsyncOpenAI(base_url=server.base_url, api_key="key")
        agent = Agent(OpenAIChatCompletionClient("gpt-4o", async_client=openai), PROMPT, context_providers=[memci])
        asyncio.run(agent.run([Message("system", ["Rhyme."]), Message("user", ["Hi"])], session=AgentSession()))
        first, *rest = server.requests[-1].messages
    assert text_of(first).startswith(f"{PROMPT}\n\nRhyme.\n\n#")
    assert [message["role"] for message in rest] == ["user"]
    memci.close()


def test_what_a_program_stopped_to_read_is_not_stored(tmp_path):
    """The session has neither the question nor the part of its answer; the next questions are answered."""
    with ModelServer(lambda request: f"It is {request.text}") as server:
        driver = AgentFrameworkDriver(tmp_path / "agent.db", server.base_url, 4_000)

        async def run():
            async for update in driver.running("a", "One?", stream=True):
                if update.text:
                    break
            await driver.say("a", "Two?")
            task = asyncio.create_task(driver.say("a", "Lost?"))
            hang = server.hangs()
            await asyncio.to_thread(hang.reached.wait, 30)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            hang.release()
            return await driver.say("a", "Three?")

        assert asyncio.run(run())
        told = [text_of(each) for each in driver.told("a")]
        driver.close()
    assert told == ["One?", "Two?", "It is Two?", "Three?", "It is Three?"]


def test_arguments_that_may_be_null_may_be_left_out(tmp_path):
    """Agent Framework checks a call before memci sees it."""
    body = {"name": "search_memory", "arguments": '{"query": "zebra"}'}
    with ModelServer([{"tool_calls": [{"id": "c1", "type": "function", "function": body}]}, "None."]) as server:
        driver = AgentFrameworkDriver(tmp_path / "agent.db", server.base_url, 4_000)
        asyncio.run(driver.say("a", "Zebra?"))
        assert 'nothing was found for "zebra"' in server.requests[-1].text
        driver.close()


@pytest.mark.parametrize("how", ["say", "stream"])
def test_a_request_that_is_too_long_becomes_shorter(tmp_path, how):
    refused, next_one = lengths_after_refusal(AgentFrameworkDriver, tmp_path / "agent.db", how=how)
    assert next_one < refused


def test_the_example_runs(tmp_path):
    assert "agent: You asked: And which city did I ask about?" in run_example("agent_framework_agent.py", tmp_path)
