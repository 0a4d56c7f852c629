"""SQLiteStorage keeps the promises of a store on disk, and fails loudly."""

import copy
import os
import pickle
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from memci.errors import (
    CorruptRecord,
    HandlePoisoned,
    InvalidSetting,
    MemciError,
    SchemaTooNew,
    StorageBusy,
    StorageError,
    StorageFull,
    StorageReadOnly,
    StorageUnavailable,
)
from memci.storage import SQLiteStorage
from memci.storage.protocol import OpRow, Place, Transition
from memci.storage.sqlite_file import check_library
from memci.testing.storage import DurableStorageConformance
from memci.testing.storage_rows import append, appended, current


class TestSQLiteStorage(DurableStorageConformance):
    @pytest.fixture
    def reopen(self, path: Path) -> Callable[[], SQLiteStorage]:
        return lambda: SQLiteStorage(path, durability="fast")

    @pytest.fixture
    def storage(self, reopen: Callable[[], SQLiteStorage]) -> Iterator[SQLiteStorage]:
        storage = reopen()
        yield storage
        storage.close()

    @pytest.fixture
    def corrupt(self, path: Path) -> Callable[[str, int], None]:
        def change(context: str, seq: int) -> None:
            execute(
                path,
                "UPDATE entry SET body = CAST('x' || substr(body, 2) AS BLOB) WHERE id = ?",
                key(path, context, seq),
            )

        return change

    @pytest.fixture
    def remove(self, path: Path) -> Callable[[str, int], None]:
        def delete(context: str, seq: int) -> None:
            execute(path, "DELETE FROM entry WHERE id = ?", key(path, context, seq))

        return delete


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.db"


@pytest.fixture
def storage(path: Path) -> Iterator[SQLiteStorage]:
    storage = SQLiteStorage(path, durability="fast", busy_timeout_seconds=0)
    yield storage
    storage.close()


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """A folder, and a user who owns it and is not root."""
    root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as name:
        if root:
            os.chown(name, 65534, 65534)
            os.seteuid(65534)
        try:
            yield Path(name)
        finally:
            if root:
                os.seteuid(0)


def execute(path: Path, statement: str, *bindings: int | str) -> list[tuple[object, ...]]:
    connection = apsw.Connection(str(path))
    try:
        return connection.execute(statement, bindings).fetchall()
    finally:
        connection.close()


def key(path: Path, context: str, seq: int) -> int:
    [[nr]] = execute(path, "SELECT nr FROM context WHERE id = ?", context)
    assert isinstance(nr, int)
    return nr << 40 | seq


def test_pragmas_are_those_of_the_durability(path: Path) -> None:
    """Full means synced at each commit; both use a WAL and read defensively."""
    for durability, synchronous in (("full", 2), ("fast", 1)):
        storage = SQLiteStorage(path, durability=durability)  # type: ignore[arg-type]
        names = ("journal_mode", "synchronous", "foreign_keys", "secure_delete", "trusted_schema", "cell_size_check")

        values = [storage._connection.pragma(name) for name in names]

        assert values == ["wal", synchronous, 1, 1, 0, 1]
        storage.close()
    assert execute(path, "PRAGMA application_id") == [(int.from_bytes(b"memc", "big"),)]


def test_active_pages_are_read_from_their_index(storage: SQLiteStorage) -> None:
    """A large archive costs nothing when the pages in the window are read."""
    for _ in range(30):
        transition = appended(current(storage, "a"), b"x")
        storage.commit(transition._replace(pages=(transition.pages[0]._replace(place=Place.ARCHIVED),)))
    append(storage, "a", b"x")
    steps = 0

    def count() -> bool:
        nonlocal steps
        steps += 1
        return False

    storage._connection.set_progress_handler(count, 1)

    active = list(storage.pages("a", place=Place.ACTIVE))

    assert [page.index for page in active] == [31]
    assert steps < 60


@pytest.mark.parametrize(
    ("durability", "timeout", "name"), [("safe", 5.0, "durability"), ("full", -1.0, "busy_timeout_seconds")]
)
def test_setting_that_makes_no_sense_is_refused(path: Path, durability: str, timeout: float, name: str) -> None:
    """An unknown durability or a negative timeout is refused by its name, and no file is made."""
    with pytest.raises(InvalidSetting) as caught:
        SQLiteStorage(path, durability=durability, busy_timeout_seconds=timeout)  # type: ignore[arg-type]

    assert caught.value.name == name
    assert not path.exists()


def test_name_that_no_file_can_have_is_refused(tmp_path: Path) -> None:
    """A NUL in a path is the caller's mistake."""
    with pytest.raises(InvalidSetting):
        SQLiteStorage(str(tmp_path / "a\x00b"))


def test_missing_folder_is_named(tmp_path: Path) -> None:
    """A missing folder is an error that names it; it is not made."""
    with pytest.raises(StorageUnavailable, match="missing"):
        SQLiteStorage(tmp_path / "missing" / "agent.db")

    assert not (tmp_path / "missing").exists()


def test_folder_is_no_file(tmp_path: Path) -> None:
    """A path that is a folder is refused with that reason."""
    with pytest.raises(StorageUnavailable, match="is a folder"):
        SQLiteStorage(tmp_path)


def test_file_of_a_later_version_is_untouched(path: Path) -> None:
    """A later schema is refused, and no byte of the file changes."""
    SQLiteStorage(path).close()
    execute(path, "PRAGMA user_version = 3")
    before = path.read_bytes()

    with pytest.raises(SchemaTooNew):
        SQLiteStorage(path)

    assert path.read_bytes() == before


def test_sqlite_file_of_another_program_is_untouched(path: Path) -> None:
    """A SQLite file that is not ours is refused, and no byte of it changes."""
    execute(path, "CREATE TABLE theirs (x)")
    before = path.read_bytes()

    with pytest.raises(StorageUnavailable, match="another program"):
        SQLiteStorage(path)

    assert path.read_bytes() == before


def test_other_file_is_untouched(path: Path) -> None:
    """A file that is no SQLite file is refused, and no byte of it changes."""
    path.write_bytes(b"not a database, but long enough to be one" * 100)
    before = path.read_bytes()

    with pytest.raises(StorageUnavailable, match="not a SQLite file"):
        SQLiteStorage(path)

    assert path.read_bytes() == before


def test_empty_file_becomes_a_store(path: Path) -> None:
    """An empty file, as a tempfile is, can be taken."""
    path.touch()
    storage = SQLiteStorage(path)

    append(storage, "a", b"1")

    assert [row.body for row in storage.entries("a")] == [b"1"]
    storage.close()


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


def test_read_only_file_can_be_read(unprivileged: Path) -> None:
    """A file without the right to write is read, and a commit is StorageReadOnly."""
    path = unprivileged / "agent.db"
    storage = SQLiteStorage(path)
    append(storage, "a", b"1")
    storage.close()
    path.chmod(0o444)

    storage = SQLiteStorage(path)

    assert [row.body for row in storage.entries("a")] == [b"1"]
    with pytest.raises(StorageReadOnly):
        append(storage, "a", b"2")
    storage.close()


def test_read_only_folder_can_be_read(unprivileged: Path) -> None:
    """In a folder without the right to write a store is read, a commit is StorageReadOnly, and none is made."""
    path = unprivileged / "agent.db"
    storage = SQLiteStorage(path)
    append(storage, "a", b"1")
    storage.close()
    unprivileged.chmod(0o555)

    storage = SQLiteStorage(path)

    assert [row.body for row in storage.entries("a")] == [b"1"]
    with pytest.raises(StorageReadOnly):
        append(storage, "a", b"2")
    with pytest.raises(StorageReadOnly):
        SQLiteStorage(unprivileged / "new.db")
    storage.close()
    unprivileged.chmod(0o755)


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


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entry SET tokens = 8",
        "UPDATE entry SET at = 'x'",
        "UPDATE entry SET codec = 2",
        "UPDATE entry SET digest = zeroblob(16)",
        "UPDATE page SET first_seq = 1",
        "UPDATE context SET state = '[]'",
        "UPDATE edition SET text = x'78'",
        "UPDATE op SET first_seq = 5",
        "UPDATE op SET entries = x'5b'",
    ],
)
def test_changed_column_is_corrupt(storage: SQLiteStorage, path: Path, statement: str) -> None:
    """No column can change unnoticed, not only the bodies."""
    transition = appended(current(storage, "a"), b"1")
    op = with_op(transition)
    storage.commit(op)
    execute(path, statement)

    with pytest.raises(CorruptRecord):
        storage.load("a")
        list(storage.entries("a"))
        list(storage.pages("a"))
        storage.commit(op)


def with_op(transition: Transition) -> Transition:
    return transition._replace(op=OpRow("op", b"d", 0, ((1, 0),)), edition="[]")


def test_flipped_bytes_of_entries_are_told_or_harmless(tmp_path: Path) -> None:
    """Any byte among the entries may change: what is read is what was written, or an error of ours."""
    path = tmp_path / "whole.db"
    storage = SQLiteStorage(path)
    for i in range(3):
        storage.commit(with_op(appended(current(storage, f"c{i}"), b'{"content":"%d"}' % i, b"x" * 50)))
    before = read(storage)
    storage.close()
    whole = path.read_bytes()

    [[root]] = execute(path, "SELECT rootpage FROM sqlite_schema WHERE name = 'entry'")
    assert isinstance(root, int)
    for place in range((root - 1) * 4096, root * 4096, 13):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << place % 8
        damaged = tmp_path / f"{place}.db"
        damaged.write_bytes(flipped)
        try:
            storage = SQLiteStorage(damaged)
        except StorageError:
            continue
        try:
            after = read(storage)
        except MemciError:
            continue
        finally:
            storage.close()
        assert after == before, f"byte {place}"


def read(storage: SQLiteStorage) -> list[object]:
    names = ("c0", "c1", "c2")
    return [(storage.load(n), list(storage.entries(n)), list(storage.pages(n, place=Place.ACTIVE))) for n in names]


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
    with pytest.raises(TypeError, match="open its path again"):
        take(storage)


@pytest.mark.parametrize("version", ["3.40.1", "3.44.5", "3.45.0", "3.50.6", "3.51.0", "3.51.2"])
def test_sqlite_that_loses_commits_is_refused(version: str) -> None:
    """A SQLite with the WAL-reset bug is not used."""
    with pytest.raises(StorageUnavailable, match=version):
        check_library(version)


@pytest.mark.parametrize("version", ["3.44.6", "3.50.7", "3.51.3", "3.54.1", "4.0"])
def test_sqlite_without_that_bug_is_taken(version: str) -> None:
    """A SQLite with the fix is used."""
    check_library(version)


def test_processes_may_make_the_file_at_once(path: Path) -> None:
    """Four processes that open a new file and write at once all succeed."""
    program = (
        "import sys; from memci.storage import SQLiteStorage; from memci.testing.storage_rows import append\n"
        "storage = SQLiteStorage(sys.argv[1], busy_timeout_seconds=20)\n"
        "for i in range(5): append(storage, sys.argv[2], b'%d' % i)"
    )
    children = [subprocess.Popen([sys.executable, "-c", program, path, f"p{i}"]) for i in range(4)]

    assert [child.wait() for child in children] == [0] * 4
    storage = SQLiteStorage(path)
    assert [record.head for record in storage.contexts()] == [5] * 4
    storage.close()


def test_file_is_sound_for_any_sqlite(storage: SQLiteStorage, path: Path) -> None:
    """The file passes SQLite's own check."""
    for _ in range(50):
        append(storage, "a", b"x" * 900)

    assert execute(path, "PRAGMA integrity_check") == [("ok",)]
    assert sqlite3.sqlite_version_info >= (3, 37)  # STRICT tables: a `sqlite3` shell of 2021 or later can read it
