"""Forks: a context that shares the past of another one, and goes its own way."""

import json

import pytest

from memci.errors import InvalidMessage, InvalidSetting, OpConflict, Undone
from tests.invariants import check

from .kit import (
    again,
    calling,
    opened,
    own_entries,
    result,
    seen,
    talked,
    turn,
    where,
    words,
)

pytestmark = pytest.mark.usefixtures("no_memory")


def shown(context):
    return json.dumps(context.render(strict=False))


def test_fork_shares_the_past_and_copies_no_message(storage):
    """A fork shows the same bytes, pages and messages at once; the store keeps no entry more."""
    context = talked(20, size=60, storage=storage, window=1_500, system="Be kind.")
    context.pin(19)
    before, kept = seen(context), own_entries(storage)

    fork = context.fork("bob")

    assert seen(fork) == before == seen(context)
    assert own_entries(storage) == kept
    assert (fork.id, context.id, fork.read_only) == ("bob", "alice", False)
    assert fork.verify() == context.verify() == []
    check(fork._parts.window)


def test_fork_on_disk_is_small(tmp_path):
    """The file grows by rows of pages, not by what was said."""
    path = tmp_path / "agent.db"
    with opened(path, window=1_000_000) as context:
        for number in range(50):
            context.append_turn(f"{number} " + "x" * 20_000)
    before = path.stat().st_size

    with again(path, window=None) as context:
        context.fork("bob").close()

    assert path.stat().st_size - before < before / 10


def test_fork_and_parent_go_their_own_ways(storage):
    """What one of them appends, archives, pins or takes back is nothing to the other, before and after a restart."""
    context = talked(6, size=40, storage=storage)
    fork = context.fork("bob")
    before = seen(fork)

    context.append_turn(*turn(7), op_id="op")
    context.archive(keep=0)
    context.undo()
    context.undo()
    context.pin(1)
    context.archive(keep=0)
    assert seen(fork) == before
    parent = seen(context)
    fork.append_turn(*turn(8), calling("c"), result("c"), op_id="op")
    fork.archive(keep=1)
    fork.undo()
    fork.undo()
    fork.append_turn("only here")

    assert seen(context) == parent
    assert seen(again(storage)) == parent
    assert seen(again(storage, id="bob")) == seen(fork)
    assert fork.verify() == context.verify() == []
    with pytest.raises(Undone):
        fork.recall_page(6)
    assert [each["content"] for each in fork.messages()][-1] == "only here"
    with pytest.raises(Undone):
        context.recall_page(6)
    with pytest.raises(Undone):
        context.recall_page(7)


def test_undo_in_the_parent_leaves_the_page_to_the_fork(storage):
    """A page that the parent takes back stays where it was in the fork, archived or not."""
    context = talked(4, storage=storage)
    context.archive(keep=2)
    fork = context.fork("bob")
    for _ in range(3):
        context.undo()

    assert where(context) == {1: "active", 2: "undone", 3: "undone", 4: "undone"}
    assert where(fork) == {1: "active", 2: "archived", 3: "active", 4: "open"}
    assert fork.recall_page(2) == list(turn(2))
    assert where(again(storage, id="bob")) == where(fork)


@pytest.mark.parametrize("number", [0, 3, 7, 11])
def test_fork_of_a_turn_is_what_that_turn_showed(number, storage):
    """A fork at an earlier turn shows what the past shows there, can be written, and goes on with the next index."""
    context = talked(12, size=60, storage=storage, window=1_300, system="Be kind.")
    past = again(storage, at=number)
    view, pages = shown(past), list(past.pages())

    fork = context.fork("bob", at=number)

    assert (shown(fork), [(page.index, page.where) for page in fork.pages()]) == (
        view,
        [(page.index, page.where) for page in pages],
    )
    assert shown(again(storage, id="bob")) == view
    assert fork.append_turn("on we go").page == number + 2
    assert fork.verify() == context.verify() == []
    assert shown(again(storage, id="bob")) == shown(fork)


def test_fork_of_a_turn_is_the_fork_of_a_view_of_it(storage):
    """Forking a context that was opened in the past is forking there."""
    talked(8, storage=storage)

    fork = again(storage, at=4).fork("bob")

    assert fork.report().turn == 4
    assert fork.append_turn("x").page == 6
    assert not fork.read_only
    assert shown(again(storage, id="bob")) == shown(fork)


def test_fork_of_a_turn_has_no_pins_of_later_pages(storage):
    """A page that was pinned later is not pinned in a fork where it is not there yet."""
    context = talked(5, storage=storage)
    context.pin(4)
    fork = context.fork("bob", at=1)
    for number in range(3, 8):
        fork.append_turn(*turn(number))

    assert [page.index for page in fork.pages() if page.pinned] == []


def test_fork_of_a_turn_has_no_pins_of_pages_that_were_undone_since(storage):
    """A page that was pinned then and taken back later is not pinned in the fork: no compaction asks for it."""
    context = talked(2, storage=storage)
    context.pin(2)
    context.archive(keep=0)
    context.undo()
    context.append_turn(*turn(3))

    fork = context.fork("bob", at=1)
    fork.append_turn(*turn(4))
    fork.archive(keep=0)

    assert [page.index for page in fork.pages() if page.pinned] == []
    assert fork.verify() == []


def test_fork_of_a_turn_knows_no_call_that_was_made_later(storage):
    """A result of a call of a later turn is refused in the fork, as one that no call asked for."""
    context = talked(1, storage=storage)
    context.append_turn("go", calling("later"))
    context.append_turn("never mind")
    context.archive(keep=0)

    fork = context.fork("bob", at=0)

    with pytest.raises(InvalidMessage):
        fork.append_turn("go", result("later"))


def test_fork_of_a_fork_shares_with_both(storage):
    """Each generation reads what it shares from where it is kept, and keeps its own."""
    context = talked(3, storage=storage)
    child = context.fork("child")
    child.append_turn("child's", {"role": "assistant", "content": "yes"})
    grandchild = child.fork("grandchild")
    grandchild.append_turn("grandchild's")
    context.append_turn("parent's")
    child.archive(keep=0)
    early = grandchild.fork("early", at=3)

    assert [each["content"] for each in grandchild.messages()][-3:] == ["child's", "yes", "grandchild's"]
    assert [each["content"] for each in early.messages()][-1] == "yes"
    assert own_entries(storage) == 7 + 2 + 1
    assert [shown(again(storage, id=each.id)) for each in (context, child, grandchild, early)] == [
        shown(each) for each in (context, child, grandchild, early)
    ]
    assert grandchild.recall_page(4)[0]["content"] == "child's"
    assert context.recall_page(4)[0]["content"] == "parent's"


def test_fork_before_the_fork_is_not_known(storage):
    """A fork knows its past by what is in it; how it stood before the fork, its parent tells."""
    context = talked(6, storage=storage)
    fork = context.fork("bob", at=4)

    with pytest.raises(InvalidSetting, match="at: "):
        fork.fork("carol", at=2)
    with pytest.raises(InvalidSetting, match="at: "):
        again(storage, id="bob", at=2)
    assert shown(again(storage, id="bob", at=4)) == shown(fork)


def test_pinned_page_comes_back_in_a_fork_as_it_was_clipped(storage):
    """A page that was pinned in the archive costs the same in both when it comes back."""
    context = opened(storage)
    context.append_turn(*turn(1), {"role": "user", "content": "list them"}, calling("a", "b"))
    for name in ("a", "b"):  # the first one is whole until the second one comes
        context.append_turn(result(name, "item " * 2_500))
        context.render(strict=False)
    context.append_turn({"role": "assistant", "content": "done"})
    for number in (3, 4):
        context.append_turn(*turn(number, 60))
    context.archive(keep=0)
    context.close()
    context = again(storage, window=9_000)
    context.pin(2)
    fork = context.fork("bob")

    context.archive()
    fork.archive()

    assert where(context)[2] == where(fork)[2] == "active"
    assert shown(fork) == shown(context)
    assert "elided" in shown(fork)


@pytest.mark.parametrize("keep", [0, 1])
def test_fork_recalls_what_was_archived_before_it(keep, storage):
    """Archived, folded and unloaded pages of the shared past are recalled exactly, and count in one of them only."""
    context = talked(40, size=10, storage=storage, window=1_000, contents_tokens=60, never_recalled=8)
    context.archive(keep=keep)
    assert {"archived", "folded", "unloaded"} <= set(where(context).values())

    fork = context.fork("bob")

    for number in range(1, 41):
        assert fork.recall_page(number) == list(turn(number, 10))
    assert sum(page.recall_count for page in fork.pages()) > 30
    assert sum(page.recall_count for page in context.pages()) == 0
    assert sum(page.recall_count for page in again(storage).pages()) == 0


def test_fork_carries_settings_counter_and_rules(storage):
    """A fork has the settings, the prompt, the counter and the rules of its parent, also what its open gave it."""
    gone = []

    def rule(rows, turn):
        found = [row.index for row in rows if row.index not in gone]
        gone.extend(found)
        return found

    talked(4, storage=storage, system="Be kind.").close()
    context = again(storage, system="Be brief.", window=2_000, active_pages=2, rules=[rule])

    fork = context.fork("bob")

    assert fork.report().window == 2_000
    assert fork.report().counter == "custom:words"
    assert fork.render()[0]["content"].startswith("Be brief.")
    assert fork.render() == context.render()
    fork.append_turn(*turn(5))
    fork.archive(keep=0)
    fork.archive(keep=0)
    assert gone, "the rules came along"
    kept = again(storage, id="bob")
    assert (kept.report().window, kept.render()[0]["content"][:9]) == (2_000, "Be brief.")


def test_fork_takes_a_new_counter_along(storage):
    """What a new counter says of the window holds in the fork, before and after a restart."""

    def double(text):
        return 2 * words(text)

    talked(5, size=20, storage=storage).close()
    context = again(storage, counter=double)

    fork = context.fork("bob")

    assert fork.report().tokens == context.report().tokens
    assert again(storage, id="bob", counter=double).report().tokens == context.report().tokens


def test_op_ids_are_each_contexts_own(storage):
    """A fork knows none of its parent's op_ids: the same name stores what the fork appends, once."""
    context = opened(storage)
    context.append_turn("first", op_id="op")
    fork = context.fork("bob")

    assert not fork.append_turn("second", op_id="op").duplicate
    assert fork.append_turn("second", op_id="op").duplicate
    assert context.append_turn("first", op_id="op").duplicate
    with pytest.raises(OpConflict):
        context.append_turn("second", op_id="op")
