"""What forks share is told once, as its parent's, and found by each as its own; what is not shared is told apart."""

import pytest
from machine_chats import chat, finds, found, heard_of, owed, talk, turn, word
from machine_kit import Told, check, tiers

from memci import EphemeralStorage
from memci.memory import NullMemory, TieredMemory

pytestmark = pytest.mark.usefixtures("alone")


@pytest.fixture
def storage():
    return EphemeralStorage()


def test_fork_of_the_same_owner_shares_what_was_told(storage):
    """A page that a fork shares is told once, as its parent's, and both find it as a page of their own."""
    memory = Told()
    context = talk(chat(storage, memory=memory), range(1, 12))
    fork = context.fork("bob")
    talk(context, range(12, 16))
    talk(fork, range(16, 22))
    context.flush()
    fork.flush()

    named = {index for name, index in memory.pages if name == "bob"}
    shared = {index for index in owed(storage, "bob") if index <= 11}
    assert named == set(owed(storage, "bob")) - shared
    assert heard_of(memory) == owed(storage)


def test_fork_finds_shared_pages_as_its_own(storage):
    """What a fork shares it finds by its own id and index, so that it can be recalled; so does its parent."""
    context = talk(chat(storage), range(1, 12))
    fork = context.fork("bob")
    talk(context, range(12, 22))
    talk(fork, range(30, 40))

    for number in (2, 5, 8):
        for each, name in ((context, "alice"), (fork, "bob")):
            (hit, *_) = each.search_memory(word(number)).pages
            assert (hit.context, hit.index) == (name, number)
            assert each.recall_page(hit.index) == list(turn(number))


def test_hits_of_other_contexts_say_whose_they_are(storage):
    """What another context of the owner said is found with its text and context, and never claims to be a page here."""
    context = talk(chat(storage), range(1, 12))
    fork = context.fork("bob")
    talk(context, range(12, 24))
    talk(fork, range(30, 42))
    other = talk(chat(storage, id="carol", owner="alice"), range(50, 60))
    for each in (context, fork, other):
        each.flush()

    for reader, number, name in (
        (fork, 14, "alice"),
        (context, 31, "bob"),
        (other, 31, "bob"),
        (context, 51, "carol"),
        (other, 2, "alice"),
    ):
        (hit, *_) = reader.search_memory(word(number)).pages
        assert hit.context == name != reader.id
        assert word(number) in hit.text


def test_undo_in_a_fork_leaves_the_parent_its_page(storage):
    """What a fork takes back, its parent still finds; the fork does not."""
    context = talk(chat(storage), range(1, 9))
    context.flush()
    fork = context.fork("bob")
    fork.undo()
    talk(context, range(20, 34))
    talk(fork, range(40, 54))
    for each in (context, fork):
        each.flush()

    assert finds(context, 8)
    assert found(fork, word(8)) == [] or not finds(fork, 8)
    assert finds(fork, 7)


def test_undo_in_the_parent_leaves_the_fork_its_page(storage):
    """What the parent takes back after the fork, the fork still has, and finds; the parent does not."""
    context = talk(chat(storage), range(1, 9))
    context.append_turn(turn(9)[0])
    fork = context.fork("bob")
    context.undo()
    context.undo()
    context.flush()
    talk(context, range(20, 34))
    talk(fork, range(40, 54))
    for each in (context, fork):
        each.flush()
    assert fork.recall_page(8) == list(turn(8))

    assert finds(fork, 8)
    assert finds(fork, 9)
    assert not finds(context, 8)


def test_page_that_was_open_when_it_was_forked_is_told_by_both(storage):
    """An open page goes on in parent and fork, each its own way: each finds what it said there itself."""
    context = talk(chat(storage), range(1, 5))
    context.append_turn(turn(5)[0])
    fork = context.fork("bob")
    context.append_turn({"role": "assistant", "content": f"here {word(70)}"})
    fork.append_turn({"role": "assistant", "content": f"there {word(80)}"})
    talk(context, range(20, 32))
    talk(fork, range(40, 52))
    for each in (context, fork):
        each.flush()

    assert ("alice", 5) in found(context, word(70))
    assert ("bob", 5) in found(fork, word(80))
    for each, number in ((fork, 70), (context, 80)):
        own = [page for page in each.search_memory(word(number)).pages if page.context == each.id]
        assert not any(word(number) in piece.text for page in own for piece in page.pieces)


def test_page_that_ends_where_it_was_forked_goes_on_in_the_parent(storage):
    """A fork that closes the open page at once knows it as it was; what the parent adds to it later is the parent's."""
    context = talk(chat(storage), range(1, 5))
    context.append_turn(*turn(5))
    fork = context.fork("bob")
    talk(fork, range(40, 52))
    context.append_turn({"role": "assistant", "content": f"here {word(70)}"})
    talk(context, range(20, 32))
    for each in (fork, context):
        each.flush()

    assert finds(fork, 5)
    own = [page for page in fork.search_memory(word(70)).pages if page.context == "bob"]
    assert not any(word(70) in piece.text for page in own for piece in page.pieces)


def test_fork_for_another_owner_is_told_to_that_owner(storage):
    """Another owner's fork has a memory of its own, in which all its pages are its own; nothing is found across."""
    context = talk(chat(storage), range(1, 12))
    fork = context.fork("bob", owner="bob")
    talk(context, range(12, 22))
    talk(fork, range(30, 40))

    (hit, *_) = fork.search_memory(word(2)).pages
    assert (hit.context, hit.index) == ("bob", 2)
    assert not finds(fork, 12)
    assert not finds(context, 31)
    (hit, *_) = context.search_memory(word(2)).pages
    assert (hit.context, hit.index) == ("alice", 2)
    for owner in ("alice", "bob"):
        check(TieredMemory(storage, owner=owner))


def test_fork_of_a_fork_shares_with_both(storage):
    """Of three generations each finds all that it shares as its own, and each page is told once."""
    context = talk(chat(storage), range(1, 8))
    fork = talk(context.fork("bob"), range(30, 37))
    last = talk(fork.fork("carl"), range(50, 57))
    for each in (last, fork, context):
        each.flush()

    known = tiers(TieredMemory(storage, owner="alice"))
    assert {index for name, index in known if name == "alice"} == set(range(1, 7))
    for number, index in ((2, 2), (31, 9)):
        (hit, *_) = last.search_memory(word(number)).pages
        assert (hit.context, hit.index) == ("carl", index)


@pytest.mark.parametrize("owner", [None, "bob"])
def test_fork_of_a_context_that_remembers_nothing_remembers_nothing(storage, owner):
    """Who switched the memory off has it off in forks, too."""
    context = talk(chat(storage, memory=NullMemory()), range(1, 5))

    fork = context.fork("bob", owner=owner)

    assert not fork.search_memory(word(1))
    assert "search_memory" not in [tool["function"]["name"] for tool in fork.tools]
