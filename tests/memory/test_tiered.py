"""TieredMemory keeps the promises of a memory, on every store, and its tables the promises of the tiers."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from beside_pages import SMALL, Kept, OnDisk

from memci import Context, EphemeralStorage, SQLiteStorage
from memci.errors import InvalidSetting
from memci.memory import TieredMemory
from memci.storage import FilesystemStorage, Storage
from memci.testing.memory.conformance import DurableMemoryConformance, MemoryConformance


class OfAThirdParty:
    """A durable store with the methods of `Storage` and no others."""

    def __init__(self, path: Path) -> None:
        store = SQLiteStorage(path, durability="fast")
        self.load, self.revision, self.commit, self.pages = store.load, store.revision, store.commit, store.pages
        self.pages_at, self.entries_at = store.pages_at, store.entries_at
        self.entries, self.compactions, self.ops, self.op = store.entries, store.compactions, store.ops, store.op
        self.calls, self.forks = store.calls, store.forks
        self.contexts, self.erase, self.close = store.contexts, store.erase, store.close
        self.tickets, self.replace_ticket = store.tickets, store.replace_ticket


class TestInRAM(Kept, MemoryConformance):
    @pytest.fixture
    def storage(self) -> Storage:
        return EphemeralStorage()

    @pytest.fixture
    def stranger(self, storage: Storage) -> TieredMemory:
        return TieredMemory(storage, owner="somebody else", rules=SMALL)


class TestOnSQLite(OnDisk):
    make = staticmethod(lambda folder: SQLiteStorage(folder / "agent.db", durability="fast"))


class TestOnFiles(OnDisk):
    make = staticmethod(lambda folder: FilesystemStorage(folder / "agent", durability="fast"))


def test_any_life_is_remembered(monkeypatch):
    """Whatever happens to the pages of two owners, each planted word is found where it was said, by its owner alone."""
    import os

    from hypothesis.stateful import run_state_machine_as_test
    from machine_lives import Lives, reached, steps

    monkeypatch.setattr("memci.context.memory_client.BATCH", 10**9)
    reached.clear()

    run_state_machine_as_test(Lives, settings=steps(int(os.environ.get("MEMCI_EXAMPLES", "8"))))

    met = ("mid", "short", "evicted", "observed", "hand-over", "search", "undo", "erase", "erase entry", "death")
    assert [each for each in (*met, "erase context") if not reached[each]] == []


class TestInAFileOfItsOwn(Kept, DurableMemoryConformance):
    """A store without a sidecar has a durable memory if it is given a path."""

    @pytest.fixture
    def storage(self, tmp_path: Path) -> Iterator[Storage]:
        with contextlib.closing(OfAThirdParty(tmp_path / "agent.db")) as storage:
            yield storage

    @pytest.fixture
    def reopen(self, storage: Storage, tmp_path: Path) -> Callable[..., TieredMemory]:
        def opened(owner: str = "anna") -> TieredMemory:
            return TieredMemory(storage, owner=owner, rules=SMALL, path=tmp_path / "memory.db", clock=lambda: 1e6)

        return opened

    @pytest.fixture
    def memory(self, reopen: Callable[..., TieredMemory]) -> Iterator[TieredMemory]:
        with contextlib.closing(reopen()) as memory:
            yield memory


def test_third_party_store_without_a_sidecar_is_refused(tmp_path: Path) -> None:
    """A durable store without a sidecar never has its memory in RAM: the error says what to pass."""
    with (
        contextlib.closing(OfAThirdParty(tmp_path / "agent.db")) as storage,
        pytest.raises(InvalidSetting, match=r"sidecar.*NullMemory.*path") as caught,
    ):
        TieredMemory(storage, owner="anna")

    assert caught.value.name == "memory"


def test_model_that_has_to_be_awaited_is_refused(storage: EphemeralStorage) -> None:
    """Nothing awaits the memory's model: its answers would never come."""

    async def chat(messages, /, **options): ...

    with pytest.raises(InvalidSetting, match=r"chat: .* is asynchronous"):
        TieredMemory(storage, owner="anna", chat=chat)


def test_context_has_the_owner_of_its_memory(storage: EphemeralStorage) -> None:
    """A new context is the memory's owner's; that of somebody else is refused before anything is stored."""
    memory = TieredMemory(storage, owner="anna")
    with Context.open(storage, id="a", window=4_000, memory=memory):
        pass
    Context.open(storage, id="b", window=4_000).close()

    with pytest.raises(InvalidSetting, match="it is of 'anna', the context of 'b'"):
        Context.open(storage, id="b", memory=memory)
    with pytest.raises(InvalidSetting, match="it is of 'anna', the context of 'ben'"):
        Context.open(storage, id="c", window=4_000, owner="ben", memory=memory)

    assert [(each.id, each.owner) for each in Context.list(storage)] == [("a", "anna"), ("b", "b")]


def test_memory_in_a_file_of_its_own_outlives_its_store(tmp_path: Path) -> None:
    """What a context fed is found after everything was closed and opened again."""
    for said in ("Where do zeppelins land?", None):
        with contextlib.closing(OfAThirdParty(tmp_path / "agent.db")) as storage:
            memory = TieredMemory(storage, owner="anna", path=tmp_path / "memory.db")
            with contextlib.closing(memory), Context.open(storage, id="a", window=4_000, memory=memory) as context:
                if said is not None:
                    context.append_turn(said)
                    context.append_turn("And then?")
                    context.flush()
                else:
                    assert [page.index for page in memory.search("zeppelins").pages] == [1]
