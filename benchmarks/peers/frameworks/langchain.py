"""LangChain and deepagents: their middleware and `trim_messages`, called as an agent's graph calls them.

    before_model(state)                 SummarizationMiddleware: what it returns replaces the state
    wrap_model_call(request, handler)   ContextEditingMiddleware, deepagents: what the handler is given is the view

This module knows nothing of prices.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from tempfile import mkdtemp
from typing import Any

from deepagents.backends import FilesystemBackend
from deepagents.middleware.summarization import create_summarization_middleware
from langchain.agents.middleware import (
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    ModelRequest,
    ModelResponse,
    SummarizationMiddleware,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage, trim_messages
from langchain_core.outputs import ChatGeneration, ChatResult

from ...cache.manager import Manager, Setting
from ...cache.script import Script
from ...conversation import Message


class Scripted(BaseChatModel):
    """A chat model that writes a summary of whatever it is asked."""

    script: Any

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, messages: list[BaseMessage], *_args: Any, **_options: Any) -> ChatResult:
        text = self.script.write("\n".join(str(message.content) for message in messages))
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content=text))])


def scripted(script: Script, tokens: int) -> Scripted:
    """Return a model with a window of so many *tokens*."""
    return Scripted(script=script, profile={"max_input_tokens": tokens})


def read(message: Message) -> BaseMessage:
    """Return *message* as LangChain has it."""
    content = message.get("content") or ""
    if message["role"] == "user":
        return HumanMessage(content)
    if message["role"] == "tool":
        return ToolMessage(content, tool_call_id=message["tool_call_id"], name=message.get("name"))
    calls = [
        {"id": call["id"], "name": call["function"]["name"], "args": json.loads(call["function"]["arguments"])}
        for call in message.get("tool_calls") or ()
    ]
    return AIMessage(content, tool_calls=calls)


def written(message: BaseMessage) -> Message:
    """Return *message* as a provider is sent it."""
    if isinstance(message, ToolMessage):
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": str(message.content)}
    if isinstance(message, AIMessage):
        calls = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": json.dumps(call["args"])},
            }
            for call in message.tool_calls
        ]
        return {
            "role": "assistant",
            "content": str(message.content) or None,
            **({"tool_calls": calls} if calls else {}),
        }
    return {"role": "system" if isinstance(message, SystemMessage) else "user", "content": str(message.content)}


@dataclass(slots=True)
class _Counter:
    """Counts exactly, each message once."""

    setting: Setting
    known: dict[int, tuple[BaseMessage, int]] = field(default_factory=dict)

    def __call__(self, messages: Iterable[Any], **_options: Any) -> int:
        return sum(self.of(message) for message in messages)

    def of(self, message: BaseMessage) -> int:
        found = self.known.get(id(message))
        if found is None or found[0] is not message:
            found = self.known[id(message)] = message, self.setting.cost(written(message))
        return found[1]


@dataclass(slots=True)
class _Summarized:
    """`SummarizationMiddleware` before each model call; what it returns becomes the state."""

    middleware: SummarizationMiddleware
    messages: list[BaseMessage] = field(default_factory=list)

    def call(self, turn: Sequence[Message]) -> list[Message]:
        self.messages += map(read, turn)
        update = self.middleware.before_model({"messages": self.messages}, None)  # type: ignore[arg-type]
        if update:
            self.messages = update["messages"][1:]
        return [written(message) for message in self.messages]


def summarized(setting: Setting, **keep: tuple[str, int]) -> Manager:
    """Return the middleware that summarizes when the budget is full."""
    model = scripted(setting.script, setting.budget)
    trigger = ("tokens", int(0.95 * setting.room))
    return _Summarized(SummarizationMiddleware(model, trigger=trigger, token_counter=_Counter(setting), **keep))  # type: ignore[arg-type]


@dataclass(slots=True)
class _Wrapped:
    """A middleware around the model call: what the handler is given is the view, and its updates are the state's."""

    middleware: Any
    model: Scripted
    system: str
    state: dict[str, Any] = field(default_factory=dict)
    messages: list[BaseMessage] = field(default_factory=list)

    def call(self, turn: Sequence[Message]) -> list[Message]:
        for message in map(read, turn):
            message.id = f"m{len(self.messages)}"
            self.messages.append(message)
        given: list[BaseMessage] = []

        def handler(request: ModelRequest[Any]) -> ModelResponse[Any]:
            given[:] = request.messages
            return ModelResponse(result=[AIMessage("")])

        request = ModelRequest(
            model=self.model,
            messages=list(self.messages),
            system_message=SystemMessage(self.system),
            tools=[],
            state={"messages": self.messages, **self.state},  # type: ignore[typeddict-item]
        )
        response = self.middleware.wrap_model_call(request, handler)
        update = dict(getattr(getattr(response, "command", None), "update", None) or {})
        clipped = {message.id: message for message in update.pop("messages", ())}
        self.messages = [clipped.get(message.id, message) for message in self.messages]
        self.state |= update
        return [written(message) for message in given]


def cleared(setting: Setting, **edit: int) -> Manager:
    """Return the middleware that clears old tool results."""
    trigger = int(0.95 * setting.room)
    middleware = ContextEditingMiddleware(
        edits=[ClearToolUsesEdit(trigger=trigger, **edit)],  # type: ignore[arg-type]
        token_counter=_Counter(setting),
    )
    return _Wrapped(middleware, scripted(setting.script, setting.budget), setting.system)


def deep(setting: Setting) -> Manager:
    """Return deepagents' middleware with its own defaults: at .85 of the window down to .10."""
    model = scripted(setting.script, setting.budget)
    middleware = create_summarization_middleware(
        model, FilesystemBackend(root_dir=mkdtemp(), virtual_mode=True), token_counter=_Counter(setting)
    )
    return _Wrapped(middleware, model, setting.system)


@dataclass(slots=True)
class _Trimmed:
    """`trim_messages` before each call, over the whole history."""

    setting: Setting
    counter: _Counter
    messages: list[BaseMessage] = field(default_factory=list)

    def call(self, turn: Sequence[Message]) -> list[Message]:
        self.messages += map(read, turn)
        kept = trim_messages(
            self.messages,
            max_tokens=self.setting.room,
            token_counter=self.counter,
            strategy="last",
            start_on=("human", "ai"),
            allow_partial=False,
        )
        return [written(message) for message in kept]


PEERS: dict[str, Callable[[Setting], Manager]] = {
    "LangChain summarize, keep 20 messages": lambda setting: summarized(setting, keep=("messages", 20)),
    "LangChain summarize, keep a third": lambda setting: summarized(setting, keep=("tokens", setting.room // 3)),
    "LangChain trim_messages": lambda setting: _Trimmed(setting, _Counter(setting)),
    "LangChain clear tool uses, keep 3": lambda setting: cleared(setting, keep=3),
    "deepagents": deep,
}
