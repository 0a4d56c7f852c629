"""An agent of smolagents with a bounded window, a tool, and a memory that survives the process.

    pip install memci 'smolagents[openai]'
    OPENAI_API_KEY=… python examples/smolagents_agent.py

Another server: set OPENAI_BASE_URL.
"""

import os

from smolagents import OpenAIModel, ToolCallingAgent, tool

from memci.adapters.smolagents import Memci


@tool
def weather(city: str) -> str:
    """Return the weather in a city.

    Args:
        city: Its name.
    """
    return f"{city}: 18 °C, light rain."


memci = Memci("smolagents_agent.db", window=32_000)
model = OpenAIModel("gpt-4o-mini", api_base=os.environ.get("OPENAI_BASE_URL"), api_key=os.environ["OPENAI_API_KEY"])
agent = memci.attach(ToolCallingAgent([weather], model), "alice")

for text in ("What is the weather in Oslo?", "And which city did I ask about?"):
    print(f"user: {text}\nagent: {agent.run(text)}\n")

print(memci.conversations.context("alice").report())
memci.close()
