"""Pydantic AI: a capability that shows the model a bounded window of the conversation.

    memci = Memci("agent.db", window=32_000)
    agent = Agent("openai:gpt-4o-mini", instructions="Be brief.", capabilities=[memci])
    agent.run_sync("Hi", conversation_id="alice")

Before each request, also within a loop of tools, the run's messages are stored and the window takes their place in the
request; the run's own history stays as it is. `message_history` may hold the whole conversation, or is left out: memci
has it. The conversation is the `conversation_id`.
"""

import asyncio
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai import BinaryContent, ImageUrl, RunContext, Tool
from pydantic_ai import messages as parts
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.toolsets import FunctionToolset
from pydantic_core import to_jsonable_python

from ..formats.envelope import function_call
from ..messages import text_of
from .conversations import TOOLS, Conversations
from .items import Item, assistant_item, check_name, data_url, media, tool_schema, usage_of


class Memci(AbstractCapability[Any]):
    """Keeps the window of each conversation within its budget, and gives the model the tools to look behind it."""

    def __init__(self, store: Any, **settings: Any) -> None:
        """Keep the conversations in *store*, with the *settings* of `Conversations`: `window`, `owner` and others."""
        self.conversations = Conversations[ModelMessage](store, dump=dump, load=load, **settings)

    def get_toolset(self) -> FunctionToolset[Any]:
        """Return memci's tools."""
        return FunctionToolset([self._tool(each["function"]) for each in TOOLS])

    async def wrap_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, handler: Any
    ) -> ModelResponse:
        """Call the model with the window, and store its answer."""
        name, given = _name(ctx), request_context.model_request_parameters
        prompts = [each.content for each in given.instruction_parts or ()]
        messages = [_without_prompts(message, prompts) for message in request_context.messages]
        offered = (*given.function_tools, *given.output_tools)
        tools = [tool_schema(each.name, each.description, each.parameters_json_schema) for each in offered]
        view = await asyncio.to_thread(
            self.conversations.view, name, messages, system="\n\n".join(prompts), tools=tools
        )
        instructions = [parts.InstructionPart(view.system)] if view.system else []
        response = await handler(
            replace(
                request_context,
                messages=view.messages,
                model_request_parameters=replace(given, instruction_parts=instructions),
            )
        )
        usage = usage_of(response.usage.input_tokens, response.usage.output_tokens, response.usage.cache_read_tokens)
        await asyncio.to_thread(self.conversations.add, name, [response], usage)
        return response

    def _tool(self, schema: Item) -> Tool[Any]:
        async def run(ctx: RunContext[Any], **arguments: Any) -> str:
            return await asyncio.to_thread(self.conversations.answer, _name(ctx), schema["name"], arguments)

        return Tool.from_schema(run, schema["name"], schema["description"], schema["parameters"], takes_ctx=True)


def dump(message: ModelMessage) -> Iterator[Item]:
    """Write *message* as those of Chat Completions; thoughts and other parts have keys of their own."""
    if isinstance(message, ModelRequest):
        for part in message.parts:
            if isinstance(part, parts.ToolReturnPart):
                yield {"role": "tool", "tool_call_id": part.tool_call_id, "content": part.model_response_str()}
            elif isinstance(part, parts.RetryPromptPart) and part.tool_name is not None:
                yield {"role": "tool", "tool_call_id": part.tool_call_id, "content": part.model_response()}
            elif isinstance(part, parts.RetryPromptPart):
                yield {"role": "user", "content": part.model_response()}
            elif isinstance(part, parts.UserPromptPart):
                given = part.content
                yield {"role": "user", "content": given if isinstance(given, str) else [*map(_content, given)]}
            else:
                yield {"role": "system", "content": str(getattr(part, "content", to_jsonable_python(part)))}
        return
    texts = [part.content for part in message.parts if isinstance(part, parts.TextPart)]
    calls = [part for part in message.parts if isinstance(part, parts.ToolCallPart)]
    thoughts = [part for part in message.parts if isinstance(part, parts.ThinkingPart)]
    known = (parts.TextPart, parts.ToolCallPart, parts.ThinkingPart)
    item = assistant_item(
        "".join(texts),
        [function_call(each.tool_call_id, each.tool_name, each.args_as_json_str()) for each in calls],
        [{"type": "thinking", "thinking": each.content, "signature": each.signature} for each in thoughts],
    )
    if others := [to_jsonable_python(each) for each in message.parts if not isinstance(each, known)]:
        item["parts"] = others
    yield item


def load(items: Sequence[Item]) -> Iterable[ModelMessage]:
    """Read messages of Chat Completions."""
    tools = {call["id"]: call["function"]["name"] for item in items for call in item.get("tool_calls") or ()}
    for item in items:
        role, text = item["role"], text_of(item)
        if role == "assistant":
            made: list[Any] = [
                parts.ThinkingPart(each.get("thinking", ""), signature=each.get("signature"))
                for each in item.get("thinking_blocks") or ()
            ]
            made += [parts.TextPart(text)] if text else []
            for call in item.get("tool_calls") or ():
                body = call["function"]
                made.append(parts.ToolCallPart(body["name"], body["arguments"], tool_call_id=call["id"]))
            yield ModelResponse(made)
        elif role == "tool":
            name = tools.get(item["tool_call_id"], "tool")
            yield ModelRequest([parts.ToolReturnPart(name, text, tool_call_id=item["tool_call_id"])])
        else:
            kind = parts.SystemPromptPart if role in {"system", "developer"} else parts.UserPromptPart
            yield ModelRequest([kind(text)])


def _name(ctx: RunContext[Any]) -> str:
    return check_name(ctx.conversation_id, 'agent.run(…, conversation_id="alice")')


def _without_prompts(message: ModelMessage, prompts: list[str]) -> ModelMessage:
    """Return *message* without its system prompts, and add those to *prompts*."""
    found = [each for each in message.parts if isinstance(each, parts.SystemPromptPart)]
    if not found or not isinstance(message, ModelRequest):
        return message
    prompts += [each.content for each in found if each.content not in prompts]
    return replace(message, parts=[each for each in message.parts if each not in found])


def _content(value: Any) -> Item:
    """Return *value*, a piece of a user's message, as a part of Chat Completions."""
    if isinstance(value, str):
        return {"type": "text", "text": value}
    if isinstance(value, ImageUrl):
        return media(value.url, "image/")
    if isinstance(value, BinaryContent):
        return media(data_url(value.media_type, value.data), value.media_type, value.identifier)
    return {"type": "text", "text": json.dumps(to_jsonable_python(value))}
