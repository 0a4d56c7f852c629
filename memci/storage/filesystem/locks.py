"""Locks on the files of a folder: one holder at a time, among threads and processes.

    with locks.held(["store", "0f3a…"], 5.0): …      in this order, each waited for

A lock is a file of its own in locks/, empty, and never removed: one that another process waits for would let two in.
The operating system gives it back when its holder dies. An exception that strikes while one is given back (a Ctrl-C)
can leave it held: then the next call of this handle gives it back, or the one that drops the last reference to it.

This module knows nothing of what is done under a lock.
"""

import fcntl
import os
import random
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import FileIO

from ...errors import StorageBusy
from .files import Files

LOCKS = "locks"
STORE = "store"
"""the lock for changing several contexts at once; it is taken before theirs"""


class Locks:
    """The locks that one handle holds: those of one of its threads at a time."""

    def __init__(self, files: Files, seconds: float) -> None:
        self._files = files
        self._seconds = seconds
        self._mutex = threading.Lock()
        self._held: list[FileIO] = []

    @contextmanager
    def held(self, names: Sequence[str]) -> Iterator[None]:
        """Hold the locks *names*, taken in this order.

        Raises:
            StorageBusy: If another one has held one of them for as long as this handle waits.
        """
        with self._mutex:
            self._let_go(0)  # what an exception left behind
            self._files.make_folder(LOCKS)
            with self.more(names):
                yield

    @contextmanager
    def more(self, names: Sequence[str]) -> Iterator[None]:
        """Hold the locks *names* too, within `held`."""
        before = len(self._held)
        try:
            for name in names:
                self._held.append(FileIO(self._files.open_lock(f"{LOCKS}/{name}.lock")))
                message = f"another one has held {self._files.path!r} for {self._seconds:g} s: try again later"
                _wait(self._held[-1], self._seconds, message)
            yield
        finally:
            self._let_go(before)

    def _let_go(self, before: int) -> None:
        while len(self._held) > before:
            with suppress(OSError, ValueError):  # closing alone would leave it to a child that was forked meanwhile
                fcntl.flock(self._held[-1], fcntl.LOCK_UN)
            self._held[-1].close()
            self._held.pop()


@contextmanager
def locked_whole(path: str, seconds: float) -> Iterator[None]:
    """Hold the folder itself, which needs no file in it."""
    file = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _wait(file, seconds, f"another process writes in {path!r}: try again later")
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_UN)
        os.close(file)


def _wait(file: FileIO | int, seconds: float, message: str) -> None:
    end, pause = time.monotonic() + seconds, 0.000_5
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            left = end - time.monotonic()
            if left <= 0:
                raise StorageBusy(message) from None
            time.sleep(min(left, pause * (0.5 + random.random())))  # noqa: S311 -- waiting, no secret
            pause = min(pause * 1.5, 0.02)
        else:
            return
