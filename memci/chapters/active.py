"""The Active chapter: recent pages, verbatim, in the window.

    closed pages, oldest first     the open page
    [ #7 ][ #8 ][ #9 ]             [ #10: user, assistant + calls, results, … ]   ◀── append

It keeps its rendering, so that an append only renders the new message. A tool group joins the
rendering when it is settled: it has all its results, or no more can come.

Where a day or a session begins, a message of its own tells the time from which on what follows was said, before the
user's message. It depends on the messages before it alone, so appends never change one that was shown:

    [1f9a from Tue 24 Nov 2026, 07:30 +08:00]  user  assistant  user  …  [1f9a from Wed 25 Nov]  user

As long as nothing has left the window, a conversation of one sitting is shown as it came: the first time that is told
names the one before, too. Times cost little: where days are short, not all of them are told.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from math import inf

from ..formats.openai_chat import is_sent_as_it_is
from ..messages import Message, tool_calls
from ..text.moments import full, further, is_told, moment
from .chapter import Chapter, Page
from .messagelist import MessageNode
from .toolgroups import ToolGroup, late_result

SHARE = 0.02
"""of the tokens that are shown, for times: with the allowance, they cost at most 1.5 % of a window on real talk"""


TIME_TOKENS = 32  # tokens of a message that tells a time, about


class ActiveChapter(Chapter):
    """The pages that the model sees in full: closed ones, and the open one at the end.

    >>> from memci.chapters import MessageNode
    >>> active = ActiveChapter(nonce="1f9a03c2", interrupted=12)
    >>> for index, text in enumerate(["Hello", "How are you?"], start=1):
    ...     page = active.open_page(index, base=index)
    ...     active.append(MessageNode({"role": "user", "content": text}, tokens=5, seq=index))
    >>> active.closed, active.open, active.tokens
    ([<Page #1 of 1>], <Page #2 of 1>, 10)

    *nonce* is the random word in the frames, *interrupted* the tokens of a result that replaces a missing one.
    """

    def __init__(self, *, nonce: str, interrupted: int) -> None:
        super().__init__()
        self._nonce = nonce
        self._interrupted = interrupted
        self._group: ToolGroup | None = None
        self.lead = 0
        """the seq before which messages stand in front of the Contents Page"""
        self.lead_view: list[Message] = []
        """these messages"""
        self.view: list[Message] = []
        """the rendering of the others, up to the open tool group; do not change it"""
        self.closed_view = 0
        """how many of its first messages belong to closed pages"""
        self.condensed_view = 0
        """how many of them the next condensation leaves, as far as the last one went"""
        self.alone = 0
        """tokens of the user's messages of closed pages that have no others"""
        self.rewritten = False
        """whether the chapter has or had a message that is not sent unchanged"""
        self.open: Page | None = None
        """the page that messages are appended to; None if there is none"""
        self.weigh: Callable[[Message], int] | None = None
        """counts the tokens of a message that tells a time; None: no times are told"""
        self.allowance = 0
        """tokens that times may cost at first; then a `SHARE` of what is shown is added"""
        self.whole = False
        """whether nothing has left the window, so that the first time need not be told"""
        self._told: datetime | None = None
        """the time that was told last"""
        self._since: datetime | None = None
        """the first time, if it was not told"""
        self._shown = self._spent = self._least = 0
        """tokens of the messages so far, of the times that were told, and of the shortest of these"""

    @property
    def unanswered(self) -> list[Message]:
        """The calls at the tail that have no result yet. O(calls)."""
        return list(self._group.open.left.values()) if self._group else []

    @property
    def missing(self) -> list[str]:
        """The ids of the unanswered calls. O(calls)."""
        return self._group.missing if self._group else []

    @property
    def task(self) -> MessageNode | None:
        """The user's message at the beginning of the open page; None if it began differently, or lost that message."""
        return self.open.asked if self.open is not None else None

    @property
    def waiting(self) -> list[MessageNode]:
        """The nodes of the open tool group, in the order of appending."""
        group = self._group
        return [node for node in self.open or () if node.group is group] if group is not None else []

    @property
    def closed(self) -> list[Page]:
        """The closed pages, oldest first. O(pages)."""
        return [page for page in self if page is not self.open]

    def tail(self) -> list[Message]:
        """Return the messages that the open tool group shows so far."""
        return list(self._group.view()) if self._group else []

    def open_page(self, index: int, base: int) -> Page:
        """Close the open page, if there is one, and return the new one; see `Chapter.open_page`."""
        page = super().open_page(index, base)
        self.close()
        self.open = page
        return page

    def extend(self, page: Page, node: MessageNode) -> None:
        """Put *node* at the end of *page*; ValueError unless that is the open one. O(1)."""
        if page is not self.open:
            raise ValueError(f"{page!r} is not the open page")
        self.append(node)

    def own_tokens(self, node: MessageNode) -> int:
        """Return the tokens of *node* without those of results that replace missing ones, and of the told time."""
        return node.tokens - node.dated - self._stand_ins(node)

    def aside(self) -> "ActiveChapter":
        """Return an empty chapter to which messages can be appended as they would be here."""
        chapter = ActiveChapter(nonce=self._nonce, interrupted=self._interrupted)
        chapter.weigh, chapter.whole, chapter._told, chapter._since = self.weigh, self.whole, self._told, self._since
        chapter.allowance, chapter._spent, chapter._least = self.allowance, self._spent, self._least
        chapter._shown = self._shown - sum(node.tokens for node in self.waiting)
        return chapter

    def borders(self, weigh: Callable[[Message], int]) -> int:
        """Return what it would cost to tell all times at which days and sessions begin. O(messages)."""
        told, cost = None, 0
        for node in self.messages:
            if node.at is not None and node.message["role"] == "user" and not is_told(told, when := moment(node.at)):
                told, cost = when, cost + weigh(self._time(when, None, None))
        return cost

    def tell(self, weigh: Callable[[Message], int] | None, *, whole: bool) -> None:
        """Set `weigh` and `whole`. O(messages in the window) if that changes something."""
        if (weigh, whole) != (self.weigh, self.whole):
            self.weigh, self.whole = weigh, whole
            self._redraw()

    def close(self) -> None:
        """Close the open page: its unanswered calls count as interrupted."""
        self._settle()
        self.closed_view = len(self.view)
        if self.open is not None and self.open.head is self.open.tail:
            self.alone += self.open.words
        self.open = None

    def append(self, node: MessageNode) -> None:
        """Put *node* at the end of the open page; ValueError without one. A result without an open call is shown as
        data. O(1).
        """
        message, role = node.message, node.message["role"]
        if self.open is None or node.owner is not None:
            raise ValueError(f"no page is open for {node!r}, or it is in a list")
        if role != "tool" and self._group is not None:
            self._settle()
        if role == "user" and node.at is not None:
            node.tokens += self._tell(node)
        self._shown += node.tokens - node.dated
        super().extend(self.open, node)
        self.rewritten = self.rewritten or not is_sent_as_it_is(message)
        if role == "tool":
            self._append_result(node)
        elif tool_calls(message):
            self._group = ToolGroup(node)
        else:
            view = self.view if node.seq >= self.lead else self.lead_view  # of a page that is read back
            view += (node.view,) if node.date is None else (node.date, node.view)

    def set_lead(self, seq: int) -> None:
        """Show messages before *seq* in front of the Contents Page. O(messages in the window) if that changes."""
        if seq != self.lead:
            self.lead = seq
            self._redraw()

    def remove(self, indexes: Iterable[int]) -> list[Page]:
        """Take closed pages out of the window. O(messages in the window)."""
        pages = [super(ActiveChapter, self).detach(index) for index in indexes]
        if pages:
            self._redraw()
        return pages

    def restore(self, index: int, base: int, nodes: Iterable[MessageNode]) -> None:
        """Put a closed page back at the place of its first message. O(messages in the window)."""
        aside = self.aside()
        aside.open_page(index, base)
        for node in nodes:
            aside.append(node)
        aside.close()
        self.rewritten = self.rewritten or aside.rewritten
        self.add(aside.detach(index))

    def add(self, page: Page) -> None:
        """Put *page*, which is closed, where its messages belong; see `Chapter.add`. O(messages in the window)."""
        super().add(page)
        if self.open is not None and next(reversed(self._pages.values())) is page:
            super().detach(page.index)
            raise ValueError(f"{page!r} comes behind the open page")
        self._redraw()

    def detach(self, index: int) -> Page:
        """Remove the page with *index*, and return it; an open one is closed first. O(messages in the window)."""
        if self.open is not None and self.open.index == index:
            self.close()
        return self.remove([index])[0]

    def leave(self, runs: Mapping[int, tuple[MessageNode, MessageNode]]) -> None:
        """Take runs of whole units, by page, out of pages that stay. O(messages in the window)."""
        for index, (head, tail) in runs.items():
            super().cut(self._pages[index], head, tail)
        if runs:
            self._redraw()

    def cut(self, page: Page, head: MessageNode, tail: MessageNode) -> None:
        """Take a run of whole units out of *page*; see `Chapter.cut`. O(messages in the window)."""
        super().cut(page, head, tail)
        self._redraw()

    def show(self, views: Mapping[int, tuple[Message, int]]) -> None:
        """Set the views of messages: *views* maps `seq` to (view, its tokens). O(messages in the window)."""
        for node in self.messages:
            if node.seq in views:
                node.view, tokens = views[node.seq]
                self.messages.reweigh(node, tokens + node.dated + self._stand_ins(node))
        self._redraw()

    def units(self, page: Page | None) -> Iterator[list[MessageNode]]:
        """Yield *page* in pieces that are never separated: a message, or a tool group."""
        unit: list[MessageNode] = []
        for node in page or ():
            if unit and (node.group is None or node.group.head is node):
                yield unit
                unit = []
            unit.append(node)
        if unit:
            yield unit

    def _stand_ins(self, node: MessageNode) -> int:
        """Return the tokens of the results that replace missing ones of the calls in *node*."""
        group = node.group
        if group is None or not group.settled or group.head is not node:
            return 0
        return len(group.missing) * self._interrupted

    def _tell(self, node: MessageNode) -> int:
        """Tell the time of *node* before it if it begins a day or session; return by how much its tokens change."""
        shown, before, node.date, node.dated = node.date, node.dated, None, 0
        if self.weigh is None or node.message["role"] != "user":
            return -before
        when = moment(node.at or "")
        if self._told is None and self.whole:
            self._told = self._since = when
        elif not is_told(self._told, when):
            first = self._told is None or self._since is not None
            room = inf if first else self.allowance + SHARE * self._shown - self._spent
            if room < self._least:
                return -before
            date = self._time(when, self._told, self._since)
            tokens = before if date == shown else self.weigh(date)
            if tokens <= room:
                node.date, node.dated, self._spent = date, tokens, self._spent + tokens
                self._told, self._since, self._least = when, None, min(tokens, self._least or tokens)
        return node.dated - before

    def _time(self, when: datetime, told: datetime | None, since: datetime | None) -> Message:
        """Return the message that tells the time of what follows, and perhaps *since* when one talked before.

        It is short, since there are many: half of the nonce, and what differs from the time that was *told* before.
        """
        before = f"; before, since {full(since)}" if since is not None else ""
        return {"role": "user", "content": f"[{self._nonce[:4]} from {further(when, since or told)}{before}]"}

    def _append_result(self, node: MessageNode) -> None:
        group = self._group
        if group is not None and group.take(node):
            if not group.open.left:
                self._settle()
            return
        node.view = late_result(node.view, self._nonce)
        if group is None:
            self._view_of(node).append(node.view)
        else:
            group.keep(node)

    def _settle(self) -> None:
        group = self._group
        if group is None:
            return
        self._group = None
        group.settled = True
        if stand_ins := self._stand_ins(group.head):
            self._shown += stand_ins
            self.messages.reweigh(group.head, group.head.tokens + stand_ins)
        self._view_of(group.head).extend(group.view())

    def _view_of(self, node: MessageNode) -> list[Message]:
        return self.lead_view if node.seq < self.lead else self.view

    def _redraw(self) -> None:
        self.view, self.lead_view, self._told, self._since = [], [], None, None
        self._shown = self._spent = self._least = self.condensed_view = 0
        first = self.open.head if self.open is not None else None
        alone = [page for page in self if page.head is page.tail and page is not self.open]
        condensed = {page.head for page in alone}
        for node in self.messages:
            if node is first:
                self.closed_view = len(self.view)
            asked = node.dated or (node.at is not None and node.message["role"] == "user")
            if asked and (change := self._tell(node)):
                self.messages.reweigh(node, node.tokens + change)
            self._shown += node.tokens - node.dated
            if node.group is None:
                view = self.view if node.seq >= self.lead else self.lead_view
                view += (node.view,) if node.date is None else (node.date, node.view)
                self.condensed_view = len(self.view) if node in condensed else self.condensed_view
            elif node.group.head is node and node.group is not self._group:
                self._view_of(node).extend(node.group.view())
        if first is None:
            self.closed_view = len(self.view)
        self.alone = sum(page.words for page in alone)
