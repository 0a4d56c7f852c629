"""Microsoft Agent Framework: a context provider that shows the model a bounded window of the session.

    memci = Memci("agent.db", window=32_000)
    agent = Agent(client, "Be brief.", tools=tools, context_providers=[memci])
    await agent.run("Hi", session=AgentSession(session_id="alice"))

For each run the provider adds memci's tools and a chat middleware: before each call of the model, also within a loop of
tools, the list of the run is stored and the window takes its place in the request; the session keeps its own history.
The conversation is the `session_id`.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Any

from agent_framework import ChatContext, ChatMiddleware, Content, ContextProvider, FunctionTool, Message

from ..formats.envelope import content_of, function_call, split_data_url
from ..messages import parts_of, text_of
from .conversations import TOOLS, Conversations
from .items import Item, check_name, media, usage_of


class Memci(ContextProvider):
    """Keeps the window of each session within its budget, and gives the model the tools to look behind it."""

    def __init__(self, store: Any, **settings: Any) -> None:
        """Keep the conversations in *store*, with the *settings* of `Conversations`: `window`, `owner` and others."""
        super().__init__("memci")
        self.conversations = Conversations[Message](store, dump=dump, load=load, **settings)

    async def before_run(self, *, session: Any, context: Any, **_: Any) -> None:
        """Add memci's tools, and the middleware that calls the model with the window."""
        name = check_name(session.session_id, 'agent.run(…, session=AgentSession(session_id="alice"))')
        context.extend_tools(self.source_id, [self._tool(name, each["function"]) for each in TOOLS])
        context.extend_middleware(self.source_id, _Window(self.conversations, name))

    def close(self) -> None:
        """Close all contexts."""
        self.conversations.close()

    def _tool(self, name: str, schema: Item) -> FunctionTool:
        async def run(**arguments: Any) -> str:
            return await asyncio.to_thread(self.conversations.answer, name, schema["name"], arguments)

        described = {"name": schema["name"], "description": schema["description"]}
        return FunctionTool(**described, func=run, input_model=schema["parameters"])


class _Window(ChatMiddleware):
    """Puts the window in place of the list, and stores the answer."""

    def __init__(self, conversations: Conversations[Message], name: str) -> None:
        self._conversations, self._name = conversations, name

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        options = dict(context.options or {})
        given = [message for message in context.messages if message.role not in {"system", "developer"}]
        prompts = [message.text for message in context.messages if message.role in {"system", "developer"}]
        instructions = options.get("instructions") or []
        own = [instructions] if isinstance(instructions, str) else [*instructions]
        prompts = [*own, *(each for each in prompts if each not in own)]
        tools = [each.to_json_schema_spec() for each in options.get("tools") or () if isinstance(each, FunctionTool)]
        view = await asyncio.to_thread(
            self._conversations.view, self._name, given, system="\n\n".join(prompts), tools=tools
        )
        context.messages, context.options = view.messages, {**options, "instructions": view.system or None}
        store = partial(self._store, given)
        if context.stream:
            context.stream_result_transforms = [*context.stream_result_transforms, store]
            await call_next()
        else:
            await call_next()
            if context.result is not None:
                await store(context.result)

    async def _store(self, given: Sequence[Message], response: Any) -> None:
        used, names = response.usage_details or {}, ("input", "output", "cache_read_input")
        usage = usage_of(*(used.get(f"{name}_token_count") for name in names))
        await asyncio.to_thread(self._conversations.add, self._name, [*given, *response.messages], usage)


def dump(message: Message) -> Iterator[Item]:
    """Write *message* as those of Chat Completions; thoughts and other contents have keys of their own."""
    item: Item = {"role": message.role, "content": []}
    for each in message.contents:
        if each.type == "function_result":
            yield {"role": "tool", "tool_call_id": each.call_id, "content": _text(each)}
        elif each.type == "function_call" and not each.informational_only:
            call = function_call(str(each.call_id), each.name or "", each.arguments or {})
            item.setdefault("tool_calls", []).append(call)
        elif each.type == "text_reasoning":
            thought = {"type": "thinking", "thinking": each.text or "", "signature": each.protected_data}
            item.setdefault("thinking_blocks", []).append(thought)
        elif (part := _part(each)) is not None:
            item["content"].append(part)
        elif each.type != "usage":
            item.setdefault("contents", []).append(each.to_dict(exclude={"raw_representation"}))
    if message.role == "tool":
        return
    item["content"] = content_of(item["content"]) or (None if "tool_calls" in item else "")
    yield item


def load(items: Sequence[Item]) -> Iterator[Message]:
    """Read messages of Chat Completions."""
    for item in items:
        if item["role"] == "tool":
            contents = [Content.from_function_result(item["tool_call_id"], result=text_of(item))]
        else:
            contents = [
                Content.from_text_reasoning(text=each.get("thinking"), protected_data=each.get("signature"))
                for each in item.get("thinking_blocks") or ()
            ]
            contents += map(_content, parts_of(item.get("content")))
            contents += map(Content.from_dict, item.get("contents") or ())
            for call in item.get("tool_calls") or ():
                body = call["function"]
                contents.append(Content.from_function_call(call["id"], body["name"], arguments=body["arguments"]))
        yield Message(item["role"], contents)


def _text(result: Content) -> str | list[Item]:
    """Return the *result* of a tool as the content of a message."""
    parts = [_part(each) or {"type": "text", "text": f"[{each.type}]"} for each in result.items or ()]
    return parts if any(part["type"] != "text" for part in parts) else str(result.result or "")


def _part(content: Content) -> Item | None:
    """Return *content* as a part of Chat Completions, None if there is none."""
    if content.type == "text":
        return {"type": "text", "text": content.text}
    if content.type not in {"data", "uri"} or not content.uri:
        return None
    kind = content.media_type or ""
    return media(content.uri, kind) if content.type == "data" or kind.startswith("image/") else None


def _content(part: Item) -> Content:
    """Return *part* as a content."""
    if part["type"] == "image_url":
        url = part["image_url"]["url"]
        data = split_data_url(url)
        return Content.from_uri(url, media_type=data[0] if data else "image/*")
    if part["type"] == "file" and (url := part["file"].get("file_data")):
        return Content.from_uri(url)
    return Content.from_text(part.get("text") or json.dumps(part))
