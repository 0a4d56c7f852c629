"""Branches: what other lists of the same conversation have, and the list of now does not.

    log      u1 a1 u2 a2 u3            edited: u2 and what follows are abandoned
    list     u1 a1 u4                  a fork of the log; back to the log, u4 is abandoned

An abandoned branch stays in the store. If the client returns to it, the memory gets its pages again.
"""

from collections.abc import Iterable, Iterator

from ..memory.backend import Scope
from ..memory.repository.page_source import shared_before
from ..storage import Storage
from .context import Context


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
