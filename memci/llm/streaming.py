r"""A streamed message, put together: from bytes to pieces of text, and the whole message at the end.

    b'data: {"choices": [{"delta": {"content": "Hel"}}]}\n\n'  ──▶  "Hel"
    b'data: {"choices": [{"delta": {"content": "lo"}}]}\n\n'   ──▶  "lo"
    b'data: [DONE]\n\n'                                        ──▶  reply: {"role": "assistant", "content": "Hello"}

A message is whole if the server said why it ended, or `[DONE]`; if the bytes merely stop, it was cut. The client's own
`Stream` can't tell these apart, and waits forever for a server that sends nothing but comments; so the events are read
here. This module knows nothing of sockets.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .model import Reply, Usage
from .replies import LARGEST, parsed, sound, text, usage_of
from .server_errors import Unusable, failure_of

_LINE = re.compile(rb"\r\n|\n|\r(?!\Z)")  # a \r at the end may be the first half of a line's end
_MOST_CALLS = 1_000
"""tool calls of one message; no model makes more, so a higher index is an error"""


class IncomingMessage:
    """What came of a streamed message so far."""

    def __init__(
        self, chunks: Iterable[bytes], *, seconds: float, clock: Callable[[], float], whole: Reply | None = None
    ) -> None:
        """Begin: *chunks* are the bytes, with at most *seconds* between two events; comments and blanks are none.

        *whole* is the message, if the server sent it whole though it was asked to stream.
        """
        self._chunks = chunks
        self._seconds, self._clock = seconds, clock
        self._reply = whole
        self._pieces: list[str] = []
        self._begun = self._done = False
        """whether an event came; whether [DONE] came"""
        self._message: dict[str, Any] = {}
        self._calls: dict[int, dict[str, Any]] = {}
        self._texts: dict[str, list[str]] = {}
        self._usage = Usage()
        self._finish = self._model = ""

    @property
    def partial(self) -> str:
        """The text so far."""
        return "".join(self._pieces)

    @property
    def reply(self) -> Reply:
        """The whole message, when all `pieces` were taken."""
        assert self._reply is not None, "all pieces were taken"
        return self._reply

    def pieces(self) -> Iterator[str]:
        """Yield the pieces of text as they come; what is no stream of a completion, or was cut, is `Unusable`."""
        if self._reply is not None:
            yield self._reply.text
            return
        try:
            for event in self._events():
                self._begun = True
                if piece := self._taken(event):
                    self._pieces.append(piece)
                    yield piece
        except Exception as error:
            # Behind the reason of its end only the usage may follow: the message is whole without it.
            if not self._finish or failure_of(error) is None:
                raise
        if not self._done and not self._finish:
            raise Unusable("the stream was cut" if self._begun else "the stream is empty")
        message = {**self._message, **{key: "".join(pieces) for key, pieces in self._texts.items()}}
        if self._calls:
            message["tool_calls"] = [self._calls[index] for index in sorted(self._calls)]
        self._reply = Reply(sound(message), self._usage, self._finish or "stop", self._model)

    def _events(self) -> Iterator[bytes]:
        """Yield the data of each event until [DONE]."""
        size, rest, lines, last = 0, b"", list[bytes](), self._clock()
        for chunk in self._chunks:
            size += len(chunk)
            if size > LARGEST:
                raise Unusable(f"the answer is larger than {LARGEST:,} bytes")
            *complete, rest = _LINE.split(rest + chunk)
            for line in complete:
                if line.startswith(b"data:"):
                    lines.append(line[5:].removeprefix(b" "))
                elif not line and lines:
                    data, lines, last = b"\n".join(lines), [], self._clock()
                    if data.strip() == b"[DONE]":
                        self._done = True
                        return
                    yield data
            if self._clock() - last > self._seconds:
                raise TimeoutError
        # the blank line behind the last event may be missing
        self._done = b"".join([*lines, rest.strip().removeprefix(b"data:")]).strip() == b"[DONE]"

    def _taken(self, data: bytes) -> str:
        event = parsed(data)
        if event.get("error"):
            raise Unusable("the server broke off the stream with an error")
        self._model = self._model or text(event.get("model"))
        if isinstance(event.get("usage"), dict):
            self._usage = usage_of(event)
        choices = event.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return ""
        self._finish = text(choice.get("finish_reason")) or self._finish
        delta = choice.get("delta")
        return self._merged(delta) if isinstance(delta, dict) else ""

    def _merged(self, delta: dict[str, Any]) -> str:
        """Add *delta* to the message, and return the text in it."""
        for key, value in delta.items():
            if key == "tool_calls":
                for call in value if isinstance(value, list) else ():
                    self._add_call(call)
            elif value is None or key == "role":
                continue
            elif isinstance(value, str):
                self._texts.setdefault(key, []).append(value)
            elif isinstance(value, list) and isinstance(self._message.get(key), list):
                self._message[key] = [*self._message[key], *value]
            else:
                self._message[key] = value
        content = delta.get("content")
        return content if isinstance(content, str) else ""

    def _add_call(self, delta: object) -> None:
        if not isinstance(delta, dict):
            raise Unusable("the stream has a tool call that is none")
        index = delta.get("index")
        if type(index) is not int:  # some servers leave it out: a new id begins a new call
            last = max(self._calls, default=-1)
            same = last >= 0 and delta.get("id") in (None, "", self._calls[last].get("id"))
            index = last if same else last + 1
        if not 0 <= index < _MOST_CALLS:
            raise Unusable("the stream has a tool call that is none")
        call = self._calls.setdefault(index, {"id": "", "type": "function"})
        for key, value in delta.items():
            if key in {"function", "custom"} and isinstance(value, dict):
                body = call.setdefault(key, {"name": "", "arguments" if key == "function" else "input": ""})
                for name, piece in value.items():
                    if name in {"arguments", "input"} and isinstance(piece, str):
                        body[name] = f"{body.get(name, '')}{piece}"
                    elif piece:
                        body[name] = piece
            elif key not in {"index", "function", "custom"} and value:  # what is null or empty was sent before
                call[key] = value
