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
from base64 import b64decode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai import AgentRunResult, BinaryContent, RunContext, Tool
from pydantic_ai import messages as parts
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.toolsets import FunctionToolset
from pydantic_core import to_jsonable_python

from ..formats.envelope import content_of, function_call
from ..messages import parts_of
from .conversations import TOOLS, Conversations
from .items import Item, assistant_item, check_name, data_url, exact, media, media_in, own_of, tool_schema, usage_of

_NOT_SENT = frozenset({"timestamp", "metadata", "content_file_digests"})  # fields of a part that no provider gets
_URLS = {"image": parts.ImageUrl, "audio": parts.AudioUrl, "video": parts.VideoUrl}


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
        whole = any(each.run_id not in {None, ctx.run_id} for each in messages)  # with the history of earlier runs
        view = await asyncio.to_thread(
            self.conversations.view, name, messages, system="\n\n".join(prompts), tools=tools, whole=whole
        )
        shown = view.messages  # what Pydantic AI sends ends with a request, though it may hold nothing
        shown = shown if shown and isinstance(shown[-1], ModelRequest) else [*shown, messages[-1]]
        asked = replace(given, instruction_parts=[parts.InstructionPart(view.system)] if view.system else [])
        try:
            response = await handler(replace(request_context, messages=shown, model_request_parameters=asked))
        except Exception as error:  # Pydantic AI calls the model once: the next request is shorter
            await asyncio.to_thread(self.conversations.overflowed, name, error)
            raise
        if response.state == "incomplete":  # the program stopped to read the stream
            return response
        usage = usage_of(response.usage.input_tokens, response.usage.output_tokens, response.usage.cache_read_tokens)
        await asyncio.to_thread(self.conversations.add, name, [response], usage)
        return response

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        """Store the results of tools that ended the run, as a structured output does."""
        messages = result.all_messages()
        if messages and isinstance(messages[-1], ModelRequest):
            await asyncio.to_thread(
                self.conversations.add, _name(ctx), [_without_prompts(each, []) for each in messages]
            )
        return result

    def _tool(self, schema: Item) -> Tool[Any]:
        async def run(ctx: RunContext[Any], **arguments: Any) -> str:
            return await asyncio.to_thread(self.conversations.answer, _name(ctx), schema["name"], arguments)

        return Tool.from_schema(run, schema["name"], schema["description"], schema["parameters"], takes_ctx=True)


def dump(message: ModelMessage) -> Iterator[Item]:
    """Write *message* as those of Chat Completions: one for each part of a request, one for a response."""
    if isinstance(message, ModelRequest):
        for part in message.parts:
            yield _exact(_request_item(part), [part])
        return
    content, calls = [], []
    for part in message.parts:
        if isinstance(part, parts.ToolCallPart):
            calls.append(function_call(part.tool_call_id, part.tool_name, part.args_as_json_str()))
        elif isinstance(part, parts.TextPart | parts.FilePart):
            content.append(_content(part.content))
    yield _exact(assistant_item(content_of(content), calls), message.parts)


def load(items: Sequence[Item]) -> Iterable[ModelMessage]:
    """Read messages of Chat Completions."""
    tools = {call["id"]: call["function"]["name"] for item in items for call in item.get("tool_calls") or ()}
    for item in items:
        own = own_of(item)
        if own is not None:
            kind = "response" if item["role"] == "assistant" else "request"
            yield from parts.ModelMessagesTypeAdapter.validate_python([{"kind": kind, "parts": own}])
        else:
            yield _made(item, tools.get(str(item.get("tool_call_id")), "tool"))


def _exact(item: Item, own: Sequence[Any]) -> Item:
    """Return *item* with its *own* parts, where it alone would become others."""
    tool = getattr(own[0], "tool_name", None) if own else None
    own = [part for part in own if not isinstance(part, parts.TextPart) or part.content]
    return exact(item, [*map(_json, own)], [*map(_json, _made(item, tool or "tool").parts)])


def _request_item(part: Any) -> Item:
    """Return *part* of a request as an item."""
    if isinstance(part, parts.ToolReturnPart):
        said = content_of([*map(_content, part.content_items(mode="str"))]) if part.files else part.model_response_str()
        return {"role": "tool", "tool_call_id": part.tool_call_id, "content": said}
    if isinstance(part, parts.RetryPromptPart):
        if part.tool_name is None:
            return {"role": "user", "content": part.model_response()}
        return {"role": "tool", "tool_call_id": part.tool_call_id, "content": part.model_response()}
    if isinstance(part, parts.UserPromptPart):
        given = [part.content] if isinstance(part.content, str) else part.content
        said = content_of([_content(each) for each in given if not isinstance(each, parts.CachePoint)])
        return {"role": "user", "content": said or ""}
    return {"role": "system", "content": str(getattr(part, "content", to_jsonable_python(part)))}


def _made(item: Item, tool: str) -> ModelMessage:
    """Return *item* as a message; *tool* is the name of the tool if it is a result."""
    said = [_user_content(part) for part in parts_of(item.get("content"))]
    plain = all(isinstance(each, str) for each in said)
    text = "\n".join(each for each in said if isinstance(each, str))
    if item["role"] == "assistant":
        made: list[Any] = [parts.TextPart(text)] if text else []
        for call in item.get("tool_calls") or ():
            body = call["function"]
            made.append(parts.ToolCallPart(body["name"], body["arguments"], tool_call_id=call["id"]))
        return ModelResponse(made)
    if item["role"] == "tool":
        return ModelRequest([parts.ToolReturnPart(tool, text if plain else said, tool_call_id=item["tool_call_id"])])
    if item["role"] != "user":
        return ModelRequest([parts.SystemPromptPart(text)])
    return ModelRequest([parts.UserPromptPart(text if plain and len(said) < 2 else said)])


def _json(part: Any) -> Item:
    """Return *part* as JSON, without what no provider gets; arguments and results without media are texts."""
    (message,) = parts.ModelMessagesTypeAdapter.dump_python([_message_of(part)], mode="json", exclude_none=True)
    own: Item = {key: value for key, value in message["parts"][0].items() if key not in _NOT_SENT}
    if isinstance(part, parts.ToolCallPart):
        own["args"] = part.args_as_json_str()
    if isinstance(part, parts.ToolReturnPart) and not part.files:
        own["content"] = replace(part, outcome="success").model_response_str()  # another one wraps it once more
    return own


def _message_of(part: Any) -> ModelMessage:
    known = (parts.BaseToolCallPart, parts.NativeToolReturnPart, parts.TextPart, parts.ThinkingPart, parts.FilePart)
    others = (parts.CompactionPart, parts.SpeechPart)
    return ModelResponse([part]) if isinstance(part, known + others) else ModelRequest([part])


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
    """Return *value*, a piece of a message, as a part of Chat Completions."""
    if isinstance(value, str):
        return {"type": "text", "text": value}
    if isinstance(value, parts.FileUrl):
        return media(value.url, value.kind)
    if isinstance(value, BinaryContent):
        return media(data_url(value.media_type, value.data), value.media_type, value.identifier)
    if isinstance(value, parts.UploadedFile):
        return {"type": "file", "file": {"file_id": value.file_id}}
    text = getattr(value, "content", None)
    return {"type": "text", "text": text if isinstance(text, str) else json.dumps(to_jsonable_python(value))}


def _user_content(part: Item) -> Any:
    """Return *part* of Chat Completions as a piece of a user's message."""
    if (found := media_in(part)) is None:
        return str(part.get("text", f"[{part['type']}]"))
    kind, url, name = found
    if url.startswith("data:"):
        return BinaryContent(b64decode(url.partition(",")[2]), media_type=kind, identifier=name)
    return _URLS.get(kind.partition("/")[0], parts.DocumentUrl)(url)
