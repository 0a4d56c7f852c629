"""Agent: the loop over a provider's plain client, with a bounded window, tools and recall.

    from openai import OpenAI

    with Context.open("agent.db", "alice", system="Be brief.", model="gpt-5") as context:
        agent = Agent(OpenAI(), context, tools=[weather])
        agent.run("What is the weather in Oslo?")
        for piece in agent.stream("And tomorrow?"):
            print(piece, end="")

With an asynchronous client, `arun` and `astream` do the same. The steps are those of `memci.context.loop`.
"""

import inspect
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from pydantic import PydanticUserError, TypeAdapter, ValidationError, validate_call

from .. import formats
from ..context.async_context import AsyncContext, in_thread
from ..context.context import Context
from ..context.loop import (
    STOPPED_CALL,
    Toolbox,
    ToolCalls,
    answer,
    answer_async,
    answer_own_calls,
    find_unanswered,
)
from ..errors import AnswerRejected, InvalidSetting, ModelUnavailable, OpConflict, WriteConflict, brief
from ..formats.envelope import as_result
from ..formats.streams import error_text
from ..formats.usage import if_readable, usage_in
from ..llm.structured import TRIES, check_model, json_object
from ..messages import Message, call_name, text_of
from .clients import Client, wrapped
from .items import Item, tool_schema

if TYPE_CHECKING:
    from pydantic import BaseModel

T = TypeVar("T", bound="BaseModel")

STEPS = 50  # calls of the model for one question: enough for long work, and an end for a model that has none


class Agent:
    """Answers the user with a model, the program's tools and memci's; every message is stored, every request fits.

    A question is stored together with the first reply, each later step as it comes. So a run that failed or was killed
    is repeated by the same call: it continues where it stopped, and stores nothing twice.
    """

    def __init__(
        self,
        client: Any,
        context: Context | AsyncContext,
        tools: Sequence[Callable[..., Any]] = (),
        *,
        steps: int = STEPS,
        **given: Any,
    ) -> None:
        """Take the parts of the agent.

        Args:
            client: A client of OpenAI, Anthropic or Google, or a wrapped one (`memci.adapters.clients`).
            context: The conversation. Its system prompt is the agent's, its model the default one, and its format
                "openai_responses" selects Responses for a client of OpenAI.
            tools: Functions with typed arguments, asynchronous ones too; the docstring says what they do. An error
                that one raises becomes its result.
            steps: How often the model may be asked for one question.
            given: Arguments of each call of the client: `model`, `temperature`, …

        Raises:
            InvalidSetting: If *client* can't be called so, no model is named, or two tools have the same name.
        """
        if type(steps) is not int or steps < 1:
            raise InvalidSetting("steps", f"expected an int from 1, got {brief(steps)}")
        self.context = context.context if isinstance(context, AsyncContext) else context
        if not isinstance(self.context, Context):
            raise InvalidSetting("context", f"expected a Context, got {brief(context)}: Agent(client, context)")
        if own := given.keys() & {"messages", "input", "contents", "stream"}:
            raise InvalidSetting(min(own), "the agent sets it in each call of the client")
        self._client = wrapped(client, self.context, **given)
        self._steps = steps
        if isinstance(tools, str) or not isinstance(tools, Iterable):
            raise InvalidSetting("tools", f"expected a list of functions, got {brief(tools)}")
        made = {_name(each): _prepared(each) for each in tools}
        taken = {call_name(each) for each in self.context.tools}
        if len(made) < len(tools) or made.keys() & taken:
            raise InvalidSetting("tools", f"each needs a name of its own, also beside {', '.join(sorted(taken))}")
        self._toolbox = Toolbox(self.context, {name: function for name, (function, _) in made.items()})
        self._schemas = [schema for _, schema in made.values()]

    @overload
    def run(self, text: str | Item, *, op_id: str | None = None) -> str: ...
    @overload
    def run(self, text: str | Item, *, op_id: str | None = None, output: type[T]) -> T: ...
    def run(self, text: str | Item, *, op_id: str | None = None, output: type[T] | None = None) -> str | T:
        """Return what the model answers to the user's *text*, after all its calls of tools.

        Args:
            text: The question: a str, or a message with images or files.
            op_id: Name of the question. When it is asked again under this name, the stored answer is returned, or the
                run continues. Without a name that holds only as long as the question has no answer.
            output: A pydantic model: the answer is asked for in this form, checked, and returned as such an object.

        Raises:
            CeilingReached: If the model was asked `steps` times; repeat the call to go on.
            AnswerRejected: If the model's answers do not have the form of *output*.
            OpConflict: If *op_id* is the name of another question.
            WriteConflict: If another writer changed the context while the model answered: repeat the call.
        """
        question = self._question(text, op_id, output)
        for _ in answer(question, self._ask, self._toolbox, most=question.most):
            pass
        return question.result

    def stream(self, text: str | Item, *, op_id: str | None = None) -> Iterator[str]:
        """Yield the text of all answers of the model as it comes; *op_id* is that of `run`.

        If it is closed before its end, nothing of the answer that was coming is stored.
        """
        question = self._question(text, op_id)
        if not question.most:
            yield question.answer
        yield from answer(question, self._ask_streamed, self._toolbox, most=question.most)

    @overload
    async def arun(self, text: str | Item, *, op_id: str | None = None) -> str: ...
    @overload
    async def arun(self, text: str | Item, *, op_id: str | None = None, output: type[T]) -> T: ...
    async def arun(self, text: str | Item, *, op_id: str | None = None, output: type[T] | None = None) -> str | T:
        """Do what `run` does, with an asynchronous client. A cancelled run can be repeated as a failed one."""
        question = await in_thread(partial(self._question, text, op_id, output))
        async for _ in answer_async(question, self._ask_async, self._toolbox, most=question.most):
            pass
        return question.result

    async def astream(self, text: str | Item, *, op_id: str | None = None) -> AsyncIterator[str]:
        """Do what `stream` does, with an asynchronous client."""
        question = await in_thread(partial(self._question, text, op_id))
        if not question.most:
            yield question.answer
        async for piece in answer_async(question, self._ask_async_streamed, self._toolbox, most=question.most):
            yield piece

    def _question(self, text: str | Item, op_id: str | None, output: type[T] | None = None) -> "Question":
        return Question(self.context, self._client, self._schemas, text, op_id, output, self._steps)

    def _ask(self, request: Item) -> Generator[Any, None, None]:
        yield _whole(_plain(self._client.create(**request)))

    async def _ask_async(self, request: Item) -> AsyncGenerator[Any, None]:
        yield _whole(await _awaitable(self._client.create(**request)))

    def _ask_streamed(self, request: Item) -> Generator[Any, None, None]:
        reply = self._client.incoming()
        for event in _plain(self._client.streamed(**request)):
            yield reply.add(event)
        yield _finished(reply)

    async def _ask_async_streamed(self, request: Item) -> AsyncGenerator[Any, None]:
        reply = self._client.incoming()
        async for event in await _awaitable(self._client.streamed(**request)):
            yield reply.add(event)
        yield _finished(reply)


class Question:
    """The `Exchange` of one question, stored step by step."""

    def __init__(
        self,
        context: Context,
        client: Client,
        schemas: Sequence[Item],
        text: str | Item,
        op_id: str | None,
        output: "type[BaseModel] | None",
        steps: int,
    ) -> None:
        if not text:
            raise InvalidSetting("text", "expected the user's question, got an empty one")
        if output is not None:
            check_model(output)
        self._context, self._client, self._format, self._schemas = context, client, client.format, schemas
        self._output = output
        self._value: BaseModel | None = None
        self._rejected: list[str] = []
        """why the last answers were not accepted"""
        self.most = steps
        """how often the model may be asked; 0 if the answer is stored already"""
        self.answer = ""
        """the text of the last reply"""
        (question,) = formats.read([{"role": "user", "content": text} if isinstance(text, str) else text], self._format)
        if question.get("role", "user") != "user":
            raise InvalidSetting("text", f"expected the user's question, got a message of {question['role']!r}")
        known = context.known(op_id) if op_id is not None else 0
        last = next(iter(context.turns(1)), [])
        turn = context.recall_page(known) if known else last
        waiting = find_unanswered(turn)
        ended = bool(turn) and turn[-1]["role"] == "assistant" and not waiting
        if known and turn[0] != question:
            raise OpConflict(str(op_id))
        if known and not ended and turn[-1] != last[-1]:
            raise InvalidSetting("op_id", f"{op_id!r:.60} has no answer, and the conversation has gone on since")
        self._pending: list[Any] = []
        """messages that are stored together with the next reply"""
        if known and ended:
            self.most, self.answer = 0, text_of(turn[-1])
            self._accept(self.answer)
            return
        results = [found or as_result(call["id"], STOPPED_CALL) for call, found in answer_own_calls(context, waiting)]
        self._pending += formats.write_answers(self._format, waiting, results)
        again = bool(turn) and not ended and turn[0] == question
        self._op_id = None if again else op_id
        if not again:
            self._pending.append(question)

    @property
    def result(self) -> Any:
        """The answer: its text, or the object that was asked for."""
        return self.answer if self._output is None else self._value

    def request(self, *, last: bool) -> Item:  # noqa: ARG002 -- the last calls are answered, too
        """Return the arguments of the next call of the client."""
        note = f"Your last answer was not accepted: {self._rejected[-1]}. Answer again." if self._rejected else None
        pending = [*self._pending, {"role": "user", "content": note}] if note else self._pending
        try:
            request = self._context.request(*pending, tools=self._schemas, format=self._format)
        except WriteConflict:  # another writer was first: the model reads that, too
            self._context.refresh()
            request = self._context.request(*pending, tools=self._schemas, format=self._format)
        if self._output is None:
            return request
        shaped = self._client.shaped(self._output)
        return request | {key: {**request.get(key, {}), **value} for key, value in shaped.items()}

    def shorten(self, error: Exception) -> bool:
        """Return whether *error* says that the request was too long; then the next one is shorter."""
        return self._context.overflowed(error)

    def keep(self, reply: Any, *, last: bool) -> ToolCalls | None:  # noqa: ARG002
        """Store *reply* with the user's message, and return its calls; None if it is the answer."""
        _, calls = formats.calls(reply, self._format)
        text = text_of(formats.read([reply], self._format)[-1])
        if not calls and not self._accept(text):
            return []
        try:
            self._context.append_turn(*self._pending, reply, usage=if_readable(usage_in(reply)), op_id=self._op_id)
        except WriteConflict:  # the reply knows nothing of what came meanwhile; a repeated run does
            self._context.refresh()
            raise
        self._pending, self._op_id, self._rejected = [], None, []
        self.answer = text
        return answer_own_calls(self._context, calls) if calls else None

    def add(self, call: Message, result: Message) -> None:
        """Store the *result* of *call*."""
        self._context.append_turn(*formats.write_answers(self._format, [call], [result]))

    def _accept(self, text: str) -> bool:
        """Return whether *text* is an answer of the form that was asked for; AnswerRejected at the last try."""
        if self._output is None:
            return True
        try:
            self._value = self._output.model_validate_json(json.dumps(json_object(text)))
        except (ValidationError, ValueError) as error:
            self._rejected.append(" ".join(str(error).split())[:500])
            if len(self._rejected) == TRIES or not self.most:
                raise AnswerRejected("agent", f"no {self._output.__name__}: {self._rejected[-1]}") from error
            return False
        return True


def _name(tool: object) -> str:
    """Return the name under which a model calls *tool*."""
    name = getattr(tool, "__name__", "")
    if not callable(tool) or not name.isidentifier():
        raise InvalidSetting("tools", f"expected functions that have a name (def …), got {brief(tool)}")
    return cast("str", name)


@lru_cache(maxsize=256)  # a server makes an agent for each request, of the same few functions
def _prepared(tool: Callable[..., Any]) -> tuple[Callable[..., Any], Item]:
    """Return *tool* with its arguments checked, and its schema."""
    try:
        schema = TypeAdapter(tool).json_schema()  # type: ignore[arg-type]
    except (NameError, PydanticUserError) as error:
        raise InvalidSetting("tools", f"{_name(tool)}: {str(error).splitlines()[0]}") from error
    return validate_call(tool), tool_schema(_name(tool), inspect.getdoc(tool), schema)


def _plain(reply: Any) -> Any:
    """Return what a blocking client returned."""
    if inspect.isawaitable(reply):
        if inspect.iscoroutine(reply):
            reply.close()
        raise InvalidSetting("client", "it is asynchronous: await agent.arun(…), or async for … in agent.astream(…)")
    return reply


def _awaitable(reply: Any) -> Any:
    """Return what an asynchronous client returned, to be awaited."""
    if not inspect.isawaitable(reply):
        raise InvalidSetting("client", "it is blocking: call agent.run(…) or agent.stream(…), or pass the async client")
    return reply


def _whole(reply: Any) -> Any:
    """Return *reply*; ModelUnavailable if it is none, as some servers send beside status 200."""
    error = reply.get("error") if isinstance(reply, Mapping) else getattr(reply, "error", None)
    if error:
        raise ModelUnavailable("agent", error_text(error))
    return reply


def _finished(reply: Any) -> Any:
    """Return the whole of a streamed *reply*."""
    error = getattr(reply, "error", None)  # a framework's own answer may have none
    if error is not None or not reply.ended:
        raise ModelUnavailable("agent", error or "the stream was cut", partial=getattr(reply, "text", ""))
    return reply.whole
