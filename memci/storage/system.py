"""What an operating system may lack: flags for opening files, reads at an offset, folders that can be synced.

Linux and macOS have all of them. Without reads at an offset, as on Windows, a SQLite store has no witness, and its log
is not compared with it: SQLite checks its log itself.
"""

import os
from typing import Final

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
