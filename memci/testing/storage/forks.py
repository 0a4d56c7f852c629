"""What every store must do with forks: the past is shared, nothing else is.

    a    0 1 2 3 4 5 6 7                base of b = 5: b reads 0 … 4 from a
    b              5 6                  base of c = 3: c reads 0 … 2 through b from a
    c          3 4                      each one has its own views of all that it shows

This is a part of `memci.testing.storage.StorageConformance`; inherit that one.
This module knows nothing of how a store keeps its rows.
"""

from collections.abc import Callable

import pytest

from ...errors import InvalidSetting, WriteConflict
from ...storage.protocol import Storage
from .rows import append, appended, bodies_of, current, edit, everything, fork, forked, with_op

LONG = tuple(b"%d" % i for i in range(700))
"""bodies of more entries than a store reads at once"""


class StorageForks:
    """A fork has its parent's past and a life of its own."""

    def test_fork_reads_the_past_from_its_parent(self, storage: Storage, reread: Callable[[], Storage]) -> None:
        """Entries before the base are the parent's, field by field, the others the fork's own."""
        shared = append(storage, "a", b"0", b"1", b"2").entries

        made = fork(storage, "a", "b", 2, b"two", b"three")

        again = reread()
        assert list(again.entries("b")) == [*shared[:2], *made.entries]
        assert again.load("b") == (made.record, None)
        assert list(again.pages("b")) == list(made.pages)
        assert bodies_of(again, "a") == [b"0", b"1", b"2"]
        assert [record.id for record in again.contexts()] == ["a", "b"]

    def test_parent_and_fork_go_on_apart(self, storage: Storage, reread: Callable[[], Storage]) -> None:
        """What either one appends later, with pages, compactions and ops, the other one never shows."""
        append(storage, "a", b"0", b"1")
        edit(storage, "a", "before")
        fork(storage, "a", "b", 1)

        for i in range(3):
            for name in "ab":
                made = appended(current(storage, name), f"{name} {i}".encode())
                assert storage.commit(with_op(made, f"op {i}", name.encode() * 16)) is None
                edit(storage, name, f"{name} {i}")

        again = reread()
        assert bodies_of(again, "a") == [b"0", b"1", b"a 0", b"a 1", b"a 2"]
        assert bodies_of(again, "b") == [b"0", b"b 0", b"b 1", b"b 2"]
        assert [row.text for row in again.compactions("a")] == ["a 2", "a 1", "a 0", "before"]
        assert [row.text for row in again.compactions("b")] == ["b 2", "b 1", "b 0"]
        assert [op.digest for op in again.ops("b")] == [b"b" * 16] * 3
        assert [page.first for page in again.pages("b")] == [1, 1, 2, 3]
        assert (again.revision("a"), again.revision("b")) == (8, 7)

    def test_views_are_of_one_context_alone(self, storage: Storage, reread: Callable[[], Storage]) -> None:
        """A view shows in the context that it was committed to: not in its forks, not in what it was forked from."""
        append(storage, "a", b"0", b"1", b"2", b"3")
        edit(storage, "a", None, (0, 10, 1))
        fork(storage, "a", "b", 3, b"b3")
        fork(storage, "b", "c", 4, b"c4")

        edit(storage, "a", None, (1, 11, 1), (3, 12, 1))
        edit(storage, "b", None, (1, 21, 2), (2, 22, 2), (3, 23, 2))
        edit(storage, "c", None, (2, 32, 3), (3, 33, 3), (4, 34, 3))

        again = reread()
        seen = {name: [(row.tokens, row.clip) for row in again.entries(name)] for name in "abc"}
        assert seen["a"] == [(10, 1), (11, 1), (7, 0), (12, 1)]
        assert seen["b"] == [(7, 0), (21, 2), (22, 2), (23, 2)]
        assert seen["c"] == [(7, 0), (7, 0), (32, 3), (33, 3), (34, 3)]
        assert [row.digest for row in again.entries("c", 0, 3)] == [row.digest for row in again.entries("a", 0, 3)]

    def test_views_may_come_with_the_fork(self, storage: Storage, reread: Callable[[], Storage]) -> None:
        """A fork may begin with views of what it shares and of what it brings, and with a compaction."""
        append(storage, "a", b"0", b"1")

        made = forked("a", "b", 1, b"b1")
        storage.commit(made._replace(views=((0, 5, 4), (1, 6, 4)), compaction="begun"))

        again = reread()
        assert [(row.tokens, row.clip) for row in again.entries("b")] == [(5, 4), (6, 4)]
        assert [(row.tokens, row.clip) for row in again.entries("a")] == [(7, 0), (7, 0)]
        assert again.load("b") == (made.record, "begun")

    def test_ranges_across_borders(self, storage: Storage, reread: Callable[[], Storage]) -> None:
        """Any range is read whole, and in order, wherever it crosses from one generation to the next."""
        append(storage, "a", *LONG)
        fork(storage, "a", "b", 300, *(b"b%d" % i for i in range(300, 500)))
        fork(storage, "b", "c", 400, *(b"c%d" % i for i in range(400, 410)))
        fork(storage, "c", "d", 100, b"d100")
        told = {"a": list(LONG), "b": [*LONG[:300], *(b"b%d" % i for i in range(300, 500))]}
        told["c"] = [*told["b"][:400], *(b"c%d" % i for i in range(400, 410))]
        told["d"] = [*LONG[:100], b"d100"]

        again = reread()
        for name, expected in told.items():
            for first, end in (
                (0, None),
                (299, 301),
                (300, 400),
                (250, 405),
                (399, 401),
                (99, 102),
                (409, 900),
                (5, 3),
            ):
                found = [(row.seq, row.body) for row in again.entries(name, first, end)]
                assert found == list(enumerate(expected))[first:end], (name, first, end)

    def test_search_goes_across_borders(self, storage: Storage, reread: Callable[[], Storage]) -> None:
        """A search finds what a fork shares and what is its own, and nothing that its parent said after it."""
        append(storage, "a", *LONG)
        fork(storage, "a", "b", 400, *(b"own 77" for _ in range(5)))

        again = reread()
        shared = [i for i in range(400) if "77" in str(i)]
        assert [row.seq for row in again.entries("b", containing=b"77")] == [*shared, *range(400, 405)]
        assert [row.seq for row in again.entries("b", 378, 402, containing=b"7")] == [378, 379, 387, 397, 400, 401]
        assert list(again.entries("b", containing=b"677")) == []

    @pytest.mark.parametrize("base", [0, 3])
    def test_fork_at_either_end(self, storage: Storage, reread: Callable[[], Storage], base: int) -> None:
        """A fork may share nothing or all, and own nothing."""
        append(storage, "a", b"0", b"1", b"2")

        made = fork(storage, "a", "b", base)
        append(storage, "a", b"later")
        assert bodies_of(storage, "b") == [b"0", b"1", b"2"][:base]
        append(storage, "b", b"own")

        again = reread()
        assert made.record.head == base
        assert bodies_of(again, "b") == [*[b"0", b"1", b"2"][:base], b"own"]

    @pytest.mark.parametrize(("parent", "base"), [("nobody", 0), ("nobody", 1), ("b", 0), ("a", 4), ("f", 3)])
    def test_fork_of_nothing_is_refused(self, storage: Storage, parent: str, base: int) -> None:
        """A fork of what is not there (itself included), or beyond the head, is InvalidSetting and leaves nothing."""
        append(storage, "a", b"0", b"1", b"2")
        fork(storage, "a", "f", 1, b"1")
        before = everything(storage, "a", "f")

        with pytest.raises(InvalidSetting):
            storage.commit(with_op(forked(parent, "b", base, b"x"), "op"))

        assert storage.load("b") is None
        assert storage.revision("b") == 0
        assert everything(storage, "a", "f") == before
        assert storage.commit(with_op(forked("a", "b", 3, b"x"), "op")) is None

    def test_fork_does_not_take_a_name_that_is_taken(self, storage: Storage) -> None:
        """A fork by the id of a context that is there is WriteConflict, and both stay what they are."""
        append(storage, "a", b"0")
        append(storage, "b", b"b")
        storage.commit(appended(current(storage, "empty")))
        before = everything(storage, "a", "b", "empty")

        for taken in ("a", "b", "empty"):
            with pytest.raises(WriteConflict):
                fork(storage, "a", taken, 1, b"x")

        assert everything(storage, "a", "b", "empty") == before

    def test_op_of_the_parent_is_new_in_a_fork(self, storage: Storage, reread: Callable[[], Storage]) -> None:
        """A fork knows its own ops only; an op that makes it is known when it comes again."""
        storage.commit(with_op(appended(current(storage, "a"), b"0"), "op"))
        made = with_op(forked("a", "b", 1, b"1"), "op")

        assert storage.commit(made) is None

        again = reread()
        assert again.commit(made) == made.op
        assert bodies_of(again, "b") == [b"0", b"1"]
        assert [op.first for op in again.ops("a")] == [0]
