r"""The reply of a server: read from the bytes of its answer, whole or streamed.

    b'{"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}], "usage": {…}}'  ──▶  Reply({…}, Usage(…))
    b'data: {"choices": [{"delta": {"content": "Hel"}}]}\n\n'                                ──▶  "Hel"

Neither the models nor the `Stream` of the openai client read it: its models accept any JSON without a check, and its
stream ends alike whether the answer is whole or was cut, and waits forever for a server that sends only comments.
A message keeps every field of the provider that is not null. An answer that is no completion raises `Unusable`.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..errors import InvalidMessage, InvalidSetting
from ..formats.events import Events, data_of
from ..formats.streams import ChatAnswer
from ..formats.usage import reported
from ..messages import Message, check
from .model import Reply, Usage
from .server_errors import Unusable, failure_of

LARGEST = 16_000_000
"""bytes of an answer, at most: far more than a model writes, far less than memory holds"""


def read_whole(chunks: Iterable[bytes], seconds: float, clock: Callable[[], float]) -> bytes:
    """Return the bytes of a whole answer, which takes at most *seconds* in all.

    The read timeout of a connection does not end an answer if the server keeps the connection alive by sending blanks.
    """
    until = clock() + seconds
    body = bytearray()
    for chunk in _bounded(chunks):
        body += chunk
        if clock() > until:
            raise TimeoutError
    return bytes(body)


def parse(body: bytes) -> dict[str, Any]:
    """Return the JSON object of *body*."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Unusable("the answer is no JSON") from error
    if not isinstance(value, dict):
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
    try:
        cost = reported(completion.get("usage"))
    except InvalidSetting:
        return Usage()
    return Usage(cost.input, cost.output, cost.cached_read)


class IncomingReply:
    """A reply that arrives in pieces, or whole if it is not *streamed*, though a stream was asked for."""

    def __init__(
        self, chunks: Iterable[bytes], seconds: float, clock: Callable[[], float], *, streamed: bool = True
    ) -> None:
        """Read from *chunks*, with at most *seconds* between two events; comments and blanks are no events."""
        self.reply: Reply | None = None
        """the whole reply, once all `pieces` were taken"""
        self._chunks = chunks
        self._seconds, self._clock = seconds, clock
        self._streamed = streamed
        self._answer = ChatAnswer()
        self._done = False

    @property
    def text(self) -> str:
        """The text so far."""
        return self._answer.text

    def pieces(self) -> Iterator[str]:
        """Yield the pieces of text as they come. A stream of something else, or one that was cut, raises `Unusable`."""
        if not self._streamed:
            self.reply = reply_of(read_whole(self._chunks, self._seconds, self._clock))
            yield self.reply.text
            return
        answer, begun = self._answer, False
        try:
            for data in self._events():
                begun = True
                if piece := self._add(parse(data)):
                    yield piece
        except Exception as error:
            if not answer.ended or failure_of(error) is None:  # behind the end only the usage may be missing
                raise
        if not self._done and not answer.ended:
            raise Unusable("the stream was cut" if begun else "the stream is empty")
        answer.finish = answer.finish or "stop"
        self.reply = reply_of(answer.whole)

    def _add(self, event: dict[str, Any]) -> str:
        if event.get("error"):
            raise Unusable("the server broke off the stream with an error")
        try:
            return self._answer.add(event)
        except InvalidMessage as error:
            raise Unusable("the stream is none of a completion") from error

    def _events(self) -> Iterator[bytes]:
        """Yield the data of the events up to `[DONE]`."""
        events, last = Events(), self._clock()
        for chunk in _bounded(self._chunks):
            for event in events.feed(chunk):
                if data := data_of(event).strip():
                    last = self._clock()
                    if data == b"[DONE]":
                        self._done = True
                        return
                    yield data
            if self._clock() - last > self._seconds:
                raise TimeoutError
        self._done = data_of(events.rest()).strip() == b"[DONE]"  # the blank line behind it may be missing


def _bounded(chunks: Iterable[bytes]) -> Iterator[bytes]:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > LARGEST:
            raise Unusable(f"the answer is larger than {LARGEST:,} bytes")
        yield chunk


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
        raise Unusable("the message of the answer is none that a context accepts") from error
    return complete
