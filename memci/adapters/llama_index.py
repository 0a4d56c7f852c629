"""LlamaIndex: a memory and an agent that show the model a bounded window of the conversation.

    memci = Memci("agent.db", window=32_000)
    agent = MemciAgent(tools=tools, llm=llm, system_prompt="Be brief.")
    await agent.run("Hi", memory=memci.memory("alice"))

A FunctionAgent keeps the calls and results of a run in a scratchpad until the run ends. This one gives them to the
memory at once, and asks it for the window before each call of the model. In other agents and in chat engines the memory
alone bounds what was said before the run.
"""

import asyncio
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, cast
from uuid import uuid4
from weakref import WeakValueDictionary

from llama_index.core.agent.workflow import AgentOutput, FunctionAgent, ToolCallResult
from llama_index.core.base.llms import types
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.memory import BaseMemory
from llama_index.core.tools import AsyncBaseTool, FunctionTool, ToolMetadata
from llama_index.core.workflow import Context

from ..errors import InvalidSetting
from ..formats.envelope import content_of, function_call
from ..messages import parts_of
from .conversations import TOOLS, Conversations
from .items import Item, arguments_as_given, assistant_item, data_url, exact, media, media_in, own_of

_MEDIA = {"image": types.ImageBlock, "audio": types.AudioBlock, "video": types.VideoBlock}


_OPENED: WeakValueDictionary[str, Conversations[ChatMessage]] = WeakValueDictionary()
"""the conversations of this process by their store, for memories that a workflow's state brings back"""


class Memci:
    """The conversations of one store; safe for threads."""

    def __init__(self, store: Any, **settings: Any) -> None:
        """Keep the conversations in *store*, with the *settings* of `Conversations`: `window`, `owner` and others."""
        self.conversations = Conversations[ChatMessage](store, dump=dump, load=load, **settings)
        self._store = str(Path(store).resolve()) if isinstance(store, (str, PathLike)) else uuid4().hex
        _OPENED[self._store] = self.conversations

    def memory(self, conversation: str) -> "MemciMemory":
        """Return the memory of a conversation; it is made when it is first used."""
        memory = MemciMemory(conversation=conversation, store=self._store)
        memory._conversations = self.conversations
        return memory

    def close(self) -> None:
        """Close all contexts."""
        self.conversations.close()


class MemciMemory(BaseMemory):
    """One conversation, for an agent or a chat engine; the state of a workflow holds its name and its store's."""

    conversation: str
    store: str
    _conversations: Any = PrivateAttr(None)

    @property
    def conversations(self) -> Conversations[ChatMessage]:
        """The conversations of the store. InvalidSetting if no `Memci` of this process has it."""
        if (found := self._conversations or _OPENED.get(self.store)) is None:
            missing = 'no Memci has its store: ctx.store.set("memory", memci.memory("alice")) before the run'
            raise InvalidSetting("memory", missing)
        return cast("Conversations[ChatMessage]", found)

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
        conversations, name, take_step = memory.conversations, memory.conversation, super().take_step

        async def call() -> AgentOutput:
            view = await asyncio.to_thread(conversations.view, name, (), system=system, tools=schemas)
            shown = [ChatMessage(view.system, role="system"), *view.messages] if view.system else view.messages
            if await ctx.store.get("state", default=None) and shown[-1].role == llm_input[-1].role == "user":
                shown = [*shown[:-1], llm_input[-1]]  # the agent has put its state into it
            return await take_step(ctx, shown, tools, memory)

        output = await conversations.ask_async(name, call)
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


def dump(message: ChatMessage) -> Iterator[Item]:
    """Write *message* as one of Chat Completions."""
    asked = [block for block in message.blocks if isinstance(block, types.ToolCallBlock)]
    calls = [function_call(str(each.tool_call_id), each.tool_name, each.tool_kwargs or "{}") for each in asked]
    parts = [part for block in message.blocks if (part := _part(block)) is not None]
    item = assistant_item(content_of(parts), calls) | {"role": message.role.value}
    if message.role == "tool":
        item["tool_call_id"] = str(message.additional_kwargs.get("tool_call_id"))
    yield exact(item, _own(message.blocks), _own(_blocks(item)))


def load(items: Sequence[Item]) -> Iterator[ChatMessage]:
    """Read messages of Chat Completions."""
    for item in items:
        own = own_of(item)
        more = {"tool_call_id": item["tool_call_id"]} if item["role"] == "tool" else {}
        yield ChatMessage(_blocks(item) if own is None else own, role=item["role"], additional_kwargs=more)


def _own(blocks: Sequence[Any]) -> list[Item]:
    """Return *blocks* as JSON, without empty texts."""
    own = [block.model_dump(mode="json", exclude_none=True) for block in blocks]
    return [each for each in own if each.get("text") != ""]


def _blocks(item: Item) -> list[Any]:
    """Return the content and the calls of *item* as blocks."""
    blocks = [*map(_block, parts_of(item.get("content")))]
    for call in item.get("tool_calls") or ():
        name, kwargs = call["function"]["name"], arguments_as_given(call["function"]["arguments"])
        blocks.append(types.ToolCallBlock(tool_call_id=call["id"], tool_name=name, tool_kwargs=kwargs))
    return blocks or [types.TextBlock(text="")]


def _part(block: Any) -> Item | None:
    """Return *block* as a part of Chat Completions, None if there is none."""
    if isinstance(block, types.TextBlock):
        return {"type": "text", "text": block.text}
    for kind, made in _MEDIA.items():
        if isinstance(block, made):
            mime = getattr(block, f"{kind}_mimetype", None) or f"{kind}/{getattr(block, 'format', None) or '*'}"
            data = None if block.url else getattr(block, f"resolve_{kind}")().read()  # from its file if it names one
            return media(str(block.url) if data is None else data_url(mime, data), mime)
    if isinstance(block, types.DocumentBlock):
        mime = str(block.document_mimetype)
        return media(block.url or data_url(mime, block.resolve_document().read()), mime, block.title)
    return None


def _block(part: Item) -> Any:
    """Return *part* as a block."""
    mime, url, name = media_in(part) or ("", "", None)
    if not url:
        return types.TextBlock(text=part.get("text", f"[{part['type']}]"))
    data = url.partition(",")[2].encode() if url.startswith("data:") else None
    kind = mime.partition("/")[0]
    if kind in {"image", "video"}:
        return _MEDIA[kind](**{kind: data, f"{kind}_mimetype": mime} if data else {"url": url})
    if kind == "audio":
        return types.AudioBlock(**{"audio": data, "format": mime.partition("/")[2]} if data else {"url": url})
    given = {"data": data, "document_mimetype": mime} if data else {"url": url}
    return types.DocumentBlock(**given, title=name)
