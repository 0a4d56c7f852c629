"""A chat model over any server that speaks OpenAI's Chat Completions.

    chat = Chat("gpt-4.1-mini")                                     # OPENAI_API_KEY; MEMCI_MODEL names a default
    chat = Chat("qwen3:8b", base_url="http://localhost:11434/v1")   # a local server, without a key

    reply = chat([{"role": "user", "content": "Hi"}])
    stream = chat.stream([{"role": "user", "content": "Hi"}])
    for piece in stream:
        print(piece, end="")
    context.append(stream.reply.message)

This module knows nothing of prompts: `memci.llm.ask` asks for an answer of a type.
"""

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

from ..errors import InvalidSetting, ModelUnavailable, brief
from ..messages import Message
from .endpoint import Endpoint
from .model import OnCall, Reply
from .replies import reply_of, whole
from .requests import CompletionRequest
from .retry import RetryingCall, estimated
from .streaming import IncomingMessage
from .usage import Ledger

if TYPE_CHECKING:
    from openai import OpenAI
    from pydantic import BaseModel


class Chat(Endpoint):
    """A `memci.llm.ChatModel` over HTTP. Thread-safe; close it, or use it with `with`, to close its connections."""

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
        client: "OpenAI | None" = None,
        extra: Mapping[str, Any] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Name a model and its server. Nothing is sent.

        Args:
            model: None: the environment variable MEMCI_MODEL.
            base_url: None: OPENAI_BASE_URL, or OpenAI.
            api_key: None: OPENAI_API_KEY. A server that is named by its address may need none.
            timeout: Seconds until the server begins its answer, and again until the answer is whole; of a stream,
                seconds between two pieces.
            tries: How often a request is sent at most. Between two tries the openai client waits 0.5 to 8 seconds, or
                as long as the server asks (`Retry-After`, two minutes at most).
            max_tokens: Of an answer, at most.
            temperature: None: the server's default.
            ledger: Adds up the costs; None: a new one. Several chats may share one.
            on_call: Called with a `Call` when the client has an answer or gives up.
            client: An `openai.OpenAI` of your own, or one of its subclasses. It is not closed here.
            extra: More parameters of the provider, sent with each request.
            clock: The time, in seconds.

        Raises:
            InvalidSetting: If no model is named, or neither a key nor a server, or the package `openai` is missing.
        """
        if max_tokens is not None and (type(max_tokens) is not int or max_tokens < 1):
            raise InvalidSetting("max_tokens", f"expected 1 or more, or None; got {brief(max_tokens)}")
        super().__init__(
            model,
            base_url=base_url,
            api_key=api_key,
            timeout=timeout,
            tries=tries,
            ledger=ledger,
            on_call=on_call,
            client=client,
            extra=extra,
            clock=clock,
        )
        self._max_tokens = max_tokens
        self._temperature = temperature

    def __call__(
        self,
        messages: Sequence[Message],
        /,
        *,
        step: str = "chat",
        tools: Sequence[Message] = (),
        answer: "type[BaseModel] | None" = None,
        attempt: int = 0,
    ) -> Reply:
        """Return the answer to *messages*; see `memci.llm.ChatModel`.

        Raises:
            ModelUnavailable: If none came in any try.
            ModelRefused: If the server refuses the request.
            CeilingReached: If the ledger allows no more.
        """
        request = self._request(messages, tools=tools, answer=answer)
        call = RetryingCall(self, request, step=step, attempt=attempt)
        reply = call.run(lambda response, _: reply_of(whole(response.iter_bytes(), self.timeout, self.clock)))
        call.answered(reply.usage, finish=reply.finish, estimate=estimated(messages, reply))
        return reply

    def stream(self, messages: Sequence[Message], *, step: str = "chat", tools: Sequence[Message] = ()) -> "Stream":
        """Return the answer to *messages* piece by piece. The request is sent when the first piece is asked for."""
        return Stream(RetryingCall(self, self._request(messages, tools=tools, stream=True), step=step), messages)

    def _request(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Message],
        answer: "type[BaseModel] | None" = None,
        stream: bool = False,
    ) -> CompletionRequest:
        return CompletionRequest(
            messages,
            model=self.model,
            tools=tools,
            answer=answer,
            stream=stream,
            max_tokens=self._max_tokens,
            temperature=self._temperature,
            extra=self.extra,
        )


class Stream:
    """An answer as it is made: iterate over its pieces of text, once; then `reply` has the whole message."""

    def __init__(self, call: RetryingCall, messages: Sequence[Message]) -> None:
        self._call, self._messages = call, messages
        self._reply: Reply | None = None
        self._pieces = self._taken()

    @property
    def reply(self) -> Reply:
        """The whole answer, when all pieces were taken.

        Raises:
            ModelUnavailable: Before.
        """
        if self._reply is None:
            raise ModelUnavailable(self._call.step, "the stream was not read to its end")
        return self._reply

    def __iter__(self) -> Iterator[str]:
        return self._pieces

    def __next__(self) -> str:
        return next(self._pieces)

    def close(self) -> None:
        """Give the answer up: nothing more of it is read."""
        self._pieces.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def _taken(self) -> Generator[str, None, None]:
        incoming, pieces, opened = self._call.run(self._begun)
        with opened, self._call.streaming(incoming, self._messages):
            yield from pieces
        self._reply = incoming.reply

    def _begun(self, response: Any, opened: ExitStack) -> tuple[IncomingMessage, Iterator[str], ExitStack]:
        """Read until the first piece is there. From then on nothing is sent again, since the caller has the piece."""
        endpoint = self._call.endpoint
        chunks, seconds, clock = response.iter_bytes(), endpoint.timeout, endpoint.clock
        streamed = "json" not in response.headers.get("content-type", "")
        reply = None if streamed else reply_of(whole(chunks, seconds, clock))
        incoming = IncomingMessage(chunks, seconds=seconds, clock=clock, whole=reply)
        pieces = incoming.pieces()
        first = next(pieces, "")
        return incoming, _chained(first, pieces), opened.pop_all()


def _chained(first: str, pieces: Iterator[str]) -> Iterator[str]:
    if first:
        yield first
    yield from pieces
