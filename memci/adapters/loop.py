"""The loop of an agent over a provider's plain client, with a bounded window.

    context = Context.open("agent.db", "alice", system="Be brief.", window=32_000)
    agent = Agent(openai_chat(OpenAI(), model="gpt-4o-mini"), context, tools=[weather])
    agent.run("What is the weather in Oslo?")
    for piece in agent.stream("And tomorrow?"):
        print(piece, end="")

With an asynchronous client, `arun` and `astream` do the same. This module knows nothing of any provider.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import ArgsKwargs, to_json

from .. import formats
from ..context.context import Context
from ..formats.envelope import arguments_as_object, call_of
from ..messages import call_name, text_of
from .clients import Client
from .items import Item, tool_schema

MOST = 50
"""calls of the model for one message of the user"""


class Agent:
    """Answers the user with a model, the program's tools and memci's; every message is stored, every request fits."""

    def __init__(self, client: Client, context: Context, tools: Sequence[Callable[..., Any]] = ()) -> None:
        """Begin.

        Args:
            client: A wrapped one: see `memci.adapters.clients`.
            context: The conversation. Its system prompt is the agent's.
            tools: Functions with typed arguments; the docstring says what they do. What they raise is answered, too.
        """
        self.context = context
        self._client = client
        self._tools: dict[str, TypeAdapter[Any]] = {each.__name__: TypeAdapter(each) for each in tools}  # type: ignore[arg-type]
        self._schemas = [
            tool_schema(each.__name__, inspect.getdoc(each), self._tools[each.__name__].json_schema()) for each in tools
        ]

    def run(self, text: str) -> str:
        """Return what the model answers to the user's *text*, after all its calls of tools."""
        steps, answer = self._steps(text), ""
        request: Item | None = next(steps)
        while request is not None:
            request, answer = _sent(steps, self._client.create(**self._client.given, **request))
        return answer

    def stream(self, text: str) -> Iterator[str]:
        """Yield the text of all answers of the model as it comes."""
        steps = self._steps(text)
        request: Item | None = next(steps)
        while request is not None:
            events = []
            for event in self._client.streamed(**self._client.given, **request):
                events.append(event)
                if piece := self._client.piece(event):
                    yield piece
            request, _ = _sent(steps, self._client.whole(events))

    async def arun(self, text: str) -> str:
        """Do what `run` does, with an asynchronous client."""
        steps, answer = self._steps(text), ""
        request: Item | None = await asyncio.to_thread(next, steps)
        while request is not None:
            reply = await self._client.create(**self._client.given, **request)
            request, answer = await asyncio.to_thread(_sent, steps, reply)
        return answer

    async def astream(self, text: str) -> AsyncIterator[str]:
        """Do what `stream` does, with an asynchronous client."""
        steps = self._steps(text)
        request: Item | None = await asyncio.to_thread(next, steps)
        while request is not None:
            events = []
            async for event in await self._client.streamed(**self._client.given, **request):
                events.append(event)
                if piece := self._client.piece(event):
                    yield piece
            request, _ = await asyncio.to_thread(_sent, steps, self._client.whole(events))

    def _steps(self, text: str) -> Generator[Item, Any, str]:
        """Yield each request, and get the reply to it; return the last text."""
        context, form = self.context, self._client.format
        pending: list[Any] = [{"role": "user", "content": text}]
        for _ in range(MOST):
            reply = yield context.request(*pending, tools=self._schemas, format=form)
            context.append_turn(*pending, reply, usage=_usage(reply))
            pending = []
            _, calls = formats.calls(reply, form)
            if not calls:
                break
            theirs = [call for call in calls if call_name(call) in self._tools]
            results = [{"role": "tool", "tool_call_id": each["id"], "content": self._result(each)} for each in theirs]
            context.append_turn(*context.answers(reply), *formats.write_answers(form, theirs, results))
        return text_of(formats.read([reply], form)[-1])

    def _result(self, call: Item) -> str:
        """Return what the tool of *call* returns, as text; what it raises, as what went wrong."""
        name, arguments = call_of(call)
        try:
            value = self._tools[name].validate_python(ArgsKwargs((), arguments_as_object(arguments)))
        except Exception as error:  # noqa: BLE001 -- a model's mistake, or the tool's: the model reads it
            return f"{type(error).__name__}: {error}"
        return value if isinstance(value, str) else to_json(value).decode()


def _usage(reply: Any) -> Any:
    """Return what *reply* says that it cost, None if it does not say."""
    names = ("usage", "usage_metadata", "usageMetadata")
    found = (reply.get(name) if isinstance(reply, dict) else getattr(reply, name, None) for name in names)
    return next((each for each in found if each is not None), None)


def _sent(steps: Generator[Item, Any, str], reply: Any) -> tuple[Item | None, str]:
    """Return the request that follows *reply*, or None and the answer. A thread can't raise StopIteration."""
    try:
        return steps.send(reply), ""
    except StopIteration as end:
        return None, str(end.value)
