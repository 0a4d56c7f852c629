"""pydantic-ai: the compactions of its harness, called as an agent calls them before a request.

This module knows nothing of prices.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext, ModelRequestParameters
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import RunUsage
from pydantic_ai_harness.compaction import (
    ClearToolResults,
    SlidingWindowCompaction,
    SummarizingCompaction,
    TieredCompaction,
)

from ...cache.manager import Manager, Setting
from ...conversation import Message


def read(message: Message) -> ModelMessage:
    """Return *message* as pydantic-ai has it."""
    content = message.get("content") or ""
    if message["role"] == "user":
        return ModelRequest(parts=[UserPromptPart(content)])
    if message["role"] == "tool":
        name = message.get("name") or "tool"
        return ModelRequest(parts=[ToolReturnPart(name, content, tool_call_id=message["tool_call_id"])])
    parts: list[Any] = [TextPart(content)] if content else []
    parts += [
        ToolCallPart(call["function"]["name"], call["function"]["arguments"], tool_call_id=call["id"])
        for call in message.get("tool_calls") or ()
    ]
    return ModelResponse(parts=parts)


def written(message: ModelMessage) -> list[Message]:
    """Return *message* as a provider is sent it."""
    found: list[Message] = []
    calls = []
    for part in message.parts:
        if isinstance(part, ToolCallPart):
            arguments = part.args if isinstance(part.args, str) else json.dumps(part.args)
            calls.append(
                {
                    "id": part.tool_call_id,
                    "type": "function",
                    "function": {"name": part.tool_name, "arguments": arguments},
                }
            )
        elif isinstance(part, ToolReturnPart):
            found.append({"role": "tool", "tool_call_id": part.tool_call_id, "content": str(part.content)})
        else:
            role = "assistant" if isinstance(message, ModelResponse) else "user"
            found.append({"role": role, "content": _text(getattr(part, "content", ""))})
    if calls:
        said = found.pop() if found and found[-1]["role"] == "assistant" else {"role": "assistant", "content": None}
        found.append(said | {"tool_calls": calls})
    return found


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(map(str, content or ()))


@dataclass(slots=True)
class _Compacted:
    """A capability before each request: what it leaves in the run's messages is the history from then on."""

    capability: Any
    model: FunctionModel
    loop: asyncio.AbstractEventLoop
    messages: list[ModelMessage] = field(default_factory=list)

    def call(self, turn: Sequence[Message]) -> list[Message]:
        self.messages += map(read, turn)
        context: RunContext[None] = RunContext(
            deps=None, model=self.model, usage=RunUsage(), messages=self.messages, run_id="bench"
        )
        request = ModelRequestContext(
            model=self.model,
            messages=list(self.messages),
            model_settings=None,
            model_request_parameters=ModelRequestParameters(),
        )
        after = self.loop.run_until_complete(self.capability.before_model_request(context, request))
        self.messages = list(context.messages)
        return [each for message in after.messages for each in written(message)]


def compacted(setting: Setting, make: Callable[[FunctionModel, dict[str, Any]], Any]) -> Manager:
    """Return the capability that *make* makes of a scripted model and the exact counter."""

    def respond(messages: list[ModelMessage], _info: Any) -> ModelResponse:
        said = "\n".join(str(each["content"]) for message in messages for each in written(message))
        return ModelResponse(parts=[TextPart(setting.script.write(said))])

    model = FunctionModel(respond)
    return _Compacted(make(model, {"tokenizer": setting.count}), model, asyncio.new_event_loop())


def _limit(setting: Setting) -> int:
    return int(0.85 * setting.room)


PEERS: dict[str, Callable[[Setting], Manager]] = {
    "pydantic-ai summarizing, keep 20": lambda setting: compacted(
        setting, lambda model, more: SummarizingCompaction(model=model, max_tokens=_limit(setting), **more)
    ),
    "pydantic-ai summarizing, keep a third": lambda setting: compacted(
        setting,
        lambda model, more: SummarizingCompaction(
            model=model, max_tokens=_limit(setting), keep_tokens=setting.room // 3, **more
        ),
    ),
    "pydantic-ai sliding window, keep a half": lambda setting: compacted(
        setting,
        lambda _model, more: SlidingWindowCompaction(max_tokens=_limit(setting), keep_tokens=setting.room // 2, **more),
    ),
    "pydantic-ai tiered": lambda setting: compacted(
        setting,
        lambda model, more: TieredCompaction(
            tiers=[
                ClearToolResults(max_tokens=1, **more),
                SummarizingCompaction(model=model, max_tokens=1, keep_tokens=setting.room // 3, **more),
            ],
            target_tokens=_limit(setting),
            **more,
        ),
    ),
}
