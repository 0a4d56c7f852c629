"""What every store must do, as tests to inherit.

    class TestMyStorage(DurableStorageConformance):
        @pytest.fixture
        def reopen(self, tmp_path):
            return lambda: MyStorage(tmp_path / "contexts")

        @pytest.fixture
        def storage(self, reopen):
            return reopen()

A store that keeps nothing after close() inherits `StorageConformance` and gives only `storage`. What a durable store
may give besides: `corrupt`, `remove` and `files`, without which the tests that need them are skipped.
This module knows nothing of how a store keeps its rows.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from ...errors import HandlePoisoned
from ...storage.locks import hold
from ...storage.protocol import CheckedStorage, Erasure, PageRow, PageState, SidecarStorage, Storage, Transition
from .durable import StorageDurability
from .exact import StorageExactness
from .histories import StorageHistories
from .locks import StorageLocks
from .machine import StorageMachine
from .model import NOTHING, ModelledStore
from .rows import Reread, append, bodies_of, current, everything

_STEPS = settings(
    max_examples=20,
    stateful_step_count=25,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],  # making a failure small takes minutes on a disk
)


class StorageConformance(StorageExactness, StorageHistories, StorageLocks):
    """The promises of `memci.storage.Storage`."""

    @pytest.fixture
    def storage(self) -> Iterator[Storage]:
        """Give an empty store."""
        raise NotImplementedError("a subclass gives the store")

    @pytest.fixture
    def reread(self, storage: Storage) -> Reread:
        """Give what gives the store to read from, once it was written to."""
        return lambda: storage

    @pytest.fixture
    def opening(self) -> Reread | None:
        """Give what opens the store again after close(), None if it keeps nothing."""
        return None

    def test_is_a_storage(self, storage: Storage) -> None:
        """A store has the methods of the protocol."""
        assert isinstance(storage, Storage)

    def test_sidecar_is_released_before_the_store_closes(self, storage: Storage) -> None:
        """A store with a sidecar names one database, can be used beside it, and has it released when it closes."""
        if not isinstance(storage, SidecarStorage):
            pytest.skip("the store has no sidecar")
        released: list[str] = []
        first = storage.sidecar(lambda: released.append("first"))
        place = storage.sidecar(lambda: released.append("last"))
        database = apsw.Connection(place.path)
        database.execute("CREATE TABLE IF NOT EXISTS beside(it)")
        append(storage, "a", b"1")

        storage.close()

        database.close()
        assert first == place
        assert not place.read_only
        assert released == ["last"]

    def test_damage_is_none_in_a_whole_store(self, storage: Storage) -> None:
        """A store that can check its files finds nothing wrong with those that it wrote."""
        if not isinstance(storage, CheckedStorage):
            pytest.skip("the store does not check its files")
        ModelledStore(storage).family()

        assert storage.damage() == []

    def test_unknown_context_is_none_or_empty(self, storage: Storage) -> None:
        """A context that was never written has no record and no rows."""
        append(storage, "other", b"1")

        assert everything(storage, "nobody") == [NOTHING]
        assert list(storage.pages("nobody", state=PageState.ACTIVE)) == []
        assert list(storage.entries("nobody", 0, 10)) == []

    def test_pages_of_a_range_and_a_state(self, storage: Storage) -> None:
        """Pages are those from first to last, inclusive, and of one state if it is given."""
        states = [PageState(i % 4) for i in range(1, 601)]
        pages = tuple(PageRow(i, 0, 0, 0, state) for i, state in enumerate(states, 1))
        storage.commit(Transition(0, current(storage, "a")._replace(next_page=601), pages=pages))

        for first, last in ((1, None), (1, 600), (3, 3), (256, 300), (600, 700), (601, None), (5, 2)):
            for state in (None, *PageState):
                expected = (
                    [p for p in pages[first - 1 : last] if state in (None, p.state)] if first <= (last or 601) else []
                )
                assert list(storage.pages("a", first=first, last=last, state=state)) == expected

    def test_entries_that_come_while_reading_are_not_given(self, storage: Storage) -> None:
        """An iterator over entries gives those of its call, while others are committed between its steps."""
        append(storage, "a", *(b"%d" % i for i in range(600)))

        bodies = []
        for row in storage.entries("a"):
            bodies.append(row.body)
            if row.seq % 10 == 0:
                append(storage, "a", b"new")

        assert bodies == [b"%d" % i for i in range(600)]

    @pytest.mark.parametrize("state", [None, PageState.ACTIVE])
    def test_pages_can_change_while_reading(self, storage: Storage, state: PageState | None) -> None:
        """An iterator over pages gives every page that stays, while others are archived and added."""
        for _ in range(300):
            append(storage, "a", b"x")

        seen = []
        for page in storage.pages("a", state=state):
            seen.append(page.index)
            if page.index % 10 == 0:
                archived = page._replace(state=PageState.ARCHIVED)
                storage.commit(Transition(current(storage, "a").head, current(storage, "a"), pages=(archived,)))
                append(storage, "a", b"new")
            if page.index == 300:
                break

        assert seen == list(range(1, 301))

    def test_threads_may_write_their_contexts_at_once(self, storage: Storage) -> None:
        """Eight threads with a context each lose, mix up and repeat nothing."""

        def write(name: str) -> None:
            for i in range(25):
                append(storage, name, f"{name} {i}".encode(), b"x")
                assert len(list(storage.entries(name))) == 2 * i + 2

        names = [f"t{i}" for i in range(8)]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(write, names))

        for name in names:
            assert bodies_of(storage, name)[::2] == [f"{name} {i}".encode() for i in range(25)]

    def test_closed_store_is_poisoned(self, storage: Storage) -> None:
        """After close() every call but close() is HandlePoisoned."""
        transition = append(storage, "a", b"1")
        entries = storage.entries("a")

        storage.close()
        storage.close()

        readers = (storage.load, storage.revision, storage.pages, storage.entries, storage.compactions, storage.ops)
        calls: list[Callable[[], object]] = [lambda read=read: list(read("a") or ()) for read in readers]  # type: ignore[misc]
        calls += [storage.contexts, lambda: list(entries), lambda: storage.commit(transition)]
        calls += [lambda: storage.erase(Erasure()), storage.tickets, lambda: hold(storage, "a", 0)]
        for call in calls:
            with pytest.raises(HandlePoisoned):
                call()

    def test_any_history_reads_as_a_plain_dict_would(self, storage: Storage, opening: Reread | None) -> None:
        """Whatever is committed, however often a durable store is closed and opened, it reads like a plain dict."""

        class Machine(StorageMachine):
            store = storage
            reopen = None if opening is None else staticmethod(opening)

        try:
            run_state_machine_as_test(Machine, settings=_STEPS)
        finally:
            Machine.store.close()


class DurableStorageConformance(StorageConformance, StorageDurability):
    """The promises of a store that keeps its contexts after close()."""

    @pytest.fixture
    def reopen(self) -> Reread:
        """Give what opens the same store once more, beside the handles that are open."""
        raise NotImplementedError("a subclass gives it")

    @pytest.fixture(params=["at once", "reopened"])
    def reread(self, storage: Storage, reopen: Reread, request: pytest.FixtureRequest) -> Iterator[Reread]:
        """Give what gives the store to read from: as it is, and after close() and opening it again."""
        opened: list[Storage] = []

        def again() -> Storage:
            if request.param == "reopened":
                storage.close()
                opened.append(reopen())
            return opened[-1] if opened else storage

        yield again
        for each in opened:
            each.close()

    @pytest.fixture
    def opening(self, reopen: Reread) -> Reread | None:
        """Give what opens the store again after close()."""
        return reopen

    @pytest.fixture
    def files(self) -> Callable[[], Iterable[Path]]:
        """Give what lists the files that the store consists of, if they hold bodies as they are."""
        pytest.skip("the store gives no `files` fixture")

    @pytest.fixture
    def corrupt(self) -> Callable[[str, int], None]:
        """Give what changes a byte of the stored body of (context, seq), if the store can be reached so."""
        pytest.skip("the store gives no `corrupt` fixture")

    @pytest.fixture
    def remove(self) -> Callable[[str, int], None]:
        """Give what removes the stored row of (context, seq), if the store can be reached so."""
        pytest.skip("the store gives no `remove` fixture")
