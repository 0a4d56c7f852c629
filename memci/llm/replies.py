r"""Replies: read from the bytes of a server's answer, whole or streamed.

    b'{"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}], "usage": {…}}'  ──▶  Reply({…}, Usage(…))
    b'data: {"choices": [{"delta": {"content": "Hel"}}]}\n\n'                                ──▶  "Hel"

Neither the models nor the `Stream` of the openai client read it: its models accept any JSON without a check, and its
stream ends alike whether the answer is whole or was cut, and waits forever for a server that sends only comments.
A message keeps every field of the provider that is not null. An answer that is no completion raises `Unusable`.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from ..errors import InvalidMessage
from ..formats.events import Events, data_of, load_object
from ..formats.streams import ChatAnswer
from ..formats.usage import CallsCost, if_readable
from ..messages import Message, check
from .model import Reply, Usage
from .server_errors import Unusable, failure_of

T = TypeVar("T")
LARGEST = 16_000_000  # bytes of an answer, at most: far more than a model writes, far less than memory holds


def parse(body: bytes) -> dict[str, Any]:
    """Return the JSON object of *body*."""
    if (value := load_object(body)) is None:
        raise Unusable("the answer is no JSON object")
    return value


def reply_of(completion: bytes | dict[str, Any]) -> Reply:
    """Return the reply that a *completion* holds."""
    if isinstance(completion, bytes):
        completion = parse(completion)
    choices = completion.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    choice = first if isinstance(first, dict) else {}
    message = choice.get("message")
    if not isinstance(message, dict):
        raise Unusable("the answer has no choice with a message")
    finish, model = _short(choice.get("finish_reason")), _short(completion.get("model"))
    return Reply(_accepted(message), usage_of(completion), finish, model)


def usage_of(completion: dict[str, Any]) -> Usage:
    """Return the cost that *completion* reports, zeros if it reports none that makes sense."""
    cost = if_readable(completion.get("usage")) or CallsCost()
    return Usage(cost.input, cost.output, cost.cached_read)


class IncomingAnswer(Generic[T]):
    """An answer that is read from the bytes of a response, and there when it is whole."""

    result: T  # the whole answer, once all `pieces` were taken

    def __init__(
        self, parse: Callable[[bytes], T], chunks: Iterable[bytes], seconds: float, clock: Callable[[], float]
    ) -> None:
        """Read from *chunks*, for at most *seconds* in all; *parse* makes the answer of them."""
        self._parse = parse
        self._chunks = chunks
        self._seconds, self._clock = seconds, clock
        self._last = clock()
        """the time of the last progress"""

    def pieces(self) -> Iterator[str]:
        """Yield the pieces of text that are there before the whole: none here."""
        self.result = self._parse(b"".join(self._read()))
        yield from ()

    def _read(self) -> Iterator[bytes]:
        """Yield the chunks. The read timeout of a connection never ends an answer whose server keeps sending blanks."""
        size = 0
        for chunk in self._chunks:
            size += len(chunk)
            if size > LARGEST:
                raise Unusable(f"the answer is larger than {LARGEST:,} bytes")
            yield chunk
            if self._clock() - self._last > self._seconds:
                raise TimeoutError


class IncomingStream(IncomingAnswer[Reply]):
    """A reply that arrives as a stream; or whole, from a server that does not stream."""

    def __init__(self, chunks: Iterable[bytes], seconds: float, clock: Callable[[], float]) -> None:
        """Read from *chunks*, with at most *seconds* between two events; comments and blanks are no events."""
        super().__init__(reply_of, chunks, seconds, clock)
        self._answer = ChatAnswer()
        self._rest = b""
        self._done = False

    def pieces(self) -> Iterator[str]:
        """Yield the pieces of text as they come. A stream of something else, or one that was cut, raises `Unusable`."""
        answer, begun = self._answer, False
        try:
            for data in self._events():
                begun = True
                if piece := self._add(parse(data)):
                    yield piece
        except Exception as error:
            if not answer.ended or failure_of(error) is None:  # behind the end only the usage may be missing
                raise
        if not begun and self._rest.startswith(b"{"):
            self.result = self._parse(self._rest)
            yield self.result.text
            return
        if not self._done and not answer.ended:
            raise Unusable("the stream was cut" if begun else "the stream is empty")
        answer.finish = answer.finish or "stop"
        self.result = reply_of(answer.whole)

    def _add(self, event: dict[str, Any]) -> str:
        if event.get("error"):
            raise Unusable("the server broke off the stream with an error")
        try:
            return self._answer.add(event)
        except InvalidMessage as error:
            raise Unusable("the stream is no stream of a completion") from error

    def _events(self) -> Iterator[bytes]:
        """Yield the data of the events up to `[DONE]`."""
        events = Events()
        for chunk in self._read():
            for event in events.feed(chunk):
                if data := data_of(event).strip():
                    self._last = self._clock()
                    self._done = data == b"[DONE]"
                    if self._done:
                        return
                    yield data
        self._rest = events.rest().strip()
        self._done = data_of(self._rest) == b"[DONE]"  # the blank line behind it may be missing


def _short(value: object) -> str:
    return value[:200] if isinstance(value, str) else ""


def _accepted(message: Message) -> Message:
    """Return an assistant's *message* in the form that a context accepts."""
    kept = {key: value for key, value in message.items() if value is not None and key != "role"}
    if not kept.get("tool_calls"):
        kept.pop("tool_calls", None)
    content = kept.pop("content", None if "tool_calls" in kept else "")
    complete = {"role": "assistant", "content": content, **kept}
    try:
        check(complete)
        json.dumps(complete, allow_nan=False, ensure_ascii=False).encode()
    except (InvalidMessage, ValueError, RecursionError) as error:
        raise Unusable("no context accepts the message of the answer") from error
    return complete
