"""What becomes of the hand-over without a memory, with one that is away or deleted, and for who only reads."""

import contextlib
import shutil

import pytest
from machine_chats import chat, finds, heard_of, owed, talk, turn, word
from machine_kit import Told, die, tiers

from memci import EphemeralStorage, SQLiteStorage
from memci.errors import StorageError, StorageUnavailable
from memci.history.erase import erase
from memci.memory import NullMemory, TieredMemory
from memci.memory.backend import MemoryBackend
from memci.storage import FilesystemStorage

pytestmark = pytest.mark.usefixtures("alone")


@pytest.fixture
def storage():
    return EphemeralStorage()


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
    """A memory.db that is gone is made again from the pages: all are found, the unloaded ones are in the tiers."""
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
            context.close()  # else its process dies
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

    observe = admit = acknowledged = search = erase = maintain = _fail

    def close(self):
        pass


def test_memory_that_is_away_breaks_nothing(storage):
    """While the memory can't be reached, all else works; what it missed is told when it is back."""
    away = Away()
    assert isinstance(away, MemoryBackend)
    context = talk(chat(storage, memory=away, window=1_000), range(1, 12))
    context.render("and now?")
    context.archive(keep=1)
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


@pytest.mark.parametrize("erased", ["page", "entry", "context"])
def test_what_is_erased_while_it_is_fed_does_not_come_back(each_storage, erased):
    """Another handle erases between the reading of a page and its arrival in the memory: the memory drops it again."""

    class Slow(Told):
        def observe(self, page):
            if page.index == 2 and not self.pages.keys() & {("alice", 2)}:
                if erased == "context":
                    erase(each_storage, context="alice")
                else:
                    with chat(each_storage, memory=NullMemory(), window=None, nonce=None) as other:
                        other.erase(2, entry=1 if erased == "entry" else None)
            super().observe(page)

    memory = Slow()
    context = talk(chat(each_storage, memory=memory), range(1, 4))

    context.flush()

    known = str(memory.pages.get(("alice", 2)))
    assert word(2) not in known
    assert (known == "None") is (erased != "entry")
