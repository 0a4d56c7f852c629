"""Where contexts are kept: the protocol, and the stores that come with the package.

    EphemeralStorage()              in RAM, gone with the process
    SQLiteStorage("agent.db")       one file, on disk when a call returns

This package knows nothing of tokens, windows or models.
"""

from .ephemeral import EphemeralStorage
from .protocol import Storage
from .sqlite import SQLiteStorage

__all__ = ["EphemeralStorage", "SQLiteStorage", "Storage"]
