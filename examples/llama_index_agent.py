"""An agent of LlamaIndex with a bounded window, a tool, and a memory that survives the process.

    pip install memci llama-index-core llama-index-llms-openai-like
    OPENAI_API_KEY=… python examples/llama_index_agent.py

Another server: set OPENAI_BASE_URL.
"""

import asyncio
import os

from llama_index.llms.openai_like import OpenAILike

from memci.adapters.llama_index import Memci, MemciAgent

url = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1")
key = os.environ["OPENAI_API_KEY"]
llm = OpenAILike("gpt-4o-mini", api_base=url, api_key=key, is_chat_model=True, is_function_calling_model=True)


def weather(city: str) -> str:
    """Return the weather in a city."""
    return f"{city}: 18 °C, light rain."


async def main() -> None:
    """Ask two questions in one conversation."""
    memci = Memci("llama_index_agent.db", window=32_000)
    agent = MemciAgent(tools=[weather], llm=llm, system_prompt="Be brief.")
    for text in ("What is the weather in Oslo?", "And which city did I ask about?"):
        answer = await agent.run(text, memory=memci.memory("alice"))
        print(f"user: {text}\nagent: {answer}\n")
    print(memci.conversations.context("alice").report())
    memci.close()


asyncio.run(main())
