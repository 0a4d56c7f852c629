"""Fencing: two writers of one context never interleave; the older one is told, and can go on."""

import threading

import pytest

from memci.errors import BudgetExceeded, HandlePoisoned, WriteConflict
from memci.history.erase import erase
from tests.invariants import check

from .kit import again, call, calling, opened, seen, talked, turn, where, words

pytestmark = pytest.mark.usefixtures("no_memory")


def stored(storage):
    """Return all that is stored of a context."""
    return (
        storage.load("alice"),
        list(storage.entries("alice")),
        list(storage.pages("alice")),
        list(storage.compactions("alice")),
        list(storage.ops("alice")),
    )


CHANGES = {
    "append": lambda context: context.append_turn("late"),
    "append with op_id": lambda context: context.append_turn("late", op_id="new"),
    "usage": lambda context: context.append_turn(usage={"prompt_tokens": 900}),
    "pin": lambda context: context.pin(2),
    "unpin": lambda context: context.unpin(1),
    "archive": lambda context: context.archive(keep=0),
    "undo": lambda context: context.undo(),
    "erase": lambda context: context.erase(2),
    "erase an entry": lambda context: context.erase(2, 1),
    "recall": lambda context: context.recall_page(3),
    "fork": lambda context: context.fork("bob"),
    "render": lambda context: context.render(),
    "render what is pending": lambda context: context.render("and"),
    "render a full window": lambda context: context.render(*["word " * 600] * 5),
}


@pytest.mark.parametrize("change", CHANGES)
def test_older_writer_meets_a_conflict_before_anything_is_stored(change, storage):
    """Whatever the older handle does first, it is told, and nothing of it is stored."""
    older = talked(6, storage=storage)
    older.pin(1)
    older.archive(keep=1)
    assert where(older)[3] == "archived"
    older.render()
    again(storage).append_turn("from the newer one")
    before = stored(storage)

    for _ in range(2):
        with pytest.raises(WriteConflict):
            CHANGES[change](older)

    assert stored(storage) == before
    assert [record.id for record in storage.contexts()] == ["alice"]


@pytest.mark.parametrize(
    "read",
    [
        lambda context: context.answer(call("c", "recall_page", {"index": 1, "entry": 1})),
        lambda context: context.answers(calling(call("c", "recall_page", {"index": 1, "entry": 1}))),
        lambda context: context.functions["recall_page"](1, 1),
        lambda context: context.recall_page(1),
        lambda context: context.instructions(),
    ],
)
def test_older_writer_shows_nothing_of_what_another_erased(read, storage):
    """What the window still holds of an erased page is in no answer: the writer is told, however often it asks."""
    older = opened(storage)
    older.append_turn("Always answer in French. " + "secret " * 3_000, "Oui.")
    assert "secret" in str(older.answer(call("c", "recall_page", {"index": 1, "entry": 1}))), "it is clipped"
    older.append_turn("next")
    again(storage).erase(1)

    for _ in range(2):
        with pytest.raises(WriteConflict):
            read(older)

    older.refresh()
    assert "secret" not in str(older.answer(call("c", "recall_page", {"index": 1, "entry": 1})))


@pytest.mark.parametrize("change", [name for name in CHANGES if not name.startswith(("render", "fork"))])
def test_every_change_fences(change, storage):
    """Whatever another handle changes, the older one is told at its next rendering."""
    older = talked(6, storage=storage)
    older.pin(1)
    older.archive(keep=1)

    newer = again(storage)
    newer.render()
    CHANGES[change](newer)

    with pytest.raises(WriteConflict):
        older.render()
    older.refresh()
    assert seen(older) == seen(again(storage))


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"window": 4_000},
        {"window": 1_200},
        {"system": "Other."},
        {"counter": lambda text: 2 * words(text)},
        {"preset": "economy", "never_recalled": 2},
        {"nonce": "12345678"},
    ],
)
def test_opening_fences_nobody_and_stores_nothing(given, storage):
    """Opening, with the same or with new settings, takes nothing from the writer and writes nothing."""
    writer = talked(4, storage=storage)
    before, shown = stored(storage), writer.render()

    other = again(storage, **given)
    other.render()
    other.report(), list(other.pages()), other.verify(), other.recall_page(1)

    assert stored(storage) == before
    assert writer.render() == shown
    writer.append_turn(*turn(5))
    with pytest.raises(WriteConflict):
        other.render()


def test_settings_of_an_open_are_stored_with_the_first_change(storage):
    """New settings and prompt hold in memory at once, and in the store after the first change."""
    talked(4, storage=storage, system="Be kind.")
    context = again(storage, window=2_000, system="Be brief.")
    assert (context.report().window, context.render()[0]["content"][:9]) == (2_000, "Be brief.")
    assert again(storage).report().window == 4_000

    context.append_turn(*turn(5))

    kept = again(storage)
    assert (kept.report().window, kept.render()[0]["content"][:9]) == (2_000, "Be brief.")
    assert kept.render() == context.render()
    assert kept.report().compactions == context.report().compactions == 0, (
        "settings are no compaction of the Contents Page"
    )


@pytest.mark.parametrize("change", ["append", "pin", "archive", "undo", "recall", "usage", "unpin", "erase"])
def test_counts_of_a_new_counter_are_stored_with_the_first_change(change, storage):
    """After a new counter's first change, an open trusts the counts that are stored, and they are the new counter's."""

    def double(text):
        return 2 * words(text)

    before = talked(6, size=20, storage=storage)
    before.archive(keep=3)
    before.pin(6)
    context = again(storage, counter=double)
    context.render()

    {**CHANGES, "unpin": lambda each: each.unpin(6), "recall": lambda each: each.recall_page(2)}[change](context)

    kept = again(storage, counter=double)
    assert kept._parts.writer._unwritten is None, "nothing is left to be counted"
    window = kept._parts.window
    assert window.active.messages.tokens == sum(map(window.weigh, [*window.active.lead_view, *window.active.view]))
    assert kept.report().tokens == context.report().tokens
    assert kept.render() == context.render()
    check(kept._parts.window)


def test_settings_that_fit_nothing_are_refused_at_open(storage):
    """New settings that leave no room are refused, and the stored context stays what it was."""
    talked(4, size=60, storage=storage).pin(1)
    before = stored(storage)

    with pytest.raises(BudgetExceeded):
        again(storage, window=300)

    assert stored(storage) == before
    assert again(storage).render()


def test_refresh_recovers_and_keeps_what_the_program_gave(storage):
    """After refresh the handle shows what is stored, goes on, tells its listener, and keeps rules and counter."""
    told = []
    older = talked(5, storage=storage, on_event=told.append, active_pages=3)
    newer = again(storage)
    newer.append_turn(*turn(6))
    newer.append_turn(*turn(7))
    with pytest.raises(WriteConflict):
        older.append_turn(*turn(8))

    older.refresh()
    assert seen(older) == seen(newer)
    told.clear()
    older.append_turn(*turn(8))
    older.archive(keep=0)

    assert [event.kind for event in told] == ["compaction"] * len(told) and told
    assert [each["content"].split()[1] for each in older.messages()] == [c for c in "12345678" for _ in "qa"]
    assert older.report().counter == "custom:words"
    with pytest.raises(WriteConflict):
        newer.render()
    newer.refresh()
    assert seen(newer) == seen(older)


def test_refresh_keeps_what_an_open_gave_and_has_not_stored(storage):
    """Settings that were given at open still hold after a refresh, and are stored with the next change."""
    talked(3, storage=storage)
    context = again(storage, system="Be brief.")
    again(storage).append_turn(*turn(4))

    context.refresh()

    assert context.render()[0]["content"].startswith("Be brief.")
    context.append_turn(*turn(5))
    assert again(storage).render()[0]["content"].startswith("Be brief.")


def test_refresh_of_what_is_new_changes_nothing(storage):
    """Where nobody else wrote, refresh shows the same, and cache figures go on."""
    context = talked(12, size=60, storage=storage, window=1_500)
    context.render()
    context.append_turn("more")
    context.render()
    before, cached = seen(context), context.report().cached

    context.refresh()

    assert seen(context) == before
    assert context.report().cached > cached - 0.2
    context.append_turn("more")
    assert context.render()


def test_repeated_op_after_a_write_conflict_is_known(storage):
    """A retry that another handle has stored is answered with its receipt, once refreshed."""
    older = talked(2, storage=storage)
    first = again(storage).append_turn("pay", op_id="pay-1")

    older.refresh()
    second = older.append_turn("pay", op_id="pay-1")

    assert (second.duplicate, second.entries, second.seq) == (True, first.entries, first.seq)
    assert len(list(older.messages())) == 5


def test_reader_is_never_fenced(storage):
    """A handle that only reads renders on, whatever is written."""
    writer = talked(3, storage=storage)
    reader, past = again(storage, read_only=True), again(storage, at=1)
    shown = reader.render(), past.render()

    writer.append_turn(*turn(4))
    writer.archive(keep=0)

    assert (reader.render(), past.render()) == shown


def test_two_threads_with_handles_of_their_own_never_interleave(storage):
    """Each append of two handles that refresh when they must is stored once, whole, and in one order."""
    opened(storage)
    lost = []

    def work(name):
        context = again(storage)
        for number in range(25):
            while True:
                try:
                    context.append_turn(f"{name} {number}", {"role": "assistant", "content": f"{name} {number}"})
                    break
                except WriteConflict:
                    lost.append(name)
                    context.refresh()

    threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    said = [each["content"] for each in again(storage).messages()]
    assert said[::2] == said[1::2]
    assert [each for each in said[::2] if each[0] == "a"] == [f"a {number}" for number in range(25)]
    assert [each for each in said[::2] if each[0] == "b"] == [f"b {number}" for number in range(25)]
    assert again(storage).verify() == []


@pytest.mark.parametrize("window", [None, 4_000])
def test_refresh_of_what_was_erased_makes_nothing_in_its_place(storage, window):
    """Who still holds a context that was erased is told; no empty one takes its name, whatever the program gave."""
    talked(2, storage=storage)
    context = opened(storage, window=window, nonce=None)
    erase(storage, context="alice")

    with pytest.raises(HandlePoisoned, match="erased"):
        context.refresh()

    assert storage.revision("alice") == 0
