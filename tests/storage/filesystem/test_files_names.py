"""No name comes from data, and nothing planted is followed."""

import os
import random
import re
import unicodedata
from pathlib import Path

import pytest

from memci.errors import CorruptRecord, MemciError, StorageUnavailable
from memci.storage import FilesystemStorage
from memci.storage.filesystem.context_file import folder_name
from memci.storage.filesystem.erase import dumps
from memci.storage.protocol import ContextRecord
from memci.testing.storage.rows import append, appended

from .kit import contents, fill


def hostile_ids(count: int) -> list[str]:
    parts = ["..", "/", "\\", "a", "A", ".", " ", "\x00", "\n", "CON", "NUL", "~", "%2e", "é", "e\u0301", "\U0001f600"]
    parts += [
        "contexts",
        "context.jsonl",
        ".tmp",
        "*",
        "$(id)",
        "`",
        "|",
        "-rf",
        "\u202e",
        "\ufeff",
        "x" * 300,
        "'",
        '"',
    ]
    draw = random.Random(7)
    ids = {"", "../x", "/etc/passwd", "a/b", "a\\b", "a.", "a ", "a", "A", "ä", "a\u0308", "x" * 100_000}
    while len(ids) < count:
        ids.add("".join(draw.choices(parts, k=draw.randrange(1, 5))))
    return sorted(ids)


def test_ids_never_become_names(tmp_path: Path, unsynced: None) -> None:
    """Of 2,000 hostile ids each is a context of its own, none leaves the folder, none is seen in a name."""
    path = tmp_path / "inner" / "agent"
    path.parent.mkdir()
    storage = FilesystemStorage(path)
    ids = hostile_ids(2_000)

    for i, each in enumerate(ids):
        storage.commit(appended(ContextRecord(each, "o", "{}", "{}"), b"%d" % i))

    assert [record.id for record in storage.contexts()] == ids
    assert [[row.body for row in storage.entries(each)] for each in ids[::50]] == [
        [b"%d" % i] for i in range(0, 2_000, 50)
    ]
    assert len({unicodedata.normalize("NFC", each) for each in ids}) < len(ids), "there are twins among them"
    assert [*tmp_path.iterdir(), *path.parent.iterdir()] == [path.parent, path]
    names = {re.sub("[0-9a-f]{32}", "H", str(each.relative_to(path))) for each in path.rglob("*")}
    known = {"memci.json", "contexts", "contexts/H", "contexts/H/context.jsonl", "locks", "locks/H.lock", "witness"}
    assert names == known
    storage.close()


SPOTS = [
    "contexts",
    "contexts/H",
    "contexts/H/context.jsonl",
    "contexts/H/messages",
    "contexts/H/messages/000000000000-p1.jsonl",
    "contexts/H/pages/0000000000.jsonl",
    "locks",
    "locks/H.lock",
    "memci.json",
    "erasing.jsonl",
]


@pytest.mark.parametrize("kind", ["link", "dangling", "pipe"])
@pytest.mark.parametrize("spot", SPOTS)
def test_what_is_no_file_of_ours_is_refused(tmp_path: Path, spot: str, kind: str, spill_at_once: None) -> None:
    """A link or a pipe in the place of ours is refused at once, and nothing outside is read, written or made."""
    path, outside = tmp_path / "agent", tmp_path / "outside"
    storage = FilesystemStorage(path)
    fill(storage, "a", 3)
    place = path / spot.replace("H", folder_name("a"))
    place.rename(outside) if place.exists() else outside.mkdir()
    before = contents(outside) if outside.is_dir() else outside.read_bytes()
    if kind == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to(outside if kind == "link" else tmp_path / "nowhere")

    with pytest.raises(MemciError):
        list(storage.entries("a"))
        list(storage.pages("a"))
        append(storage, "a", b"1")
        append(storage, "a", b"2")
        FilesystemStorage(path)

    assert not (tmp_path / "nowhere").exists()
    assert (contents(outside) if outside.is_dir() else outside.read_bytes()) == before
    storage.close()


def test_file_of_another_user_is_refused(storage: FilesystemStorage, path: Path) -> None:
    """A file that belongs to someone else is not ours, whatever it says."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    append(storage, "a", b"1")
    os.chown(path / "contexts" / folder_name("a") / "context.jsonl", 65534, 65534)

    with pytest.raises(StorageUnavailable, match="another user"):
        storage.load("a")


def test_erasure_that_names_other_files_is_refused(storage: FilesystemStorage, path: Path) -> None:
    """A planted journal can't write or remove what is no file of ours, though its check sums are right."""
    append(storage, "a", b"1")
    for name in ("../x", "memci.json", "contexts/../../x", "/etc/x", f"contexts/{'0' * 32}/../x", "contexts/a\n"):
        for content in (b"x", None):
            (path / "erasing.jsonl").write_bytes(dumps({name: content}))
            before = contents(path.parent)

            with pytest.raises(CorruptRecord, match="no file of ours"):
                storage.load("a")

            assert contents(path.parent) == before
