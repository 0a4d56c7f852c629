"""Branches: what other lists of the same conversation have, and the list of now does not.

    log      u1 a1 u2 a2 u3            edited: u2 and what follows are abandoned
    list     u1 a1 u4                  a fork of the log; back to the log, u4 is abandoned

An abandoned branch stays in the store. If the client returns to it, the memory gets its pages again.
"""

from collections.abc import Iterable, Iterator

from ..memory.backend import MemoryBackend, Scope
from ..memory.repository.page_source import shared_before
from ..storage import Storage
from .context import Context


def withdraw_others(storage: Storage, context: Context, others: Iterable[str] = ()) -> None:
    """Let a memory that contexts share know this branch of the conversation, and no other one.

    *others* are contexts of the same conversation that may have no message in common with this one. O(branches, and
    their pages).
    """
    memory, lineage = context.memory, _lineage(storage, context.id)
    for name in _withdrawn(storage, context.id, memory):  # the client has returned to its pages
        with Context.open(storage, name, owner=context.owner) as branch:
            branch.flush()
    for scope in [*_abandoned(storage, context.id), *(Scope(name) for name in others if name not in lineage)]:
        memory.erase(scope)


def _abandoned(storage: Storage, context: str) -> Iterator[Scope]:
    """Yield the pages of one owner that branches of this conversation have and *context* has not.

    O(branches, and their pages).
    """
    lineage = _lineage(storage, context)
    waiting = [*lineage.items()]
    for name, base in waiting:
        own = [row.index for row in storage.pages(name) if row.end is None or row.end > base]
        if own and name != context:
            yield Scope(name, own)
        waiting += [(fork.id, fork.base) for fork in storage.forks(name) if fork.id not in lineage]


def _withdrawn(storage: Storage, context: str, memory: MemoryBackend) -> Iterator[str]:
    """Yield the ancestors of *context* whose shared pages were withdrawn from *memory*. O(pages · ancestors)."""
    for name, base in _lineage(storage, context).items():
        shared = [row.index for row in storage.pages(name) if row.end is not None and row.end <= base]
        if name != context and shared and memory.acknowledged(name) < shared[-1]:
            yield name


def _lineage(storage: Storage, context: str) -> dict[str, int]:
    """Return *context* and its ancestors of the same owner, with the seqs before which their entries are shared."""
    loaded = storage.load(context)
    return {} if loaded is None else {context: loaded[0].head, **dict(shared_before(storage, loaded[0]))}
