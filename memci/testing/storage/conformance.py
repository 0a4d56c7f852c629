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
from contextlib import suppress
from pathlib import Path

import apsw
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from ...errors import HandlePoisoned, StorageError
from ...storage.locks import hold
from ...storage.protocol import Erasure, PageState, SidecarStorage, Storage, Transition
from .durable import StorageDurability
from .exact import StorageExactness
from .locks import StorageLocks
from .machine import StorageMachine
from .model import ModelledStore
from .rows import Reread, append, bodies_of, current

_STEPS = settings(
    max_examples=20,
    stateful_step_count=25,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],  # making a failure small takes minutes on a disk
)


class StorageConformance(StorageExactness, StorageLocks):
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

    def test_long_history_is_read_whole(self, pair: ModelledStore, reread: Reread) -> None:
        """Ranges, searches and the neighbours of tombstones are exact among more entries than are read at once."""
        for first in range(0, 600, 150):
            pair.append("a", *(b"%d" % i * (3_000 if i % 100 == 0 else 1) for i in range(first, first + 150)))
        pair.fork("a", "b", 300, *(b"b%d" % i for i in range(300, 500)))
        pair.fork("b", "c", 400, *(b"c%d" % i for i in range(400, 410)))
        pair.fork("c", "d", 100, b"d100")
        gone = (0, 63, 64, 99, 100, 101, *range(140, 190), 255, 256, 299, 511, 599)
        pair.erase(pair.erasure(*(("a", seq) for seq in gone)))

        again = reread()
        pair.check(again)
        ranges = [(0, None), (0, 0), (5, 3), (63, 65), (99, 102), (299, 301), (250, 405), (399, 401), (409, 900)]
        searches: list[bytes | None] = [None, b"77", b"7", b"577", b"b", b"00"]
        for name, model in pair.models.items():
            for first, end in [*ranges, (1, 599), (599, 600), (590, 900), (600, None)]:
                for containing in searches:
                    expected = [row for row in model.entries[first:end] if containing is None or containing in row.body]
                    assert list(again.entries(name, first, end, containing=containing)) == expected, (name, first, end)
        pair.append("a", b"later")
        pair.check()

    def test_entries_can_come_and_go_while_reading(self, pair: ModelledStore) -> None:
        """An iterator gives the entries of its call while others are committed, and no wrong row after a removal."""
        bodies, seen = [b"%d" % i for i in range(600)], []
        pair.append("a", *bodies)
        pair.append("b", b"1")

        for row in pair.store.entries("a"):
            seen.append(row.body)
            if row.seq % 10 == 0:
                pair.append("a", b"new")
        rows = pair.store.entries("a")
        rest = [next(rows).body]
        pair.erase(pair.erasure(contexts=("a",)))
        with suppress(StorageError):  # it may say that its rows are gone
            rest += [row.body for row in rows]

        assert seen == bodies
        assert rest[:600] == bodies[: len(rest)]
        pair.check()

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
        assert [page.index for page in storage.pages("a", first=255, last=290)] == list(range(255, 291))
        assert list(storage.pages("a", first=290, last=255)) == []

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
