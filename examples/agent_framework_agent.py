"""An agent of Microsoft Agent Framework with a bounded window, a tool, and a memory that survives the process.

    pip install memci agent-framework-core agent-framework-openai
    OPENAI_API_KEY=… python examples/agent_framework_agent.py

Another server: set OPENAI_BASE_URL.
"""

import asyncio

from agent_framework import Agent, AgentSession
from agent_framework.openai import OpenAIChatCompletionClient

from memci.adapters.agent_framework import Memci


def weather(city: str) -> str:
    """Return the weather in a city."""
    return f"{city}: 18 °C, light rain."


async def main() -> None:
    """Ask two questions in one session."""
    memci = Memci("agent_framework_agent.db", window=32_000)
    client = OpenAIChatCompletionClient("gpt-4o-mini")
    agent = Agent(client, "Be brief.", tools=[weather], context_providers=[memci])
    session = AgentSession(session_id="alice")
    for text in ("What is the weather in Oslo?", "And which city did I ask about?"):
        answer = await agent.run(text, session=session)
        print(f"user: {text}\nagent: {answer.text}\n")
    print(memci.conversations.context("alice").report())
    memci.close()


asyncio.run(main())
