"""Pages: one interaction each, as views on a chapter's list.

A page holds no messages. It knows the first and the last node of its run:

    list    root <-> u1 <-> a1 <-> u2 <-> a2 <-> t2 <-> a3 <-> (root)
    pages            [  #1   ]     [         #2         ]

An entry is the lasting name of one message: page and ordinal. The ordinal counts the messages of the interaction from
1. If a long page is split, the part that was cut out keeps the ordinals that it had. This module knows nothing of
chapters, rendering or storage.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from .messagelist import MessageNode


@dataclass(frozen=True, slots=True)
class Entry:
    """The lasting name of one message: its page, and its number in the interaction.

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
    """its line on the Contents Page, once it is archived"""
    node: MessageNode | None = field(default=None, compare=False, repr=False)
    """its node in the window; None: it is not there"""


class Page:
    """One interaction in a window: the run of nodes from `head` to `tail`.

    >>> from memci import Chapter, MessageNode
    >>> chapter = Chapter()
    >>> page = chapter.open_page(index=1, base=0)
    >>> chapter.extend(page, MessageNode({"role": "user", "content": "Hello"}, tokens=5, seq=0))
    >>> page, page.tokens, [entry.ordinal for entry in page.entries()]
    (<Page #1 of 1>, 5, [1])

    Args:
        index: Its number in the context, from 1.
        base: `seq` of the interaction's first message: ordinals count from there.
    """

    __slots__ = ("base", "head", "index", "tail")

    def __init__(self, index: int, base: int) -> None:
        self.index = index
        self.base = base
        """`seq` of the interaction's first message: ordinals count from there"""
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

    def __len__(self) -> int:
        """Return how many messages the page has in the window. O(messages of the page)."""
        return sum(1 for _ in self)

    @property
    def tokens(self) -> int:
        """What the page costs in the window. O(messages of the page)."""
        return sum(node.tokens for node in self)

    def ordinal(self, node: MessageNode) -> int:
        """Return the number of *node* within the interaction, from 1."""
        return node.seq - self.base + 1

    def entries(self) -> Iterator[Entry]:
        """Yield an entry for every message of the page, in order."""
        for node in self:
            yield Entry(self.index, self.ordinal(node), node.message["role"], node=node)

    def _check(self) -> None:
        assert (self.head is None) == (self.tail is None), "a page has both ends or none"
        nodes = list(self)
        assert not nodes or nodes[-1] is self.tail, "the tail is reached from the head"
        seqs = [node.seq for node in nodes]
        assert seqs == sorted(set(seqs)), "the messages of a page stand in the order in which they came"
        assert all(seq >= self.base for seq in seqs), "ordinals count from 1"
