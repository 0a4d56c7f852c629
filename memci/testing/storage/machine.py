"""A hypothesis machine that drives a store beside a model of lists and dicts.

    commit an append, a compaction, a fork, a stale or a repeated one   ──▶  the store and the model answer alike
    erase entries, remove contexts                                    ──▶  and count alike
    after every step                                                  ──▶  all that can be read of them is alike

Each run takes ids that no run before had, so that one store serves all runs, and old contexts must stay as they are.
This module knows nothing of how a store keeps its rows.
"""

from itertools import count

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ...errors import InvalidSetting, WriteConflict
from ...storage.protocol import ContextRecord, ErasedRows, Erasure, PageState, Storage, Transition
from .model import Model
from .rows import appended, everything, forked, tombstone, with_op

_runs = count()
_names = st.sampled_from(["a", "A", "a%", "fork", "fork of a fork"])
_bodies = st.lists(st.binary(max_size=9) | st.just(b"x" * 5_000), max_size=4)
_ops = st.none() | st.sampled_from(["op1", "op2", "op3"])
_compactions = st.none() | st.text("ab<\x00ä", max_size=5)


class StorageMachine(RuleBasedStateMachine):
    """Subclass it with the `store` to drive."""

    store: Storage

    def __init__(self) -> None:
        super().__init__()
        self.run = next(_runs)
        self.models: dict[str, Model] = {}

    @initialize(sizes=st.lists(st.integers(1, 4), min_size=3, max_size=3), bases=st.tuples(*[st.integers(0, 7)] * 2))
    def begin(self, sizes: list[int], bases: tuple[int, int]) -> None:
        """Begin with three generations, each with an op and a view of every entry of its own."""
        parent = None
        for name, size, base in zip(("a", "fork", "fork of a fork"), sizes, (0, *bases), strict=True):
            bodies = [f"{name} {i}".encode() for i in range(size)]
            base = min(base, parent.record.head) if parent else 0  # noqa: PLW2901 -- a fork shares what there is
            made = forked(parent.record.id, self._id(name), base, *bodies) if parent else None
            model = self._model(name) if made is None else Model(made.record, parent)
            transition = with_op(made or appended(model.following, *bodies), "op1")._replace(compaction=name)
            transition = transition._replace(views=tuple((row.seq, 9, 64) for row in transition.entries))
            self.models[name] = parent = model
            assert self.store.commit(transition) is None
            model.apply(transition)

    @rule(name=_names, bodies=_bodies, op_id=_ops)
    def append(self, name: str, bodies: list[bytes], op_id: str | None) -> None:
        """Commit a page, perhaps with an op that is known already."""
        model = self._model(name)
        transition = appended(model.following, *bodies)
        if op_id is not None:
            transition = with_op(transition, op_id, bytes([len(bodies) + 1]) * 16)
            if op_id in model.ops:
                assert self.store.commit(transition) == model.ops[op_id]
                return
        assert self.store.commit(transition) is None
        self.models[name] = model
        model.apply(transition)

    @precondition(lambda self: any(model.pages for model in self.models.values()))
    @rule(data=st.data(), compaction=_compactions, state=st.sampled_from(["{}", "[1]"]))
    def edit(self, data: st.DataObject, compaction: str | None, state: str) -> None:
        """Commit a compaction: pages move, views change, no entry comes."""
        model = data.draw(st.sampled_from([model for model in self.models.values() if model.pages]))
        moved = data.draw(st.lists(st.sampled_from(list(model.pages.values())), unique=True, max_size=3))
        to, turn = data.draw(st.sampled_from(PageState)), data.draw(st.none() | st.integers(0, 9))
        pages = tuple(page._replace(state=to, archived_turn=turn, recall_count=page.recall_count + 1) for page in moved)
        record = model.following._replace(state=state)
        transition = Transition(record.head, record, (), pages, self._views(data, model), compaction)
        assert self.store.commit(transition) is None
        model.apply(transition)

    @precondition(lambda self: self.models)
    @rule(data=st.data(), name=_names, bodies=_bodies, op_id=_ops, compaction=_compactions)
    def fork(
        self, data: st.DataObject, name: str, bodies: list[bytes], op_id: str | None, compaction: str | None
    ) -> None:
        """Make a fork, or try to: by a name that is taken, or beyond the head."""
        parent = data.draw(st.sampled_from(list(self.models.values())))
        base = data.draw(st.integers(0, parent.record.head + 1))
        transition = forked(parent.record.id, self._id(name), base, *bodies)._replace(compaction=compaction)
        if op_id is not None:
            transition = with_op(transition, op_id)
        if name in self.models:
            known = self.models[name].ops.get(op_id or "")
            if known is not None:
                assert self.store.commit(transition) == known
            else:
                with pytest.raises(WriteConflict):
                    self.store.commit(transition)
            return
        if base > parent.record.head:
            with pytest.raises(InvalidSetting):
                self.store.commit(transition)
            return
        model = Model(transition.record, parent)
        transition = transition._replace(views=self._views(data, parent, base))
        assert self.store.commit(transition) is None
        self.models[name] = model
        model.apply(transition)

    @precondition(lambda self: any(model.record.head for model in self.models.values()))
    @rule(data=st.data(), compaction=_compactions, stale=st.booleans())
    def erase(self, data: st.DataObject, compaction: str | None, stale: bool) -> None:
        """Put tombstones in the place of entries, for all that show them; perhaps one of these is at another state."""
        named = data.draw(st.sampled_from([model for model in self.models.values() if model.record.head]))
        seqs = data.draw(st.sets(st.integers(0, named.record.head - 1), min_size=1, max_size=3))
        shown = {id(model): {seq for seq in seqs if named.shows(model, seq)} for model in self.models.values()}
        showing = [model for model in self.models.values() if shown[id(model)]]
        after = [Transition(model.record.head, model.following, compaction=compaction) for model in showing]
        buried = tuple((named.record.id, tombstone(seq)) for seq in sorted(seqs))
        if stale:
            late = after[-1].record._replace(revision=after[-1].record.revision - 1)
            with pytest.raises(WriteConflict):
                self.store.erase(Erasure((), buried, (*after[:-1], after[-1]._replace(record=late))))
            return
        compactions = sum(len(model.compactions) for model in showing)
        erased = self.store.erase(Erasure((), buried, tuple(after)))
        assert erased[:4] == (0, len(seqs), 0, compactions), "what went is counted"
        for _, row in buried:
            named.owner(row.seq).bury(row)
        for model, transition in zip(showing, after, strict=True):
            model.forget(shown[id(model)])
            model.apply(transition)

    @precondition(lambda self: self.models)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        """Remove contexts, or try to: a fork of them that would be left forbids it."""
        names = data.draw(st.lists(st.sampled_from(list(self.models)), unique=True, min_size=1, max_size=3))
        gone = [self.models[name] for name in names]
        erasure = Erasure(contexts=tuple(model.record.id for model in gone))
        if any(model.parent in gone and model not in gone for model in self.models.values()):
            with pytest.raises(InvalidSetting, match="fork"):
                self.store.erase(erasure)
            return
        counts = [(len(model.own), len(model.pages), len(model.compactions), len(model.ops)) for model in gone]
        assert self.store.erase(erasure) == ErasedRows(len(gone), *(sum(each) for each in zip(*counts, strict=True)))
        for name in names:
            del self.models[name]
            assert everything(self.store, self._id(name)) == [(None, 0, [], [], [], [])]

    @rule(name=_names, behind=st.integers(-3, 3).filter(bool))
    def append_from_another_state(self, name: str, behind: int) -> None:
        """Commit from a head, then from a revision, that is not the store's."""
        record = self._model(name).following
        stale = record._replace(head=max(record.head + behind, 0))
        if stale.head != record.head:
            with pytest.raises(WriteConflict):
                self.store.commit(appended(stale, b"stale"))
        with pytest.raises(WriteConflict):
            self.store.commit(appended(record._replace(revision=record.revision + behind), b"stale"))

    @rule(name=_names, first=st.integers(0, 30), length=st.integers(0, 9), containing=st.none() | st.binary(max_size=2))
    def read_a_part(self, name: str, first: int, length: int, containing: bytes | None) -> None:
        """Read some entries, some pages and some compactions."""
        model = self._model(name)
        context, end = model.record.id, first + length
        expected = [row for row in model.entries[first:end] if containing is None or containing in row.body]
        assert list(self.store.entries(context, first, end, containing=containing)) == expected
        pages = [page for index, page in sorted(model.pages.items()) if first <= index <= end]
        assert list(self.store.pages(context, first=first, last=end)) == pages
        compactions = [row for row in reversed(model.compactions) if row.head <= first]
        assert list(self.store.compactions(context, head=first)) == compactions

    @invariant()
    def reads_alike(self) -> None:
        """All of the store's answers are the model's."""
        for model in self.models.values():
            context = model.record.id
            assert self.store.load(context) == (model.record, model.compaction), (
                "the record and the compaction are the last"
            )
            assert self.store.revision(context) == model.record.revision, "the revision is the record's"
            assert list(self.store.entries(context)) == model.entries, "entries are all there, in order"
            assert list(self.store.compactions(context)) == model.compactions[::-1], (
                "compactions are kept, newest first"
            )
            ops = list(self.store.ops(context))
            assert sorted(ops) == sorted(model.ops.values()), "ops are known"
            assert [op.first for op in ops] == sorted(op.first for op in ops), "ops come by their first seq"
            for state in (None, PageState.ACTIVE, PageState.ARCHIVED):
                pages = [page for _, page in sorted(model.pages.items()) if state in (None, page.state)]
                assert list(self.store.pages(context, state=state)) == pages, "pages are where they were put last"

    def _id(self, name: str) -> str:
        return f"{name} {self.run}"

    def _model(self, name: str) -> Model:
        return self.models.get(name) or Model(ContextRecord(self._id(name), "owner", "{}", "{}", revision=0))

    def _views(self, data: st.DataObject, model: Model, end: int | None = None) -> tuple[tuple[int, int, int], ...]:
        """Return new views of some of the entries of *model* before *end*."""
        rows = model.entries[:end]
        seen = data.draw(st.lists(st.sampled_from(rows), unique=True, max_size=2)) if rows else []
        return tuple((row.seq, row.tokens + 1, row.clip + 64) for row in seen)
