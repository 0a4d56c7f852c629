"""A folder keeps the promises of every store, says what it is, and refuses what is not ours."""

import json
import os
import pickle
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
    StorageReadOnly,
    StorageUnavailable,
)
from memci.storage import FilesystemStorage
from memci.storage.locks import hold
from memci.storage.protocol import Erasure
from memci.testing.storage import DurableStorageConformance
from memci.testing.storage.rows import append, appended, bodies_of, current, everything
from tests.storage.plain_store import PlainStore
from tests.storage.statements import committed_at_once


class TestFilesystemStorage(DurableStorageConformance):
    @pytest.fixture
    def known(self) -> type[PlainStore]:
        return PlainStore

    @pytest.fixture
    def reopen(self, path: Path) -> Callable[[], FilesystemStorage]:
        return lambda: FilesystemStorage(path, durability="fast")

    @pytest.fixture
    def storage(self, reopen: Callable[[], FilesystemStorage]) -> Iterator[FilesystemStorage]:
        storage = reopen()
        yield storage
        storage.close()

    @pytest.fixture
    def files(self, path: Path) -> Callable[[], list[Path]]:
        return lambda: [each for each in path.rglob("*") if each.is_file()]

    @pytest.fixture
    def corrupt(self, path: Path) -> Callable[[str, int], None]:
        change = "UPDATE entry SET body = CAST('x' || substr(body, 2) AS BLOB) WHERE key = ?"
        return lambda context, seq: execute(path, change, context, seq)

    @pytest.fixture
    def remove(self, path: Path) -> Callable[[str, int], None]:
        return lambda context, seq: execute(path, "DELETE FROM entry WHERE key = ?", context, seq)


def execute(path: Path, statement: str, context: str, seq: int) -> None:
    connection = apsw.Connection(str(path / "store.db"))
    [[nr]] = connection.execute("SELECT number FROM context WHERE id = ?", (context,))
    connection.execute(statement, (nr << 40 | seq,))
    connection.close()


def contents(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_folder_tells_what_it_is_to_its_owner_alone(path: Path) -> None:
    """A new folder says that it is ours; whatever the umask, no one else may read a file or enter a folder."""
    before = os.umask(0)
    try:
        storage = FilesystemStorage(path)
        append(storage, "a", b'"1"')
        hold(storage, "a", 1)
    finally:
        os.umask(before)

    assert json.loads((path / "memci.json").read_text())["format"] == "memci folder"
    modes = {(each.is_dir(), each.stat().st_mode & 0o777) for each in [path, *path.rglob("*")]}
    assert modes == {(True, 0o700), (False, 0o600)}
    storage.close()


@pytest.mark.parametrize(
    ("durability", "timeout", "name"), [("safe", 5.0, "durability"), ("full", -1.0, "busy_timeout_seconds")]
)
def test_setting_that_makes_no_sense_is_refused(path: Path, durability: str, timeout: float, name: str) -> None:
    """An unknown durability or a negative timeout is refused by its name, and no folder is made."""
    with pytest.raises(InvalidSetting) as caught:
        FilesystemStorage(path, durability=durability, busy_timeout_seconds=timeout)  # type: ignore[arg-type]

    assert caught.value.name == name
    assert not path.exists()


def test_place_that_can_be_no_folder_is_refused(tmp_path: Path, path: Path) -> None:
    """A NUL in a path is the caller's mistake; a missing folder above is named and not made; a file is no folder."""
    path.touch()

    with pytest.raises(InvalidSetting):
        FilesystemStorage(str(tmp_path / "a\x00b"))
    with pytest.raises(StorageUnavailable, match="missing"):
        FilesystemStorage(tmp_path / "missing" / "agent")
    with pytest.raises(StorageUnavailable, match="no folder"):
        FilesystemStorage(path)

    assert [each.name for each in tmp_path.iterdir()] == ["agent"]


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("theirs.txt", "theirs", StorageUnavailable),
        ("memci.json", '{"format":"memci folder","schema":2}', SchemaTooNew),
        ("memci.json", '{"format":"theirs","schema":1}', StorageUnavailable),
        ("memci.json", '{"format":"memci folder","schema":"1"}', StorageUnavailable),
        ("memci.json", "[" * 100_000, StorageUnavailable),
        ("memci.json", "", StorageUnavailable),
        ("memci.json", "3", StorageUnavailable),
        ("memci.json", '{"format":"memci folder","schema":1}', CorruptRecord),
    ],
)
def test_folder_that_is_not_ours_to_open_is_untouched(
    path: Path, name: str, content: str, error: type[MemciError]
) -> None:
    """Other content, a later schema, a damaged mark, or a mark without a database is refused; no byte changes."""
    path.mkdir()
    (path / name).write_text(content)

    with pytest.raises(error):
        FilesystemStorage(path)

    assert contents(path) == {name: content.encode()}


def test_folder_with_git_becomes_a_store(path: Path) -> None:
    """Who has made a repository of the folder before can still take it."""
    (path / ".git").mkdir(parents=True)

    FilesystemStorage(path).close()

    assert (path / "memci.json").exists()


def test_folder_whose_making_was_cut_short_is_made(path: Path) -> None:
    """A database without a mark is that of a process that died just then."""
    FilesystemStorage(path).close()
    (path / "memci.json").rename(path / ".memci.json.tmp")

    storage = FilesystemStorage(path)

    append(storage, "a", b"1")
    storage.close()
    assert not (path / ".memci.json.tmp").exists()


def test_folder_that_was_moved_poisons_the_handle(storage: FilesystemStorage, path: Path) -> None:
    """A folder that was moved or replaced under us takes no more writes."""
    transition = append(storage, "a", b"1")
    path.rename(path.with_name("elsewhere"))
    path.mkdir()

    with pytest.raises(HandlePoisoned, match="moved"):
        storage.commit(transition)

    assert list(path.iterdir()) == []


def test_pickling_is_refused(storage: FilesystemStorage) -> None:
    """A handle can't be pickled; the error says what to do."""
    with pytest.raises(TypeError, match="FilesystemStorage can't be pickled: open"):
        pickle.dumps(storage)


def test_read_only_handle_writes_nothing(storage: FilesystemStorage, path: Path) -> None:
    """A handle for reading reads, sees what others commit, and refuses to change anything."""
    append(storage, "a", b'"1"')
    reader = FilesystemStorage(path, read_only=True)
    transition = appended(current(storage, "a"), b'"2"')
    before = contents(path)

    assert everything(reader, "a") == everything(storage, "a")
    for call in (lambda: reader.commit(transition), lambda: reader.erase(Erasure()), lambda: hold(reader, "a", 0)):
        with pytest.raises(StorageReadOnly):
            call()
    assert {name: each for name, each in contents(path).items() if "-shm" not in name} == {
        name: each for name, each in before.items() if "-shm" not in name
    }
    storage.commit(transition)
    assert everything(reader, "a") == everything(storage, "a")
    reader.close()


def test_read_only_makes_no_store(path: Path) -> None:
    """Where there is no store, reading only is an error, and nothing is made."""
    with pytest.raises(StorageUnavailable, match="no folder"):
        FilesystemStorage(path, read_only=True)
    assert not path.exists()
    path.mkdir()

    with pytest.raises(StorageUnavailable, match="no store"):
        FilesystemStorage(path, read_only=True)

    assert contents(path) == {}


@pytest.mark.parametrize("read_only", [True, False])
def test_folder_without_the_right_to_write_can_be_read(unprivileged: Path, read_only: bool) -> None:
    """Where nothing may be written a store is read, and a commit is refused."""
    path = unprivileged / "agent"
    storage = FilesystemStorage(path)
    append(storage, "a", b'"1"')
    storage.close()
    places = [*path.rglob("*"), path]
    for each in places:
        each.chmod(0o555 if each.is_dir() else 0o444)

    storage = FilesystemStorage(path, read_only=read_only)

    assert bodies_of(storage, "a") == [b'"1"']
    with pytest.raises(StorageReadOnly):
        append(storage, "a", b'"2"')
    storage.close()
    for each in places[::-1]:
        each.chmod(0o755)


def test_processes_may_make_the_folder_at_once(path: Path) -> None:
    """Processes that open a new folder and write at once all succeed."""
    assert committed_at_once(FilesystemStorage, path, 3) == [0] * 4
    storage = FilesystemStorage(path)
    assert [record.head for record in storage.contexts()] == [3] * 4
    assert len(list((path / "contexts").glob("*.jsonl"))) == 4
    storage.close()
