"""Trimmed lists: finds the stored conversation whose end a list is.

    log      u1 a1 u2 a2 u3             the client keeps its newest messages: the list begins with the third one
    list           u2 a2 u3 a3 u4       ──▶  a3 u4 are new

What the client dropped stays in the conversation. Those that a user had last are looked at first, so that a list which
moves on with each request is found at once, however many there are.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import takewhile
from operator import eq
from typing import Final

from ..context.branches import visible
from ..errors import CorruptRecord, KeyMissing
from ..formats.identity import identity
from ..history.reader import GONE, Reader
from ..messages import Message
from ..storage import Storage

_RUN: Final = 3  # equal messages in a row that show that a list begins within a context: two may be equal by chance
_LAST: Final = 2  # as many are enough at the end of a context
_DROPPED: Final = 64  # messages that a client drops between two requests, at most, beside as many as it keeps
_OWNERS: Final = 4_096
_RECENT: Final = 8  # conversations of one owner; what is not among these is looked for in the store


class Recent:
    """The conversations that each owner had last in this process. Threads may share it."""

    def __init__(self) -> None:
        self._names: OrderedDict[str, tuple[str, ...]] = OrderedDict()

    def note(self, owner: str, context: str) -> None:
        """Note that *owner* has just used *context*."""
        names = self._names.pop(owner, ())
        self._names[owner] = (context, *(name for name in names if name != context))[:_RECENT]
        if len(self._names) > _OWNERS:
            self._names.popitem(last=False)

    def of(self, owner: str) -> tuple[str, ...]:
        """Return the contexts that *owner* used last, the newest first."""
        return self._names.get(owner, ())


def find(storage: Storage, owner: str, contexts: Iterable[str], listed: Sequence[Message]) -> tuple[str, int] | None:
    """Return the context of *owner* within which *listed* begins, with the seq of the message; None if there is none.

    Of several it is the one from which the list differs least. O(contexts · messages of the list).
    """
    wanted, found = [identity(message) for message in listed], list[tuple[tuple[int, bool], str, int]]()
    for context in contexts:
        loaded = storage.load(context)
        if loaded is not None and loaded[0].owner == owner:
            start = max(0, loaded[0].head - 2 * len(wanted) - _DROPPED)
            with suppress(CorruptRecord, KeyMissing):  # one that can't be read stops no other
                log = [*visible(Reader(storage, context).standing(loaded[0], start, GONE))]
                found += [(same, context, seq) for same, seq in _beginnings(log, wanted)]
    best = max(found, key=lambda each: each[0], default=None)
    return best and best[1:]


def _beginnings(log: Sequence[tuple[int, bytes]], wanted: Sequence[bytes]) -> Iterator[tuple[tuple[int, bool], int]]:
    """Yield the places in *log* where the list *wanted* may begin: how much is the same from there on, and the seq.

    Its first messages are there in a row, or at least half of it: something was deleted or edited as it was trimmed.
    What is the same: messages that both have, less those that only the log has; and whether the list goes on behind
    the log. O(messages of both, as often as the first one is repeated).
    """
    for place, (seq, first) in enumerate(log):
        if first == wanted[0]:
            behind = [each for _, each in log[place:]]
            run = sum(takewhile(bool, map(eq, behind, wanted)))
            common = (Counter(behind) & Counter(wanted)).total()
            if run >= (_LAST if run == len(behind) else _RUN) or common >= max(_RUN, len(wanted) / 2):
                yield (2 * common - len(behind), run == len(behind)), seq
