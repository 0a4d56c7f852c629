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
from ...storage.codec import ERASED_TEXT, decode
from ...storage.protocol import CompactionRow, Erasure, OpRow, PageRow, PageState, Transition
from .model import NOTHING, ModelledStore
from .rows import Reread, appended, bodies_of, entry, everything, forked, tombstone, with_op

LONG = tuple(b"%d" % i for i in range(700))
"""bodies of more entries than a store reads at once"""


class StorageHistories:
    """What is read is what the history of commits makes it."""

    def test_commit_that_does_not_follow_is_refused(self, pair: ModelledStore) -> None:
        """Another head or revision than the store's is WriteConflict, also for a new context, and leaves no trace."""
        pair.append("a", b"1", b"2", compaction="kept")
        record = pair.following("a")
        late = appended(record, b"late")._replace(compaction="late", op=OpRow("late", b"d" * 16, 2, ((1, 0),)))
        for head in (0, 1, 3):
            behind = appended(record._replace(head=head, owner="late", next_page=1), b"late")
            pair.refused(WriteConflict, behind)
        for revision in (0, 1, 3):
            behind = late._replace(record=late.record._replace(revision=revision))
            pair.refused(WriteConflict, behind, "revision")
            pair.refused(
                WriteConflict, Transition(2, record._replace(revision=revision), compaction="late"), "revision"
            )
        for head, revision in ((5, 1), (0, 0), (0, 2), (0, 7)):
            made = appended(pair.following("new")._replace(head=head, revision=revision), b"1")
            pair.refused(WriteConflict, made)

        pair.append("a", op="late")

        assert pair.store.load("new") is None
        pair.check()

    def test_page_leaves_its_old_state(self, pair: ModelledStore, reread: Reread) -> None:
        """A page that is committed again is in its new state alone, and may come back to the old one."""
        pair.append("a", b"1")
        for state in (PageState.ARCHIVED, PageState.ACTIVE):
            pair.commit(Transition(1, pair.following("a"), pages=(PageRow(1, 0, 1, 0, state),)))
            pair.check()

        pair.check(reread())

    def test_known_op_applies_nothing(self, pair: ModelledStore, reread: Reread) -> None:
        """An op_id that is known gives the stored row back, whatever comes with it; another context's is not known."""
        op = OpRow("op \x00ü", b"d" * 16, 0, ((1, 0), (1, 1)))
        first = appended(pair.following("a"), b"1", b"2")._replace(op=op)
        pair.commit(first)
        pair.append("a", b"3")

        for again in (
            first,
            first._replace(op=OpRow(op.op_id, b"e" * 16, 9, ())),
            appended(pair.following("a"), b"4")._replace(op=op),
        ):
            assert pair.commit(again) == op
        assert pair.commit(appended(pair.following("b"), b"2")._replace(op=op)) is None

        pair.check(reread())
        assert pair.commit(first) == op

    def test_ops_come_by_their_first_seq(self, pair: ModelledStore, reread: Reread) -> None:
        """All ops of a context are given, whole, in the order of what they appended, not of their names."""
        names = ("z", "ä\x00", "", "y", "Y", "b" * 5_000, "a")
        for i, name in enumerate(names):
            pair.commit(with_op(appended(pair.following("a"), *[b"x"] * (i + 1)), name, bytes([i]) * 16))
            pair.append("a", b"without an op")
            pair.append("b", b"x", op=name)

        pair.check(reread())
        assert [op.op_id for op in pair.store.ops("a")] == list(names)
        assert list(pair.store.ops("nobody")) == []

    def test_contexts_are_all_there(self, pair: ModelledStore) -> None:
        """contexts() gives each record, by id, however many there are."""
        for i in reversed(range(300)):
            name = f"c{i:03}"
            pair.commit(Transition(0, pair.following(name)))

        assert list(pair.store.contexts()) == [model.record for _, model in sorted(pair.models.items())]

    # -- compactions

    def test_compactions_are_kept_beside_one_another(self, pair: ModelledStore, reread: Reread) -> None:
        """Every compaction is there, newest first, with the revision, head and turn of its record; load gives the last.

        A context may begin with one, and one may come with entries.
        """
        pair.commit(Transition(0, pair.following("empty"), compaction="empty"))
        pair.append("c", b"1", b"2", compaction="with two")
        for i in range(40):
            pair.append("a", b"%d" % i, b"x")
            if i % 3 == 0:
                pair.edit("a", f"ä\x00 {i}" * (1 + 500 * (i % 2)))
            pair.edit("b", f"{i}")

        pair.check(reread())
        assert list(pair.store.compactions("c")) == [CompactionRow(1, 2, 1, "with two")]
        assert list(pair.store.compactions("nobody")) == []

    def test_compactions_up_to_a_head(self, pair: ModelledStore, reread: Reread) -> None:
        """With a head only the compactions that were made at it or before are given, however many share a head."""
        for name in ("0", "0 again", "2", "4", "4 again"):
            while pair.following("a").head < int(name[0]):
                pair.append("a", b"x")
            pair.edit("a", name)

        again = reread()
        newest_first = pair.models["a"].compactions[::-1]
        for head in (0, 1, 2, 3, 4, 900, None):
            expected = [row for row in newest_first if head is None or row.head <= head]
            assert list(again.compactions("a", head=head)) == expected

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

    # -- views

    def test_views_change_tokens_and_clip_alone(self, pair: ModelledStore, reread: Reread) -> None:
        """A view changes what an entry costs, never what it says; it may come with its entry; the last one is shown."""
        rows = tuple(entry(i, b"%d" % i, at="then")._replace(quotes=(1, i)) for i in range(300))
        pair.commit(
            Transition(0, pair.following("a")._replace(head=300), rows, views=((0, 10, 1), (150, 11, 2), (299, 12, 3)))
        )
        pair.edit("a", None, (150, 21, 0), (299, 22, 9))
        pair.append("a", b"more")
        pair.edit("a", None, (299, 7, 0))

        pair.check(reread())
        expected = rows[150]._replace(tokens=21, clip=0)
        assert list(pair.store.entries("a", 150, 151)) == [expected]
        assert list(pair.store.entries("a", containing=b"150")) == [expected]

    # -- forks

    @pytest.mark.parametrize("base", [0, 1, 3])
    def test_fork_shares_the_entries_before_its_base(self, pair: ModelledStore, reread: Reread, base: int) -> None:
        """Parent and fork have the entries before the base in common, none or all of them, and go on apart."""
        pair.append("a", b"0", b"1", b"2")
        pair.edit("a", "before")
        pair.fork("a", "b", base)
        for i in range(3):
            for name in "ab":
                pair.append(name, f"{name} {i}".encode(), op=f"op {i}")
                pair.edit(name, f"{name} {i}")

        pair.check(reread())
        assert bodies_of(pair.store, "b") == [*[b"0", b"1", b"2"][:base], b"b 0", b"b 1", b"b 2"]

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

    @pytest.mark.parametrize("taken", ["a", "b", "empty"])
    def test_fork_does_not_take_an_id_that_is_taken(self, pair: ModelledStore, taken: str) -> None:
        """A fork by the id of a context that is there is WriteConflict, and both stay what they are."""
        pair.append("a", b"0")
        pair.append("b", b"b")
        pair.append("empty")

        pair.refused(WriteConflict, forked("a", taken, 1, b"x"))

    # -- erasing

    @pytest.mark.parametrize("seqs", [(0,), (63, 64), (99, 100, 101), (255, 256), (511,), (599,), tuple(range(40, 90))])
    def test_neighbours_of_a_tombstone_stay(self, pair: ModelledStore, reread: Reread, seqs: tuple[int, ...]) -> None:
        """Among many entries, small and large, only those that are named change; appending goes on."""
        for first in range(0, 600, 150):
            pair.append("a", *(b"%d" % i * (3_000 if i % 100 == 0 else 1) for i in range(first, first + 150)))

        pair.erase(pair.erasure(*(("a", seq) for seq in seqs)))

        pair.check(reread())
        pair.append("a", b"later")
        pair.check()

    def test_erasure_is_read_by_all_that_shared_the_entry(self, pair: ModelledStore, reread: Reread) -> None:
        """An erased entry is its tombstone for parent and forks alike, by whichever of them it was named.

        Records, pages, views and compactions are those of the transitions; no compaction before them is left.
        """
        pair.family()
        gone = next(pair.store.pages("a"))._replace(state=PageState.ERASED)
        erasure = pair.erasure(("c", 2), ("a", 0))
        first, *others = erasure.transitions
        first = first._replace(pages=(gone,), compaction="after", views=((1, 70, 64), (2, 4, 1)))

        pair.erase(erasure._replace(transitions=(first, *others)))

        pair.check(reread())
        assert [row.text for row in pair.store.compactions("a")] == ["after"]
        assert decode(*next(pair.store.entries("c", 2, 3))[1:3]) == {"role": "user", "content": ERASED_TEXT}
        for name in "abc":
            assert list(pair.store.entries(name, containing=b"two")) == []

    def test_ops_that_appended_it_forget_their_digest(self, pair: ModelledStore, reread: Reread) -> None:
        """Ops that appended an erased entry stay known, with 16 zero bytes for a digest; the others are as before.

        A fork's own entry of the same seq, its view and its op stay.
        """
        for i in range(4):
            pair.append("a", b"x", b"y", op=f"op {i}")
        pair.fork("a", "b", 1, b"b1", b"b2", b"b3", b"b4", op="op")
        pair.edit("b", None, (1, 5, 4), (2, 6, 4))

        pair.erase(pair.erasure(("a", 3), ("a", 4), ("a", 0)))

        pair.check(reread())
        assert [any(op.digest) for op in pair.store.ops("a")] == [False, False, False, True]
        assert pair.commit(with_op(appended(pair.following("a"), b"x", b"y"), "op 1")) is not None

    def test_erasing_from_two_contexts_mixes_nothing_up(self, pair: ModelledStore, reread: Reread) -> None:
        """One erasure may name entries of contexts that share nothing, and remove others whole."""
        pair.family()
        for name in "pq":
            pair.append(name, b"0", op="first")
            pair.append(name, b"1", op="second")

        pair.erase(pair.erasure(("p", 0), ("q", 1), ("a", 1), contexts=("x",)))

        pair.check(reread())
        assert [[any(op.digest) for op in pair.store.ops(name)] for name in "pq"] == [[False, True], [True, False]]

    @pytest.mark.parametrize("stale", ["a", "b", "c"])
    def test_stale_erasure_leaves_everything(self, pair: ModelledStore, reread: Reread, stale: str) -> None:
        """If one of the transitions follows another state, the erasure is WriteConflict and none of it happened."""
        pair.family()
        erasure = pair.erasure(("a", 2), contexts=("x",))
        pair.append(stale, b"meanwhile")

        pair.refused(WriteConflict, erasure)

        pair.check(reread())

    def test_erasing_again_is_fine(self, pair: ModelledStore, reread: Reread) -> None:
        """A tombstone may replace a tombstone, and contexts may be named that are not there any more."""
        pair.family()
        pair.erase(pair.erasure(("a", 2), contexts=("x",)))

        pair.erase(pair.erasure(("b", 2), contexts=("nobody", "x")))

        pair.check(reread())
        pair.erase(Erasure())

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

    # -- removing whole contexts

    def test_removed_context_can_be_made_again(self, pair: ModelledStore, reread: Reread) -> None:
        """An id is free again: nothing of its first life shows in the second, and an op of then is new."""
        pair.family()
        pair.append("x", *[b"old"] * 300)
        pair.erase(pair.erasure(contexts=("x", "c")))

        pair.append("x", b"new", b"new", b"new", op="first")
        pair.fork("b", "c", 1)

        pair.check(reread())

    def test_entries_that_a_fork_shares_are_not_removed(self, pair: ModelledStore, reread: Reread) -> None:
        """Removing a context whose fork would be left is InvalidSetting, it names the fork, and nothing has changed."""
        pair.family()

        for contexts, left in ((("a",), "b"), (("x", "b"), "c"), (("a", "c"), "b"), (("a", "b"), "c")):
            erasure = Erasure(contexts=contexts)
            pair.refused(InvalidSetting, erasure, f"'{left}'")

        pair.check(reread())

    @pytest.mark.parametrize("contexts", [("a", "b", "c"), ("c", "b", "a"), ("b", "a", "c", "a")])
    def test_contexts_are_removed_with_their_forks(
        self, pair: ModelledStore, reread: Reread, contexts: tuple[str, ...]
    ) -> None:
        """A context and all of its forks may be removed at once, in whatever order they are named."""
        pair.family()

        pair.erase(pair.erasure(contexts=contexts))

        pair.check(reread())

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
