"""A hypothesis machine that drives a store beside one that is known to be right (`PairedStore`).

    commit an append, a compaction, a fork, a stale or a repeated one   ──▶  both stores answer alike
    erase entries, remove contexts                                      ──▶  and count alike
    put tickets into queues, change and remove them                     ──▶  if they are exactly so
    close and open it again, if it can be                               ──▶  and nothing is lost
    after every step                                                    ──▶  all that can be read of them is alike

Each run uses ids that no run before it used, so that one store serves all runs, and old contexts must stay as they are.
"""

from collections.abc import Callable
from contextlib import suppress
from itertools import count

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ...errors import InvalidSetting, StorageError, WriteConflict
from ...rows import CallRow, CompactionRow, OpRow, PageState, Ticket
from ...storage import EphemeralStorage
from ...storage.protocol import CheckedStorage, Erasure, Storage, Transition
from .pair import PairedStore
from .rows import Reread, appended, called, compacted, forked, tombstone, with_op

_runs, _tokens = count(), count()
_names = st.sampled_from(["a", "A", "a%", "fork", "fork of a fork"])
_bodies = st.lists(st.binary(max_size=9) | st.just(b"x" * 5_000), max_size=4) | st.just([b"many"] * 70)
_ops = st.none() | st.sampled_from(["op1", "op \x00ü", ""])
_tools = st.sampled_from([None, "[]", '[{"name":"ä"}]'])
_compactions = st.none() | st.text("ab<\x00ä", max_size=5)


class StorageMachine(RuleBasedStateMachine):
    """Subclass it with the `store` to drive, and `reopen`, if it can be opened again after close()."""

    store: Storage
    make_known: Callable[[], Storage] = EphemeralStorage  # makes the one to compare it with
    reopen: Reread | None = None

    def __init__(self) -> None:
        super().__init__()
        self.run = next(_runs)
        self.pair = PairedStore(self.store, type(self).make_known())
        self.waiting: list[Ticket] = []
        """the tickets that are in queues, in order"""

    @initialize(sizes=st.lists(st.integers(1, 4), min_size=3, max_size=3), bases=st.tuples(*[st.integers(0, 7)] * 2))
    def begin(self, sizes: list[int], bases: tuple[int, int]) -> None:
        """Begin with three generations, each with an op, a view of every entry of its own, and a ticket."""
        parent = None
        for name, size, base in zip(("a", "fork", "fork of a fork"), sizes, (0, *bases), strict=True):
            bodies, context = [f"{name} {i}".encode() for i in range(size)], self._id(name)
            if parent is None:
                made = appended(self.pair.following(context), *bodies)
            else:
                made = forked(parent, context, min(base, self.pair.record(parent).head), *bodies)
            views = tuple((row.seq, 9, 64) for row in made.entries)
            self.pair.commit(compacted(with_op(made, "op1")._replace(views=views), name))
            parent = context
            self._arrives(name)

    @rule(name=_names, bodies=_bodies, op_id=_ops, tools=_tools)
    def append(self, name: str, bodies: list[bytes], op_id: str | None, tools: str | None) -> None:
        """Commit a page and a call of the model, perhaps with an op that is known already."""
        transition = called(appended(self.pair.following(self._id(name)), *bodies), tools)
        self.pair.commit(with_op(transition, op_id, bytes([len(bodies) % 9 + 1]) * 16))

    @rule(name=_names, revision=st.sampled_from([7, 9_000]), bodies=_bodies, compaction=_compactions)
    def arrive(self, name: str, revision: int, bodies: list[bytes], compaction: str | None) -> None:
        """Commit a new context with its past, or try to put one before a context that is there."""
        record = self.pair.following(self._id(name))._replace(
            head=0, next_page=1, revision=revision, parent=None, base=0
        )
        history = (CompactionRow(2, 0, 0, "two"), CompactionRow(5, min(1, len(bodies)), 0, "five ü"))
        ops = (
            () if len(bodies) < 2 else (OpRow("newer", b"n" * 16, 1, ((1, 1),)), OpRow("op1", b"o" * 16, 0, ((1, 0),)))
        )
        calls = tuple(CallRow(at, 0, 0, "2031", None, 0, 5, 0, 0, 1, tools) for at, tools in ((3, "[]"), (6, None)))
        moved = appended(record, *bodies)._replace(compactions=history, ops=ops, calls=calls, arrives=True)
        moved = compacted(moved, compaction)
        if record.id in self.pair.contexts:
            moved = moved._replace(record=moved.record._replace(revision=9_999))
            with pytest.raises(WriteConflict):
                self.store.commit(moved)
        else:
            self.pair.commit(moved)

    @precondition(lambda self: self._paged())
    @rule(data=st.data(), compaction=_compactions, state=st.sampled_from(["{}", "[1]"]))
    def edit(self, data: st.DataObject, compaction: str | None, state: str) -> None:
        """Commit a compaction: pages move, views change, no entry comes."""
        name = data.draw(st.sampled_from(self._paged()))
        moved = data.draw(st.lists(st.sampled_from(list(self.pair.known.pages(name))), unique=True, max_size=3))
        to, turn = data.draw(st.sampled_from(PageState)), data.draw(st.none() | st.integers(0, 9))
        pages = tuple(page._replace(state=to, archived_turn=turn, recall_count=page.recall_count + 1) for page in moved)
        record = self.pair.following(name)._replace(state=state)
        self.pair.commit(compacted(Transition(record.head, record, (), pages, self._views(data, name)), compaction))

    @rule(data=st.data(), name=_names, bodies=_bodies, op_id=_ops, compaction=_compactions)
    def fork(
        self, data: st.DataObject, name: str, bodies: list[bytes], op_id: str | None, compaction: str | None
    ) -> None:
        """Make a fork, or try to: by an id that is taken, of itself, of what is not there, or beyond the head."""
        parent = data.draw(st.sampled_from([*self.pair.contexts, "nobody", self._id(name)]))
        taken, there = self._id(name) in self.pair.contexts, parent in self.pair.contexts
        head = self.pair.record(parent).head if there else 0
        base = data.draw(st.integers(0, head + 1))
        transition = with_op(compacted(forked(parent, self._id(name), base, *bodies), compaction), op_id)
        if taken and op_id not in [op.op_id for op in self.pair.known.ops(self._id(name))]:
            with pytest.raises(WriteConflict):
                self.store.commit(transition)
        elif not taken and (not there or base > head):
            with pytest.raises(InvalidSetting):
                self.store.commit(transition)
        else:
            self.pair.commit(transition._replace(views=self._views(data, parent, base) if there else ()))

    @precondition(lambda self: self._filled())
    @rule(data=st.data(), compaction=_compactions, stale=st.booleans())
    def erase(self, data: st.DataObject, compaction: str | None, stale: bool) -> None:
        """Put tombstones in the place of entries, for all that show them; perhaps one of these is at another state."""
        rows = {}
        for named in data.draw(st.lists(st.sampled_from(self._filled()), unique=True, min_size=1, max_size=2)):
            head = self.pair.record(named).head
            for seq in data.draw(st.sets(st.integers(0, head - 1), min_size=1, max_size=3)):
                rows[self.pair.owner(named, seq), seq] = named
        erasure = self.pair.erasure(*((context, seq) for (_, seq), context in sorted(rows.items())))
        *others, last = (compacted(each, compaction) for each in erasure.transitions)
        if stale:
            last = last._replace(record=last.record._replace(revision=last.record.revision - 1))
            with pytest.raises(WriteConflict):
                self.store.erase(erasure._replace(transitions=(*others, last)))
        else:
            self.pair.erase(erasure._replace(transitions=(*others, last)))

    @rule(name=st.just("nobody") | _names, beyond=st.sampled_from([0, 900]))
    def erase_what_never_was(self, name: str, beyond: int) -> None:
        """Erase an entry that is not there: that is fine or a StorageError, and changes nothing."""
        seq = self.pair.following(self._id(name)).head + beyond
        with suppress(StorageError):
            self.store.erase(Erasure(entries=((self._id(name), tombstone(seq)),)))

    @precondition(lambda self: self.pair.contexts)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        """Remove contexts, or try to: a fork of them that would be left forbids it."""
        names = data.draw(st.lists(st.sampled_from(self.pair.contexts), unique=True, min_size=1, max_size=3))
        erasure = self.pair.erasure(contexts=tuple(names))
        if any(each.parent in names and each.id not in names for each in self.pair.known.contexts()):
            with pytest.raises(InvalidSetting, match="fork"):
                self.store.erase(erasure)
        else:
            self.pair.erase(erasure)
            self.waiting = [each for each in self.waiting if each.context not in names]

    @precondition(lambda self: self.reopen is not None)
    @rule()
    def close_and_open(self) -> None:
        """Close the store, and open it again."""
        assert self.reopen is not None, "the precondition says so"
        self.store.close()
        type(self).store = self.pair.store = self.reopen()

    @rule(name=_names, behind=st.integers(-3, 3).filter(bool))
    def append_from_another_state(self, name: str, behind: int) -> None:
        """Commit from a head, then from a revision, that is not the store's."""
        record = self.pair.following(self._id(name))
        stale = record._replace(head=max(record.head + behind, 0))
        if stale.head != record.head:
            with pytest.raises(WriteConflict):
                self.store.commit(appended(stale, b"stale"))
        with pytest.raises(WriteConflict):
            self.store.commit(appended(record._replace(revision=record.revision + behind), b"stale"))

    @rule(name=_names, first=st.integers(0, 30), length=st.integers(0, 9), containing=st.none() | st.binary(max_size=2))
    def read_a_part(self, name: str, first: int, length: int, containing: bytes | None) -> None:
        """Read some entries, some pages, of each state, and some compactions."""
        context, end = self._id(name), first + length
        known = self.pair.known
        rows = list(known.entries(context))[first:end]
        expected = [row for row in rows if containing is None or containing in row.body]
        assert list(self.store.entries(context, first, end, containing=containing)) == expected
        for state in (None, *PageState):
            pages = [page for page in known.pages(context, state=state) if first <= page.index <= end]
            assert list(self.store.pages(context, first=first, last=end, state=state)) == pages
        compactions = [row for row in known.compactions(context) if row.head <= first]
        assert list(self.store.compactions(context, head=first)) == compactions

    @rule(data=st.data(), name=_names, goes=st.booleans())
    def queue(self, data: st.DataObject, name: str, goes: bool) -> None:
        """Put a ticket behind all others, and change or remove one that is there: once, then it is not so any more."""
        self._arrives(name)
        old = data.draw(st.sampled_from(self.waiting))
        new = [] if goes else [old._replace(expires=old.expires + 0.1)]
        for there in (True, False):
            assert self.store.replace_ticket(old, new[0] if new else None) == there, "a ticket is replaced as it was"
        place = self.waiting.index(old)
        self.waiting[place : place + 1] = new

    @invariant()
    def reads_alike(self) -> None:
        """Whatever is asked, both stores answer alike."""
        self.pair.check()
        found = [each for each in self.store.tickets() if each.token.startswith(f"{self.run} ")]
        assert sorted(found) == sorted(self.waiting), "tickets of all contexts are there"
        for context in {each.context for each in self.waiting}:
            expected = [each for each in self.waiting if each.context == context]
            assert list(self.store.tickets(context)) == expected, "tickets of a context are in order"

    def teardown(self) -> None:
        """Empty the queues, and let a store that can check its files do so."""
        for each in self.waiting:
            assert self.store.replace_ticket(each, None)
        if isinstance(self.store, CheckedStorage):
            assert self.store.damage() == [], "a store finds nothing wrong with what it wrote"

    def _arrives(self, name: str) -> None:
        self.waiting.append(Ticket(self._id(name), f"{self.run} {next(_tokens)}", "ü", "", 0.5, 1.0))
        assert self.store.replace_ticket(None, self.waiting[-1])

    def _id(self, name: str) -> str:
        return f"{name} {self.run}"

    def _paged(self) -> list[str]:
        return [name for name in self.pair.contexts if list(self.pair.known.pages(name))]

    def _filled(self) -> list[str]:
        return [record.id for record in self.pair.known.contexts() if record.head]

    def _views(self, data: st.DataObject, name: str, end: int | None = None) -> tuple[tuple[int, int, int], ...]:
        """Return new views of some of the entries of context *name* before *end*."""
        rows = list(self.pair.known.entries(name))[:end]
        seen = data.draw(st.lists(st.sampled_from(rows), unique=True, max_size=2)) if rows else []
        return tuple((row.seq, row.tokens + 1, row.clip + 64) for row in seen)
