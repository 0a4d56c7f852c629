"""Erasing: bytes that do not exist any more, and nothing left that tells of them."""

import contextlib
import json
import sys
from pathlib import Path

import pytest

from memci.erasing import ErasureReceipt, erase
from memci.errors import Erased, InvalidSetting, LeaseLost, OpConflict, PageNotFound, Undone
from memci.storage.protocol import Erasure

from .kit import (
    ON_DISK,
    STORES,
    again,
    call,
    calling,
    opened,
    own_entries,
    result,
    seen,
    store,
    talked,
    tells,
    turn,
    where,
)

sys.path.insert(0, str(Path(__file__).parent.parent / "machine"))
from chat_grammars import problems


@pytest.fixture(params=STORES)
def storage(request, tmp_path):
    with contextlib.closing(store(request.param, tmp_path)) as made:
        yield made


def shown(context):
    return json.dumps(context.render(strict=False))


def secret(number=1):
    """Return a turn with something to be erased in every place of a message."""
    name = f"canary{number}"
    return [
        {"role": "user", "content": f"{name}-question please", "name": f"{name}-name"},
        calling(call(f"{name}-id", f"{name}-tool", {f"{name}-key": f"{name}-argument"}), call("plain")),
        result(f"{name}-id", f"{name}-result"),
        result("plain", "other"),
        {"role": "assistant", "content": f"{name}-answer.", f"{name}-extra": [f"{name}-deep"]},
    ]


def well(*contexts):
    """Check what must hold of every context, whatever was erased."""
    for context in contexts:
        assert context.verify() == []
        context._parts.window._check()
        assert problems(context.render()) == []


PLACES = ("active", "open", "archived", "folded", "unloaded")


def holding(storage, place):
    """Return a context that keeps a secret page in *place*, and the page's index."""
    context = opened(storage, window=1_000, contents_tokens=90, never_recalled=4)
    context.append_turn(*turn(1))
    if place == "open":
        context.append_turn(*secret())
        return context, 2
    context.append_turn(*secret(), op_id="secret")
    context.append_turn(*turn(3))
    if place in ("archived", "folded", "unloaded"):
        context.archive(keep=0)
    if place == "folded":
        number = 4
        while where(context)[2] == "archived":
            context.recall_page(2)
            context.append_turn(*turn(number))
            context.archive(keep=0)
            number += 1
    if place == "unloaded":
        for number in range(4, 12):
            context.append_turn(*turn(number))
        context.archive(keep=0)
    context.append_turn(*turn(90))
    return context, 2


@pytest.mark.parametrize("place", PLACES)
def test_erased_page_is_gone_wherever_it_was(place, storage):
    """It is not shown, listed, recalled or iterated; its number stays taken; all else stays."""
    context, index = holding(storage, place)
    assert where(context)[index] == place
    others = {page.index: context.recall_page(page.index) for page in context.pages() if page.index != index}

    receipt = context.erase(index)

    assert (receipt.contexts, receipt.pages, receipt.entries, receipt.physical) == (0, 1, 5, "done")
    for each in (context, again(storage)):
        assert where(each)[index] == "erased"
        assert "canary" not in shown(each)
        assert "canary" not in json.dumps(list(each.messages()))
        assert "canary" not in json.dumps([page.title for page in each.pages()])
        assert "canary" not in "".join(each.export())
        with pytest.raises(Erased):
            each.recall_page(index)
        with pytest.raises(Erased):
            each.recall_page(index, 1)
        assert {number: each.recall_page(number) for number in others} == others
        assert each.report().pages["erased"] == 1
        assert sum(each.report().pages.values()) == len(list(each.pages()))
        well(each)
    following = max(where(context)) + 1
    assert context.append_turn(*turn(91)).page == following
    well(context, again(storage))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("ordinal", range(1, 6))
def test_erased_entry_is_gone_wherever_it_was(place, ordinal, storage):
    """One message goes, its neighbours stay; what is rendered is accepted by every provider."""
    context, index = holding(storage, place)
    messages = context.recall_page(index)

    receipt = context.erase(index, ordinal)

    assert (receipt.pages, receipt.entries, receipt.physical) == (0, 1, "done")
    for each in (context, again(storage)):
        assert where(each)[index] in (place, "archived", "folded")
        recalled = each.recall_page(index)
        assert len(recalled) == 5
        assert recalled[: ordinal - 1] == messages[: ordinal - 1]
        assert recalled[ordinal:] == messages[ordinal:]
        assert "canary" not in json.dumps(recalled[ordinal - 1])
        if ordinal == 1:
            assert "canary1-question" not in json.dumps([page.title for page in each.pages()]) + shown(each)
        well(each)
    with pytest.raises(Erased):
        context.erase(index, ordinal)
    context.append_turn(*turn(91))
    context.archive(keep=0)
    well(context, again(storage))


@pytest.mark.parametrize("gone", [[2], [3], [2, 3], [2, 3, 4], [3, 4], [1, 2], [4]])
@pytest.mark.parametrize("waiting", [False, True])
def test_rendering_is_accepted_whatever_is_erased_of_a_group(gone, waiting, storage):
    """Calls without their results and results without their calls are shown as every provider takes them."""
    context = opened(storage)
    context.append_turn("go", calling("a", "b"), result("b"), result("a"))
    if waiting:
        context.append_turn(calling("c", "d"), result("d"))

    for ordinal in gone:
        context.erase(1, ordinal)

    for each in (context, again(storage)):
        if waiting:
            each.render(strict=False)
    if waiting:
        context.append_turn(result("c"))
    context.append_turn({"role": "assistant", "content": "done"})
    well(context, again(storage))
    context.append_turn("next", {"role": "assistant", "content": "ok"})
    context.archive(keep=0)
    well(context, again(storage))


def test_call_that_waits_can_be_erased(storage):
    """When the calls of an open group go, their results come too late, and are data."""
    context = opened(storage)
    context.append_turn("go", calling("a", "b"))
    context.erase(1, 2)

    for each in (context, again(storage)):
        assert problems(each.render()) == []
    again(storage).append_turn({"role": "assistant", "content": "never mind"})
    well(again(storage))


def split(storage):
    """Return a context whose first page was split: a part of its middle left it."""
    context = opened(storage, window=1_000)
    context.append_turn("canary-start")
    for step in range(12):
        context.append_turn(calling(f"c{step}"), result(f"c{step}", f"canary-{step}- " + "word " * 60))
    (part,) = [page.index for page in context.pages() if page.continues == 1][:1]
    return context, part


def test_part_of_a_split_page_is_erased_by_itself(storage):
    """Its part goes; what stayed in the open page stays, and a second part is not touched."""
    context, part = split(storage)
    stays = context.recall_page(1)
    held = context.recall_page(part)

    context.erase(part)

    gone = [word for message in held for word in str(message.get("content")).split() if word.startswith("canary")]
    assert gone
    assert context.recall_page(1) == stays
    assert not [word for word in gone if word in json.dumps(list(context.messages()))]
    assert where(context)[part] == "erased"
    well(context, again(storage))
    context.append_turn({"role": "assistant", "content": "done"}, *turn(5))
    context.archive(keep=0)
    well(context, again(storage))


def test_split_page_is_erased_without_its_part(storage):
    """What stayed goes, its part stays as it was."""
    context, part = split(storage)
    held = context.recall_page(part)

    context.erase(1)

    assert context.recall_page(part) == held
    with pytest.raises(Erased):
        context.recall_page(1)
    well(context, again(storage))
    context.append_turn(*turn(5))
    well(context, again(storage))
    assert seen(again(storage)) == seen(context)


def test_entry_of_a_part_is_erased_by_its_number(storage):
    """An entry of a part has the number that it had in its interaction."""
    context, part = split(storage)
    base = len(context.recall_page(1)[:1])

    context.erase(part, base + 2)

    assert "[erased]" in json.dumps(context.recall_page(part)[1])
    assert "canary-0-" not in json.dumps(list(context.messages()))
    well(context, again(storage))


@pytest.mark.parametrize("which", ["origin", "part", "both"])
def test_undo_after_a_split_page_was_erased(which, storage):
    """What is left of the newest interaction is taken back, else the one before; what was erased stays erased."""
    context, part = split(storage)
    context.append_turn({"role": "assistant", "content": "done"}, *turn(2))
    gone = {"origin": [1], "part": [part], "both": [1, part]}[which]
    for index in gone:
        context.erase(index)
    context.undo()

    if which == "both" and len(where(context)) == 3:
        with pytest.raises(PageNotFound):
            context.undo()
    else:
        context.undo()

    for each in (context, again(storage)):
        assert [index for index, place in where(each).items() if place == "erased"] == gone
        assert set(where(each).values()) == {"erased", "undone"}
        assert min(each.report().pages.values()) == 0
        well(each)


@pytest.mark.parametrize("entry", [None, 1, 3])
def test_answers_that_quoted_it_are_erased_too(entry, storage):
    """What the model read of it by recall_page goes along, and what it read of that answer."""
    context = opened(storage, window=20_000)
    context.append_turn(*secret())
    context.append_turn(*turn(2))
    context.archive(keep=0)
    reply = calling(call("r1", "recall_page", {"index": 1, "entry": entry}))
    context.append_turn("What was it?", reply)
    context.append_turn(*context.answers(reply), {"role": "assistant", "content": "I see."})
    quoting = context.pages()
    number = max(page.index for page in quoting)
    context.append_turn(*turn(9))
    context.archive(keep=0)
    reply = calling(call("r2", "recall_page", {"index": number, "entry": None}))
    context.append_turn("And what did I ask?", reply)
    context.append_turn(*context.answers(reply))
    assert "canary1" in json.dumps(context.recall_page(number))
    before = len(list(context.messages()))

    receipt = context.erase(1)

    assert (receipt.pages, receipt.entries) == (1, 7)
    for each in (context, again(storage)):
        assert "canary" not in json.dumps(list(each.messages())) + shown(each)
        assert len(list(each.messages())) == before - 5
        well(each)


def test_late_answer_that_quoted_it_is_erased_too(storage):
    """An answer to a recall that was appended when its group was over goes like any other."""
    context = opened(storage)
    context.append_turn(*secret())
    context.append_turn(*turn(2))
    context.archive(keep=0)
    reply = calling(call("r1", "recall_page", {"index": 1, "entry": None}))
    context.append_turn("What was it?", reply)
    answers = context.answers(reply)
    context.append_turn("Never mind.", *answers)

    context.erase(1)

    assert "canary" not in json.dumps(list(context.messages())) + shown(context)
    well(context, again(storage))


def test_answer_that_quoted_another_page_stays(storage):
    """Only what quoted the erased goes: another page's answer is not touched."""
    context = talked(3, storage=storage)
    context.archive(keep=0)
    reply = calling(call("r1", "recall_page", {"index": 2, "entry": None}))
    context.append_turn("What was it?", reply)
    context.append_turn(*context.answers(reply))
    told = context.recall_page(4)

    context.erase(3)

    assert context.recall_page(4) == told


def test_forks_lose_it_too(storage):
    """What is erased in one is erased in all that share it, before and after it was forked again; each goes on."""
    context = opened(storage)
    context.append_turn(*turn(1))
    context.append_turn(*secret())
    child = context.fork("child")
    child.append_turn(*turn(3))
    child.archive(keep=0)
    grandchild = child.fork("grandchild")
    grandchild.append_turn(*turn(4))
    before = context.fork("before", at=0)
    untouched = seen(before)
    opened(storage, id="stranger").append_turn(*turn(1))

    receipt = grandchild.erase(2)

    assert (receipt.pages, receipt.entries, receipt.physical) == (3, 5, "done")
    for name in ("alice", "child", "grandchild"):
        each = again(storage, id=name)
        assert "canary" not in shown(each) + json.dumps(list(each.messages()))
        assert where(each)[2] == "erased"
        well(each)
    assert seen(again(storage, id="before")) == untouched
    with pytest.raises(LeaseLost):
        context.render()
    context.refresh()
    context.append_turn(*turn(5))
    grandchild.append_turn(*turn(6))
    well(context, grandchild)


def test_what_a_fork_says_itself_is_its_own_to_erase(storage):
    """A page with the same number in the parent is another page."""
    context = talked(1, storage=storage)
    fork = context.fork("bob")
    context.append_turn(*turn(2))
    fork.append_turn(*secret())

    fork.erase(2)

    assert context.recall_page(2) == list(turn(2))
    assert context.render()
    assert "canary" not in json.dumps(list(again(storage, id="bob").messages()))
    well(context, fork)


def test_page_that_goes_on_behind_a_fork_is_erased_in_its_shared_part(storage):
    """An open page at the fork is continued in both; erasing it in one takes what they share from the other."""
    context = opened(storage)
    context.append_turn("canary-shared")
    fork = context.fork("bob")
    fork.append_turn({"role": "assistant", "content": "canary-of-bob"})
    context.append_turn({"role": "assistant", "content": "of alice"})

    fork.erase(1)

    parent = again(storage)
    assert [each["content"] for each in parent.recall_page(1)] == ["[erased]", "of alice"]
    assert where(again(storage, id="bob"))[1] == "erased"
    well(parent, again(storage, id="bob"))


def test_fork_that_quoted_it_loses_its_answer(storage):
    """An answer in a fork that quoted what it shares is erased with it."""
    context = opened(storage)
    context.append_turn(*secret())
    fork = context.fork("bob")
    fork.append_turn(*turn(2))
    fork.archive(keep=0)
    reply = calling(call("r1", "recall_page", {"index": 1, "entry": None}))
    fork.append_turn("What was it?", reply)
    fork.append_turn(*fork.answers(reply))

    receipt = context.erase(1)

    fork.refresh()
    assert receipt.entries == 6
    assert "canary" not in json.dumps(list(fork.messages())) + shown(fork)
    well(context, fork)


def test_repeated_op_of_what_was_erased_says_so(storage):
    """The op_id of an append that was erased stores nothing again; others are known as before."""
    context = opened(storage)
    context.append_turn(*turn(1), op_id="kept")
    context.append_turn(*secret(), op_id="gone")
    context.append_turn(*turn(3), op_id="partly")
    context.erase(2)
    context.erase(3, 1)

    for each in (context, again(storage)):
        for name, messages in (("gone", secret()), ("partly", turn(3)), ("gone", turn(3))):
            with pytest.raises(Erased):
                each.append_turn(*messages, op_id=name)
        assert each.append_turn(*turn(1), op_id="kept").duplicate
        with pytest.raises(OpConflict):
            each.append_turn(*turn(3), op_id="kept")


def test_op_ids_of_other_contexts_are_not_touched(storage):
    """A stranger's op with the same seqs is known as before."""
    other = opened(storage, id="other")
    other.append_turn(*turn(1), op_id="op")
    context = opened(storage)
    context.append_turn(*secret(), op_id="op")
    fork = context.fork("bob")
    fork.append_turn(*turn(2), op_id="op")

    context.erase(1)

    assert other.append_turn(*turn(1), op_id="op").duplicate
    fork.refresh()
    assert fork.append_turn(*turn(2), op_id="op").duplicate


def test_second_erasure_says_that_it_is_gone(storage):
    """Erasing twice is an error that says so; what never was is another one, and nothing is changed."""
    context = talked(3, storage=storage)
    context.erase(2)
    before = seen(context)
    for index, entry, error in (
        (2, None, Erased),
        (2, 1, Erased),
        (9, None, PageNotFound),
        (0, None, PageNotFound),
        ("1", None, PageNotFound),
        (True, None, PageNotFound),
        (1, 3, PageNotFound),
        (1, 0, PageNotFound),
        (1, -1, PageNotFound),
        (1, "1", PageNotFound),
        (1, True, PageNotFound),
    ):
        with pytest.raises(error):
            context.erase(index, entry)
        assert seen(context) == before
    context.undo()
    with pytest.raises(Undone):
        context.erase(3)


def test_page_goes_when_its_last_entry_goes(storage):
    """A page of which every entry was erased is an erased page."""
    context = talked(3, storage=storage)
    first = context.erase(2, 1)
    last = context.erase(2, 2)

    assert (first.pages, last.pages) == (0, 1)
    assert where(context)[2] == "erased"
    with pytest.raises(Erased):
        context.recall_page(2)
    well(context, again(storage))


def test_undo_after_an_erasure_takes_back_the_page_before(storage):
    """The newest interaction is the newest that is still there."""
    context = talked(3, storage=storage)
    context.erase(3)

    assert context.undo() == list(turn(2))
    assert where(context) == {1: "open" if where(context)[1] == "open" else "active", 2: "undone", 3: "erased"}
    context.append_turn(*turn(4))
    well(context, again(storage))


def test_pinned_page_and_task_can_be_erased(storage):
    """A pin goes with its page; so does what the context began with."""
    context = talked(4, size=20, storage=storage)
    context.pin(2)
    context.archive(keep=0)

    context.erase(2)
    context.erase(1)

    assert [page.index for page in context.pages() if page.pinned] == []
    well(context, again(storage))
    for number in range(5, 30):
        context.append_turn(*turn(number, 60))
    well(context, again(storage))
    assert seen(again(storage)) == seen(context)


def test_everything_can_be_erased_page_by_page(storage):
    """A context of which all was erased is empty, and goes on."""
    context = talked(8, size=60, storage=storage, window=1_000)
    for index in range(1, 9):
        context.erase(index)

    assert set(where(context).values()) == {"erased"}
    assert list(context.messages()) == []
    assert "word" not in json.dumps(context.render()[1:])
    assert context.append_turn(*turn(9)).page == 9
    well(context, again(storage))


@pytest.mark.parametrize("size", [10, 60])
def test_erasing_reckons_the_window_anew(size, storage):
    """What the window costs after an erasure is what it shows, also after a restart."""
    context = talked(12, size=size, storage=storage, window=1_500)
    for index in (3, 11, 12):
        context.erase(index)
        for each in (context, again(storage)):
            window = each._parts.window
            assert window.active.messages.tokens == sum(map(window.weigh, window.active.view))
        assert seen(again(storage)) == seen(context)


def test_stale_handle_can_not_erase(storage):
    """Who does not know what is stored erases nothing."""
    older = talked(3, storage=storage)
    again(storage).append_turn("newer")

    with pytest.raises(LeaseLost):
        older.erase(1)

    assert again(storage).recall_page(1) == list(turn(1))


# -- whole contexts, and owners


def test_whole_context_is_erased(storage):
    """A context goes with all that is its own; a new one of the same name knows nothing of it."""
    context = talked(5, size=60, storage=storage, window=1_000)
    context.append_turn(*turn(6), op_id="op")
    opened(storage, id="other").append_turn("stays")
    editions = len(list(storage.editions("alice")))

    receipt = erase(storage, context="alice")

    assert receipt == ErasureReceipt(1, 6, 12, editions, 1, "done")
    assert [record.id for record in storage.contexts()] == ["other"]
    with pytest.raises(LeaseLost):
        context.render()
    with pytest.raises(LeaseLost):
        context.append_turn("late")
    fresh = opened(storage)
    assert list(fresh.messages()) == []
    assert not fresh.append_turn(*turn(6), op_id="op").duplicate
    well(fresh)


def test_owner_is_erased_with_all_contexts(storage):
    """All contexts of an owner go, forks among them; a name that only looks alike stays."""
    context = talked(2, storage=storage, owner="carol")
    context.fork("child").append_turn("x")
    for name, owner in (("1", "carol-2"), ("2", "Carol"), ("3", "caro%"), ("4", "c")):
        opened(storage, id=name, owner=owner).append_turn("stays")

    receipt = erase(storage, owner="carol")

    assert (receipt.contexts, receipt.entries) == (2, 5)
    assert [record.id for record in storage.contexts()] == ["1", "2", "3", "4"]


def test_parent_of_a_fork_that_stays_is_not_erased(storage):
    """A fork can't lose the past that it shares: it is named, nothing is erased; with the fork, or after it, all is."""
    context = talked(2, storage=storage)
    fork = context.fork("bob", owner="bob")

    for given in ({"context": "alice"}, {"owner": "alice"}):
        with pytest.raises(InvalidSetting, match="bob"):
            erase(storage, **given)
    assert fork.recall_page(1) == list(turn(1))

    erase(storage, context="bob")
    erase(storage, context="alice")
    assert list(storage.contexts()) == []


@pytest.mark.parametrize(
    "given", [{}, {"context": "alice", "owner": "alice"}, {"context": "nobody"}, {"owner": "nobody"}]
)
def test_erasing_nobody_is_refused(given, storage):
    """Who names nothing, both, or what there is not is told so."""
    talked(1, storage=storage)

    with pytest.raises(InvalidSetting):
        erase(storage, **given)

    assert again(storage).recall_page(1) == list(turn(1))


# -- the bytes


def canaries(storage):
    """Fill a context with canaries in every place, and return it."""
    context = opened(storage, window=1_200, contents_tokens=120)
    context.append_turn(*turn(1))
    context.append_turn(*secret(1), op_id="first", at="1999-09-09T09:09:09+00:00")
    context.append_turn(*secret(2))
    for number in range(4, 20):
        context.append_turn(*turn(number, 30))
        if number % 3 == 0:
            context.recall_page(2)
            context.archive(keep=1)
    reply = calling(call("r1", "recall_page", {"index": 2, "entry": None}))
    context.append_turn("What was it?", reply)
    context.append_turn(*context.answers(reply), {"role": "assistant", "content": "I see."})
    context.append_turn(*turn(21))
    context.archive(keep=0)
    assert sum("canary1" in edition.text for edition in storage.editions("alice")) >= 3
    return context


@pytest.mark.parametrize("kind", ON_DISK)
@pytest.mark.parametrize("scope", ["page", "entries", "context", "owner"])
@pytest.mark.parametrize("closed_between", [False, True])
def test_no_byte_of_it_is_left_on_disk(scope, kind, closed_between, tmp_path):
    """Content, names, arguments, ids, times, titles in old editions: nothing is left in any file of the store."""
    with contextlib.closing(store(kind, tmp_path)) as storage:
        context = canaries(storage)
        opened(storage, id="other", owner="other").append_turn("stays-there")
    assert tells(tmp_path, "canary1-question", "canary1-argument", "canary1-id", "1999-09-09")
    storage = store(kind, tmp_path)
    context = again(storage)
    if scope == "page":
        context.erase(2)
    elif scope == "entries":
        for ordinal in (5, 4, 3, 2, 1):
            receipt = context.erase(2, ordinal)
    else:
        receipt = erase(storage, **{scope: "alice"})
        assert receipt.physical == "done"

    if closed_between:
        storage.close()
        storage = store(kind, tmp_path)
        storage.contexts()
    else:  # a copy: opening a live SQLite file by hand would end its locks
        import shutil
        import subprocess

        subprocess.run(["cp", "-r", str(tmp_path), f"{tmp_path}-copy"], check=True)
        assert tells(Path(f"{tmp_path}-copy"), "canary1", "1999-09-09") == []
        assert tells(Path(f"{tmp_path}-copy"), "stays-there")
        shutil.rmtree(f"{tmp_path}-copy")
    storage.close()

    assert tells(tmp_path, "canary1", "1999-09-09") == []
    assert tells(tmp_path, "stays-there")
    assert bool(tells(tmp_path, "canary2-argument")) == (scope in ("page", "entries"))


@pytest.mark.parametrize("kind", ON_DISK)
def test_no_byte_of_it_is_left_of_a_fork(kind, tmp_path):
    """Editions and answers of forks that told of it are gone from the files, too."""
    with contextlib.closing(store(kind, tmp_path)) as storage:
        context = canaries(storage)
        fork = context.fork("bob")
        fork.append_turn(*turn(22, 200))
        fork.archive(keep=0)
        past = again(storage, at=8).fork("carol")
        past.archive(keep=0)

        fork.erase(2)

        for name in ("alice", "bob", "carol"):
            well(again(storage, id=name))

    assert tells(tmp_path, "canary1", "1999-09-09") == []


def test_erasure_is_pending_while_another_reads_an_older_state(tmp_path):
    """A reader of another connection holds the old bytes: the receipt says so; once it is gone, erasing ends it."""
    import apsw

    with contextlib.closing(store("sqlite", tmp_path)) as storage:
        context = canaries(storage)
        reader = apsw.Connection(str(tmp_path / "agent.db"))
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM entry").fetchall()

        receipt = context.erase(2)

        assert receipt.physical == "pending"
        assert (receipt.pages, "canary1" in shown(context)) == (1, False)
        assert not storage.erase(Erasure()).scrubbed
        reader.execute("COMMIT")
        reader.close()
        assert storage.erase(Erasure()).scrubbed

    assert tells(tmp_path, "canary1") == []


def test_store_keeps_no_entry_more_or_less(storage):
    """A tombstone takes the place of its entry: the messages are as many as they were."""
    context = talked(4, storage=storage)
    kept = own_entries(storage)

    context.erase(2)

    assert own_entries(storage) == kept
    assert context.report().messages == 8
