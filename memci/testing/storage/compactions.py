"""What every store must keep of a context's past: its revision, its compactions, its ops.

    commit, compaction, commit, compaction     ──▶  revision 4; compactions 4 and 2, newest first; load gives the one
    of 4

This is a part of `memci.testing.storage.StorageConformance`; inherit that one.
This module knows nothing of how a store keeps its rows.
"""

from collections.abc import Callable

import pytest

from ...errors import WriteConflict
from ...storage.protocol import CompactionRow, OpRow, Storage, Transition
from .rows import append, appended, current, edit, everything, with_op


class StorageCompactions:
    """What was, is there still."""

    def test_revision_follows_commits(self, storage: Storage, reread: Callable[[], Storage]) -> None:
        """A context that is not there is at revision 0, and each commit of its own is one more."""
        assert storage.revision("a") == 0

        seen = []
        for i in range(3):
            append(storage, "a", b"%d" % i)
            append(storage, "b", b"x")
            seen.append(storage.revision("a"))
        edit(storage, "a", "one")

        again = reread()
        assert seen == [1, 2, 3]
        assert (again.revision("a"), again.revision("b"), again.revision("nobody")) == (4, 3, 0)

    def test_revision_stays_when_a_commit_is_refused_or_known(self, storage: Storage) -> None:
        """What changed nothing is no revision."""
        first = with_op(appended(current(storage, "a"), b"1"), "op")
        storage.commit(first)

        storage.commit(first)
        with pytest.raises(WriteConflict):
            storage.commit(appended(current(storage, "b")._replace(revision=5), b"late"))
        with pytest.raises(WriteConflict):
            storage.commit(first._replace(op=None))

        assert (storage.revision("a"), storage.revision("b")) == (1, 0)

    def test_compactions_are_kept_beside_one_another(self, storage: Storage, reread: Callable[[], Storage]) -> None:
        """Every compaction is there, newest first, with the revision, head and turn of its record; load gives the
        last."""
        expected = []
        for i in range(40):
            made = append(storage, "a", b"%d" % i, b"x")
            if i % 3 == 0:
                made = edit(storage, "a", f"ä\x00 {i}" * (1 + 500 * (i % 2)))
                record = made.record
                expected.append(CompactionRow(record.revision, record.head, record.turn, made.compaction or ""))
            edit(storage, "b", f"{i}")

        again = reread()
        loaded = again.load("a")
        assert list(again.compactions("a")) == expected[::-1]
        assert loaded is not None and loaded[1] == expected[-1].text
        assert [row.text for row in again.compactions("b")] == [f"{i}" for i in reversed(range(40))]

    def test_compactions_up_to_a_head(self, storage: Storage, reread: Callable[[], Storage]) -> None:
        """With a head only the compactions that were made at it or before are given, however many share a head."""
        for name in ("0", "0 again", "2", "4", "4 again"):
            while current(storage, "a").head < int(name[0]):
                append(storage, "a", b"x")
            edit(storage, "a", name)

        again = reread()
        for head, expected in (
            (0, ["0 again", "0"]),
            (1, ["0 again", "0"]),
            (2, ["2", "0 again", "0"]),
            (3, ["2", "0 again", "0"]),
            (4, ["4 again", "4", "2", "0 again", "0"]),
            (900, ["4 again", "4", "2", "0 again", "0"]),
            (None, ["4 again", "4", "2", "0 again", "0"]),
        ):
            assert [row.text for row in again.compactions("a", head=head)] == expected
        assert list(again.compactions("nobody")) == []

    def test_compaction_that_comes_with_entries_is_of_the_head_after_them(
        self, storage: Storage, reread: Callable[[], Storage]
    ) -> None:
        """A compaction is of the record that it was committed with, not of the one before."""
        storage.commit(appended(current(storage, "a"), b"1", b"2")._replace(compaction="with two"))

        assert list(reread().compactions("a")) == [CompactionRow(1, 2, 1, "with two")]

    @pytest.mark.parametrize("compaction", [None, "now"])
    def test_context_that_comes_with_its_past(
        self, storage: Storage, reread: Callable[[], Storage], compaction: str | None
    ) -> None:
        """A new context takes over the history, the ops and the revision that it comes with, and goes on from there."""
        history = (CompactionRow(2, 0, 0, "two"), CompactionRow(5, 1, 0, "five ü"))
        ops = (OpRow("old", b"o" * 16, 0, ((1, 0),)), OpRow("newer", b"n" * 16, 1, ((1, 1),)))
        record = current(storage, "a")._replace(revision=7)
        moved = appended(record, b"1", b"2", b"3")._replace(history=history, ops=ops[::-1], compaction=compaction)

        assert storage.commit(moved) is None

        again = reread()
        made = [CompactionRow(7, 3, 1, compaction)] if compaction is not None else []
        assert again.load("a") == (moved.record, compaction or "five ü")
        assert list(again.compactions("a")) == [*made, *history[::-1]]
        assert list(again.ops("a")) == list(ops)
        assert again.commit(appended(current(again, "a"), b"4")._replace(op=ops[0])) == ops[0]
        append(again, "a", b"4")
        assert again.revision("a") == 8

    def test_as_of_can_not_be_put_before_a_context_that_is_there(self, storage: Storage) -> None:
        """A context that has a past already takes no other one: WriteConflict, and nothing changes."""
        append(storage, "a", b"1")
        before = everything(storage, "a")
        record = current(storage, "a")._replace(head=0, next_page=1, revision=7)

        with pytest.raises(WriteConflict):
            storage.commit(appended(record, b"2")._replace(history=(CompactionRow(2, 0, 0, "two"),)))

        assert everything(storage, "a") == before

    def test_new_context_starts_at_revision_one(self, storage: Storage) -> None:
        """A new context without a past is at revision 1: another one is WriteConflict and makes no context."""
        for revision in (0, 2, 7):
            with pytest.raises(WriteConflict):
                storage.commit(appended(current(storage, "a")._replace(revision=revision), b"1"))

        assert storage.contexts() == []

    def test_ops_come_by_their_first_seq(self, storage: Storage, reread: Callable[[], Storage]) -> None:
        """All ops of a context are given, whole, in the order of what they appended, not of their names."""
        expected = []
        for i, name in enumerate(("z", "ä\x00", "", "y", "Y", "b" * 5_000, "a")):
            made = with_op(appended(current(storage, "a"), *[b"x"] * (i + 1)), name, bytes([i]) * 16)
            storage.commit(made)
            expected.append(made.op)
            append(storage, "a", b"without an op")
            storage.commit(with_op(appended(current(storage, "b"), b"x"), name))

        again = reread()
        assert list(again.ops("a")) == expected
        assert len(list(again.ops("b"))) == len(expected)
        assert list(again.ops("nobody")) == []

    def test_views_can_change_again(self, storage: Storage, reread: Callable[[], Storage]) -> None:
        """Of several views of an entry the last one is shown, by whatever range it is read; bytes and digest stay."""
        rows = append(storage, "a", *(b"%d" % i for i in range(300))).entries
        edit(storage, "a", None, (0, 10, 1), (150, 11, 2), (299, 12, 3))
        edit(storage, "a", None, (150, 21, 0), (299, 22, 9))
        append(storage, "a", b"more")
        edit(storage, "a", None, (299, 7, 0))

        expected = list(rows)
        expected[0] = rows[0]._replace(tokens=10, clip=1)
        expected[150] = rows[150]._replace(tokens=21, clip=0)
        again = reread()
        assert list(again.entries("a", 0, 300)) == expected
        assert list(again.entries("a", 150, 151)) == [expected[150]]
        assert list(again.entries("a", containing=b"150")) == [expected[150]]

    def test_view_may_come_with_its_entry(self, storage: Storage, reread: Callable[[], Storage]) -> None:
        """A transition may bring an entry and its view at once."""
        made = appended(current(storage, "a"), b"1", b"2")

        storage.commit(made._replace(views=((1, 5, 4),)))

        assert list(reread().entries("a")) == [made.entries[0], made.entries[1]._replace(tokens=5, clip=4)]

    def test_compaction_alone_is_a_transition(self, storage: Storage) -> None:
        """A context may begin with a compaction of nothing."""
        storage.commit(Transition(0, current(storage, "a"), compaction="empty"))

        assert list(storage.compactions("a")) == [CompactionRow(1, 0, 0, "empty")]
