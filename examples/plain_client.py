"""An agent over OpenAI's plain client: a bounded window, a tool, and a memory that survives the process.

    pip install memci openai
    OPENAI_API_KEY=… python examples/plain_client.py

Another server: set OPENAI_BASE_URL. For Anthropic or Google: `Anthropic()` or `genai.Client()` in place of `OpenAI()`.
"""

from openai import OpenAI

from memci import Agent, Context


def weather(city: str) -> str:
    """Return the weather in a city."""
    return f"{city}: 18 °C, light rain."


with Context.open("plain_client.db", "alice", system="Be brief.", model="gpt-4o-mini", window=32_000) as context:
    agent = Agent(OpenAI(), context, [weather])
    for text in ("What is the weather in Oslo?", "And which city did I ask about?"):
        print(f"user: {text}\nagent: {agent.run(text)}\n")
    print(context.report())
