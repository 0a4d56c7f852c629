"""Opens a store by its place: a path or a URL, as a user types it.

    agent.db                      one SQLite file
    agent/                        a folder: an existing one, or a name that ends in /
    postgresql://ada@db/agents    a schema of a Postgres database

    MEMCI_KEY         the key of encrypted stores: 64 hexadecimal digits; or several, of which the first one encrypts
    MEMCI_KEY_FILE    a file that holds them

If the environment has a key, encrypted stores and new ones are opened with it. A plain store is then opened for reading
only: otherwise a plain context that an attacker puts into a store would make all later messages plain.
"""

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeGuard
from urllib.parse import urlsplit

from ..errors import CorruptRecord, InvalidSetting
from ..rows import ContextRecord
from .protocol import Storage
from .sqlite.store import SQLiteStorage

_VALUE: Final = "MEMCI_KEY"
_FILE: Final = "MEMCI_KEY_FILE"


def open_store(place: str | os.PathLike[str], *, read_only: bool = False) -> Storage:
    """Return the store at *place*; it is made if there is none, unless *read_only*.

    Raises:
        InvalidSetting: If *place* or a key of the environment makes no sense, or needs a package that is not installed;
            or if there is a key, and the store, which may be written, has contexts that are not encrypted.
        KeyMissing: If it is encrypted, and the environment has no key.
        StorageError: If it can't be opened.
    """
    keys = _keys()
    storage = open_plain(place, read_only=read_only)
    try:
        first: Sequence[ContextRecord] = ()
        with suppress(CorruptRecord):  # reading that context raises it
            first = storage.contexts(limit=1)
        plain = bool(first) and not first[0].encrypted
        if plain and (keys is None or read_only):
            return storage
        if keys is None:
            for record in first:
                record.read_settings()  # raises KeyMissing, which names the key
            return storage
        from .encrypted.store import EncryptedStorage

        encrypted = EncryptedStorage(storage, keys)
        if plain:
            encrypted.contexts(limit=1)  # raises InvalidSetting, which names the plain context
    except BaseException:
        storage.close()
        raise
    return encrypted


def open_plain(place: str | os.PathLike[str], *, read_only: bool = False) -> Storage:
    """Return the store at *place* as it is, whether it is encrypted or not. It raises as `open_store`."""
    if not os.fspath(place):
        raise InvalidSetting("store", "expected a path or a URL, got an empty one")
    if is_url(place):
        from .postgres.store import PostgresStorage

        return PostgresStorage(place, read_only=read_only)
    if isinstance(place, str) and (scheme := re.match(r"([A-Za-z][\w+.-]+):/", place)):
        known = "a SQLite file is opened by its path, Postgres as postgresql://user@host/database"
        raise InvalidSetting("store", f"no store has the URL {scheme[1]!r:.30}://…: {known}")
    if is_folder(place):
        from .filesystem.store import FilesystemStorage

        return FilesystemStorage(place, read_only=read_only)
    return SQLiteStorage(place, read_only=read_only)


def is_url(place: str | os.PathLike[str]) -> TypeGuard[str]:
    """Return whether *place* is the URL of a database."""
    return isinstance(place, str) and place.startswith(("postgresql://", "postgres://"))


def is_folder(place: str | os.PathLike[str]) -> bool:
    """Return whether the store at *place* is, or would become, a folder."""
    return not is_url(place) and (Path(place).is_dir() or str(place).endswith(("/", os.sep)))


def name_of(place: str) -> str:
    """Return a short name of the store at *place*: of a file, a folder, or a database without user and password."""
    if not is_url(place):
        return Path(place).name
    return urlsplit(place).path.strip("/") or "postgresql"


def _keys() -> Sequence[bytes] | None:
    """Return the keys of the environment, or None."""
    value, path = os.environ.get(_VALUE), os.environ.get(_FILE)
    if not value and not path:
        return None
    if value and path:
        raise InvalidSetting(_FILE, f"{_VALUE} is set, too: set one of them")
    name = _FILE if path else _VALUE
    try:
        words = (Path(path).read_text("ascii") if path else value or "").split()
    except (OSError, ValueError) as error:
        raise InvalidSetting(name, f"the key can't be read: {type(error).__name__}") from None
    if not words or any(len(word) != 64 or not set(word) <= set("0123456789abcdefABCDEF") for word in words):
        raise InvalidSetting(name, "expected 64 hexadecimal digits, as from secrets.token_hex(32)")
    return [bytes.fromhex(word) for word in words]
