"""The Common segment: the Contents Page of the archive, then the active pages.

    [ contents: block, block ]  [ active: closed pages, the open page ]
      changes at a compaction       grows at its tail, between compactions

This module knows nothing of when a compaction happens, or of storage.
"""

from ..chapters.active import ActiveChapter
from ..chapters.archive import ArchiveChapter
from ..messages import Message, tool_calls
from .budget import ClosedPage, Unit


class CommonSegment:
    """The segment of the Archive chapter and the Active chapter."""

    def __init__(self, *, nonce: str, interrupted: int) -> None:
        self.archive = ArchiveChapter()
        self.active = ActiveChapter(nonce=nonce, interrupted=interrupted)

    @property
    def tokens(self) -> int:
        """What the segment costs."""
        return self.archive.messages.tokens + self.active.messages.tokens

    @property
    def view(self) -> list[Message]:
        """The messages that the segment shows, up to the open tool group. O(messages in the window)."""
        return [node.view for node in self.archive.messages] + self.active.view

    def closed(self, pins: frozenset[int], task: int | None) -> tuple[ClosedPage, ...]:
        """Return what a plan needs to know of the closed pages. O(messages in the window)."""
        active = self.active
        return tuple(
            ClosedPage(page.index, page.tokens, page.index in pins, page.index == task)
            for page in active
            if page is not active.open
        )

    def units(self, *, settles: bool) -> tuple[tuple[Unit, ...], bool, int]:
        """Return the open page as units, whether the first is its task, and how many behind it may be split off.

        What follows the last message of the assistant, and that message, were not seen by the model yet: they stay,
        unless something else *settles* the page. A group whose results may still come always stays, and so does the
        only message of a page.
        """
        pieces = list(self.active.units())
        units = tuple(
            Unit(
                sum(node.tokens for node in piece),
                tuple((node.seq, node.tokens) for node in piece if node.message["role"] == "tool"),
            )
            for piece in pieces
        )
        task = self.active.task is not None
        said = [at for at, piece in enumerate(pieces) if piece[0].message["role"] == "assistant"]
        last = len(pieces) if settles and not self.active.missing else (said[-1] if said else task)
        return units, task, max(0, min(last, len(pieces) - (not task)) - task)

    def _check(self) -> None:
        self.archive._check()
        self.active._check()
        assert not any(page.index in self.archive.rows for page in self.active), "a page is in one place"
        for node in self.active.messages:
            if tool_calls(node.message):
                assert node.group is not None, "every call stands in its group"
