"""A Strands agent with a bounded window, a tool, and a memory that survives the process.

    pip install 'memci' 'strands-agents[openai]'
    OPENAI_API_KEY=… python examples/strands_agent.py

Another server: set OPENAI_BASE_URL.
"""

from strands import Agent, tool
from strands.models.openai import OpenAIModel

from memci.adapters.strands import Memci


@tool
def weather(city: str) -> str:
    """Return the weather in a city."""
    return f"{city}: 18 °C, light rain."


memci = Memci("strands_agent.db", "alice", window=32_000)
model = OpenAIModel(model_id="gpt-4o-mini")
agent = Agent(model, system_prompt="Be brief.", tools=[weather], plugins=[memci], callback_handler=None)

for text in ("What is the weather in Oslo?", "And which city did I ask about?"):
    print(f"user: {text}\nagent: {agent(text)}")

print(memci.conversations.context("alice").report())
memci.conversations.close()
