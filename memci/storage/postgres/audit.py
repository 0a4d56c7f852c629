"""The audit log of a store in Postgres: a table of lines, each written in its own transaction."""

from ...errors import StorageReadOnly
from ..audit import AuditLog
from .database import Database

_ADD_LINE = "INSERT INTO our.audit (line) VALUES (%s)"
_SELECT_LINES = "SELECT line FROM our.audit ORDER BY number"


class AuditTable(AuditLog):
    """An audit log as a table of the store."""

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database

    def _write(self, line: bytes) -> None:
        try:
            self._database.read_rows(_ADD_LINE, line.decode())  # also logs the exports of a read-only store
        except StorageReadOnly:
            if not self._database.read_only:
                raise

    def _read(self) -> list[bytes]:
        return [line.encode() for (line,) in self._database.read_rows(_SELECT_LINES)]
