"""The tables of a SQLite store, made from the descriptions of rows (`memci.rows`).

    context      number  →  id, owner, head …, settings, state       one row per context
    entry        number << 40 | seq  →  …, body                      one run per context, and no other index
    view         number << 40 | seq  →  tokens, clip                 tokens and clip in this context, if other ones
    page         number << 32 | index  →  …                          the active ones in a partial index
    compaction   number << 40 | revision  →  head, turn, text        the window after it, compressed
    call         number << 40 | revision  →  …                       what a call of the model cost
    op           (number, op_id)  →  …
    tools        (number, digest)  →  text                           each list of tools, once
    ticket       number  →  context, token, …                        the queues for the locks

A file with other tables is refused and not changed.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import apsw

from ...errors import CorruptRecord, SchemaTooNew, StorageReadOnly, StorageUnavailable
from ...rows import CALL, COMPACTION, CONTEXT, ENTRY, OP, PAGE, TICKET, VIEW, PageState, Table
from ..columns import Row
from .loss import SAVE, is_witnessed
from .write import transaction

APPLICATION_ID: Final = int.from_bytes(b"memc", "big")
SCHEMA_VERSION: Final = 1

_TYPES: Final = {int: "INTEGER", PageState: "INTEGER", float: "REAL", str: "TEXT", bytes: "BLOB", tuple: "TEXT"}
_KEYED: Final = (ENTRY, VIEW, PAGE, COMPACTION, CALL)  # tables whose key is one integer


def sql_file(module: str, name: str) -> str:
    """Return the statements in the file *name*, which is beside the file of *module*."""
    return Path(module).with_name(name).read_text("ascii")


def _columns(table: Table, leave_out: Sequence[str] = ()) -> str:
    """Return the definitions of the columns of *table*, those that are large at the end: they are read last."""
    late = (*table.apart, *table.sealed)
    small, large = [], {}
    for name, kind, nullable in table.fields:
        column = f'"{name}" {"BLOB" if name in table.packed else _TYPES[kind]}{"" if nullable else " NOT NULL"}'
        if name in late:
            large[name] = column
        elif name not in leave_out:
            small.append(column)
    check_sum = [] if table is TICKET else ["sum INTEGER NOT NULL"]
    return ", ".join([*small, *check_sum, *(large[name] for name in dict.fromkeys(late))])


_TABLES: Final = {
    "context": f"CREATE TABLE context (number INTEGER PRIMARY KEY, {_columns(CONTEXT)}, UNIQUE (id)) STRICT",
    "op": f"CREATE TABLE op (number INTEGER NOT NULL, {_columns(OP)}, "
    "PRIMARY KEY (number, op_id)) STRICT, WITHOUT ROWID",
    "tools": "CREATE TABLE tools (number INTEGER NOT NULL, digest BLOB NOT NULL, text BLOB NOT NULL, "
    "PRIMARY KEY (number, digest)) STRICT, WITHOUT ROWID",
    "ticket": f"CREATE TABLE ticket (number INTEGER PRIMARY KEY, {_columns(TICKET)}) STRICT",
    "context_parent": "CREATE INDEX context_parent ON context (parent) WHERE parent IS NOT NULL",
    "ticket_context": "CREATE INDEX ticket_context ON ticket (context)",
    **{
        table.name: f"CREATE TABLE {table.name} (key INTEGER PRIMARY KEY, {_columns(table, [table.key])}) STRICT"
        for table in _KEYED
    },
    "page_active": f"CREATE INDEX page_active ON page (key) WHERE state = {int(PageState.ACTIVE)}",
}
_MAKE: Final = (
    ";\n".join(_TABLES.values())
    + f"; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION};"
)
_SELECT_VERSION = """
SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)
FROM pragma_application_id, pragma_user_version"""
"""one statement, since another process may be making the tables"""
_SELECT_TABLES = "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL"


def prepare(connection: apsw.Connection, path: str, *, writable: bool) -> None:
    """Make the tables if *path* has none.

    It raises as `version`, and StorageReadOnly if the tables are missing and nothing can be written.
    """
    if version(connection, path):
        return
    if not writable:
        raise StorageReadOnly(f"{path!r} is empty: open it once for writing, then read it")
    with transaction(connection):
        if not version(connection, path):  # another process may have been first
            connection.execute(_MAKE)


def version(connection: apsw.Connection, path: str) -> int:
    """Return the number of the schema, 0 for an empty file.

    Raises:
        SchemaTooNew: If a later memci wrote the file.
        StorageUnavailable: If an earlier memci or another program wrote it.
        CorruptRecord: If the definition of a table is damaged, or the number that says whose file it is.
    """
    row: list[Row] = connection.execute(_SELECT_VERSION).fetchall()
    application, found, tables = row[0]
    if not (application or found or tables):
        return 0
    if application != APPLICATION_ID:
        if is_witnessed(path):
            raise CorruptRecord("", 0, f"{path!r} is damaged where it begins: {SAVE}")
        raise StorageUnavailable(f"{path!r} is a SQLite file of another program: name another file")
    if found > SCHEMA_VERSION:
        reason = f"its schema is {found}, this one knows {SCHEMA_VERSION}"
        raise SchemaTooNew(f"a later memci wrote {path!r}: {reason}: install a later memci")
    try:
        definitions: list[Row] = connection.execute(_SELECT_TABLES).fetchall()
    except UnicodeDecodeError as error:
        raise CorruptRecord("", 0, f"{path!r} is damaged: the definition of a table is not UTF-8") from error
    there: dict[str, str] = dict(definitions)
    if found < SCHEMA_VERSION or any(there.get(name) != sql for name, sql in _TABLES.items()):
        advice = "export its contexts with the version that wrote it, and import them into a new file"
        raise StorageUnavailable(f"{path!r} is of an earlier memci, which has other tables: {advice}")
    return int(found)
