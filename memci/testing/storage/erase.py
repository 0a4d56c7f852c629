"""What every store must do when something is erased: it is gone for all who shared it, and nothing else is.

    a    0 1 ▒ 3                 ▒ a tombstone: it is read by a, by its fork b and by b's fork c
    b        · 3 4               compactions of a, b and c are gone, digests of ops that appended it are zeros
    x    0 1 2                   row for row what it was

This is a part of `memci.testing.storage.StorageConformance`; inherit that one.
This module knows nothing of how a store keeps its rows.
"""

from collections.abc import Callable
from contextlib import suppress

import pytest

from ...errors import StorageError, WriteConflict
from ...storage.codec import ERASED_TEXT, decode
from ...storage.protocol import ErasedRows, Erasure, PageState, Storage
from .rows import append, appended, current, edit, erasing, everything, family, fork, forked, tombstone, with_op

GONE = bytes(16)
"""the digest of an op that appended what was erased"""


class StorageErasure:
    """What is erased is not there; what is not is."""

    def test_tombstone_is_read_by_all_who_shared_the_entry(
        self, storage: Storage, reread: Callable[[], Storage]
    ) -> None:
        """An entry that is erased is its tombstone for parent and forks alike, by whichever of them it was named."""
        family(storage)
        before = {name: list(storage.entries(name)) for name in "abc"}

        storage.erase(erasing(storage, "abc", ("c", 2), ("a", 0)))

        again = reread()
        assert decode(*next(again.entries("c", 2, 3))[1:3]) == {"role": "user", "content": ERASED_TEXT}
        for name in "abc":
            expected = [tombstone(row.seq) if row.seq in (0, 2) else row for row in before[name]]
            assert list(again.entries(name)) == expected
            assert [row.seq for row in again.entries(name, containing=b"two")] == []

    @pytest.mark.parametrize("seqs", [(0,), (63, 64), (99, 100, 101), (255, 256), (511,), (599,), tuple(range(40, 90))])
    def test_neighbours_of_a_tombstone_stay(
        self, storage: Storage, reread: Callable[[], Storage], seqs: tuple[int, ...]
    ) -> None:
        """Among many entries, small and large, only those that are named change; appending goes on."""
        for first in range(0, 600, 150):
            append(storage, "a", *(b"%d" % i * (3_000 if i % 100 == 0 else 1) for i in range(first, first + 150)))
        expected = list(storage.entries("a"))

        storage.erase(erasing(storage, "a", *(("a", seq) for seq in seqs)))

        again = reread()
        for seq in seqs:
            expected[seq] = tombstone(seq)
        expected += append(again, "a", b"later").entries
        assert list(again.entries("a")) == expected

    def test_transitions_of_an_erasure_are_applied(self, storage: Storage, reread: Callable[[], Storage]) -> None:
        """Records, pages, views and compactions are those of the transitions; no compaction before them is left."""
        family(storage)
        pages = {name: list(storage.pages(name)) for name in "ab"}
        erasure = erasing(storage, "ab", ("a", 2))
        after_a, after_b = erasure.transitions
        gone = pages["a"][0]._replace(state=PageState.ERASED)
        after_a = after_a._replace(pages=(gone,), compaction="after", views=((1, 70, 64), (2, 4, 1)))

        storage.erase(erasure._replace(transitions=(after_a, after_b)))

        again = reread()
        assert again.load("a") == (after_a.record, "after")
        assert [(row.revision, row.text) for row in again.compactions("a")] == [(after_a.record.revision, "after")]
        assert list(again.pages("a")) == [gone, *pages["a"][1:]]
        assert list(again.pages("a", state=PageState.ERASED)) == [gone]
        assert [(row.tokens, row.clip) for row in again.entries("a", 1, 3)] == [(70, 64), (4, 1)]
        assert again.load("b") == (after_b.record, None)
        assert list(again.compactions("b")) == []
        assert list(again.pages("b")) == pages["b"]
        assert again.revision("b") == after_b.record.revision

    def test_ops_that_appended_it_forget_their_digest(self, storage: Storage, reread: Callable[[], Storage]) -> None:
        """Ops that appended an erased entry stay known, with 16 zero bytes for a digest; the others are as before."""
        for i in range(4):
            storage.commit(with_op(appended(current(storage, "a"), b"x", b"y"), f"op {i}"))
        before = list(storage.ops("a"))

        storage.erase(erasing(storage, "a", ("a", 3), ("a", 4)))

        again = reread()
        expected = [before[0], before[1]._replace(digest=GONE), before[2]._replace(digest=GONE), before[3]]
        assert list(again.ops("a")) == expected
        assert again.commit(with_op(appended(current(again, "a"), b"x", b"y"), "op 1")) == expected[1]

    def test_own_entries_with_the_seq_of_an_erased_one_stay(
        self, storage: Storage, reread: Callable[[], Storage]
    ) -> None:
        """A fork's own entry, its view and its op stay when its parent's entry of the same seq is erased."""
        storage.commit(with_op(appended(current(storage, "a"), b"0", b"1", b"2"), "op"))
        storage.commit(with_op(forked("a", "b", 1, b"b1", b"b2"), "op"))
        edit(storage, "b", None, (1, 5, 4), (2, 6, 4))
        before = list(storage.entries("b")), list(storage.ops("b"))

        storage.erase(erasing(storage, "ab", ("a", 0), ("a", 2)))

        again = reread()
        assert list(again.entries("b")) == [tombstone(0), *before[0][1:]]
        assert list(again.ops("b")) == before[1]
        assert [op.digest for op in again.ops("a")] == [GONE]

    def test_erasing_from_two_contexts_mixes_nothing_up(self, storage: Storage, reread: Callable[[], Storage]) -> None:
        """One erasure may name entries of contexts that share nothing: each loses its own, not those of like seqs."""
        for name in "ab":
            storage.commit(with_op(appended(current(storage, name), b"0"), "first"))
            storage.commit(with_op(appended(current(storage, name), b"1"), "second"))
            edit(storage, name, None, (0, 5, 4), (1, 6, 4))
        before = {name: list(storage.entries(name)) for name in "ab"}

        storage.erase(erasing(storage, "ab", ("a", 0), ("b", 1)))

        again = reread()
        assert list(again.entries("a")) == [tombstone(0), before["a"][1]]
        assert list(again.entries("b")) == [before["b"][0], tombstone(1)]
        assert [op.digest for op in again.ops("a")] == [GONE, b"d" * 16]
        assert [op.digest for op in again.ops("b")] == [b"d" * 16, GONE]

    @pytest.mark.parametrize("stale", ["a", "b", "c"])
    def test_stale_erasure_leaves_everything(self, storage: Storage, reread: Callable[[], Storage], stale: str) -> None:
        """If one of the transitions follows another state, the erasure is WriteConflict and none of it happened."""
        family(storage)
        erasure = erasing(storage, "abc", ("a", 2))._replace(contexts=("x",))
        append(storage, stale, b"meanwhile")
        before = everything(storage, "a", "b", "c", "x")

        with pytest.raises(WriteConflict):
            storage.erase(erasure)

        assert everything(storage, "a", "b", "c", "x") == before
        assert everything(reread(), "a", "b", "c", "x") == before

    def test_other_contexts_stay_row_for_row(self, storage: Storage, reread: Callable[[], Storage]) -> None:
        """What shares nothing with the erased is as it was: rows, views, pages, compactions, ops."""
        family(storage)
        fork(storage, "x", "y", 1, b"y")
        before = everything(storage, "x", "y")

        storage.erase(erasing(storage, "abc", ("a", 0), ("a", 1)))

        assert everything(storage, "x", "y") == before
        assert everything(reread(), "x", "y") == before

    def test_erasing_again_is_fine(self, storage: Storage, reread: Callable[[], Storage]) -> None:
        """A tombstone may take the place of a tombstone, with nothing lost beside it."""
        family(storage)
        storage.erase(erasing(storage, "abc", ("a", 2)))
        before = list(storage.entries("c")), list(storage.ops("a"))

        erased = storage.erase(erasing(storage, "abc", ("b", 2)))

        again = reread()
        assert (list(again.entries("c")), list(again.ops("a"))) == before
        assert erased.ops == 0
        assert again.erase(Erasure()) == ErasedRows()

    @pytest.mark.parametrize(("context", "seq"), [("nobody", 0), ("a", 4), ("b", 900)])
    def test_erasing_what_never_was_changes_nothing(
        self, storage: Storage, reread: Callable[[], Storage], context: str, seq: int
    ) -> None:
        """An entry that is not there is fine or a StorageError; in either case the store goes on as it was."""
        family(storage)
        before = everything(storage, "a", "b", "c", "x", "nobody")

        with suppress(StorageError):
            storage.erase(Erasure(entries=((context, tombstone(seq)),)))

        assert everything(storage, "a", "b", "c", "x", "nobody") == before
        assert everything(reread(), "a", "b", "c", "x", "nobody") == before

    def test_erased_says_how_many_rows_went(self, storage: Storage) -> None:
        """The counts are those of the tombstones, of the compactions before and of the ops that forgot their digest."""
        family(storage)
        compactions = sum(len(list(storage.compactions(name))) for name in "abc")

        erased = storage.erase(erasing(storage, "abc", ("a", 2), ("c", 0)))

        assert compactions > 3
        assert erased == ErasedRows(contexts=0, entries=2, pages=0, compactions=compactions, ops=2)
