"""Strands: its conversation managers on a real agent whose model is a script. This module knows nothing of prices."""

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from strands import Agent
from strands.agent.conversation_manager import (
    ConversationManager,
    SlidingWindowConversationManager,
    SummarizingConversationManager,
)
from strands.models import Model
from strands.types.exceptions import ContextWindowOverflowException

from ...cache.manager import Manager, Setting
from ...cache.script import Script
from ...conversation import Message


class Scripted(Model):
    """A model that writes a summary of whatever it is asked."""

    def __init__(self, script: Script) -> None:
        """Write with *script*."""
        self.script = script

    def update_config(self, **_options: Any) -> None:
        """Take none."""

    def get_config(self) -> Any:
        """Have none."""
        return {}

    def structured_output(self, *_args: Any, **_options: Any) -> Any:
        """Refuse."""
        raise NotImplementedError

    async def stream(self, messages: Any, *_args: Any, **_options: Any) -> AsyncGenerator[Any, None]:  # type: ignore[override]
        """Write."""
        said = "\n".join(str(part.get("content")) for message in messages for part in written(message))
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        yield {"contentBlockDelta": {"delta": {"text": self.script.write(said)}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


def read(message: Message) -> Any:
    """Return *message* as Strands has it."""
    if message["role"] == "tool":
        content = [{"text": message.get("content") or ""}]
        result = {"toolUseId": message["tool_call_id"], "status": "success", "content": content}
        return {"role": "user", "content": [{"toolResult": result}]}
    parts: list[dict[str, Any]] = [{"text": message["content"]}] if message.get("content") else []
    for call in message.get("tool_calls") or ():
        name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
        parts.append({"toolUse": {"toolUseId": call["id"], "name": name, "input": arguments}})
    return {"role": message["role"], "content": parts}


def written(message: Any) -> list[Message]:
    """Return *message* as a provider is sent it: one for each result, one for the rest."""
    found: list[Message] = []
    text, calls = [], []
    for part in message["content"]:
        if "toolResult" in part:
            said = "\n".join(each.get("text", "") for each in part["toolResult"]["content"])
            found.append({"role": "tool", "tool_call_id": part["toolResult"]["toolUseId"], "content": said})
        elif "toolUse" in part:
            used = part["toolUse"]
            function = {"name": used["name"], "arguments": json.dumps(used["input"])}
            calls.append({"id": used["toolUseId"], "type": "function", "function": function})
        else:
            text.append(part.get("text", ""))
    if text or calls:
        more = {"tool_calls": calls} if calls else {}
        found.append({"role": message["role"], "content": "\n".join(text) or None, **more})
    return found


@dataclass(slots=True)
class _Managed:
    """An agent's messages under its manager: after each turn, and again while the model would refuse them.

    A manager that summarizes what it wrote itself, and gets no shorter, is not asked again: the request is over budget.
    """

    setting: Setting
    agent: Agent
    manager: ConversationManager

    def call(self, turn: Sequence[Message]) -> list[Message]:
        self.agent.messages += map(read, turn)
        self.manager.apply_management(self.agent)
        before = None
        while True:
            view = [each for message in self.agent.messages for each in written(message)]
            size = sum(map(self.setting.cost, view))
            if size <= self.setting.room or (before is not None and size >= before):
                return view
            before = size
            overflow = ContextWindowOverflowException("too long")
            try:
                self.manager.reduce_context(self.agent, overflow)
            except ContextWindowOverflowException:
                return view


def managed(setting: Setting, manager: ConversationManager) -> Manager:
    """Return an agent with *manager*."""
    agent = Agent(model=Scripted(setting.script), conversation_manager=manager, callback_handler=None)
    return _Managed(setting, agent, manager)


PEERS: dict[str, Callable[[Setting], Manager]] = {
    "Strands sliding window, 40 messages": lambda setting: managed(setting, SlidingWindowConversationManager()),
    "Strands summarizing": lambda setting: managed(setting, SummarizingConversationManager()),
    "Strands summarizing, .8": lambda setting: managed(setting, SummarizingConversationManager(summary_ratio=0.8)),
}
