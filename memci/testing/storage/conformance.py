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
from pathlib import Path
from threading import Thread

import apsw
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from ...errors import HandlePoisoned, WriteConflict
from ...storage.protocol import (
    CheckedStorage,
    Erasure,
    OpRow,
    PageRow,
    PageState,
    SidecarStorage,
    Storage,
    Transition,
)
from .compactions import StorageCompactions
from .durable import StorageDurability
from .erase import StorageErasure
from .exact import StorageExactness
from .forks import StorageForks
from .locks import StorageLocks
from .machine import StorageMachine
from .removal import StorageRemoval
from .rows import append, appended, current, entry, everything, family

_STEPS = settings(
    max_examples=20,
    stateful_step_count=25,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],  # making a failure small takes minutes on a disk
)


class StorageConformance(
    StorageExactness, StorageCompactions, StorageForks, StorageErasure, StorageRemoval, StorageLocks
):
    """The promises of `memci.storage.Storage`."""

    @pytest.fixture
    def storage(self) -> Iterator[Storage]:
        """Give an empty store."""
        raise NotImplementedError("a subclass gives the store")

    @pytest.fixture
    def reread(self, storage: Storage) -> Callable[[], Storage]:
        """Give what gives the store to read from, once it was written to."""
        return lambda: storage

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
        family(storage)

        assert storage.damage() == []

    def test_unknown_context_is_none_or_empty(self, storage: Storage) -> None:
        """A context that was never written has no record, no pages and no entries."""
        append(storage, "other", b"1")

        assert storage.load("nobody") is None
        assert list(storage.pages("nobody")) == []
        assert list(storage.pages("nobody", state=PageState.ACTIVE)) == []
        assert list(storage.entries("nobody", 0, 10)) == []

    def test_load_keeps_the_compaction_when_a_transition_has_none(self, storage: Storage) -> None:
        """A compaction stays until another one replaces it."""
        storage.commit(Transition(0, current(storage, "a"), compaction="one"))
        append(storage, "a", b"1")
        before = storage.load("a")
        storage.commit(Transition(1, current(storage, "a"), compaction="two"))
        after = storage.load("a")

        assert before is not None and before[1] == "one"
        assert after is not None and after[1] == "two"

    def test_record_is_replaced_by_each_transition(self, storage: Storage) -> None:
        """The last record wins, whole."""
        append(storage, "a", b"1")
        record = current(storage, "a")._replace(owner="b", settings="[1]", state="[2]" * 9_000, turn=9, open_page=None)

        storage.commit(Transition(1, record))

        assert storage.load("a") == (record, None)

    def test_entries_of_a_range(self, storage: Storage) -> None:
        """Entries are those in [first, end), however many there are and wherever the bounds lie."""
        for i in range(0, 700, 7):
            append(storage, "a", *(b"%d" % j for j in range(i, i + 7)))

        for first, end in ((0, None), (0, 0), (5, 5), (63, 65), (1, 699), (699, 700), (690, 900), (700, None), (9, 3)):
            expected = list(range(first, min(700 if end is None else end, 700)))
            assert [(row.seq, row.body) for row in storage.entries("a", first, end)] == [
                (seq, b"%d" % seq) for seq in expected
            ]

    def test_entries_containing_among_many(self, storage: Storage) -> None:
        """A search reaches matches that are far apart."""
        append(storage, "a", *(b"%d" % i for i in range(1_500)))

        assert [row.seq for row in storage.entries("a", containing=b"00")] == [
            i for i in range(1_500) if "00" in str(i)
        ]

    def test_pages_of_a_range_and_a_place(self, storage: Storage) -> None:
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

    def test_page_is_replaced_whole(self, storage: Storage) -> None:
        """A page that is committed again takes its new fields, and leaves its old state."""
        append(storage, "a", b"1")
        append(storage, "a", b"2")
        archived = PageRow(1, 0, 1, 0, PageState.ARCHIVED, archived_turn=2)

        storage.commit(Transition(2, current(storage, "a"), pages=(archived,)))

        assert list(storage.pages("a", state=PageState.ARCHIVED)) == [archived]
        assert [page.index for page in storage.pages("a", state=PageState.ACTIVE)] == [2]

        storage.commit(Transition(2, current(storage, "a"), pages=(PageRow(1, 0, 1, 0),)))

        assert list(storage.pages("a", state=PageState.ARCHIVED)) == []
        assert [page.index for page in storage.pages("a", state=PageState.ACTIVE)] == [1, 2]

    def test_views_change_tokens_and_clip_alone(self, storage: Storage) -> None:
        """A view changes what a message costs, never what it says."""
        rows = tuple(entry(i, b"%d" % i, at="then")._replace(quotes=(1, i)) for i in range(3))
        storage.commit(Transition(0, current(storage, "a")._replace(head=3), rows))

        storage.commit(Transition(3, current(storage, "a"), views=((0, 70, 64), (2, 5, 0))))

        assert list(storage.entries("a")) == [rows[0]._replace(tokens=70, clip=64), rows[1], rows[2]._replace(tokens=5)]

    def test_stale_head_is_refused_without_a_trace(self, storage: Storage) -> None:
        """A writer whose head is not the store's gets WriteConflict, and nothing of its transition is kept."""
        append(storage, "a", b"1", b"2")
        before = everything(storage, "a")
        for head in (0, 1, 3):
            late = appended(current(storage, "a")._replace(head=head, owner="late", next_page=1), b"late")
            late = late._replace(compaction="late", op=OpRow("late", b"d" * 16, head, ((1, 0),)))

            with pytest.raises(WriteConflict):
                storage.commit(late)

            assert everything(storage, "a") == before
        assert storage.commit(appended(current(storage, "a"))._replace(op=OpRow("late", b"", 2, ()))) is None

    def test_new_context_starts_at_zero(self, storage: Storage) -> None:
        """A context that does not exist yet is at head 0: another head is WriteConflict and makes no context."""
        record = current(storage, "a")._replace(head=5)

        with pytest.raises(WriteConflict):
            storage.commit(appended(record, b"1"))

        assert storage.load("a") is None

    def test_known_op_applies_nothing(self, storage: Storage) -> None:
        """An op_id that is known gives the stored row back, whatever comes with it, and changes nothing."""
        op = OpRow("op \x00ü", b"d" * 16, 0, ((1, 0), (1, 1)))
        first = appended(current(storage, "a"), b"1", b"2")._replace(op=op)
        assert storage.commit(first) is None
        append(storage, "a", b"3")
        before = everything(storage, "a")

        assert storage.commit(first) == op
        assert storage.commit(first._replace(op=OpRow(op.op_id, b"e" * 16, 9, ()))) == op
        assert storage.commit(appended(current(storage, "a"), b"4")._replace(op=op)) == op
        assert everything(storage, "a") == before

    def test_op_is_known_in_its_own_context_only(self, storage: Storage) -> None:
        """Two contexts may use one op_id."""
        op = OpRow("op", b"d" * 16, 0, ((1, 0),))
        storage.commit(appended(current(storage, "a"), b"1")._replace(op=op))

        assert storage.commit(appended(current(storage, "b"), b"2")._replace(op=op)) is None
        assert [row.body for row in storage.entries("b")] == [b"2"]

    def test_contexts_are_all_there(self, storage: Storage) -> None:
        """contexts() gives each record, by id, however many there are."""
        names = [f"c{i:03}" for i in range(300)]
        for name in reversed(names):
            storage.commit(Transition(0, current(storage, name)))

        found = [storage.load(name) for name in names]
        assert storage.contexts() == [loaded[0] for loaded in found if loaded is not None]
        assert len(storage.contexts()) == len(names)

    def test_writer_of_an_old_revision_meets_a_conflict(self, storage: Storage) -> None:
        """Of two transitions from one state the second is WriteConflict, also without entries, and leaves no trace."""
        append(storage, "a", b"1")
        record = current(storage, "a")
        first = Transition(record.head, record._replace(state="[1]"), compaction="first")
        second = Transition(record.head, record._replace(state="[2]"), compaction="second")
        storage.commit(first)

        with pytest.raises(WriteConflict, match="revision"):
            storage.commit(second)

        assert storage.load("a") == (first.record, "first")

    def test_entries_that_come_while_reading_are_not_given(self, storage: Storage) -> None:
        """An iterator over entries gives those of its call, while others are committed between its steps."""
        append(storage, "a", *(b"%d" % i for i in range(300)))

        bodies = []
        for row in storage.entries("a"):
            bodies.append(row.body)
            if row.seq % 10 == 0:
                append(storage, "a", b"new")

        assert bodies == [b"%d" % i for i in range(300)]

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

    def test_a_stopped_iterator_holds_nothing_back(self, storage: Storage) -> None:
        """Commits go on while an iterator is left half read, and it goes on after them."""
        append(storage, "a", *[b"x"] * 600)
        left = storage.entries("a")
        next(left)

        append(storage, "a", b"y")

        assert len(list(left)) == 599

    def test_threads_may_write_their_contexts_at_once(self, storage: Storage) -> None:
        """Eight threads with a context each lose, mix up and repeat nothing."""
        failed: list[BaseException] = []

        def write(name: str) -> None:
            try:
                for i in range(25):
                    append(storage, name, f"{name} {i}".encode(), b"x")
                    assert len(list(storage.entries(name))) == 2 * i + 2
            except BaseException as error:
                failed.append(error)

        threads = [Thread(target=write, args=(f"t{i}",)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert failed == []
        for i in range(8):
            assert [row.body for row in storage.entries(f"t{i}")][::2] == [b"t%d %d" % (i, j) for j in range(25)]

    def test_closed_store_is_poisoned(self, storage: Storage) -> None:
        """After close() every call but close() is HandlePoisoned."""
        transition = append(storage, "a", b"1")
        entries = storage.entries("a")

        storage.close()
        storage.close()

        readers = (storage.load, storage.revision, storage.pages, storage.entries, storage.compactions, storage.ops)
        calls: list[Callable[[], object]] = [lambda read=read: list(read("a") or ()) for read in readers]  # type: ignore[misc]
        calls += [storage.contexts, lambda: list(entries), lambda: storage.commit(transition)]
        calls += [lambda: storage.erase(Erasure()), lambda: storage.hold("a", 0)]
        for call in calls:
            with pytest.raises(HandlePoisoned):
                call()

    def test_any_history_reads_as_a_plain_dict_would(self, storage: Storage) -> None:
        """Whatever is committed in whatever order, reading gives what a dict of lists gives."""

        class Machine(StorageMachine):
            store = storage

        run_state_machine_as_test(Machine, settings=_STEPS)


class DurableStorageConformance(StorageConformance, StorageDurability):
    """The promises of a store that keeps its contexts after close()."""

    @pytest.fixture
    def reopen(self) -> Callable[[], Storage]:
        """Give what opens the same store once more, beside the handles that are open."""
        raise NotImplementedError("a subclass gives it")

    @pytest.fixture(params=["at once", "reopened"])
    def reread(
        self, storage: Storage, reopen: Callable[[], Storage], request: pytest.FixtureRequest
    ) -> Iterator[Callable[[], Storage]]:
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
