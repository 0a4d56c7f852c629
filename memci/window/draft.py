"""What is about to happen to a window, as values: a draft of messages, a page read back, a compaction.

This module knows nothing of how they are made, or of storage beyond the rows that are stored.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..chapters.contents import ContentsPage, ListedPage
from ..chapters.instructions import Instructions
from ..chapters.messagelist import MessageNode
from ..messages import Message
from ..rows import PageRow
from ..segments.budget import Plan
from ..text.summarize import Summary
from .page_text import PageText


class DraftMessage(NamedTuple):
    """One message on its way into a window."""

    node: MessageNode
    opens: bool
    """whether it opens a page"""
    place: tuple[int, int]
    """its page and ordinal"""
    body: tuple[int, bytes]
    """its codec and bytes"""
    whole: int
    """its tokens before it was clipped"""
    late: bool
    """whether it is a result that no open call waits for"""


class Draft(NamedTuple):
    """Messages on their way into a window."""

    messages: tuple[DraftMessage, ...]
    interrupted: tuple[str, ...] = ()
    """ids of calls that will not get a result any more, because something else follows"""


class StoredPage(NamedTuple):
    """A page as a compaction needs it: its row, and what its messages say."""

    row: PageRow
    base: int
    """seq of its interaction's first message"""
    text: PageText


class Basis(NamedTuple):
    """All that the next Contents Page of a window is made of: two that are equal give the same page."""

    contents: ContentsPage
    """the page before, without those that leave it"""
    instructions: Instructions
    """the user's, before"""
    listed: dict[int, PageRow]
    """the pages that it lists, without those that leave it"""
    leaving: tuple[StoredPage, ...]
    """pages that leave the window"""
    recalled: tuple[StoredPage, ...]
    """pages that are listed again on a line of their own"""
    better: Sequence[ListedPage]
    """lines that replace others"""
    summaries: Mapping[int, Summary]
    """what a model made of pages"""
    plan: Plan


class Prepared(NamedTuple):
    """The next Contents Page, before there is a compaction that shows it."""

    basis: Basis
    turn: int
    """in which it was made"""
    settled: bool
    """whether it is the same in later turns: no page was used in this one, so those that leave are the latest in any"""
    contents: ContentsPage
    unloaded: tuple[int, ...]
    """pages that it does not list any more"""


class Compaction(NamedTuple):
    """One compaction, ready to be committed and taken in."""

    contents: ContentsPage
    listed: dict[int, PageRow]
    """the pages that it lists"""
    changed: tuple[PageRow, ...]
    """all pages whose state changed"""
    archived: tuple[int, ...] = ()
    """closed pages that leave the window"""
    split: tuple[MessageNode, MessageNode] | None = None
    """the run that leaves the open page"""
    restored: tuple[StoredPage, ...] = ()
    """pages that come back, because they were pinned"""
    views: tuple[tuple[int, Message, int, int], ...] = ()
    """(seq, view, tokens, clip) of results that are clipped"""
    unloaded: tuple[int, ...] = ()
    next_page: int = 1
    marks: str | None = None
    """the words of the pages that leave, as `memci.window.cache_use.pack_marks` writes them"""
