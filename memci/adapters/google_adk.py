"""Google ADK: a plugin that shows the model a bounded window of the session.

    memci = MemciPlugin("agent.db", window=32_000)
    app = App(name="app", root_agent=agent, plugins=[memci])

Before each call of the model, also within a loop of tools, the contents of the request are stored and the window takes
their place; the session keeps all its events. Contents are stored unchanged, with their thought signatures. A session
of ADK belongs to a user: the conversation is `USER/SESSION`. An agent below the root is shown a list of its own: its
conversation is `USER/SESSION/AGENT`.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import quote

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import InvocationContext
from google.adk.events.event import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from .conversations import TOOLS, Conversations
from .items import Item


class MemciPlugin(BasePlugin):
    """Keeps the window of each session within its budget, and gives the model the tools to look behind it."""

    def __init__(self, store: Any, **settings: Any) -> None:
        """Keep the conversations in *store*, with the *settings* of `Conversations`: `window`, `owner` and others."""
        super().__init__(name="memci")
        self.conversations = Conversations[types.Content](store, dump=dump, load=load, format="gemini", **settings)
        self.tools = [_Tool(self, each["function"]) for each in TOOLS]
        self._below: set[str] = set()
        self._given: dict[str, list[types.Content]] = {}
        """the list of each run, since calls without an id are identified by their position in it"""

    def conversation(self, session_id: str, *, user_id: str, agent: str | None = None) -> str:
        """Return the name of the conversation of a session; *agent* is one below the root, which has its own."""
        return "/".join(quote(each, safe="@:+ ") for each in (user_id, session_id, agent) if each is not None)

    async def before_agent_callback(self, *, agent: BaseAgent, callback_context: CallbackContext) -> None:
        """Note that *agent* is below another one."""
        del callback_context
        if agent.parent_agent is not None:
            self._below.add(agent.name)

    async def after_agent_callback(self, *, agent: BaseAgent, callback_context: CallbackContext) -> None:
        """Forget the list of the run."""
        del agent
        self._given.pop(self.name_of(callback_context), None)

    async def before_model_callback(self, *, callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        """Put the window in place of the contents."""
        llm_request.append_tools([each for each in self.tools if each.name not in llm_request.tools_dict])
        config, name, given = llm_request.config, self.name_of(callback_context), llm_request.contents
        self._given[name] = given
        view = await asyncio.to_thread(
            self.conversations.view,
            name,
            given,
            system=config.system_instruction,
            tools=[schema for tool in config.tools or () for schema in _schemas(tool)],
            whole=True,
        )
        llm_request.contents = view.messages
        config.system_instruction = view.system or None

    async def after_model_callback(self, *, callback_context: CallbackContext, llm_response: LlmResponse) -> None:
        """Store the reply with its usage. Parts of a streamed reply are skipped: the whole one follows."""
        if not llm_response.partial and llm_response.content is not None:
            name = self.name_of(callback_context)
            self._given[name] = said = [*self._given.get(name, ()), llm_response.content]
            await asyncio.to_thread(self.conversations.add, name, said, llm_response.usage_metadata)

    async def on_model_error_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest, error: Exception
    ) -> None:
        """Learn from a request that was too long: the next one is shorter."""
        del llm_request
        await asyncio.to_thread(self.conversations.overflowed, self.name_of(callback_context), error)

    async def on_event_callback(self, *, invocation_context: InvocationContext, event: Event) -> None:
        """Store results of tools that end the run: the model was not shown them."""
        if event.actions.skip_summarization and event.content is not None and event.get_function_responses():
            name = self.name_of(CallbackContext(invocation_context))
            said = [*self._given.get(name, ()), event.content]
            await asyncio.to_thread(self.conversations.add, name, said)

    async def close(self) -> None:
        """Close all contexts. The runner calls this when it is closed."""
        await asyncio.to_thread(self.conversations.close)

    def name_of(self, context: CallbackContext) -> str:
        """Return the name of the conversation that *context* belongs to."""
        agent = context.agent_name if context.agent_name in self._below else None
        return self.conversation(context.session.id, user_id=context.user_id, agent=agent)


class _Tool(BaseTool):
    """One of memci's tools."""

    def __init__(self, plugin: MemciPlugin, schema: Item) -> None:
        super().__init__(name=schema["name"], description=schema["description"])
        self._plugin, self._schema = plugin, schema

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self._schema["parameters"]
        )

    async def run_async(self, *, args: Item, tool_context: ToolContext) -> str:
        name = self._plugin.name_of(tool_context)
        return await asyncio.to_thread(self._plugin.conversations.answer, name, self.name, args)


def dump(content: types.Content) -> Iterator[Item]:
    """Write *content* as it is sent, without the ids that ADK makes; skip one that it does not send again."""
    item = content.model_dump(mode="json", by_alias=True, exclude_none=True)
    parts = item.get("parts", ())
    for each in (part.get(key, {}) for part in parts for key in ("functionCall", "functionResponse")):
        if str(each.get("id")).startswith("adk-"):
            del each["id"]
    if any(part.keys() - {"thought", "text"} or (part.get("text") and not part.get("thought")) for part in parts):
        yield item


def load(items: Sequence[Item]) -> Iterable[types.Content]:
    """Read contents."""
    return map(types.Content.model_validate, items)


def _schemas(tool: Any) -> Iterator[Item]:
    """Yield the schemas of *tool*, those of functions in the form of Chat Completions."""
    if not isinstance(tool, types.Tool):
        return
    for each in tool.function_declarations or ():
        body = each.model_dump(mode="json", exclude_none=True)
        schema = body.get("parameters_json_schema") or body.get("parameters") or {}
        made = {"name": body.get("name"), "description": body.get("description", ""), "parameters": schema}
        yield {"type": "function", "function": made}
    if others := tool.model_dump(mode="json", exclude_none=True, exclude={"function_declarations"}):
        yield others
