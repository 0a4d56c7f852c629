"""LlamaIndex: a memory and an agent that show the model a bounded window of the conversation.

    memci = Memci("agent.db", window=32_000)
    agent = MemciAgent(tools=tools, llm=llm, system_prompt="Be brief.")
    await agent.run("Hi", memory=memci.memory("alice"))

A FunctionAgent keeps the calls and results of a run in a scratchpad until the run ends. This one gives them to the
memory at once, and asks it for the window before each call of the model. In other agents and in chat engines the memory
alone bounds what was said before the run.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from llama_index.core.agent.workflow import AgentOutput, FunctionAgent, ToolCallResult
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import Field
from llama_index.core.memory import BaseMemory
from llama_index.core.tools import AsyncBaseTool, FunctionTool, ToolMetadata
from llama_index.core.workflow import Context

from ..errors import InvalidSetting
from .conversations import TOOLS, Conversations
from .items import Item
from .llama_index_messages import dump, load


class Memci:
    """The conversations of one store; safe for threads."""

    def __init__(self, store: Any, **settings: Any) -> None:
        """Keep the conversations in *store*, with the *settings* of `Conversations`: `window`, `owner` and others."""
        self.conversations = Conversations[ChatMessage](store, dump=dump, load=load, **settings)

    def memory(self, conversation: str) -> "MemciMemory":
        """Return the memory of a conversation; it is made when it is first used."""
        return MemciMemory(conversation=conversation, conversations=self.conversations)

    def close(self) -> None:
        """Close all contexts."""
        self.conversations.close()


class MemciMemory(BaseMemory):
    """One conversation, for an agent or a chat engine."""

    conversation: str
    conversations: Any = Field(exclude=True)

    @classmethod
    def from_defaults(cls, store: Any = None, conversation: str = "default", **settings: Any) -> "MemciMemory":
        """Return the memory of a conversation in *store*, with the settings of `Memci`."""
        return Memci(store, **settings).memory(conversation)

    def get(self, input: str | None = None, **_: Any) -> list[ChatMessage]:  # noqa: A002 -- LlamaIndex's name
        """Return the window, without the notice of memci's tools: in a chat engine nobody runs them."""
        del input
        return list(self.conversations.view(self.conversation, ()).messages)

    def get_all(self) -> list[ChatMessage]:
        """Return all messages. O(messages)."""
        return list(self.conversations.messages(self.conversation))

    def put(self, message: ChatMessage) -> None:
        """Store *message*."""
        self.put_messages([message])

    def put_messages(self, messages: list[ChatMessage], usage: object = None) -> None:
        """Store *messages*, and the usage of the last call of the model."""
        items = [item for message in messages for item in dump(message)]
        self.conversations.context(self.conversation).append_turn(*items, usage=usage)

    def set(self, messages: list[ChatMessage]) -> None:
        """Store what is new of *messages*; if they differ from the stored ones, or are fewer, a fork continues."""
        self.conversations.add(self.conversation, messages, whole=True)

    def reset(self) -> None:
        """Erase the conversation for good; the next message begins a new one."""
        self.conversations.erase(self.conversation)


class MemciAgent(FunctionAgent):
    """A FunctionAgent that has memci's tools, and keeps each request within the budget."""

    async def get_tools(self, input_str: str | None = None) -> Sequence[AsyncBaseTool]:
        """Return the agent's tools, and memci's."""
        return [*await super().get_tools(input_str), *map(_tool, TOOLS)]

    async def take_step(
        self, ctx: Any, llm_input: list[ChatMessage], tools: Sequence[AsyncBaseTool], memory: BaseMemory
    ) -> AgentOutput:
        """Call the model with the window, and store its answer."""
        memory = _memory(memory)
        system = llm_input[0].content if llm_input and llm_input[0].role == "system" else None
        schemas = [tool.metadata.to_openai_tool(skip_length_check=True) for tool in tools]
        view = await asyncio.to_thread(memory.conversations.view, memory.conversation, (), system=system, tools=schemas)
        shown = [ChatMessage(view.system, role="system"), *view.messages] if view.system else view.messages
        if await ctx.store.get("state", default=None) and shown[-1].role == llm_input[-1].role == "user":
            shown = [*shown[:-1], llm_input[-1]]  # the agent has put its state into it
        output = await super().take_step(ctx, shown, tools, memory)
        await self._settle(ctx, memory, (output.raw or {}).get("usage") if isinstance(output.raw, dict) else None)
        return output

    async def handle_tool_call_results(self, ctx: Context, results: list[ToolCallResult], memory: BaseMemory) -> None:
        """Store the results."""
        await super().handle_tool_call_results(ctx, results, memory)
        await self._settle(ctx, _memory(memory))

    async def _settle(self, ctx: Any, memory: MemciMemory, usage: object = None) -> None:
        """Move the messages of the scratchpad to the memory."""
        messages = await ctx.store.get(self.scratchpad_key, default=[])
        await asyncio.to_thread(memory.put_messages, messages, usage)
        await ctx.store.set(self.scratchpad_key, [])


class _Metadata(ToolMetadata):
    """The schema of a tool, as it is."""

    def get_parameters_dict(self) -> Item:
        return next(tool["function"]["parameters"] for tool in TOOLS if tool["function"]["name"] == self.name)


def _tool(schema: Item) -> FunctionTool:
    name = schema["function"]["name"]

    async def run(ctx: Context, **arguments: Any) -> str:
        memory = _memory(await ctx.store.get("memory"))
        return await asyncio.to_thread(memory.conversations.answer, memory.conversation, name, arguments)

    return FunctionTool(async_fn=run, metadata=_Metadata(schema["function"]["description"], name))


def _memory(memory: BaseMemory) -> MemciMemory:
    if not isinstance(memory, MemciMemory):
        raise InvalidSetting("memory", 'give it to the run: agent.run(…, memory=memci.memory("alice"))')
    return memory
