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

from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from typing import TYPE_CHECKING, Any, Unpack

from ..errors import InvalidSetting, ModelUnavailable, brief
from ..messages import Message
from .endpoint import Endpoint, EndpointOptions
from .model import Pieces, Reply
from .replies import reply_of, whole
from .requests import CompletionRequest
from .retry import RetryingCall, estimated, work
from .streaming import IncomingMessage

if TYPE_CHECKING:
    from pydantic import BaseModel


_ANSWER = 1_000  # tokens of an answer without a bound, about


class Chat(Endpoint):
    """A `memci.llm.ChatModel` over HTTP. Thread-safe; close it, or use it with `with`, to close its connections."""

    def __init__(
        self,
        model: str | None = None,
        *,
        max_tokens: int | None = None,
        temperature: float | None = None,
        **options: Unpack[EndpointOptions],
    ) -> None:
        """Name a model and its server. Nothing is sent.

        Args:
            model: None: the environment variable MEMCI_MODEL.
            max_tokens: Of an answer, at most; None: as many as the server and the step allow.
            temperature: None: the server's default.
            **options: See `EndpointOptions`.

        Raises:
            InvalidSetting: If no model is named, or neither a key nor a server, or the package `openai` is missing.
        """
        if max_tokens is not None and (type(max_tokens) is not int or max_tokens < 1):
            raise InvalidSetting("max_tokens", f"expected 1 or more, or None; got {brief(max_tokens)}")
        super().__init__(model, **options)
        self._max_tokens = max_tokens
        self._thinks = False
        """whether an answer was cut before its thoughts were over: what a step expects of an answer is no bound then"""
        if temperature is not None:
            self.parameters["temperature"] = temperature

    def __call__(
        self,
        messages: Sequence[Message],
        /,
        *,
        step: str = "chat",
        tools: Sequence[Message] = (),
        answer: "type[BaseModel] | None" = None,
        attempt: int = 0,
        max_tokens: int | None = None,
    ) -> Reply:
        """Return the answer to *messages*; see `memci.llm.ChatModel`.

        Raises:
            ModelUnavailable: If none came in any try.
            ModelRefused: If the server refuses the request.
            CeilingReached: If the ledger allows no more.
        """
        bounds = (self._max_tokens, None if self._thinks else max_tokens)
        most = min((each for each in bounds if each is not None), default=None)
        request = CompletionRequest(messages, self.parameters, tools=tools, answer=answer, max_tokens=most)
        call = RetryingCall(self, request, step=step, attempt=attempt, tokens=_tokens(messages, most))
        reply = call.run(lambda response, _: reply_of(whole(response.iter_bytes(), call.seconds, self.clock)))
        call.answered(reply.usage, finish=reply.finish, estimate=estimated(messages, reply), paced=True)
        self._thinks |= reply.finish == "length" and _thought(reply)
        return reply

    def stream(self, messages: Sequence[Message], *, step: str = "chat", tools: Sequence[Message] = ()) -> "Stream":
        """Return the answer to *messages* piece by piece. The request is sent when the first piece is asked for."""
        request = CompletionRequest(messages, self.parameters, tools=tools, stream=True, max_tokens=self._max_tokens)
        call = RetryingCall(self, request, step=step, tokens=_tokens(messages, self._max_tokens))
        return Stream(step, _streamed(call, messages))


class Stream(Pieces):
    """A streamed answer: when all its pieces were taken, `reply` has the whole message."""

    def __init__(self, step: str, pieces: Generator[str, None, Reply]) -> None:
        """Take an answer to *step* from *pieces*, which return the whole of it at their end."""
        super().__init__(self._taken(pieces))
        self._step = step
        self._reply: Reply | None = None

    @property
    def reply(self) -> Reply:
        """The whole answer, when all pieces were taken.

        Raises:
            ModelUnavailable: Before.
        """
        if self._reply is None:
            raise ModelUnavailable(self._step, "the stream was not read to its end")
        return self._reply

    def _taken(self, pieces: Generator[str, None, Reply]) -> Generator[str, None, None]:
        self._reply = yield from pieces


def _tokens(messages: Sequence[Message], most: int | None) -> float:
    return work(estimated(messages, "")[0], _ANSWER if most is None else most)


def _thought(reply: Reply) -> bool:
    """Return whether the model wrote thoughts in front of its answer, or nothing that can be read."""
    return not reply.text or "<think" in reply.text or any(key.startswith("reasoning") for key in reply.message)


def _streamed(call: RetryingCall, messages: Sequence[Message]) -> Generator[str, None, Reply]:
    """Yield the pieces of the answer to *call*, and return the whole of it."""
    endpoint = call.endpoint

    def begun(response: Any, opened: ExitStack) -> tuple[IncomingMessage, Iterator[str], ExitStack]:
        """Read until the first piece is there. From then on nothing is sent again, since the caller has the piece."""
        chunks, seconds, clock = response.iter_bytes(), call.seconds, endpoint.clock
        streamed = "json" not in response.headers.get("content-type", "")
        reply = None if streamed else reply_of(whole(chunks, seconds, clock))
        incoming = IncomingMessage(chunks, seconds=seconds, clock=clock, whole=reply)
        pieces = incoming.pieces()
        first = next(pieces, "")
        return incoming, chain([first] if first else [], pieces), opened.pop_all()

    incoming, pieces, opened = call.run(begun)
    with opened, call.streaming(incoming, messages):
        yield from pieces
    return incoming.reply
