"""A doubly linked list of messages.

The list is circular, with a sentinel at its beginning and end, so that an empty list is no special case:

    root <-> a <-> b <-> c <-> (root)

A run of nodes is removed from any place without a walk: its neighbours are linked.

    detach(b, c):   root <-> a <-> (root)        b <-> c

Every chapter owns one list. A node has a message, its tokens, and its view: the message in renderings, whole or
clipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

from ..messages import Message


class Group(Protocol):
    """The tool group of a node (`toolgroups.ToolGroup`), as nodes use it."""

    head: MessageNode
    settled: bool  # no more results can come

    @property
    def missing(self) -> list[str]:
        """The ids of the calls that have no result, in order."""
        ...

    def view(self) -> Iterator[Message]:
        """Yield the messages that the group shows."""
        ...


class MessageNode:
    """One message of a window, and its links in the list that holds it.

    >>> node = MessageNode({"role": "user", "content": "Hello"}, tokens=5, seq=0)
    >>> node.view is node.message, node.tokens, node
    (True, 5, <MessageNode seq=0 role=user tokens=5>)

    Args:
        message: The message, as it is stored. It is never changed.
        tokens: The tokens of its view, with framing.
        seq: Its number in the context, from 0 in the order of appending.
        view: Default: the message itself.
    """

    __slots__ = (
        *("at", "clip", "date", "dated", "full", "group", "message", "next", "owner", "prev", "quotes", "seq", "spans"),
        "tokens",
        "view",
    )

    def __init__(
        self,
        message: Message,
        tokens: int,
        *,
        seq: int = 0,
        clip: int = 0,
        quotes: tuple[int, int | None] | None = None,
        spans: tuple[int, ...] | None = None,
        view: Message | None = None,
        at: str | None = None,
    ) -> None:
        self.message = message
        self.view = message if view is None else view
        """the message in renderings"""
        self.tokens = tokens
        """the tokens of the view"""
        self.seq = seq
        self.clip = clip
        """the tokens that its view is clipped to; 0 if it is whole"""
        self.quotes = quotes
        """the page and the entry that it quotes, if it is the answer to a recall"""
        self.spans = spans
        """the pieces that its view shows, if that is a digest"""
        self.full = 0
        """the tokens of the message itself, if that is a digest; 0: not counted yet"""
        self.at = at
        """when it was said (ISO 8601), as it is stored; None: unknown"""
        self.date: Message | None = None
        """the message before it in renderings that tells its time, if one does"""
        self.dated = 0
        """the tokens of that, which are part of its own"""
        self.group: Group | None = None
        """its tool group, which shows its messages together"""
        self.prev: MessageNode = self
        self.next: MessageNode = self
        self.owner: MessageList | None = None

    @property
    def whole(self) -> bool:
        """Whether its view is neither clipped nor a digest."""
        return not self.clip and self.spans is None

    def __repr__(self) -> str:
        return f"<MessageNode seq={self.seq} role={self.message.get('role')} tokens={self.tokens}>"


class MessageList:
    """A doubly linked list of nodes that keeps its length and its tokens.

    >>> messages = MessageList()
    >>> nodes = [MessageNode({"role": "user", "content": text}, tokens=len(text)) for text in ("one", "two", "three")]
    >>> for node in nodes:
    ...     messages.append(node)
    >>> len(messages), messages.tokens
    (3, 11)
    >>> messages.detach(nodes[0], nodes[1])
    >>> [node.message["content"] for node in messages], messages.tokens
    (['three'], 5)
    """

    __slots__ = ("_length", "end", "tokens")

    def __init__(self) -> None:
        self.end: Final = MessageNode({}, 0)
        """the sentinel, which is in front of the first node and behind the last one"""
        self._length = 0
        self.tokens = 0
        """the tokens of all views"""

    def append(self, node: MessageNode) -> None:
        """Put *node* at the end. O(1)."""
        self.insert(node, before=self.end)

    def insert(self, node: MessageNode, *, before: MessageNode) -> None:
        """Put *node* in front of *before*; ValueError if *node* is in a list, or *before* not in this one. O(1)."""
        if node.owner is not None or not (before is self.end or before.owner is self):
            raise ValueError(f"{node!r} is in a list already, or {before!r} is not in this one")
        last = before.prev
        node.prev, node.next = last, before
        last.next = before.prev = node
        node.owner = self
        self._length += 1
        self.tokens += node.tokens

    def detach(self, head: MessageNode, tail: MessageNode) -> None:
        """Remove the nodes from *head* to *tail*. O(removed nodes).

        They stay linked to each other.

        Raises:
            ValueError: If *tail* is not reached from *head* in this list; nothing has changed then.
        """
        run = list(self._run(head, tail))  # raises before a link is changed
        head.prev.next, tail.next.prev = tail.next, head.prev
        head.prev, tail.next = tail, head
        for node in run:
            node.owner = None
            self.tokens -= node.tokens
        self._length -= len(run)

    def reweigh(self, node: MessageNode, tokens: int) -> None:
        """Set the tokens of the view of *node*; ValueError if it is not in this list. O(1)."""
        if node.owner is not self:
            raise ValueError(f"{node!r} is not in this list")
        self.tokens += tokens - node.tokens
        node.tokens = tokens

    @property
    def head(self) -> MessageNode | None:
        """The first node, None if there is none."""
        return self.end.next if self._length else None

    @property
    def tail(self) -> MessageNode | None:
        """The last node, None if there is none."""
        return self.end.prev if self._length else None

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[MessageNode]:
        node = self.end.next
        while node is not self.end:
            yield node
            node = node.next

    def __reversed__(self) -> Iterator[MessageNode]:
        node = self.end.prev
        while node is not self.end:
            yield node
            node = node.prev

    def _run(self, head: MessageNode, tail: MessageNode) -> Iterator[MessageNode]:
        if head.owner is not self or tail.owner is not self:
            raise ValueError(f"{head!r} to {tail!r} is not a run of this list")
        node = head
        while node is not self.end:
            yield node
            if node is tail:
                return
            node = node.next
        raise ValueError(f"{tail!r} does not come after {head!r} in this list")
