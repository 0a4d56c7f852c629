r"""A streamed answer, put together: from bytes to pieces of text, and the whole message at the end.

    b'data: {"choices": [{"delta": {"content": "Hel"}}]}\n\n'  ──▶  "Hel"
    b'data: {"choices": [{"delta": {"content": "lo"}}]}\n\n'   ──▶  "lo"
    b'data: [DONE]\n\n'                                        ──▶  reply: {"role": "assistant", "content": "Hello"}

An answer is whole if the server said why it ended, or [DONE]; one that merely stops was cut. This module knows nothing
of sockets.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

from .errors_of_servers import Unusable
from .model import Reply, Usage
from .replies import LARGEST, parsed, reply_of, sound, text, usage_of

_LINE = re.compile(rb"\r\n|\n|\r(?!\Z)")  # a \r at the end may be half of a line's end
_MOST_CALLS = 1_000
"""tool calls of one message; an index above it is made up"""


class Incoming:
    """What came of a stream so far."""

    def __init__(self, *, streamed: bool, seconds: float, clock: Callable[[], float]) -> None:
        """Begin.

        Args:
            streamed: Whether the server streams; False: it sends one whole completion though it was asked to.
            seconds: How long nothing but signs of life may come.
            clock: What time it is, in seconds.
        """
        self.begun = False
        """whether anything of the answer came"""
        self.done = False
        """whether nothing more is to come"""
        self.reply: Reply | None = None
        self._streamed = streamed
        self._seconds, self._clock = seconds, clock
        self._heard = clock()
        self._pieces: list[str] = []
        self._fault: Unusable | None = None
        self._size = 0
        self._rest = b""
        self._lines: list[bytes] = []
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
    def complete(self) -> bool:
        """Whether the server said why the answer ended: all that may still come is what it cost."""
        return self.done or bool(self._finish)

    def taken(self, chunk: bytes | None) -> list[str]:
        """Take the next bytes, None at their end, and return the text in them; at the end there is `reply`.

        What is wrong behind some text is raised by `go_on`, when the text was said.

        Raises:
            TimeoutError: If no piece of the answer came for too long.
            Unusable: If it is no stream of a completion, tells of an error, or was cut.
        """
        before = len(self._pieces)
        try:
            if chunk is not None:
                self._feed(chunk)
            if chunk is None or self.done:
                self._end()
        except Unusable as error:
            if len(self._pieces) == before:
                raise
            self._fault = error
        return self._pieces[before:]

    def go_on(self) -> None:
        """Raise what was wrong behind the text that came last."""
        if self._fault is not None:
            raise self._fault

    def _feed(self, chunk: bytes) -> None:
        self._size += len(chunk)
        if self._size > LARGEST:
            raise Unusable(f"the answer is larger than {LARGEST:,} bytes")
        self._rest += chunk
        if self._streamed:
            for data in self._events():
                self._heard = self._clock()
                piece = self._take(data)
                if piece:
                    self._pieces.append(piece)
        if self._clock() - self._heard > self._seconds:
            raise TimeoutError

    def _end(self) -> None:
        if not self._streamed:
            self.reply = reply_of(self._rest)
            self.begun = self.done = True
            self._pieces += [self.reply.text] if self.reply.text else []
            return
        if self._rest.strip() in {b"data: [DONE]", b"data:[DONE]"}:
            self.done = True
        if not self.complete:
            raise Unusable("the stream was cut" if self.begun else "the stream is empty")
        self.reply = Reply(self._whole(), self._usage, self._finish or "stop", self._model)
        self.done = True

    def _events(self) -> Iterator[bytes]:
        *lines, self._rest = _LINE.split(self._rest)
        for line in lines:
            if line.startswith(b"data:"):
                self._lines.append(line[5:].removeprefix(b" "))
            elif not line and self._lines:
                data, self._lines = b"\n".join(self._lines), []
                if not self.done:
                    yield data

    def _take(self, data: bytes) -> str:
        self.begun = True
        if data.strip() == b"[DONE]":
            self.done = True
            return ""
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
        return self._merge(delta) if isinstance(delta, dict) else ""

    def _merge(self, delta: dict[str, Any]) -> str:
        for key, value in delta.items():
            if key == "tool_calls":
                for call in value if isinstance(value, list) else ():
                    self._call(call)
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

    def _call(self, delta: object) -> None:
        if not isinstance(delta, dict):
            raise Unusable("the stream has a tool call that is none")
        index = delta.get("index")
        if type(index) is not int:  # some servers leave it out: a new id begins a new call
            last = max(self._calls, default=-1)
            same = last >= 0 and delta.get("id") in {None, "", self._calls[last].get("id")}
            index = last if same else last + 1
        if not 0 <= index < _MOST_CALLS:
            raise Unusable("the stream has a tool call that is none")
        call = self._calls.setdefault(index, {"id": "", "type": "function"})
        for key, value in delta.items():
            if key in {"function", "custom"} and isinstance(value, dict):
                body = call.setdefault(key, {"name": "", "arguments" if key == "function" else "input": ""})
                for name, piece in value.items():
                    if name in {"arguments", "input"} and isinstance(piece, str):
                        body[name] += piece
                    elif piece:
                        body[name] = piece
            elif key != "index" and value:  # an id or a type that is null or empty is one that was sent before
                call[key] = value

    def _whole(self) -> dict[str, Any]:
        message = {**self._message, **{key: "".join(pieces) for key, pieces in self._texts.items()}}
        calls = [self._calls[index] for index in sorted(self._calls)]
        return sound({**message, "tool_calls": calls} if calls else message)
