"""The plain copies in a folder hold the messages that are stored, and nothing of what was erased."""

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from memci.errors import CorruptRecord, InvalidSetting, StorageError, StorageFull, WriteConflict
from memci.storage import FilesystemStorage
from memci.storage.filesystem import files
from memci.storage.filesystem.store import copy_of
from memci.storage.protocol import Erasure, Transition
from memci.testing.storage.pair import PairedStore
from memci.testing.storage.rows import append, appended, bodies_of, current, entry, forked, tombstone

from .test_folder import contents, execute


def copy(path: Path, context: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (path / copy_of(context)).read_text().splitlines()]


def messages(path: Path, context: str) -> list[object]:
    return [line.get("message", line.get("bytes")) for line in copy(path, context)[1:]]


def test_copy_has_each_message_as_it_is_on_its_page(storage: FilesystemStorage, path: Path) -> None:
    """A line is a message, byte for byte, with its number, its page and its time; what is no JSON stands in hex."""
    append(storage, "a", b'{"role":"user","content":"Hi"}', b"\xff", b'"a\nb"')
    storage.commit(appended(current(storage, "a"))._replace(entries=(), record=current(storage, "a")))
    record = current(storage, "a")
    made = appended(record, b'"x"')
    storage.commit(made._replace(entries=(entry(record.head, b'"x"', at="2031"),)))

    first, *lines = copy(path, "a")

    assert first == {"context": "a", "base": 0}
    assert lines == [
        {"seq": 0, "page": 1, "message": {"role": "user", "content": "Hi"}},
        {"seq": 1, "page": 1, "bytes": "ff"},
        {"seq": 2, "page": 1, "bytes": b'"a\nb"'.hex()},
        {"seq": 3, "page": made.pages[0].index, "at": "2031", "message": "x"},
    ]
    assert b'"message":{"role":"user","content":"Hi"}}' in (path / copy_of("a")).read_bytes()


@pytest.mark.parametrize("left", ["gone", "empty", "torn", "behind", "ahead", "other"])
def test_copy_that_was_left_otherwise_is_made_again(storage: FilesystemStorage, path: Path, left: str) -> None:
    """Whatever a crash or a person left there, the next append makes it what is stored; else only lines are added."""
    append(storage, "a", b'"1"', b'"2"')
    file = path / copy_of("a")
    whole = file.read_bytes()
    lines = whole.splitlines(keepends=True)
    if left == "gone":
        file.unlink()
    else:
        made = {"empty": b"", "torn": whole[:-3], "behind": b"".join(lines[:-1]), "other": b"[]\n"}
        file.write_bytes(made.get(left, whole + b'{"seq":2,"page":9,"message":"not stored"}\n'))

    append(storage, "a", b'"3"')

    assert file.read_bytes().startswith(whole)
    assert messages(path, "a") == ["1", "2", "3"]
    inode = file.stat().st_ino
    append(storage, "a", b'"4"')
    assert (file.stat().st_ino, messages(path, "a")) == (inode, ["1", "2", "3", "4"])


def test_fork_has_a_copy_of_its_own_messages(storage: FilesystemStorage, path: Path) -> None:
    """The copy of a fork says where it was forked from, and where its own messages begin."""
    append(storage, "a", b'"1"', b'"2"')
    storage.commit(forked("a", "b", 1, b'"own"'))
    append(storage, "b", b'"more"')

    assert copy(path, "b")[0] == {"context": "b", "base": 1, "parent": "a"}
    assert messages(path, "b") == ["own", "more"]


def test_erased_bytes_are_in_no_copy(storage: FilesystemStorage, path: Path) -> None:
    """What is erased goes from the copy of the context that holds it, by whatever fork it is named; copies stay."""
    pair = PairedStore(storage)
    pair.append("a", b'"canary"', b'"stays"')
    pair.fork("a", "b", 2, b'"own"')
    pair.append("c", b'"canary"')
    (path / (copy_of("c").replace("/", "/.") + ".tmp")).write_bytes(b"canary")

    pair.erase(pair.erasure(("b", 0), contexts=("c",)))

    assert not any(b"canary" in each for each in contents(path).values())
    assert copy(path, "a")[1] == {"seq": 0, "page": 1, "erased": True}
    assert (messages(path, "a"), messages(path, "b")) == ([None, "stays"], ["own"])
    assert not (path / copy_of("c")).exists()


def test_erasure_that_is_refused_leaves_the_copies(storage: FilesystemStorage, path: Path) -> None:
    """A stale erasure, or one that a fork forbids, changes no copy; one without names makes all of them again."""
    append(storage, "a", b'"1"')
    stale = Transition(1, current(storage, "a"))
    append(storage, "a", b'"2"')
    storage.commit(forked("a", "b", 1, b'"own"'))
    before = contents(path / "contexts")

    with pytest.raises(WriteConflict):
        storage.erase(Erasure((), (("a", tombstone(0)),), (stale,)))
    with pytest.raises(InvalidSetting):
        storage.erase(Erasure(("a",)))

    assert contents(path / "contexts") == before
    (path / copy_of("a")).write_bytes(b"edited")
    assert storage.erase(Erasure()).scrubbed
    assert contents(path / "contexts") == before


def test_full_disk_keeps_nothing_of_the_call(
    storage: FilesystemStorage, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without room for the copy a commit is StorageFull and not stored; with room again the same handle goes on."""
    append(storage, "a", b'"1"')
    transition = appended(current(storage, "a"), b'"2"')
    for_one_byte = os.write

    def full(file: int, content: bytes) -> int:
        for_one_byte(file, content[:1])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "write", full)

    with pytest.raises(StorageFull):
        storage.commit(transition)

    monkeypatch.undo()
    assert bodies_of(storage, "a") == [b'"1"']
    storage.commit(transition)
    assert messages(path, "a") == ["1", "2"]


def test_message_that_cannot_be_read_is_named_in_a_new_copy(storage: FilesystemStorage, path: Path) -> None:
    """Damage in the store is no reason to refuse an append; the copy says which message it lacks."""
    append(storage, "a", b'"1"', b'"2"', b'"3"')
    execute(path, "UPDATE entry SET body = CAST('x' || substr(body, 2) AS BLOB) WHERE key = ?", "a", 1)
    (path / copy_of("a")).unlink()

    append(storage, "a", b'"4"')

    assert copy(path, "a")[2] == {"seq": 1, "damaged": True}
    assert messages(path, "a") == ["1", None, "3", "4"]
    with pytest.raises(CorruptRecord):
        bodies_of(storage, "a")


def test_ids_never_become_names(storage: FilesystemStorage, path: Path) -> None:
    """Of 300 hostile ids each is a context of its own with a copy, none leaves the folder, none is seen in a name."""
    parts = ["..", "/", "\\", "a", "A", ".", " ", "\x00", "\n", "CON", "~", "%2e", "é", "e\u0301", "contexts", ".tmp"]
    draw, ids = random.Random(7), {"", "../x", "/etc/passwd", "a.", "a ", "a", "A", "x" * 100_000}
    while len(ids) < 300:
        ids.add("".join(draw.choices(parts, k=draw.randrange(1, 5))))

    for each in sorted(ids):
        append(storage, each, json.dumps(each[:9]).encode())

    assert [record.id for record in storage.contexts()] == sorted(ids)
    assert {each.name for each in path.parent.iterdir()} == {"agent"}
    names = sorted(f"contexts/{each.name}" for each in (path / "contexts").iterdir())
    assert names == sorted(map(copy_of, ids))
    assert all(messages(path, each) == [each[:9]] for each in ids)


@pytest.mark.parametrize("kind", ["link", "dangling", "pipe"])
@pytest.mark.parametrize("spot", ["contexts", "H"])
def test_what_is_no_file_of_ours_is_refused(storage: FilesystemStorage, path: Path, spot: str, kind: str) -> None:
    """A link or a pipe in the place of a copy is refused at once, and nothing outside is read, written or made."""
    append(storage, "a", b'"1"')
    place, outside = path / spot.replace("H", copy_of("a")), path.parent / "outside"
    place.rename(outside)
    before = contents(outside) if outside.is_dir() else outside.read_bytes()
    if kind == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to(outside if kind == "link" else path.parent / "nowhere")

    with pytest.raises(StorageError, match="not touched"):
        append(storage, "a", b'"2"')

    assert bodies_of(storage, "a") == [b'"1"']
    assert not (path.parent / "nowhere").exists()
    assert (contents(outside) if outside.is_dir() else outside.read_bytes()) == before


def test_copy_of_another_user_is_refused(storage: FilesystemStorage, path: Path) -> None:
    """A file that belongs to someone else is not ours, whatever it says."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    append(storage, "a", b'"1"')
    os.chown(path / copy_of("a"), 65534, 65534)

    with pytest.raises(StorageError, match="another user"):
        append(storage, "a", b'"2"')
