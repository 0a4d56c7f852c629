"""An agent of Google ADK with a bounded window, a tool, and a memory that survives the process.

    pip install memci google-adk
    GOOGLE_API_KEY=… python examples/google_adk_agent.py

Another server, which speaks Chat Completions: `pip install litellm mcp`, and set OPENAI_BASE_URL and OPENAI_API_KEY.
"""

import asyncio
import os

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types

from memci.adapters.google_adk import MemciPlugin

model = LiteLlm("openai/gpt-4o-mini") if "OPENAI_BASE_URL" in os.environ else "gemini-2.5-flash"


def weather(city: str) -> str:
    """Return the weather in a city."""
    return f"{city}: 18 °C, light rain."


async def main() -> None:
    """Ask two questions in one session."""
    memci = MemciPlugin("google_adk_agent.db", window=32_000)
    agent = LlmAgent(name="agent", model=model, instruction="Be brief.", tools=[weather])
    app = App(name="weather", root_agent=agent, plugins=[memci])
    runner = Runner(app=app, session_service=InMemorySessionService(), auto_create_session=True)
    for text in ("What is the weather in Oslo?", "And which city did I ask about?"):
        message = types.Content(role="user", parts=[types.Part(text=text)])
        async for event in runner.run_async(user_id="alice", session_id="weather", new_message=message):
            if event.is_final_response():
                print(f"user: {text}\nagent: {event.content.parts[0].text}\n")
    print(memci.conversations.context("alice/weather").report())
    await runner.close()


asyncio.run(main())
