"""A chapter: an ordered run of pages that owns one list of messages.

    list    root <-> u1 <-> a1 <-> u2 <-> a2 <-> (root)
    pages            [   #1  ]     [   #2  ]                no gap, no overlap

A page that leaves takes its run of nodes out of the list, from wherever it stands. The model never sees chapters.
This module knows nothing of what a chapter is for.
"""

from collections.abc import Iterator

from .messagelist import MessageList, MessageNode
from .pages import Page


class Chapter:
    """Pages in the order of their messages, tiling one MessageList."""

    def __init__(self) -> None:
        self.messages = MessageList()
        self._pages: dict[int, Page] = {}

    def __iter__(self) -> Iterator[Page]:
        return iter(self._pages.values())

    def __len__(self) -> int:
        return len(self._pages)

    def __contains__(self, index: object) -> bool:
        return index in self._pages

    def page(self, index: int) -> Page | None:
        """Return the page with *index*, None if it is not in this chapter."""
        return self._pages.get(index)

    def open_page(self, index: int, base: int) -> Page:
        """Add an empty page at the end; *base* is the seq of its interaction's first message."""
        assert index not in self._pages, "an index is given out once"
        page = self._pages[index] = Page(index, base)
        return page

    def extend(self, page: Page, node: MessageNode) -> None:
        """Put *node* at the end of *page*, which is the last one."""
        self.messages.append(node)
        page.tail = node
        if page.head is None:
            page.head = node

    def detach(self, index: int) -> Page:
        """Take a page and its run of nodes out. O(messages of the page)."""
        page = self._pages.pop(index)
        if page.head is not None and page.tail is not None:
            self.messages.detach(page.head, page.tail)
        return page

    def cut(self, page: Page, head: MessageNode, tail: MessageNode) -> None:
        """Take the run from *head* to *tail* out of *page*; its neighbours meet. O(length of the run)."""
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
                assert next(nodes, None) is node, "the pages tile the list"
        assert next(nodes, None) is None, "no message stands outside the pages"
