"""A segment: a named part of the window that composes chapters.

    window = SystemSegment  +  CommonSegment
             (System)          (Archive, Active)

This module knows nothing of what the parts hold.
"""

from typing import Protocol

from ..messages import Message


class Segment(Protocol):
    """What a window is made of."""

    @property
    def tokens(self) -> int:
        """What the segment costs, framing of its messages included."""
        ...

    @property
    def view(self) -> list[Message]:
        """The messages that the segment shows."""
        ...
