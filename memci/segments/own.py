"""Segments of one's own: messages of the program between the system prompt and the conversation.

    system prompt │ project facts: user, user │ contents │ active pages

What they show is read when a context shows none yet, and at each compaction. In between, and when the context is opened
again, the window shows what was read, so that a provider's cache keeps it.
"""

import json
from collections.abc import Callable, Sequence
from typing import Protocol

from ..errors import InvalidMessage, InvalidSetting, brief
from ..messages import Message, MessageLike, check, plain

ShownSegments = tuple[tuple[str, str], ...]  # of each segment, its name and its messages as JSON


class Segment(Protocol):
    """A part of the window of one's own: its messages have the user's role, and every rendering has them."""

    @property
    def name(self) -> str:
        """Its name in errors; each segment of a context has another one."""
        ...

    @property
    def view(self) -> Sequence[MessageLike]:
        """The messages that the next compaction shows."""
        ...


def read_segments(segments: Sequence[Segment]) -> ShownSegments:
    """Return what *segments* show now. O(characters).

    Raises:
        InvalidSetting: If they are no segments, or two have one name.
        InvalidMessage: If a message is none of the user's, or not exact JSON.
    """
    found: dict[str, str] = {}
    for each in segments:
        name, view = getattr(each, "name", None), getattr(each, "view", "")
        if not isinstance(name, str) or name in found or not isinstance(view, Sequence) or isinstance(view, str):
            raise InvalidSetting("segments", f"expected a name of its own and a view, a list, got {brief(each)}")
        messages = [plain(message, f"{name}[{at}]") for at, message in enumerate(view)]
        for at, message in enumerate(messages):
            check(message, f"{name}[{at}]")
            if message["role"] != "user":
                raise InvalidMessage(f"{name}[{at}].role", f"expected 'user', got {message['role']!r}")
        try:
            found[name] = json.dumps(messages, ensure_ascii=False, allow_nan=False)
            found[name].encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidMessage(name, f"its view is no exact JSON ({type(error).__name__})") from None
    return tuple(found.items())


class OwnSegments:
    """The segments that a program has *given* to a window, None if it gave none, and what the window shows."""

    def __init__(self, given: Sequence[Segment] | None, weigh: Callable[[Message], int]) -> None:
        self._given, self._weigh = given, weigh
        self.shown: ShownSegments | None = None
        self.view: list[Message] = []
        """the messages that are shown"""
        self.tokens = 0

    def show(self, shown: ShownSegments | None) -> None:
        """Show *shown* from now on. O(characters) if that changes something."""
        if shown != self.shown:
            self.shown, self.view = shown, _messages(shown)
            self.tokens = sum(map(self._weigh, self.view))

    def read(self) -> tuple[ShownSegments | None, int]:
        """Return what the next compaction shows, and its tokens; errors as `read_segments`. O(characters)."""
        coming = self.shown if self._given is None else read_segments(self._given)
        return coming, self.tokens if coming == self.shown else sum(map(self._weigh, _messages(coming)))


def _messages(shown: ShownSegments | None) -> list[Message]:
    return [message for _, text in shown or () for message in json.loads(text)]
