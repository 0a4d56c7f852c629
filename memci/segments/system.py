"""The System segment: the front of every rendering, which never changes.

    [ the developer's prompt + the notice of how to recall ]

It knows nothing of the conversation.
"""

from collections.abc import Callable

from ..chapters.system import SystemChapter
from ..messages import Message


class SystemSegment:
    """The segment of the System chapter."""

    def __init__(self, prompt: str | None, *, notice: bool, searchable: bool, weigh: Callable[[Message], int]) -> None:
        self.chapter = SystemChapter(prompt, notice=notice, searchable=searchable, weigh=weigh)
        self.view: list[Message] = [node.view for node in self.chapter.messages]

    @property
    def tokens(self) -> int:
        """What the segment costs."""
        return self.chapter.messages.tokens
