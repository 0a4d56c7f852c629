"""Stores that break a promise, to see that the harnesses notice.

    Split           the pages move in one transaction, the Contents Page follows in another
    FAST_AS_FULL    does not sync, and is checked as if it did

This module knows nothing of faults.
"""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from memci import SQLiteStorage
from memci.rows import CallRow, CompactionRow, ContextRecord, EntryRow, OpRow, PageRow, PageState, Ticket
from memci.storage.protocol import ErasedRows, Erasure, Storage, Transition

from .scenario import Store


class Split:
    """Makes two transactions of each: revision r is 2r - 1 and then 2r in its *inner* store."""

    def __init__(self, inner: Storage) -> None:
        self._inner = inner

    def load(self, context: str) -> tuple[ContextRecord, str | None] | None:
        found = self._inner.load(context)
        return None if found is None else (_outer(found[0]), found[1])

    def revision(self, context: str) -> int:
        return (self._inner.revision(context) + 1) // 2

    def commit(self, transition: Transition) -> OpRow | None:
        record = transition.record
        self._whole(record.id)
        first = record._replace(revision=2 * record.revision - 1)
        known = self._inner.commit(transition._replace(record=first, compactions=()))
        if known is None:
            second = record._replace(revision=2 * record.revision)
            self._inner.commit(Transition(record.head, second, compactions=transition.compactions))
        return known

    def erase(self, erasure: Erasure) -> ErasedRows:
        changes = [each._replace(record=each.record._replace(revision=2 * each.record.revision - 1))
                   for each in erasure.transitions]  # fmt: skip
        for change in changes:
            self._whole(change.record.id)
        gone = self._inner.erase(erasure._replace(transitions=tuple(changes)))
        for change in changes:
            self._whole(change.record.id)
        return gone

    def _whole(self, context: str) -> None:
        found = self._inner.load(context)
        if found is not None and found[0].revision % 2:
            record = found[0]
            self._inner.commit(Transition(record.head, record._replace(revision=record.revision + 1)))

    def pages(
        self, context: str, *, first: int = 1, last: int | None = None, state: PageState | None = None
    ) -> Iterator[PageRow]:
        return self._inner.pages(context, first=first, last=last, state=state)

    def entries(
        self,
        context: str,
        first: int = 0,
        end: int | None = None,
        *,
        containing: bytes | None = None,
        as_appended: bool = False,
    ) -> Iterator[EntryRow]:
        return self._inner.entries(context, first, end, containing=containing, as_appended=as_appended)

    def pages_at(self, context: str, indexes: Collection[int]) -> Sequence[PageRow]:
        return self._inner.pages_at(context, indexes)

    def entries_at(self, context: str, seqs: Collection[int]) -> Sequence[EntryRow]:
        return self._inner.entries_at(context, seqs)

    def compactions(self, context: str, *, head: int | None = None) -> Iterator[CompactionRow]:
        rows = self._inner.compactions(context, head=head)
        return (row._replace(revision=(row.revision + 1) // 2) for row in rows)

    def ops(self, context: str) -> Iterator[OpRow]:
        return self._inner.ops(context)

    def op(self, context: str, op_id: str) -> OpRow | None:
        return self._inner.op(context, op_id)

    def calls(self, context: str, *, after: int = 0) -> Iterator[CallRow]:
        return self._inner.calls(context, after=after)

    def contexts(
        self, *, owner: str | None = None, after: str | None = None, limit: int | None = None
    ) -> Sequence[ContextRecord]:
        return [_outer(record) for record in self._inner.contexts(owner=owner, after=after, limit=limit)]

    def forks(self, context: str) -> Sequence[ContextRecord]:
        return [_outer(record) for record in self._inner.forks(context)]

    def tickets(self, context: str | None = None) -> Sequence[Ticket]:
        return self._inner.tickets(context)

    def replace_ticket(self, old: Ticket | None, new: Ticket | None) -> bool:
        return self._inner.replace_ticket(old, new)

    def close(self) -> None:
        self._inner.close()


def _outer(record: ContextRecord) -> ContextRecord:
    return record._replace(revision=(record.revision + 1) // 2)


def _split(folder: Path) -> Storage:
    return Split(SQLiteStorage(folder / "agent.db"))


FLAWED: dict[str, Store] = {
    "split": Store(_split, folders_told=False),
    "fast_as_full": Store(lambda folder: SQLiteStorage(folder / "agent.db", durability="fast")),
}
