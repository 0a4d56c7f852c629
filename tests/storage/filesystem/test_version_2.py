"""A folder of an earlier memci, all in plain files, is taken over whole or left as it is.

`version_2.json` has the files of one, by path: `played` made it, with the news of the first three turns in files of
their own, and the others in the contexts' first files.
"""

import json
import os
import shutil
import signal
import zlib
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import pytest

from memci.errors import CorruptRecord, StorageReadOnly
from memci.rows import OpRow, PageRow, PageState
from memci.storage import EphemeralStorage, FilesystemStorage
from memci.storage.protocol import Erasure, Storage, Transition
from memci.testing.storage.rows import append, appended, called, current, everything, forked, tombstone

from .test_folder import contents

FILES = json.loads(Path(__file__).with_name("version_2.json").read_text("utf-8"))
NAMES = ("alice", "alice-2", "bob")


def played(storage: Storage) -> None:
    for turn in range(3):
        record = current(storage, "alice")
        made = appended(record, *(b'{"content":"%d %d %b"}' % (turn, i, b"word " * 9) for i in range(3)))
        op = OpRow(f"op {turn}", b"d" * 16, record.head, tuple((record.next_page, i) for i in range(3)))
        if turn:
            archived = PageRow(record.next_page - 1, record.head - 3, record.head, turn, PageState.ARCHIVED)
            view = ((record.head - 1, 5, 64),)
            made = made._replace(pages=(archived, *made.pages), views=view, compaction=f'["compaction {turn}"]')
        storage.commit(called(made._replace(op=op), "[]"))
    record = current(storage, "alice")
    late = OpRow("late", b"d" * 16, record.head, ((record.next_page, 0),))
    storage.commit(appended(record, b'"late"')._replace(op=late))
    storage.commit(forked("alice", "alice-2", 5, b'"own"', b"\xff\n not JSON"))
    storage.commit(Transition(7, current(storage, "alice-2"), views=((2, 1, 2),)))
    append(storage, "bob", b'"Hi"')
    record = current(storage, "alice")
    after = Transition(record.head, record, compaction='["after"]'), Transition(7, current(storage, "alice-2"))
    storage.erase(Erasure((), (("alice", tombstone(1)),), after))


@pytest.fixture
def old(path: Path) -> Path:
    for name, text in FILES.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text, "utf-8")
    for name in ("locks", "queues"):
        (path / name).mkdir()
    (path / "locks" / "store.lock").touch()
    (path / "witness").write_bytes(b"x")
    (path / "audit.jsonl").write_text('{"action":"erase"}\n')
    return path


@pytest.mark.parametrize("durability", ["full", "fast"])
def test_folder_of_an_earlier_memci_is_taken_over(old: Path, durability: str) -> None:
    """All that could be read of it can be read, the old files are gone, and it goes on."""
    known = EphemeralStorage()
    played(known)
    plain = everything(known, *NAMES)
    for position, name in enumerate(NAMES):  # without calls and compactions a context begins its revisions again
        record, compaction = known.load(name) or pytest.fail("it is there")
        if not [*known.calls(name), *known.compactions(name)]:
            plain[position] = ((record._replace(revision=1), compaction), 1, *plain[position][2:])

    storage = FilesystemStorage(old, durability=durability)  # type: ignore[arg-type]

    assert everything(storage, *NAMES) == plain
    assert storage.damage() == []
    assert [line["action"] for line in storage.audit_log] == ["erase"]
    append(storage, "alice", b'"goes on"')
    storage.close()
    names = {each.name.removeprefix("store.db") for each in old.iterdir()}
    assert names <= {"memci.json", "contexts", "audit.jsonl", "", "-witness", "-wal", "-shm"}
    copies = sorted((old / "contexts").iterdir())
    assert [each.suffix for each in copies] == [".jsonl"] * 3
    assert sum(len(each.read_text().splitlines()) for each in copies) == 3 + 11 + 2 + 1


def test_folder_of_an_earlier_memci_is_not_changed_by_reading(old: Path) -> None:
    """Who may not write is told to open it once for writing."""
    before = contents(old)

    with pytest.raises(StorageReadOnly, match="earlier memci"):
        FilesystemStorage(old, read_only=True)

    assert contents(old) == before


@pytest.mark.parametrize("hurt", ["flipped", "cut", "gone", "a line less"])
def test_damaged_folder_of_an_earlier_memci_is_left_as_it_is(old: Path, hurt: str) -> None:
    """A byte, a line or a file that is not what was written is an error that names the file; nothing is lost."""
    for name in [name for name in FILES if name.startswith("contexts/")]:
        whole = (old / name).read_bytes()
        if hurt == "gone":
            (old / name).unlink()
        else:
            flipped = whole[:-9] + bytes([whole[-9] ^ 4]) + whole[-8:]
            less = b"".join(whole.splitlines(keepends=True)[:-1])
            (old / name).write_bytes({"flipped": flipped, "cut": whole[:-5]}.get(hurt, less))
        before = contents(old)

        with pytest.raises(CorruptRecord):
            FilesystemStorage(old)

        assert contents(old) == before
        (old / name).write_bytes(whole)
    FilesystemStorage(old).close()


@pytest.mark.slow
def test_move_that_is_killed_is_done_by_the_next_opening(old: Path) -> None:
    """Wherever the process dies that takes a folder over, the next one finds all of it."""
    FilesystemStorage(shutil.copytree(old, old.with_name("whole"))).close()
    whole = FilesystemStorage(old.with_name("whole"))
    number, died = 0, True

    while died:
        path = shutil.copytree(old, old.with_name(str(number)))
        died = dies_at(number, path)
        storage = FilesystemStorage(path, durability="fast")
        assert everything(storage, *NAMES) == everything(whole, *NAMES), f"killed at call {number}"
        storage.close()
        assert contents(path / "contexts") == contents(old.with_name("whole") / "contexts")
        number += 4  # of some forty, each of which costs the syncs of two openings

    assert number > 20
    whole.close()


def dies_at(number: int, path: Path) -> bool:
    """Open the store at *path* in a child that dies at its call *number* that changes a file; whether it did."""
    child = os.fork()
    if child == 0:
        left = number

        def deadly(call: Callable[..., object]) -> Callable[..., object]:
            def counted(*args: object, **named: object) -> object:
                nonlocal left
                left -= 1
                if left < 0:
                    os._exit(7)
                return call(*args, **named)

            return counted

        try:
            signal.alarm(20)
            for name in ("mkdir", "write", "pwrite", "rename", "unlink", "rmdir", "fsync"):
                setattr(os, name, deadly(getattr(os, name)))
            FilesystemStorage(path)
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_move_that_was_cut_short_is_finished(old: Path) -> None:
    """Killed behind the commit, or before the old files were removed, the next opening does what is left."""
    files = contents(old)
    FilesystemStorage(old).close()
    moved = contents(old)
    for name in (name for name in files if name != "memci.json"):
        (old / name).parent.mkdir(parents=True, exist_ok=True)
        (old / name).write_bytes(files[name])

    FilesystemStorage(old).close()

    assert contents(old).keys() == moved.keys()
    for name in files:
        (old / name).parent.mkdir(parents=True, exist_ok=True)
        (old / name).write_bytes(files[name])
    storage = FilesystemStorage(old)
    assert [record.id for record in storage.contexts()] == list(NAMES)
    assert contents(old).keys() >= moved.keys()
    storage.close()


@pytest.mark.parametrize("path_of", ["../x", "memci.json", "contexts/../../x", f"contexts/{'0' * 32}/../x"])
def test_erasure_of_an_earlier_memci_is_finished(old: Path, path_of: str) -> None:
    """An erasure that was cut short is done before the folder is moved; one that names other files is refused."""
    name = next(name for name in FILES if name.endswith("p1.jsonl"))
    body = (old / name).read_bytes()
    bob = "contexts/05cf8e6a8c713212772cac9e6f1ea948"

    (old / "erasing.jsonl").write_bytes(journal({path_of: None}))
    with pytest.raises(CorruptRecord, match="no file of ours"):
        FilesystemStorage(old)
    (old / name).write_bytes(b"half")
    (old / "erasing.jsonl").write_bytes(journal({name: body, bob: None}))
    storage = FilesystemStorage(old)

    assert [record.id for record in storage.contexts()] == ["alice", "alice-2"]
    assert len(list(storage.entries("alice"))) == 10
    assert not (old / "erasing.jsonl").exists()
    storage.close()


def journal(staged: dict[str, bytes | None]) -> bytes:
    """Return what an earlier memci wrote before it changed several files at once."""

    def line(rest: bytes) -> bytes:
        return b'{"sum":"%08x",' % zlib.crc32(rest, zlib.crc32(b"erasing.jsonl")) + rest

    lines = [line(b'"memci":"erasing","lines":%d}' % len(staged))]
    for name, body in staged.items():
        content = b"" if body is None else b',"base64":"' + b64encode(body) + b'"'
        lines.append(
            line(b'"path":"%b","gone":%b' % (name.encode(), str(body is None).lower().encode()) + content + b"}")
        )
    return b"\n".join([*lines, b""])
