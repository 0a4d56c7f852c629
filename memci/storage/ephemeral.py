"""Contexts in RAM: the tables of a SQLite store without a file, gone with the process."""

from collections.abc import Callable

from .audit import AuditLog
from .protocol import Sidecar
from .sqlite.connection import RAM
from .sqlite.store import SQLiteStorage


class EphemeralStorage(SQLiteStorage):
    """Keeps contexts in this process: for tests, and for agents whose contexts may end with them."""

    _in_ram = True

    def __init__(self) -> None:
        super().__init__(RAM)
        self.audit_log = AuditLog()

    def sidecar(self, release: Callable[[], None]) -> Sidecar:
        """Return a database in RAM, which is gone with the store."""
        return super().sidecar(release)._replace(path=RAM, shared=False)
