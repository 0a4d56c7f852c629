r"""smolagents: an agent whose model sees a bounded window of the conversation.

    memci = Memci("agent.db", window=32_000)
    agent = memci.attach(ToolCallingAgent(tools=tools, model=model), "alice")
    agent.run("Hi")

smolagents writes its steps as prose: calls as a list of dicts, their results as one observation. memci reads the two as
calls and results, and writes them as the same prose again, byte for byte:

    "Calling tools:\n[{'id': 'c1', …}]", "Observation:\nfound"  ⇄  {"tool_calls": […]}, {"role": "tool", …}

Before each step the list of the agent is stored and the
window takes its place in the request; after it, the step is stored. `agent.run` begins with an empty list unless it is
given `reset=False`; memci continues the stored conversation. The answer of a run that reached its last step is in no
message of smolagents; here it is one.
"""

import ast
from base64 import b64decode
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from io import BytesIO
from itertools import chain, islice
from typing import Any

from PIL import Image
from smolagents import ActionStep, AgentMaxStepsError, PlanningStep, Tool
from smolagents.models import ChatMessage, MessageRole, get_clean_message_list, get_tool_json_schema

from ..formats.envelope import function_call
from ..messages import parts_of, text_of
from .conversations import TOOLS, Conversations
from .items import Item, arguments_as_given, media_in, text_within, usage_of

_CALLS, _RESULTS, _ERROR = "Calling tools:\n", "Observation:\n", "Error:\n"
Group = tuple[ChatMessage, ...]  # one message, or the calls of a step with their results


class Memci:
    """The conversations of one store; safe for threads."""

    def __init__(self, store: Any, **settings: Any) -> None:
        """Keep the conversations in *store*, with the *settings* of `Conversations`: `window`, `owner` and others."""
        self.conversations = Conversations[Group](store, dump=dump, load=load, **settings)

    def attach(self, agent: Any, conversation: str) -> Any:
        """Give *agent* the window of *conversation* and memci's tools, and return it; each conversation has its own."""
        agent.model = _Model(agent, self.conversations, conversation)
        for schema in TOOLS:
            tool = _Tool(self.conversations, conversation, schema["function"])
            agent.tools[tool.name] = tool
        for kind in (ActionStep, PlanningStep):
            agent.step_callbacks.register(kind, partial(self._store, conversation))
        return agent

    def close(self) -> None:
        """Close all contexts."""
        self.conversations.close()

    def _store(self, conversation: str, step: Any, agent: Any) -> None:
        """Store *step* with its usage."""
        messages = [message for each in (*agent.memory.steps, step) for message in _messages_of(each)]
        used = step.token_usage
        usage = usage_of(used.input_tokens, used.output_tokens, None) if used is not None else None
        self.conversations.add(conversation, group_steps(messages), usage)


class _Model:
    """The model of an agent, called with the window."""

    def __init__(self, agent: Any, conversations: Conversations[Group], name: str) -> None:
        self._agent, self._model, self._conversations, self._name = agent, agent.model, conversations, name

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._model, name)
        if name == "generate_stream":
            return partial(self._stream_with_window, found)
        return partial(self._call_with_window, found) if name == "generate" else found

    def _stream_with_window(self, call: Any, messages: list[ChatMessage], **arguments: Any) -> Iterator[Any]:
        def begin(*given: Any, **more: Any) -> Iterator[Any]:
            """Wait for the beginning of the stream: an error comes in its place."""
            deltas = iter(call(*given, **more))
            return chain([*islice(deltas, 1)], deltas)

        yield from self._call_with_window(begin, messages, **arguments)

    def _call_with_window(self, call: Any, messages: list[ChatMessage], **arguments: Any) -> Any:
        end = len(known := self._agent.write_memory_to_messages())
        if messages[1:end] == known[1:]:  # the messages behind them are prompts of smolagents
            said = [message for step in self._agent.memory.steps for message in _messages_of(step)]
            tools = [get_tool_json_schema(tool) for tool in arguments.get("tools_to_call_from") or ()]
            system, prompts = text_within(messages[0].content), messages[end:]

            def ask() -> Any:
                view = self._conversations.view(self._name, group_steps(said), system=system, tools=tools, whole=False)
                shown = [message for group in view.messages for message in group]
                return call([message_of(MessageRole.SYSTEM, view.system), *shown, *prompts], **arguments)

            return self._conversations.ask(self._name, ask)
        return call(messages, **arguments)


def _messages_of(step: Any) -> list[ChatMessage]:
    """Return the messages of *step*, with the answer to the user if it is the last one that was allowed."""
    ends = isinstance(getattr(step, "error", None), AgentMaxStepsError) and step.action_output is not None
    answer = [message_of(MessageRole.ASSISTANT, str(step.action_output))] if ends else []
    return [*step.to_messages(), *answer]


class _Tool(Tool):
    """One of memci's tools."""

    output_type = "string"
    skip_forward_signature_validation = True

    def __init__(self, conversations: Conversations[Group], conversation: str, schema: Item) -> None:
        self.name, self.description = schema["name"], schema["description"]
        self.inputs = {name: _input(body) for name, body in schema["parameters"]["properties"].items()}
        self._answer = partial(conversations.answer, conversation, self.name)
        super().__init__()

    def forward(self, *values: Any, **arguments: Any) -> str:
        return self._answer(dict(zip(self.inputs, values, strict=False)) | arguments)


def _input(body: Item) -> Item:
    """Return the schema of an argument as smolagents wants it."""
    kinds = body["type"] if isinstance(body["type"], list) else [body["type"]]
    given = {"type": kinds[0], "description": body.get("description", "")}
    return {**given, "nullable": True} if "null" in kinds else given


def group_steps(messages: Iterable[ChatMessage]) -> list[Group]:
    """Group *messages*: the calls of a step with their results and images. An error may belong to no call."""
    groups: list[Group] = []
    for message in messages:
        came_back = message.role == MessageRole.TOOL_RESPONSE and not text_within(message.content).startswith(_ERROR)
        seen = message.role == MessageRole.USER and all(part["type"] == "image" for part in parts_of(message.content))
        if (came_back or seen) and groups and groups[-1][0].role == MessageRole.TOOL_CALL:
            groups[-1] = (*groups[-1], message)
        else:
            groups.append((message,))
    return groups


def dump(group: Group) -> Iterator[Item]:
    """Write *group* as messages of Chat Completions: each call with its line of the observation, else the first one."""
    first, *results = group
    text = text_within(first.content)
    if first.role != MessageRole.TOOL_CALL:
        role = "assistant" if first.role == MessageRole.ASSISTANT else "user"
        said = _parts(first)
        if text or len(said) > 1:
            yield {"role": role, "content": said if len(said) > 1 else text}
        return
    calls = [
        function_call(str(each["id"]), each["function"]["name"], each["function"]["arguments"])
        for each in ast.literal_eval(text.removeprefix(_CALLS))
    ]
    yield {"role": "assistant", "content": None, "tool_calls": calls}
    if results:
        images = [part for each in results if each.role == MessageRole.USER for part in _parts(each)]
        texts = [text_within(each.content) for each in results if each.role != MessageRole.USER]
        found = "\n".join(texts).removeprefix(_RESULTS)
        lines = found.split("\n")
        texts = lines if len(lines) == len(calls) and all(lines) else [found, *[""] * (len(calls) - 1)]
        for call, line in zip(calls, texts, strict=True):
            content = [*images, *parts_of(line)] if images else line
            yield {"role": "tool", "tool_call_id": call["id"], "content": content}
            images = []


def load(items: Sequence[Item]) -> Iterator[Group]:
    """Read messages of Chat Completions."""
    made: list[ChatMessage] = []
    for item in items:
        if calls := item.get("tool_calls"):
            made.append(message_of(MessageRole.TOOL_CALL, _CALLS + str([*map(_call, calls)])))
        elif item["role"] == "tool":
            if images := [_piece(part) for part in parts_of(item["content"]) if part["type"] != "text"]:
                made.append(ChatMessage(MessageRole.USER, images))
            if text := text_of(item):
                follows = made and made[-1].role == MessageRole.TOOL_RESPONSE
                before = text_within(made.pop().content) + "\n" if follows else _RESULTS
                made.append(message_of(MessageRole.TOOL_RESPONSE, before + text))
        else:
            role = MessageRole.ASSISTANT if item["role"] == "assistant" else MessageRole.USER
            made.append(ChatMessage(role, [*map(_piece, parts_of(item["content"]))]))
    return iter(group_steps(made))


def _call(call: Item) -> Item:
    """Return *call* as smolagents writes it: arguments that are an object as one."""
    name, text = call["function"]["name"], call["function"]["arguments"]
    return {**call, "function": {"name": name, "arguments": arguments_as_given(text)}}


def _parts(message: ChatMessage) -> list[Item]:
    """Return the content of *message* as parts of Chat Completions."""
    (item,) = get_clean_message_list([message], convert_images_to_image_urls=True)
    return list(item["content"])


def _piece(part: Item) -> Item:
    """Return *part* of Chat Completions as smolagents has it: images are objects."""
    _, url, _ = media_in(part) or ("", "", None)
    if not url.startswith("data:image/"):
        return part
    return {"type": "image", "image": Image.open(BytesIO(b64decode(url.partition(",")[2])))}


def message_of(role: MessageRole, text: str) -> ChatMessage:
    """Return *text* as a message."""
    return ChatMessage(role, [{"type": "text", "text": text}])
