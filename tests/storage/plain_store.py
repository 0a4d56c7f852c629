"""The promises of a store in lists and dicts, without a thought of cost: the stores are compared with it.

What is read of a `PlainStore` is all of a context: it takes no bounds.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from memci.rows import CallRow, CompactionRow, ContextRecord, EntryRow, OpRow, PageRow, PageState
from memci.storage.protocol import ErasedRows, Erasure, Transition

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
    calls: list[CallRow] = field(default_factory=list)

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
        self.record = transition.record
        self.own += transition.entries
        self.pages.update({page.index: page for page in transition.pages})
        self.views.update({seq: (tokens, clip) for seq, tokens, clip in transition.views})
        self.compactions += transition.compactions
        self.ops.update({op.op_id: op for op in transition.ops})
        self.calls += transition.calls

    def forget(self, seqs: set[int]) -> int:
        """Drop views and op digests of the entries *seqs*, and the compactions; return how many digests. O(ops)."""
        self.compactions.clear()
        for seq in seqs:
            self.views.pop(seq, None)
        found = [op for op in self.ops.values() if not seqs.isdisjoint(range(op.first, op.first + len(op.entries)))]
        self.ops.update({op.op_id: op._replace(digest=ERASED_DIGEST) for op in found})
        return sum(op.digest != ERASED_DIGEST for op in found)


class PlainStore:
    """The part of `Storage` that is needed to compare a store with it."""

    def __init__(self) -> None:
        self.models: dict[str, Model] = {}

    def contexts(
        self, *, owner: str | None = None, after: str | None = None, limit: int | None = None
    ) -> list[ContextRecord]:
        found = [model.record for _, model in sorted(self.models.items())]
        return [each for each in found if owner in (None, each.owner) and (after is None or each.id > after)][:limit]

    def forks(self, context: str) -> list[ContextRecord]:
        return [each for each in self.contexts() if each.parent == context]

    def load(self, context: str) -> tuple[ContextRecord, str | None] | None:
        model = self.models.get(context)
        return None if model is None else (model.record, model.compaction)

    def revision(self, context: str) -> int:
        return self.models[context].record.revision if context in self.models else 0

    def entries(self, context: str, *, as_appended: bool = False) -> Iterator[EntryRow]:
        model = self.models.get(context)
        return iter(() if model is None else model.appended if as_appended else model.entries)

    def pages(self, context: str, *, state: PageState | None = None) -> Iterator[PageRow]:
        pages = sorted(self.models[context].pages.items()) if context in self.models else []
        return (page for _, page in pages if state in (None, page.state))

    def compactions(self, context: str) -> Iterator[CompactionRow]:
        return reversed(self.models[context].compactions if context in self.models else [])

    def op(self, context: str, op_id: str) -> OpRow | None:
        return next((op for op in self.ops(context) if op.op_id == op_id), None)

    def ops(self, context: str) -> Iterator[OpRow]:
        return iter(self.models[context].ops.values() if context in self.models else ())

    def calls(self, context: str, *, after: int = 0) -> Iterator[CallRow]:
        rows = self.models[context].calls if context in self.models else []
        return (row for row in rows if row.revision > after)

    def commit(self, transition: Transition) -> OpRow | None:
        record, op = transition.record, transition.op
        model = self.models.get(record.id)
        known = model.ops.get(op.op_id) if model is not None and op is not None else None
        if known is None:
            parent = self.models[record.parent] if record.parent is not None else None
            self.models[record.id] = model or Model(record, parent)
            self.models[record.id].apply(transition)
        return known

    def erase(self, erasure: Erasure) -> ErasedRows:
        gone = [self.models[each] for each in dict.fromkeys(erasure.contexts) if each in self.models]
        buried = [(self.models[context].owner(row.seq), row) for context, row in erasure.entries]
        changed = [self.models[each.record.id] for each in erasure.transitions]
        shown = [{row.seq for owner, row in buried if owner.shows(model, row.seq)} for model in changed]
        compactions = sum(len(model.compactions) for model in (*gone, *changed))
        ops = sum(len(model.ops) for model in gone)
        ops += sum(model.forget(seqs) for model, seqs in zip(changed, shown, strict=True))
        entries = sum(len(model.own) for model in gone) + len(buried)
        pages = sum(len(model.pages) for model in gone)
        for owner, row in buried:
            owner.own[row.seq - owner.record.base] = row
        for model, transition in zip(changed, erasure.transitions, strict=True):
            model.apply(transition)
        for model in gone:
            del self.models[model.record.id]
        return ErasedRows(len(gone), entries, pages, compactions, ops)
