"""A store as plainly as it can be kept: what `memci.testing.storage.machine` compares a store with.

    Model(record, parent)     own entries, views by seq, pages by index, compactions, ops
        entries               the parent's before the base, its own after it, each with the view of this one

This module knows nothing of stores.
"""

from dataclasses import dataclass, field

from ...storage.protocol import CompactionRow, ContextRecord, EntryRow, OpRow, PageRow, Transition


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
        """The last compaction."""
        return self.compactions[-1].text if self.compactions else None

    @property
    def appended(self) -> list[EntryRow]:
        """All entries as they were appended. O(entries)."""
        return (self.parent.appended[: self.record.base] if self.parent else []) + self.own

    @property
    def entries(self) -> list[EntryRow]:
        """All entries as this context shows them. O(entries)."""
        return [
            row._replace(tokens=self.views[row.seq][0], clip=self.views[row.seq][1]) if row.seq in self.views else row
            for row in self.appended
        ]

    def owner(self, seq: int) -> "Model":
        """Return who keeps entry *seq*. O(generations)."""
        return self.parent.owner(seq) if self.parent and seq < self.record.base else self

    def shows(self, other: "Model", seq: int) -> bool:
        """Tell whether entry *seq* is one that *other* shows too. O(generations)."""
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

    def bury(self, tombstone: EntryRow) -> None:
        """Put *tombstone* in the place of an entry of its own."""
        self.own[tombstone.seq - self.record.base] = tombstone

    def forget(self, seqs: set[int]) -> None:
        """Lose what told of the entries *seqs*, and the compactions. O(ops)."""
        self.compactions.clear()
        for seq in seqs:
            self.views.pop(seq, None)
        for op_id, op in self.ops.items():
            if not seqs.isdisjoint(range(op.first, op.first + len(op.entries))):
                self.ops[op_id] = op._replace(digest=bytes(16))
