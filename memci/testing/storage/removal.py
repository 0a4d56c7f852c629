"""What every store must do when a context is removed whole.

    erase(contexts=("a",))    b is a fork of a   ──▶  InvalidSetting, it names b
    erase(contexts=("a", "b"))                   ──▶  both are unknown, their ids are free

This is a part of `memci.testing.storage.StorageConformance`; inherit that one.
This module knows nothing of how a store keeps its rows.
"""

from collections.abc import Callable
from contextlib import suppress

import pytest

from ...errors import InvalidSetting, StorageError
from ...storage.protocol import ErasedRows, Erasure, PageRow, PageState, Storage, Transition
from .rows import append, appended, bodies_of, current, edit, erasing, everything, family, fork, with_op

_NOTHING: tuple[object, ...] = (None, 0, [], [], [], [])
"""all that can be read of a context that is not there"""


class StorageRemoval:
    """A context that was removed was never there."""

    def test_removed_context_is_unknown(self, storage: Storage, reread: Callable[[], Storage]) -> None:
        """Nothing can be read of a context that was removed; the others are row for row what they were."""
        family(storage)
        before = everything(storage, "a", "b", "x")

        storage.erase(Erasure(contexts=("c",)))

        again = reread()
        assert everything(again, "c") == [_NOTHING]
        assert list(again.entries("c", 0, 9, containing=b"")) == []
        assert everything(again, "a", "b", "x") == before
        assert [record.id for record in again.contexts()] == ["a", "b", "x"]

    def test_removed_context_can_be_made_again(self, storage: Storage, reread: Callable[[], Storage]) -> None:
        """An id is free again: nothing of its first life shows in the second, and an op of then is new."""
        family(storage)
        append(storage, "x", *[b"old"] * 300)
        storage.erase(Erasure(contexts=("x", "c")))

        made = with_op(appended(current(storage, "x"), b"new", b"new", b"new"), "first")
        assert storage.commit(made) is None
        forked = fork(storage, "b", "c", 1)

        again = reread()
        shared = next(again.entries("a"))
        assert everything(again, "x", "c") == [
            ((made.record, None), 1, list(made.entries), list(made.pages), [], [made.op]),
            ((forked.record, None), 1, [shared], list(forked.pages), [], []),
        ]

    def test_as_of_that_a_fork_shares_is_not_removed(self, storage: Storage, reread: Callable[[], Storage]) -> None:
        """Removing a context whose fork would be left is InvalidSetting, it names the fork, and nothing has changed."""
        family(storage)
        before = everything(storage, "a", "b", "c", "x")

        for contexts, left in ((("a",), "b"), (("x", "b"), "c"), (("a", "c"), "b"), (("a", "b"), "c")):
            with pytest.raises(InvalidSetting, match=f"'{left}'"):
                storage.erase(Erasure(contexts=contexts))

        assert everything(storage, "a", "b", "c", "x") == before
        assert everything(reread(), "a", "b", "c", "x") == before

    @pytest.mark.parametrize("contexts", [("a", "b", "c"), ("c", "b", "a"), ("b", "a", "c", "a")])
    def test_contexts_are_removed_with_their_forks(
        self, storage: Storage, reread: Callable[[], Storage], contexts: tuple[str, ...]
    ) -> None:
        """A context and all of its forks may be removed at once, in whatever order they are named."""
        family(storage)
        before = everything(storage, "x")

        erased = storage.erase(Erasure(contexts=contexts))

        again = reread()
        assert erased.contexts == 3
        assert everything(again, "a", "b", "c") == [_NOTHING] * 3
        assert everything(again, "x") == before

    def test_removing_what_is_gone_is_fine(self, storage: Storage) -> None:
        """Naming contexts that are not there, or not any more, removes those that are, and counts them."""
        append(storage, "a", b"1")

        first = storage.erase(Erasure(contexts=("nobody", "a")))
        second = storage.erase(Erasure(contexts=("a", "nobody")))

        assert (first.contexts, first.entries, first.pages) == (1, 1, 1)
        assert second == ErasedRows()

    def test_removing_counts_all_rows(self, storage: Storage) -> None:
        """ErasedRows counts a fork's own entries only, pages that there are, all compactions and all ops."""
        append(storage, "a", b"0", b"1", b"2")
        made = fork(storage, "a", "b", 2, b"b2", b"b3")
        far = PageRow(9, 0, 1, 0, PageState.ARCHIVED)
        storage.commit(Transition(4, current(storage, "b")._replace(next_page=10), pages=(far,)))
        storage.commit(with_op(appended(current(storage, "b"), b"b4"), "op"))
        edit(storage, "b", "one")
        edit(storage, "b", "two", (0, 1, 1))

        erased = storage.erase(Erasure(contexts=("b",)))

        assert made.record.head == 4
        assert erased == ErasedRows(contexts=1, entries=3, pages=3, compactions=2, ops=1)

    def test_removing_and_erasing_at_once(self, storage: Storage, reread: Callable[[], Storage]) -> None:
        """One erasure may remove a context and erase an entry that others keep."""
        family(storage)
        erasure = erasing(storage, "abc", ("a", 1))

        erased = storage.erase(erasure._replace(contexts=("x",)))

        again = reread()
        assert (erased.contexts, erased.entries) == (1, 5)
        assert again.load("x") is None
        assert bodies_of(again, "c") == [b"zero", b"user", b"two", b"b three", b"c four"]

    def test_reading_that_began_before_ends(self, storage: Storage) -> None:
        """An iterator that is half read when its context is removed gives no wrong row, and the store goes on."""
        append(storage, "a", *(b"%d" % i for i in range(700)))
        append(storage, "b", b"1")
        rows = storage.entries("a")
        seen = [next(rows).body]
        storage.erase(Erasure(contexts=("a",)))

        with suppress(StorageError):  # it may say that its rows are gone
            seen += [row.body for row in rows]

        assert seen == [b"%d" % i for i in range(len(seen))]
        assert bodies_of(storage, "b") == [b"1"]
