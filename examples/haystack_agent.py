"""A Haystack agent with a bounded window, a tool, and a memory that survives the process.

    pip install 'memci' haystack-ai
    OPENAI_API_KEY=… python examples/haystack_agent.py

Another server: set OPENAI_BASE_URL.
"""

import os

from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import tool

from memci.adapters.haystack import MemciChatGenerator


@tool
def weather(city: str) -> str:
    """Return the weather in a city."""
    return f"{city}: 18 °C, light rain."


model = OpenAIChatGenerator(model="gpt-4o-mini", api_base_url=os.environ.get("OPENAI_BASE_URL"))
generator = MemciChatGenerator(model, "haystack_agent.db", "alice", window=32_000)
agent = Agent(
    chat_generator=generator, system_prompt="Be brief.", tools=[weather, *generator.tools], hooks=generator.hooks
)

for text in ("What is the weather in Oslo?", "And which city did I ask about?"):
    answer = agent.run([ChatMessage.from_user(text)])["messages"][-1]
    print(f"user: {text}\nagent: {answer.text}\n")

print(generator.conversations.context("alice").report())
generator.conversations.close()
