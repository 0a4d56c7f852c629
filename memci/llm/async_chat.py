"""A chat model as `memci.llm.Chat`, awaited.

    async with AsyncChat("gpt-4.1-mini") as chat:
        reply = await chat([{"role": "user", "content": "Hi"}])
        stream = chat.stream([{"role": "user", "content": "Hi"}])
        async for piece in stream:
            print(piece, end="")

Its connections belong to the event loop of the first call: one chat for each loop. What is tried again, and when, is
decided in `line`, as for `Chat`. This module knows nothing of prompts.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import ModelUnavailable
from ..messages import Message
from .chat import same
from .model import Reply
from .options import Terms
from .replies import Body, reply_of
from .retry import Exchange, Send, Wait, estimated
from .streaming import Incoming
from .tracing import OnCall
from .usage import Ledger

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from pydantic import BaseModel

T = TypeVar("T")


class AsyncChat:
    """A chat model over HTTP, awaited. Use it with `async with` to close its connections."""

    def __init__(
        self,
        model: str | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 30.0,
        tries: int = 3,
        max_tokens: int | None = None,
        temperature: float | None = None,
        ledger: Ledger | None = None,
        on_call: OnCall | None = None,
        client: "AsyncOpenAI | None" = None,
        extra: Mapping[str, Any] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
        random: Callable[[], float] | None = None,
    ) -> None:
        """Name a model and its server; the arguments are those of `memci.llm.Chat`. Nothing is sent."""
        self._terms = Terms.checked(
            model,
            base_url=base_url,
            api_key=api_key,
            timeout=timeout,
            tries=tries,
            max_tokens=max_tokens,
            temperature=temperature,
            ledger=ledger,
            on_call=on_call,
            client=client,
            extra=extra,
            clock=clock,
            random=random,
        )
        self._line = self._terms.line
        self._sleep = sleep
        self._client = client

    @property
    def model(self) -> str:
        """The model that is asked."""
        return self._line.model

    @property
    def ledger(self) -> Ledger:
        """What it cost so far."""
        return self._line.ledger

    @property
    def paused(self) -> float:
        """For how many seconds no call is made, since the last ones failed; 0.0: calls are made."""
        return self._line.pause.seconds

    async def __call__(
        self,
        messages: Sequence[Message],
        /,
        *,
        step: str = "chat",
        tools: Sequence[Message] = (),
        answer: "type[BaseModel] | None" = None,
        attempt: int = 0,
    ) -> Reply:
        """Return the answer to *messages*.

        Raises:
            ModelUnavailable: If none came, however often it was tried.
            ModelRefused: If the server refuses the request.
            CeilingReached: If the ledger allows no more.
        """
        exchange = self._terms.exchange(messages, step=step, tools=tools, answer=answer, attempt=attempt)
        reply = await drive(exchange.sending(reply_of), send=self._send, sleep=self._sleep)
        exchange.answered(reply.usage, finish=reply.finish, estimate=estimated(messages, reply))
        return reply

    def stream(
        self, messages: Sequence[Message], *, step: str = "chat", tools: Sequence[Message] = ()
    ) -> "AsyncStream":
        """Return the answer to *messages* piece by piece. The request is sent when the first piece is asked for."""
        exchange = self._terms.exchange(messages, step=step, tools=tools, stream=True)
        return AsyncStream(partial(drive, send=self._open, sleep=self._sleep), exchange, messages)

    async def close(self) -> None:
        """Close the connections; the next call opens new ones. Closing twice is fine."""
        client, self._client = self._client, self._client if self._terms.address is None else None
        if self._terms.address is not None and client is not None:
            await client.close()

    async def __aenter__(self) -> "AsyncChat":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _connected(self) -> "AsyncOpenAI":
        if self._client is None:
            assert self._terms.address is not None, "without a client there is an address"
            self._client = self._terms.address.async_client(self._line.timeout)
        return self._client

    async def _send(self, send: Send) -> bytes:
        body = Body(send.seconds, self._line.clock)
        create = self._connected().chat.completions.with_streaming_response.create
        async with asyncio.timeout(send.seconds), create(**send.parameters, timeout=send.seconds) as response:
            async for chunk in response.iter_bytes():
                body.feed(chunk)
        return body.whole()

    async def _open(self, send: Send) -> "AsyncOpened":
        create = self._connected().chat.completions.with_streaming_response.create
        async with AsyncExitStack() as opening:
            response = await opening.enter_async_context(create(**send.parameters, timeout=send.seconds))
            streamed = "json" not in response.headers.get("content-type", "")
            incoming = Incoming(streamed=streamed, seconds=send.seconds, clock=self._line.clock)
            opened = AsyncOpened(incoming, response.iter_bytes())
            await opened.read_on()
            opened.closing = opening.pop_all()
            return opened


async def drive(
    steps: Generator[Send | Wait, Any, T],
    *,
    send: Callable[[Send], Awaitable[object]],
    sleep: Callable[[float], Awaitable[None]],
) -> T:
    """Do what *steps* ask for, until they return."""
    try:
        asked = next(steps)
        while True:
            try:
                given = await (send(asked) if isinstance(asked, Send) else sleep(asked.seconds))
            except BaseException as error:  # noqa: BLE001 -- thrown where it was asked for, which decides
                asked = steps.throw(error)
            else:
                asked = steps.send(given)
    except StopIteration as stop:
        value: T = stop.value
        return value


class AsyncOpened:
    """A stream whose first piece is there, as `memci.llm.chat.Opened`."""

    def __init__(self, incoming: Incoming, chunks: AsyncIterator[bytes]) -> None:
        self.incoming = incoming
        self.pieces: list[str] = []
        self.closing = AsyncExitStack()
        self._chunks = chunks

    async def read_on(self) -> None:
        """Read until something more of the answer is there, or its end."""
        incoming = self.incoming
        while incoming.reply is None and not self.pieces:
            incoming.go_on()
            try:
                chunk = await anext(self._chunks, None)
            except Exception:
                if not incoming.complete:
                    raise
                chunk = None
            self.pieces += incoming.taken(chunk)


class AsyncStream:
    """An answer as it is made: iterate over its pieces of text, once; then `reply` has the whole message."""

    def __init__(
        self,
        run: Callable[[Generator[Send | Wait, Any, AsyncOpened]], Awaitable[AsyncOpened]],
        exchange: Exchange,
        messages: Sequence[Message],
    ) -> None:
        self._run, self._exchange, self._messages = run, exchange, messages
        self._reply: Reply | None = None
        self._pieces = self._reading()

    @property
    def reply(self) -> Reply:
        """The whole answer, when all pieces were read.

        Raises:
            ModelUnavailable: Before.
        """
        if self._reply is None:
            raise ModelUnavailable(self._exchange.step, "the stream was not read to its end")
        return self._reply

    def __aiter__(self) -> AsyncIterator[str]:
        return self._pieces

    async def __anext__(self) -> str:
        return await anext(self._pieces)

    async def close(self) -> None:
        """Give the answer up: nothing more of it is read."""
        await self._pieces.aclose()

    async def __aenter__(self) -> "AsyncStream":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _reading(self) -> AsyncGenerator[str, None]:
        opened = await self._run(self._exchange.sending(same))
        incoming = opened.incoming
        async with opened.closing:
            with self._exchange.streaming(incoming, self._messages):
                while True:
                    for piece in opened.pieces:
                        yield piece
                    opened.pieces = []
                    if incoming.reply is not None:
                        break
                    await opened.read_on()
        self._reply = incoming.reply
