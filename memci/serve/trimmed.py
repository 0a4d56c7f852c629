"""Trimmed lists: finds the stored conversation whose end a list is.

    log      u1 a1 u2 a2 u3             the client keeps its newest messages: the list begins with the third one
    list           u2 a2 u3 a3 u4       ──▶  a3 u4 are new

What the client dropped stays in the conversation. Those that a user had last are looked at first, so that a list which
moves on with each request is found at once, however many there are.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
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
    """The conversations that each owner had last in this process."""

    def __init__(self) -> None:
        self._names: OrderedDict[str, deque[str]] = OrderedDict()

    def note(self, owner: str, context: str) -> None:
        """Note that *owner* has just used *context*."""
        names = self._names.pop(owner, None) or deque(maxlen=_RECENT)
        if context in names:
            names.remove(context)
        names.appendleft(context)
        self._names[owner] = names
        while len(self._names) > _OWNERS:
            self._names.popitem(last=False)

    def of(self, owner: str) -> list[str]:
        """Return the contexts that *owner* used last, the newest first."""
        return [*self._names.get(owner, ())]


def find(storage: Storage, owner: str, contexts: Iterable[str], listed: Sequence[Message]) -> tuple[str, int] | None:
    """Return the context of *owner* within which *listed* begins, with the seq of the message; None if there is none.

    Of several it is the one that has most of the list. O(contexts · messages of the list).
    """
    wanted, most, found = [identity(message) for message in listed], 0, None
    for context in contexts:
        with suppress(CorruptRecord, KeyMissing):  # one that can't be read stops no other
            run, seq = _begin(storage, owner, context, wanted)
            if run > most:
                most, found = run, (context, seq)
    return found


def _begin(storage: Storage, owner: str, context: str, wanted: Sequence[bytes]) -> tuple[int, int]:
    """Return how many messages from the first of *wanted* on *context* has in a row, and the seq of that; or 0, 0."""
    loaded = storage.load(context)
    if loaded is None or loaded[0].owner != owner:
        return 0, 0
    record, reader = loaded[0], Reader(storage, context)
    start = max(0, record.head - 2 * len(wanted) - _DROPPED)
    log = [*visible(reader.standing(record, start, GONE))]
    most, found = 0, 0
    for place, (seq, first) in enumerate(log):
        if first == wanted[0]:
            run = next(
                (count for count, (_, each) in enumerate(log[place:]) if [each] != wanted[count : count + 1]),
                len(log) - place,
            )
            if run > most and run >= (_LAST if place + run == len(log) else _RUN):
                most, found = run, seq
    return most, found
