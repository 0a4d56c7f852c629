"""Making a fork: its name, owner and settings, and what it costs."""

import contextlib
import json

import pytest

from memci import Context
from memci.errors import InvalidSetting, PageNotFound, WriteConflict
from memci.memory import NullMemory
from memci.rows import PageState

from .kit import (
    ON_DISK,
    again,
    call,
    calling,
    opened,
    result,
    store,
    talked,
    turn,
    where,
    words,
)

pytestmark = pytest.mark.usefixtures("no_memory")


def shown(context):
    return json.dumps(context.render(strict=False))


@pytest.mark.parametrize("name", ["alice", "taken"])
def test_fork_under_a_name_that_exists_is_refused(name, storage):
    """No context is written over, neither itself nor another one."""
    opened(storage, id="taken", owner="alice").append_turn("mine")
    context = talked(2, storage=storage)
    before = [shown(again(storage, id=each)) for each in ("alice", "taken")]

    for at in (None, 0):
        with pytest.raises(InvalidSetting, match="id: there is a context"):
            context.fork(name, at=at)

    assert [shown(again(storage, id=each)) for each in ("alice", "taken")] == before


@pytest.mark.parametrize(
    ("given", "name"), [({"id": ""}, "id"), ({"id": 7}, "id"), ({"owner": ""}, "owner"), ({"at": 9}, "at")]
)
def test_fork_with_bad_arguments_is_refused(given, name, storage):
    """What makes no sense is refused by name, and nothing is made."""
    context = talked(2, storage=storage)

    with pytest.raises(InvalidSetting, match=f"^{name}: "):
        context.fork(**{"id": "bob", **given})

    assert [record.id for record in storage.contexts()] == ["alice"]


def test_fork_has_the_owner_of_its_parent_or_its_own(storage):
    """An owner is taken over, unless another one is named; it stays when the fork is opened again."""
    context = talked(1, storage=storage, owner="carol")
    context.fork("bob")
    context.fork("dave", owner="dave's")

    again(storage, id="bob").append_turn("x")
    again(storage, id="dave").append_turn("x")

    assert {record.id: record.owner for record in storage.contexts()} == {
        "alice": "carol",
        "bob": "carol",
        "dave": "dave's",
    }


def test_fork_of_a_stale_handle_is_refused(storage):
    """A handle that does not know what is stored can't fork it: it would share what it never showed."""
    context = talked(2, storage=storage)
    again(storage).append_turn("newer")

    with pytest.raises(WriteConflict):
        context.fork("bob")

    assert [record.id for record in storage.contexts()] == ["alice"]
    context.refresh()
    assert len(list(context.fork("bob").messages())) == 5


def test_fork_while_calls_wait_takes_their_results(storage):
    """A group that was open at the fork is completed in each of them by itself."""
    context = opened(storage)
    context.append_turn("go", calling(call("a"), call("b")), result("a"))
    fork = context.fork("bob")

    fork.append_turn(result("b", "for the fork"))
    context.append_turn(result("b", "for the parent"))

    assert [each["content"] for each in fork.render()][-2:] == ["found", "for the fork"]
    assert [each["content"] for each in context.render()][-2:] == ["found", "for the parent"]
    late = again(storage, id="bob")
    late.append_turn("next", {"role": "assistant", "content": "ok"}, result("a", "once more"))
    assert "late-result" in late.render()[-1]["content"]


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("back", [False, True])
def test_interrupted_calls_cost_the_same_in_a_fork(late, back, storage):
    """What stands for results that never came is counted once, in a fork and in a fork of a fork."""
    context = opened(storage)
    context.append_turn("go", calling("a", "b"), result("a"), {"role": "assistant", "content": "x"})
    if late:
        context.append_turn(result("b"))

    fork = context.fork("bob", at=0 if back else None)
    second = fork.fork("carol")

    for each in (fork, second, again(storage, id="bob"), again(storage, id="carol")):
        assert each.report().tokens == context.report().tokens


def test_interrupted_calls_cost_the_same_after_a_new_counter(storage):
    """What a new counter says of made-up results is stored once, not added at every open."""

    def double(text):
        return 2 * words(text)

    opened(storage).append_turn("go", calling("a", "b"), result("a"), {"role": "assistant", "content": "x"})
    context = again(storage, counter=double)
    context.append_turn({"role": "assistant", "content": "y"})

    kept = again(storage, counter=double)

    assert kept.report().tokens == context.report().tokens
    assert kept._parts.window.active.messages.tokens == sum(
        map(kept._parts.window.weigh, [*kept._parts.window.active.lead_view, *kept._parts.window.active.view])
    )


def test_open_page_goes_on_in_the_fork(storage):
    """What is appended to the page that was open at the fork belongs to it, in each its own."""
    context = talked(2, storage=storage)
    fork = context.fork("bob")
    fork.append_turn({"role": "assistant", "content": "and more"})
    context.append_turn(*turn(3))

    assert [each["content"] for each in fork.recall_page(2)][-1] == "and more"
    assert context.recall_page(2) == list(turn(2))
    with pytest.raises(PageNotFound):
        fork.recall_page(3)


def test_closed_parent_leaves_its_fork_usable(tmp_path):
    """A fork of a context that was opened by its path has its own handle on the file."""
    with opened(tmp_path / "agent.db") as context:
        context.append_turn("shared")
        fork = context.fork("bob")

    fork.append_turn("mine")

    assert [each["content"] for each in fork.messages()] == ["shared", "mine"]
    fork.close()
    with again(tmp_path / "agent.db", id="bob") as kept:
        assert len(list(kept.messages())) == 2


@pytest.mark.parametrize("kind", ON_DISK)
def test_view_on_a_fork_costs_nothing_of_its_parent(kind, tmp_path):
    """Views that clip in one of them do not clip in the other."""
    with contextlib.closing(store(kind, tmp_path)) as storage:
        context = opened(storage, window=2_000, memory=NullMemory())
        context.append_turn("go", calling(*"abcdef"), result("a", "word " * 300))
        fork = context.fork("bob")
        for name in "bcdef":
            context.append_turn(result(name, "word " * 300))
        assert "tokens elided:" in shown(context)

        assert "tokens elided:" not in shown(fork)
        assert "tokens elided:" not in shown(again(storage, id="bob", memory=NullMemory()))
        again(storage, id="bob", memory=NullMemory()).append_turn({"role": "assistant", "content": "done"})
        assert "tokens elided:" not in shown(again(storage, id="bob", memory=NullMemory()))
        assert "tokens elided:" in shown(again(storage, memory=NullMemory()))


def test_unloading_in_the_parent_leaves_the_fork_listing(storage):
    """A rule that unloads pages in one of them does not take them off the other's Contents Page."""
    context = talked(6, storage=storage, never_recalled=3)
    context.archive(keep=0)
    fork = context.fork("bob")
    listed = where(fork)
    for number in range(7, 12):
        context.append_turn(*turn(number))
    context.archive(keep=0)

    assert "unloaded" in where(context).values()
    assert where(again(storage, id="bob", memory=NullMemory())) == listed
    assert not list(
        again(storage, id="bob", memory=NullMemory())._parts.reader._storage.pages("bob", state=PageState.UNLOADED)
    )


def test_fork_is_a_context_like_any_other(storage):
    """It is listed, exported and imported by itself, and forks of it are forks."""
    context = talked(3, storage=storage)
    fork = context.fork("bob")
    fork.append_turn("mine")

    lines = list(fork.export())
    copy = Context.import_(store("ram", None), lines, id="copy", counter=words)

    assert list(copy.messages()) == list(fork.messages())
    assert shown(copy) == shown(fork)
