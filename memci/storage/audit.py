"""The audit log of a store: a line of JSON for each rare action, without any text of a message.

    agent.db-audit        {"at":"2026-11-22T16:08:42+00:00","action":"erase","context":"9f3c…","owner":"07ab…","page":2}
    agent/audit.jsonl     {"at":…,"action":"owner","context":"9f3c…","owner":"55d1…","before":"07ab…"}

Actions: erase, import, export, quarantine, owner (another one), lock (taken over from a holder that is gone). Lines
are only added. Each is synced before its action begins, so the log also has actions that failed. Contexts and owners
are named by digests (`mark`): an erased name is not left in the log, but its lines can be found by the name.
"""

import errno
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from ..errors import CorruptRecord, StorageFull, StorageUnavailable
from .system import BYTES, PLAIN
from .validation import FULL

_NAMES = frozenset({"context", "owner", "before"})


def mark(name: str) -> str:
    """Return the digest that replaces the *name* of a context or an owner: 16 hexadecimal digits."""
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


class AuditLog:
    """Lines in the file *path*, which the first line creates; None: in RAM.

    If the store is *read_only*, exports are logged only if the file can be written.
    """

    def __init__(self, path: str | None = None, *, read_only: bool = False) -> None:
        self._path = path
        self._read_only = read_only
        self._lines: list[bytes] = []
        self.looked = False
        """whether this handle has looked for erasures that a kill left unfinished"""

    def add(self, action: str, **facts: str | int | None) -> None:
        """Add a line with the current time, and sync it. Facts that are None are left out.

        Raises:
            StorageFull: If the disk is full.
            StorageUnavailable: If the line can't be written.
        """
        known = {
            name: mark(value) if name in _NAMES and isinstance(value, str) else value
            for name, value in facts.items()
            if value is not None
        }
        line = json.dumps({"at": datetime.now(UTC).isoformat(timespec="seconds"), "action": action, **known})
        self._write(line.encode())

    def _write(self, line: bytes) -> None:
        if self._path is None:
            self._lines.append(line)
            return
        try:
            file = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | PLAIN | BYTES, 0o600)
            try:
                size = os.fstat(file).st_size
                os.lseek(file, max(0, size - 1), os.SEEK_SET)
                torn = size and os.read(file, 1) != b"\n"  # a crash left the last line unfinished
                content = b"\n" * bool(torn) + line + b"\n"
                if os.write(file, content) < len(content):
                    os.ftruncate(file, size)
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(file)
            finally:
                os.close(file)
        except OSError as error:
            if error.errno in FULL:
                raise StorageFull(
                    f"no space is left for the audit log {self._path!r}: free some and try again"
                ) from error
            if not (self._read_only and error.errno in {errno.EROFS, errno.EACCES, errno.EPERM}):
                raise StorageUnavailable(f"the audit log {self._path!r} can't be written: {error}") from error

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the lines, oldest first. Raise CorruptRecord at a line that is not whole."""
        for number, line in enumerate(self._read(), 1):
            try:
                yield dict(json.loads(line))
            except (ValueError, TypeError):
                raise CorruptRecord("audit", number, "the line of the audit log is not whole") from None

    def with_field(self, name: str) -> Iterator[dict[str, Any]]:
        """Yield the lines that have the field *name*, oldest first, without those that are not whole. O(log)."""
        for line in self._read():
            if f'"{name}":'.encode() in line:
                with suppress(ValueError, TypeError):
                    yield dict(json.loads(line))

    def _read(self) -> list[bytes]:
        try:
            return self._lines if self._path is None else Path(self._path).read_bytes().splitlines()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StorageUnavailable(f"the audit log {self._path!r} can't be read: {error}") from error


@runtime_checkable
class AuditedStorage(Protocol):
    """Optional: a store that keeps an audit log."""

    audit_log: AuditLog


def audit(storage: object, action: str, **facts: str | int | None) -> None:
    """Add a line to the audit log of *storage*, if it has one. If this raises, the *action* must not begin."""
    if isinstance(storage, AuditedStorage):
        storage.audit_log.add(action, **facts)
