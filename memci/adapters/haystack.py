"""Haystack: a chat generator around yours, which shows the model a bounded window of the conversation.

    generator = MemciChatGenerator(OpenAIChatGenerator(), "agent.db", "alice", window=32_000)
    agent = Agent(chat_generator=generator, tools=[*tools, *generator.tools], hooks=generator.hooks)
    agent.run([ChatMessage.from_user("Hi")])

Before each call of the model, also within an agent's loop of tools, the messages are stored and the window takes their
place in the request; the agent's state stays as it is. The messages may be the whole conversation, or the new one only:
memci has the rest.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from haystack import component
from haystack.components.agents.state import State
from haystack.dataclasses import ChatMessage, FileContent, ImageContent, TextContent, ToolCall
from haystack.hooks import hook
from haystack.tools import Tool, flatten_tools_or_toolsets

from ..formats.envelope import arguments_as_object, content_of, function_call
from ..messages import parts_of, text_of
from .conversations import TOOLS, Conversations
from .items import Item, check_name, exact, media, media_in, own_of, tool_schema


@component
class MemciChatGenerator:
    """Keeps the window of one conversation within its budget, and has the tools to look behind it."""

    def __init__(self, generator: Any, store: Any, conversation: str, **settings: Any) -> None:
        """Keep *conversation* in *store*.

        Args:
            generator: The chat generator that calls the model.
            store: A path, or a store.
            conversation: Its name; each generator has one conversation.
            settings: The settings of `Conversations`: `window`, `model`, `owner`, `policy`, …
        """
        self._generator = generator
        self._conversation = check_name(conversation, 'MemciChatGenerator(generator, "agent.db", "alice")')
        self.conversations = Conversations[ChatMessage](store, dump=dump, load=load, **settings)
        self.tools = [self._tool(each["function"]) for each in TOOLS]
        """tools to give to the agent, besides its own"""
        self.hooks = {"after_run": [hook(self._end)]}
        """hooks to give to the agent: they store the results of tools that end a run (its `exit_conditions`)"""

    def warm_up(self) -> None:
        """Let the generator load what it needs."""
        if hasattr(self._generator, "warm_up"):
            self._generator.warm_up()

    @component.output_types(replies=list[ChatMessage])
    def run(
        self,
        messages: list[ChatMessage],
        streaming_callback: Any = None,
        generation_kwargs: dict[str, Any] | None = None,
        tools: Any = None,
    ) -> dict[str, Any]:
        """Call the model with the window, and store its answer."""
        given = {"streaming_callback": streaming_callback, "generation_kwargs": generation_kwargs, "tools": tools}
        return self._store(
            self.conversations.ask(
                self._conversation,
                lambda: self._generator.run(messages=self._view(messages, tools), **_present(given)),
            )
        )

    @component.output_types(replies=list[ChatMessage])
    async def run_async(
        self,
        messages: list[ChatMessage],
        streaming_callback: Any = None,
        generation_kwargs: dict[str, Any] | None = None,
        tools: Any = None,
    ) -> dict[str, Any]:
        """Do the same without blocking the loop."""
        given = {"streaming_callback": streaming_callback, "generation_kwargs": generation_kwargs, "tools": tools}

        async def call() -> dict[str, Any]:
            view = await asyncio.to_thread(self._view, messages, tools)
            if hasattr(self._generator, "run_async"):
                return await self._generator.run_async(messages=view, **_present(given))
            return await asyncio.to_thread(self._generator.run, messages=view, **_present(given))

        return await asyncio.to_thread(self._store, await self.conversations.ask_async(self._conversation, call))

    def _view(self, messages: Sequence[ChatMessage], tools: Any) -> list[ChatMessage]:
        prompts = dict.fromkeys(each.text or "" for each in messages if each.is_from("system"))
        rest = [each for each in messages if not each.is_from("system")]
        offered = [
            tool_schema(each.name, each.description, each.parameters) for each in flatten_tools_or_toolsets(tools)
        ]
        view = self.conversations.view(self._conversation, rest, system="\n\n".join(prompts), tools=offered)
        return [ChatMessage.from_system(view.system), *view.messages] if view.system else view.messages

    def _store(self, result: dict[str, Any]) -> dict[str, Any]:
        replies = result["replies"][:1]  # of several answers to one request, the first is the conversation's
        usage = next((used for each in replies if (used := each.meta.get("usage"))), None)
        self.conversations.add(self._conversation, replies, usage)
        return result

    def _end(self, state: State) -> None:
        messages = [each for each in state.get("messages") if not each.is_from("system")]
        if messages and messages[-1].is_from("tool"):
            self.conversations.add(self._conversation, messages)

    def _tool(self, schema: Item) -> Tool:
        def run(**arguments: Any) -> str:
            return self.conversations.answer(self._conversation, schema["name"], arguments)

        return Tool(schema["name"], schema["description"], schema["parameters"], run)


def dump(message: ChatMessage) -> Iterator[Item]:
    """Write *message* as one of Chat Completions."""
    item: Item = {"role": message.role.value, "content": _content([*message.texts, *message.images, *message.files])}
    if (result := message.tool_call_result) is not None:
        item |= {"content": _content([result.result] if isinstance(result.result, str) else result.result)}
        item["tool_call_id"] = str(result.origin.id)
    if message.name:
        item["name"] = message.name
    if message.tool_calls:
        calls = [function_call(str(each.id), each.tool_name, each.arguments) for each in message.tool_calls]
        item |= {"content": item["content"] or None, "tool_calls": calls}
    yield exact(item, _own(message), _own(_made(item, {})))


def load(items: Sequence[Item]) -> Iterator[ChatMessage]:
    """Read messages of Chat Completions."""
    calls: dict[str, ToolCall] = {}
    for item in items:
        message = _made(item, calls)
        if own := own_of(item):
            given = {"role": message.role.value, "meta": {}, "name": message.name, "content": own}
            for each in own:
                if "tool_call_result" in each:
                    each["tool_call_result"]["origin"] = asdict(message.tool_call_results[0].origin)
            message = ChatMessage.from_dict(given)
        calls |= {str(each.id): each for each in message.tool_calls}
        yield message


def _own(message: ChatMessage) -> list[Item]:
    """Return the contents of *message* without empty texts; the call that a result answers is known by its id."""
    contents = [each for each in message.to_dict()["content"] if each.get("text") != ""]
    for each in contents:
        if "tool_call_result" in each:
            each["tool_call_result"].pop("origin")
    return contents


def _made(item: Item, calls: Mapping[str, ToolCall]) -> ChatMessage:
    """Return *item* as a message; *calls* are those before it."""
    said = [_piece(part) for part in parts_of(item.get("content"))]
    name, role = item.get("name"), item["role"]
    if role == "tool":
        call_id = item["tool_call_id"]
        origin = calls.get(call_id) or ToolCall("tool", {}, call_id)
        plain = all(isinstance(each, TextContent) for each in said)
        return ChatMessage.from_tool(text_of(item) if plain else said, origin)
    if role == "assistant":
        asked = [
            ToolCall((body := call["function"])["name"], arguments_as_object(body["arguments"]), call["id"])
            for call in item.get("tool_calls") or ()
        ]
        return ChatMessage.from_assistant(text_of(item) or None, name=name, tool_calls=asked)
    if role == "system":
        return ChatMessage.from_system(text_of(item), name=name)
    return ChatMessage.from_user(content_parts=said or [TextContent("")], name=name)


def _content(pieces: Iterable[Any]) -> str | list[Item]:
    """Return *pieces* as the content of a message of Chat Completions."""
    parts = []
    for each in pieces:
        if isinstance(each, ImageContent | FileContent):
            data = each.base64_image if isinstance(each, ImageContent) else each.base64_data
            kind = each.mime_type or ("image/png" if isinstance(each, ImageContent) else "application/pdf")
            parts.append(media(f"data:{kind};base64,{data}", kind, getattr(each, "filename", None)))
        else:
            parts.append({"type": "text", "text": each if isinstance(each, str) else each.text})
    return content_of(parts) or ""


def _piece(part: Item) -> Any:
    """Return *part* of Chat Completions as a piece of a message."""
    kind, url, name = media_in(part) or ("", "", None)
    if not url.startswith("data:"):
        return TextContent(str(part.get("text", f"[{part['type']}]")))
    data = url.partition(",")[2]
    return ImageContent(data, kind) if kind.startswith("image/") else FileContent(data, kind, name)


def _present(given: dict[str, Any]) -> dict[str, Any]:
    """Return the *given* arguments that are not None: a generator may not know the others."""
    return {name: value for name, value in given.items() if value is not None}
