"""Changes of a window before they are committed, as values: a draft of messages, a page read back, a compaction."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..chapters.active import TIME_TOKENS
from ..chapters.chapter import Page
from ..chapters.contents import ContentsPage, ListedPage, ListedPart, Told
from ..chapters.instructions import Instructions
from ..chapters.messagelist import MessageNode
from ..messages import Message
from ..rows import PageRow
from ..segments.budget import Plan
from ..text.summarize import Summary
from .outbox import Runs
from .page_text import PageText


class DraftMessage(NamedTuple):
    """One message on its way into a window."""

    node: MessageNode
    opens: bool  # whether it opens a page
    place: tuple[int, int]  # its page, and its ordinal there
    body: tuple[int, bytes]  # its codec and bytes
    whole: int  # its tokens before it was clipped
    late: bool  # whether it is a result for which no open call waits


class Draft(NamedTuple):
    """Messages on their way into a window."""

    messages: tuple[DraftMessage, ...]
    interrupted: tuple[str, ...] = ()  # ids of calls that can't get a result any more, because something else follows


class StoredPage(NamedTuple):
    """A page as a compaction needs it: its row, and the text of its messages."""

    row: PageRow
    base: int  # seq of its interaction's first message
    text: PageText

    @property
    def tokens(self) -> int:
        """The most that the page costs in the window: its messages, and the times around them."""
        return sum(node.tokens for node in self.text.nodes) + 2 * TIME_TOKENS


class LeavingPart(NamedTuple):
    """What leaves a page that stays in the window."""

    page: Page
    nodes: tuple[MessageNode, ...]  # whole units that follow each other
    text: PageText


class Basis(NamedTuple):
    """The input of the next Contents Page of a window: two that are equal give the same page."""

    contents: ContentsPage  # the current one, without the pages that leave it
    instructions: Instructions  # the user's, in the current one
    listed: dict[int, PageRow]  # the pages that it lists
    leaving: tuple[StoredPage, ...]  # pages that leave the window
    recalled: tuple[StoredPage, ...]  # pages that are listed again on a line of their own
    better: Sequence[ListedPage]  # lines that replace others
    summaries: Mapping[int, Summary]  # a model's summaries of pages
    plan: Plan
    parts: tuple[LeavingPart, ...]  # what leaves the open page, and work that leaves others that stay
    dropped: Runs  # marks of instructions that were dropped
    before: tuple[ListedPart, ...]  # the lines of what has left pages that are still shown
    told: tuple[Told, ...]  # what the program told the model, in the current one


class Prepared(NamedTuple):
    """A possible next Contents Page, made before the compaction that shows it."""

    basis: Basis
    turn: int  # the turn in which it was made
    settled: bool  # True if the result does not depend on the current turn (no page was used in it)
    contents: ContentsPage
    unloaded: tuple[int, ...]  # pages that it no longer lists


class Compaction(NamedTuple):
    """One compaction, ready to be committed and taken in."""

    contents: ContentsPage
    listed: dict[int, PageRow]  # the pages that it lists
    changed: tuple[PageRow, ...]  # all pages whose state changed
    archived: tuple[int, ...] = ()  # closed pages that leave the window
    leaving: Mapping[int, tuple[MessageNode, MessageNode]] = {}  # by page, the run that leaves it, while the page stays
    restored: tuple[StoredPage, ...] = ()  # pinned pages that come back
    views: tuple[tuple[int, Message, int, int], ...] = ()  # (seq, view, tokens, clip) of messages that are clipped
    unloaded: Mapping[str, tuple[int, ...]] = {}  # pages that it no longer lists, by the rule
    lead: int = 0  # the seq before which messages stand in front of the contents (`WindowState.lead`)
    marks: str | None = None  # the words of the pages that leave, as `memci.window.cache_use.pack_marks` writes them
