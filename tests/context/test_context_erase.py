"""Erasing: bytes that do not exist any more, and nothing left that tells of them."""

import contextlib
import json
import sys
from pathlib import Path

import pytest

from memci import Context, EphemeralStorage
from memci.errors import Erased, HandlePoisoned, InvalidSetting, PageNotFound, StorageFull, Undone, WriteConflict
from memci.history.erase import erase

from .erasures import secret, shown, well
from .kit import (
    again,
    calling,
    opened,
    result,
    seen,
    talked,
    turn,
    where,
)

sys.path.insert(0, str(Path(__file__).parent.parent / "machine"))
from chat_grammars import problems

pytestmark = pytest.mark.usefixtures("no_memory")
PLACES = ("active", "open", "archived", "folded", "unloaded")


def holding(storage, place):
    """Return a context that keeps a secret page in *place*, and the page's index."""
    contents = 40 if place == "folded" else 52  # with fewer, even a page that was recalled folds
    context = opened(storage, window=1_000, contents_tokens=contents, never_recalled=4)
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
    assert context.erase(index, ordinal) == receipt
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


def outgrown(storage):
    """Return a context whose open page has lost its middle to the archive."""
    context = opened(storage, window=1_000)
    context.append_turn("canary-start")
    for step in range(12):
        context.append_turn(calling(f"c{step}"), result(f"c{step}", f"canary-{step}- " + "word " * 60))
    assert "canary-0-" not in json.dumps(context.render()[-4:])
    return context


def test_entry_that_left_the_open_page_is_erased_by_its_number(storage):
    """It goes, with the words of its line in the contents; what stayed stays."""
    context = outgrown(storage)
    before = context.recall_page(1)

    context.erase(1, 3)

    assert [each for each, old in zip(context.recall_page(1), before, strict=True) if each != old] == [
        {"role": "user", "content": "[erased]"}
    ]
    assert "canary-0-" not in json.dumps([*context.messages(), *context.render()])
    well(context, again(storage))
    context.append_turn({"role": "assistant", "content": "done"}, *turn(5))
    context.archive(keep=0)
    well(context, again(storage))


def test_a_page_is_erased_with_what_has_left_it(storage):
    """Nothing of it is found, shown or listed any more."""
    context = outgrown(storage)

    context.erase(1)

    with pytest.raises(Erased):
        context.recall_page(1)
    assert "canary" not in json.dumps([*context.messages(), *context.render()])
    well(context, again(storage))
    context.append_turn(*turn(5))
    well(context, again(storage))
    assert seen(again(storage)) == seen(context)


def test_second_erasure_says_that_it_is_gone(storage):
    """A repeated erasure returns its receipt; another one of what is gone, or never was, is an error."""
    context = talked(3, storage=storage)
    receipt = context.erase(2)
    before = seen(context)
    assert context.erase(2) == receipt
    for index, entry, error in (
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


def test_what_was_taken_back_can_be_erased(storage):
    """Its bytes are in the store until then; the page stays undone, and a repeated erasure returns its receipt."""
    context = talked(3, storage=storage)
    fork = context.fork("bob")
    context.undo()
    context.append_turn("a secret")
    context.pop()
    for index in (3, 4):
        receipt = context.erase(index)

        assert receipt.entries and context.erase(index) == receipt == again(storage).erase(index)
        with pytest.raises(Undone):
            context.recall_page(index)
    with pytest.raises(Erased):
        context.erase(3, 1)
    fork.refresh()
    assert {row.codec for row in storage.entries("alice") if row.seq >= 4} == {0}
    assert where(context) == {1: where(context)[1], 2: where(context)[2], 3: "undone", 4: "undone"}
    assert where(fork)[3] == "erased"
    context.append_turn(*turn(4))
    for each in (context, fork):
        well(each, again(storage, id=each.id))


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
            assert window.active.messages.tokens == sum(
                map(window.weigh, [*window.active.lead_view, *window.active.view])
            )
        assert seen(again(storage)) == seen(context)


@pytest.mark.parametrize("gone", [[2], [3], [2, 3], [1, 2], [4], [5]])
@pytest.mark.parametrize("closed", [False, True])
def test_erasing_within_a_group_reckons_the_window_anew(gone, closed, storage):
    """Results without their calls, and calls without their results, cost what they show; here and in a fork."""
    context = opened(storage)
    context.append_turn("go", calling("a", "b"), result("b"), result("a"), {"role": "assistant", "content": "done"})
    if closed:
        context.append_turn(*turn(2))
    context.fork("bob").close()
    for ordinal in gone:
        context.erase(1, ordinal)

    for each in (context, again(storage), again(storage, id="bob")):
        window = each._parts.window
        assert window.active.messages.tokens == sum(map(window.weigh, [*window.active.lead_view, *window.active.view]))


def test_erasing_counts_forks_by_the_counter_that_was_passed(storage):
    """Contents Pages of forks are made anew by the counter of who erases, if it is the one that they are counted by."""
    context = talked(6, size=20, storage=storage)
    context.archive(keep=2)
    fork = context.fork("bob")
    fork.close()

    context.erase(3, 1)

    kept = again(storage, id="bob")
    window = kept._parts.window
    assert window.common.tokens == sum(window.weigh(message) for message in window.common.view)
    assert kept.report().tokens == context.report().tokens


def test_stale_handle_can_not_erase(storage):
    """Who does not know what is stored erases nothing."""
    older = talked(3, storage=storage)
    again(storage).append_turn("newer")

    with pytest.raises(WriteConflict):
        older.erase(1)

    assert again(storage).recall_page(1) == list(turn(1))


class _Full(EphemeralStorage):
    """A store that has no room to be read in, as after a rollback that has none either."""

    full = False

    def load(self, context):
        if self.full:
            raise StorageFull("no space is left")
        return super().load(context)

    def erase(self, erasure):
        gone = super().erase(erasure)
        self.full = True
        return gone


def test_erasure_that_can_not_be_read_back_is_read_before_anything_is_shown():
    """It is committed, so no later call shows what was erased, or takes it for another writer's change."""
    storage = _Full()
    context = talked(3, storage=storage)

    receipt = context.erase(1)
    assert (receipt.pages, receipt.memory) == (1, "pending")
    with pytest.raises(StorageFull):
        context.render()
    storage.full = False

    assert "question 1 " not in str(context.render())
    context.append_turn(*turn(4))
    assert context.erase(1).pages == 1


def recall(index):
    return {"id": "r", "type": "function", "function": {"name": "recall_page", "arguments": f'{{"index":{index}}}'}}


@pytest.mark.parametrize("kind", ["fork", "reader", "view of a turn"])
@pytest.mark.parametrize("entry", [None, 1])
def test_other_open_handles_show_nothing_of_it(kind, entry, storage):
    """A reader reads the context again; another handle raises WriteConflict; neither shows what it had read."""
    context = opened(storage)
    context.append_turn("A first canary1, live in Oslo.", {"role": "assistant", "content": "yes"})
    context.append_turn("Always name canary2.", {"role": "assistant", "content": "yes"})
    context.append_turn(*turn(3))
    context.archive(keep=1)
    other = context.fork("bob") if kind == "fork" else again(storage, at=2 if "turn" in kind else None)
    if kind == "reader":
        other = Context.view(storage, "alice")
    assert "canary" in json.dumps(other.render()) and "canary" in str(other.turns(9))

    for index in (1, 2):  # the second one changes nothing else than the messages
        context.erase(index, entry)
        for call in (
            other.render,
            lambda: other.turns(9),
            lambda index=index: other.recall_page(index),
            other.instructions,
            lambda: list(other.pages()),
            lambda: list(other.messages()),
            lambda: other.fork("carol").render(),
            *([lambda index=index: other.answer(recall(index))] if other.read_only else ()),
        ):
            with contextlib.suppress(WriteConflict, Erased, InvalidSetting):
                told = json.dumps(call(), default=str)
                assert f"canary{index}" not in told
        if kind == "fork":
            other.refresh()


def test_reader_of_an_erased_context_shows_nothing(storage):
    context = talked(3, storage=storage)
    reader = Context.view(storage, "alice")
    context.close()
    erase(storage, context="alice")
    for call in (reader.render, lambda: reader.recall_page(1), lambda: reader.turns(2)):
        with pytest.raises(HandlePoisoned):
            call()
