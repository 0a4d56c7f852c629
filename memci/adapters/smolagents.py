"""smolagents: an agent whose model sees a bounded window of the conversation.

    memci = Memci("agent.db", window=32_000)
    agent = memci.attach(ToolCallingAgent(tools=tools, model=model), "alice")
    agent.run("Hi")

smolagents writes its steps as prose: calls as a list of dicts, their results as one observation. memci reads the two as
calls and results, and writes them as the same prose again. Before each step the list of the agent is stored and the
window takes its place in the request; after it, the step is stored. `agent.run` begins with an empty list unless it is
given `reset=False`; memci continues the stored conversation. The answer of a run that reached its last step is in no
message of smolagents; here it is one.
"""

from functools import partial
from typing import Any

from smolagents import ActionStep, AgentMaxStepsError, PlanningStep, Tool
from smolagents.models import ChatMessage, MessageRole, get_tool_json_schema

from .conversations import TOOLS, Conversations
from .items import Item, text_within, usage_of
from .smolagents_messages import Group, dump, group_steps, load, message_of


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
        return partial(self._call_with_window, found) if name in {"generate", "generate_stream"} else found

    def _call_with_window(self, call: Any, messages: list[ChatMessage], **arguments: Any) -> Any:
        end = len(known := self._agent.write_memory_to_messages())
        if messages[1:end] == known[1:]:  # the messages behind them are prompts of smolagents
            said = [message for step in self._agent.memory.steps for message in _messages_of(step)]
            tools = [get_tool_json_schema(tool) for tool in arguments.get("tools_to_call_from") or ()]
            system = text_within(messages[0].content)
            view = self._conversations.view(self._name, group_steps(said), system=system, tools=tools, whole=False)
            shown = [message for group in view.messages for message in group]
            messages = [message_of(MessageRole.SYSTEM, view.system), *shown, *messages[end:]]
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
