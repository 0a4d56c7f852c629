"""An agent of Pydantic AI with a bounded window, a tool, and a memory that survives the process.

    pip install memci 'pydantic-ai-slim[openai]'
    OPENAI_API_KEY=… python examples/pydantic_ai_agent.py

Another server: set OPENAI_BASE_URL.
"""

from pydantic_ai import Agent

from memci.adapters.pydantic_ai import Memci

memci = Memci("pydantic_ai_agent.db", window=32_000)
agent = Agent("openai-chat:gpt-4o-mini", instructions="Be brief.", capabilities=[memci])


@agent.tool_plain
def weather(city: str) -> str:
    """Return the weather in a city."""
    return f"{city}: 18 °C, light rain."


for text in ("What is the weather in Oslo?", "And which city did I ask about?"):
    answer = agent.run_sync(text, conversation_id="alice")
    print(f"user: {text}\nagent: {answer.output}\n")

print(memci.conversations.context("alice").report())
memci.conversations.close()
