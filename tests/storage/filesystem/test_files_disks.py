"""Plain files on disks that are full or fail, and killed at any call."""

import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from memci.errors import CommitUnknown, HandlePoisoned, MemciError, StorageFull, StorageUnavailable
from memci.storage import FilesystemStorage
from memci.storage.filesystem import files as filesystem_files
from memci.storage.filesystem.context_file import folder_name
from memci.storage.protocol import ContextRecord, Erasure, OpRow, Transition
from memci.testing.storage.rows import append, appended, current, entry

from .kit import contents, everything


def test_full_disk_keeps_nothing_of_the_call(storage: FilesystemStorage, path: Path) -> None:
    """Without room a commit is StorageFull and leaves no trace; with room again the same handle goes on."""
    append(storage, "a", b"1")
    transition = appended(current(storage, "a"), b"small", b"x" * 100_000)
    new = appended(ContextRecord("b", "b", "{}", "{}"), b"x" * 100_000)
    before = contents(path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        for each in (transition, new):
            with pytest.raises(StorageFull) as caught:
                storage.commit(each)
            assert caught.value.retryable
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert {name: each for name, each in contents(path).items() if not name.startswith("locks")} == {
        name: each for name, each in before.items() if not name.startswith("locks")
    }
    assert storage.commit(transition) is None
    assert storage.commit(new) is None
    assert len(list(storage.entries("a"))) == 3


@pytest.mark.parametrize(("failing", "error", "kept"), [(1, StorageUnavailable, 1), (2, CommitUnknown, 2)])
def test_failed_sync_poisons_the_handle(
    storage: FilesystemStorage,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    failing: int,
    error: type[MemciError],
    kept: int,
) -> None:
    """A sync that fails before the commit means not stored, one that fails at it means unknown; both end the handle."""
    append(storage, "a", b"1")
    transition = appended(current(storage, "a"), b"2")._replace(op=OpRow("op", b"d" * 16, 1, ((2, 0),)))
    calls = 0

    def sync(file: int) -> None:
        nonlocal calls
        calls += 1
        if calls == failing:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(filesystem_files, "sync", sync)

    with pytest.raises(error) as caught:
        storage.commit(transition)

    assert getattr(caught.value, "op_id", "op") == "op"
    with pytest.raises(HandlePoisoned, match="synced"):
        storage.load("a")
    monkeypatch.undo()
    again = FilesystemStorage(path)
    assert len(list(again.entries("a"))) == kept
    again.close()


def lived(path: Path, after: int) -> int:
    """Live a short life in a child that dies at its system call number *after*; return how many steps it acked."""
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(20)
            left = after

            def deadly(call: Callable[..., object]) -> Callable[..., object]:
                def counted(*args: object, **named: object) -> object:
                    nonlocal left
                    left -= 1
                    if left < 0:
                        os._exit(7)
                    return call(*args, **named)

                return counted

            storage = FilesystemStorage(path, durability="fast")
            ack = os.write
            for name in ("mkdir", "write", "rename", "unlink", "rmdir"):
                setattr(os, name, deadly(getattr(os, name)))
            for step in steps(storage):
                step()
                ack(tell, b"x")
        finally:
            os._exit(0)
    os.close(tell)
    with os.fdopen(told, "rb") as acks:
        count = len(acks.read())
    os.waitpid(child, 0)
    return count


def steps(storage: FilesystemStorage) -> list[Callable[[], object]]:
    def erase() -> None:
        tombstones = (("a", entry(1, b'"gone"')), ("a", entry(8, b'"gone"')))
        storage.erase(Erasure(("b",), tombstones, (Transition(9, current(storage, "a"), compaction="after"),)))

    return [
        *[lambda: fill_turn(storage)] * 3,
        lambda: append(storage, "b", b"canary"),
        erase,
        lambda: fill_turn(storage),
    ]


def fill_turn(storage: FilesystemStorage) -> None:
    record = current(storage, "a")
    op = OpRow(f"op {record.head}", b"d" * 16, record.head, ((record.next_page, 0),))
    rows = (b'"canary %d %d"' % (record.head, i) for i in range(3))
    storage.commit(appended(record, *rows)._replace(op=op, compaction=f"{record.head}"))


@pytest.mark.slow
def test_killed_at_any_call_leaves_whole_steps(tmp_path: Path, spill_at_once: None) -> None:
    """Wherever the process dies, each step is there whole or not at all, and what it acked is there."""
    model = FilesystemStorage(tmp_path / "model", durability="fast")
    states = [everything(model, "a", "b")]
    for step in steps(model):
        step()
        states.append(everything(model, "a", "b"))
    model.close()
    after, acked = 0, 0

    while acked < len(states) - 1:
        path = tmp_path / str(after)
        acked = lived(path, after)
        reader = FilesystemStorage(path, read_only=True)
        seen = everything(reader, "a", "b")
        reader.close()
        storage = FilesystemStorage(path, durability="fast")
        assert everything(storage, "a", "b") in states[acked : acked + 2], f"killed at call {after}"
        assert seen == everything(storage, "a", "b"), "who only reads sees the same"
        if everything(storage, "a", "b") == states[5]:
            storage.erase(Erasure())
            assert b"canary 0 1" not in b"".join(contents(path).values())
        fill_turn(storage)
        storage.close()
        after += 1

    assert after > 60


def test_what_was_left_unfinished_is_ignored_and_replaced(storage: FilesystemStorage, path: Path) -> None:
    """A file that was never given its name is no file of a context, and the next writer takes it away."""
    append(storage, "a", b"1")
    folder = path / "contexts" / folder_name("a")
    (folder / ".context.jsonl.tmp").write_bytes(b"half a lin")
    (path / "contexts" / f".{folder_name('b')}.tmp").mkdir()
    (path / "contexts" / f".{folder_name('b')}.tmp" / "context.jsonl").write_bytes(b"half")

    assert [record.id for record in storage.contexts()] == ["a"]
    append(storage, "a", b"2")
    append(storage, "b", b"1")

    assert [each for each in path.rglob("*") if each.name.endswith(".tmp")] == []
