"""OpenAI Agents SDK: a session that shows the model a bounded window of the conversation.

    memci = Memci("agent.db", window=32_000)
    session = memci.session("alice")
    agent = Agent(name="agent", instructions="Be brief.", tools=[*tools, *session.tools])
    await Runner.run(agent, "Hi", session=session, run_config=session.run_config, hooks=session.hooks)

The runner reads no history from the session: before each call of the model, also within a loop of tools, the filter of
the run stores what is new and puts the window in its place. Items are stored unchanged.

A run gives an item in up to three ways: as a reply, in its list, and to be saved. Each run counts them by itself, and
stores an item as often as it came in one of these ways. So several runs may share a session: all is stored in the order
in which it came, and a run is not shown what others say while it runs. A run that goes on after an approval is known by
the calls in its list that are stored.
"""

import asyncio
import json
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from inspect import isawaitable
from typing import Any, cast
from weakref import WeakSet

from agents import Agent, FunctionTool, ModelResponse, ModelSettings, RunConfig, RunContextWrapper, RunHooks
from agents import ModelRetrySettings as RetrySettings
from agents.memory import SessionABC, SessionSettings
from agents.retry import RetryDecision, RetryPolicyContext
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
_RETRIES = 100
"""the SDK asks `MemciSession.retry` at most so often; that obeys the agent's own limit"""
_RUN: ContextVar["_Run | None"] = ContextVar("memci_run", default=None)
"""the run that this task is part of"""
_RUNS: WeakSet["_Run"] = WeakSet()
"""runs whose task, or whose session, is there"""


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
        self._latest = _Run(self)

    @property
    def run_config(self) -> RunConfig:
        """A configuration with the filter and the retry; in one of your own, set both as here."""
        again = RetrySettings(max_retries=_RETRIES, policy=self.retry)
        return RunConfig(call_model_input_filter=self.filter, model_settings=ModelSettings(retry=again))

    @property
    def _run(self) -> "_Run":
        """The run of this task, or else the latest one."""
        run = _RUN.get()
        return run if run is not None and run.session is self else self._latest

    async def filter(self, data: CallModelData[Any]) -> ModelInputData:
        """Return the window, which replaces the runner's list; an agent that a tool calls keeps its own list."""
        given, run = data.model_data, self._run
        before, keys = run.agent, [*map(_key, given.input)]
        run.unfiltered = False
        follows = run.begun and keys[: len(run.keys)] == run.keys
        stored = 0 if follows else await asyncio.to_thread(self._count_stored, given.input)
        if before is not None and before.name != data.agent.name:
            if data.agent.name in map(_name, before.handoffs):
                rewritten = await asyncio.to_thread(self._hand_over, given.input) or keys[:1] != run.keys[:1]
                stored = len(keys) if rewritten else stored
            elif not stored:
                return given
        run.stored |= Counter(keys[:stored])
        run.agent, run.keys, run.refused = data.agent, keys, False
        tools = [
            tool_schema(each.name, each.description, each.params_json_schema)
            for each in data.agent.tools
            if isinstance(each, FunctionTool)
        ]
        if not {each.name for each in self.tools} & {each.name for each in data.agent.tools}:
            lacking = f"the agent {data.agent.name!r:.60} can't read what left its window"
            warnings.warn(f"{lacking}: Agent(…, tools=[*tools, *session.tools])", stacklevel=2)
        run.asked = {"system": given.instructions, "tools": tools}
        with run.new(given.input, Counter()) as new:
            run.shown = await self._window(run, new)
        return run.shown

    async def retry(self, context: RetryPolicyContext) -> bool | RetryDecision:
        """Repeat a request that was too long with a shorter window, once; for other errors ask the agent's own policy.

        The SDK reads the request again at each attempt.
        """
        run = self._run
        if run.shown is not None and not run.refused:
            run.refused = await asyncio.to_thread(self.conversations.overflowed, self.session_id, context.error)
            if run.refused:
                run.shown.input = (await self._window(run, [])).input
                return RetryDecision(retry=True, delay=0)
        own = run.agent.model_settings.retry if run.agent is not None else None
        if own is None or own.policy is None or context.attempt > (own.max_retries or 0):
            return False
        decided = own.policy(context)
        return cast("bool | RetryDecision", await decided if isawaitable(decided) else decided)

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the newest *limit* items, or all, as they were stored. O(items of the conversation)."""
        if limit in {0, _NONE}:
            self._begin(_Run(self, begun=True, unfiltered=limit == _NONE))
            return []
        items = await asyncio.to_thread(self._items)
        return items if limit is None else items[-limit:]

    async def add_items(self, items: Sequence[Any]) -> None:
        """Store what is new of *items*."""
        if any(each.get("role") not in {"user", "system", "developer"} for each in items):
            self.check()
        run = self._run
        with run.new(items, run.saved) as new:
            await self._add(new)

    async def pop_item(self) -> Any:
        """Remove the newest item and return it; None if there is none."""
        item = await asyncio.to_thread(self._pop)
        if item is not None:
            self._run.forget(item)
        return item

    async def clear_session(self) -> None:
        """Erase the conversation for good; the next item begins a new one."""
        await asyncio.to_thread(self.conversations.erase, self.session_id)
        self._begin(_Run(self))

    def check(self) -> None:
        """Raise InvalidSetting if the model is called without the window."""
        if self._run.unfiltered:
            missing = "the run has no window: Runner.run(…, session=session, run_config=session.run_config)"
            raise InvalidSetting("run_config", missing)

    async def keep(self, response: ModelResponse) -> None:
        """Store a reply of the model with its usage; calls beside other runs are stored with their results."""
        run, items = self._run, response.to_input_items()
        run.ended = not any(map(_call, items))
        if run.ended:
            run.others.clear()  # it asks no more; runs that always overlap would keep each other for good
        items = [] if run.beside() and not run.ended else items
        with run.new(items, Counter(run.stored)) as new:
            await self._add(new, response.usage)

    def _begin(self, run: "_Run") -> None:
        self._latest = run
        _RUN.set(run)

    async def _add(self, new: Sequence[Item], usage: object = None) -> None:
        await asyncio.to_thread(self.conversations.add, self.session_id, new, usage, new=True)

    async def _window(self, run: "_Run", new: Sequence[Item]) -> ModelInputData:
        asked = run.asked
        view = await asyncio.to_thread(self.conversations.view, self.session_id, new, new=True, **asked)
        return ModelInputData(input=run.without_others(view.messages), instructions=view.system or None)

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

    def _hand_over(self, given: Sequence[Any]) -> bool:
        """Return whether the filter of a handoff left the call of the handoff out; then it is taken back."""
        last = next(iter(self.conversations.context(self.session_id).turns(1)), [])[-1:]
        asked = {call["id"] for message in last for call in message.get("tool_calls") or ()}
        lost = bool(asked - {each.get("call_id") for each in given})
        if lost:
            self.conversations.context(self.session_id).pop()
        return lost

    def _count_stored(self, given: Sequence[Any]) -> int:
        """Return how many items of the list are stored: up to the last one with an id of a call. O(conversation)."""
        stored = {_call(item) for item in self._items()} - {None}
        return max((at for at, item in enumerate(given, 1) if _call(item) in stored), default=0)

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


class _Run:
    """One run of the SDK: what it has given to be stored, and its last request."""

    def __init__(self, session: MemciSession, *, begun: bool = False, unfiltered: bool = False) -> None:
        self.session = session
        self.begun = begun
        """whether its beginning was seen: its first list has nothing that is stored"""
        self.unfiltered = unfiltered
        """whether it has asked for the history, and not yet for the window"""
        self.agent: Agent[Any] | None = None
        """the agent that the run has come to"""
        self.stored: Counter[int] = Counter()
        """how often each item that it gave is stored"""
        self.saved: Counter[int] = Counter()
        """how often it gave each to be saved"""
        self.keys: list[int] = []
        """its last list"""
        self.asked: dict[str, Any] = {}
        self.shown: ModelInputData | None = None
        self.refused = False
        """whether the provider has said of the request that it was too long"""
        self.ended = False
        """whether the model has answered without a call"""
        self.others: set[_Run] = {*self.beside()}
        """runs that were there at the same time, also for a part of it"""
        for each in self.others:
            each.others.add(self)
        _RUNS.add(self)

    def beside(self) -> list["_Run"]:
        """Return the other runs of the session that have not ended."""
        of, name = self.session.conversations, self.session.session_id
        same = (each for each in _RUNS if each.session.conversations is of and each.session.session_id == name)
        return [each for each in same if each is not self and not each.ended]

    def without_others(self, items: Sequence[Any]) -> list[Any]:
        """Return *items* of the window without what other runs said at the same time."""
        left: Counter[int] = sum((each.stored for each in self.others), Counter())
        theirs, shown = frozenset(left), []
        for item in reversed(items):
            key, call = _key(item), _call(item)
            if left[key] > 0 or (call is not None and hash(("function_call", call[1])) in theirs):
                left[key] -= 1
            else:
                shown.append(item)
        return shown[::-1]

    @contextmanager
    def new(self, items: Sequence[Any], came: "Counter[int]") -> Iterator[list[Any]]:
        """Yield those of *items* that are not stored yet; *came* is how often each has come this way before."""
        keys, new = [*map(_key, items)], []
        for key, item in zip(keys, items, strict=True):
            came[key] += 1
            if came[key] > self.stored[key]:
                self.stored[key] += 1
                new.append(item)
        try:
            yield new
        except BaseException:
            self.stored.subtract(map(_key, new))
            came.subtract(keys)
            raise

    def forget(self, item: Any) -> None:
        """Take *item* back."""
        key = _key(item)
        self.stored[key], self.saved[key] = max(0, self.stored[key] - 1), max(0, self.saved[key] - 1)


def _key(item: Any) -> int:
    """Return what makes *item* the same, whichever way it comes: the call that it is or answers, or what it says."""
    said = {key: value for key, value in item.items() if key not in {"id", "status"} and value is not None}
    return hash(_call(item) or json.dumps(said, sort_keys=True, default=str))


def _call(item: Any) -> tuple[Any, Any] | None:
    """Return the type of *item* and the id of the call that it is or answers; None if it has none."""
    named = item.get("call_id") or item.get("approval_request_id")
    return (item.get("type"), named) if named else None


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
        await self._session.keep(response)
