"""What every store must do with a context's history: commits, compactions, ops, views, forks, erasing, removal.

    a    0 1 ▒ 3             base of b = 3: b reads 0 … 2 from a; what either appends later the other never shows
    b          3 4           ▒ a tombstone: an erased entry is gone for all contexts that show it
    x    0 1 2               x shares nothing with them, and stays row for row as it was

Each test changes a store and its model (`ModelledStore`) and compares all that can be read of both. This is a part of
`memci.testing.storage.StorageConformance`; inherit that one. This module knows nothing of how a store keeps its rows.
"""

from contextlib import suppress

import pytest

from ...errors import InvalidSetting, StorageError, WriteConflict
from ...storage.protocol import CompactionRow, Erasure, OpRow
from .model import NOTHING, ModelledStore
from .rows import Reread, appended, everything, forked, tombstone, with_op

LONG = tuple(b"%d" % i for i in range(700))
"""bodies of more entries than a store reads at once"""


class StorageHistories:
    """What is read is what the history of commits makes it."""

    @pytest.mark.parametrize("compaction", [None, "now"])
    def test_context_that_comes_with_its_history(
        self, pair: ModelledStore, reread: Reread, compaction: str | None
    ) -> None:
        """A new context takes over the compactions, ops and revision that it comes with, and goes on from there."""
        history = (CompactionRow(2, 0, 0, "two"), CompactionRow(5, 1, 0, "five ü"))
        ops = (OpRow("old", b"o" * 16, 0, ((1, 0),)), OpRow("newer", b"n" * 16, 1, ((1, 1),)))
        moved = appended(pair.following("a")._replace(revision=7), b"1", b"2", b"3")
        pair.commit(moved._replace(history=history, ops=ops[::-1], compaction=compaction))

        pair.check(reread())
        assert pair.append("a", b"4", op="old").op is not None
        pair.append("a", b"4")
        pair.check()

    def test_history_can_not_be_put_before_a_context_that_is_there(self, pair: ModelledStore) -> None:
        """A context that has a history already takes no other one: WriteConflict, and nothing changes."""
        pair.append("a", b"1")
        record = pair.following("a")._replace(head=0, next_page=1, revision=7)
        moved = appended(record, b"2")._replace(history=(CompactionRow(2, 0, 0, "two"),))

        pair.refused(WriteConflict, moved)

    def test_ranges_and_searches_go_across_generations(self, pair: ModelledStore, reread: Reread) -> None:
        """Any range is read whole, in order, and a search finds what is shared and what is own, and nothing else."""
        pair.append("a", *LONG)
        pair.fork("a", "b", 300, *(b"b%d" % i for i in range(300, 500)))
        pair.fork("b", "c", 400, *(b"c%d" % i for i in range(400, 410)))
        pair.fork("c", "d", 100, b"d100")
        ranges = [(0, None), (0, 0), (5, 3), (63, 65), (99, 102), (299, 301), (250, 405), (399, 401), (409, 900)]

        again = reread()
        for name, model in pair.models.items():
            for first, end in [*ranges, (1, 699), (699, 700), (690, 900), (700, None)]:
                assert list(again.entries(name, first, end)) == model.entries[first:end], (name, first, end)
                for containing in (b"77", b"7", b"677", b"b", b"00"):
                    expected = [row for row in model.entries[first:end] if containing in row.body]
                    assert list(again.entries(name, first, end, containing=containing)) == expected

    @pytest.mark.parametrize(("parent", "base"), [("nobody", 0), ("nobody", 1), ("b", 0), ("a", 4), ("f", 3)])
    def test_fork_of_nothing_is_refused(self, pair: ModelledStore, parent: str, base: int) -> None:
        """A fork of what is not there (itself included), or beyond the head, is InvalidSetting and leaves nothing."""
        pair.append("a", b"0", b"1", b"2")
        pair.fork("a", "f", 1, b"1")

        pair.refused(InvalidSetting, with_op(forked(parent, "b", base, b"x"), "op"))

        assert everything(pair.store, "b") == [NOTHING]
        pair.fork("a", "b", 3, b"x", op="op")
        pair.check()

    @pytest.mark.parametrize("seqs", [(0,), (63, 64), (99, 100, 101), (255, 256), (511,), (599,), tuple(range(40, 90))])
    def test_neighbours_of_a_tombstone_stay(self, pair: ModelledStore, reread: Reread, seqs: tuple[int, ...]) -> None:
        """Among many entries, small and large, only those that are named change; appending goes on."""
        for first in range(0, 600, 150):
            pair.append("a", *(b"%d" % i * (3_000 if i % 100 == 0 else 1) for i in range(first, first + 150)))

        pair.erase(pair.erasure(*(("a", seq) for seq in seqs)))

        pair.check(reread())
        pair.append("a", b"later")
        pair.check()

    @pytest.mark.parametrize(("context", "seq"), [("nobody", 0), ("a", 4), ("b", 900)])
    def test_erasing_what_never_was_changes_nothing(
        self, pair: ModelledStore, reread: Reread, context: str, seq: int
    ) -> None:
        """An entry that is not there is fine or a StorageError; in either case the store goes on as it was."""
        pair.family()

        with suppress(StorageError):
            pair.store.erase(Erasure(entries=((context, tombstone(seq)),)))

        pair.check()
        pair.check(reread())
        assert everything(pair.store, "nobody") == [NOTHING]

    def test_reading_that_began_before_a_removal_ends(self, pair: ModelledStore) -> None:
        """An iterator that is half read when its context is removed gives no wrong row, and the store goes on."""
        pair.append("a", *LONG)
        pair.append("b", b"1")
        rows = pair.store.entries("a")
        seen = [next(rows).body]
        pair.erase(pair.erasure(contexts=("a",)))

        with suppress(StorageError):  # it may say that its rows are gone
            seen += [row.body for row in rows]

        assert seen == list(LONG[: len(seen)])
        pair.check()
