"""What an operating system may lack: flags for opening files, reads at an offset, locks, folders that can be synced.

Linux and macOS have all of them. Without reads at an offset, as on Windows, a SQLite store has no witness, and its log
is not compared with it: SQLite checks its log itself.
"""

import os
import random
from contextlib import suppress
from time import monotonic, sleep
from typing import Final

with suppress(ImportError):  # not on Windows
    import fcntl

PRIVATE: Final = getattr(os, "O_CLOEXEC", 0)  # child processes do not inherit the file
PLAIN: Final = (
    PRIVATE | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
)  # no link is followed, no pipe waited
BYTES: Final = getattr(os, "O_BINARY", 0)  # Windows would change the ends of lines
READS_AT: Final = hasattr(os, "pread") and hasattr(os, "pwrite")


def sync_folder(path: str) -> None:
    """Sync the folder of the file *path*, so that a power cut keeps its name; Windows does that itself."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    folder = os.open(os.path.dirname(path), os.O_RDONLY)  # noqa: PTH120
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def lock_file(file: int, seconds: float, *, shared: bool = False) -> bool:
    """Lock an open file, alone or *shared*; return False if another process held it for *seconds*."""
    until = monotonic() + seconds
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
            return True
        if monotonic() >= until:
            return False
        sleep(random.uniform(0.001, 0.02))  # noqa: S311 -- waiting, no secret


def unlock_file(file: int) -> None:
    """Release the lock of an open file. Closing it alone would leave the lock to a child process."""
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_UN)
