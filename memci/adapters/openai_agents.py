"""OpenAI Agents SDK: a session that shows the model a bounded window of the conversation.

    memci = Memci("agent.db", window=32_000)
    session = memci.session("alice")
    agent = Agent(name="agent", instructions="Be brief.", tools=[*tools, *session.tools])
    await Runner.run(agent, "Hi", session=session, run_config=session.run_config, hooks=session.hooks)

The runner reads no history from the session: before each call of the model, also within a loop of tools, the filter of
the run stores what is new and puts the window in its place. Items are stored unchanged.
"""

import asyncio
import warnings
from collections.abc import Sequence
from typing import Any, cast

from agents import Agent, FunctionTool, ModelResponse, RunConfig, RunContextWrapper, RunHooks
from agents.memory import SessionABC, SessionSettings
from agents.run_config import CallModelData, ModelInputData
from agents.tool_context import ToolContext

from .. import formats
from ..errors import InvalidSetting
from ..formats.envelope import native_of
from ..messages import Message
from .conversations import TOOLS, Conversations
from .items import Item, tool_schema

_FORM = "openai_responses"
_NONE = -1
"""the limit with which the runner asks for the history: it gets that from the filter"""


class Memci:
    """The sessions of one store; safe for threads."""

    def __init__(self, store: Any, **settings: Any) -> None:
        """Keep the conversations in *store*, with the *settings* of `Conversations`: `window`, `owner` and others."""
        self.conversations = Conversations[Item](
            store, dump=lambda item: [item], load=lambda items: items, format=_FORM, **settings
        )

    def session(self, session_id: str) -> "MemciSession":
        """Return the session *session_id*; it is made when it is first used."""
        return MemciSession(session_id, self.conversations)

    def close(self) -> None:
        """Close all contexts."""
        self.conversations.close()


class MemciSession(SessionABC):
    """One conversation: give it to the run with its `run_config` and its `hooks`, and its `tools` to the agent."""

    def __init__(self, session_id: str, conversations: Conversations[Item]) -> None:
        self.session_id = session_id
        self.session_settings = SessionSettings(limit=_NONE)
        self.conversations = conversations
        self.tools = [self._tool(each["function"]) for each in TOOLS]
        self.hooks = _Usage(self)
        self._unfiltered = False
        """whether a run has asked for the history, and not yet for the window"""
        self._agent: Agent[Any] | None = None
        """the agent that the run has come to"""
        self._first: list[Any] = []
        """the first item of the runner's last list"""
        self._left_out = 0
        """the number of items at the beginning of the runner's list that the filter of a handoff made of stored ones"""

    @property
    def run_config(self) -> RunConfig:
        """A configuration with the filter; in one of your own, set `call_model_input_filter=session.filter`."""
        return RunConfig(call_model_input_filter=self.filter)

    async def filter(self, data: CallModelData[Any]) -> ModelInputData:
        """Return the window, which replaces the runner's list; an agent that a tool calls keeps its own list."""
        given, before = data.model_data, self._agent
        self._unfiltered = False
        if before is not None and data.agent.name not in {before.name, *map(_name, before.handoffs)}:
            return given
        self._agent = data.agent
        if before is not None and before.name != data.agent.name:
            await asyncio.to_thread(self._hand_over, given.input)
        self._first = given.input[:1]
        tools = [
            tool_schema(each.name, each.description, each.params_json_schema)
            for each in data.agent.tools
            if isinstance(each, FunctionTool)
        ]
        if not {each.name for each in self.tools} & {each.name for each in data.agent.tools}:
            lacking = f"the agent {data.agent.name!r:.60} can't read what left its window"
            warnings.warn(f"{lacking}: Agent(…, tools=[*tools, *session.tools])", stacklevel=2)
        view = await asyncio.to_thread(
            self.conversations.view,
            self.session_id,
            given.input[self._left_out :],
            system=given.instructions,
            tools=tools,
            whole=False,
        )
        return ModelInputData(input=view.messages, instructions=view.system or None)

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the newest *limit* items, or all, as they were stored. O(items of the conversation)."""
        if limit in {0, _NONE}:
            self._unfiltered = limit == _NONE
            self._agent, self._left_out = None, 0
            return []
        items = await asyncio.to_thread(self._items)
        return items if limit is None else items[-limit:]

    async def add_items(self, items: Sequence[Any]) -> None:
        """Store what is new of *items*."""
        if any(each.get("role") not in {"user", "system", "developer"} for each in items):
            self.check()
        await asyncio.to_thread(self.conversations.add, self.session_id, items)

    async def pop_item(self) -> Any:
        """Remove the newest item and return it; None if there is none."""
        return await asyncio.to_thread(self._pop)

    async def clear_session(self) -> None:
        """Erase the conversation for good; the next item begins a new one."""
        await asyncio.to_thread(self.conversations.erase, self.session_id)

    def check(self) -> None:
        """Raise InvalidSetting if the model is called without the window."""
        if self._unfiltered:
            missing = "the run has no window: Runner.run(…, session=session, run_config=session.run_config)"
            raise InvalidSetting("run_config", missing)

    def _items(self) -> list[Item]:
        context = self.conversations.context(self.session_id)
        context.refresh()
        return [item for message in context.messages() for item in _stored(message)]

    def _pop(self) -> Item | None:
        context = self.conversations.context(self.session_id)
        if next(context.messages(), None) is None:
            return None
        *rest, last = _stored(context.pop())
        if rest:  # the other items of the same message stay
            context.append_turn(*rest, opens_page=False)
        return last

    def _hand_over(self, given: Sequence[Any]) -> None:
        """Leave out the list that is *given* if the filter of a handoff rewrote it; take a call that it lacks back."""
        last = next(iter(self.conversations.context(self.session_id).turns(1)), [])[-1:]
        asked = {call["id"] for message in last for call in message.get("tool_calls") or ()}
        lost = asked - {each.get("call_id") for each in given}
        if lost:
            self.conversations.context(self.session_id).pop()
        if lost or given[:1] != self._first:
            self._left_out = len(given)

    def _tool(self, schema: Item) -> FunctionTool:
        async def run(context: ToolContext[Any], arguments: str) -> str:
            given = context.run_config
            session = cast("MemciSession", getattr(given and given.call_model_input_filter, "__self__", self))
            answer = session.conversations.answer  # of the session of the run: an agent may serve many
            return await asyncio.to_thread(answer, session.session_id, schema["name"], arguments)

        return FunctionTool(schema["name"], schema["description"], schema["parameters"], run, strict_json_schema=False)


def _stored(message: Message) -> list[Item]:
    """Return the items of *message* as they were stored, also those that no request repeats."""
    native = native_of(message, _FORM)
    return formats.write(_FORM, [message]) if native is None else native.items


def _name(handoff: Any) -> str:
    """Return the name of the agent that *handoff*, or the agent itself, leads to."""
    return str(getattr(handoff, "agent_name", "") or handoff.name)


class _Usage(RunHooks[Any]):
    """Stores each reply of the model with its usage."""

    def __init__(self, session: MemciSession) -> None:
        self._session = session

    async def on_llm_start(self, *_: Any) -> None:
        """Check that the model gets the window."""
        self._session.check()

    async def on_llm_end(self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse) -> None:
        """Store the reply."""
        del context, agent
        session, items = self._session, response.to_input_items()
        await asyncio.to_thread(session.conversations.add, session.session_id, items, response.usage)
