"""Locks on the files of a folder: one holder at a time, among threads and processes.

    with locked(files, ["store", "0f3a…"], 5.0): …      in this order, each waited for

A lock is a file of its own in locks/, empty, and never removed: one that another process waits for would let two in.
The operating system gives it back when its holder dies.

This module knows nothing of what is done under a lock.
"""

import fcntl
import os
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from ..errors import StorageBusy
from .filesystem_files import Files

LOCKS = "locks"
STORE = "store"
"""the lock of whoever changes several contexts at once; it is taken before theirs"""


@contextmanager
def locked(files: Files, names: Sequence[str], seconds: float) -> Iterator[None]:
    """Hold the locks *names*, taken in this order.

    Raises:
        StorageBusy: If another one has held one of them for *seconds*.
    """
    files.make_folder(LOCKS)
    held: list[int] = []
    try:
        for name in names:
            held.append(files.open_lock(f"{LOCKS}/{name}.lock"))
            _wait(held[-1], seconds, f"another one has held {files.path!r} for {seconds:g} s: try again later")
        yield
    finally:
        for file in reversed(held):
            _let_go(file)


@contextmanager
def locked_whole(path: str, seconds: float) -> Iterator[None]:
    """Hold the folder itself, which needs no file in it: for whoever makes it a store."""
    file = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _wait(file, seconds, f"another process makes {path!r} a store: try again later")
        yield
    finally:
        _let_go(file)


def _let_go(file: int) -> None:
    # Closing alone would leave it to a child that was forked meanwhile.
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_UN)
    os.close(file)


def _wait(file: int, seconds: float, message: str) -> None:
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
