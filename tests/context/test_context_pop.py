"""Pop takes back the newest message: a call waits again, the page before opens again, and everybody agrees on it."""

import asyncio

import pytest

from memci import AsyncContext, Context, EphemeralStorage
from memci.errors import InvalidSetting, OpenToolGroup, PageNotFound, Undone, WriteConflict
from memci.history.export import export_lines
from memci.history.import_ import import_lines
from memci.memory import TieredMemory
from tests.invariants import check

from .kit import again, call, calling, opened, result, store, turn, words

pytestmark = pytest.mark.usefixtures("no_memory")


def talked(storage, **given):
    """A turn, and one with a call, its result and an answer."""
    context = opened(storage, **given)
    context.append_turn(*turn(0))
    context.append_turn("Which train?", calling("c1"), result("c1", "the 9:15"), op_id="asked")
    context.append_turn({"role": "assistant", "content": "At nine."}, op_id="answered")
    return context


def seen(context):
    """All that a program sees of *context*."""
    shown = context.render(strict=False)
    return shown, [*context.messages()], [(page.index, page.where, page.turn, page.entries) for page in context.pages()]


def test_a_retry_takes_back_item_by_item_and_goes_on(storage):
    """What is left is as if the rest had never come, in a handle of now, one of later, a fork and an import."""
    context = talked(storage)
    before = [*context.messages()]

    assert context.pop() == before[5]
    assert context.pop() == before[4]
    with pytest.raises(OpenToolGroup):
        context.render()
    context.append_turn(result("c1", "the 10:15"))
    context.append_turn({"role": "assistant", "content": "At ten."})
    assert context.pop()["content"] == "At ten."
    context.append_turn({"role": "assistant", "content": "At ten, from platform 3."})

    assert [message["content"] for message in context.messages()][3:] == [None, "the 10:15", "At ten, from platform 3."]
    assert context.render()[-2:] == [*context.messages()][-2:]
    assert context.sync([*context.messages()]) == []
    assert context.verify() == []
    assert context.recall_page(2) == [*context.messages()][2:]
    with pytest.raises(Undone):
        context.recall_page(2, entry=3)
    for op_id, message in (("asked", before[2:5]), ("answered", before[5:])):
        with pytest.raises(Undone):
            context.append_turn(*message, op_id=op_id)
        assert context.known(op_id)
    with context.fork("bob") as fork, again(storage) as later:
        import_lines(storage, export_lines(storage, "alice"), id="carol")
        with again(storage, id="carol") as copy:
            assert seen(fork) == seen(later) == seen(copy) == seen(context)
        fork.pop()
        assert [*later.messages()] == [*context.messages()]


def test_a_message_that_opened_a_page_opens_the_one_before_again(storage):
    """What comes next goes on there; turns count what is left, and the past shows nothing of it."""
    context = talked(storage)
    for _ in range(4):
        context.pop()

    assert (context.report().turn, [page.where for page in context.pages()][:2]) == (0, ["open", "undone"])
    context.append_turn({"role": "assistant", "content": "More."})
    context.append_turn(*turn(7))
    assert [page.turn for page in context.pages() if page.where in ("open", "active")] == [0, 1]
    for handle in (context, again(storage)):
        with Context.view(storage, "alice", at=0) as then, handle:
            assert [*then.messages()] == [*handle.messages()][:3] == then.render()[1:]
            assert then.verify() == []
    with again(storage) as context:
        taken = [context.pop() for _ in range(5)]
        assert [message["role"] for message in taken] == ["assistant", "user", "assistant", "assistant", "user"]
        with pytest.raises(PageNotFound):
            context.pop()
        context.append_turn(*turn(9))
        assert [*context.messages()] == [*turn(9)] and context.verify() == []


def test_a_pop_behind_an_undo_opens_what_the_undo_left(storage):
    """Undo closes the page before; pop opens it, and another undo takes what is left of it."""
    context = talked(storage)
    context.undo()
    assert context.pop() == turn(0)[1]
    context.append_turn({"role": "assistant", "content": "Another answer."})
    context.append_turn("And?")
    with Context.view(storage, "alice", at=0) as then:
        assert [each["content"] for each in then.messages()] == [turn(0)[0]["content"], "Another answer."]
    assert [each["content"] for each in context.undo()] == ["And?"]
    assert [each["content"] for each in context.undo()] == [turn(0)[0]["content"], "Another answer."]


def test_what_was_archived_is_no_message_to_take_back(storage):
    """The newest message that has left is refused, and nothing has changed; pops around what left are kept apart."""
    context = opened(storage, window=700, notice=False)
    context.append_turn("Do it all.")
    for number in range(12):
        context.append_turn(calling(f"c{number}"), result(f"c{number}", f"{number} " + "word " * 40))
        if number % 2:
            context.append_turn({"role": "assistant", "content": "wrong"})
            assert context.pop()["content"] == "wrong"
    assert len(context.render()) < 20, "some have left"
    assert context.verify() == []
    standing = [*context.messages()]
    assert len(standing) == 25 and [*again(storage).messages()] == standing
    assert context.recall_page(1) == standing

    with pytest.raises(InvalidSetting, match="undo"):
        for _ in range(25):
            context.pop()
    assert context.verify() == []
    assert context.undo()[0]["content"] == "Do it all."


@pytest.mark.parametrize("condensed", [False, True])
def test_the_page_before_is_opened_again_if_its_end_is_shown(storage, condensed):
    """Part of a page may have left the window: it goes on if its last message is shown, and else none is open."""
    context = opened(storage, window=700 if not condensed else 8_000, notice=False, preset="economy")
    if condensed:
        for number in range(30):
            context.append_turn(f"Ask {number}", {"role": "assistant", "content": "word " * 900})
        while (page := context._parts.window.active.closed[-1]).head is not page.tail:
            context.pop()
            context.pop()
    else:
        context.append_turn("Do it all.")
        for number in range(12):
            context.append_turn(calling(f"c{number}"), result(f"c{number}", f"{number} " + "word " * 40))
        context.append_turn("And now?")
    newest = next(page.index for page in context.pages() if page.where == "open")
    while context._parts.window.record.open_page == newest:
        context.pop()

    opens = [page.index for page in context.pages() if page.where == "open"]
    assert opens == ([] if condensed else [newest - 1])
    assert context.verify() == []
    check(context._parts.window)


def test_another_writer_is_a_conflict_and_a_handle_for_reading_refuses(storage):
    """Of two that pop, the second has to look again: no message is taken back by mistake."""
    ours, theirs = talked(storage), again(storage)
    ours.pop()
    with pytest.raises(WriteConflict):
        theirs.pop()
    theirs.refresh()
    assert theirs.pop()["content"] == "the 9:15"
    with Context.view(storage, "alice") as reader, pytest.raises(OSError, match="reading only"):
        reader.pop()


@pytest.mark.parametrize("kind", ["ram", "sqlite"])
def test_the_memory_forgets_what_it_was_given(kind, tmp_path):
    """A page that is open again is not found as it was; when it closes, what is left of it is found."""
    storage = store(kind, tmp_path)
    with opened(storage, memory=TieredMemory(storage, owner="alice")) as context:
        context.append_turn("Where is the zebra?", {"role": "assistant", "content": "In the quagmire."})
        context.append_turn("And the okapi?")
        context.flush()
        with opened(storage, id="bob", owner="alice", memory=context.memory) as other:
            assert other.search_memory("quagmire").pages
            context.pop()
            context.pop()
            context.flush()
            assert not other.search_memory("quagmire zebra").pages
            context.append_turn({"role": "assistant", "content": "In the savannah."})
            context.append_turn("Thanks.")
            context.flush()
            found = other.search_memory("savannah").pages
            assert (found[0].context, found[0].index, found[0].text) == ("alice", 1, "In the savannah.")
            assert "quagmire" not in str(found) and "okapi" not in str(found)


def test_a_fork_keeps_what_its_parent_takes_back(storage):
    """Entries are shared, and each says for itself which of them it took back."""
    context = talked(storage)
    fork = context.fork("bob")
    context.pop()
    fork.append_turn("Thanks.")
    context.append_turn("No.")
    assert [each["content"] for each in fork.messages()][-2:] == ["At nine.", "Thanks."]
    assert [each["content"] for each in context.messages()][-2:] == ["the 9:15", "No."]
    assert fork.verify() == context.verify() == []


def test_an_awaited_context_pops():
    """The same call, awaited."""

    async def run():
        async with AsyncContext(opened()) as context:
            await context.append_turn(*turn(0))
            return await context.pop()

    assert asyncio.run(run()) == turn(0)[1]


def test_what_was_taken_back_and_erased_then_stays_taken_back():
    """An erasure that spreads to a popped answer counts no page twice, and a list without it is no other one."""
    context = opened()
    context.append_turn("Where is the zebra?", {"role": "assistant", "content": "In the quagmire."})
    recall = calling(call("r1", "recall_page", {"index": 1}))
    context.append_turn("Look.", recall)
    context.archive(keep=0)
    listed = [*context.messages()]
    context.append_turn(*context.answers(recall))
    assert "quagmire" in context.pop()["content"]

    context.erase(1)

    assert "quagmire" not in "".join(context.export())
    assert (context.report().pages["undone"], context.report().pages["erased"]) == (1, 1)
    assert min(context.report().pages.values()) == 0 and context.verify() == []
    assert context.sync(listed) == []


@pytest.mark.parametrize("popped", [0, 1])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 7])
def test_messages_that_are_taken_back_at_once_are_those_that_pop_takes(count, popped):
    """It is one change, and what is left goes on alike; also if more was taken back of the page before."""
    left, messages = [], []
    for at_once in (False, True):
        storage = EphemeralStorage()
        with talked(storage) as context:
            context.append_turn("And a hotel?", {"role": "assistant", "content": "wrong"})
            for _ in range(popped):
                context.pop()
            context.append_turn({"role": "assistant", "content": "The Grand."})
            before = context.report().messages, storage.revision("alice")
            taken = context.take_back(count) if at_once else [context.pop() for _ in range(count)][::-1]
            assert storage.revision("alice") - before[1] == (1 if at_once else count)
            messages.append(taken)
            context.append_turn("Go on.", {"role": "assistant", "content": "Yes."})
            stands = [(page.where, page.turn, page.entries) for page in context.pages() if page.where != "undone"]
            left.append((context.render(strict=False), [*context.messages()], stands, context.report().messages))
            assert context.verify() == []
            with again(storage) as later:
                assert later.render(strict=False) == left[-1][0]
    assert messages[0] == messages[1] and left[0] == left[1]


def test_more_than_there_is_is_not_taken_back(storage):
    """Nothing changes then, nor if a part is archived."""
    context = talked(storage)
    for archived, error in ((False, PageNotFound), (True, InvalidSetting)):
        if archived:
            context.archive(keep=0)
        before = seen(context)
        with pytest.raises(error):
            context.take_back(7)
        assert seen(context) == before


def test_a_view_of_the_past_does_not_show_what_was_popped_behind_a_compaction(storage):
    """The snapshot of the window had the message; the view of that turn has it no more, and the others whole."""
    context = opened(storage)
    for number in range(3):
        context.append_turn(*turn(number))
    context.append_turn("Which train?", {"role": "assistant", "content": "wrong"})
    assert context.archive(keep=0)
    context.pop()
    context.append_turn({"role": "assistant", "content": "At nine."})
    shown = context.render()
    context.append_turn("Thanks.")

    with Context.view(storage, "alice", at=3) as then:
        assert then.render() == shown and "wrong" not in str([*then.messages()])
        assert then.verify() == []
    with context.fork("bob", at=3) as fork:
        assert fork.render() == shown and fork.pop()["content"] == "At nine."


def test_a_page_whose_beginning_is_archived_keeps_a_message(storage):
    """An open page without a user's message was split: what is left of it is not taken back to nothing."""
    with opened(storage, window=700) as context:
        context.append_turn(
            *({"role": "assistant", "content": f"step {number} " + "word " * 60} for number in range(12))
        )
        context.archive(keep=0)
        with pytest.raises(InvalidSetting, match="each message before it is archived"):
            for _ in range(12):
                context.pop()
        assert [page.where for page in context.pages() if page.index == 1] == ["open"]
        context.append_turn({"role": "user", "content": "go on"})
        context.archive(keep=0)
        assert context.recall_page(1)
        assert context.verify() == []


def test_a_view_of_the_past_does_not_show_what_was_erased_behind_it():
    """A page was erased, and the one before opened again: as of its turn, there is nothing of the erased one."""
    storage = EphemeralStorage()
    with opened(storage) as context:
        for number in (1, 2):
            context.append_turn(*turn(number))
        context.erase(2)
        context.pop()
        shown, messages = context.render(), list(context.messages())
        with Context.view(storage, "alice", at=0, counter=words) as past:
            assert past.render() == shown
            assert list(past.messages()) == messages
