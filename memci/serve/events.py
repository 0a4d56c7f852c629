r"""Server-sent events: a stream of bytes cut into events, and what an answer says of its cost.

    b"event: ping\ndata: {}\n\n" b"data: {…"      ──▶  one event; the beginning of another

This module knows nothing of what the events mean.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

_END: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_DATA: Final = re.compile(rb"^data:[ ]?(.*)$", re.MULTILINE)


class Events:
    """Cuts the bytes of a stream into events, each with the blank line behind it."""

    def __init__(self) -> None:
        self._left = b""

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the events that *chunk* completes."""
        self._left += chunk
        while found := _END.search(self._left):
            event, self._left = self._left[: found.end()], self._left[found.end() :]
            yield event

    def rest(self) -> bytes:
        """Return what follows the last whole event."""
        left, self._left = self._left, b""
        return left


def data_of(event: bytes) -> dict[str, Any] | None:
    """Return the object that *event* carries, None if it carries none."""
    try:
        data = json.loads(b"\n".join(line.rstrip(b"\r") for line in _DATA.findall(event)) or b"null")
    except ValueError:  # [DONE]
        return None
    return data if isinstance(data, dict) else None


class UsageTap:
    """Reads what an answer cost from its bytes, streamed or whole, while they are sent on."""

    def __init__(self) -> None:
        self._events = Events()
        self._found: dict[str, Any] = {}

    def feed(self, chunk: bytes) -> None:
        """Read *chunk*, the next bytes of the answer."""
        for event in self._events.feed(chunk):
            self._read(data_of(event) if b'"usage"' in event else None)

    @property
    def usage(self) -> dict[str, Any]:
        """What the answer cost, {} if it does not say so."""
        try:
            whole = json.loads(self._events.rest() or b"null")
        except ValueError:
            whole = None
        self._read(whole)
        return self._found

    def _read(self, data: object) -> None:
        for holder in (data, *(data.get(key) for key in ("message", "response"))) if isinstance(data, dict) else ():
            usage = holder.get("usage") if isinstance(holder, dict) else None
            if isinstance(usage, dict):
                self._found |= {key: value for key, value in usage.items() if value is not None}
