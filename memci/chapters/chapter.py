"""A chapter: an ordered run of pages that owns one list of messages.

    list    root <-> u1 <-> a1 <-> u2 <-> a2 <-> (root)
    pages            [   #1  ]     [   #2  ]                no gap, no overlap

A page that leaves takes its run of nodes with it, wherever that stands in the list. The model never sees chapters.
This module knows nothing of what a chapter is for.
"""

from collections.abc import Iterator

from .messagelist import MessageList, MessageNode
from .pages import Page


class Chapter:
    """Pages in the order of their messages. Together they cover one MessageList, without gap or overlap.

    >>> from memci import MessageNode
    >>> chapter = Chapter()
    >>> for index, text in enumerate(["Hello", "How are you?"], start=1):
    ...     page = chapter.open_page(index, base=index)
    ...     chapter.extend(page, MessageNode({"role": "user", "content": text}, tokens=5, seq=index))
    >>> chapter.detach(1)
    <Page #1 of 1>
    >>> list(chapter), chapter.tokens
    ([<Page #2 of 1>], 5)
    """

    def __init__(self) -> None:
        self.messages = MessageList()
        self._pages: dict[int, Page] = {}

    def __iter__(self) -> Iterator[Page]:
        return iter(self._pages.values())

    def __len__(self) -> int:
        return len(self._pages)

    def __contains__(self, index: object) -> bool:
        return index in self._pages

    @property
    def tokens(self) -> int:
        """What the messages of the chapter cost in the window."""
        return self.messages.tokens

    def page(self, index: int) -> Page | None:
        """Return the page with *index*; None: it is not in this chapter."""
        return self._pages.get(index)

    def open_page(self, index: int, base: int) -> Page:
        """Add an empty page at the end; *base* is the `seq` of its interaction's first message."""
        assert index not in self._pages, "an index is given out once"
        page = self._pages[index] = Page(index, base)
        return page

    def extend(self, page: Page, node: MessageNode) -> None:
        """Put *node* at the end of *page*, which must be the last page."""
        self.messages.append(node)
        page.tail = node
        if page.head is None:
            page.head = node

    def detach(self, index: int) -> Page:
        """Take the page with *index* and its run of nodes out, and return it. O(messages of the page)."""
        page = self._pages.pop(index)
        if page.head is not None and page.tail is not None:
            self.messages.detach(page.head, page.tail)
        return page

    def cut(self, page: Page, head: MessageNode, tail: MessageNode) -> None:
        """Take the run from *head* to *tail* out of *page*, and link its neighbours. O(length of the run)."""
        before, after = head.prev, tail.next
        starts, ends = head is page.head, tail is page.tail
        self.messages.detach(head, tail)
        if starts and ends:
            page.head = page.tail = None
        elif starts:
            page.head = after
        elif ends:
            page.tail = before

    def _check(self) -> None:
        self.messages._check()
        nodes = iter(self.messages)
        for page in self:
            page._check()
            for node in page:
                assert next(nodes, None) is node, "the pages cover the list, in order"
        assert next(nodes, None) is None, "no message stands outside the pages"
