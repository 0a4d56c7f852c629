"""What goes wrong around a context, one by one, and what it does then: docs/reliability.md has the whole table."""

import json
import logging
import os
import re
import shutil
from pathlib import Path

import apsw
import pytest

import memci
from memci import Context, EphemeralStorage, SQLiteStorage
from memci.errors import (
    CorruptRecord,
    HandlePoisoned,
    MemciError,
    StorageBusy,
    StorageFull,
    StorageReadOnly,
    StorageUnavailable,
)
from memci.rows import PageState
from memci.storage.protocol import Transition
from tests.invariants import check

from .kit import again, call, opened, talked, turn, words

pytestmark = pytest.mark.usefixtures("no_memory")

LOCKS = Path("/proc/locks")


class Failing(EphemeralStorage):
    """A store that can't be read when it is told so: neither entries nor revisions."""

    error: Exception | None = None

    def revision(self, context):
        if self.error is not None:
            raise self.error
        return super().revision(context)

    def entries(self, *args, **kw):
        if self.error is not None:
            raise self.error
        return super().entries(*args, **kw)


class Unwritable(EphemeralStorage):
    """A store that takes no commit when it is told to."""

    error: Exception | None = None

    def commit(self, transition):
        if self.error is not None:
            raise self.error
        return super().commit(transition)


@pytest.mark.parametrize(
    "error", [StorageBusy("held"), StorageUnavailable("gone"), CorruptRecord("alice", 0, "secret")]
)
def test_page_that_can_not_be_read_is_never_answered_as_missing_or_empty(error, caplog):
    """The model learns that the page is there and unreadable, the log learns it too, and the loop goes on."""
    storage = Failing()
    context = talked(3, storage=storage)
    context.archive(keep=0)
    caplog.set_level(logging.WARNING, "memci")
    storage.error = error

    said = context.answer(call("c", "recall_page", {"index": 1}))["content"]

    assert said.startswith("error: page #1 was not read")
    assert "not empty" in said
    assert "secret" not in said + caplog.text
    assert type(error).__name__ in caplog.text
    with pytest.raises(type(error)):
        context.recall_page(1)
    storage.error = None
    assert "question 1" in context.answer(call("d", "recall_page", {"index": 1}))["content"]


@pytest.mark.skipif(not LOCKS.exists(), reason="only Linux tells of locks")
def test_no_call_drops_the_locks_of_the_file(tmp_path):
    """Opening and closing the live file once, for whatever reason, would drop the locks that SQLite holds on it."""
    path = tmp_path / "agent.db"
    with opened(path) as context:
        context.append_turn(*turn(0))
        stats = [each.stat() for each in tmp_path.iterdir()]
        inodes = {f" {os.major(s.st_dev):02x}:{os.minor(s.st_dev):02x}:{s.st_ino} " for s in stats}

        def held():
            """Read the kernel's list, which other processes change meanwhile: one reading may miss or repeat a line."""
            counts = []
            for _ in range(10):
                lines = {line.partition(":")[2] for line in LOCKS.read_text("utf-8").splitlines()}
                mine = [line for line in lines if f" {os.getpid()} " in line]
                counts.append(sum(any(inode in line for inode in inodes) for line in mine))
            return max(counts)

        before = held()
        assert before
        for act in (
            lambda: context.append_turn(*turn(1)),
            context.render,
            context.archive,
            lambda: context.recall_page(1),
            lambda: list(context.pages()),
            lambda: list(context.export()),
            context.verify,
            context.report,
            context.refresh,
            lambda: context.fork("bob").close(),
            lambda: opened(path, id="carol").close(),
            lambda: again(path, read_only=True).close(),
            lambda: context.erase(1),
        ):
            act()
            assert held() >= before, "one that is dropped takes all of them along"


def left(path: Path, number: int = 4) -> list[dict]:
    """Leave a store at *path* with a log that was not copied into it, as a program that was killed does."""
    other = path.with_name("made")
    other.mkdir()
    context = opened(other / path.name)
    for each in range(number):
        context.append_turn(*turn(each))
    for file in other.iterdir():
        if not file.name.endswith("-shm"):
            shutil.copy(file, path.parent)
    messages = list(context.messages())
    context.close()
    shutil.rmtree(other)
    return messages


def test_damage_in_the_window_is_told_and_all_else_can_be_read(tmp_path):
    """One changed byte in the window keeps its context from being opened; nothing around it is hidden by that."""
    path = tmp_path / "agent.db"
    with opened(path) as context, opened(path, id="bob") as bob:
        for number in range(6):
            context.append_turn(*turn(number))
            bob.append_turn(*turn(number))
        expected = list(context.messages())
    connection = apsw.Connection(str(path))
    connection.execute(
        "UPDATE entry SET body = zeroblob(length(body)) WHERE key % 1099511627776 = 8 AND key < 2199023255552"
    )
    connection.close()

    with pytest.raises(CorruptRecord, match="seq 8"):
        again(path)
    with again(path, at=3) as past:
        assert list(past.messages()) == expected[:8]
    with again(path, id="bob") as bob:
        assert list(bob.messages()) == expected
    storage = SQLiteStorage(path)
    assert [entry.seq for entry in (*storage.entries("alice", 0, 8), *storage.entries("alice", 9))] == [
        *range(8),
        9,
        10,
        11,
    ]
    storage.close()


def deleted(file: Path) -> None:
    file.unlink()


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def halved(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def zeroed(file: Path) -> None:
    file.write_bytes(bytes(file.stat().st_size))


def of_another(file: Path) -> None:
    folder = file.parent / "another"
    folder.mkdir()
    left(folder / "agent.db", 9)
    shutil.copy(folder / file.name, file)


@pytest.mark.parametrize("swap", [deleted, emptied, halved, zeroed, of_another])
@pytest.mark.parametrize("name", ["agent.db-wal", "agent.db"])
def test_file_that_was_swapped_between_two_runs_is_told_or_older(name, swap, tmp_path):
    """A missing or foreign half of a store shows a state that there was, whole, or an error: never a mixture."""
    messages = left(tmp_path / "agent.db")
    swap(tmp_path / name)

    try:
        with again(tmp_path / "agent.db", window=4_000) as context:
            found = list(context.messages())
            if context.verify():
                return
    except MemciError:
        return
    assert found == messages[: len(found)] or (swap is of_another and len(found) == 18)


def test_log_of_another_file_is_no_mixture_that_goes_unnoticed(tmp_path):
    """SQLite takes a log by its check sums, whatever file it belonged to: what that leaves is found by verify()."""
    made = {}
    for name, said in (("a", "apples"), ("b", "pears")):
        folder = tmp_path / name
        folder.mkdir()
        with opened(folder / "agent.db") as context:
            for number in range(120):
                context.append_turn(f"{said} {number} " * 30, f"{said}!")
        context = again(folder / "agent.db", window=4_000)
        for number in range(3):
            context.append_turn(f"more {said} {number}")
        made[name] = {file.name: file.read_bytes() for file in folder.iterdir() if not file.name.endswith("-shm")}
        context.close()
    mixed = tmp_path / "agent.db"
    mixed.write_bytes(made["a"]["agent.db"])
    mixed.with_name("agent.db-wal").write_bytes(made["b"]["agent.db-wal"])

    try:
        with again(mixed, window=4_000) as context:
            assert context.verify()
    except MemciError:
        return


@pytest.mark.parametrize("swap", [deleted, of_another])
@pytest.mark.parametrize("name", ["agent.db-wal", "agent.db"])
def test_file_that_was_swapped_under_an_open_context_takes_no_more(name, swap, tmp_path):
    """What would be written into a file that is gone would be lost: the handle says that it is of no use."""
    with opened(tmp_path / "agent.db") as context:
        context.append_turn(*turn(0))
        swapped = tmp_path / name
        swapped.rename(tmp_path / "kept")
        if swap is of_another:
            of_another(swapped)

        with pytest.raises(HandlePoisoned, match="replaced"):
            context.append_turn(*turn(1))
        with pytest.raises(HandlePoisoned):
            list(context.messages())


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"first": 0}, "entry 0 is on page #2 and on another one"),
        ({"state": PageState.UNLOADED}, "page #2 is open and"),
    ],
    ids=["two pages with one message", "no open page"],
)
def test_pages_that_contradict_one_another_are_corrupt(change, problem):
    """Each row may be what was written, and still not fit the others: the context says so when it is opened."""
    storage = EphemeralStorage()
    context = opened(storage)
    context.append_turn(*turn(1))
    context.append_turn(*turn(2))
    record, _ = storage.load(context.id)
    [page] = storage.pages(context.id, first=2)
    storage.commit(
        Transition(record.head, record._replace(revision=record.revision + 1), pages=(page._replace(**change),))
    )

    with pytest.raises(CorruptRecord, match=problem):
        opened(storage)


def test_no_clock_is_read():
    """Order, locks and revisions come from counts: a clock that jumps, stops or runs backwards changes nothing.

    The clock of `Context.open`, and that of the audit log, only stamp what is stored. By that of a lock its holder is
    replaced, which the revision then tells apart.
    """
    clocks = re.compile(r"time\.time(_ns)?\(|datetime\.(now|utcnow|today)\(|date\.today\(")
    # what people read; until when a server asks to wait; tickets that are made up; how old a lock is now
    elsewhere = {"cli", "llm", "testing"}
    sources = [path for path in Path(memci.__file__).parent.rglob("*.py") if elsewhere.isdisjoint(path.parts)]

    found = {file.name for file in sources if clocks.search(file.read_text("utf-8"))}
    assert found == {"audit.py", "context.py", "locks.py", "metrics.py"}


def test_times_that_run_backwards_change_no_order(tmp_path):
    """What a program says of the time is kept, and nothing is sorted by it."""
    with opened(tmp_path / "agent.db") as context:
        for number, at in enumerate(["2031-01-01T00:00:00", "1999-12-31T23:59:59+14:00", "2031-01-01T00:00:00", None]):
            context.append_turn(*turn(number), at=at)
        expected = [message for number in range(4) for message in turn(number)]

        assert list(context.messages()) == expected
        with again(tmp_path / "agent.db") as other:
            assert list(other.messages()) == expected


def test_counter_that_raises_changes_nothing():
    """An error of the program's own counter reaches the program, and the context is as it was."""
    broken = []

    def counter(text: str) -> int:
        if broken:
            raise ZeroDivisionError
        return words(text)

    context = talked(2, counter=counter)
    before = context.render()
    broken.append(True)

    with pytest.raises(ZeroDivisionError):
        context.append_turn("some words that were never counted", "others")

    broken.clear()
    assert context.render() == before
    assert context.report().messages == 4
    context.append_turn(*turn(2))
    check(context._parts.window)


def test_counter_may_ask_the_context():
    """A counter that asks the context meanwhile is answered, and the window stays right."""
    asked: list[Context] = []

    def counter(text: str) -> int:
        if asked:
            asked.pop().report()
        return words(text)

    context = talked(2, counter=counter)
    asked.append(context)
    context.append_turn("words that are new to it", "answer")

    assert context.report().messages == 6
    check(context._parts.window)


@pytest.mark.parametrize("error", [StorageFull("no space"), StorageReadOnly("no right"), StorageBusy("held")])
def test_recall_that_can_not_be_counted_is_answered_all_the_same(error):
    """A recall writes only its count: where the disk is full, the page is read, and the next recall counts again."""
    storage = Unwritable()
    context = talked(3, storage=storage)
    context.archive(keep=0)
    storage.error = error

    assert "question 1" in json.dumps(context.recall_page(1))
    assert "question 2" in context.answer(call("c", "recall_page", {"index": 2}))["content"]

    assert [page.recall_count for page in context.pages()] == [0, 0, 0]
    storage.error = None
    context.recall_page(1)
    assert [page.recall_count for page in context.pages()] == [1, 0, 0]
