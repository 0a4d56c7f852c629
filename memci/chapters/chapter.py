"""A chapter: an ordered run of pages over one list of messages. A page: one interaction, a part of that list.

    list    root <-> u1 <-> a1 <-> u2 <-> a2 <-> t2 <-> a3 <-> (root)
    pages            [  #1   ]     [         #2         ]                no gap, no overlap

A page stores no messages, only the first and the last node of its run. When it leaves the chapter, its run leaves the
list and stays linked: `add` puts the page back, into this chapter or another one, where its messages belong by `seq`.
What would mix two pages is refused with a ValueError, and nothing has changed then.

An entry is the permanent name of one message: page and ordinal. The ordinal counts the messages of the interaction from
1. When a part of a page leaves the window, all messages keep their ordinals.
"""

from collections.abc import Iterator
from typing import NamedTuple

from .messagelist import MessageList, MessageNode


class Entry(NamedTuple):
    """The permanent name of one message: its page, and its number in the interaction.

    >>> from memci import Context, EphemeralStorage
    >>> context = Context.open(EphemeralStorage(), id="alice", window=8_000)
    >>> receipt = context.append_turn("Hello", {"role": "assistant", "content": "Hi"})
    >>> [(entry.page, entry.ordinal, entry.role) for entry in receipt.entries]
    [(1, 1, 'user'), (1, 2, 'assistant')]
    >>> context.recall_page(1, entry=2)[0]["content"]
    'Hi'
    """

    page: int
    """the index of its page, from 1"""
    ordinal: int
    """its number within the interaction, from 1"""
    role: str
    summary: str = ""
    """its line on the Contents Page, after it was archived"""


class Page:
    """One interaction in a window, the page *index* (from 1): the run of nodes from `head` to `tail`.

    >>> from memci.chapters import Chapter, MessageNode
    >>> chapter = Chapter()
    >>> page = chapter.open_page(index=1, base=0)
    >>> chapter.extend(page, MessageNode({"role": "user", "content": "Hello"}, tokens=5, seq=0))
    >>> page, page.tokens, [entry.ordinal for entry in page.entries()]
    (<Page #1 of 1>, 5, [1])
    """

    __slots__ = ("base", "chapter", "head", "index", "tail")

    def __init__(self, index: int, base: int) -> None:
        self.index = index
        self.base = base
        """`seq` of the first message of the interaction, whose ordinal is 1"""
        self.chapter: Chapter | None = None
        """the chapter that it is in; None if it is in none"""
        self.head: MessageNode | None = None
        self.tail: MessageNode | None = None

    def __repr__(self) -> str:
        return f"<Page #{self.index} of {len(self)}>"

    def __iter__(self) -> Iterator[MessageNode]:
        node = self.head
        while node is not None:
            yield node
            if node is self.tail:
                return
            node = node.next

    @property
    def whole(self) -> bool:
        """Whether no message of it is clipped or a digest. O(messages)."""
        node = self.head
        while node is not None and node.whole:
            node = None if node is self.tail else node.next
        return node is None

    def __len__(self) -> int:
        """Return how many messages the page has in the window. O(messages of the page)."""
        return sum(1 for _ in self)

    @property
    def tokens(self) -> int:
        """The tokens of the page in the window. O(messages of the page)."""
        return sum(node.tokens for node in self)

    @property
    def asked(self) -> "MessageNode | None":
        """The user's message that opened it; None if it began differently, or has lost that message."""
        head = self.head
        return head if head is not None and head.seq == self.base and head.message["role"] == "user" else None

    @property
    def words(self) -> int:
        """The tokens of `asked`, the user's words that stay longest."""
        return self.asked.tokens - self.asked.dated if self.asked is not None else 0

    def detach(self) -> bool:
        """Leave the chapter with all messages; return whether it was in one. O(messages of the page)."""
        return self.chapter is not None and self.chapter.detach(self.index) is self

    def ordinal(self, node: MessageNode) -> int:
        """Return the number of *node* within the interaction, from 1."""
        return node.seq - self.base + 1

    def entries(self) -> Iterator[Entry]:
        """Yield an entry for every message of the page, in order."""
        for node in self:
            yield Entry(self.index, self.ordinal(node), node.message["role"])


class Chapter:
    """Pages in the order of their messages. Together they cover one MessageList, without gap or overlap.

    >>> from memci.chapters import MessageNode
    >>> chapter = Chapter()
    >>> for index, text in enumerate(["Hello", "How are you?"], start=1):
    ...     page = chapter.open_page(index, base=index)
    ...     chapter.extend(page, MessageNode({"role": "user", "content": text}, tokens=5, seq=index))
    >>> first = chapter.detach(1)
    >>> list(chapter), chapter.tokens
    ([<Page #2 of 1>], 5)
    >>> chapter.add(first)
    >>> [node.message["content"] for node in chapter.messages]
    ['Hello', 'How are you?']
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
        """The tokens of the chapter in the window."""
        return self.messages.tokens

    def page(self, index: int) -> Page | None:
        """Return the page with *index*, None if it is not in this chapter."""
        return self._pages.get(index)

    def open_page(self, index: int, base: int) -> Page:
        """Add an empty page at the end; *base* is the `seq` of its interaction's first message. ValueError if there is
        a page with *index*.
        """
        if index in self._pages:
            raise ValueError(f"page #{index} is in this chapter already")
        page = self._pages[index] = Page(index, base)
        page.chapter = self
        return page

    def extend(self, page: Page, node: MessageNode) -> None:
        """Put *node* at the end of *page*. O(1), but for an empty page that is not the last: O(pages).

        Raises:
            ValueError: If *page* is in another chapter or in none, if *node* is in a list, or if its `seq` does not lie
                between those of its neighbours.
        """
        if page.chapter is not self:
            raise ValueError(f"{page!r} is not in this chapter")
        end = self.messages.end
        after = end if page.tail is None else page.tail.next
        if page.tail is None:
            for each in reversed(self._pages.values()):
                if each is page:
                    break
                after = each.head or after
        before = after.prev
        fits = (before is end or before.seq < node.seq) and (after is end or node.seq < after.seq)
        if not fits or node.seq < page.base:
            raise ValueError(f"{node!r} does not belong at the end of {page!r}, which has messages from {page.base} on")
        self.messages.insert(node, before=after)
        page.tail = node
        if page.head is None:
            page.head = node

    def add(self, page: Page) -> None:
        """Put *page*, which was detached, where its messages belong by `seq`. O(pages + its messages).

        Raises:
            ValueError: If it is in a chapter, if this one has a page with its index, or if its messages lie among those
                of another page.
        """
        if page.chapter is not None or page.index in self._pages:
            raise ValueError(f"page #{page.index} is in a chapter already")
        nodes = list(page)
        first = nodes[0].seq if nodes else page.base
        for each in self if nodes else ():
            if each.head and each.tail and each.head.seq <= nodes[-1].seq and first <= each.tail.seq:
                raise ValueError(f"{page!r} and {each!r} overlap: messages {first} to {nodes[-1].seq}")
        later = [each for each in self if (each.base if each.head is None else each.head.seq) > first]
        after = next((each.head for each in later if each.head is not None), self.messages.end)
        for node in nodes:
            self.messages.insert(node, before=after)
        kept = [each for each in self if each not in later]
        self._pages = {each.index: each for each in (*kept, page, *later)}
        page.chapter = self

    def detach(self, index: int) -> Page:
        """Remove the page with *index* and its nodes, and return it; KeyError if there is none. O(its messages)."""
        page = self._pages.pop(index)
        if page.head is not None and page.tail is not None:
            self.messages.detach(page.head, page.tail)
        page.chapter = None
        return page

    def cut(self, page: Page, head: MessageNode, tail: MessageNode) -> None:
        """Remove the run from *head* to *tail* from *page*; ValueError if it has no such run. O(its messages)."""
        if page.chapter is not self or not {head, tail}.issubset(page):
            raise ValueError(f"{head!r} to {tail!r} is not a run of {page!r}")
        before, after = head.prev, tail.next
        starts, ends = head is page.head, tail is page.tail
        self.messages.detach(head, tail)
        if starts and ends:
            page.head = page.tail = None
        elif starts:
            page.head = after
        elif ends:
            page.tail = before
