"""Events: what happened to a window. Each is passed to `on_event`.

A change is committed before its event is sent.
"""

from typing import Literal, NamedTuple


class Event(NamedTuple):
    """Something that happened to the window."""

    kind: Literal["compaction", "unload", "clip", "gate"]
    context: str
    pages: tuple[int, ...]
    """archived by the compaction; unloaded; or the page of the entry that is clipped, or shown as a digest"""
    tokens: int
    """of the window afterwards; for a clip and a gate: what the whole message costs"""
    reason: str = ""
    """of a compaction: why it came, and how far it went; of an unload: the rule that named the pages"""
