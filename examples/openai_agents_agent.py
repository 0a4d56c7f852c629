"""An agent of the OpenAI Agents SDK with a bounded window, a tool, and a memory that survives the process.

    pip install memci openai-agents
    OPENAI_API_KEY=… python examples/openai_agents_agent.py

Another server, which speaks Chat Completions: set OPENAI_BASE_URL.
"""

import os

from agents import Agent, Runner, function_tool, set_default_openai_api, set_tracing_disabled

from memci.adapters.openai_agents import Memci

if "OPENAI_BASE_URL" in os.environ:
    set_default_openai_api("chat_completions")
    set_tracing_disabled(disabled=True)


@function_tool
def weather(city: str) -> str:
    """Return the weather in a city."""
    return f"{city}: 18 °C, light rain."


memci = Memci("openai_agents_agent.db", window=32_000)
session = memci.session("alice")
agent = Agent(name="agent", instructions="Be brief.", model="gpt-4o-mini", tools=[weather, *session.tools])

for text in ("What is the weather in Oslo?", "And which city did I ask about?"):
    answer = Runner.run_sync(agent, text, session=session, run_config=session.run_config, hooks=session.hooks)
    print(f"user: {text}\nagent: {answer.final_output}\n")

print(memci.conversations.context("alice").report())
memci.close()
