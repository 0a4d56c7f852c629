"""Where contexts are kept: the protocol, and the stores that come with the package.

EphemeralStorage()              in RAM, gone with the process
SQLiteStorage("agent.db")       one file, on disk when a call returns
FilesystemStorage("agent/")     the same in a folder, with plain copies for an editor, grep and git; POSIX only
PostgresStorage("postgresql://…")   a schema of a database, for many machines; needs memci[postgres]
EncryptedStorage(store, key)    any of them, encrypted; needs memci[encryption]
QuotaStorage(store, quota)      any of them, with a limit for each owner
"""

from importlib import import_module
from typing import TYPE_CHECKING

from .ephemeral import EphemeralStorage as EphemeralStorage
from .protocol import Storage as Storage
from .sqlite.store import SQLiteStorage as SQLiteStorage

if TYPE_CHECKING:
    from .encrypted.store import EncryptedStorage as EncryptedStorage
    from .filesystem.store import FilesystemStorage as FilesystemStorage
    from .postgres.store import PostgresStorage as PostgresStorage
    from .quota import QuotaStorage as QuotaStorage

_LATER = {
    "EncryptedStorage": ".encrypted.store",
    "FilesystemStorage": ".filesystem.store",
    "PostgresStorage": ".postgres.store",
    "QuotaStorage": ".quota",
}


def __getattr__(name: str) -> object:
    """Load on first use what needs a package, or POSIX."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name], __name__), name)
