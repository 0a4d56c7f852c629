"""A hypothesis machine that drives a store beside a model of lists and dicts.

    commit an append, an edition, a stale or a repeated one   ──▶  the store and the model answer alike
    after every step                                          ──▶  all that can be read of them is alike

Each run takes ids that no run before had, so that one store serves all runs, and old contexts must stay as they are.
This module knows nothing of how a store keeps its rows.
"""

from dataclasses import dataclass, field
from itertools import count

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ..errors import LeaseLost
from ..storage.protocol import ContextRecord, EntryRow, OpRow, PageRow, Place, Storage, Transition
from .storage_rows import appended

_runs = count()
_names = st.sampled_from(["a", "A", "a%"])
_bodies = st.lists(st.binary(max_size=9) | st.just(b"x" * 5_000), max_size=4)
_ops = st.none() | st.sampled_from(["op1", "op2", "op3"])


@dataclass
class _Model:
    """One context, as plainly as it can be kept."""

    record: ContextRecord
    edition: str | None = None
    entries: list[EntryRow] = field(default_factory=list)
    pages: dict[int, PageRow] = field(default_factory=dict)
    ops: dict[str, OpRow] = field(default_factory=dict)

    @property
    def following(self) -> ContextRecord:
        """The record as the next transition carries it."""
        return self.record._replace(revision=self.record.revision + 1)


class StorageMachine(RuleBasedStateMachine):
    """Subclass it with the `store` to drive."""

    store: Storage

    def __init__(self) -> None:
        super().__init__()
        self.run = next(_runs)
        self.models: dict[str, _Model] = {}

    @rule(name=_names, bodies=_bodies, op_id=_ops)
    def append(self, name: str, bodies: list[bytes], op_id: str | None) -> None:
        """Commit a page, perhaps with an op that is known already."""
        model = self._model(name)
        transition = appended(model.following, *bodies)
        if op_id is not None:
            op = OpRow(op_id, bytes([len(bodies)]) * 16, model.record.head, tuple((1, i) for i in range(len(bodies))))
            transition = transition._replace(op=op)
            if op_id in model.ops:
                assert self.store.commit(transition) == model.ops[op_id]
                return
        assert self.store.commit(transition) is None
        self._apply(name, transition)

    @precondition(lambda self: any(model.pages for model in self.models.values()))
    @rule(data=st.data(), edition=st.none() | st.text("ab<\x00ä", max_size=5), state=st.sampled_from(["{}", "[1]"]))
    def edit(self, data: st.DataObject, edition: str | None, state: str) -> None:
        """Commit an edition: pages move, views change, no entry comes."""
        name = data.draw(st.sampled_from([name for name, model in self.models.items() if model.pages]))
        model = self.models[name]
        moved = data.draw(st.lists(st.sampled_from(list(model.pages.values())), unique=True, max_size=3))
        place, turn = data.draw(st.sampled_from(Place)), data.draw(st.none() | st.integers(0, 9))
        pages = tuple(
            page._replace(place=place, archived_turn=turn, recall_count=page.recall_count + 1) for page in moved
        )
        seqs = data.draw(st.lists(st.sampled_from(model.entries), unique=True, max_size=2)) if model.entries else []
        views = tuple((row.seq, row.tokens + 1, row.clip + 64) for row in seqs)
        record = model.following._replace(state=state)
        transition = Transition(record.head, record, (), pages, views, edition)
        assert self.store.commit(transition) is None
        self._apply(name, transition)

    @rule(name=_names, behind=st.integers(-3, 3).filter(bool))
    def append_from_another_state(self, name: str, behind: int) -> None:
        """Commit from a head, then from a revision, that is not the store's."""
        record = self._model(name).following
        stale = record._replace(head=max(record.head + behind, 0))
        if stale.head != record.head:
            with pytest.raises(LeaseLost):
                self.store.commit(appended(stale, b"stale"))
        with pytest.raises(LeaseLost):
            self.store.commit(appended(record._replace(revision=record.revision + behind), b"stale"))

    @rule(name=_names, first=st.integers(0, 30), length=st.integers(0, 9), containing=st.none() | st.binary(max_size=2))
    def read_a_part(self, name: str, first: int, length: int, containing: bytes | None) -> None:
        """Read some entries and some pages."""
        model = self._model(name)
        context, end = model.record.id, first + length
        expected = [row for row in model.entries[first:end] if containing is None or containing in row.body]
        assert list(self.store.entries(context, first, end, containing=containing)) == expected
        pages = [page for index, page in sorted(model.pages.items()) if first <= index <= end]
        assert list(self.store.pages(context, first=first, last=end)) == pages

    @invariant()
    def reads_alike(self) -> None:
        """All of the store's answers are the model's."""
        for model in self.models.values():
            context = model.record.id
            assert self.store.load(context) == (model.record, model.edition), "the record and the edition are the last"
            assert list(self.store.entries(context)) == model.entries, "entries are all there, in order"
            for place in (None, Place.ACTIVE, Place.ARCHIVED):
                pages = [page for _, page in sorted(model.pages.items()) if place in (None, page.place)]
                assert list(self.store.pages(context, place=place)) == pages, "pages are where they were put last"

    def _model(self, name: str) -> _Model:
        context = f"{name} {self.run}"
        return self.models.get(name) or _Model(ContextRecord(context, "owner", "{}", "{}", revision=0))

    def _apply(self, name: str, transition: Transition) -> None:
        model = self.models.setdefault(name, self._model(name))
        model.record = transition.record
        model.edition = model.edition if transition.edition is None else transition.edition
        model.entries += transition.entries
        model.pages.update({page.index: page for page in transition.pages})
        for seq, tokens, clip in transition.views:
            model.entries[seq] = model.entries[seq]._replace(tokens=tokens, clip=clip)
        if transition.op is not None:
            model.ops[transition.op.op_id] = transition.op
