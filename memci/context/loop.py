"""The tool loop: ask a model, answer its calls of tools, and ask again until it answers without any.

    for step in rounds(exchange, most=8):
        Ask(last=False)      send the model's reply to `exchange.request(last=False)`
        Run(call)            send the text that a function of the program returned for this call
        …                    until the answer is there

`rounds` decides what comes next. It calls no model and no function, and waits only for the store. `answer` and
`answer_async` carry the steps out for blocking and asynchronous programs; the gateway carries them out itself. An
`Exchange` makes the requests and stores the replies. The context answers calls of memci's own tools.
"""

import asyncio
import contextlib
import contextvars
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, closing
from functools import partial
from inspect import isawaitable, iscoroutine
from typing import Any, NamedTuple, Protocol, TypeAlias

from pydantic_core import to_jsonable_python

from ..errors import CeilingReached, StorageError
from ..formats.envelope import as_result
from ..messages import Message, arguments_of, call_body, call_name, tool_calls
from ..text.sanitize import quote
from .async_context import in_thread
from .context import Context

LONGEST_RESULT = 1_000_000
"""characters of a tool's result, to keep a runaway tool out of the store; a longer one is cut and says so"""
LONGEST_ERROR = 2_000  # characters of an error that a tool raised: enough for its message, without a page of traceback
STOPPED_CALL = "error: the answer was stopped before this call had a result; whether it took effect is not known"


class Ask(NamedTuple):
    """The step to ask the model."""

    last: bool  # whether no round follows, so that the model should answer without a call


class Run(NamedTuple):
    """The step to call a function of the program."""

    call: Message


Function = Callable[..., object]
ToolCalls: TypeAlias = Sequence[tuple[Message, Message | None]]
"""calls of tools in the form of Chat Completions, each with its answer if the context gave it"""
Steps: TypeAlias = Generator[Ask | Run, Any, None]


class Exchange(Protocol):
    """One question to the model: its requests, and the messages that are kept on the way to the answer."""

    def request(self, *, last: bool) -> Any:
        """Return the next request to the model."""

    def shorten(self, error: Exception) -> bool:
        """Return whether *error* says that the request was too long; then the next one is shorter."""

    def keep(self, reply: Any, *, last: bool) -> ToolCalls | None:
        """Keep *reply* and return its calls; None if it is the answer."""

    def add(self, call: Message, result: Message) -> None:
        """Keep the *result* of *call*, a tool message."""


def rounds(exchange: Exchange, most: int) -> Steps:
    """Yield the steps to one answer; send each outcome to get the next. *most* bounds the requests to the model.

    An outcome may be the error of a request: one that was too long is made once more, shorter; others are raised.
    CeilingReached if the last reply is no answer either.
    """
    for number in range(1, most + 1):
        last = number == most
        reply = yield Ask(last)
        if isinstance(reply, Exception) and exchange.shorten(reply):
            reply = yield Ask(last)
        if isinstance(reply, Exception):
            raise reply
        calls = exchange.keep(reply, last=last)
        if calls is None:
            return
        for call, answered in calls:
            exchange.add(call, answered or as_result(call["id"], (yield Run(call))))
    if most:  # 0: the answer is known already
        raise CeilingReached("agent", f"{most} calls of the model brought no answer: repeat the run, or allow more")


def next_step(steps: Steps, outcome: Any) -> Ask | Run | None:
    """Send *outcome* and return the next of *steps*; None at their end, since a thread can't raise StopIteration."""
    try:
        return steps.send(outcome)
    except StopIteration:
        return None


def answer(
    exchange: Exchange, ask: Callable[[Any], Generator[Any, None, None]], toolbox: "Toolbox", *, most: int
) -> Generator[str, None, None]:
    """Carry out the steps of *exchange*, and yield the text of the model as it comes.

    *ask* sends a request to the model, and yields pieces of text, then the whole reply; *most* bounds how often.
    """
    steps = rounds(exchange, most)
    step, outcome = next_step(steps, None), None
    while step is not None:
        if isinstance(step, Ask):
            begun = False
            try:
                with closing(ask(exchange.request(last=step.last))) as pieces:
                    for outcome in pieces:
                        if isinstance(outcome, str) and outcome:
                            begun = True
                            yield outcome
            except Exception as error:
                if begun:
                    raise
                outcome = error
        else:
            outcome = toolbox.run(step.call)
        step = next_step(steps, outcome)


async def answer_async(
    exchange: Exchange, ask: Callable[[Any], AsyncGenerator[Any, None]], toolbox: "Toolbox", *, most: int
) -> AsyncGenerator[str, None]:
    """Carry out the steps of *exchange* as `answer` does, with a model that is awaited.

    The store is read and written in a thread; so is a function that is not asynchronous.
    """
    steps = rounds(exchange, most)
    step, outcome = next_step(steps, None), None
    while step is not None:
        if isinstance(step, Ask):
            begun = False
            request = await in_thread(partial(exchange.request, last=step.last))
            try:
                async with aclosing(ask(request)) as pieces:
                    async for outcome in pieces:
                        if isinstance(outcome, str) and outcome:
                            begun = True
                            yield outcome
            except Exception as error:
                if begun:
                    raise
                outcome = error
        else:
            late = partial(_add_late, exchange, step.call)
            outcome = await toolbox.run_async(step.call, late)
        step = await in_thread(partial(next_step, steps, outcome))


class Toolbox:
    """The functions of a program that a model may call, by their names.

    They get the arguments as keywords, a custom tool its text. A result that is no text is written as JSON, or else as
    `str` writes it. What goes wrong is the result of the call, so that the model can correct it.
    """

    def __init__(self, context: Context, functions: Mapping[str, Function]) -> None:
        self._context = context
        self.functions = dict(functions)

    def run(self, call: Message) -> str:
        """Return the result of *call* as text; the result of an asynchronous function is awaited."""
        prepared = self._prepare(call)
        try:
            result = prepared()
            return _result_text(_await_in_thread(result) if isawaitable(result) else result)
        except Exception as error:  # noqa: BLE001 -- an error that a tool raises is its result
            return _error_text(error)

    async def run_async(self, call: Message, late: Callable[[str], object] = str) -> str:
        """Return the result of *call* as text. An asynchronous function runs in this event loop, others in a thread.

        A thread can't be stopped: if this is cancelled meanwhile, *late* gets the result.
        """
        prepared = self._prepare(call)

        def run() -> object:
            try:
                return prepared()
            except Exception as error:  # noqa: BLE001 -- as in `run`
                return _error_text(error)

        def ended(result: object) -> None:
            if iscoroutine(result):
                result.close()  # it did not begin
            elif not isawaitable(result):
                late(_result_text(result))

        result = await in_thread(run, ended)
        try:
            return _result_text(await result if isawaitable(result) else result)
        except Exception as error:  # noqa: BLE001 -- as in `run`
            return _error_text(error)

    def _prepare(self, call: Message) -> Callable[[], object]:
        """Return *call* ready to be made; a wrong one gives the text that says what is wrong with it."""
        name, body = call_name(call), call_body(call)
        function = self.functions.get(name)
        if function is None:
            known = ", ".join([*self.functions, *map(call_name, self._context.tools)]) or "none"
            return partial(str, f"error: there is no tool {quote(name[:60])}; there are: {known}")
        if "custom" in call:
            return partial(function, str(body.get("input", "")))
        try:
            return partial(function, **arguments_of(body.get("arguments") or "{}"))
        except ValueError as error:
            return partial(str, f"error: {error}: call {name} again with a JSON object")


def answer_own_calls(context: Context, calls: Sequence[Message]) -> ToolCalls:
    """Return *calls*, each with the answer of *context* if it calls one of memci's tools."""
    message = {"role": "assistant", "content": None, "tool_calls": [*calls]}
    answers = iter(context.answers({"object": "chat.completion", "choices": [{"message": message}]}))
    return [(call, next(answers) if context.handles(call) else None) for call in calls]


def _add_late(exchange: Exchange, call: Message, text: str) -> None:
    """Keep the result of a *call* whose run was cancelled while it was made; without the store it counts as stopped."""
    with contextlib.suppress(StorageError):
        exchange.add(call, as_result(call["id"], text))


def find_unanswered(messages: Sequence[Message]) -> list[Message]:
    """Return the calls at the end of *messages* that have no result."""
    waiting: dict[str, Message] = {}
    for message in messages:
        if message["role"] == "tool":
            waiting.pop(message["tool_call_id"], None)
        else:
            waiting = {call["id"]: call for call in tool_calls(message)}
    return [*waiting.values()]


def _await_in_thread(result: Awaitable[object]) -> object:
    """Return what *result* comes to. It has a thread of its own, since an event loop may run in this one."""

    async def finish() -> object:
        return await result

    with ThreadPoolExecutor(1, "memci-tool") as thread:
        return thread.submit(contextvars.copy_context().run, asyncio.run, finish()).result()


def _result_text(result: object) -> str:
    if not isinstance(result, str):
        try:
            result = json.dumps(to_jsonable_python(result, fallback=str), ensure_ascii=False)
        except ValueError:  # no JSON, as bytes that are no text: the function did its work, so this is no error
            result = str(result)
    text = result.encode("utf-8", "backslashreplace").decode()
    if len(text) > LONGEST_RESULT:
        return f"{text[:LONGEST_RESULT]}\n[cut: the result has {len(text):,} characters]"
    return text


def _error_text(error: Exception) -> str:
    return _result_text(f"error: {type(error).__name__}: {error}"[:LONGEST_ERROR])
