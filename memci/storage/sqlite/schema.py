"""The tables of a SQLite store, and how those of an earlier memci become them.

    context   nr id owner settings state head … parent base      one row per context
    compaction   nr << 40 | revision  →  head, turn, text           how the window stood, compressed
    entry     nr << 40 | seq  →  …, body                         one clustered run per context, no index
    view      nr << 40 | seq  →  tokens, clip                    what a context shows of an entry, if not as appended
    page      nr << 32 | index  →  …                             the active ones in a partial index
    op        (nr, op_id)  →  …
    call      nr << 40 | revision  →  …                          what a call of the model cost
    tools     (nr, digest)  →  text                              each list of tools, once
    ticket    number  →  context, token, …                       the queues for the locks; gone when a lock is released

Each row carries a `crc` of its small columns, and an entry the digest of its body: a flipped bit is found when read.

A file of an earlier version is brought up to date when it is opened for writing: in one transaction, by the
first opener, and no row of an entry is touched. No copy is made before: a copy would outlive what is erased later.

This module knows nothing of transitions.
"""

import zlib
from contextlib import suppress
from pathlib import Path
from typing import Final

import apsw

from ...errors import SchemaTooNew, StorageReadOnly, StorageUnavailable
from ..validation import compaction_crc, crc
from .rows import Row
from .write import begin

APPLICATION_ID: Final = int.from_bytes(b"memc", "big")
SCHEMA_VERSION: Final = 4


def sql_file(module: str, name: str) -> str:
    """Return the statements in the file *name*, which is beside the file of *module*."""
    return Path(module).with_name(name).read_text("ascii")


_TABLES: Final = sql_file(__file__, "tables.sql")
_FROM_1: Final = sql_file(__file__, "from_1.sql")
_FROM_2: Final = sql_file(__file__, "from_2.sql")
_FROM_3: Final = sql_file(__file__, "from_3.sql")
_NUMBERS: Final = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION};"
_SELECT_VERSION = """
SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)
FROM pragma_application_id, pragma_user_version"""
"""in one statement: another process may be making the tables just now"""


def prepare(connection: apsw.Connection, path: str, *, writable: bool) -> None:
    """Make the tables if *path* has none, and bring those of an earlier version up to date. O(contexts) then.

    It raises as `version`, and StorageReadOnly if something has to be written and can't be.
    """
    if version(connection, path) == SCHEMA_VERSION:
        return
    if not writable:
        raise StorageReadOnly(f"{path!r} is empty, or of an earlier memci: open it once for writing, then read it")
    try:
        begin(connection)
        found = version(connection, path)  # another process may have been first
        if not found:
            connection.execute(_TABLES + _NUMBERS)
        elif found < SCHEMA_VERSION:
            if found == 1:
                _migrate_1(connection)
            connection.execute((_FROM_2 if found < 3 else "") + _FROM_3 + _NUMBERS)
        connection.execute("COMMIT")
    except BaseException:
        with suppress(apsw.SQLError):  # a full disk may have rolled it back meanwhile
            connection.execute("ROLLBACK")
        raise


def version(connection: apsw.Connection, path: str) -> int:
    """Return the schema's version, 0 for an empty file.

    SchemaTooNew if a later memci wrote it, StorageUnavailable if another program did.
    """
    row: list[Row] = connection.execute(_SELECT_VERSION).fetchall()
    application, found, tables = row[0]
    if application == APPLICATION_ID:
        if not 1 <= found <= SCHEMA_VERSION:
            raise SchemaTooNew(
                f"a later memci wrote {path!r}: its schema is {found}, this one knows up to {SCHEMA_VERSION}"
            )
        return int(found)
    if application or found or tables:
        raise StorageUnavailable(f"{path!r} is a SQLite file of another program: name another file")
    return 0


def _migrate_1(connection: apsw.Connection) -> None:
    """From version 1: compactions are kept beside one another, views apart from entries, and contexts may be forks."""
    connection.execute(_FROM_1)
    contexts: list[Row] = connection.execute(
        "SELECT nr, id, owner, settings, state, head, next_page, turn, open_page, revision, crc FROM context"
    ).fetchall()
    for nr, *columns, written in contexts:
        if crc(*columns) == written:  # a damaged row stays damaged: reading it says so
            connection.execute("UPDATE context SET crc = ? WHERE nr = ?", (crc(*columns, None, 0), nr))
        head, turn, revision = columns[4], columns[6], columns[8]
        compactions: list[Row] = connection.execute("SELECT text, crc FROM edition_1 WHERE nr = ?", (nr,)).fetchall()
        for text, text_crc in compactions:
            key, packed = nr << 40 | revision, zlib.compress(text.encode())
            kept = compaction_crc(key, head, turn, packed) ^ crc(text) ^ text_crc  # the same: damage stays damage
            connection.execute("INSERT INTO edition VALUES (?, ?, ?, ?, ?)", (key, head, turn, kept, packed))
    connection.execute("DROP TABLE edition_1")
