"""What leaves a window is told to the memory: all of it in the end, and nothing twice in effect, whatever happens."""

import contextlib
import shutil
import sys
from pathlib import Path

import pytest

from memci import EphemeralStorage, SQLiteStorage
from memci.errors import StorageError, StorageUnavailable
from memci.memory import NullMemory, TieredMemory
from memci.memory.backend import MemoryBackend
from memci.storage import FilesystemStorage
from memci.storage.protocol import Place

sys.path.insert(0, str(Path(__file__).parent))
from machine_chats import chat, heard_of, owed, places, talk, turn, unloaded, word
from machine_kit import Told, check, die, tiers


@pytest.fixture(autouse=True)
def _alone(monkeypatch):
    """Leave the telling to the tests: what the worker does is `test_background`'s."""
    monkeypatch.setattr("memci.remembering.BATCH", 10**9)


@pytest.fixture
def storage():
    return EphemeralStorage()


@pytest.fixture(params=["ram", "sqlite", "files"])
def each_storage(request, tmp_path):
    made = {
        "ram": EphemeralStorage,
        "sqlite": lambda: SQLiteStorage(tmp_path / "agent.db", durability="fast"),
        "files": lambda: FilesystemStorage(tmp_path / "agent", durability="fast"),
    }[request.param]()
    with contextlib.closing(made):
        yield made


def found(context, query, **given):
    return [(page.context, page.index) for page in context.search_memory(query, **given).pages]


def finds(context, number):
    """Tell whether *context* finds turn *number* by its word, in a piece that says it."""
    return any(
        word(number) in piece.text for page in context.search_memory(word(number)).pages for piece in page.pieces
    )


# -- what is unloaded is found, and comes back


def test_what_left_the_window_is_found_and_comes_back(each_storage):
    """Every page that is not in the window is found by its word, with its index, and is recalled byte for byte."""
    context = talk(chat(each_storage), range(1, 21))
    shown = {index for index, place in places(each_storage).items() if place is Place.ACTIVE}
    assert len(unloaded(each_storage)) > 5

    for index in range(1, 21):
        hits = context.search_memory(word(index)).pages
        if index in shown:
            assert ("alice", index) not in [(hit.context, hit.index) for hit in hits]
        else:
            assert (hits[0].context, hits[0].index, hits[0].entry) == ("alice", index, 1)
            assert context.recall_page(index) == list(turn(index))


def test_unloaded_page_is_admitted_others_are_observed(storage):
    """The memory knows of each closed page, and has taken in those that left the Contents Page."""
    context = talk(chat(storage), range(1, 21))
    context.flush()

    known = tiers(TieredMemory(storage, owner="alice"))

    gone = unloaded(storage)
    assert {index for (_, index), tier in known.items() if tier != "observed"} == set(gone)
    assert {index for _, index in known} == set(range(1, 20))


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
    context.archive()
    assert places(storage)[first] is Place.ACTIVE
    assert ("alice", first) not in found(context, word(first))

    context.unpin(first)
    talk(context, range(25, 45))
    assert places(storage)[first] is not Place.ACTIVE
    assert found(context, word(first))[0] == ("alice", first)


def test_page_that_is_listed_again_is_found_as_before(storage):
    """An unloaded page that is recalled comes back on the Contents Page, and stays taken in."""
    memory = Told()
    context = talk(chat(storage, memory=memory), range(1, 15))
    context.flush()
    first = unloaded(storage)[0]

    context.recall_page(first)
    context.archive()
    context.flush()
    assert places(storage)[first] is Place.ARCHIVED
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
)


def calls_without_a_fault():
    memory, storage = Told(), EphemeralStorage()
    context = chat(storage, memory=memory)
    for step in STEPS:
        step(context)
    return len(memory.calls)


CALLS = calls_without_a_fault()


def test_everything_is_told_without_a_fault():
    """After all that can happen to pages, the memory knows each as it is, and has taken in what is unloaded."""
    memory, storage = Told(), EphemeralStorage()
    context = chat(storage, memory=memory)
    for step in STEPS:
        step(context)
    context.flush()

    assert heard_of(memory) == owed(storage)
    assert {name for name, _ in memory.calls} == {"observe", "admit", "erase"}
    assert CALLS > 30


@pytest.mark.parametrize("dies", [False, True], ids=["goes on", "dies"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_everything_is_told_whichever_call_fails(after, dies):
    """If a call of the memory fails, before or after its effect, all is told in the end, and nothing twice.

    The handle goes on, or its process dies there and another one opens the context.
    """
    for at in range(1 + after + 2 * dies, CALLS + 1, 4):
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

        assert heard_of(memory) == owed(storage), f"call {at} of {CALLS}: {memory.calls[at - 1]}"


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
    assert memory.heard("alice") == 6

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


def test_parts_of_a_split_page_are_found_by_their_own_ordinals(storage):
    """An open page that is split is told in parts: each entry is found once, by the number that it keeps."""
    context = chat(storage, window=600)
    context.append_turn({"role": "user", "content": f"A long job with {word(0)}"})
    for number in range(1, 15):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "row", "arguments": "{}"}}
        result = {"role": "tool", "tool_call_id": f"c{number}", "content": f"{word(number)} " + "row of it " * 20}
        context.append_turn({"role": "assistant", "content": None, "tool_calls": [call]}, result)
    assert len(places(storage)) > 1, "it was split"
    talk(context, range(20, 30))
    context.flush()

    memory = TieredMemory(storage, owner="alice")
    known = {index for _, index in tiers(memory)}
    assert known == set(owed(storage))
    for number in range(1, 15):
        hits = [page for page in memory.search(word(number)).pages if word(number) in page.text]
        assert [(hit.entry, len(hit.pieces)) for hit in hits] == [(1 + 2 * number, 1)]
        (told,) = context.recall_page(hits[0].index, hits[0].entry)
        assert word(number) in told["content"]


# -- forks


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


# -- other memories, and none


def test_context_without_a_memory_is_told_of_later(each_storage):
    """After a time with NullMemory, the default memory is told of everything, with what became of it."""
    with talk(chat(each_storage, memory=NullMemory()), range(1, 16)) as context:
        context.erase(2)
        context.undo()
        assert not context.search_memory(word(1))

    context = chat(each_storage, window=None, nonce=None)
    context.flush()

    memory = TieredMemory(each_storage, owner="alice")
    expected = {("alice", index): unloaded for index, (_, unloaded) in owed(each_storage).items()}
    assert {key: tier != "observed" for key, tier in tiers(memory).items()} == expected


def test_memory_that_was_deleted_is_told_again(tmp_path):
    """A memory.db that is gone is made anew from the pages: all are found, the unloaded ones are in the tiers."""
    path = tmp_path / "agent"
    with contextlib.closing(FilesystemStorage(path)) as storage:
        talk(chat(storage), range(1, 16)).flush()
        before = {
            index for (_, index), tier in tiers(TieredMemory(storage, owner="alice")).items() if tier != "observed"
        }
        die(storage)
    for each in path.glob("memory.db*"):
        each.unlink()

    with contextlib.closing(FilesystemStorage(path)) as storage:
        context = chat(storage, window=None, nonce=None)
        context.flush()

        known = tiers(TieredMemory(storage, owner="alice"))
        assert {index for _, index in known} == set(owed(storage))
        assert {index for (_, index), tier in known.items() if tier != "observed"} == before
        assert finds(context, 2)


@pytest.mark.parametrize("given", [{"read_only": True}, {"at": 9}], ids=["read_only", "at"])
@pytest.mark.parametrize("kind", ["sqlite", "files"])
@pytest.mark.parametrize("told", [False, True])
def test_who_only_reads_writes_nothing(tmp_path, given, kind, told):
    """Searching in a context that is only read changes no byte of the store, and finds what the memory was told."""
    make = {
        "sqlite": lambda: SQLiteStorage(tmp_path / "agent.db"),
        "files": lambda: FilesystemStorage(tmp_path / "agent"),
    }[kind]
    with contextlib.closing(make()) as storage:
        context = talk(chat(storage), range(1, 16))
        if told:
            context.flush()
            context.search_memory(word(2))
        context.close()
    shutil.copytree(tmp_path, copy := tmp_path.parent / f"{tmp_path.name} copy")
    before = {path.relative_to(copy): path.read_bytes() for path in copy.rglob("*") if path.is_file()}

    with contextlib.closing(make()) as storage:
        with chat(storage, window=None, nonce=None, **given) as context:
            hits = context.search_memory(word(2))
            context.flush()
            context.search_memory("question")
        assert [page.index for page in hits.pages][:1] == ([2] if told else [])
        assert (hits.pending > 0) == (not told)
    after = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    same = {name for name in before if after.get(name) == before[name]}
    assert {str(name) for name in before.keys() - same} <= {"agent.db-shm"}
    assert all(name.name.endswith(("-wal", "-shm")) for name in after.keys() - before.keys())


def test_context_of_the_past_finds_its_own_pages_of_then(each_storage):
    """Shown as it was, a context finds no page that came later, none of other contexts, and all that it had then."""
    context = talk(chat(each_storage), range(1, 16))
    talk(chat(each_storage, id="bob", owner="alice"), range(30, 40)).flush()
    context.flush()

    past = chat(each_storage, at=6, window=None, nonce=None)

    assert not finds(past, 12)
    assert not finds(past, 31)
    shown = {row.index for row in past.pages() if row.where == "active"}
    for index in range(2, 6):
        assert index in shown or finds(past, index)


class Away:
    """A memory that can't be reached."""

    def __getattr__(self, name):
        raise AttributeError(name)

    def _fail(self, *arguments, **given):
        raise StorageUnavailable("the memory is away")

    observe = admit = heard = search = erase = upkeep = _fail

    def close(self):
        pass


def test_memory_that_is_away_breaks_nothing(storage):
    """While the memory can't be reached, all else works; what it missed is told when it is back."""
    away = Away()
    assert isinstance(away, MemoryBackend)
    context = talk(chat(storage, memory=away, window=1_000), range(1, 12))
    context.render("and now?")
    context.archive()
    context.pin(2)
    context.unpin(2)
    assert context.erase(3).memory == "pending"
    assert context.undo() == list(turn(11))
    fork = talk(context.fork("bob"), range(30, 33))
    assert context.report().pages
    assert context.verify() == []
    with pytest.raises(StorageUnavailable):
        context.search_memory("anything")
    with pytest.raises(StorageUnavailable):
        context.flush()
    call = {"id": "c", "type": "function", "function": {"name": "search_memory", "arguments": '{"query": "x"}'}}
    assert "can't be reached" in context.answer(call)["content"]
    talk(context, [12])
    context.close()
    fork.close()

    memory = Told()
    context = chat(storage, memory=memory, window=None, nonce=None)
    context.flush()
    assert heard_of(memory) == owed(storage)


def test_memory_that_was_passed_is_not_closed_the_own_one_is(storage):
    """A memory that the program made stays open when a context closes, for other contexts."""
    memory = Told()
    with chat(storage, memory=memory) as context:
        talk(context, [1, 2])
        with context.fork("bob") as fork:
            talk(fork, [3])

    assert memory.closed == 0


def test_outbox_stays_small(storage):
    """However long the memory is away, what is stored of it is bounded, and nothing is missed in the end."""
    context = talk(chat(storage, memory=Away()), range(1, 60))
    for index in range(1, 57, 2):
        with contextlib.suppress(StorageError):
            context.erase(index, 1)

    assert len(storage.load("alice")[0].state) < 4_000
    context.close()
    memory = Told()
    chat(storage, memory=memory, window=None, nonce=None).flush()
    assert heard_of(memory) == owed(storage)
