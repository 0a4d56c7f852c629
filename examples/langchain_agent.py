"""A LangChain agent with a bounded window, a tool, and a memory that survives the process.

    pip install 'memci' langchain langchain-openai
    OPENAI_API_KEY=… python examples/langchain_agent.py

Another server: set OPENAI_BASE_URL.
"""

from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from memci.adapters.langchain import MemciMiddleware


@tool
def weather(city: str) -> str:
    """Return the weather in a city."""
    return f"{city}: 18 °C, light rain."


memci = MemciMiddleware("langchain_agent.db", window=32_000)
agent = create_agent(ChatOpenAI(model="gpt-4o-mini"), [weather], system_prompt="Be brief.", middleware=[memci])
alice = {"configurable": {"thread_id": "alice"}}

for text in ("What is the weather in Oslo?", "And which city did I ask about?"):
    answer = agent.invoke({"messages": [{"role": "user", "content": text}]}, alice)["messages"][-1]
    print(f"user: {text}\nagent: {answer.text}\n")

print(memci.conversations.context("alice").report())
memci.conversations.close()
