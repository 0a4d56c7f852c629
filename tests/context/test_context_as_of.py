"""The past: a context as it stood at the close of an earlier turn."""

import contextlib
import json

import pytest

from memci.errors import Erased, InvalidSetting, PageNotFound, StorageReadOnly, Undone
from tests.invariants import check

from .kit import ON_DISK, STORES, again, call, calling, files, opened, result, store, talked, turn, where, words

pytestmark = pytest.mark.usefixtures("no_memory")


def shown(context):
    return json.dumps(context.render(strict=False))


def lived(storage, **given):
    """Return a context that met everything, and what it rendered at the close of each of its turns."""
    context = opened(storage, window=1_300, system="Be kind.", **given)
    closes = {}

    def close():
        closes[context.report().turn] = shown(context)

    for number in range(1, 25):
        context.append_turn(*turn(number, 30))
        if number % 4 == 1:
            for step in range(6):  # a long page: results are clipped, then its middle leaves
                name = f"c{number}-{step}"
                context.append_turn(calling(call(name), call(f"{name}b")), result(f"{name}b", "word " * 90))
                context.append_turn(result(name, "word " * 40))
            if number == 13:
                context.append_turn(calling("giant"), result("giant", "word " * 900))
        if number % 5 == 2:
            context.pin(number)
        if number % 7 == 3:
            context.unpin(next(page.index for page in context.pages() if page.pinned))
        if number % 5 == 3:
            context.archive(keep=1)
        if number % 6 == 4:
            reply = calling(call("r", "recall_page", {"index": number // 2, "entry": None}))
            context.append_turn("What was it?", reply)
            context.append_turn(*context.answers(reply))
        if number == 9:
            close()
            context = again(storage, system="Be brief.", window=1_000)
        if number == 16:
            close()
            context = again(storage, window=1_500, preset="economy")
        if number not in (9, 16):
            close()
    return context, closes


@pytest.mark.parametrize("kind", STORES)
def test_as_of_renders_what_was_rendered_at_the_close_of_each_turn(kind, tmp_path):
    """Over compactions, units that leave, clips, pins, recalls, new settings: each turn shows what it showed."""
    with contextlib.closing(store(kind, tmp_path)) as storage:
        context, closes = lived(storage)
        assert {"archived", "folded"} & set(where(context).values())
        assert any(" entries 2" in str(each) for each in closes.values()), "units left an open page"
        assert "tokens elided" in "".join(closes.values()), "a result was clipped"

        for number in sorted(closes, reverse=True):
            past = again(storage, at=number)
            assert shown(past) == closes[number], number
            assert (past.read_only, past.report().turn) == (True, number)
            check(past._parts.window)
            assert past.verify() == []


def test_as_of_shows_what_was_there_and_nothing_after():
    """Messages, pages, exports and reports end with the turn."""
    storage = store("ram", None)
    talked(9, storage=storage).archive(keep=2)

    past = again(storage, at=3)

    assert [message["content"].split()[1] for message in past.messages()] == [c for c in "1234" for _ in "qa"]
    assert where(past) == {1: "active", 2: "active", 3: "active", 4: "open"}
    assert (past.report().messages, past.report().turn, past.report().compactions) == (8, 3, 0)
    assert past.recall_page(4)[0]["content"].startswith("question 4")
    with pytest.raises(PageNotFound, match="pages are #1 to #4"):
        past.recall_page(5)
    assert len([line for line in past.export() if "question" in line]) == 4


def test_as_of_of_the_last_turn_is_now():
    """The turn that is open is shown as it stands."""
    storage = store("ram", None)
    context = talked(5, storage=storage)
    context.archive(keep=1)
    context.append_turn("and then")

    assert shown(again(storage, at=5)) == shown(context)
    assert where(again(storage, at=5)) == where(context)


def test_as_of_shows_what_fitted_then_whatever_was_reported_before():
    """A budget that the provider's reports have widened since the last compaction is the budget of the past, too."""
    storage = store("ram", None)
    context = opened(storage, window=2_000)
    closes = {}
    for number in range(1, 40):
        context.render()
        percent = 130 if number < 12 else 100
        context.append_turn(*turn(number, 20), usage={"prompt_tokens": context.report().total * percent // 100})
        if number == 11:
            context.archive(keep=1)
        closes[number - 1] = shown(context)
    assert context.report().ratio < 1.1

    for number, view in closes.items():
        assert shown(again(storage, at=number)) == view, number


def test_as_of_costs_what_it_shows_whatever_it_was_counted_with_since():
    """Counts of a later vocabulary stand in the store; the past is counted with its own, and so is a fork of it."""
    storage = store("ram", None)
    context = opened(storage, window=3_000, model="gpt-4", counter=None)
    context.append_turn("First")
    context.append_turn("机票和行李" * 20)
    then = context.report().tokens
    opened(storage, window=None, model="gpt-4o", counter=None).append_turn("Second")

    now = opened(storage, window=None, counter=None)

    assert opened(storage, window=None, counter=None, at=1).report().tokens == then
    assert now.fork("bob", at=1).report().tokens == then
    assert then["open"] == 124


def test_as_of_keeps_the_open_group_of_its_turn():
    """Calls that waited when the turn closed are shown as they were at the close."""
    storage = store("ram", None)
    context = opened(storage)
    context.append_turn("go", calling("a", "b"), result("b"))
    then = shown(context)
    context.append_turn("never mind", result("a"))

    assert shown(again(storage, at=0)) == then


def test_as_of_hides_what_was_undone_since():
    """A page that was taken back is not shown again, in no turn, and its neighbours are."""
    storage = store("ram", None)
    context = talked(3, storage=storage)
    context.undo()
    context.append_turn(*turn(4))
    context.append_turn(*turn(5))

    for number in (2, 3):
        past = again(storage, at=number)
        assert "question 3" not in shown(past)
        assert "question 2" in shown(past)
        with pytest.raises(Undone):
            past.recall_page(3)
    past = again(storage, at=1)
    assert "question 2" in shown(past)
    assert "question 4" not in shown(past)


def test_as_of_hides_an_archived_page_that_was_undone_since():
    """A page that was listed, and was taken back later, is on no line of the past either."""
    storage = store("ram", None)
    context = opened(storage, notice=True)
    context.append_turn({"role": "user", "content": "kept"}, {"role": "assistant", "content": "yes"})
    context.append_turn({"role": "user", "content": "secret plan"}, {"role": "assistant", "content": "yes"})
    context.archive(keep=0)
    context.append_turn({"role": "user", "content": "third"}, {"role": "assistant", "content": "yes"})
    context.archive(keep=0)
    context.undo()
    context.undo()

    for number in (1, 2):
        past = again(storage, at=number)
        assert "secret plan" not in shown(past), number
        assert past.verify() == []


def test_as_of_before_an_erasure_is_not_known_any_more():
    """What was erased can't be seen in the past: what was before is refused, what comes after is shown."""
    storage = store("ram", None)
    context = talked(4, storage=storage)
    context.erase(2)
    context.append_turn(*turn(5))
    then = shown(context)
    context.append_turn(*turn(6))

    with pytest.raises(InvalidSetting, match="erased"):
        again(storage, at=1)
    past = again(storage, at=4)
    assert shown(past) == then
    with pytest.raises(Erased):
        past.recall_page(2)


@pytest.mark.parametrize("at", [-1, 5, 2**70, True, 1.0, "1", [1]])
def test_turn_that_was_not_is_refused(at):
    """A turn that there was not, or that is none, is refused by name."""
    storage = store("ram", None)
    talked(5, storage=storage)

    with pytest.raises(InvalidSetting, match="at: expected a turn from 0 to 4"):
        again(storage, at=at)


def test_as_of_of_no_context_is_refused():
    """The past of a context that there is not makes none."""
    storage = store("ram", None)

    with pytest.raises(InvalidSetting, match="there is no context 'alice'"):
        opened(storage, at=0)
    assert storage.contexts() == []


def test_as_of_of_a_context_without_messages_is_empty():
    """Turn 0 of a context in which nothing was said shows the system prompt."""
    storage = store("ram", None)
    context = opened(storage, system="Be kind.")

    assert shown(again(storage, at=0)) == shown(context)


@pytest.mark.parametrize("kind", ON_DISK)
def test_as_of_changes_nothing(kind, tmp_path):
    """Every change is refused, a compaction is reckoned in memory, and no byte on disk differs."""
    with contextlib.closing(store(kind, tmp_path)) as storage:
        context = talked(8, size=40, storage=storage)
        context.archive(keep=2)
        context.pin(2)
        context.archive(keep=2)
        context.append_turn(*turn(9))
        now = shown(context)
    before = files(tmp_path)

    with contextlib.closing(store(kind, tmp_path)) as storage:
        past = again(storage, at=7)
        for change in (
            lambda: past.append_turn("x"),
            lambda: past.append_turn("x", op_id="o"),
            lambda: past.append_turn(usage={"prompt_tokens": 900}),
            lambda: past.pin(3),
            lambda: past.unpin(2),
            lambda: past.archive(keep=0),
            past.undo,
            lambda: past.erase(1),
            lambda: past.erase(1, 1),
        ):
            then = shown(past), list(past.pages())
            with pytest.raises(StorageReadOnly):
                change()
            assert (shown(past), list(past.pages())) == then
        past.recall_page(1)
        past.answers(calling(call("r", "recall_page", {"index": 1, "entry": None})))
        past.render(*["word " * 580] * 5)
        past.refresh()
        list(past.messages()), list(past.export()), past.verify(), past.report(), past.flush()
        past.close()

    assert files(tmp_path) == before
    with contextlib.closing(store(kind, tmp_path)) as storage:
        assert shown(again(storage)) == now, "the context itself goes on"


def test_as_of_makes_an_compaction_in_memory_for_what_is_pending():
    """A rendering of the past that needs a compaction gets one, which nobody else sees."""
    storage = store("ram", None)
    context = talked(8, size=80, storage=storage)
    now = shown(context)
    past = again(storage, at=5)

    view = past.render(*["word " * 600] * 4)

    assert view[-1]["content"] == "word " * 600
    assert "archived" in where(past).values()
    assert (shown(context), set(where(context).values())) == (now, {"active", "open"})


def test_as_of_stays_when_the_context_goes_on():
    """A handle of the past shows the same while others append, archive and undo; refresh changes nothing."""
    storage = store("ram", None)
    context = talked(5, storage=storage)
    past = again(storage, at=2)
    then = shown(past)

    context.append_turn(*turn(6))
    context.archive(keep=0)
    context.append_turn(*turn(7))
    context.undo()

    assert shown(past) == then
    past.refresh()
    assert shown(past) == then


def test_as_of_takes_settings_of_now_for_what_is_told_of_now():
    """Settings given along show the past under them, and are not stored."""
    storage = store("ram", None)
    talked(5, storage=storage, system="Be kind.")

    past = opened(storage, at=2, system="Be brief.", window=3_000, counter=lambda text: 2 * words(text))

    assert past.render()[0]["content"].startswith("Be brief.")
    assert past.report().window == 3_000
    assert again(storage).render()[0]["content"].startswith("Be kind.")
