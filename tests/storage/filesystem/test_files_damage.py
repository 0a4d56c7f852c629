"""A folder of plain files tells of each byte that is not what was written."""

from collections.abc import Callable
from pathlib import Path

import pytest

from memci.errors import CorruptRecord, MemciError
from memci.storage import FilesystemStorage
from memci.storage.filesystem.context_file import folder_name
from memci.storage.protocol import ContextRecord, OpRow, PageState
from memci.testing.storage.rows import append, appended, current

from .kit import fill, flip


def readings(storage: FilesystemStorage, context: str) -> list[object]:
    """What each way of reading gives, an error where it raises one; entries and pages one by one."""
    found: list[object] = []
    reads: list[Callable[[], object]] = [
        lambda: storage.load(context),
        lambda: storage.revision(context),
        lambda: list(storage.pages(context, state=PageState.ACTIVE)),
        lambda: list(storage.compactions(context)),
        lambda: list(storage.ops(context)),
        lambda: list(storage.calls(context)),
        *(lambda i=i: list(storage.entries(context, i, i + 1)) for i in range(12)),  # type: ignore[misc]
        *(lambda i=i: list(storage.pages(context, first=i, last=i)) for i in range(1, 5)),  # type: ignore[misc]
    ]
    for read in reads:
        try:
            found.append(read())
        except MemciError as error:
            found.append(error)
    return found


@pytest.mark.slow
def test_flipped_bytes_are_told_or_harmless(storage: FilesystemStorage, path: Path) -> None:
    """Any byte of any file may change: what is read is what was written, or an error of ours; most stays readable."""
    storage.close()
    storage = FilesystemStorage(path, durability="fast")
    fill(storage, "a", 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("memci.storage.filesystem.context_file.SPILL_BYTES", 0)
        fill_one_more(storage)
    whole = readings(storage, "a")
    lost: dict[str, list[int]] = {}

    for file in sorted((path / "contexts").rglob("*.jsonl")):
        content = file.read_bytes()
        for place in range(0, len(content), 5):
            file.write_bytes(content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :])
            found = readings(storage, "a")
            assert all(new == old or isinstance(new, CorruptRecord) for new, old in zip(found, whole, strict=True)), (
                f"{file.name}, byte {place}"
            )
            lost.setdefault(file.parent.name, []).append(sum(isinstance(each, CorruptRecord) for each in found))
        file.write_bytes(content)

    assert readings(storage, "a") == whole
    assert max(lost["messages"]) <= 2, "two lines, where the newline between them goes"
    assert min(max(each) for each in lost.values()) == 1, "nothing is lost unseen"


def fill_one_more(storage: FilesystemStorage) -> None:
    record = current(storage, "a")
    storage.commit(appended(record, b'"9"', b'"10"', b'"11"')._replace(op=OpRow("late", b"d" * 16, 9, ((4, 0),))))


@pytest.mark.parametrize("kind", ["messages", "pages", "views", "editions", "ops", "calls", "tools"])
def test_file_that_is_gone_is_corrupt(storage: FilesystemStorage, path: Path, kind: str, spill_at_once: None) -> None:
    """A file that was deleted is missed when what it held is asked for."""
    fill(storage, "a", 3)
    file = next((path / "contexts" / folder_name("a") / kind).iterdir())
    before = readings(storage, "a")
    file.unlink()

    after = readings(storage, "a")

    assert any(isinstance(each, CorruptRecord) for each in after)
    assert all(new == old or isinstance(new, CorruptRecord) for new, old in zip(after, before, strict=True))


def test_context_without_its_file_is_corrupt(storage: FilesystemStorage, path: Path) -> None:
    """A context whose context.jsonl is gone is damaged, not new: nothing is started over it."""
    append(storage, "a", b"1")
    append(storage, "b", b"1")
    (path / "contexts" / folder_name("a") / "context.jsonl").unlink()

    for call in (
        lambda: storage.load("a"),
        lambda: storage.revision("a"),
        lambda: storage.commit(appended(ContextRecord("a", "a", "{}", "{}"), b"1")),
    ):
        with pytest.raises(CorruptRecord, match="missing"):
            call()
    assert storage.load("b") is not None


def test_folder_of_another_context_is_corrupt(storage: FilesystemStorage, path: Path) -> None:
    """A context's folder under another one's name is found out."""
    append(storage, "a", b"1")
    append(storage, "b", b"1")
    a, b = (path / "contexts" / folder_name(each) / "context.jsonl" for each in "ab")
    a.write_bytes(b.read_bytes())

    with pytest.raises(CorruptRecord):
        storage.load("a")


def test_line_of_another_context_is_corrupt(storage: FilesystemStorage, path: Path, spill_at_once: None) -> None:
    """A file of another context, whole in itself, does not pass for one of this."""
    for name, body in (("a", b'"a"'), ("b", b'"b"')):
        append(storage, name, body)
        append(storage, name, body)
    a, b = (next((path / "contexts" / folder_name(each) / "messages").iterdir()) for each in "ab")
    a.write_bytes(b.read_bytes())

    with pytest.raises(CorruptRecord):
        next(storage.entries("a"))


def test_damaged_news_are_not_written_over(storage: FilesystemStorage, path: Path) -> None:
    """Where the newest entries are damaged, a commit is refused rather than that it makes the damage look whole."""
    append(storage, "a", b"zero", b"one")
    transition = appended(current(storage, "a"), b"two")
    flip(path, "a", 0)

    with pytest.raises(CorruptRecord):
        storage.commit(transition)

    assert [row.body for row in storage.entries("a", 1)] == [b"one"]
