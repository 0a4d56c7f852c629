"""A store beside a model of it in lists and dicts: both are changed alike, and then compared.

    pair = ModelledStore(store)
    pair.append("a", b"0", b"1")                 committed to the store, noted in the model
    pair.fork("a", "b", 1, b"own")
    pair.check()                                 all that can be read of a and b is what the model says

This module knows nothing of how a store keeps its rows.
"""

from dataclasses import dataclass, field

from ...storage.protocol import (
    CompactionRow,
    ContextRecord,
    EntryRow,
    ErasedRows,
    Erasure,
    OpRow,
    PageRow,
    PageState,
    Storage,
    Transition,
)
from .rows import appended, everything, forked, tombstone, with_op

ERASED_DIGEST = bytes(16)
"""the digest of an op that appended an entry that was erased"""


@dataclass(eq=False, repr=False)
class Model:
    """One context."""

    record: ContextRecord
    parent: "Model | None" = None
    own: list[EntryRow] = field(default_factory=list)
    views: dict[int, tuple[int, int]] = field(default_factory=dict)
    pages: dict[int, PageRow] = field(default_factory=dict)
    compactions: list[CompactionRow] = field(default_factory=list)
    ops: dict[str, OpRow] = field(default_factory=dict)

    @property
    def following(self) -> ContextRecord:
        """The record as the next transition carries it."""
        return self.record._replace(revision=self.record.revision + 1)

    @property
    def compaction(self) -> str | None:
        """The text of the last compaction."""
        return self.compactions[-1].text if self.compactions else None

    @property
    def entries(self) -> list[EntryRow]:
        """All entries as this context shows them. O(entries)."""
        shared = self.parent.appended[: self.record.base] if self.parent else []
        return [
            row._replace(tokens=self.views[row.seq][0], clip=self.views[row.seq][1]) if row.seq in self.views else row
            for row in (*shared, *self.own)
        ]

    @property
    def appended(self) -> list[EntryRow]:
        """All entries as they were appended. O(entries)."""
        return (self.parent.appended[: self.record.base] if self.parent else []) + self.own

    def owner(self, seq: int) -> "Model":
        """Return the context that holds entry *seq*. O(generations)."""
        return self.parent.owner(seq) if self.parent and seq < self.record.base else self

    def shows(self, other: "Model", seq: int) -> bool:
        """Return whether entry *seq* is one that *other* shows too. O(generations)."""
        return seq < self.record.head and seq < other.record.head and self.owner(seq) is other.owner(seq)

    def apply(self, transition: Transition) -> None:
        """Take over *transition*. O(its rows)."""
        record = self.record = transition.record
        self.own += transition.entries
        self.pages.update({page.index: page for page in transition.pages})
        self.views.update({seq: (tokens, clip) for seq, tokens, clip in transition.views})
        self.compactions += transition.history
        if transition.compaction is not None:
            self.compactions.append(CompactionRow(record.revision, record.head, record.turn, transition.compaction))
        for op in (*transition.ops, *([transition.op] if transition.op else [])):
            self.ops[op.op_id] = op

    def forget(self, seqs: set[int]) -> int:
        """Drop views and op digests of the entries *seqs*, and the compactions; return how many digests. O(ops)."""
        self.compactions.clear()
        for seq in seqs:
            self.views.pop(seq, None)
        found = [op for op in self.ops.values() if not seqs.isdisjoint(range(op.first, op.first + len(op.entries)))]
        self.ops.update({op.op_id: op._replace(digest=ERASED_DIGEST) for op in found})
        return sum(op.digest != ERASED_DIGEST for op in found)


class ModelledStore:
    """A store, and a model of each context that was committed through this object."""

    def __init__(self, store: Storage) -> None:
        self.store = store
        self.models: dict[str, Model] = {}
        self.removed = {"nobody"}
        """contexts that are not there"""

    def following(self, context: str) -> ContextRecord:
        """Return the record of *context* as the next transition carries it, or a new one."""
        model = self.models.get(context)
        return ContextRecord(context, owner=context, settings="{}", state="{}") if model is None else model.following

    def commit(self, transition: Transition) -> OpRow | None:
        """Commit *transition*, and check that the answer is the row of its op if that is known, else None."""
        record, op = transition.record, transition.op
        model = self.models.get(record.id)
        known = model.ops.get(op.op_id) if model is not None and op is not None else None
        assert self.store.commit(transition) == known, "an op that is known is the answer, and nothing else is"
        if known is None:
            parent = self.models[record.parent] if record.parent is not None else None
            self.models[record.id] = model or Model(record, parent)
            self.models[record.id].apply(transition)
            self.removed.discard(record.id)
        return known

    def append(self, context: str, *bodies: bytes, op: str | None = None, compaction: str | None = None) -> Transition:
        """Commit *bodies* as the next page of *context*, and return the transition. O(bodies)."""
        transition = with_op(appended(self.following(context), *bodies)._replace(compaction=compaction), op)
        self.commit(transition)
        return transition

    def fork(
        self, parent: str, context: str, base: int, *bodies: bytes, op: str | None = None, compaction: str | None = None
    ) -> Transition:
        """Commit *context* as a fork of *parent*, and return the transition. O(bodies)."""
        transition = with_op(forked(parent, context, base, *bodies)._replace(compaction=compaction), op)
        self.commit(transition)
        return transition

    def erasure(self, *entries: tuple[str, int], contexts: tuple[str, ...] = ()) -> Erasure:
        """Return the erasure of *entries* (context, seq) and of whole *contexts*, with the transitions it needs."""
        showing = [
            model
            for name, model in self.models.items()
            if name not in contexts and any(self.models[context].shows(model, seq) for context, seq in entries)
        ]
        after = tuple(Transition(model.record.head, model.following) for model in showing)
        return Erasure(contexts, tuple((context, tombstone(seq)) for context, seq in entries), after)

    def erase(self, erasure: Erasure) -> ErasedRows:
        """Erase, and check the counts."""
        gone = [self.models[each] for each in dict.fromkeys(erasure.contexts) if each in self.models]
        buried = [(self.models[context].owner(row.seq), row) for context, row in erasure.entries]
        changed = [self.models[each.record.id] for each in erasure.transitions]
        shown = [{row.seq for owner, row in buried if owner.shows(model, row.seq)} for model in changed]
        compactions = sum(len(model.compactions) for model in (*gone, *changed))
        erased = self.store.erase(erasure)
        ops = sum(len(model.ops) for model in gone)
        ops += sum(model.forget(seqs) for model, seqs in zip(changed, shown, strict=True))
        entries = sum(len(model.own) for model in gone) + len(buried)
        pages = sum(len(model.pages) for model in gone)
        expected = ErasedRows(len(gone), entries, pages, compactions, ops)
        assert erased._replace(scrubbed=True) == expected, "the rows that are gone are counted"
        for owner, row in buried:
            owner.own[row.seq - owner.record.base] = row
        for model, transition in zip(changed, erasure.transitions, strict=True):
            model.apply(transition)
        for model in gone:
            del self.models[model.record.id]
            self.removed.add(model.record.id)
        return erased

    def check(self, store: Storage | None = None) -> None:
        """Check that all that can be read is what the models say, in *store* if it is given, which is used from now on.

        O(everything).
        """
        self.store = store or self.store
        known = [record for record in self.store.contexts() if record.id in self.models or record.id in self.removed]
        assert known == [model.record for _, model in sorted(self.models.items())], "contexts are there, by id"
        for context in self.removed:
            assert everything(self.store, context) == [(None, 0, [], [], [], [])], (
                "nothing is read of what is not there"
            )
        for context, model in self.models.items():
            assert self.store.load(context) == (model.record, model.compaction), "the record and the last compaction"
            assert self.store.revision(context) == model.record.revision, "the revision is the record's"
            assert list(self.store.entries(context)) == model.entries, "entries are all there, in order"
            assert list(self.store.compactions(context)) == model.compactions[::-1], "compactions, newest first"
            ops = list(self.store.ops(context))
            assert sorted(ops) == sorted(model.ops.values()), "ops are known"
            assert [op.first for op in ops] == sorted(op.first for op in ops), "ops come by their first seq"
            for state in (None, *PageState):
                pages = [page for _, page in sorted(model.pages.items()) if state in (None, page.state)]
                assert list(self.store.pages(context, state=state)) == pages, "pages are in their last state, by index"
