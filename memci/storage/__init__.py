"""Where contexts are kept: the protocol, and the stores that come with the package.

    EphemeralStorage()              in RAM, gone with the process
    SQLiteStorage("agent.db")       one file, on disk when a call returns
    FilesystemStorage("agent/")     the same in a folder, with plain copies for an editor, grep and git; POSIX only
    PostgresStorage("postgresql://…")   a schema of a database, for many machines; needs memci[postgres]
    EncryptedStorage(store, key)    any of them, encrypted; needs memci[encryption]
    QuotaStorage(store, quota)      any of them, with a limit for each owner

This package knows nothing of tokens, windows or models.
"""

from typing import TYPE_CHECKING

from .ephemeral.store import EphemeralStorage
from .protocol import Storage
from .sqlite.store import SQLiteStorage

if TYPE_CHECKING:
    from .encrypted.store import EncryptedStorage
    from .filesystem.store import FilesystemStorage
    from .postgres.store import PostgresStorage
    from .quota import QuotaStorage

__all__ = [
    "EncryptedStorage",
    "EphemeralStorage",
    "FilesystemStorage",
    "PostgresStorage",
    "QuotaStorage",
    "SQLiteStorage",
    "Storage",
]


def __getattr__(name: str) -> object:
    if name == "EncryptedStorage":
        from .encrypted.store import EncryptedStorage

        return EncryptedStorage
    if name == "FilesystemStorage":
        from .filesystem.store import FilesystemStorage

        return FilesystemStorage
    if name == "PostgresStorage":
        from .postgres.store import PostgresStorage

        return PostgresStorage
    if name == "QuotaStorage":
        from .quota import QuotaStorage

        return QuotaStorage
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
