"""Haystack: a chat generator around yours, which shows the model a bounded window of the conversation.

    generator = MemciChatGenerator(OpenAIChatGenerator(), "agent.db", "alice", window=32_000)
    agent = Agent(chat_generator=generator, tools=[*tools, *generator.tools])
    agent.run([ChatMessage.from_user("Hi")])

Before each call of the model, also within an agent's loop of tools, the messages are stored and the window takes their
place in the request; the agent's state stays as it is. The messages may be the whole conversation, or the new one only:
memci has the rest.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from haystack import component
from haystack.dataclasses import ChatMessage, ReasoningContent
from haystack.tools import Tool, flatten_tools_or_toolsets

from .conversations import TOOLS, Conversations
from .items import Item, check_name, tool_schema

_THOUGHTS = "thinking_blocks"


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
        return self._store(self._generator.run(messages=self._view(messages, tools), **_present(given)))

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
        view = await asyncio.to_thread(self._view, messages, tools)
        if hasattr(self._generator, "run_async"):
            result = await self._generator.run_async(messages=view, **_present(given))
        else:
            result = await asyncio.to_thread(self._generator.run, messages=view, **_present(given))
        return await asyncio.to_thread(self._store, result)

    def _view(self, messages: Sequence[ChatMessage], tools: Any) -> list[ChatMessage]:
        prompts = [each.text or "" for each in messages if each.is_from("system")]
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

    def _tool(self, schema: Item) -> Tool:
        def run(**arguments: Any) -> str:
            return self.conversations.answer(self._conversation, schema["name"], arguments)

        return Tool(schema["name"], schema["description"], schema["parameters"], run)


def dump(message: ChatMessage) -> Iterator[Item]:
    """Write *message* as one of Chat Completions; thoughts have a key of their own."""
    thoughts = [each.to_dict() for each in message.reasonings]
    yield message.to_openai_dict_format() | ({_THOUGHTS: thoughts} if thoughts else {})


def load(items: Sequence[Item]) -> Iterable[ChatMessage]:
    """Read messages of Chat Completions."""
    for item in items:
        message = ChatMessage.from_openai_dict_format({key: item[key] for key in item if key != _THOUGHTS})
        if thoughts := item.get(_THOUGHTS):
            (first, *_) = thoughts
            given = {"text": message.text, "tool_calls": message.tool_calls, "name": message.name}
            message = ChatMessage.from_assistant(**given, reasoning=ReasoningContent.from_dict(first))
        yield message


def _present(given: dict[str, Any]) -> dict[str, Any]:
    """Return the *given* arguments that are not None: a generator may not know the others."""
    return {name: value for name, value in given.items() if value is not None}
