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
from strands.hooks import AfterInvocationEvent
from strands.middleware import InvokeModelStage
from strands.middleware.stages import InvokeModelContext
from strands.plugins import Plugin
from strands.tools.tools import PythonAgentTool
from strands.types.events import ModelStopReason

from ..formats.envelope import NO_TEXT, arguments_as_object, call_of, content_of, function_call
from ..messages import parts_of
from .conversations import TOOLS, Conversations
from .items import Item, assistant_item, check_name, data_url, exact, media, media_in, own_of, tool_schema


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
        agent.conversation_manager = _Unmanaged()
        agent.add_hook(self._end, AfterInvocationEvent)
        agent.add_middleware(InvokeModelStage, self._call)
        agent.tool_registry.process_tools([self._tool(each["function"]) for each in TOOLS])

    async def _call(self, context: InvokeModelContext, call: Callable[..., AsyncIterator[Any]]) -> AsyncIterator[Any]:
        """Call the model with the window, and store its answer before the agent continues."""
        given = context.system_prompt
        system = given if isinstance(given, str) else "\n\n".join(each.get("text", "") for each in given or ())
        tools = [tool_schema(each["name"], each["description"], each["inputSchema"]) for each in context.tool_specs]

        async def begin() -> tuple[AsyncIterator[Any], Any]:
            view = await asyncio.to_thread(
                self.conversations.view, self._conversation, context.messages, system=system, tools=tools, whole=True
            )
            events = call(context.replace(messages=_alternating(view.messages), system_prompt=view.system))
            return events, await anext(events)

        events, event = await self.conversations.ask_async(self._conversation, begin)
        while event is not None:
            if isinstance(event, ModelStopReason):
                _, message, usage, _ = event["stop"]
                cost = dict(usage) if usage["inputTokens"] or usage.get("cacheReadInputTokens") else None
                await asyncio.to_thread(self.conversations.add, self._conversation, [message], cost)
            yield event
            event = await anext(events, None)

    async def _end(self, event: AfterInvocationEvent) -> None:
        """Store the results of tools that ended the run."""
        last = event.agent.messages[-1:]
        if last and any("toolResult" in each for each in last[0]["content"]):
            await asyncio.to_thread(self.conversations.add, self._conversation, event.agent.messages)

    def _tool(self, schema: Item) -> PythonAgentTool:
        def run(use: Item, **_: Any) -> Item:
            text = self.conversations.answer(self._conversation, schema["name"], use["input"])
            return {"toolUseId": use["toolUseId"], "status": "success", "content": [{"text": text}]}

        spec = {"description": schema["description"], "inputSchema": {"json": schema["parameters"]}}
        return PythonAgentTool(schema["name"], {"name": schema["name"], **spec}, run)


class _Unmanaged(NullConversationManager):
    """Takes over a session that another manager kept: all its messages, also those that this one had left out."""

    def restore_from_session(self, state: Item) -> list[Any] | None:
        del state
        return None


def dump(message: Item) -> Iterator[Item]:
    """Write *message* as those of Chat Completions: each result of a tool is one."""
    blocks = message["content"]
    for result in (each["toolResult"] for each in blocks if "toolResult" in each):
        item = {"role": "tool", "tool_call_id": result["toolUseId"], "content": _content(result["content"])}
        yield exact(item, {"status": "success", **result}, _result(item))
    rest = [each for each in blocks if "toolResult" not in each and each.get("text") != ""]
    if message["role"] == "assistant":
        uses = (each["toolUse"] for each in rest if "toolUse" in each)
        calls = [function_call(each["toolUseId"], each["name"], each["input"]) for each in uses]
        item = assistant_item(_content(rest), calls)
        yield exact(item, rest, _blocks(item))
    elif rest or not blocks:
        item = {"role": "user", "content": _content(rest)}
        yield exact(item, rest, _blocks(item))


def load(items: Sequence[Item]) -> Iterator[Item]:
    """Read messages of Chat Completions; the results of one message's calls share one message."""
    for role, group in groupby(items, itemgetter("role")):
        results = []
        for item in group:
            own = own_of(item)
            if role == "tool":
                results.append({"toolResult": _result(item) if own is None else own})
            else:
                content = _blocks(item) if own is None else own
                yield {"role": "assistant" if role == "assistant" else "user", "content": content}
        if results:
            yield {"role": "user", "content": results}


def _alternating(messages: Sequence[Item]) -> list[Item]:
    """Return *messages* with those of the same role joined, since some providers require alternating roles.

    An answer without text stands between results and what the user says then: not every model takes both in a message.
    """
    joined: list[Item] = []
    for message in messages:
        answers = any("toolResult" in each for each in message["content"])
        if joined and joined[-1]["role"] == message["role"]:
            before = joined[-1]["content"]
            if any("toolResult" in each for each in before) == answers:
                joined[-1] = {**message, "content": [*before, *message["content"]]}
                continue
            joined.append({"role": "assistant", "content": [{"text": NO_TEXT}]})
        joined.append(message)
    return joined


def _content(blocks: Sequence[Item]) -> str | list[Item]:
    """Return what *blocks* say as the content of a message of Chat Completions: a str if it is one text."""
    parts = []
    for block in blocks:
        if block.keys() & {"toolUse", "reasoningContent", "cachePoint"}:
            continue
        kind, body = next(iter(block.items()))
        data = body.get("source", {}).get("bytes") if isinstance(body, dict) else None
        if isinstance(data, bytes):
            mime = f"application/{body['format']}" if kind == "document" else f"{kind}/{body['format']}"
            parts.append(media(data_url(mime, data), mime, body.get("name")))
        else:
            parts.append({"type": "text", "text": body if kind == "text" else _json(block)})
    return content_of(parts) or ""


def _result(item: Item) -> Item:
    """Return *item*, a result without a form of its own, as one."""
    return {"toolUseId": item["tool_call_id"], "status": "success", "content": _blocks(item)}


def _blocks(item: Item) -> list[Item]:
    """Return the content and the calls of *item* as blocks."""
    blocks: list[Item] = []
    for part in parts_of(item.get("content")):
        kind, url, name = media_in(part) or ("", "", None)
        if url.startswith("data:"):
            form = next((each for each in ("image", "video", "audio") if kind.startswith(each)), "document")
            source = {"format": kind.rpartition("/")[2], "source": {"bytes": base64.b64decode(url.partition(",")[2])}}
            blocks.append({form: source | ({"name": name} if name else {})})
        else:
            blocks.append({"text": str(part.get("text", _json(part)))})
    for call in item.get("tool_calls") or ():
        name, arguments = call_of(call)
        blocks.append({"toolUse": {"toolUseId": call["id"], "name": name, "input": arguments_as_object(arguments)}})
    return blocks


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=lambda data: base64.b64encode(data).decode())
