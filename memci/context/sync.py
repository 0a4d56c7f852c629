"""Sync: finds the messages of a framework's list that are not stored yet.

    stored   u1 a1 u2            stored   u1 a1 u2                      stored   u1 a1 u2
    list     u1 a1 u2 a2 u3      list     u1 a1 u4 a4                   list     u2 a2 u3
             ──▶  a2 u3                   ──▶  Diverged(position=2, turn=0)  not whole ──▶  a2 u3

Two messages are equal if their bytes are, or else their `memci.formats.identity`: a framework may move a mark of the
cache, or renew an id. What is stored stays as it is. Stored digests are read once, and then only new ones; a message is
read where the digests differ. An erased message counts as equal, and an empty answer may be missing.
"""

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple

from ..errors import Diverged
from ..formats.envelope import is_silent
from ..formats.identity import identity
from ..history.reader import Reader
from ..messages import Enveloped, Message, text_of
from ..rows import PageState
from ..storage.codec import ERASED, digest, encode
from ..window.window import Window

_PART: Final = 2
"""messages in a row that are the same in two lists that are versions of one; one alone may be a common "Done." """


class _Run(NamedTuple):
    """Messages in a row that are the same in the list and in what is stored."""

    listed: int  # the place of the first one in the list
    stored: int  # its place in what is stored
    listed_end: int
    stored_end: int


class SyncLog:
    """The digests of the messages of one context, in order, as far as they were read."""

    def __init__(self) -> None:
        self._seqs: list[int] = []
        self._digests: list[bytes | None] = []
        self._identities: dict[int, tuple[bytes, bool]] = {}
        """by seq, of the messages that were read: their identity, and whether they are an empty answer"""
        self._read: tuple[str, tuple[int, ...], int] = ("", (), 0)
        """the context; how many of its pages were taken back, how often something was erased, and the first seq that
        was read; and the next seq"""

    def follow(self, window: Window, reader: Reader, first: int) -> None:
        """Read the digests of new messages; all from seq *first* on if something was taken back. O(new messages)."""
        record, state = window.record, window.state
        known = (record.id, (state.undone, state.erasures, first), record.head)
        start = self._read[2]
        if known[:2] != self._read[:2] or known[2] < start:
            self._seqs, self._digests, start = [], [], first
            self._identities.clear()
        for entry in reader.standing(record, start, [PageState.UNDONE]):
            self._seqs.append(entry.seq)
            self._digests.append(None if entry.codec == ERASED else entry.digest)
        self._read = known

    def new(
        self, messages: Sequence[Message], window: Window, reader: Reader, *, whole: bool = True, start: int = 0
    ) -> Sequence[Message]:
        """Return those of *messages* that are not stored yet. O(messages), and O(stored messages) if not *whole*.

        The list begins with the stored message *start*. Diverged if one differs from what is stored in its place, or if
        there are fewer. Before that, all digests are read again, since a message may have been erased.
        """
        self.follow(window, reader, start)
        first = messages[0] if messages else {}
        front = first.get("role") in {"system", "developer"} and text_of(first) == window.system.prompt
        messages = messages[front:]
        run = self._run(messages, reader, whole=whole)
        if run.stored_end < len(self._digests):
            self._read = ("", (), 0)
            self.follow(window, reader, start)
            run = self._run(messages, reader, whole=whole)
        if run.stored_end < len(self._digests):
            row, before = reader.page_of(self._seqs[run.stored_end], window.record), messages[: run.listed_end]
            items = (
                len(each.native.items) - each.native.joins if isinstance(each, Enveloped) else 1 for each in before
            )
            raise Diverged(front + sum(items), row.turn - 1 if row.turn else None)
        return messages[run.listed_end :]

    def _run(self, messages: Sequence[Message], reader: Reader, *, whole: bool) -> _Run:
        """Return the run of stored messages behind which new ones of the list follow, or from which on it differs.

        If the list may be only the end of the conversation, it is matched with the end of what is stored, unless all of
        that was erased. A list of one message, or without a match, follows all that is stored. A list that begins like
        the conversation is the whole of it. One with another beginning, whose later messages are stored, was compacted
        if fewer messages are in front of these, and else edited.
        """
        digests = [digest(*encode(message)[:2]) for message in messages]
        count, behind = len(messages), len(self._digests)

        def equal(listed: int, stored: int) -> bool:
            known = self._digests[stored]
            if known is None or known == digests[listed]:
                return True
            return self._identity(stored, reader)[0] == identity(messages[listed])

        def walk(listed: int, stored: int) -> _Run:
            at, place = listed, stored
            while place < behind:
                if at < count and equal(at, place):
                    at, place = at + 1, place + 1
                elif self._digests[place] is not None and self._identity(place, reader)[1]:
                    place += 1
                elif at < count and is_silent(messages[at]):
                    at += 1
                else:
                    break
            return _Run(listed, stored, at, place)

        start = walk(0, 0)
        if whole or start.stored_end == behind:
            return start
        ends = (walk(0, at) for at in range(max(0, behind - count), behind) if equal(0, at))
        end = next((run for run in ends if run.stored_end == behind and any(self._digests[run.stored :])), None)
        if end is not None and end.listed_end >= start.listed_end:
            return end
        if count > 1 and start.listed_end:
            return start
        if 1 < behind < count and all(equal(at, at) for at in range(1, behind)):
            return _Run(0, 0, 0, 0)  # only the first message differs: it was edited
        part = self._longest(messages, reader) if count > _PART else None
        if part is None:
            return _Run(0, behind, 0, behind)
        run = walk(*part)
        return run if run.listed < run.stored else _Run(0, 0, 0, 0)

    def _longest(self, messages: Sequence[Message], reader: Reader) -> tuple[int, int] | None:
        """Return where the longest part of *messages* begins that is stored: in the list, and in what is stored.

        None if that is only one message. O(messages · stored messages), for a list with an unknown beginning.
        """
        listed = [identity(message) for message in messages]
        stored = [b"" if each is None else self._identity(at, reader)[0] for at, each in enumerate(self._digests)]
        found = SequenceMatcher(None, listed, stored, autojunk=False).find_longest_match()
        return (found.a, found.b) if found.size >= _PART else None

    def _identity(self, at: int, reader: Reader) -> tuple[bytes, bool]:
        """Return the identity of the stored message *at*, and whether it is an empty answer. O(its bytes), once."""
        seq = self._seqs[at]
        if seq not in self._identities:
            message = reader.message(seq)
            self._identities[seq] = identity(message), is_silent(message)
        return self._identities[seq]
