"""OpenAI Agents: a session with a limit of items, and the session that compacts through the provider.

The provider's side of `responses.compact` is a script: the user's messages stay as they are, one item stands for the
rest. This module knows nothing of prices.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from agents import SQLiteSession
from agents.memory import OpenAIResponsesCompactionSession
from agents.run_internal.items import drop_orphan_function_calls

from ...cache.manager import Manager, Setting
from ...conversation import Message

Item = dict[str, Any]
_A_MESSAGE = 300
"""tokens that an item is taken for, where a session is limited by items"""


def read(message: Message) -> list[Item]:
    """Return *message* as the items of a session."""
    if message["role"] == "tool":
        output = message.get("content") or ""
        return [{"type": "function_call_output", "call_id": message["tool_call_id"], "output": output}]
    said = [{"role": message["role"], "content": message["content"]}] if message.get("content") else []
    return said + [
        {"type": "function_call", "call_id": call["id"], **call["function"]} for call in message.get("tool_calls") or ()
    ]


def written(items: Sequence[Item]) -> list[Message]:
    """Return *items* as chat messages; the calls after a message belong to it."""
    found: list[Message] = []
    for item in items:
        kind = item.get("type", "message")
        if kind == "function_call":
            call = {"name": item["name"], "arguments": item["arguments"]}
            if not found or found[-1]["role"] != "assistant":
                found.append({"role": "assistant", "content": None})
            found[-1].setdefault("tool_calls", []).append({"id": item["call_id"], "type": "function", "function": call})
        elif kind == "function_call_output":
            found.append({"role": "tool", "tool_call_id": item["call_id"], "content": item["output"]})
        elif kind == "compaction":
            found.append({"role": "assistant", "content": item["encrypted_content"]})
        else:
            found.append({"role": item["role"], "content": item["content"]})
    return found


@dataclass(slots=True)
class _Session:
    """A session, asked as a run asks it: the items, without calls or results that have no other half."""

    session: Any
    loop: asyncio.AbstractEventLoop
    limit: int | None = None

    def call(self, turn: Sequence[Message]) -> list[Message]:
        return self.loop.run_until_complete(self._call([item for message in turn for item in read(message)]))

    async def _call(self, items: list[Item]) -> list[Message]:
        await self.session.add_items(items)
        if self.limit is None:
            await self.session.run_compaction({"compaction_mode": "input"})
        return written(drop_orphan_function_calls(await self.session.get_items(self.limit)))  # type: ignore[arg-type]


def limited(setting: Setting) -> Manager:
    """Return a session that gives its newest items: as many as fit if each has 300 tokens."""
    return _Session(SQLiteSession("bench"), asyncio.new_event_loop(), setting.budget // _A_MESSAGE)


def compacted(setting: Setting) -> Manager:
    """Return the session that compacts through the provider when the budget is full."""

    async def compact(*, input: list[Item], **_options: Any) -> Any:  # noqa: A002 -- the provider's name
        rest = [item for item in input if item.get("role") != "user"]
        text = setting.script.write("\n".join(json.dumps(item) for item in rest))
        kept = [{"type": "message", **item} for item in input if item.get("role") == "user"]
        return SimpleNamespace(output=[*kept, {"type": "compaction", "encrypted_content": text}], usage=None)

    def due(facts: dict[str, Any]) -> bool:
        return sum(map(setting.cost, written(facts["session_items"]))) > 0.95 * setting.room

    client: Any = SimpleNamespace(responses=SimpleNamespace(compact=compact))
    session = OpenAIResponsesCompactionSession(
        "bench", SQLiteSession("bench"), client=client, should_trigger_compaction=due
    )
    return _Session(session, asyncio.new_event_loop())


PEERS: dict[str, Callable[[Setting], Manager]] = {
    "OpenAI Agents session, an item per 300 tokens": limited,
    "OpenAI Agents compaction": compacted,
}
