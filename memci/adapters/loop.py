"""The loop of an agent over a provider's plain client, with a bounded window.

    context = Context.open("agent.db", "alice", system="Be brief.", window=32_000)
    agent = Agent(openai_chat(OpenAI(), model="gpt-4o-mini"), context, tools=[weather])
    agent.run("What is the weather in Oslo?")
    for piece in agent.stream("And tomorrow?"):
        print(piece, end="")

With an asynchronous client, `arun` and `astream` do the same. The steps are those of `memci.context.loop`.
"""

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Sequence
from functools import partial
from typing import Any

from pydantic import TypeAdapter, validate_call

from .. import formats
from ..context.async_context import in_thread
from ..context.context import Context
from ..context.loop import (
    STOPPED_CALL,
    Toolbox,
    ToolCalls,
    answer,
    answer_async,
    answer_own_calls,
    find_unanswered,
    tool_message,
)
from ..errors import InvalidSetting, ModelUnavailable
from ..messages import Message, text_of
from .clients import Client
from .items import Item, tool_schema

MOST = 50  # calls of the model for one message of the user: enough for long work, and an end for a model that has none


class Agent:
    """Answers the user with a model, the program's tools and memci's; every message is stored, every request fits."""

    def __init__(self, client: Client, context: Context, tools: Sequence[Callable[..., Any]] = ()) -> None:
        """Take the parts of the agent.

        Args:
            client: A wrapped one: see `memci.adapters.clients`.
            context: The conversation. Its system prompt is the agent's.
            tools: Functions with typed arguments, asynchronous ones too; the docstring says what they do. An error
                that one raises becomes its result.
        """
        self.context = context
        self._client = client
        self._toolbox = Toolbox(context, {each.__name__: validate_call(each) for each in tools})
        schemas = [TypeAdapter(each).json_schema() for each in tools]  # type: ignore[arg-type]
        described = zip(tools, schemas, strict=True)
        self._schemas = [tool_schema(each.__name__, inspect.getdoc(each), schema) for each, schema in described]

    def run(self, text: str, *, op_id: str | None = None) -> str:
        """Return what the model answers to the user's *text*, after all its calls of tools.

        *op_id* makes the call repeatable: the message is stored once, and a repetition continues from the stored steps,
        or returns the stored answer.
        """
        question = self._question(text, op_id)
        for _ in answer(question, self._ask, self._toolbox, most=question.most):
            pass
        return question.answer

    def stream(self, text: str, *, op_id: str | None = None) -> Iterator[str]:
        """Yield the text of all answers of the model as it comes; *op_id* is that of `run`."""
        question = self._question(text, op_id)
        if question.answer:
            yield question.answer
        yield from answer(question, self._ask_streamed, self._toolbox, most=question.most)

    async def arun(self, text: str, *, op_id: str | None = None) -> str:
        """Do what `run` does, with an asynchronous client."""
        question = await in_thread(partial(self._question, text, op_id))
        async for _ in answer_async(question, self._ask_async, self._toolbox, most=question.most):
            pass
        return question.answer

    async def astream(self, text: str, *, op_id: str | None = None) -> AsyncIterator[str]:
        """Do what `stream` does, with an asynchronous client."""
        question = await in_thread(partial(self._question, text, op_id))
        if question.answer:
            yield question.answer
        async for piece in answer_async(question, self._ask_async_streamed, self._toolbox, most=question.most):
            yield piece

    def _question(self, text: str, op_id: str | None) -> "Question":
        return Question(self.context, self._client.format, self._schemas, text, op_id)

    def _ask(self, request: Item) -> Generator[Any, None, None]:
        yield self._client.create(**request)

    async def _ask_async(self, request: Item) -> AsyncGenerator[Any, None]:
        yield await self._client.create(**request)

    def _ask_streamed(self, request: Item) -> Generator[Any, None, None]:
        reply = self._client.incoming()
        for event in self._client.streamed(**request):
            yield reply.add(event)
        yield _whole(reply)

    async def _ask_async_streamed(self, request: Item) -> AsyncGenerator[Any, None]:
        reply = self._client.incoming()
        async for event in await self._client.streamed(**request):
            yield reply.add(event)
        yield _whole(reply)


class Question:
    """The `Exchange` of one message of the user, stored step by step."""

    def __init__(self, context: Context, form: str, schemas: Sequence[Item], text: str, op_id: str | None) -> None:
        self._context, self._format, self._schemas = context, form, schemas
        self.most = MOST
        """how often the model may be asked"""
        self.answer = ""
        """the text of the last reply"""
        last = next(iter(context.turns(1)), [])
        waiting = find_unanswered(last)
        results = [tool_message(call, STOPPED_CALL) for call in waiting]
        self._pending: list[Any] = formats.write_answers(form, waiting, results)
        """messages that are stored together with the next reply"""
        repeated = op_id is not None and context.known(op_id)
        self._op_id = None if repeated else op_id
        if not repeated:
            self._pending.append({"role": "user", "content": text})
        elif not last or text_of(last[0]) != text:
            raise InvalidSetting("op_id", f"the message {op_id!r:.60} is not the last one of the conversation any more")
        elif last[-1]["role"] == "assistant" and not waiting:
            self.most, self.answer = 0, text_of(last[-1])

    def request(self, *, last: bool) -> Item:  # noqa: ARG002 -- the last calls are answered, too
        """Return the arguments of the next call of the client."""
        return self._context.request(*self._pending, tools=self._schemas, format=self._format)

    def shorten(self, error: Exception) -> bool:
        """Return whether *error* says that the request was too long; then the next one is shorter."""
        return self._context.overflowed(error)

    def keep(self, reply: Any, *, last: bool) -> ToolCalls | None:  # noqa: ARG002
        """Store *reply* with the user's message, and return its calls; None if it is the answer."""
        self._context.append_turn(*self._pending, reply, usage=_usage(reply), op_id=self._op_id)
        self._pending, self._op_id = [], None
        self.answer = text_of(formats.read([reply], self._format)[-1])
        _, calls = formats.calls(reply, self._format)
        return answer_own_calls(self._context, calls) if calls else None

    def add(self, call: Message, result: Message) -> None:
        """Store the *result* of *call*."""
        self._context.append_turn(*formats.write_answers(self._format, [call], [result]))


def _whole(reply: Any) -> Any:
    """Return the whole of a streamed *reply*."""
    error = getattr(reply, "error", None)  # a framework's own answer may have none
    if error is not None or not reply.ended:
        raise ModelUnavailable("chat", error or "the stream was cut")
    return reply.whole


def _usage(reply: Any) -> Any:
    """Return the usage in *reply*, None if it has none."""
    names = ("usage", "usage_metadata", "usageMetadata")
    found = (reply.get(name) if isinstance(reply, dict) else getattr(reply, name, None) for name in names)
    return next((each for each in found if each is not None), None)
