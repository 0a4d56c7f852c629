"""SQLiteStorage keeps the promises of a store on disk, and its handle fails loudly."""

import copy
import os
import pickle
import zlib
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import apsw
import pytest

from memci.errors import CorruptRecord, HandlePoisoned, LimitExceeded, StorageBusy, StorageFull, StorageUnavailable
from memci.rows import PageState
from memci.storage import SQLiteStorage
from memci.testing.storage import DurableStorageConformance
from memci.testing.storage.durable import found
from memci.testing.storage.pair import PairedStore
from memci.testing.storage.rows import append, appended, compacted, current
from tests.storage.plain_store import PlainStore
from tests.storage.statements import committed_at_once, execute


class TestSQLiteStorage(DurableStorageConformance):
    @pytest.fixture
    def known(self) -> type[PlainStore]:
        return PlainStore

    @pytest.fixture
    def reopen(self, path: Path) -> Callable[[], SQLiteStorage]:
        return lambda: SQLiteStorage(path, durability="fast")

    @pytest.fixture
    def storage(self, reopen: Callable[[], SQLiteStorage]) -> Iterator[SQLiteStorage]:
        storage = reopen()
        yield storage
        storage.close()

    @pytest.fixture
    def files(self, path: Path) -> Callable[[], list[Path]]:
        return lambda: [each for each in path.parent.rglob("*") if each.is_file()]

    @pytest.fixture
    def corrupt(self, path: Path) -> Callable[[str, int], None]:
        def change(context: str, seq: int) -> None:
            execute(
                path,
                "UPDATE entry SET body = CAST('x' || substr(body, 2) AS BLOB) WHERE key = ?",
                key(path, context, seq),
            )

        return change

    @pytest.fixture
    def remove(self, path: Path) -> Callable[[str, int], None]:
        def delete(context: str, seq: int) -> None:
            execute(path, "DELETE FROM entry WHERE key = ?", key(path, context, seq))

        return delete

    def test_no_byte_of_a_chain_of_compactions_is_left(self, storage: SQLiteStorage, path: Path) -> None:
        """When an entry is erased, no piece of a compaction before is left; no later one needs it, and all are read."""
        pair = PairedStore(storage)
        for i in range(20):
            texts = " ".join(sha256(b"%d" % number).hexdigest() for number in range(i, i + 4))
            pair.append("a", b"%d" % i, compaction=texts)
        packed = [bytes(text) for (text,) in execute(path, "SELECT text FROM compaction")]
        needles = {"a compaction": {row[at : at + 16] for row in packed for at in range(8, len(row) - 16)}}
        assert sum(len(row) < 120 for row in packed) == 17, "most are compressed against the one before"
        assert found(path.parent.iterdir(), needles)

        erasure = pair.erasure(("a", 3))
        pair.erase(erasure._replace(transitions=tuple(compacted(each, texts) for each in erasure.transitions)))
        pair.append("a", b"later", compaction=f"{texts} later")

        assert sum(len(row) < 120 for (row,) in execute(path, "SELECT text FROM compaction")) == 1
        pair.check()
        last = zlib.compress(texts.encode())
        needles["a compaction"] = {each for each in needles["a compaction"] if each not in last}
        assert found(path.parent.iterdir(), needles) == []


class TestSQLiteStorageWithoutSharedMemory(TestSQLiteStorage):
    """The same promises by the other journal."""

    @pytest.fixture
    def reopen(self, path: Path) -> Callable[[], SQLiteStorage]:
        return lambda: SQLiteStorage(path, durability="fast", journal="truncate")


def key(path: Path, context: str, seq: int) -> int:
    [[nr]] = execute(path, "SELECT number FROM context WHERE id = ?", context)
    assert isinstance(nr, int)
    return nr << 40 | seq


def test_active_pages_are_read_from_their_index(storage: SQLiteStorage) -> None:
    """A large archive costs nothing when the pages in the window are read."""
    for _ in range(30):
        transition = appended(current(storage, "a"), b"x")
        storage.commit(transition._replace(pages=(transition.pages[0]._replace(state=PageState.ARCHIVED),)))
    append(storage, "a", b"x")
    steps = 0

    def count() -> bool:
        nonlocal steps
        steps += 1
        return False

    storage._connection.set_progress_handler(count, 1)

    active = list(storage.pages("a", state=PageState.ACTIVE))

    assert [page.index for page in active] == [31]
    assert steps < 60


def test_held_file_is_busy(storage: SQLiteStorage, path: Path) -> None:
    """While another connection writes, a write is StorageBusy, reading goes on, and later the write succeeds."""
    append(storage, "a", b"1")
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    transition = appended(current(storage, "a"), b"2")

    with pytest.raises(StorageBusy) as caught:
        storage.commit(transition)

    assert caught.value.retryable
    assert [row.body for row in storage.entries("a")] == [b"1"]
    other.execute("ROLLBACK")
    other.close()
    assert storage.commit(transition) is None


def test_full_disk_keeps_nothing_of_the_call(storage: SQLiteStorage) -> None:
    """Without room a commit is StorageFull and leaves no trace; with room again the same handle goes on."""
    append(storage, "a", b"1")
    pages = storage._connection.pragma("page_count")
    storage._connection.pragma("max_page_count", pages)
    transition = appended(current(storage, "a"), b"small", b"x" * 100_000)

    with pytest.raises(StorageFull):
        storage.commit(transition)

    assert [row.body for row in storage.entries("a")] == [b"1"]
    storage._connection.pragma("max_page_count", pages + 1_000)
    assert storage.commit(transition) is None
    assert len(list(storage.entries("a"))) == 3


def test_file_takes_as_many_contexts_as_it_has_numbers(storage: SQLiteStorage, path: Path) -> None:
    """A number is a part of the keys of rows: the last one is used, and no context is made beyond it."""
    append(storage, "a", b"1")
    execute(path, "UPDATE context SET number = ?", 2**23 - 2)

    append(storage, "b", b"2")
    with pytest.raises(LimitExceeded, match="contexts in one file"):
        append(storage, "c", b"3")

    assert [row.body for row in storage.entries("b")] == [b"2"]
    assert storage.load("c") is None


def test_shared_entries_of_no_parent_are_missing(storage: SQLiteStorage) -> None:
    """A record that shares entries, and does not say with whom, is refused where they are read."""
    change = appended(current(storage, "a"), b"1", b"2", b"3")
    storage.commit(change._replace(record=change.record._replace(base=2)))

    with pytest.raises(CorruptRecord, match="what it was forked from is missing"):
        list(storage.entries("a"))
    assert [row.body for row in storage.entries("a", 2)] == [b"3"]


def test_failing_disk_poisons_the_handle(storage: SQLiteStorage) -> None:
    """After an I/O error the handle refuses everything, since what it holds in memory can't be trusted."""
    append(storage, "a", b"1")

    def fail(connection: apsw.Connection) -> None:
        raise apsw.IOError("disk I/O error")

    with pytest.raises(StorageUnavailable):
        storage._run("a", 0, fail)

    with pytest.raises(HandlePoisoned, match="disk I/O error"):
        storage.load("a")


def test_interrupted_commit_leaves_no_trace(storage: SQLiteStorage) -> None:
    """What interrupts a commit halfway (here a body that is no bytes) rolls it back, and the handle goes on."""
    append(storage, "a", b"1")
    transition = appended(current(storage, "a"), b"2", b"3")
    broken = transition._replace(entries=(transition.entries[0], transition.entries[1]._replace(body=object())))  # type: ignore[arg-type]

    with pytest.raises(TypeError):
        storage.commit(broken)

    assert len(list(storage.entries("a"))) == 1
    assert storage.commit(transition) is None


@pytest.mark.parametrize("replacement", [None, b""])
def test_file_that_was_swapped_poisons_the_handle(
    storage: SQLiteStorage, path: Path, replacement: bytes | None
) -> None:
    """A file that was deleted or replaced under us takes no more writes."""
    append(storage, "a", b"1")
    transition = appended(current(storage, "a"), b"2")
    path.rename(path.with_suffix(".old"))
    if replacement is not None:
        path.write_bytes(replacement)

    with pytest.raises(HandlePoisoned, match="replaced"):
        storage.commit(transition)
    with pytest.raises(HandlePoisoned):
        storage.load("a")


def test_forked_handle_is_poisoned(storage: SQLiteStorage) -> None:
    """A child process can't use its parent's handle; the parent goes on."""
    append(storage, "a", b"1")
    child = os.fork()
    if child == 0:
        try:
            storage.load("a")
        except HandlePoisoned:
            storage.close()
            os._exit(0)
        os._exit(1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    append(storage, "a", b"2")
    assert len(list(storage.entries("a"))) == 2


@pytest.mark.parametrize("take", [pickle.dumps, copy.copy, copy.deepcopy])
def test_handle_is_not_copied(storage: SQLiteStorage, take: Callable[[object], object]) -> None:
    """A handle can be neither pickled nor copied."""
    with pytest.raises(TypeError, match="open it again"):
        take(storage)


def test_processes_may_make_the_file_at_once(path: Path) -> None:
    """Four processes that open a new file and write at once all succeed."""
    assert committed_at_once(SQLiteStorage, path, 5) == [0] * 4
    storage = SQLiteStorage(path)
    assert [record.head for record in storage.contexts()] == [5] * 4
    storage.close()


def test_settings_are_not_written_again_with_each_commit(storage: SQLiteStorage, path: Path) -> None:
    """The row of a context is written in place: a commit writes as much of the log, however long the settings are."""
    log, written = path.with_name(f"{path.name}-wal"), {}
    for context, settings in (("short", "{}"), ("long", "x" * 30_000)):
        storage.commit(appended(current(storage, context)._replace(settings=settings), b"1"))
        execute(path, "PRAGMA wal_checkpoint(TRUNCATE)")
        before = log.stat().st_size
        for _ in range(20):
            storage.commit(appended(current(storage, context), b"1"))
        written[context] = log.stat().st_size - before
    assert written["long"] < 1.5 * written["short"]


def test_handles_continue_the_chain_of_each_other(storage: SQLiteStorage, path: Path) -> None:
    """What a handle keeps of its last compaction is not taken for that of another handle."""
    other = SQLiteStorage(path, durability="fast")
    texts = [" ".join(f"line {line}" for line in range(number + 5)) for number in range(30)]
    for number, text in enumerate(texts):
        writer = storage if number % 3 else other
        writer.commit(compacted(appended(current(writer, "a"), b"1"), text))
    assert [row.text for row in other.compactions("a")] == texts[::-1]
    other.close()
