"""What may go wrong with a model's server: faults for the script of `memci.testing.llm.ModelServer`.

    server.fails(Status(429, retry_after=7), Reset())       the next two requests fail; then it answers again
    server.answers(["Hello!", Cut("Once upon a time", after=9), Raw("{not json")])

This module knows nothing of sockets: faults are values.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Event


@dataclass(frozen=True, slots=True)
class Status:
    """An HTTP status instead of an answer."""

    code: int
    retry_after: float | str | None = None
    """seconds, or a date; None: a millisecond, so that no test waits for the client's next try"""
    error: str = ""
    """the code of the error: "context_length_exceeded", …"""
    message: str = "as the script says"
    parameter: str | None = None
    """the parameter that is wrong"""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reset:
    """The connection is reset before the answer begins."""


@dataclass(frozen=True, slots=True)
class Cut:
    """An answer that stops in the middle: a stream after some characters of its text, else halfway through its JSON."""

    text: str
    after: int = 0
    """characters of a stream"""


@dataclass(frozen=True, slots=True)
class Raw:
    """These bytes: malformed JSON, a page of HTML, a stream of your own."""

    body: str | bytes
    content_type: str = "application/json"
    status: int = 200


class Hang:
    """The server does not answer until it is released; then it gives the next answer of the script.

    hang = Hang()
    server.fails(hang)
    …                   # the client waits, or gives up
    hang.reached.wait()
    hang.release()
    """

    def __init__(self, *, blanks: bool = False) -> None:
        """Begin.

        Args:
            blanks: It sends a blank every 20 ms, like servers that keep a connection alive.
        """
        self.blanks = blanks
        self.reached = Event()
        """set when a request hangs"""
        self.released = Event()

    def release(self) -> None:
        """Let the request go on."""
        self.released.set()


Fault = Status | Reset | Cut | Raw | Hang
