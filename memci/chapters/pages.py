"""Pages: one interaction each, as views on a chapter's list.

A page holds no messages. It knows the first and the last node of its run:

    list    root <-> u1 <-> a1 <-> u2 <-> a2 <-> t2 <-> a3 <-> (root)
    pages            [  #1   ]     [         #2         ]

An entry names one message for its whole life: page and ordinal. The ordinal counts the messages of the interaction
from 1, also where a long page was split: the part that was cut out keeps the numbers that it had. This module knows
nothing of chapters, rendering or storage.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from .messagelist import MessageNode


@dataclass(frozen=True, slots=True)
class Entry:
    """The handle of one message: where it is found, whoever shows it."""

    page: int
    ordinal: int
    """its number within the interaction, from 1"""
    role: str
    summary: str = ""
    """its line on the Contents Page, once it is archived"""
    node: MessageNode | None = field(default=None, compare=False, repr=False)
    """its place in the window, None when it is not there"""


class Page:
    """One interaction in a window: the run of nodes from `head` to `tail`."""

    __slots__ = ("base", "head", "index", "tail")

    def __init__(self, index: int, base: int) -> None:
        self.index = index
        self.base = base
        """seq of the interaction's first message: ordinals count from here"""
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
        """Count the messages. O(messages of the page)."""
        return sum(1 for _ in self)

    @property
    def tokens(self) -> int:
        """What the page costs in the window. O(messages of the page)."""
        return sum(node.tokens for node in self)

    def ordinal(self, node: MessageNode) -> int:
        """Return the number of *node* within the interaction."""
        return node.seq - self.base + 1

    def entries(self) -> Iterator[Entry]:
        """Yield the handle of every message of the page."""
        for node in self:
            yield Entry(self.index, self.ordinal(node), node.message["role"], node=node)

    def _check(self) -> None:
        assert (self.head is None) == (self.tail is None), "a page has both ends or none"
        nodes = list(self)
        assert not nodes or nodes[-1] is self.tail, "the tail is reached from the head"
        seqs = [node.seq for node in nodes]
        assert seqs == sorted(set(seqs)), "the messages of a page stand in the order in which they came"
        assert all(seq >= self.base for seq in seqs), "ordinals count from 1"
