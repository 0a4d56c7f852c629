"""AsyncContext: the same context for programs that await.

    async with AsyncContext.open("agent.db", "alice", window=32_000) as context:
        messages = await context.render("Book me a flight to Oslo.")
        reply = await client.chat.completions.create(model="…", messages=messages, tools=context.tools)
        await context.append_turn("Book me a flight to Oslo.", reply.choices[0].message)

Each call runs in a worker thread, one at a time, in the order in which they were made. If a call is cancelled
while it waits for the one before, nothing happened. If it had begun, it runs to its end before the cancellation is
raised, so what it stores is stored whole and no lock is left. This module knows nothing of windows.
"""

from __future__ import annotations

import asyncio
import builtins
import contextvars
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from ..errors import StorageBusy
from ..history.erase import ErasureReceipt
from ..history.events import Event
from ..history.listing import ContextInfo
from ..history.reader import PageInfo
from ..memory.backend import MemoryBackend, Recollection
from ..messages import Message, MessageLike
from ..storage.locks import busy, check_seconds
from .context import Clock, Context, Store, system_clock
from .report import Receipt, Report

if TYPE_CHECKING:
    from ..llm.model import ChatModel
    from ..settings import Policy

_P = ParamSpec("_P")
_T = TypeVar("_T")

_SLICE_SECONDS = 0.25
"""how long a thread waits for the context's lock before it checks whether the caller was cancelled"""
_BATCH = 256


class AsyncContext:
    """A `Context` whose calls are awaited. Made by `AsyncContext.open`; `context` is the one that it wraps."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._lock = asyncio.Lock()

    @classmethod
    def open(
        cls,
        store: Store,
        id: str,  # noqa: A002
        *,
        system: str | None = None,
        model: str | None = None,
        window: int | None = None,
        reply: int | None = None,
        policy: Policy | None = None,
        memory: MemoryBackend | None = None,
        chat: ChatModel | None = None,
        owner: str | None = None,
        counter: Callable[[str], int] | None = None,
        format: str | None = None,  # noqa: A002
        clock: Clock | None = system_clock,
        wait: float = 0,
        on_event: Callable[[Event], None] | None = None,
        nonce: str | None = None,
    ) -> Opening:
        """Open the context *id* in *store* (see `Context.open`): `async with` it, or await it and close it later."""
        opened = partial(
            Context.open,
            store,
            id,
            system=system,
            model=model,
            window=window,
            reply=reply,
            policy=policy,
            memory=memory,
            chat=chat,
            owner=owner,
            counter=counter,
            format=format,
            clock=clock,
            on_event=on_event,
            nonce=nonce,
        )

        async def opening() -> AsyncContext:
            check_seconds(wait)
            until = time.monotonic() + wait
            while True:
                part = min(wait, _SLICE_SECONDS, max(0.001, until - time.monotonic())) if wait else wait
                try:
                    return cls(await _whole(partial(opened, wait=part), _close))
                except StorageBusy:
                    if not wait:
                        raise
                    if time.monotonic() >= until:
                        raise busy(id, wait) from None

        return Opening(opening)

    @classmethod
    def view(
        cls,
        store: Store,
        id: str,  # noqa: A002
        *,
        at: int | None = None,
        system: str | None = None,
        model: str | None = None,
        window: int | None = None,
        reply: int | None = None,
        policy: Policy | None = None,
        memory: MemoryBackend | None = None,
        counter: Callable[[str], int] | None = None,
    ) -> Opening:
        """Open the context *id* in *store* for reading only (see `Context.view`)."""
        viewed = partial(
            Context.view,
            store,
            id,
            at=at,
            system=system,
            model=model,
            window=window,
            reply=reply,
            policy=policy,
            memory=memory,
            counter=counter,
        )

        async def opening() -> AsyncContext:
            return cls(await _whole(viewed, _close))

        return Opening(opening)

    @staticmethod
    async def list(
        store: Store, *, owner: str | None = None, after: str | None = None, limit: int = 100
    ) -> builtins.list[ContextInfo]:
        """Return what contexts *store* holds (see `Context.list`)."""
        return await _whole(partial(Context.list, store, owner=owner, after=after, limit=limit))

    async def render(self, *pending: MessageLike, tools: Iterable[Any] = (), strict: bool = True) -> builtins.list[Any]:
        """Return the messages of the next request (see `Context.render`)."""
        return await self._call(partial(self.context.render, *pending, tools=tools, strict=strict))

    async def append_turn(
        self,
        *messages: MessageLike | Sequence[MessageLike],
        op_id: str | None = None,
        usage: object = None,
        at: datetime | str | None = None,
        opens_page: bool = True,
    ) -> Receipt:
        """Store *messages*, all or none (see `Context.append_turn`); cancelled, they are stored whole or not at all."""
        return await self._call(
            partial(self.context.append_turn, *messages, op_id=op_id, usage=usage, at=at, opens_page=opens_page)
        )

    async def turns(self, last: int) -> builtins.list[builtins.list[Message]]:
        """Return the messages of the *last* pages in the window (see `Context.turns`)."""
        return await self._call(self.context.turns, last)

    async def answer(self, call: object) -> Message:
        """Return the tool message that answers one *call* (see `Context.answer`)."""
        return await self._call(self.context.answer, call)

    async def answers(self, reply: object) -> builtins.list[Message]:
        """Return a tool message for each call in *reply* that is for the context (see `Context.answers`)."""
        return await self._call(self.context.answers, reply)

    async def recall_page(self, index: int, entry: int | None = None) -> builtins.list[Message]:
        """Return the messages of page *index*, whole and exact (see `Context.recall_page`)."""
        return await self._call(self.context.recall_page, index, entry)

    async def search_memory(
        self,
        query: str,
        *,
        k: int = 5,
        budget: int | None = None,
        since: datetime | str | float | None = None,
        until: datetime | str | float | None = None,
    ) -> Recollection:
        """Return what is known of *query* (see `Context.search_memory`)."""
        return await self._call(self.context.search_memory, query, k=k, budget=budget, since=since, until=until)

    async def pin(self, index: int) -> None:
        """Keep page *index* verbatim in the window (see `Context.pin`)."""
        await self._call(self.context.pin, index)

    async def unpin(self, index: int) -> None:
        """Let page *index* be archived again (see `Context.unpin`)."""
        await self._call(self.context.unpin, index)

    async def archive(self, *, keep: int | None = None) -> tuple[int, ...]:
        """Start a compaction now (see `Context.archive`)."""
        return await self._call(self.context.archive, keep=keep)

    async def undo(self) -> builtins.list[Message]:
        """Take back the newest interaction (see `Context.undo`)."""
        return await self._call(self.context.undo)

    async def refresh(self) -> None:
        """Read the context again, as its store has it now (see `Context.refresh`)."""
        await self._call(self.context.refresh)

    async def fork(self, id: str, *, at: int | None = None, owner: str | None = None) -> AsyncContext:  # noqa: A002
        """Make the context *id*, which shares the past of this one (see `Context.fork`)."""
        async with self._lock:
            return AsyncContext(await _whole(partial(self.context.fork, id, at=at, owner=owner), _close))

    async def erase(self, page: int, entry: int | None = None) -> ErasureReceipt:
        """Erase page *page*, or its one *entry*, for good (see `Context.erase`)."""
        return await self._call(self.context.erase, page, entry)

    async def pages(self) -> AsyncIterator[PageInfo]:
        """Yield every page that was ever opened (see `Context.pages`)."""
        async for page in self._each(await self._call(self.context.pages)):
            yield page

    async def messages(self) -> AsyncIterator[Message]:
        """Yield every message, exact and in order (see `Context.messages`)."""
        async for message in self._each(await self._call(self.context.messages)):
            yield message

    async def export(self) -> AsyncIterator[str]:
        """Yield the whole context as lines of JSON (see `Context.export`)."""
        async for line in self._each(await self._call(self.context.export)):
            yield line

    async def report(self) -> Report:
        """Return where the tokens and the pages are (see `Context.report`)."""
        return await self._call(self.context.report)

    async def verify(self) -> builtins.list[str]:
        """Read everything that is stored, and return what is wrong with it (see `Context.verify`)."""
        return await self._call(self.context.verify)

    async def flush(self) -> None:
        """Wait until all that was appended is stored (see `Context.flush`)."""
        await self._call(self.context.flush)

    async def close(self) -> None:
        """Close the context, once the calls before are done."""
        await self._call(self.context.close)

    @property
    def id(self) -> str:
        """The context's name in its store."""
        return self.context.id

    @property
    def owner(self) -> str:
        """Whose memory it is."""
        return self.context.owner

    @property
    def system(self) -> str | None:
        """The system prompt (see `Context.system`)."""
        return self.context.system

    @property
    def window(self) -> int:
        """The model's context length, in tokens."""
        return self.context.window

    @property
    def budget(self) -> int:
        """What a request may cost now, in tokens (see `Context.budget`)."""
        return self.context.budget

    @property
    def clip_limit(self) -> int:
        """Tokens up to which a message stands in the window whole (see `Context.clip_limit`)."""
        return self.context.clip_limit

    @property
    def nonce(self) -> str:
        """The random word in the frames of this context (see `Context.nonce`)."""
        return self.context.nonce

    def count(self, text: str) -> int:
        """Return the tokens of *text* (see `Context.count`)."""
        return self.context.count(text)

    @property
    def memory(self) -> MemoryBackend:
        """The memory behind the window (see `Context.memory`)."""
        return self.context.memory

    @property
    def read_only(self) -> bool:
        """Whether it was opened for reading only (see `Context.read_only`)."""
        return self.context.read_only

    @property
    def tools(self) -> builtins.list[Any]:
        """The schemas of the tools that the model may call (see `Context.tools`)."""
        return self.context.tools

    def handles(self, call: object) -> bool:
        """Return whether *call* is for a tool of the context."""
        return self.context.handles(call)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<Async{repr(self.context)[1:]}"

    async def _call(self, work: Callable[_P, _T], *args: _P.args, **kw: _P.kwargs) -> _T:
        async with self._lock:
            return await _whole(partial(work, *args, **kw))

    async def _each(self, values: Iterable[_T]) -> AsyncIterator[_T]:
        """Yield *values*, which a thread reads in batches."""
        iterator: Iterator[_T] = iter(values)
        while batch := await self._call(lambda: builtins.list(islice(iterator, _BATCH))):
            for value in batch:
                yield value


class Opening(Awaitable[AsyncContext]):
    """A context that is about to be opened: `async with` it, or await it."""

    def __init__(self, opening: Callable[[], Coroutine[Any, Any, AsyncContext]]) -> None:
        self._opening = opening
        self._context: AsyncContext | None = None

    def __await__(self) -> Generator[Any, None, AsyncContext]:
        return self._opening().__await__()

    async def __aenter__(self) -> AsyncContext:
        self._context = await self
        return self._context

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._context is not None:
            await self._context.close()


async def _whole(work: Callable[[], _T], unwanted: Callable[[_T], None] | None = None) -> _T:
    """Return what *work* returns in a worker thread; a cancellation is raised when it has come to its end.

    What it made is then given to *unwanted*, and what it raised is dropped: the caller has gone.
    """
    # A future, no task: a loop that cancels all its tasks must not cut it short.
    running = asyncio.get_running_loop().run_in_executor(None, contextvars.copy_context().run, work)
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait({running})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is None:
        return running.result()
    if running.exception() is None and unwanted is not None:
        unwanted(running.result())
    raise cancelled


def _close(context: Context) -> None:
    context.close()
