"""An agent over OpenAI's plain client: a bounded window, a tool, and a memory that survives the process.

    pip install memci openai
    OPENAI_API_KEY=… python examples/plain_client.py

Another server: set OPENAI_BASE_URL. For Anthropic or Google: `anthropic(…)` or `gemini(…)` in place of `openai_chat`.
"""

from openai import OpenAI

from memci import Context
from memci.adapters.clients import openai_chat
from memci.adapters.loop import Agent


def weather(city: str) -> str:
    """Return the weather in a city."""
    return f"{city}: 18 °C, light rain."


with Context.open("plain_client.db", "alice", system="Be brief.", window=32_000) as context:
    agent = Agent(openai_chat(OpenAI(), model="gpt-4o-mini"), context, [weather])
    for text in ("What is the weather in Oslo?", "And which city did I ask about?"):
        print(f"user: {text}\nagent: {agent.run(text)}\n")
    print(context.report())
