"""AutoGen's model contexts and the Microsoft Agent Framework's compaction strategies.

This module knows nothing of prices.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import agent_framework as framework
from autogen_core import FunctionCall
from autogen_core.model_context import (
    BufferedChatCompletionContext,
    ChatCompletionContext,
    TokenLimitedChatCompletionContext,
)
from autogen_core.models import (
    AssistantMessage,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    UserMessage,
)

from ...cache.manager import Manager, Setting
from ...conversation import Message

_A_MESSAGE = 300
"""tokens that a message is taken for, where a context is limited by messages"""


def read(message: Message) -> Any:
    """Return *message* as AutoGen has it."""
    content = message.get("content") or ""
    if message["role"] == "user":
        return UserMessage(content=content, source="user")
    if message["role"] == "tool":
        result = FunctionExecutionResult(
            content=content, name=message.get("name") or "tool", call_id=message["tool_call_id"], is_error=False
        )
        return FunctionExecutionResultMessage(content=[result])
    calls = [FunctionCall(id=call["id"], **call["function"]) for call in message.get("tool_calls") or ()]
    return AssistantMessage(content=calls or content, thought=content if calls else None, source="agent")


def written(message: Any) -> list[Message]:
    """Return AutoGen's *message* as a provider is sent it."""
    if isinstance(message, FunctionExecutionResultMessage):
        return [{"role": "tool", "tool_call_id": each.call_id, "content": each.content} for each in message.content]
    if isinstance(message, UserMessage):
        return [{"role": "user", "content": message.content}]
    if isinstance(message.content, str):
        return [{"role": "assistant", "content": message.content}]
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in message.content
    ]
    return [{"role": "assistant", "content": message.thought or None, "tool_calls": calls}]


@dataclass(slots=True)
class _Client:
    """As much of a model's client as a token-limited context asks: it counts exactly, each message once."""

    setting: Setting
    known: dict[int, int] = field(default_factory=dict)
    held: list[Any] = field(default_factory=list)

    def add(self, message: Any) -> None:
        self.held.append(message)
        self.known[id(message)] = sum(map(self.setting.cost, written(message)))

    def count_tokens(self, messages: Sequence[Any], **_options: Any) -> int:
        return sum(map(self.known.__getitem__, map(id, messages)))


@dataclass(slots=True)
class _Kept:
    context: ChatCompletionContext
    client: _Client
    loop: asyncio.AbstractEventLoop

    def call(self, turn: Sequence[Message]) -> list[Message]:
        return self.loop.run_until_complete(self._call(turn))

    async def _call(self, turn: Sequence[Message]) -> list[Message]:
        for message in map(read, turn):
            self.client.add(message)
            await self.context.add_message(message)
        return [each for message in await self.context.get_messages() for each in written(message)]


def limited(setting: Setting) -> Manager:
    """Return AutoGen's context with a limit of tokens."""
    client: Any = _Client(setting)
    return _Kept(TokenLimitedChatCompletionContext(client, token_limit=setting.room), client, asyncio.new_event_loop())


def buffered(setting: Setting) -> Manager:
    """Return AutoGen's context with a limit of messages: as many as fit if each has 300 tokens."""
    context = BufferedChatCompletionContext(setting.budget // _A_MESSAGE)
    return _Kept(context, _Client(setting), asyncio.new_event_loop())


def framed(message: Message) -> framework.Message:
    """Return *message* as the Agent Framework has it."""
    if message["role"] == "tool":
        result = framework.Content.from_function_result(message["tool_call_id"], result=message.get("content") or "")
        return framework.Message("tool", [result])
    parts = [framework.Content.from_text(message["content"])] if message.get("content") else []
    for call in message.get("tool_calls") or ():
        function = call["function"]
        parts.append(
            framework.Content.from_function_call(call["id"], function["name"], arguments=function["arguments"])
        )
    return framework.Message(message["role"], parts)


def unframed(message: framework.Message) -> list[Message]:
    """Return the Agent Framework's *message* as a provider is sent it."""
    found: list[Message] = []
    calls = []
    for part in message.contents:
        if part.type == "function_call":
            arguments = part.arguments
            text = json.dumps(dict(arguments)) if isinstance(arguments, Mapping) else arguments or ""
            calls.append({"id": part.call_id, "type": "function", "function": {"name": part.name, "arguments": text}})
        elif part.type == "function_result":
            found.append({"role": "tool", "tool_call_id": part.call_id, "content": str(part.result)})
        else:
            found.append({"role": str(message.role), "content": part.text})
    if calls:
        said = found.pop() if found else {"role": "assistant", "content": None}
        found.append(said | {"tool_calls": calls})
    return found


@dataclass(slots=True)
class _Strategic:
    """Messages that a strategy marks; what it has not excluded is sent."""

    strategy: framework.CompactionStrategy
    tokenizer: Any
    loop: asyncio.AbstractEventLoop
    messages: list[framework.Message] = field(default_factory=list)

    def call(self, turn: Sequence[Message]) -> list[Message]:
        self.messages += map(framed, turn)
        kept = self.loop.run_until_complete(
            framework.apply_compaction(self.messages, strategy=self.strategy, tokenizer=self.tokenizer)
        )
        return [each for message in kept for each in unframed(message)]


def strategic(setting: Setting, make: Callable[[Any], framework.CompactionStrategy]) -> Manager:
    """Return what *make* makes of the exact tokenizer."""
    tokenizer: Any = SimpleNamespace(count_tokens=setting.count)
    return _Strategic(make(tokenizer), tokenizer, asyncio.new_event_loop())


def _window(setting: Setting) -> Callable[[Any], framework.CompactionStrategy]:
    return lambda tokenizer: framework.ContextWindowCompactionStrategy(
        max_context_window_tokens=setting.room, max_output_tokens=0, tokenizer=tokenizer
    )


def _truncation(setting: Setting) -> Callable[[Any], framework.CompactionStrategy]:
    half = setting.room // 2
    return lambda tokenizer: framework.TokenBudgetComposedStrategy(
        token_budget=setting.room,
        tokenizer=tokenizer,
        strategies=[framework.TruncationStrategy(max_n=setting.room, compact_to=half, tokenizer=tokenizer)],
    )


def _summarized(setting: Setting) -> Callable[[Any], framework.CompactionStrategy]:
    async def get_response(messages: Sequence[framework.Message], **_options: Any) -> Any:
        return SimpleNamespace(text=setting.script.write("\n".join(message.text for message in messages)))

    client: Any = SimpleNamespace(get_response=get_response)
    return lambda tokenizer: framework.TokenBudgetComposedStrategy(
        token_budget=setting.room,
        tokenizer=tokenizer,
        strategies=[framework.SummarizationStrategy(client=client, target_count=20, tokenizer=tokenizer)],
    )


PEERS: dict[str, Callable[[Setting], Manager]] = {
    "AutoGen, tokens": limited,
    "AutoGen, a message per 300 tokens": buffered,
    "Agent Framework context window": lambda setting: strategic(setting, _window(setting)),
    "Agent Framework truncation to a half": lambda setting: strategic(setting, _truncation(setting)),
    "Agent Framework summarizing, keep 20": lambda setting: strategic(setting, _summarized(setting)),
}
