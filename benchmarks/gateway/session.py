"""A coding agent's session, from recorded traces: a task, then calls of a tool and their long outputs, 200 and more.

    task 1   bash(find …)  output   bash(open …)  output  …   task 2  …

The two traces are played over and over, each time with other numbers, so that no text comes twice. In one of them the
agent writes its commands into its text: they become calls. This module knows nothing of the gateway.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..conversation import Conversation, folder

_COMMAND = re.compile(r"```\n?(.*?)\n?```", re.DOTALL)
_NAMES = re.compile(r"[\w./-]*[/_.][\w./-]{4,}\w")
_LEAST = 8


class Step(NamedTuple):
    """What happens between two answers of the model."""

    task: str | None
    """what the user says first, None if the agent goes on"""
    text: str
    """what the model answers"""
    call: str
    """the id of its call"""
    command: str
    output: str

    @property
    def needs(self) -> set[str]:
        """Names of files and variables in its command."""
        return {name for name in _NAMES.findall(self.command) if len(name) >= _LEAST}


def session(calls: int) -> list[Step] | None:
    """Return a session of *calls* calls, None if the traces are not here."""
    path = folder()
    files = sorted(path.glob("swe_agent/*.traj")) if path is not None else []
    if not files:
        return None
    parts = [_messages(json.loads(file.read_text(encoding="utf-8"))["history"]) for file in files]
    whole = Conversation("swe", "", tuple(message for part in parts for message in part))
    return list(_steps(whole, calls))


def _messages(history: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a trace as messages with calls, without its system prompt and its demonstration."""
    waiting = False
    for message in history[1:]:
        content = message["content"]
        if message["role"] == "assistant":
            found = _COMMAND.findall(content)
            calls = message.get("tool_calls") or []
            arguments = (
                calls[0]["function"]["arguments"] if calls else json.dumps({"command": (found or [content])[-1]})
            )
            function = {"name": "bash", "arguments": arguments}
            call = {"id": "c", "type": "function", "function": function}
            yield {"role": "assistant", "content": _COMMAND.sub("", content).strip(), "tool_calls": [call]}
            waiting = True
        elif waiting:
            yield {"role": "tool", "tool_call_id": "c", "content": content}
            waiting = False
        else:
            yield {"role": "user", "content": content}


def _steps(conversation: Conversation, calls: int) -> Iterator[Step]:
    messages = (message for turn in conversation.turns() for message in turn)
    task, said, number = None, None, 0
    for message in messages:
        if message["role"] == "user":
            task = message["content"]
        elif message["role"] == "assistant":
            said = message
        elif said is not None:
            number += 1
            command = said["tool_calls"][0]["function"]["arguments"]
            yield Step(task, said["content"], f"call_{number}", command, message["content"])
            task = said = None
            if number == calls:
                return
