"""Plain files under many threads, handles and processes."""

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from io import FileIO
from pathlib import Path

import pytest

from memci.errors import HandlePoisoned, StorageBusy
from memci.storage import FilesystemStorage
from memci.storage.filesystem.context_file import folder_name
from memci.storage.filesystem.locks import Locks
from memci.storage.locks import hold
from memci.testing.storage.rows import append, appended, current


def test_held_context_is_busy(storage: FilesystemStorage, path: Path) -> None:
    """While another process writes a context, a write to it is StorageBusy; reading and other contexts go on."""
    append(storage, "a", b"1")
    transition = appended(current(storage, "a"), b"2")
    lock = Locks(storage._files, 5).held([folder_name("a")])
    child = dozing(lambda: lock.__enter__() is None)
    try:
        with pytest.raises(StorageBusy) as caught:
            storage.commit(transition)

        assert caught.value.retryable
        assert [row.body for row in storage.entries("a")] == [b"1"]
        append(storage, "b", b"1")
    finally:
        end(child)
    assert storage.commit(transition) is None


def test_lock_that_an_exception_left_behind_is_given_back(storage: FilesystemStorage) -> None:
    """A Ctrl-C while a lock is given back leaves it held: the next call of the handle gives it back."""
    append(storage, "a", b"1")
    left = FileIO(storage._files.open_lock(f"locks/{folder_name('a')}.lock"))
    fcntl.flock(left, fcntl.LOCK_EX)
    storage._locks._held.append(left)

    append(storage, "a", b"2")

    assert len(list(storage.entries("a"))) == 2
    assert left.closed


def dozing(begin: Callable[[], object]) -> int:
    """A process that has begun something and then sleeps, until it is killed."""
    ready, tell = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(20)
            kept = begin()
            os.write(tell, b"x" if kept else b"")
            signal.pause()
        finally:
            os._exit(1)
    os.close(tell)
    with os.fdopen(ready, "rb") as told:
        assert told.read(1) == b"x"
    return child


def end(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_lock_is_released_when_its_holder_dies(storage: FilesystemStorage, path: Path) -> None:
    """A lock is exclusive among processes, and a killed one does not keep it."""
    child = dozing(lambda: hold(FilesystemStorage(path), "a", 1))
    try:
        with pytest.raises(StorageBusy):
            hold(storage, "a", 0)
        hold(storage, "b", 0).release()
    finally:
        end(child)

    hold(storage, "a", 1).release()


def test_handle_is_of_no_use_after_a_fork(storage: FilesystemStorage) -> None:
    """A child process is told to open the store again, and its parent goes on."""
    append(storage, "a", b"1")
    child = os.fork()
    if child == 0:
        try:
            append(storage, "a", b"2")
        except HandlePoisoned:
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)

    append(storage, "a", b"3")

    assert status == 0
    assert [row.body for row in storage.entries("a")] == [b"1", b"3"]


def test_processes_may_make_the_folder_at_once(path: Path) -> None:
    """Processes that open a new folder and write at once all succeed."""
    program = (
        "import sys; from memci.storage import FilesystemStorage; from memci.testing.storage.rows import append\n"
        "sys.stdin.read(1)\n"
        "storage = FilesystemStorage(sys.argv[1], busy_timeout_seconds=20)\n"
        "for i in range(3): append(storage, sys.argv[2], b'%d' % i)"
    )
    command = [sys.executable, "-c", program, path]
    children = [subprocess.Popen([*command, f"p{i}"], stdin=subprocess.PIPE) for i in range(4)]
    for child in children:
        assert child.stdin is not None
        child.stdin.close()

    assert [child.wait() for child in children] == [0] * 4
    storage = FilesystemStorage(path)
    assert [record.head for record in storage.contexts()] == [3] * 4
    storage.close()
