"""SQLiteStorage opens files of its own alone, and says why it does not open others."""

import os
from pathlib import Path

import pytest

from memci import Context
from memci.cli.doctor import _file
from memci.errors import InvalidSetting, SchemaTooNew, StorageReadOnly, StorageUnavailable
from memci.history.backup import backup
from memci.storage import FilesystemStorage, SQLiteStorage
from memci.storage.sqlite.connection import check_library, network_file_system
from memci.storage.sqlite.schema import SCHEMA_VERSION
from memci.testing.storage.rows import append
from tests.storage.statements import execute


def test_pragmas_are_those_of_the_durability(path: Path) -> None:
    """Full means synced at each commit; both use a WAL and read defensively."""
    for durability, synchronous in (("full", 2), ("fast", 1)):
        storage = SQLiteStorage(path, durability=durability)  # type: ignore[arg-type]
        names = ("journal_mode", "synchronous", "foreign_keys", "secure_delete", "trusted_schema", "cell_size_check")

        values = [storage._connection.pragma(name) for name in names]

        assert values == ["wal", synchronous, 1, 1, 0, 1]
        storage.close()
    assert execute(path, "PRAGMA application_id") == [(int.from_bytes(b"memc", "big"),)]


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
    execute(path, f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
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


def test_read_only_folder_is_looked_at_and_backed_up_but_takes_no_backup(unprivileged: Path) -> None:
    """The doctor finds its schema, a copy is made elsewhere, and one in the folder is StorageReadOnly."""
    kept, elsewhere = unprivileged / "kept", unprivileged / "elsewhere"
    kept.mkdir()
    elsewhere.mkdir()
    with Context.open(kept / "agent.db", "alice", window=2_000) as context:
        context.append_turn("Hello.")
    kept.chmod(0o555)

    found = {each.name: each.state for each in _file(str(kept / "agent.db"))}
    with pytest.raises(StorageReadOnly, match=r"copy\.db"):
        backup(kept / "agent.db", kept / "copy.db")

    assert found["schema"] == "ok"
    assert backup(kept / "agent.db", elsewhere / "copy.db").messages == 1
    kept.chmod(0o755)


@pytest.mark.parametrize("version", ["3.40.1", "3.44.6", "3.50.7", "3.51.0", "3.51.2"])
def test_sqlite_that_loses_commits_is_refused(version: str) -> None:
    """A SQLite with the WAL-reset bug is not used."""
    with pytest.raises(StorageUnavailable, match=version):
        check_library(version)


@pytest.mark.parametrize("version", ["3.51.3", "3.54.1", "4.0"])
def test_sqlite_without_that_bug_is_taken(version: str) -> None:
    """A SQLite with the fix is used."""
    check_library(version)


def test_network_file_systems_are_known(tmp_path: Path) -> None:
    """The innermost mount decides; a name with a space is told as the kernel tells it."""
    mounts = (
        "/dev/sda1 / ext4 rw 0 0\n"
        "server:/home /home nfs4 rw 0 0\n"
        "/dev/sdb1 /home/local ext4 rw 0 0\n"
        "//server/share /mnt/our\\040share cifs rw 0 0\n"
    )
    places = ("/var/agent.db", "/home/a/agent.db", "/home/local/agent.db", "/mnt/our share/agent.db", "/homes/agent.db")

    assert [network_file_system(place, mounts) for place in places] == [None, "nfs4", None, "cifs", None]
    assert network_file_system("agent\0.db", mounts) is None


def test_files_are_for_their_owner_only(path: Path) -> None:
    """Messages are private: no file of a store, its log or its memory can be read by others, whatever the umask."""
    before = os.umask(0)
    try:
        with Context.open(path, "alice", window=8_000) as context:
            context.append_turn("Book me a flight.", {"role": "assistant", "content": "When?"})
            context.flush()
            modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
        with Context.open(FilesystemStorage(path.parent / "folder"), "alice", window=8_000) as context:
            for _ in range(2):
                context.append_turn("Book me a flight.", {"role": "assistant", "content": "When?"})
            context.flush()
            files = [file for file in (path.parent / "folder").rglob("*") if file.is_file()]
            modes |= {file.name: file.stat().st_mode & 0o777 for file in files}
    finally:
        os.umask(before)

    assert {"agent.db", "agent.db-wal", "memory.db", "memory.db-wal"} <= modes.keys()
    assert {name: mode for name, mode in modes.items() if mode != 0o600} == {}


def test_link_to_nothing_makes_no_file(tmp_path: Path) -> None:
    """A link whose target is gone is refused: a new store in its place would hide that the old one is missing."""
    (tmp_path / "agent.db").symlink_to(tmp_path / "gone.db")

    with pytest.raises(StorageUnavailable, match=r"gone\.db"):
        SQLiteStorage(tmp_path / "agent.db")

    assert not (tmp_path / "gone.db").exists()


def test_name_of_sqlite_for_ram_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`:memory:` is refused with the store to take; no file of that name is made."""
    monkeypatch.chdir(tmp_path)

    with pytest.raises(InvalidSetting, match="EphemeralStorage"):
        SQLiteStorage(":memory:")

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("closed", ["agent.db", "agent.db-wal"])
def test_file_that_cannot_be_read_is_named(unprivileged: Path, closed: str) -> None:
    """It may be another user's, or its log: that is no damage, and nothing for another process to end."""
    path = unprivileged / "agent.db"
    storage = SQLiteStorage(path)
    append(storage, "a", b"1")
    (unprivileged / closed).chmod(0)

    with pytest.raises(StorageUnavailable, match=rf"{closed}' can't be read .Permission denied.: check"):
        SQLiteStorage(path, read_only=True)
    schema = next(each for each in _file(str(path)) if each.name == "schema")

    assert schema.text.endswith(f"{closed}' can't be read (Permission denied)")
    storage.close()
