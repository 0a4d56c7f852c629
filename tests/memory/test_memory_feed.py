"""What leaves a window is told to the memory: all of it in the end, and nothing twice in effect, whatever happens."""

import json
from functools import cache

import pytest
from machine_chats import chat, finds, found, heard_of, owed, states, talk, turn, unloaded, word
from machine_kit import Told, check, die, tiers

from memci import EphemeralStorage
from memci.errors import StorageError, StorageUnavailable
from memci.memory import TieredMemory
from memci.rows import PageState

pytestmark = pytest.mark.usefixtures("alone")


@pytest.fixture
def storage():
    return EphemeralStorage()


# -- what is unloaded is found, and comes back


def test_what_left_the_window_is_found_and_comes_back(each_storage):
    """Every page that is not in the window is found by its word, with its index, and is recalled byte for byte."""
    context = talk(chat(each_storage), range(1, 21))
    shown = {index for index, place in states(each_storage).items() if place is PageState.ACTIVE}
    assert len(unloaded(each_storage)) > 5

    for index in range(1, 21):
        hits = context.search_memory(word(index)).pages
        if index in shown:
            assert ("alice", index) not in [(hit.context, hit.index) for hit in hits]
        else:
            assert (hits[0].context, hits[0].index, hits[0].entry) == ("alice", index, 1)
            assert context.recall_page(index) == list(turn(index))


def test_archived_page_is_admitted_others_are_observed(storage):
    """The memory knows of each closed page, and has taken in those that left the window, listed or not."""
    context = talk(chat(storage), range(1, 21))
    context.flush()

    known = tiers(TieredMemory(storage, owner="alice"))

    left = {index for index, place in states(storage).items() if place is not PageState.ACTIVE}
    assert len(left) > len(unloaded(storage)) > 0
    assert {index for (_, index), tier in known.items() if tier != "observed"} == left
    assert {index for _, index in known} == set(range(1, 20))


def test_closed_context_is_admitted_whole_and_still_not_found_in_its_window(each_storage):
    """Closing feeds what waits, the answered open page too; opened again, nothing of the window is found twice."""
    with chat(each_storage, owner="anna", window=20_000) as context:
        talk(context, range(1, 6))
        context.flush()
        talk(context, [6])

    known = tiers(TieredMemory(each_storage, owner="anna"))
    with chat(each_storage, owner="anna", window=None, nonce=None) as context:
        own = [found(context, word(number)) for number in range(1, 7)]
    with chat(each_storage, id="bob", owner="anna") as other:
        others = [found(other, word(number))[0] for number in range(1, 7)]
        context = chat(each_storage, window=None, owner="anna", nonce=None)
        context.undo()
        context.close()
        undone = finds(other, 6)

    assert known.keys() == {("alice", index) for index in range(1, 7)}
    assert "observed" not in known.values()
    assert own == [[]] * 6
    assert others == [("alice", index) for index in range(1, 7)]
    assert not undone
    check(TieredMemory(each_storage, owner="anna"))


def test_page_that_goes_on_after_it_was_handed_over_is_known_as_it_is_in_the_end(storage):
    """An open page that was answered is handed over by closing, and again when it has grown; then it is closed."""
    memory = Told()
    with chat(storage, memory=memory, window=20_000) as context:
        talk(context, [1, 2])
    assert memory.acknowledged("alice") == 1
    with chat(storage, memory=memory, window=20_000) as context:
        context.append_turn({"role": "assistant", "content": "And one thing more."})
    grown = len(memory.pages["alice", 2].entries)
    die(storage)
    context = talk(chat(storage, memory=memory, window=20_000), [3])
    context.erase(3, 1)
    context.flush()

    assert grown == 3
    assert {index: said for index, (said, _) in heard_of(memory).items()} == {
        index: said for index, (said, _) in owed(storage).items()
    }
    context.append_turn({"role": "user", "content": "An unanswered question."})
    context.close()
    assert memory.acknowledged("alice") == 3


def test_open_page_of_which_something_is_erased_is_withdrawn(storage):
    """A memory of one's own forgets an open page that was handed over at once when a message of it is erased."""
    memory = Told()
    with chat(storage, memory=memory, window=20_000) as context:
        talk(context, [1])

    with chat(storage, memory=memory, window=20_000) as context:
        context.erase(1, 1)
        assert not memory.pages


def test_page_in_the_window_is_found_when_it_is_shown_clipped(storage):
    """What a clipped view leaves out is found, although the page is in the window."""
    context = chat(storage)
    context.append_turn({"role": "user", "content": "so " * 300 + "quagga " + "so " * 900}, turn(0)[1])
    talk(context, [1])
    assert context.recall_page(1)

    hits = found(context, "quagga")

    active = [page for page in context.pages() if page.index == 1]
    assert active
    shown = any("quagga" in str(message["content"]) for message in context.render())
    assert shown or hits[0] == ("alice", 1)


def test_page_that_is_pinned_again_is_not_searched(storage):
    """A page that came back into the window verbatim is not among what is found; unpinned and gone, it is again."""
    context = talk(chat(storage, window=1_000), range(1, 25))
    first = unloaded(storage)[0]
    assert found(context, word(first))[0] == ("alice", first)

    context.pin(first)
    context.archive(keep=1)
    assert states(storage)[first] is PageState.ACTIVE
    assert ("alice", first) not in found(context, word(first))

    context.unpin(first)
    talk(context, range(25, 45))
    assert states(storage)[first] is not PageState.ACTIVE
    assert found(context, word(first))[0] == ("alice", first)


def test_page_that_is_listed_again_is_found_as_before(storage):
    """An unloaded page that is recalled comes back on the Contents Page, and stays taken in."""
    memory = Told()
    context = talk(chat(storage, memory=memory), range(1, 15))
    context.flush()
    first = unloaded(storage)[0]

    context.recall_page(first)
    context.archive(keep=1)
    context.flush()
    assert states(storage)[first] is PageState.ARCHIVED
    talk(context, range(15, 30))
    context.flush()

    assert heard_of(memory) == {**owed(storage), first: (list(turn(first)), True)}


# -- told in the end, once in effect, wherever it stops

STEPS = (
    lambda context: talk(context, range(1, 10)),
    lambda context: context.flush(),
    lambda context: talk(context, range(10, 14)),
    lambda context: context.undo(),
    lambda context: context.flush(),
    lambda context: talk(context, range(14, 18)),
    lambda context: context.erase(3),
    lambda context: context.erase(15, 1),
    lambda context: context.erase(2, 2),
    lambda context: talk(context, range(18, 22)),
    lambda context: context.undo(),
    lambda context: context.search_memory("what was it?"),
    lambda context: talk(context, range(22, 26)),
    lambda context: context.erase(17),
    lambda context: context.flush(),
    lambda context: talk(context, range(26, 30)),
    lambda context: context.flush(),
)


@cache
def calls_without_a_fault():
    memory, storage = Told(), EphemeralStorage()
    context = chat(storage, memory=memory)
    for step in STEPS:
        step(context)
    return len(memory.calls)


def test_everything_is_told_without_a_fault():
    """After all that can happen to pages, the memory knows each as it is, and has taken in what is unloaded."""
    memory, storage = Told(), EphemeralStorage()
    context = chat(storage, memory=memory)
    for step in STEPS:
        step(context)
    context.flush()

    assert heard_of(memory) == owed(storage)
    assert {name for name, _ in memory.calls} == {"observe", "admit", "erase"}
    assert calls_without_a_fault() > 30


@pytest.mark.parametrize("dies", [False, True], ids=["goes on", "dies"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_everything_is_told_whichever_call_fails(after, dies):
    """If a call of the memory fails, before or after its effect, all is told in the end, and nothing twice.

    The handle goes on, or its process dies there and another one opens the context.
    """
    calls = calls_without_a_fault()
    for at in range(1 + after + 2 * dies, calls + 1, 9):
        memory, storage = Told(StorageUnavailable if not dies else KeyboardInterrupt, after=after), EphemeralStorage()
        memory.at = at
        context = chat(storage, memory=memory)
        for step in STEPS:
            try:
                step(context)
            except StorageError:
                assert not dies
            except KeyboardInterrupt:
                context = chat(storage, memory=memory, window=None, nonce=None)
        context.flush()

        assert heard_of(memory) == owed(storage), f"call {at} of {calls}: {memory.calls[at - 1]}"


@pytest.mark.parametrize("every", [1, 3])
def test_everything_is_told_when_the_process_dies_between_any_two_steps(storage, every):
    """Dropped after any step, without close, and opened again, a context has told everything in the end."""
    memory = Told()
    context = chat(storage, memory=memory)
    for number, step in enumerate(STEPS):
        step(context)
        if number % every == 0:
            context = chat(storage, memory=memory, window=None, nonce=None)
    context.flush()

    assert heard_of(memory) == owed(storage)


def test_tiers_are_right_when_the_process_dies_between_any_two_steps(each_storage):
    """The same with the tiers themselves, whose handles and RAM die, too: they hold what was told, each page once."""
    context = chat(each_storage)
    for step in STEPS:
        step(context)
        die(each_storage)
        context = chat(each_storage, window=None, nonce=None)
    context.flush()

    memory = TieredMemory(each_storage, owner="alice")
    check(memory)
    expected = {("alice", index): unloaded for index, (_, unloaded) in owed(each_storage).items()}
    assert {key: tier != "observed" for key, tier in tiers(memory).items()} == expected


def test_handle_that_only_feeds_the_memory_never_commits(storage):
    """Its flush tells the memory all, and the writer of the context beside it meets no conflict."""
    writer, memory = talk(chat(storage, memory=Told()), range(1, 21)), Told()
    writer.undo()
    feeder = chat(storage, memory=memory, window=None, nonce=None)
    before = storage.load("alice")

    feeder.flush()

    assert heard_of(memory) == owed(storage)
    assert storage.load("alice") == before
    assert json.loads(before[0].state)["outbox"]
    talk(writer, [21])


def test_page_that_is_told_out_of_turn_hides_none_before_it(storage):
    """If what became of a later page is told first and the process dies, the pages before it are told after all."""
    memory = Told()
    context = talk(chat(storage, memory=memory, window=20_000), range(1, 8))
    context.erase(6, 1)

    context = chat(storage, memory=memory, window=None, nonce=None)
    context.flush()

    assert heard_of(memory) == owed(storage)


def test_page_that_is_told_out_of_turn_is_found_with_those_before_it(storage):
    """The same with the tiers: every page is found."""
    context = talk(chat(storage, window=20_000), range(1, 8))
    context.erase(6, 2)
    die(storage)

    context = chat(storage, window=None, nonce=None)
    context.flush()

    assert {index for _, index in tiers(TieredMemory(storage, owner="alice"))} == set(range(1, 7))


class Patient(EphemeralStorage):
    """A store that fails when it is asked without end."""

    asked = 0

    def pages(self, *arguments, **given):
        self.asked += 1
        assert self.asked < 5_000, "it asks without end"
        return super().pages(*arguments, **given)


def test_memory_that_heard_more_than_there_is_is_told_anew():
    """A memory of its own may know pages that a power cut took from the store: new pages of their numbers are told."""
    memory = Told()
    before = chat(memory=memory)
    talk(before, range(1, 8)).flush()
    assert memory.acknowledged("alice") == 6

    storage = Patient()
    context = talk(chat(storage, memory=memory, window=20_000), range(11, 16))
    context.flush()

    assert {index: heard_of(memory)[index] for index in range(1, 5)} == owed(storage)


def test_told_pages_are_not_told_again(storage):
    """In one handle, and in the next one, a page is told when something happened to it, and not for nothing."""
    memory = Told()
    context = talk(chat(storage, memory=memory), range(1, 12))
    context.flush()
    told = len(memory.calls)

    for _ in range(3):
        context.flush()
        context.search_memory("x")
    assert len(memory.calls) == told

    context = talk(chat(storage, memory=memory, window=None, nonce=None), range(12, 14))
    context.flush()
    assert ("observe", ("alice", 1)) not in memory.calls[told:] or unloaded(storage)
    assert len(memory.calls) - told <= 2 + 2 * len(unloaded(storage)) + 2


# -- undo, splits


def test_undone_turn_is_never_found(storage):
    """What was taken back is not found, whether the memory had been told of it or not; what is said instead is."""
    context = talk(chat(storage), range(1, 8))
    context.flush()
    context.undo()
    talk(context, [8])
    context.undo()
    talk(context, range(9, 20))

    assert not finds(context, 7)
    assert not finds(context, 8)
    assert finds(context, 9)
    assert finds(context, 2)


@pytest.mark.parametrize("ends", [False, True])
def test_what_left_the_open_page_is_found_while_it_is_open(ends, storage):
    """It is fed once, as it leaves; what is shown is not found, and what follows is found as soon as it leaves."""
    context = chat(storage, window=600)
    context.append_turn({"role": "user", "content": f"A long job with {word(0)}"})
    for number in range(1, 15):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "row", "arguments": "{}"}}
        result = {"role": "tool", "tool_call_id": f"c{number}", "content": f"{word(number)} " + "row of it " * 20}
        context.append_turn({"role": "assistant", "content": None, "tool_calls": [call]}, result)
        if number == 9:
            context.search_memory(word(1))
    if ends:
        talk(context, range(20, 40))
        context.flush()

    shown = json.dumps(context.render())
    for number in range(15):
        hits = [page for page in context.search_memory(word(number)).pages if word(number) in page.text]
        if word(number) in shown:
            assert not hits, number
        else:
            assert [(hit.index, hit.entry, len(hit.pieces)) for hit in hits] == [(1, 1 + 2 * number, 1)]
            (told,) = context.recall_page(1, hits[0].entry)
            assert word(number) in told["content"]


def test_a_page_that_grows_is_cut_into_passages_once(storage, monkeypatch):
    """Only the messages that left last are read into the memory: what it has is not made again, nor at the end."""
    from memci.memory import ingest

    cut = []
    real = ingest.passages
    monkeypatch.setattr(ingest, "passages", lambda entries: cut.extend(each[0] for each in entries) or real(entries))
    context = chat(storage, window=600)
    context.append_turn("A long job")
    for number in range(1, 15):
        context.append_turn({"role": "assistant", "content": f"{word(number)} " + "row of it " * 20})
        context.search_memory("row")
    context.append_turn("Thanks")
    context.flush()

    assert cut == sorted(set(cut)), "each message once"
    assert max(cut) == 15
