"""What every store must do, as tests to inherit.

    class TestMyStorage(DurableStorageConformance):
        @pytest.fixture
        def reopen(self, tmp_path):
            return lambda: MyStorage(tmp_path / "contexts")

        @pytest.fixture
        def storage(self, reopen):
            return reopen()

A store that keeps nothing after close() inherits `StorageConformance` and gives only `storage`. This module knows
nothing of how a store keeps its rows.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from ...errors import HandlePoisoned, InvalidSetting, StorageError
from ...rows import CALL, ENTRY, OP, PAGE, CallRow, CompactionRow, ContextRecord, OpRow, PageRow, PageState, Ticket
from ...storage import EphemeralStorage
from ...storage.locks import hold
from ...storage.protocol import Erasure, SidecarStorage, Storage, Transition
from .machine import StorageMachine
from .pair import PairedStore
from .rows import Reread, append, appended, bodies_of, called, compacted, current, entry, varied

_STEPS = settings(
    max_examples=10,
    stateful_step_count=25,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],  # making a failure small takes minutes on a disk
)

TWINS = (*"aA%_", "a ", " a", "a\x00", "a_b", "aXb", "a%", "'; --", "ä", "a\u0308", "\U0001f600", "", "x" * 10_000)
"""ids that a careless store takes for one another"""

BODIES = (b"", b"{}", b"\x00", b'"\x00"', b'"\xed\xa0\xbd"', b"9" * 600, b"\xff\xfe", b"x" * 5_000, b"x" * 300_000)
"""bytes that a careless store changes: nothing, NUL, half a surrogate pair, a big integer, no UTF-8, large ones"""


class StorageConformance:
    """The promises of `memci.storage.Storage`."""

    @pytest.fixture
    def storage(self) -> Any:
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

    @pytest.fixture
    def known(self) -> Callable[[], Storage]:
        """Give what makes an empty store that is known to be right, to compare the store with."""
        return EphemeralStorage

    @pytest.fixture
    def pair(self, storage: Storage, known: Callable[[], Storage]) -> PairedStore:
        """Give the empty store beside one that is known to be right."""
        return PairedStore(storage, known())

    def test_every_field_comes_back(self, pair: PairedStore, reread: Reread) -> None:
        """The last record and compaction, entries, bodies and pages come back as they were committed, in order."""
        record = ContextRecord("id", "owner ä", '{"a":1}', '{"b":"\x00"}', head=0, next_page=7, turn=3, open_page=6)
        later = ContextRecord("id", "b", "[1]", "[2]" * 9_000, head=0, next_page=8, turn=9, open_page=None, revision=2)
        entries = varied(ENTRY, entry(0, b"x"))
        pages = tuple(page._replace(index=page.index + 1) for page in varied(PAGE, PageRow(0, 4, None, 1)))
        calls = varied(CALL, CallRow(0, 0, 0, None, None, 0, 0, 0, 0, 0))
        assert isinstance(pair.store, Storage), "it has the methods of the protocol"
        pair.commit(compacted(Transition(0, record), '{"blocks":["\U0001f600"]}'))
        pair.check()
        pair.commit(Transition(0, later))
        pair.commit(Transition(0, pair.following("a")._replace(head=len(entries)), entries))
        pair.append("bodies", b"before", *BODIES, b"after")
        pair.commit(Transition(len(entries), pair.following("a"), pages=pages[::-1], calls=calls))
        for op in varied(OP, OpRow(0, b"d" * 16, 0, ())):  # type: ignore[arg-type]
            pair.commit(Transition(len(entries), pair.following("a"), ops=(op._replace(op_id=f"op \x00{op.op_id}"),)))

        pair.check(reread())
        assert all(type(page.state) is PageState for page in pair.store.pages("a"))

    def test_contexts_with_like_ids_are_apart(self, pair: PairedStore, reread: Reread) -> None:
        """Ids that look alike are not alike, and the lock of one is not that of another."""
        for i, context in enumerate(TWINS):
            pair.append(context, b"%d" % i, compaction=f"{i}")
        locks = [hold(pair.store, context, 0) for context in TWINS]

        for lock in locks:
            lock.release()
        pair.check(reread())

    def test_contexts_come_by_pages(self, pair: PairedStore) -> None:
        """Of one owner or of all, after an id, at most so many; and the forks of each context are found."""
        for i, context in enumerate(TWINS):
            record = pair.following(context)._replace(owner=f"owner{i % 2}")
            pair.commit(appended(record, b"1"))
        pair.fork(TWINS[0], "fork b", 1)
        pair.fork(TWINS[0], "fork a", 0, b"own")
        pair.fork("fork a", "fork of a fork", 1)

        for owner in (None, "owner0", "owner1", "nobody"):
            expected = list(pair.known.contexts(owner=owner))
            seen: list[ContextRecord] = []
            while found := pair.store.contexts(owner=owner, after=seen[-1].id if seen else None, limit=3):
                assert len(found) <= 3
                seen += found
            assert seen == expected
            assert pair.store.contexts(owner=owner) == expected
        assert pair.store.contexts(after="fork a", limit=1)[0].id == "fork b"
        for context in (*TWINS, "fork a", "fork b", "nobody"):
            assert list(pair.store.forks(context)) == list(pair.known.forks(context)), context

    @pytest.mark.parametrize("name", ["id", "owner", "settings", "state", "compaction", "op_id", "at", "tools"])
    def test_text_with_half_a_surrogate_pair_is_refused(self, storage: Storage, name: str) -> None:
        """A text that has no UTF-8 form is refused by its name, and nothing is kept."""
        half, good = "a\ud83d", appended(current(storage, "a"), b"1")
        named: dict[str, Any] = {name: half}
        changes: dict[str, dict[str, Any]] = {
            "compaction": {"compactions": compacted(good, half).compactions},
            "op_id": {"ops": (OpRow(half, b"", 0, ()),)},
            "at": {"entries": (entry(0, b"1", at=half),)},
            "tools": {"calls": called(good, half).calls},
        }

        with pytest.raises(InvalidSetting) as caught:
            storage.commit(good._replace(**changes.get(name) or {"record": good.record._replace(**named)}))

        assert caught.value.name == name
        assert storage.contexts() == []

    def test_reading_an_id_with_half_a_surrogate_pair_is_refused(self, storage: Storage) -> None:
        """No such context can be, and asking for one is an error of the caller."""
        reads = (storage.load, storage.revision, storage.pages, storage.entries, storage.compactions, storage.ops)
        some = (partial(storage.pages_at, indexes=[1]), partial(storage.entries_at, seqs=[0]))
        for read in (*reads, *some, storage.calls, storage.tickets, storage.forks):
            with pytest.raises(InvalidSetting):
                read("a\ud83d")

    def test_entries_containing_are_found_by_bytes(self, storage: Storage) -> None:
        """Only bodies with these very bytes are given: no wildcards, no case folding, no end at a NUL."""
        append(storage, "a", b"needle", b"NEEDLE", b"a%b", b"aXb", b"x\x00needle", b"\xff", b"")
        append(storage, "b", b"needle")

        for containing, bounds, seqs in (
            (b"needle", (), [0, 4]),
            (b"needle", (1,), [4]),
            (b"needle", (0, 4), [0]),
            (b"a%b", (), [2]),
            (b"\xff", (), [5]),
            (b"\x00", (), [4]),
            (b"", (), [0, 1, 2, 3, 4, 5, 6]),
            (b"nowhere", (), []),
        ):
            assert [row.seq for row in storage.entries("a", *bounds, containing=containing)] == seqs

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

    def test_long_history_is_read_whole(self, pair: PairedStore, reread: Reread) -> None:
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
        for name in pair.contexts:
            rows = list(pair.known.entries(name))
            for first, end in [*ranges, (1, 599), (599, 600), (590, 900), (600, None)]:
                for containing in searches:
                    expected = [row for row in rows[first:end] if containing is None or containing in row.body]
                    assert list(again.entries(name, first, end, containing=containing)) == expected, (name, first, end)
        pair.append("a", b"later")
        pair.check()

    def test_compactions_come_back(self, pair: PairedStore, reread: Reread) -> None:
        """Dozens of them come back, newest first and at any head: of a context, of its fork, of one with a past."""
        texts = [" ".join(f"#{line}: a line \u00fc" for line in range(number // 3)) for number in range(40)]
        for text in texts:
            pair.append("a", b"1", compaction=text)
            pair.append("a", b"2")
        pair.fork("a", "b", 10, compaction=texts[9])
        pair.append("b", b"3", compaction=texts[10])
        past = tuple(CompactionRow(2 * number + 1, 0, number, text) for number, text in enumerate(texts))
        moved = appended(pair.following("c")._replace(revision=90), b"4")
        pair.commit(compacted(moved._replace(compactions=past, arrives=True), texts[-1]))

        again = reread()
        pair.check(again)
        for context in "abc":
            rows = list(pair.known.compactions(context))
            for head in range(0, 84, 3):
                assert list(again.compactions(context, head=head)) == [row for row in rows if row.head <= head]
        erasure = pair.erasure(("a", 20))
        pair.erase(erasure._replace(transitions=tuple(compacted(each, "#1") for each in erasure.transitions)))
        for context in "abc":
            pair.append(context, b"later", compaction="#1 #2")
        pair.check()

    def test_calls_of_the_model_come_back(self, pair: PairedStore, reread: Reread) -> None:
        """Hundreds of them come back, each list of tools with its calls; a fork begins with none."""
        for number in range(300):
            tools = None if number % 3 == 0 else f'[{{"name":"tool {number // 100}"}}]'
            pair.commit(called(appended(pair.following("a"), b"x"), tools))
        pair.fork("a", "b", 5)

        pair.check(reread())
        assert [len(list(pair.store.calls(name))) for name in ("a", "b", "nobody")] == [300, 0, 0]
        pair.erase(pair.erasure(contexts=("b", "a")))
        pair.append("a", b"again")
        pair.check()

    def test_entries_can_come_and_go_while_reading(self, pair: PairedStore) -> None:
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
        record = current(storage, "a")
        pages = tuple(PageRow(index, index - 1, index, index - 1) for index in range(1, 301))
        after = record._replace(head=300, next_page=301, turn=300, open_page=300)
        storage.commit(Transition(0, after, tuple(entry(seq, b"x") for seq in range(300)), pages))

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
        assert [page.index for page in storage.pages_at("a", range(300, -9, -1))] == list(range(1, 301))
        assert [row.seq for row in storage.entries_at("a", range(400, -9, -1))] == list(range(330))
        assert not any((storage.pages_at("a", ()), storage.entries_at("a", ()), storage.pages_at("b", (1,))))

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
        calls += [lambda: list(storage.calls("a"))]
        for call in calls:
            with pytest.raises(HandlePoisoned):
                call()

    def test_ticket_is_replaced_by_one_thread(self, storage: Storage) -> None:
        """Of eight threads that replace one ticket, one does; those that add theirs are all behind it."""
        first = Ticket("a", "first", "ü", "", 0.5, 1.0)
        assert storage.replace_ticket(None, first)
        theirs = [first._replace(token=f"their {i}") for i in range(8)]
        added = [first._replace(token=f"added {i}") for i in range(8)]

        with ThreadPoolExecutor(8) as pool:
            replaced = list(pool.map(lambda each: storage.replace_ticket(first, each), theirs))
            assert all(pool.map(lambda each: storage.replace_ticket(None, each), added))

        assert replaced.count(True) == 1
        ahead, *behind = storage.tickets("a")
        assert ahead == theirs[replaced.index(True)]
        assert sorted(behind) == added

    def test_any_history_reads_as_a_known_store_does(
        self, storage: Storage, known: Callable[[], Storage], opening: Reread | None
    ) -> None:
        """Whatever is committed, however often a durable store is closed and opened, it reads like a known one."""

        class Machine(StorageMachine):
            store = storage
            make_known = staticmethod(known)
            reopen = None if opening is None else staticmethod(opening)

        try:
            run_state_machine_as_test(Machine, settings=_STEPS)
        finally:
            Machine.store.close()
