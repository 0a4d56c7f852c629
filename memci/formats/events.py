r"""Server-sent events: the bytes of a stream, cut into events.

    b'event: ping\ndata: {"a": 1}\n\ndata: {…'
        ──▶  the event b'event: ping\ndata: {"a": 1}\n\n', whose data is b'{"a": 1}'; the rest waits for its end

A blank line ends an event. Comments and the names of events carry no data.
"""

import json
import re
from typing import Any, Final

_END: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r")


class Events:
    """Cuts the bytes of a stream into events, each with the blank line behind it."""

    def __init__(self) -> None:
        self._left = bytearray()
        self._searched = 0
        """the bytes of it in which no event ends"""

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the events that *chunk* completes. O(chunk, and the events)."""
        events, start = [], 0
        self._left += chunk
        for found in _END.finditer(self._left, max(0, self._searched - 3)):  # an end may begin in the chunk before
            events.append(bytes(self._left[start : found.end()]))
            start = found.end()
        del self._left[:start]
        self._searched = len(self._left)
        return events

    def rest(self) -> bytes:
        """Return what follows the last whole event."""
        left, self._left, self._searched = bytes(self._left), bytearray(), 0
        return left


def data_of(event: bytes) -> bytes:
    """Return the data that *event* carries, b"" if it carries none."""
    return b"\n".join(line[5:].removeprefix(b" ") for line in event.splitlines() if line.startswith(b"data:"))


def load_object(data: bytes) -> dict[str, Any] | None:
    """Return the object that *data* is in JSON, None if it is none."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):  # also [DONE]
        return None
    return value if isinstance(value, dict) else None
