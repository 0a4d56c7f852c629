"""Branches: what other lists of the same conversation have, and the list of now does not.

    log      u1 a1 u2 a2 u3            edited: u2 and what follows are abandoned
    list     u1 a1 u4                  a fork of the log; back to the log, u4 is abandoned

An abandoned branch stays in the store. If the client returns to it, the memory gets its pages again.

    log      u1 a1 u2 a2 u3 a3 u4      compacted: what follows the front is known by the new context alone, so that
    list     s     u2 a2       u4      an edit counts there, too
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from itertools import pairwise
from typing import Final

from ..errors import CorruptRecord, KeyMissing
from ..formats.identity import identity
from ..history.reader import GONE
from ..memory.backend import Scope
from ..memory.repository.page_source import page_keys, shared_before
from ..memory.tiered_memory import TieredMemory
from ..messages import Message, call_name, tool_calls
from ..storage import Storage
from ..storage.codec import decode
from ..storage.protocol import ContextRecord, EntryRow
from ..tools.recall_page import RECALL_PAGE
from ..tools.search_memory import SEARCH_MEMORY
from .context import Context

_END: Final = 16  # messages at the end of a context that show whether a list goes on from there
_OWN_TOOLS: Final = frozenset(map(call_name, (RECALL_PAGE, SEARCH_MEMORY)))
_RUN: Final = 3  # messages in a row that show that a list goes on within a context: two may be equal by chance


def withdraw_others(storage: Storage, context: Context, others: Iterable[str] = ()) -> None:
    """Let a memory that contexts share know this branch of the conversation, and no other one.

    *others* are contexts of the same conversation that may have no message in common with this one. O(branches, and
    their pages).
    """
    memory, loaded = context.memory, storage.load(context.id)
    lineage = {} if loaded is None else {context.id: loaded[0].head, **dict(shared_before(storage, loaded[0]))}
    for name, base in lineage.items():
        shared = [row.index for row in storage.pages(name) if row.end is not None and row.end <= base]
        if name != context.id and shared and memory.acknowledged(name) < shared[-1]:  # the client has returned to them
            with Context.open(storage, name, owner=context.owner) as branch:
                branch.flush()
    for scope in [*_abandoned(storage, context.id, lineage), *(Scope(name) for name in others if name not in lineage)]:
        memory.erase(scope)


def _abandoned(storage: Storage, context: str, lineage: dict[str, int]) -> Iterator[Scope]:
    """Yield the pages of one owner that branches of this conversation have and *context* has not.

    *lineage* has the context and its ancestors of the same owner, with the seqs before which their entries are shared.
    O(branches, and their pages).
    """
    waiting = [*lineage.items()]
    for name, base in waiting:
        own = [row.index for row in storage.pages(name) if row.end is None or row.end > base]
        if own and name != context:
            yield Scope(name, own)
        waiting += [(fork.id, fork.base) for fork in storage.forks(name) if fork.id not in lineage]


def overlapping(storage: Storage, owner: str, listed: Sequence[Message]) -> list[ContextRecord]:
    """Return the contexts of *owner* within whose last messages *listed* begins, or goes on.

    Those whose end the memory knows from another context are left out. O(contexts of the owner).
    """
    pairs, found = {*pairwise(map(identity, listed))}, []
    with closing(TieredMemory(storage, owner=owner, read_only=True)) as memory:
        for record in storage.contexts(owner=owner):
            fed = 0 if record.parent else (record.open_page or record.next_page) - 2  # at least: one may be on its way
            if memory.acknowledged(record.id) < fed:  # its end was taken over before
                continue
            end = storage.entries(record.id, max(0, record.head - _END), record.head)
            with suppress(CorruptRecord, KeyMissing):  # one that can't be read stops no other
                if not pairs.isdisjoint(pairwise(each for _, each in visible(end))):
                    found.append(record)
    return found


def take_over(storage: Storage, context: Context, other: ContextRecord, listed: Sequence[Message]) -> None:
    """Let a shared memory know from *context* alone what its list has of *other*: it was compacted.

    The pages of *other* are withdrawn from the message on with which *listed* goes on. O(messages of *other*).
    """
    rows = [row for row in storage.pages(other.id) if row.state not in GONE]
    spans = ((row, span) for row in rows for span in row.spans(other.head))
    said = [(row.index, each) for row, span in spans for _, each in visible(storage.entries(other.id, *span))]
    wanted = [identity(message) for message in listed]
    log = [each for _, each in said]
    at, start = _common(log, wanted)
    if start is None:
        return
    for before in reversed(wanted[:at]):  # what was deleted since stands between messages that stay
        start = next((place for place in range(start - 1, -1, -1) if log[place] == before), start)
    pages = defaultdict(list)
    for index, (name, own) in page_keys(storage, other.id, rows, shared_before(storage, other)).items():
        if index >= said[start][0]:
            pages[name].append(own)
    for name, indexes in pages.items():
        context.memory.erase(Scope(name, indexes))


def _common(log: Sequence[bytes], listed: Sequence[bytes]) -> tuple[int, int | None]:
    """Return the places in *listed* and in *log* of the first messages in a row that both have; None: there are none.

    Of several places in the log it is that with the most messages in a row. O(messages, as often as they are repeated).
    """
    places = defaultdict(list)
    for place, each in enumerate(log):
        places[each].append(place)
    for at, each in enumerate(listed):
        runs = [(_run(log, place, listed, at), -place) for place in places.get(each, ())]
        run, place = max(runs, default=(0, 0))
        if run >= _RUN:
            return at, -place
    return 0, None


def _run(log: Sequence[bytes], place: int, listed: Sequence[bytes], at: int) -> int:
    """Return how many messages are equal from these two places on. O(these)."""
    most = min(len(log) - place, len(listed) - at)
    return next((count for count in range(most) if log[place + count] != listed[at + count]), most)


def visible(entries: Iterable[EntryRow]) -> Iterator[tuple[int, bytes]]:
    """Yield seq and identity of the messages that a client has: without calls of memci's tools, and their results."""
    hidden: set[object] = set()
    for entry in entries:
        message = decode(entry.codec, entry.body)
        mine = {call["id"] for call in tool_calls(message) if call_name(call) in _OWN_TOOLS}
        hidden |= mine
        if not mine and message.get("tool_call_id") not in hidden:
            yield entry.seq, identity(message)
