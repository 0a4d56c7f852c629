"""A chat model over any server that speaks OpenAI's Chat Completions.

    chat = Chat("gpt-4.1-mini")                                     # OPENAI_API_KEY; MEMCI_MODEL names a default
    chat = Chat("qwen3:8b", base_url="http://localhost:11434/v1")   # a local server, without a key

`memci.llm.ask` asks for a typed answer.
"""

from collections.abc import Generator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Unpack

from ..errors import InvalidSetting, ModelUnavailable, brief
from ..messages import Message
from .endpoint import Endpoint, EndpointOptions
from .model import Pieces, Reply
from .replies import IncomingAnswer, IncomingStream, reply_of
from .requests import CompletionRequest
from .retry import RetryingCall, estimate

if TYPE_CHECKING:
    from pydantic import BaseModel

_ANSWER = 1_000  # tokens of an answer without a bound, for its time-out: about a page of text


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
            max_tokens: The most tokens of an answer; None: as many as the server and the step allow.
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
        """whether thoughts once filled the bound of an answer: the bounds of steps are ignored from then on"""
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
            ModelUnavailable: If no try has an answer.
            ModelRefused: If the server refuses the request.
            CeilingReached: If the ledger allows no more.
        """
        bounds = (self._max_tokens, None if self._thinks else max_tokens)
        most = min((each for each in bounds if each is not None), default=None)
        request = CompletionRequest(messages, self.parameters, tools=tools, answer=answer, max_tokens=most)
        reply = self._call(request, messages, step, most, attempt).result(partial(IncomingAnswer, reply_of))
        self._thinks |= reply.finish == "length" and _has_thoughts(reply)
        return reply

    def stream(self, messages: Sequence[Message], *, step: str = "chat", tools: Sequence[Message] = ()) -> "Stream":
        """Return the answer to *messages* piece by piece. The request is sent when the first piece is asked for."""
        most = self._max_tokens
        request = CompletionRequest(messages, self.parameters, tools=tools, stream=True, max_tokens=most)
        return Stream(step, self._call(request, messages, step, most).run(IncomingStream))

    def _call(
        self, request: CompletionRequest, messages: Sequence[Message], step: str, most: int | None, attempt: int = 0
    ) -> RetryingCall:
        most = _ANSWER if most is None else most
        return RetryingCall(self, request, step=step, attempt=attempt, prompt=estimate(messages), most=most)


class Stream(Pieces):
    """A streamed answer: once all its pieces were taken, `reply` has the whole message."""

    def __init__(self, step: str, pieces: Generator[str, None, Reply]) -> None:
        """Give the answer to *step* in *pieces*, a generator that returns the whole reply at its end."""
        super().__init__(self._take(pieces))
        self._step = step
        self._reply: Reply | None = None

    @property
    def reply(self) -> Reply:
        """The whole answer, once all pieces were taken.

        Raises:
            ModelUnavailable: Before.
        """
        if self._reply is None:
            raise ModelUnavailable(self._step, "the stream was not read to its end")
        return self._reply

    def _take(self, pieces: Generator[str, None, Reply]) -> Generator[str, None, None]:
        self._reply = yield from pieces


def _has_thoughts(reply: Reply) -> bool:
    """Return whether the model wrote thoughts in front of its answer, or no text at all."""
    return not reply.text or "<think" in reply.text or any(key.startswith("reasoning") for key in reply.message)
