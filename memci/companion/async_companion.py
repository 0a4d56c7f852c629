"""AsyncCompanion: a companion for programs that await.

    companion = AsyncCompanion(Companion(context, Chat("…")))
    answer = await companion.respond("Where did I want to sit?")
    async with companion.stream("And when do I land?") as stream:
        async for piece in stream:
            …

A thread fetches each piece. If a task is cancelled, its answer stops at the next piece, and the text so far is stored
before the cancellation is raised.
"""

import asyncio
from typing import Self, Unpack

from ..context.async_context import in_thread
from .answers import AnswerStream, CompanionAnswer, MessageFacts
from .companion import Companion


class AsyncCompanion:
    """A `Companion` whose answers are awaited; `companion` is the wrapped one. One turn at a time."""

    def __init__(self, companion: Companion) -> None:
        self.companion = companion

    async def respond(self, text: str, **facts: Unpack[MessageFacts]) -> CompanionAnswer:
        """Store the turn, and return the answer to *text* (see `Companion.respond`)."""
        async with self.stream(text, **facts) as stream:
            async for _ in stream:
                pass
        assert stream.answer is not None, "a turn that ends has an answer"
        return stream.answer

    def stream(self, text: str, **facts: Unpack[MessageFacts]) -> "AsyncAnswerStream":
        """Return a stream of the answer to *text* (see `Companion.stream`)."""
        return AsyncAnswerStream(self.companion.stream(text, **facts))


class AsyncAnswerStream:
    """The pieces of an answer as they come. `aclose` stops it and stores the text so far."""

    def __init__(self, stream: AnswerStream) -> None:
        self._stream = stream

    @property
    def answer(self) -> CompanionAnswer | None:
        """The answer; None until the last piece was taken or the stream was closed."""
        return self._stream.answer

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        try:
            piece = await in_thread(lambda: next(self._stream, None))
        except asyncio.CancelledError:
            await self.aclose()
            raise
        if piece is None:
            raise StopAsyncIteration
        return piece

    async def aclose(self) -> None:
        """Stop the answer and store the text so far. A second call does nothing."""
        await in_thread(self._stream.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.aclose()
