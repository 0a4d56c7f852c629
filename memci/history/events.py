"""Events: what happened to a window. Each is passed to `on_event`.

    Event("compaction", "alice", pages=(4, 5, 6), tokens=3_870)

A change is committed before its event is sent.
"""

from typing import Literal, NamedTuple


class Event(NamedTuple):
    """Something that happened to the window."""

    kind: Literal["compaction", "unload", "clip"]
    context: str
    pages: tuple[int, ...]
    """archived by the compaction; unloaded; or the page of the clipped entry"""
    tokens: int
    """of the window afterwards; for a clip: what the whole message costs"""
    reason: str = ""
    """of a compaction: why it came, and how far it went"""
