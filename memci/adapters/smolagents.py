"""smolagents: what shows the model of an agent a bounded window of the conversation.

    memci = Memci("agent.db", window=32_000)
    agent = memci.attach(ToolCallingAgent(tools=tools, model=model), "alice")
    agent.run("Hi")

smolagents writes its steps as prose: calls as a list of dicts, their results as one observation. memci reads the two as
calls and results, and writes them as the same prose again. Before each step the list of the agent is stored and the
window takes its place in the request; after it, the step is stored. `agent.run` begins with an empty list unless it is
given `reset=False`; memci goes on where the conversation was. This module knows nothing of models.
"""

import ast
import json
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from smolagents import ActionStep, PlanningStep, Tool
from smolagents.models import ChatMessage, MessageRole, get_clean_message_list, get_tool_json_schema

from ..formats.envelope import function_call, parts_of
from ..messages import text_of
from .conversations import TOOLS, Conversations, Item, reported

_CALLS, _RESULTS, _ERROR = "Calling tools:\n", "Observation:\n", "Error:\n"
Group = tuple[ChatMessage, ...]
"""one message, or the calls of a step with what came back"""


class Memci:
    """The conversations of one store; safe for threads."""

    def __init__(self, store: Any, **settings: Any) -> None:
        """Begin with the *settings* of `Conversations`: `window`, `model`, `owner`, `policy` and others."""
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
        """Store *step* with what it cost."""
        messages = [*agent.write_memory_to_messages()[1:], *step.to_messages()]
        used = step.token_usage
        usage = reported(used.input_tokens, used.output_tokens, None) if used is not None else None
        self.conversations.add(conversation, grouped(messages), usage)


class _Model:
    """The agent's model, which is called with the window."""

    def __init__(self, agent: Any, conversations: Conversations[Group], name: str) -> None:
        self._agent, self._model, self._conversations, self._name = agent, agent.model, conversations, name

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._model, name)
        return partial(self._called, found) if name in {"generate", "generate_stream"} else found

    def _called(self, call: Any, messages: list[ChatMessage], **arguments: Any) -> Any:
        known = self._agent.write_memory_to_messages()[1:]
        end = 1 + len(known)
        if messages[1:end] == known:  # what stands behind is a prompt of smolagents' own
            tools = [get_tool_json_schema(tool) for tool in arguments.get("tools_to_call_from") or ()]
            system = _text(messages[0])
            view = self._conversations.view(self._name, grouped(known), system=system, tools=tools)
            shown = [message for group in view.messages for message in group]
            messages = [_message(MessageRole.SYSTEM, view.system), *shown, *messages[end:]]
        return call(messages, **arguments)


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


def grouped(messages: Iterable[ChatMessage]) -> list[Group]:
    """Return *messages*, the calls of a step together with what came back; an error may belong to no call."""
    groups: list[Group] = []
    for message in messages:
        came_back = message.role == MessageRole.TOOL_RESPONSE and not _text(message).startswith(_ERROR)
        if came_back and groups and groups[-1][0].role == MessageRole.TOOL_CALL:
            groups[-1] = (*groups[-1], message)
        else:
            groups.append((message,))
    return groups


def dump(group: Group) -> Iterator[Item]:
    """Write *group* as messages of Chat Completions: each call with its line of the observation, else the first one."""
    first, *results = group
    text = _text(first)
    if first.role != MessageRole.TOOL_CALL:
        role = "assistant" if first.role == MessageRole.ASSISTANT else "user"
        (item,) = get_clean_message_list([first], convert_images_to_image_urls=True)
        if text or len(item["content"]) > 1:
            yield {"role": role, "content": item["content"] if len(item["content"]) > 1 else text}
        return
    calls = [
        function_call(str(each["id"]), each["function"]["name"], each["function"]["arguments"])
        for each in ast.literal_eval(text.removeprefix(_CALLS))
    ]
    yield {"role": "assistant", "content": None, "tool_calls": calls}
    if results:
        found = "\n".join(map(_text, results)).removeprefix(_RESULTS)
        lines = found.split("\n")
        texts = lines if len(lines) == len(calls) and all(lines) else [found, *[""] * (len(calls) - 1)]
        for call, line in zip(calls, texts, strict=True):
            yield {"role": "tool", "tool_call_id": call["id"], "content": line}


def load(items: Sequence[Item]) -> Iterator[Group]:
    """Read messages of Chat Completions."""
    made: list[ChatMessage] = []
    for item in items:
        if calls := item.get("tool_calls"):
            made.append(_message(MessageRole.TOOL_CALL, _CALLS + str([*map(_call, calls)])))
        elif item["role"] == "tool" and (text := text_of(item)):
            before = _text(made.pop()) + "\n" if made and made[-1].role == MessageRole.TOOL_RESPONSE else _RESULTS
            made.append(_message(MessageRole.TOOL_RESPONSE, before + text))
        elif item["role"] != "tool":
            role = MessageRole.ASSISTANT if item["role"] == "assistant" else MessageRole.USER
            made.append(ChatMessage(role, parts_of(item["content"])))
    return iter(grouped(made))


def _call(call: Item) -> Item:
    """Return *call* as smolagents writes it: arguments that are an object as one."""
    name, text = call["function"]["name"], call["function"]["arguments"]
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    exact = isinstance(value, dict) and function_call("", name, value)["function"]["arguments"] == text
    return {**call, "function": {"name": name, "arguments": value if exact else text}}


def _input(body: Item) -> Item:
    """Return the schema of an argument as smolagents wants it."""
    kinds = body["type"] if isinstance(body["type"], list) else [body["type"]]
    given = {"type": kinds[0], "description": body.get("description", "")}
    return {**given, "nullable": True} if "null" in kinds else given


def _text(message: ChatMessage) -> str:
    return text_of({"role": "user", "content": message.content})


def _message(role: MessageRole, text: str) -> ChatMessage:
    return ChatMessage(role, [{"type": "text", "text": text}])
