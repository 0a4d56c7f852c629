"""Sync: what of a framework's list of messages is not stored yet.

    stored   u1 a1 u2            stored   u1 a1 u2
    list     u1 a1 u2 a2 u3      list     u1 a1 u4 a4
             ──▶  a2 u3                   ──▶  Diverged(position=2, turn=0)

Messages are compared by the digests of their bytes. Those that are stored are read once, and then only what is new;
what was erased counts as equal. This module knows nothing of who keeps the list.
"""

from collections.abc import Sequence

from ..errors import Diverged
from ..history.reader import Reader
from ..messages import Enveloped, Message, text_of
from ..storage.codec import ERASED, digest, encode
from ..storage.protocol import PageState
from ..window.window import Window


class SyncLog:
    """The digests of the messages of one context, in order, as far as they were read."""

    def __init__(self) -> None:
        self._seqs: list[int] = []
        self._digests: list[bytes | None] = []
        self._read: tuple[str, int, int] = ("", 0, 0)
        """the context, how many pages of it were taken back or erased, and its next seq"""

    def follow(self, window: Window, reader: Reader) -> None:
        """Read what was appended since it was read last; all of it if something was taken back. O(new messages)."""
        record, state = window.record, window.state
        known = (record.id, state.undone + state.erased, record.head)
        start = self._read[2]
        if known[:2] != self._read[:2] or known[2] < start:
            self._seqs, self._digests, start = [], [], 0
        for entry in reader.standing(record, start, [PageState.UNDONE]):
            self._seqs.append(entry.seq)
            self._digests.append(None if entry.codec == ERASED else entry.digest)
        self._read = known

    def new(self, messages: Sequence[Message], window: Window, reader: Reader) -> Sequence[Message]:
        """Return those of *messages* that are not stored yet. O(messages).

        What differs is read again before it is refused: it may have been erased since.

        Raises:
            Diverged: If one of them is not what is stored in its place, or if they are fewer than those that are.
        """
        self.follow(window, reader)
        first = messages[0] if messages else {}
        front = first.get("role") in {"system", "developer"} and text_of(first) == window.system.prompt
        messages = messages[front:]
        if self._differs(messages) is not None:
            self._read = ("", 0, 0)
            self.follow(window, reader)
        if (at := self._differs(messages)) is not None:
            row = reader.page_of(self._seqs[at], window.record)
            raise Diverged(front + _position(messages[:at]), row.turn - 1 if row.turn else None)
        return messages[len(self._digests) :]

    def _differs(self, messages: Sequence[Message]) -> int | None:
        """Return the place of the first of *messages* that is not what was read there, or None."""
        for at, stored in enumerate(self._digests):
            if at >= len(messages) or (stored is not None and stored != digest(*encode(messages[at])[:2])):
                return at
        return None


def _position(before: Sequence[Message]) -> int:
    """Return how many items of the caller's list hold the messages *before*."""
    return sum(len(each.native.items) - each.native.joins if isinstance(each, Enveloped) else 1 for each in before)
