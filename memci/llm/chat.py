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
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import ModelUnavailable
from ..messages import Message
from .model import Reply
from .options import Terms
from .replies import Body, reply_of
from .retry import Exchange, Send, Wait, estimated
from .streaming import Incoming
from .tracing import OnCall
from .usage import Ledger

if TYPE_CHECKING:
    from openai import OpenAI
    from pydantic import BaseModel

T = TypeVar("T")


class Chat:
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
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        random: Callable[[], float] | None = None,
    ) -> None:
        """Name a model and its server. Nothing is sent.

        Args:
            model: None: the environment variable MEMCI_MODEL.
            base_url: None: OPENAI_BASE_URL, or OpenAI.
            api_key: None: OPENAI_API_KEY; a server that is named by its address may need none.
            timeout: Seconds that one try may take; of a stream, that may pass between two pieces.
            tries: How often a call is tried at most.
            max_tokens: Of an answer, at most.
            temperature: None: as the server likes.
            ledger: Where the costs are added up; None: in one of its own. Several chats may share one.
            on_call: Called after each try.
            client: An `openai.OpenAI` of your own, or one of its kin; it is not closed here.
            extra: Other parameters of the provider, for each request.
            sleep: How to wait, in seconds.
            clock: What time it is, in seconds.
            random: A number from 0 to 1.

        Raises:
            InvalidSetting: If no model is named, nor key or server, or the package `openai` is missing.
        """
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
            ModelUnavailable: If none came, however often it was tried.
            ModelRefused: If the server refuses the request.
            CeilingReached: If the ledger allows no more.
        """
        exchange = self._terms.exchange(messages, step=step, tools=tools, answer=answer, attempt=attempt)
        reply: Reply = drive(exchange.sending(reply_of), send=self._send, sleep=self._sleep)
        exchange.answered(reply.usage, finish=reply.finish, estimate=estimated(messages, reply))
        return reply

    def stream(self, messages: Sequence[Message], *, step: str = "chat", tools: Sequence[Message] = ()) -> "Stream":
        """Return the answer to *messages* piece by piece. The request is sent when the first piece is asked for."""
        exchange = self._terms.exchange(messages, step=step, tools=tools, stream=True)
        return Stream(partial(drive, send=self._open, sleep=self._sleep), exchange, messages)

    def close(self) -> None:
        """Close the connections; the next call opens new ones. Closing twice is fine."""
        with self._line.lock:
            if self._terms.address is not None and self._client is not None:
                self._client.close()
                self._client = None

    def __enter__(self) -> "Chat":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _connected(self) -> "OpenAI":
        with self._line.lock:
            if self._client is None:
                assert self._terms.address is not None, "without a client there is an address"
                self._client = self._terms.address.client(self._line.timeout)
            return self._client

    def _send(self, send: Send) -> bytes:
        body = Body(send.seconds, self._line.clock)
        create = self._connected().chat.completions.with_streaming_response.create
        with create(**send.parameters, timeout=send.seconds) as response:
            for chunk in response.iter_bytes():
                body.feed(chunk)
        return body.whole()

    def _open(self, send: Send) -> "Opened":
        create = self._connected().chat.completions.with_streaming_response.create
        with ExitStack() as opening:
            response = opening.enter_context(create(**send.parameters, timeout=send.seconds))
            streamed = "json" not in response.headers.get("content-type", "")
            opened = Opened(
                Incoming(streamed=streamed, seconds=send.seconds, clock=self._line.clock), response.iter_bytes()
            )
            opened.read_on()
            opened.closing = opening.pop_all()
            return opened


def drive(
    steps: Generator[Send | Wait, Any, T], *, send: Callable[[Send], object], sleep: Callable[[float], None]
) -> T:
    """Do what *steps* ask for, until they return."""
    try:
        asked = next(steps)
        while True:
            try:
                given = send(asked) if isinstance(asked, Send) else None
                if isinstance(asked, Wait):
                    sleep(asked.seconds)
            except BaseException as error:  # noqa: BLE001 -- thrown where it was asked for, which decides
                asked = steps.throw(error)
            else:
                asked = steps.send(given)
    except StopIteration as stop:
        value: T = stop.value
        return value


class Opened:
    """A stream whose first piece is there: from now on nothing is tried again, for it was said."""

    def __init__(self, incoming: Incoming, chunks: Iterator[bytes]) -> None:
        self.incoming = incoming
        self.pieces: list[str] = []
        self.closing = ExitStack()
        self._chunks = chunks

    def read_on(self) -> None:
        """Read until something more of the answer is there, or its end."""
        incoming = self.incoming
        while incoming.reply is None and not self.pieces:
            incoming.go_on()
            try:
                chunk = next(self._chunks, None)
            except Exception:  # of any client: what remains of a complete answer is what it cost
                if not incoming.complete:
                    raise
                chunk = None
            self.pieces += incoming.taken(chunk)


class Stream:
    """An answer as it is made: iterate over its pieces of text, once; then `reply` has the whole message."""

    def __init__(
        self,
        run: Callable[[Generator[Send | Wait, Any, Opened]], Opened],
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

    def __iter__(self) -> Iterator[str]:
        return self._pieces

    def __next__(self) -> str:
        return next(self._pieces)

    def close(self) -> None:
        """Give the answer up: nothing more of it is read."""
        self._pieces.close()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _reading(self) -> Generator[str, None, None]:
        opened = self._run(self._exchange.sending(same))
        incoming = opened.incoming
        with opened.closing, self._exchange.streaming(incoming, self._messages):
            while True:
                yield from opened.pieces
                opened.pieces = []
                if incoming.reply is not None:
                    break
                opened.read_on()
        self._reply = incoming.reply


def same(opened: T) -> T:
    """Return *opened* as it is: a stream is read by who asked for it."""
    return opened
