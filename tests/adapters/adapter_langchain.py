"""LangChain's agents, with and without a checkpointer, keep memci's promises."""

from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver

from memci.adapters.langchain import MemciMiddleware
from memci.testing.adapters import AdapterConformance, Driver, lookup
from memci.testing.adapters.driver import PROMPT
from tests.adapters.examples import run_example


class LangChainDriver(Driver):
    checkpointer = None

    def __init__(self, store, url, window):
        super().__init__(store, url, window)
        self.memci = MemciMiddleware(store, window=window, model="gpt-4o")
        model = ChatOpenAI(model="gpt-4o", base_url=url, api_key="key", max_retries=0, stream_usage=True)
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


def test_the_example_runs(tmp_path):
    assert "agent: You asked: And which city did I ask about?" in run_example("langchain_agent.py", tmp_path)
