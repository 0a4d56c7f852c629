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
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Any

from agent_framework import ChatContext, ChatMiddleware, Content, ContextProvider, FunctionTool, Message, ResponseStream

from ..formats.envelope import call_of, content_of, function_call, part_named
from ..messages import parts_of, text_of
from .conversations import TOOLS, Conversations
from .items import Item, assistant_item, check_name, exact, media, media_in, own_of, usage_of

_SAID = frozenset({"text", "data", "uri"})  # types of contents that a message of Chat Completions can hold


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

    async def after_run(self, *, session: Any, context: Any, **_: Any) -> None:
        """Store results of tools that ended the run."""
        messages = context.response.messages if context.response is not None else []
        if messages and messages[-1].role == "tool":
            said = [*context.input_messages, *messages]
            await asyncio.to_thread(self.conversations.add, session.session_id, said)

    def close(self) -> None:
        """Close all contexts."""
        self.conversations.close()

    def _tool(self, name: str, schema: Item) -> FunctionTool:
        async def run(**arguments: Any) -> str:
            return await asyncio.to_thread(self.conversations.answer, name, schema["name"], arguments)

        described = {"name": schema["name"], "description": schema["description"]}
        given = schema["parameters"]
        required = [each for each in given["required"] if "null" not in given["properties"][each]["type"]]
        return FunctionTool(**described, func=run, input_model={**given, "required": required})


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

        async def call() -> None:
            view = await asyncio.to_thread(
                self._conversations.view, self._name, given, system="\n\n".join(prompts), tools=tools
            )
            context.messages, context.options = view.messages, {**options, "instructions": view.system or None}
            await call_next()

        async def begin() -> None:
            """Call the model, and wait for the beginning of its stream: an error comes in its place."""
            await call()
            if isinstance(stream := context.result, ResponseStream):
                updates = aiter(stream)
                first = await anext(updates, None)

                async def all_of() -> AsyncIterator[Any]:
                    if first is not None:
                        yield first
                    async for update in updates:
                        yield update

                context.result = ResponseStream(all_of(), finalizer=lambda _: stream.get_final_response())

        if context.stream:
            context.stream_result_transforms = [*context.stream_result_transforms, partial(self._store_ended, given)]
            await self._conversations.ask_async(self._name, begin)
        else:
            await self._conversations.ask_async(self._name, call)
            if context.result is not None:
                await self._store(given, context.result)

    async def _store_ended(self, given: Sequence[Message], response: Any) -> None:
        """Store a streamed answer, unless its stream was closed early: then it says no reason for its end."""
        if response.finish_reason is not None:
            await self._store(given, response)

    async def _store(self, given: Sequence[Message], response: Any) -> None:
        used, names = response.usage_details or {}, ("input", "output", "cache_read_input")
        usage = usage_of(*(used.get(f"{name}_token_count") for name in names))
        await asyncio.to_thread(self._conversations.add, self._name, [*given, *response.messages], usage)


def dump(message: Message) -> Iterator[Item]:
    """Write *message* as those of Chat Completions: each result of a tool is one."""
    rest = []
    for each in message.contents:
        if each.type == "function_result":
            pieces = [_part(piece) for piece in each.items or ()]
            said = content_of(pieces) if any(part["type"] != "text" for part in pieces) else str(each.result or "")
            item = {"role": "tool", "tool_call_id": each.call_id, "content": said}
            yield exact(item, _own([each]), _own(_made(item)))
        elif each.type != "usage":
            rest.append(each)
    if message.role == "tool" and not rest:
        return
    asked = [each for each in rest if each.type == "function_call" and not each.informational_only]
    calls = [function_call(str(each.call_id), each.name or "", each.arguments or {}) for each in asked]
    said = [_part(each) for each in rest if each.type in _SAID]
    item = assistant_item(content_of(said), calls) | {"role": "user" if message.role == "tool" else message.role}
    yield exact(item, _own(rest), _own(_made(item)))


def load(items: Sequence[Item]) -> Iterator[Message]:
    """Read messages of Chat Completions."""
    for item in items:
        own = own_of(item)
        yield Message(item["role"], _made(item) if own is None else [*map(Content.from_dict, own)])


def _own(contents: Sequence[Content]) -> list[Item]:
    """Return *contents* as JSON without empty texts, arguments of calls as text."""
    own = [each.to_dict(exclude={"raw_representation"}) for each in contents if each.type != "text" or each.text]
    for each in own:
        if not each.get("additional_properties"):
            each.pop("additional_properties", None)
        if each["type"] == "function_call" and isinstance(each.get("arguments"), dict):
            each["arguments"] = json.dumps(each["arguments"], ensure_ascii=False)
    return own


def _made(item: Item) -> list[Content]:
    """Return the contents of *item*."""
    said = [*map(_content, parts_of(item.get("content")))]
    if item["role"] == "tool":
        plain = all(each.type == "text" for each in said)
        return [Content.from_function_result(item["tool_call_id"], result=text_of(item) if plain else said)]
    for call in item.get("tool_calls") or ():
        name, arguments = call_of(call)
        said.append(Content.from_function_call(call["id"], name, arguments=arguments))
    return said


def _part(content: Content) -> Item:
    """Return *content* as a part of Chat Completions; another one by its name."""
    if content.type == "text":
        return {"type": "text", "text": content.text}
    if content.type in {"data", "uri"} and content.uri:
        return media(content.uri, content.media_type or "")
    return part_named(content.type)


def _content(part: Item) -> Content:
    """Return *part* as a content."""
    if (found := media_in(part)) is not None:
        return Content.from_uri(found[1], media_type=found[0])
    return Content.from_text(part.get("text") or json.dumps(part))
