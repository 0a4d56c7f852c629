"""The Common segment: the Contents Page of the archive, then the active pages.

[ the first page ]   [ contents: block, block ]   [ active: closed pages, the open page ]
  stays                changes at a compaction      grows at its end, between compactions
"""

from ..chapters.active import ActiveChapter
from ..chapters.contents import ArchiveChapter
from ..messages import Message


class CommonSegment:
    """The segment of the Archive chapter and the Active chapter, which takes the same arguments.

    >>> from memci.chapters import MessageNode
    >>> segment = CommonSegment(nonce="1f9a03c2", interrupted=12)
    >>> page = segment.active.open_page(index=1, base=0)
    >>> segment.active.append(MessageNode({"role": "user", "content": "Hello"}, tokens=5))
    >>> segment.view, segment.tokens
    ([{'role': 'user', 'content': 'Hello'}], 5)
    """

    def __init__(self, *, nonce: str, interrupted: int) -> None:
        self.archive = ArchiveChapter()
        self.active = ActiveChapter(nonce=nonce, interrupted=interrupted)

    @property
    def tokens(self) -> int:
        """Tokens of the segment, framing included."""
        return self.archive.tokens + self.active.tokens

    @property
    def view(self) -> list[Message]:
        """The messages that the segment shows, up to the open tool group. O(messages in the window)."""
        return self.active.lead_view + self.archive.view + self.active.view
