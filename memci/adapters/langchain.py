"""LangChain and LangGraph: a middleware that shows the model a bounded window of the conversation.

    agent = create_agent(model, tools, middleware=[MemciMiddleware("agent.db", window=32_000)])
    agent.invoke({"messages": [("user", "Hi")]}, {"configurable": {"thread_id": "alice"}})

Before each call of the model, also within a loop of tools, the messages of the agent's state are stored, and the
window replaces them in the request; the state itself does not change. With a checkpointer the state holds the
conversation; without one it may hold only the newest message. The conversation is the `thread_id`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextvars import copy_context
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, SystemMessage, ToolMessage, convert_to_messages
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.config import get_config

from ..formats.envelope import call_of, content_of, function_call, part_named
from ..formats.usage import CallsCost
from ..messages import arguments_of
from .conversations import TOOLS, Conversations, View
from .items import OWN, Item, check_name, exact, media, own_of, usage_of

_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}
_MIMES = {"image": "image/png", "audio": "audio/wav", "video": "video/mp4", "file": "application/pdf"}
"""media types of blocks that say none"""
_REPEATED = frozenset({"tool_calls", "function_call"})  # what a message's calls say already
_MADE_BY = frozenset({"model_provider", "output_version"})


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
        response = self.conversations.ask(name, lambda: handler(self._rewrite(request, self._view(name, request))))
        self._add(name, request, response)
        return response

    async def awrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[Any]]) -> Any:
        """Do the same without blocking the loop."""
        name = self._name(get_config())

        async def call() -> Any:
            return await handler(self._rewrite(request, await asyncio.to_thread(self._view, name, request)))

        response = await self.conversations.ask_async(name, call)
        await asyncio.to_thread(self._add, name, request, response)
        return response

    def after_agent(self, state: Any, runtime: Any) -> None:
        """Store the end of the run, such as a result that is returned directly."""
        del runtime
        messages = state["messages"]
        asked = max((at for at, each in enumerate(messages) if each.type == "human"), default=0)
        if len(said := messages[asked:]) > 1:
            self.conversations.add(self._name(get_config()), said)

    async def aafter_agent(self, state: Any, runtime: Any) -> None:
        """Do the same without blocking the loop."""
        await asyncio.to_thread(copy_context().run, self.after_agent, state, runtime)

    def _view(self, name: str, request: ModelRequest) -> View[AnyMessage]:
        system = str(request.system_message.text) if request.system_message is not None else None
        tools = [convert_to_openai_tool(tool) for tool in request.tools]
        kept = bool(get_config()["configurable"].get("__pregel_checkpointer"))
        return self.conversations.view(name, request.messages, system=system, tools=tools, whole=kept)

    def _rewrite(self, request: ModelRequest, view: View[AnyMessage]) -> ModelRequest:
        return request.override(messages=view.messages, system_message=SystemMessage(view.system))

    def _add(self, name: str, request: ModelRequest, response: Any) -> None:
        found = response.model_response if hasattr(response, "model_response") else response
        said = found.result if isinstance(found, ModelResponse) else [found]
        self.conversations.add(name, [*request.messages, *said], _usage(said))

    def _name(self, config: RunnableConfig) -> str:
        """Return the name of the conversation; an agent that a tool calls has its own, as LangGraph keeps it."""
        given = config.get("configurable") or {}
        name = check_name(self._conversation or given.get("thread_id"), '{"configurable": {"thread_id": "alice"}}')
        *outer, _ = str(given.get("checkpoint_ns", "")).split("|")
        while outer and outer[-1].partition(":")[0] != "tools":
            outer.pop()
        return "/".join([name, *outer])

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
    """Write *message* as one of Chat Completions."""
    role = _ROLES.get(message.type.removesuffix("MessageChunk").lower(), getattr(message, "role", "user"))
    said = message.content
    if isinstance(said, list):
        parts = [part for block in message.content_blocks if (part := _part(block, role)) is not None]
        said = said if said == parts else content_of(parts) or ""
    item: Item = {"role": role, "content": said}
    if isinstance(message, ToolMessage):
        item["tool_call_id"] = message.tool_call_id
    elif message.name:
        item["name"] = message.name
    if isinstance(message, AIMessage):
        calls = [function_call(str(each["id"]), each["name"], each["args"]) for each in message.tool_calls]
        calls += [function_call(str(e["id"]), e["name"] or "", e["args"] or "") for e in message.invalid_tool_calls]
        item |= {"tool_calls": calls, "content": said or None} if calls else {}
    yield exact(item, _own(message), _own(_made(item)))


def load(items: Sequence[Item]) -> Iterable[AnyMessage]:
    """Read messages of Chat Completions."""
    for item in items:
        message, own = _made(item), own_of(item)
        yield message if own is None else message.model_copy(update=own)


def _made(item: Item) -> AnyMessage:
    """Return *item* as a message. A call whose arguments a model wrote wrong is an invalid one, as LangChain has it."""
    given = {key: value for key, value in item.items() if key not in (OWN, "tool_calls")}
    calls, invalid = list[Item](), list[Item]()
    for call in item.get("tool_calls") or ():
        name, written = call_of(call)
        try:
            arguments_of(written)
            calls.append(call)
        except ValueError as error:
            invalid.append(
                {"type": "invalid_tool_call", "id": call["id"], "name": name, "args": written, "error": str(error)}
            )
    given |= {"tool_calls": calls} if calls else {}
    (message,) = convert_to_messages([{**given, "content": given.get("content") or ""}])
    return message.model_copy(update={"invalid_tool_calls": invalid}) if invalid else message


def _own(message: BaseMessage) -> Item:
    """Return what of *message* a provider may get and an item does not hold."""
    more = {key: each for key, each in message.additional_kwargs.items() if each and key not in _REPEATED}
    by = {key: each for key, each in message.response_metadata.items() if key in _MADE_BY}
    own = {"content": message.content or "", "additional_kwargs": more}
    own |= {"response_metadata": by} if isinstance(message.content, list) else {}  # it says how to read the blocks
    return own | ({"status": message.status} if isinstance(message, ToolMessage) else {})


def _part(block: Any, role: str) -> Item | None:
    """Return a standard *block* as a part of Chat Completions; None for a call, a thought or the like of the model."""
    given = block["value"] if block["type"] == "non_standard" else block
    kind, text, mime = str(given.get("type")), given.get("text"), str(given.get("mime_type") or "")
    if kind in {"text", "text-plain"} and text:
        return {"type": "text", "text": text}
    name = (block.get("extras") or {}).get("filename") or given.get("filename")
    if (data := given.get("base64") or given.get("data")) and isinstance(data, str):
        mime = mime or _MIMES.get(kind, "application/octet-stream")
        return media(f"data:{mime};base64,{data}", mime, name)
    url = given.get("url") or given.get("image_url") or given.get("file_data")
    if isinstance(url, str):
        return media(url, kind.removeprefix("input_"), name)
    if file_id := given.get("file_id"):
        return {"type": "file", "file": {"file_id": str(file_id)}}
    return part_named(given) if role != "assistant" else None


def _usage(said: Sequence[Any]) -> CallsCost | None:
    """Return the cost of the call."""
    used = next((found for each in said if (found := getattr(each, "usage_metadata", None))), None)
    if used is None:
        return None
    return usage_of(used["input_tokens"], used["output_tokens"], used.get("input_token_details", {}).get("cache_read"))
