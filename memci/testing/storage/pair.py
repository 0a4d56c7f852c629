"""Compares a store with a correct one, after the same changes to both."""

from ...rows import ContextRecord, OpRow, PageState
from ...storage import EphemeralStorage
from ...storage.protocol import ErasedRows, Erasure, Storage, Transition
from .rows import appended, compacted, current, everything, forked, tombstone


class PairedStore:
    """The tested *store* and one that is *known* to be correct; both are empty."""

    def __init__(self, store: Storage, known: Storage | None = None) -> None:
        self.store = store
        self.known = EphemeralStorage() if known is None else known
        self.removed = {"nobody"}
        """contexts that do not exist"""

    @property
    def contexts(self) -> list[str]:
        """The ids of all contexts. O(contexts)."""
        return [record.id for record in self.known.contexts()]

    def record(self, context: str) -> ContextRecord:
        """Return the record of *context*, which must exist."""
        loaded = self.known.load(context)
        assert loaded is not None, "the context is there"
        return loaded[0]

    def following(self, context: str) -> ContextRecord:
        """Return the record of *context* for its next transition, or a new one."""
        return current(self.known, context)

    def owner(self, context: str, seq: int) -> str:
        """Return the context that has entry *seq* of *context*. O(generations)."""
        record = self.record(context)
        return self.owner(record.parent, seq) if record.parent is not None and seq < record.base else context

    def commit(self, transition: Transition) -> OpRow | None:
        """Commit *transition*, and check that the answer is the row of its op if it is stored, else None."""
        op = self.known.commit(transition)
        assert self.store.commit(transition) == op, "an op that is known is the answer, and nothing else is"
        self.removed.discard(transition.record.id)
        return op

    def append(self, context: str, *bodies: bytes, compaction: str | None = None) -> Transition:
        """Commit *bodies* as the next page of *context*, and return the transition. O(bodies)."""
        transition = compacted(appended(self.following(context), *bodies), compaction)
        self.commit(transition)
        return transition

    def fork(self, parent: str, context: str, base: int, *bodies: bytes, compaction: str | None = None) -> Transition:
        """Commit *context* as a fork of *parent*, and return the transition. O(bodies)."""
        transition = compacted(forked(parent, context, base, *bodies), compaction)
        self.commit(transition)
        return transition

    def erasure(self, *entries: tuple[str, int], contexts: tuple[str, ...] = ()) -> Erasure:
        """Return the erasure of *entries* (context, seq) and of whole *contexts*, with the transitions it needs."""
        gone = [(self.owner(context, seq), seq) for context, seq in entries]
        after = tuple(
            Transition(record.head, self.following(record.id))
            for record in self.known.contexts()
            if record.id not in contexts
            and any(seq < record.head and self.owner(record.id, seq) == owner for owner, seq in gone)
        )
        return Erasure(contexts, tuple((context, tombstone(seq)) for context, seq in entries), after)

    def erase(self, erasure: Erasure) -> ErasedRows:
        """Erase, and check the counts."""
        expected, erased = self.known.erase(erasure), self.store.erase(erasure)
        assert erased._replace(scrubbed=True) == expected, "the rows that are gone are counted"
        self.removed.update(erasure.contexts)
        return erased

    def check(self, store: Storage | None = None) -> None:
        """Check that all reads are equal. If *store* is given, it replaces the tested store.

        O(everything).
        """
        self.store = store or self.store
        names = {*self.contexts, *self.removed}
        there = [record for record in self.store.contexts() if record.id in names]
        assert there == self.known.contexts(), "contexts are there, by id, and what was removed is not"
        for name in names:
            [found], [expected] = everything(self.store, name), everything(self.known, name)
            assert found == expected, [each for each in found if found[each] != expected[each]]
            some = expected["entries, all and in order"][::2]
            assert self.store.entries_at(name, {2**40 - 1, *(row.seq for row in some)}) == some, "some of them"
            ops = list(self.store.ops(name))
            for op in ops:
                assert self.store.op(name, op.op_id) == op, "one op is found by its name"
            assert self.store.op(name, "of no append") is None
            assert [op.first for op in ops] == sorted(op.first for op in ops), "ops come by their first seq"
            calls = expected["calls of the model, oldest first"]
            for after in {calls[0].revision, calls[-1].revision, 0} if calls else ():
                later = [row for row in calls if row.revision > after]
                assert list(self.store.calls(name, after=after)) == later, "those after a revision"
            for state in (None, *PageState):
                pages = expected[f"pages in {state}, by index"]
                assert self.store.pages_at(name, {2**31, *(page.index for page in pages)}) == pages, "some of them"
