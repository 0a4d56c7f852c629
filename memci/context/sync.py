"""Sync: finds the messages of a framework's list that are not stored yet.

    stored   u1 a1 u2            stored   u1 a1 u2                      stored   u1 a1 u2
    list     u1 a1 u2 a2 u3      list     u1 a1 u4 a4                   list     u2 a2 u3
             ──▶  a2 u3                   ──▶  Diverged(position=2, turn=0)  not whole ──▶  a2 u3

Messages are compared by the digests of their bytes. Stored digests are read once, and then only new ones. An erased
message counts as equal.
"""

from collections.abc import Sequence

from ..errors import Diverged
from ..history.reader import Reader
from ..messages import Enveloped, Message, text_of
from ..rows import PageState
from ..storage.codec import ERASED, digest, encode
from ..window.window import Window


class SyncLog:
    """The digests of the messages of one context, in order, as far as they were read."""

    def __init__(self) -> None:
        self._seqs: list[int] = []
        self._digests: list[bytes | None] = []
        self._read: tuple[str, tuple[int, ...], int] = ("", (), 0)
        """the context, how many of its pages were taken back or erased and when, and its next seq"""

    def follow(self, window: Window, reader: Reader) -> None:
        """Read the digests of new messages; all digests if something was taken back. O(new messages)."""
        record, state = window.record, window.state
        known = (record.id, (state.undone, state.erased, state.since), record.head)
        start = self._read[2]
        if known[:2] != self._read[:2] or known[2] < start:
            self._seqs, self._digests, start = [], [], 0
        for entry in reader.standing(record, start, [PageState.UNDONE]):
            self._seqs.append(entry.seq)
            self._digests.append(None if entry.codec == ERASED else entry.digest)
        self._read = known

    def new(
        self, messages: Sequence[Message], window: Window, reader: Reader, *, whole: bool = True
    ) -> Sequence[Message]:
        """Return those of *messages* that are not stored yet. O(messages), and O(stored messages) if not *whole*.

        Diverged if one differs from what is stored in its place, or if there are fewer. Before that, all digests are
        read again, since a message may have been erased.
        """
        self.follow(window, reader)
        first = messages[0] if messages else {}
        front = first.get("role") in {"system", "developer"} and text_of(first) == window.system.prompt
        messages = messages[front:]
        digests = [digest(*encode(message)[:2]) for message in messages]
        start = 0 if whole else self._start(digests)
        if start == 0 and self._differs(digests) is not None:
            self._read = ("", (), 0)
            self.follow(window, reader)
            start = 0 if whole else self._start(digests)
        if start == 0 and (at := self._differs(digests)) is not None:
            row = reader.page_of(self._seqs[at], window.record)
            items = (len(a.native.items) - a.native.joins if isinstance(a, Enveloped) else 1 for a in messages[:at])
            raise Diverged(front + sum(items), row.turn - 1 if row.turn else None)
        return messages[len(self._digests) - start :]

    def _differs(self, digests: Sequence[bytes], start: int = 0) -> int | None:
        """Return the position, from *start* on, of the first stored digest that *digests* does not match, or None."""
        for at, stored in enumerate(self._digests[start:]):
            if at >= len(digests) or (stored is not None and stored != digests[at]):
                return at
        return None

    def _start(self, digests: Sequence[bytes]) -> int:
        """Return how many stored messages come before a list that may be only the end of the conversation.

        The beginning of the list is matched with the end of what is stored, unless all of that was erased. A list of
        one message, or without a match, follows all that is stored. A list that begins like the conversation is the
        whole of it, and may have diverged.
        """
        stored = self._digests
        if digests and self._differs(digests) is None:
            return 0
        ends = range(max(0, len(stored) - len(digests)), len(stored))
        found = next((at for at in ends if self._differs(digests, at) is None and any(stored[at:])), len(stored))
        return 0 if found == len(stored) and len(digests) > 1 and stored[:1] == digests[:1] else found
