"""Forks of plain files, and what is erased from them."""

from pathlib import Path

import pytest

from memci.errors import InvalidSetting, WriteConflict
from memci.storage import FilesystemStorage
from memci.storage.filesystem import files as filesystem_files
from memci.storage.filesystem.context_file import folder_name
from memci.storage.protocol import ContextRecord, Erasure, OpRow, Transition
from memci.testing.storage.rows import append, appended, current, entry

from .kit import Killed, contents, everything, fill


def fork(storage: FilesystemStorage, parent: str, name: str, base: int) -> None:
    record = ContextRecord(name, name, "{}", "{}", head=base, parent=parent, base=base)
    storage.commit(Transition(0, record))


def test_fork_reads_what_it_shares_with_views_of_its_own(storage: FilesystemStorage, spill_at_once: None) -> None:
    """A fork of a fork shows the past of both with its own views, and theirs stay as they are."""
    fill(storage, "a", 3)
    fork(storage, "a", "b", 5)
    append(storage, "b", b"b")
    fork(storage, "b", "c", 6)
    storage.commit(Transition(6, current(storage, "c"), views=((2, 1, 2), (5, 3, 4))))
    append(storage, "c", b"c")
    append(storage, "a", b"a")

    rows = list(storage.entries("c"))

    assert [row.body for row in rows] == [row.body for row in storage.entries("a", 0, 5)] + [b"b", b"c"]
    assert [(row.tokens, row.clip) for row in rows] == [(7, 0), (7, 0), (1, 2), (7, 0), (7, 0), (3, 4), (7, 0)]
    assert [(row.tokens, row.clip) for row in storage.entries("a", 2, 4)] == [(5, 64), (7, 0)]
    assert [row.seq for row in storage.entries("c", 4, 6)] == [4, 5]


def test_fork_of_nothing_is_refused(storage: FilesystemStorage) -> None:
    """A fork shares only what is there."""
    append(storage, "a", b"1")

    for parent, base in (("a", 2), ("nobody", 0)):
        with pytest.raises(InvalidSetting):
            fork(storage, parent, "b", base)

    assert [record.id for record in storage.contexts()] == ["a"]


@pytest.mark.parametrize("spills", [True, False])
def test_erased_bytes_are_in_no_file(
    storage: FilesystemStorage, path: Path, spills: bool, request: pytest.FixtureRequest
) -> None:
    """What is erased is gone from every file: entries, views, compactions, digests of ops, what was left unfinished."""
    if spills:
        request.getfixturevalue("spill_at_once")
    storage.commit(
        appended(current(storage, "a"), b'"canary"', b'"stays"')._replace(
            op=OpRow("op", b"canary canary 16", 0, ((1, 0), (1, 1))), compaction="canary"
        )
    )
    fill(storage, "a", 2)
    storage.commit(Transition(8, current(storage, "a"), views=((0, 777_777, 1),), compaction="canary too"))
    fork(storage, "a", "b", 4)
    append(storage, "b", b"1")
    append(storage, "c", b"canary")
    storage.commit(Transition(5, current(storage, "b"), views=((0, 777_777, 2),)))
    for name in (".context.jsonl.tmp", ".other.jsonl.tmp"):
        (path / "contexts" / folder_name("a") / name).write_bytes(b"canary")

    after = Transition(8, current(storage, "a"), compaction="after"), Transition(5, current(storage, "b"))
    erased = storage.erase(Erasure(("c",), (("b", entry(0, b'"gone"')),), after))

    assert (erased.contexts, erased.entries, erased.compactions, erased.ops, erased.scrubbed) == (1, 2, 3, 1, True)
    held = b"".join(contents(path).values())
    assert not any(each in held for each in (b"canary", b"canary canary 16".hex().encode(), b"777777"))
    assert [row.body for row in storage.entries("a", 0, 2)] == [b'"gone"', b'"stays"']
    assert next(storage.entries("b")).body == b'"gone"'
    assert [row.text for row in storage.compactions("a")] == ["after"]
    assert [op.digest for op in storage.ops("a")][:2] == [bytes(16), b"d" * 16]
    assert [record.id for record in storage.contexts()] == ["a", "b"]
    again = FilesystemStorage(path)
    assert everything(again, "a", "b") == everything(storage, "a", "b")
    again.close()


def test_erasing_what_a_spill_left_behind(
    storage: FilesystemStorage, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes are gone also from the file of a spill that was cut short before its commit."""
    append(storage, "a", b'"canary"')
    transition = appended(current(storage, "a"), b'"2"')
    monkeypatch.setattr("memci.storage.filesystem.context_file.SPILL_BYTES", 0)
    write = filesystem_files.Files.write

    def cut(files: filesystem_files.Files, name: str, content: bytes) -> None:
        if name.endswith("context.jsonl"):
            raise Killed
        write(files, name, content)

    with monkeypatch.context() as patch:
        patch.setattr(filesystem_files.Files, "write", cut)
        with pytest.raises(Killed):
            storage.commit(transition)
    assert sum(b"canary" in each for each in contents(path).values()) == 2

    storage.erase(Erasure(entries=(("a", entry(0, b'"gone"')),)))

    assert not any(b"canary" in each for each in contents(path).values())
    assert [row.body for row in storage.entries("a")] == [b'"gone"']


def test_erasing_the_past_of_a_fork_is_refused(storage: FilesystemStorage, path: Path) -> None:
    """A context that a fork still shares is not removed without it, and nothing is touched."""
    append(storage, "a", b"1")
    fork(storage, "a", "b", 1)
    before = everything(storage, "a", "b")

    with pytest.raises(InvalidSetting, match="'b'"):
        storage.erase(Erasure(("a",)))

    assert everything(storage, "a", "b") == before
    assert storage.erase(Erasure(("a", "b", "nobody"))).contexts == 2
    assert storage.contexts() == []
    assert list((path / "contexts").iterdir()) == []


def test_stale_erasure_touches_nothing(storage: FilesystemStorage, path: Path) -> None:
    """An erasure whose transition is behind is WriteConflict, and no byte changes."""
    append(storage, "a", b"1")
    append(storage, "b", b"1")
    stale = Transition(1, current(storage, "a"))
    append(storage, "a", b"2")
    before = {name: each for name, each in contents(path).items() if not name.startswith("locks")}

    with pytest.raises(WriteConflict):
        storage.erase(Erasure(("b",), (("a", entry(0, b"gone")),), (stale,)))

    assert {name: each for name, each in contents(path).items() if not name.startswith("locks")} == before
