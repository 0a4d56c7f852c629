"""Strands Agents: a plugin that shows the model a bounded window of the conversation.

    agent = Agent(model, tools=tools, plugins=[Memci("agent.db", "alice", window=32_000)])
    agent("Hi")

Before each call of the model, also within a loop of tools, the agent's messages are stored and the window takes their
place in the request; `agent.messages` stays as it is. It may hold the whole conversation, or begin empty: memci has it.
"""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from strands import Agent
from strands.agent.conversation_manager import NullConversationManager
from strands.middleware import InvokeModelStage
from strands.middleware.stages import InvokeModelContext
from strands.plugins import Plugin
from strands.tools.tools import PythonAgentTool
from strands.types.events import ModelStopReason

from ..formats.envelope import arguments_as_object, call_of, content_of, function_call, split_data_url
from ..messages import parts_of
from .conversations import TOOLS, Conversations
from .items import Item, assistant_item, check_name, data_url, media, tool_schema


class Memci(Plugin):
    """Keeps the window of one conversation within its budget, and gives the model the tools to look behind it."""

    name = "memci"

    def __init__(self, store: Any, conversation: str, **settings: Any) -> None:
        """Keep *conversation* in *store*.

        Args:
            store: A path, or a store.
            conversation: Its name; each agent has one conversation.
            settings: The settings of `Conversations`: `window`, `model`, `owner`, `policy`, …
        """
        super().__init__()
        self.conversations = Conversations[Item](store, dump=dump, load=load, **settings)
        self._conversation = check_name(conversation, 'Memci("agent.db", "alice")')

    def init_agent(self, agent: Agent) -> None:
        """Rewrite the requests of *agent* to its model, and switch off its conversation manager."""
        agent.conversation_manager = NullConversationManager()
        agent.add_middleware(InvokeModelStage, self._call)
        agent.tool_registry.process_tools([self._tool(each["function"]) for each in TOOLS])

    async def _call(self, context: InvokeModelContext, call: Callable[..., AsyncIterator[Any]]) -> AsyncIterator[Any]:
        """Call the model with the window, and store its answer before the agent continues."""
        given = context.system_prompt
        system = given if isinstance(given, str) else "\n\n".join(each.get("text", "") for each in given or ())
        tools = [tool_schema(each["name"], each["description"], each["inputSchema"]) for each in context.tool_specs]
        view = await asyncio.to_thread(
            self.conversations.view, self._conversation, context.messages, system=system, tools=tools
        )
        async for event in call(context.replace(messages=_alternating(view.messages), system_prompt=view.system)):
            if isinstance(event, ModelStopReason):
                _, message, usage, _ = event["stop"]
                cost = dict(usage) if usage["inputTokens"] or usage.get("cacheReadInputTokens") else None
                await asyncio.to_thread(self.conversations.add, self._conversation, [message], cost)
            yield event

    def _tool(self, schema: Item) -> PythonAgentTool:
        def run(use: Item, **_: Any) -> Item:
            text = self.conversations.answer(self._conversation, schema["name"], use["input"])
            return {"toolUseId": use["toolUseId"], "status": "success", "content": [{"text": text}]}

        spec = {"description": schema["description"], "inputSchema": {"json": schema["parameters"]}}
        return PythonAgentTool(schema["name"], {"name": schema["name"], **spec}, run)


def dump(message: Item) -> Iterator[Item]:
    """Write *message* as those of Chat Completions: each result of a tool is one; thoughts have a key of their own."""
    blocks = message["content"]
    for result in (each["toolResult"] for each in blocks if "toolResult" in each):
        item = {"role": "tool", "tool_call_id": result["toolUseId"], "content": _content(result["content"]) or ""}
        yield item | ({"status": "error"} if result.get("status") == "error" else {})
    rest = [each for each in blocks if not {"toolResult", "toolUse", "reasoningContent"} & set(each)]
    uses = [each["toolUse"] for each in blocks if "toolUse" in each]
    thoughts = [each["reasoningContent"] for each in blocks if "reasoningContent" in each]
    if message["role"] == "assistant":
        calls = [function_call(each["toolUseId"], each["name"], each["input"]) for each in uses]
        yield assistant_item(_content(rest), calls, json.loads(_json(thoughts)))
    elif rest or not blocks:
        yield {"role": "user", "content": _content(rest) or ""}


def load(items: Sequence[Item]) -> Iterator[Item]:
    """Read messages of Chat Completions; the results of one message's calls share one message."""
    for role, group in groupby(items, itemgetter("role")):
        results = []
        for item in group:
            blocks = [{"reasoningContent": each} for each in item.get("thinking_blocks") or ()] + _blocks(
                item.get("content")
            )
            if role == "tool":
                held = {"toolUseId": item["tool_call_id"], "status": item.get("status", "success"), "content": blocks}
                results.append({"toolResult": held})
                continue
            for call in item.get("tool_calls") or ():
                name, arguments = call_of(call)
                use = {"toolUseId": call["id"], "name": name, "input": arguments_as_object(arguments)}
                blocks.append({"toolUse": use})
            yield {"role": "assistant" if role == "assistant" else "user", "content": blocks}
        if results:
            yield {"role": "user", "content": results}


def _alternating(messages: Sequence[Item]) -> list[Item]:
    """Return *messages* with those of the same role joined, since some providers require alternating roles."""
    groups = [[*group] for _, group in groupby(messages, itemgetter("role"))]
    return [
        each[0] if len(each) == 1 else {**each[0], "content": [block for one in each for block in one["content"]]}
        for each in groups
    ]


def _content(blocks: Sequence[Item]) -> str | list[Item]:
    """Return *blocks* as the content of a message of Chat Completions: a str if they are one text."""
    parts = []
    for block in blocks:
        image = block.get("image", {})
        if isinstance(data := image.get("source", {}).get("bytes"), bytes):
            parts.append(media(data_url(f"image/{image['format']}", data), "image/"))
        else:
            parts.append({"type": "text", "text": block["text"] if set(block) == {"text"} else _json(block)})
    return content_of(parts)


def _blocks(content: Any) -> list[Item]:
    """Return the *content* of a message of Chat Completions as blocks."""
    blocks: list[Item] = []
    for part in parts_of(content):
        if found := split_data_url(str(part.get("image_url", {}).get("url", ""))):
            kind, data = found
            blocks.append({"image": {"format": kind.rpartition("/")[2], "source": {"bytes": base64.b64decode(data)}}})
        else:
            blocks.append({"text": str(part.get("text", _json(part)))})
    return blocks


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=lambda data: base64.b64encode(data).decode())
