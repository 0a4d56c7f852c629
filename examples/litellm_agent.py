"""An agent over LiteLLM: a bounded window, a tool, and a memory that survives the process.

    pip install memci litellm
    OPENAI_API_KEY=… python examples/litellm_agent.py

Any model that LiteLLM knows: MODEL=anthropic/claude-sonnet-4-5, and the key of its provider.
"""

import os

from memci import Agent, Context
from memci.adapters.litellm import litellm


def weather(city: str) -> str:
    """Return the weather in a city."""
    return f"{city}: 18 °C, light rain."


with Context.open("litellm_agent.db", "alice", system="Be brief.", window=32_000) as context:
    agent = Agent(litellm(model=os.environ.get("MODEL", "openai/gpt-4o-mini")), context, [weather])
    for text in ("What is the weather in Oslo?", "And which city did I ask about?"):
        print(f"user: {text}\nagent: {agent.run(text)}\n")
    print(context.report())
