"""Events: what happened to a window, as `on_event` is told of it.

    Event("compaction", "alice", pages=(4, 5, 6), tokens=3_870)

This module knows nothing of what makes it happen.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to the window."""

    kind: Literal["compaction", "unload", "clip"]
    context: str
    pages: tuple[int, ...]
    """archived by the compaction; unloaded; or the page of the clipped entry"""
    tokens: int
    """of the window afterwards; for a clip: what the whole message costs"""
