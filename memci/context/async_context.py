"""AsyncContext: the same context for programs that await.

    async with AsyncContext.open("agent.db", "alice", window=32_000) as context:
        messages = await context.render("Book me a flight to Oslo.")
        reply = await client.chat.completions.create(model="…", messages=messages, tools=context.tools)
        await context.append_turn("Book me a flight to Oslo.", reply.choices[0].message)

Calls run in worker threads, one at a time, in the order in which they were made. If a call is cancelled while it waits
for the one before, nothing has happened. If it has begun, it runs to its end before the cancellation is raised: what
it stores is stored whole, and no lock is left.
"""

from __future__ import annotations

import asyncio
import builtins
import contextvars
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial, wraps
from itertools import islice
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from ..storage.locks import given_up
from .context import Context
from .memory_client import load_numpy

_P = ParamSpec("_P")
_T = TypeVar("_T")


def _awaited(
    method: Callable[Concatenate[Context, _P], _T],
) -> Callable[Concatenate[AsyncContext, _P], Coroutine[Any, Any, _T]]:
    """Return *method* of a context as an asynchronous method."""

    @wraps(method)
    async def call(self: AsyncContext, /, *args: _P.args, **kw: _P.kwargs) -> _T:
        bound: Callable[_P, _T] = getattr(self.context, method.__name__)
        return await self._call(partial(bound, *args, **kw))

    return call


def _iterated(
    method: Callable[Concatenate[Context, _P], Iterator[_T]],
) -> Callable[Concatenate[AsyncContext, _P], AsyncIterator[_T]]:
    """Return the generator *method* of a context as an asynchronous one. A thread reads its values in batches."""

    @wraps(method)
    async def each(self: AsyncContext, /, *args: _P.args, **kw: _P.kwargs) -> AsyncIterator[_T]:
        iterator = await self._call(partial(method, self.context, *args, **kw))
        while batch := await self._call(lambda: builtins.list(islice(iterator, 256))):
            for value in batch:
                yield value

    return each


def _threaded(function: Callable[_P, _T]) -> Callable[_P, Coroutine[Any, Any, _T]]:
    """Return *function* as an asynchronous one."""

    @wraps(function)
    async def call(*args: _P.args, **kw: _P.kwargs) -> _T:
        return await in_thread(partial(function, *args, **kw))

    return call


def _opening(opened: Callable[_P, Context]) -> Callable[_P, Opening]:
    """Return *opened*, which opens a context, as a function that returns an `Opening`."""

    @wraps(opened)
    def call(*args: _P.args, **kw: _P.kwargs) -> Opening:
        return Opening(partial(getattr(Context, opened.__name__), *args, **kw))

    return call


class _shared(Generic[_T]):  # noqa: N801 -- it is used like a decorator
    """An attribute of the context that needs no await, with the same name and type."""

    def __init__(self, read: Callable[[Context], _T]) -> None:
        self._read = read

    def __set_name__(self, owner: type[AsyncContext], name: str) -> None:
        self._name = name

    def __get__(self, context: AsyncContext | None, owner: type[AsyncContext]) -> _T:
        return getattr(Context, self._name) if context is None else self._read(context.context)


class AsyncContext:
    """A `Context` whose calls are awaited, with the same names, arguments and results.

    Open it with `AsyncContext.open` or `AsyncContext.view`. `context` is the `Context` inside. `pages`, `messages` and
    `export` are for `async for`. A cancelled call has stored everything or nothing.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self._lock = asyncio.Lock()

    open = staticmethod(_opening(Context.open))
    view = staticmethod(_opening(Context.view))
    list = staticmethod(_threaded(Context.list))

    render = _awaited(Context.render)
    request = _awaited(Context.request)
    append_turn = _awaited(Context.append_turn)
    overflowed = _awaited(Context.overflowed)
    sync = _awaited(Context.sync)
    known = _awaited(Context.known)
    answer = _awaited(Context.answer)
    answers = _awaited(Context.answers)
    recall_page = _awaited(Context.recall_page)
    search_memory = _awaited(Context.search_memory)
    pin = _awaited(Context.pin)
    unpin = _awaited(Context.unpin)
    instructions = _awaited(Context.instructions)
    drop_instruction = _awaited(Context.drop_instruction)
    archive = _awaited(Context.archive)
    undo = _awaited(Context.undo)
    pop = _awaited(Context.pop)
    take_back = _awaited(Context.take_back)
    turns = _awaited(Context.turns)
    pages = _iterated(Context.pages)
    messages = _iterated(Context.messages)
    export = _iterated(Context.export)
    report = _awaited(Context.report)
    calls = _awaited(Context.calls)
    refresh = _awaited(Context.refresh)
    erase = _awaited(Context.erase)
    verify = _awaited(Context.verify)
    flush = _awaited(Context.flush)
    end_session = _awaited(Context.end_session)
    close = _awaited(Context.close)

    async def fork(self, id: str, *, at: int | None = None, owner: str | None = None) -> AsyncContext:  # noqa: A002
        """Create the context *id*, which shares the past of this one (see `Context.fork`)."""
        async with self._lock:
            return AsyncContext(await in_thread(partial(self.context.fork, id, at=at, owner=owner), Context.close))

    id = _shared(lambda context: context.id)
    owner = _shared(lambda context: context.owner)
    system = _shared(lambda context: context.system)
    model = _shared(lambda context: context.model)
    window = _shared(lambda context: context.window)
    reply = _shared(lambda context: context.reply)
    budget = _shared(lambda context: context.budget)
    clip_limit = _shared(lambda context: context.clip_limit)
    nonce = _shared(lambda context: context.nonce)
    count = _shared(lambda context: context.count)
    memory = _shared(lambda context: context.memory)
    read_only = _shared(lambda context: context.read_only)
    tools = _shared(lambda context: context.tools)
    tools_for = _shared(lambda context: context.tools_for)
    format = _shared(lambda context: context.format)
    handles = _shared(lambda context: context.handles)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<Async{repr(self.context)[1:]}"

    async def _call(self, work: Callable[[], _T]) -> _T:
        async with self._lock:
            return await in_thread(work)


class Opening(Awaitable[AsyncContext]):
    """A context that is not open yet: use it in `async with`, or await it and close it later."""

    def __init__(self, opened: partial[Context]) -> None:
        self._opened = opened
        self._context: AsyncContext | None = None

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the context is not open yet: await AsyncContext.open(…), and then use .{name}")

    def __await__(self) -> Generator[Any, None, AsyncContext]:
        return self._open().__await__()

    async def __aenter__(self) -> AsyncContext:
        self._context = await self
        return self._context

    async def __aexit__(self, *raised: object) -> None:
        if self._context is not None:
            await self._context.close()

    async def _open(self) -> AsyncContext:
        only_read = self._opened.func == Context.view
        load_numpy(self._opened.keywords.get("memory"), read_only=only_read)  # in the event loop's thread
        if not self._opened.keywords.get("wait", 0):
            return AsyncContext(await in_thread(self._opened, Context.close))
        left, waiting = threading.Event(), contextvars.copy_context()
        waiting.run(given_up.set, left)
        # A separate thread: waiting must not occupy the threads that run the calls of the lock's holder.
        with ThreadPoolExecutor(1, "memci-waiting") as thread:
            opened = in_thread(partial(waiting.run, self._opened), Context.close, thread=thread, leave=left.set)
            return AsyncContext(await opened)


async def in_thread(
    work: Callable[[], _T],
    unwanted: Callable[[_T], None] | None = None,
    *,
    thread: Executor | None = None,
    leave: Callable[[], None] = lambda: None,
) -> _T:
    """Run *work* in a thread and return its result. A cancellation is raised only when the work has ended.

    On a cancellation, *leave* is called, which may hurry the work. Then its result is passed to *unwanted*, and its
    error is dropped, since the caller has gone.
    """
    # A future, not a task: a loop that cancels all its tasks must not interrupt it.
    running = asyncio.get_running_loop().run_in_executor(thread, contextvars.copy_context().run, work)
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait({running})
        except asyncio.CancelledError as error:
            cancelled = error
            leave()
    if cancelled is None:
        return running.result()
    if running.exception() is None and unwanted is not None:
        unwanted(running.result())
    raise cancelled
