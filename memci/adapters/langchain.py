"""LangChain and LangGraph: a middleware that shows the model a bounded window of the conversation.

    agent = create_agent(model, tools, middleware=[MemciMiddleware("agent.db", window=32_000)])
    agent.invoke({"messages": [("user", "Hi")]}, {"configurable": {"thread_id": "alice"}})

Before each call of the model, also within a loop of tools, the messages of the agent's state are stored, and the
window replaces them in the request; the state itself does not change. With a checkpointer the state holds the
conversation; without one it may hold only the newest message. The conversation is the `thread_id`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, SystemMessage, ToolMessage, convert_to_messages
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.config import get_config

from ..formats.envelope import function_call
from .conversations import TOOLS, Conversations, View
from .items import Item, check_name, usage_of

_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}
_THOUGHTS = frozenset({"thinking", "redacted_thinking"})


class MemciMiddleware(AgentMiddleware):
    """Keeps the window of each thread within its budget, and gives the model the tools to look behind it."""

    def __init__(self, store: Any, *, conversation: str | None = None, **settings: Any) -> None:
        """Keep the conversations in *store*.

        Args:
            store: A path, or a store.
            conversation: The name of the only conversation; default: the `thread_id` of the call's configuration.
            settings: The settings of `Conversations`: `window`, `model`, `owner`, `policy`, …
        """
        super().__init__()
        self.conversations = Conversations[AnyMessage](store, dump=dump, load=load, **settings)
        self._conversation = conversation
        self.tools = [self._tool(each["function"]) for each in TOOLS]

    def wrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], Any]) -> Any:
        """Call the model with the window, and store its reply."""
        name = self._name(get_config())
        response = handler(self._rewrite(request, self._view(name, request)))
        self._add(name, request, response)
        return response

    async def awrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[Any]]) -> Any:
        """Do the same without blocking the loop."""
        name = self._name(get_config())
        view = await asyncio.to_thread(self._view, name, request)
        response = await handler(self._rewrite(request, view))
        await asyncio.to_thread(self._add, name, request, response)
        return response

    def _view(self, name: str, request: ModelRequest) -> View[AnyMessage]:
        system = str(request.system_message.text) if request.system_message is not None else None
        tools = [convert_to_openai_tool(tool) for tool in request.tools]
        return self.conversations.view(name, request.messages, system=system, tools=tools)

    def _rewrite(self, request: ModelRequest, view: View[AnyMessage]) -> ModelRequest:
        return request.override(messages=view.messages, system_message=SystemMessage(view.system))

    def _add(self, name: str, request: ModelRequest, response: Any) -> None:
        found = response.model_response if hasattr(response, "model_response") else response
        said = found.result if isinstance(found, ModelResponse) else [found]
        self.conversations.add(name, [*request.messages, *said], _usage(said))

    def _name(self, config: RunnableConfig) -> str:
        thread = (config.get("configurable") or {}).get("thread_id")
        return check_name(self._conversation or thread, '{"configurable": {"thread_id": "alice"}}')

    def _tool(self, schema: Item) -> StructuredTool:
        def run(config: RunnableConfig, **arguments: Any) -> str:
            return self.conversations.answer(self._name(config), schema["name"], arguments)

        async def arun(config: RunnableConfig, **arguments: Any) -> str:
            return await asyncio.to_thread(run, config, **arguments)

        return StructuredTool(
            name=schema["name"],
            description=schema["description"],
            args_schema=schema["parameters"],
            func=run,
            coroutine=arun,
        )


def dump(message: BaseMessage) -> Iterator[Item]:
    """Write *message* as one of Chat Completions; thoughts stand under `thinking_blocks`."""
    item: Item = {"role": _ROLES.get(message.type, getattr(message, "role", "user")), "content": message.content}
    if isinstance(message, ToolMessage):
        yield {**item, "tool_call_id": message.tool_call_id}
        return
    if message.name:
        item["name"] = message.name
    if isinstance(message, AIMessage):
        blocks = [each for each in message.content if isinstance(each, dict)]
        thoughts = [each for each in blocks if each.get("type") in _THOUGHTS]
        if blocks:
            kept = [each for each in blocks if each not in thoughts and each.get("type") != "tool_use"]
            item |= {"content": kept or None} | ({"thinking_blocks": thoughts} if thoughts else {})
        calls = [function_call(str(each["id"]), each["name"], each["args"]) for each in message.tool_calls]
        calls += [function_call(str(e["id"]), e["name"] or "", e["args"] or "") for e in message.invalid_tool_calls]
        if calls:
            item |= {"tool_calls": calls, "content": item["content"] or None}
    yield item


def load(items: Sequence[Item]) -> Iterable[AnyMessage]:
    """Read messages of Chat Completions."""
    for item in items:
        given = {key: value for key, value in item.items() if key != "thinking_blocks"}
        (message,) = convert_to_messages([{**given, "content": given.get("content") or ""}])
        if thoughts := item.get("thinking_blocks"):
            texts = [{"type": "text", "text": message.content}] if isinstance(message.content, str) else message.content
            message.content = [*thoughts, *texts]
        yield message


def _usage(said: Sequence[Any]) -> Item | None:
    """Return the usage of the call, in the form of Chat Completions."""
    used = next((found for each in said if (found := getattr(each, "usage_metadata", None))), None)
    if used is None:
        return None
    return usage_of(used["input_tokens"], used["output_tokens"], used.get("input_token_details", {}).get("cache_read"))
