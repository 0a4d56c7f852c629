"""LangChain's agents, with and without a checkpointer, keep memci's promises."""

import re
from base64 import b64encode
from pathlib import Path

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from memci import Context
from memci.adapters.langchain import MemciMiddleware
from memci.messages import text_of
from memci.testing.adapters import AdapterConformance, Driver, lookup
from memci.testing.adapters.driver import PROMPT
from memci.testing.llm import ModelServer
from tests.adapters.examples import run_example
from tests.adapters.overflow import lengths_after_refusal

DATA = b64encode(b"\xff\xfe\xfb" * 20).decode()


class LangChainDriver(Driver):
    checkpointer = None

    def __init__(self, store, url, window):
        super().__init__(store, url, window)
        self.memci = MemciMiddleware(store, window=window, model="gpt-4o")
        self.model = model = ChatOpenAI(model="gpt-4o", base_url=url, api_key="key", max_retries=0, stream_usage=True)
        tools = [tool(lookup)]
        saver = self.checkpointer and self.checkpointer()
        self.agent = create_agent(model, tools, system_prompt=PROMPT, middleware=self.middleware(), checkpointer=saver)

    def middleware(self):
        return [self.memci]

    def given(self, conversation, text):
        config = {"configurable": {"thread_id": conversation}, "recursion_limit": 100}
        return {"messages": [{"role": "user", "content": text}]}, config

    async def say(self, conversation, text):
        return (await self.agent.ainvoke(*self.given(conversation, text)))["messages"][-1].text

    def say_sync(self, conversation, text):
        return self.agent.invoke(*self.given(conversation, text))["messages"][-1].text

    async def stream(self, conversation, text):
        parts = [part async for part in self.agent.astream(*self.given(conversation, text), stream_mode="messages")]
        assert len({id(part) for part, _ in parts}) > 3
        last = parts[-1][0].id
        return "".join(part.text for part, _ in parts if part.id == last)

    async def say_last(self, conversation, text):
        given = {"system_prompt": PROMPT, "middleware": self.middleware()}
        agent = create_agent(self.model, [tool(lookup, return_direct=True)], **given)
        await agent.ainvoke(*self.given(conversation, text))

    def message(self, role, text, *, marked=False):
        mark = {"cache_control": {"type": "ephemeral"}} if marked else {}
        kind = HumanMessage if role == "user" else AIMessage
        return kind([{"type": "text", "text": text, **mark}] if role == "user" else text)

    def kinds(self):
        user = [
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA}", "detail": "low"}},
            {"type": "image", "base64": DATA, "mime_type": "image/png"},
            {"type": "image", "source_type": "base64", "data": DATA, "mime_type": "image/png"},
            {"type": "image", "url": "https://x.test/a.png"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}},
            {"type": "file", "base64": DATA, "mime_type": "application/pdf"},
            {"type": "audio", "base64": DATA, "mime_type": "audio/wav"},
            {"type": "media", "data": DATA, "mime_type": "video/mp4"},
            {"type": "input_image", "image_url": "https://x.test/a.png"},
            {"type": "image", "file_id": "file_1"},
        ]
        search = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}}
        found = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [{"title": "t"}]}
        thought = {"type": "thinking", "thinking": "Hm.", "signature": "SIG"}
        calls = [{"id": each, "name": "look", "args": {"key": each * 20}, "type": "tool_call"} for each in "ab"]
        uses = [{"type": "tool_use", "id": each["id"], "name": "look", "input": each["args"]} for each in calls]
        return [
            HumanMessage([{"type": "text", "text": "Look."}, *user], name="ann"),
            AIMessage([thought, {"type": "text", "text": "Yes."}, search, found, *uses], tool_calls=calls),
            ToolMessage([{"type": "text", "text": "shot"}, *user[:5]], tool_call_id="a"),
            ToolMessage("failed", tool_call_id="b", status="error"),
            AIMessageChunk("So far."),
            AIMessage("Done.", additional_kwargs={"reasoning_content": "So."}),
            HumanMessage(["Thanks", {"type": "text", "text": "!", "cache_control": {"type": "ephemeral"}}]),
            AIMessage([{"type": "reasoning", "id": "rs_1", "encrypted_content": "E"}, {"type": "text", "text": "Hi"}]),
        ]

    def same(self, message):
        calls = getattr(message, "tool_calls", None), getattr(message, "status", None)
        return (
            message.type.removesuffix("MessageChunk").lower(),
            message.content,
            message.name,
            message.additional_kwargs,
            calls,
        )

    def context(self, conversation):
        return self.memci.conversations.context(conversation)

    def close(self):
        self.memci.conversations.close()


class TestLangChain(AdapterConformance):
    driver = LangChainDriver


class KeepsTheState(LangChainDriver):
    checkpointer = InMemorySaver


class TestLangGraphState(AdapterConformance):
    driver = KeepsTheState


class Plain(KeepsTheState):
    """The same without memci, for benchmarks.adapters."""

    def middleware(self):
        return []


def test_a_request_that_is_too_long_becomes_shorter(tmp_path):
    refused, next_one = lengths_after_refusal(LangChainDriver, tmp_path / "agent.db")
    assert next_one < refused


def test_the_example_runs(tmp_path):
    assert "agent: You asked: And which city did I ask about?" in run_example("langchain_agent.py", tmp_path)


def test_a_graph_of_ones_own_is_as_the_page_shows(tmp_path, monkeypatch):
    """The node of the page runs: the tool is called, all is stored once, and later requests leave old pages out."""
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[2] / "docs/adapters/langchain.md"
    _, block = re.findall(r"^```python.*?\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    call = {"id": "c1", "type": "function", "function": {"name": "lookup", "arguments": '{"key": "a"}'}}
    with ModelServer([{"tool_calls": [call]}, "It is a.", *["Noted."] * 30]) as server:
        model = ChatOpenAI(model="gpt-4o", base_url=server.base_url, api_key="key", max_retries=0)
        names = {"MemciMiddleware": MemciMiddleware, "SystemMessage": SystemMessage, "model": model}
        names |= {"tools": [tool(lookup)]}
        exec(block.replace("32_000", "2_000"), names)
        graph = StateGraph(MessagesState)
        graph.add_node("model", names["call_model"])
        graph.add_node("tools", ToolNode([*names["tools"], *names["middleware"].tools]))
        graph.add_edge(START, "model")
        graph.add_conditional_edges("model", tools_condition)
        graph.add_edge("tools", "model")
        agent, alice = graph.compile(checkpointer=InMemorySaver()), {"configurable": {"thread_id": "alice"}}
        for number in range(31):
            asked = {"role": "user", "content": f"Look number {number} up, please. " * 9}
            said = agent.invoke({"messages": [asked]}, alice)["messages"]
        report = names["middleware"].conversations.context("alice").report()
        names["middleware"].conversations.close()

    assert (len(said), report.messages, said[3].text) == (64, 64, "It is a.")
    assert report.compactions > 0
    assert len(server.requests[-1].messages) < 40


def test_a_call_with_arguments_that_are_no_json_is_kept(tmp_path):
    """The run ends as LangChain ends it; the next one shows the call, and that it was not run."""
    call = {"id": "c1", "type": "function", "function": {"name": "lookup", "arguments": '{"key": '}}
    with ModelServer([{"tool_calls": [call]}, "Fine."]) as server:
        driver = LangChainDriver(tmp_path / "agent.db", server.base_url, 6_000)
        for text, answered in (("Look it up.", '{"key": '), ("Again.", "Fine.")):
            said = driver.agent.invoke(*driver.given("alice", text))["messages"][-1]
            assert (said.invalid_tool_calls[0]["args"] if said.invalid_tool_calls else said.text) == answered
        driver.memci.conversations.close()

    roles = [each["role"] for each in server.requests[-1].messages]
    assert roles == ["system", "user", "assistant", "tool", "user"]


@pytest.mark.parametrize("kept", [None, True])
def test_an_agent_that_a_tool_calls_has_a_conversation_of_its_own(kept, tmp_path):
    """Also with the same middleware; it is a new one for each call, unless LangGraph keeps its state."""

    def script(request):
        if "helper" in text_of(request.messages[0]):
            return f"I see {len(request.messages) - 1}."
        call = {"id": f"c{len(request.messages)}", "type": "function"}
        asks = {"tool_calls": [{**call, "function": {"name": "ask", "arguments": '{"question": "And?"}'}}]}
        return asks if request.messages[-1]["role"] == "user" else f"It said: {request.text}"

    with ModelServer(script) as server:
        driver = KeepsTheState(tmp_path / "agent.db", server.base_url, 6_000)
        given = {"middleware": driver.middleware(), "checkpointer": kept}
        helper = create_agent(driver.model, [], system_prompt="A helper.", **given)

        @tool
        def ask(question: str) -> str:
            """Ask the helper."""
            return helper.invoke({"messages": [("user", question)]})["messages"][-1].text

        agent = create_agent(
            driver.model, [ask], system_prompt=PROMPT, middleware=driver.middleware(), checkpointer=InMemorySaver()
        )
        answers = [agent.invoke(*driver.given("alice", text))["messages"][-1].text for text in ("Hi", "Again")]
        names = [each.id for each in Context.list(tmp_path / "agent.db")]
        said = [text_of(each) for each in driver.told("alice")]
        driver.close()

    assert answers == ["It said: I see 1.", "It said: I see 3." if kept else "It said: I see 1."]
    assert said == ["Hi", "", "I see 1.", answers[0], "Again", "", answers[1].removeprefix("It said: "), answers[1]]
    assert len(names) == (2 if kept else 3)
    assert all(each.startswith("alice/tools") for each in names if each != "alice")
