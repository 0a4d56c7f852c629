"""What a folder of plain files looks like, what it costs, and who may read it."""

import copy
import json
import os
import pickle
from pathlib import Path

import pytest

from memci.errors import HandlePoisoned, InvalidSetting, MemciError, SchemaTooNew, StorageReadOnly, StorageUnavailable
from memci.storage import FilesystemStorage
from memci.storage.filesystem.context_file import folder_name
from memci.storage.filesystem.erase import Staging, dumps
from memci.storage.locks import hold
from memci.storage.protocol import ContextRecord, Erasure, PageRow, PageState, Transition
from memci.testing.storage.rows import append, appended, current, entry

from .kit import contents, everything, fill


def test_folder_tells_what_it_is(path: Path) -> None:
    """A new folder is made, for its owner alone, and says that it is ours."""
    FilesystemStorage(path).close()

    assert json.loads((path / "memci.json").read_text())["format"] == "memci folder"
    assert path.stat().st_mode & 0o777 == 0o700


def test_files_are_for_their_owner_alone(storage: FilesystemStorage, path: Path, spill_at_once: None) -> None:
    """Whatever the umask, no one else may read a file or enter a folder."""
    before = os.umask(0)
    try:
        fill(storage, "a", 3)
        hold(storage, "a", 1)
    finally:
        os.umask(before)

    modes = {(each.is_dir(), each.stat().st_mode & 0o777) for each in path.rglob("*")}

    assert modes == {(True, 0o700), (False, 0o600)}


def test_every_line_is_json(storage: FilesystemStorage, path: Path, spill_at_once: None) -> None:
    """Each line of each file is JSON, and a message stands in its line as it is, on the page that it was said on."""
    fill(storage, "a", 4)

    files = [file for file in path.rglob("*.jsonl") if file.is_file()]
    found = [json.loads(line) for file in files for line in file.read_text().splitlines()]

    messages = {each["seq"]: (each["page"], each["json"]["content"][:3]) for each in found if "codec" in each}
    assert messages == {seq: (seq // 3 + 1, f"{seq // 3} {seq % 3}") for seq in range(12)}
    assert {file.parent.name for file in files} > {"messages", "pages", "views", "editions", "ops"}


@pytest.mark.parametrize(
    ("durability", "timeout", "name"), [("safe", 5.0, "durability"), ("full", -1.0, "busy_timeout_seconds")]
)
def test_setting_that_makes_no_sense_is_refused(path: Path, durability: str, timeout: float, name: str) -> None:
    """An unknown durability or a negative timeout is refused by its name, and no folder is made."""
    with pytest.raises(InvalidSetting) as caught:
        FilesystemStorage(path, durability=durability, busy_timeout_seconds=timeout)  # type: ignore[arg-type]

    assert caught.value.name == name
    assert not path.exists()


def test_name_that_no_folder_can_have_is_refused(tmp_path: Path) -> None:
    """A NUL in a path is the caller's mistake."""
    with pytest.raises(InvalidSetting):
        FilesystemStorage(str(tmp_path / "a\x00b"))


def test_missing_folder_above_is_named(tmp_path: Path) -> None:
    """The folder that it is in is not made, and named."""
    with pytest.raises(StorageUnavailable, match="missing"):
        FilesystemStorage(tmp_path / "missing" / "agent")

    assert not (tmp_path / "missing").exists()


def test_file_is_no_folder(path: Path) -> None:
    """A path that is a file is refused with that reason."""
    path.touch()

    with pytest.raises(StorageUnavailable, match="no folder"):
        FilesystemStorage(path)


def test_folder_of_another_program_is_untouched(path: Path) -> None:
    """A folder that holds other things is refused, and nothing is written into it."""
    path.mkdir()
    (path / "theirs.txt").write_text("theirs")

    with pytest.raises(StorageUnavailable, match=r"theirs\.txt"):
        FilesystemStorage(path)

    assert contents(path) == {"theirs.txt": b"theirs"}


def test_folder_with_git_becomes_a_store(path: Path) -> None:
    """Who has made a repository of the folder before can still take it."""
    (path / ".git").mkdir(parents=True)

    FilesystemStorage(path).close()

    assert (path / "memci.json").exists()


@pytest.mark.parametrize(
    ("mark", "error"),
    [
        ('{"format":"memci folder","schema":3}', SchemaTooNew),
        ('{"format":"theirs","schema":1}', StorageUnavailable),
        ('{"format":"memci folder","schema":"1"}', StorageUnavailable),
        ("[" * 100_000, StorageUnavailable),
        ("", StorageUnavailable),
        ("3", StorageUnavailable),
    ],
)
def test_folder_that_is_not_ours_to_open_is_untouched(path: Path, mark: str, error: type[MemciError]) -> None:
    """A later schema, another program's mark or a damaged one is refused, and no byte changes."""
    path.mkdir()
    (path / "memci.json").write_text(mark)

    with pytest.raises(error):
        FilesystemStorage(path)

    assert contents(path) == {"memci.json": mark.encode()}


def test_folder_that_was_moved_poisons_the_handle(storage: FilesystemStorage, path: Path) -> None:
    """A folder that was moved or replaced under us takes no more writes."""
    append(storage, "a", b"1")
    path.rename(path.with_name("elsewhere"))
    path.mkdir()

    with pytest.raises(HandlePoisoned, match="moved"):
        storage.load("a")
    with pytest.raises(HandlePoisoned):
        append(storage, "a", b"2")

    assert list(path.iterdir()) == []


def test_pickling_is_refused(storage: FilesystemStorage) -> None:
    """A handle can't be pickled or copied; the error says what to do."""
    for carry in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="open its folder"):
            carry(storage)


def test_growing_page_costs_what_is_new(storage: FilesystemStorage, path: Path) -> None:
    """A page of 1,000 entries grows by bounded writes: no file is large, and what is spilled is written once."""
    folder = path / "contexts" / folder_name("a")
    seen: dict[str, int] = {}
    body = b'"' + b"x" * 500 + b'"'

    for head in range(0, 1_000, 10):
        record = ContextRecord("a", "a", "{}", "{}", head + 10, 2, 0, 1, revision=head // 10 + 1)
        entries = tuple(entry(seq, body) for seq in range(head, head + 10))
        storage.commit(Transition(head, record, entries, (PageRow(1, 0, None, 0),)))
        for file in folder.glob("messages/*"):
            inode = file.stat().st_ino
            assert seen.setdefault(file.name, inode) == inode, "written twice"
            assert file.stat().st_size < 64 * 1_000
        assert (folder / "context.jsonl").stat().st_size < 64 * 1_000

    assert [row.body for row in storage.entries("a")] == [body] * 1_000
    assert len(seen) < 30


def test_active_pages_are_read_from_one_file(storage: FilesystemStorage, path: Path, spill_at_once: None) -> None:
    """The pages in the window are found in context.jsonl, wherever the others are."""
    fill(storage, "a", 5)
    for kind in ("pages", "messages", "views", "ops"):
        for file in (path / "contexts" / folder_name("a") / kind).iterdir():
            file.unlink()

    active = list(storage.pages("a", state=PageState.ACTIVE))

    assert [page.index for page in active] == [5]


def test_read_only_handle_writes_nothing(storage: FilesystemStorage, path: Path) -> None:
    """A handle for reading reads, sees what others commit, and refuses to change anything."""
    fill(storage, "a", 3)
    reader = FilesystemStorage(path, read_only=True)
    transition = appended(current(storage, "a"), b"1")
    before = contents(path)

    assert everything(reader, "a") == everything(storage, "a")
    for call in (lambda: reader.commit(transition), lambda: reader.erase(Erasure()), lambda: hold(reader, "a", 0)):
        with pytest.raises(StorageReadOnly):
            call()
    assert contents(path) == before
    storage.commit(transition)
    assert everything(reader, "a") == everything(storage, "a")
    reader.close()


def test_read_only_makes_no_store(path: Path) -> None:
    """Where there is no store, reading only is an error, and no folder is made."""
    with pytest.raises(StorageUnavailable, match="no folder"):
        FilesystemStorage(path, read_only=True)
    assert not path.exists()
    path.mkdir()

    with pytest.raises(StorageUnavailable, match="no store"):
        FilesystemStorage(path, read_only=True)

    assert contents(path) == {}


@pytest.mark.parametrize("read_only", [True, False])
def test_folder_without_the_right_to_write_can_be_read(
    unprivileged: Path, read_only: bool, spill_at_once: None
) -> None:
    """Where nothing may be written a store is read, also one with an erasure cut short, and a commit is refused."""
    path = unprivileged / "agent"
    storage = FilesystemStorage(path)
    fill(storage, "a", 3)
    erasure = Erasure(entries=(("a", entry(0, b'"gone"')),))
    (path / "erasing.jsonl").write_bytes(dumps(Staging(storage._files).run(erasure)[0]))
    (path / "erasing.jsonl").chmod(0o600)
    storage.close()
    folders = [path, *(each for each in path.rglob("*") if each.is_dir())]
    files = [each for each in path.rglob("*") if each.is_file()]
    for each in (*files, *folders):
        each.chmod(0o555 if each.is_dir() else 0o444)

    storage = FilesystemStorage(path, read_only=read_only)

    assert next(storage.entries("a")).body == b'"gone"'
    assert len(list(storage.entries("a"))) == 9
    with pytest.raises(StorageReadOnly):
        storage.commit(appended(current(storage, "a"), b"2"))
    storage.close()
    for each in folders:
        each.chmod(0o755)
