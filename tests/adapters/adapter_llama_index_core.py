"""LlamaIndex's agents and chat engines keep memci's promises."""

import asyncio
import json
from base64 import b64encode
from typing import ClassVar

import pytest
from llama_index.core.agent.workflow import AgentStream, FunctionAgent
from llama_index.core.base.llms.types import (
    AudioBlock,
    CacheControl,
    CachePoint,
    ChatMessage,
    CitationBlock,
    DocumentBlock,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    VideoBlock,
)
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context as WorkflowContext
from llama_index.llms.openai_like import OpenAILike

from memci.adapters.llama_index import Memci, MemciAgent, MemciMemory, dump, load
from memci.errors import InvalidSetting
from memci.testing.adapters import AdapterConformance, Driver, lookup, played
from memci.testing.adapters.driver import PROMPT
from memci.testing.llm.server import ModelServer
from tests.adapters.examples import run_example
from tests.adapters.overflow import lengths_after_refusal

# workflows look at all attributes of an agent, those that Pydantic has deprecated, too
pytestmark = [
    pytest.mark.filterwarnings("ignore:The `.*` attribute is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Accessing the .* attribute on the instance:DeprecationWarning"),
]


def model(url, *, streaming=True):
    more = {"stream_options": {"include_usage": True}} if streaming else {}
    chat = {"is_chat_model": True, "is_function_calling_model": True}
    return OpenAILike("gpt-4o", api_base=url, api_key="key", max_retries=0, additional_kwargs=more, **chat)


class LlamaIndexDriver(Driver):
    lacks: ClassVar = {
        "blocking_calls_do_the_same": "LlamaIndex's agents have no blocking calls",
        "a_cancelled_run_leaves_no_half": "a run of LlamaIndex that is cancelled ends its call: the answer is stored",
    }

    def __init__(self, store, url, window):
        super().__init__(store, url, window)
        self.memci = Memci(store, window=window, model="gpt-4o")

    def running(self, conversation, text, *, streaming=False):
        llm = model(self.url, streaming=streaming)
        tools = [FunctionTool.from_defaults(lookup)]
        agent = MemciAgent(tools=tools, llm=llm, system_prompt=PROMPT, streaming=streaming, timeout=60)
        return agent.run(text, memory=self.memci.memory(conversation), max_iterations=50)

    async def say(self, conversation, text):
        return (await self.running(conversation, text)).response.content

    def say_sync(self, conversation, text):
        raise NotImplementedError

    async def stream(self, conversation, text):
        handler = self.running(conversation, text, streaming=True)
        deltas = [each.delta async for each in handler.stream_events() if isinstance(each, AgentStream)]
        await handler
        assert len(deltas) > 3
        return "".join(deltas)

    async def say_last(self, conversation, text):
        tools = [FunctionTool.from_defaults(lookup, return_direct=True)]
        agent = MemciAgent(tools=tools, llm=model(self.url, streaming=False), system_prompt=PROMPT, streaming=False)
        await agent.run(text, memory=self.memci.memory(conversation))

    def message(self, role, text, *, marked=False):
        mark = [CachePoint(cache_control=CacheControl(type="ephemeral"))] if marked else []
        return ChatMessage([TextBlock(text=text), *mark], role=role)

    def kinds(self):
        data = b64encode(b"\xff\xfe\xfb" * 20)
        image = ImageBlock(image=data, image_mimetype="image/png", detail="low")
        calls = [ToolCallBlock(tool_call_id=each, tool_name="look", tool_kwargs={"key": each * 20}) for each in "ab"]
        thought = ThinkingBlock(content="Hm.", additional_information={"signature": "SIG"})
        cited = CitationBlock(cited_content=TextBlock(text="c"), source="s", title="t", additional_location_info={})
        return [
            ChatMessage([TextBlock(text="Look."), image, ImageBlock(url="https://x.test/a.png")], role="user"),
            ChatMessage(
                [
                    AudioBlock(audio=data, format="wav"),
                    VideoBlock(video=data, video_mimetype="video/mp4"),
                    self.message("user", "x", marked=True).blocks[1],
                ],
                role="user",
            ),
            ChatMessage([DocumentBlock(data=data, document_mimetype="application/pdf", title="a.pdf")], role="user"),
            ChatMessage([thought, TextBlock(text="Yes."), TextBlock(text="No."), *calls], role="assistant"),
            ChatMessage([TextBlock(text="shot"), image], role="tool", additional_kwargs={"tool_call_id": "a"}),
            ChatMessage("", role="tool", additional_kwargs={"tool_call_id": "b"}),
            ChatMessage([TextBlock(text="Done."), cited], role="assistant"),
        ]

    def context(self, conversation):
        return self.memci.conversations.context(conversation)

    def close(self):
        self.memci.close()


class TestLlamaIndex(AdapterConformance):
    driver = LlamaIndexDriver


class Plain(LlamaIndexDriver):
    """The same without memci, with a memory that keeps everything, for benchmarks.adapters."""

    def __init__(self, store, url, window):
        super().__init__(store, url, window)
        self.memory = ChatMemoryBuffer.from_defaults(token_limit=1_000_000)

    def running(self, conversation, text, *, streaming=False):
        tools = [FunctionTool.from_defaults(lookup)]
        agent = FunctionAgent(tools=tools, llm=model(self.url), system_prompt=PROMPT, streaming=streaming, timeout=60)
        return agent.run(text, memory=self.memory, max_iterations=50)


@pytest.fixture
def memci(tmp_path):
    memci = Memci(tmp_path / "agent.db", window=4_000, model="gpt-4o")
    yield memci
    memci.close()


def test_a_chat_engine_has_the_window(memci):
    """With the memory alone, blocking calls of a chat engine are within the budget, and nothing is lost."""
    memory = memci.memory("a")
    with ModelServer(played) as server:
        engine = SimpleChatEngine.from_defaults(llm=model(server.base_url, streaming=False), memory=memory)
        for number in range(30):
            engine.chat("say " + " ".join(f"word{number}" for _ in range(200)))
        context = memory.conversations.context("a")
        assert max(context.count(json.dumps(each.body["messages"])) for each in server.requests) <= context.window
    assert context.report().pages["archived"]
    assert [message.role for message in memory.get_all()] == ["user", "assistant"] * 30


def test_what_a_memory_was_given_it_gives_back(memci):
    """All blocks come back; a message that is said again is stored again; other histories go on in a fork."""
    memory = memci.memory("a")
    image = ImageBlock(image=b"\x89PNG\r\n\x1a\n" + b"0" * 20)
    file = DocumentBlock(data=b"%PDF-1.4 text", document_mimetype="application/pdf", title="a.pdf")
    calls = [
        ToolCallBlock(tool_call_id="one", tool_name="lookup", tool_kwargs={"key": "a"}),
        ToolCallBlock(tool_call_id="two", tool_name="lookup", tool_kwargs='{"key":"b"}'),
    ]
    thought = ThinkingBlock(content="I think.", additional_information={"signature": "signed"})
    results = [ChatMessage("found", role="tool", additional_kwargs={"tool_call_id": each}) for each in ("one", "two")]
    given = [
        ChatMessage("yes", role="user"),
        ChatMessage("yes", role="user"),
        ChatMessage([TextBlock(text="look"), image, file], role="user"),
        ChatMessage([thought, *calls], role="assistant"),
        *results,
        ChatMessage("done", role="assistant"),
    ]
    for message in given:
        memory.put(message)
    assert memory.get_all() == given
    memory.set(given[:2])
    assert memory.get_all() == given[:2]
    memory.reset()
    assert memory.get_all() == memory.get() == []
    assert [item for message in load([item for each in given for item in dump(each)]) for item in dump(message)] == [
        item for each in given for item in dump(each)
    ]


def test_an_agent_without_its_memory_is_refused():
    """The run says what it needs, instead of going on without a window."""
    agent = MemciAgent(tools=[], llm=model("http://127.0.0.1:1"))

    async def run():
        await agent.run("Hi")

    with pytest.raises(InvalidSetting, match="memory"):
        asyncio.run(run())


def test_the_state_of_an_agent_is_shown(memci):
    """LlamaIndex writes an agent's state into the newest message of the user; the model sees it, the log has none."""

    async def run(url):
        agent = MemciAgent(llm=model(url), tools=[], initial_state={"name": "Ann"})
        await agent.run("say hello", memory=memci.memory("a"))

    with ModelServer(["Hello."]) as server:
        asyncio.run(run(server.base_url))
        assert "Ann" in server.requests[-1].text
    assert [message.content for message in memci.memory("a").get_all()] == ["say hello", "Hello."]


@pytest.mark.parametrize("in_a_new_process", [False, True])
def test_the_state_of_a_workflow_is_kept(in_a_new_process, tmp_path):
    """A program keeps the `Context` of its runs, also as JSON: the memory that it names goes on."""

    async def run(url):
        memci, agent = Memci(tmp_path / "agent.db", window=4_000), MemciAgent(llm=model(url), tools=[])
        context = WorkflowContext(agent)
        await agent.run("say 0", memory=memci.memory("a"), ctx=context)
        if in_a_new_process:
            memci.close()
            memci = Memci(tmp_path / "agent.db", window=4_000)
            context = WorkflowContext.from_dict(agent, context.to_dict())
        await agent.run("say 1", ctx=context)
        told = [message.content for message in memci.memory("a").get_all()]
        memci.close()
        return told

    with ModelServer(["Hello.", "Again."]) as server:
        told = asyncio.run(run(server.base_url))
    assert told == ["say 0", "Hello.", "say 1", "Again."]
    with pytest.raises(InvalidSetting, match="no Memci has its store"):
        MemciMemory(conversation="a", store="another").get()


def test_a_request_that_is_too_long_becomes_shorter(tmp_path):
    refused, next_one = lengths_after_refusal(LlamaIndexDriver, tmp_path / "agent.db")
    assert next_one < refused


def test_the_example_runs(tmp_path):
    assert "agent: You asked: And which city did I ask about?" in run_example("llama_index_agent.py", tmp_path)
