"""Changes contexts in Postgres.

    commit    one statement: WITH fenced AS (UPDATE … WHERE head = … AND revision = …), then all rows, if it was fenced
              one round trip, one transaction, no lasting lock; if another writer was first, it returns no row
    erase     a transaction: contexts are deleted, entries become tombstones, earlier compactions are deleted

A commit has a random number, and a record keeps those of its last commits: after a lost connection they show whether
the commit arrived.
"""

import secrets
import zlib
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, combinations
from typing import Any, Final

from ...errors import CorruptRecord
from ..columns import CALLS, COMPACTIONS, CONTEXTS, ENTRIES, OPS, PAGES, VIEWS, Columns, Row, joined, pack_tools
from ..protocol import ErasedRows, Erasure, Transition
from ..table_storage import Place
from ..validation import check_forks, check_revision, without_digests
from .rows import key_of, owner_key, read_row, unescape, write_row
from .schema import ROWS, type_of

Run = Callable[..., list[Row]]  # runs a statement with its values and returns its rows

PLACE = joined(Place._fields)
BY_KEY: Final = f"SELECT {PLACE} FROM our.context WHERE key = %s"
BY_NUMBER: Final = f"SELECT {PLACE} FROM our.context WHERE owner_key = %s AND number = %s"
_BY_KEY_LOCKED = BY_KEY + " FOR UPDATE"

_FIXED = ("id", "parent", "base")  # columns of a context that never change
_CHANGING = [name for name in CONTEXTS.names if name not in _FIXED]
_UPDATE = f"""
WITH fenced AS (
    UPDATE our.context SET {", ".join(f"{name} = %s" for name in _CHANGING)},
    tokens = (ARRAY[%s::bigint] || tokens)[1:16]
    WHERE owner_key = %s AND number = %s AND head = %s AND revision = %s RETURNING owner_key, number)"""
_INSERT = f"""
WITH parent AS MATERIALIZED (SELECT 1 FROM our.context WHERE key = %s AND head >= %s FOR KEY SHARE),
fenced AS (
    INSERT INTO our.context ({joined(CONTEXTS.names)}, tokens, owner_key, key, parent_key)
    SELECT {", ".join(["%s"] * len(CONTEXTS.names))}, ARRAY[%s::bigint], %s, %s, %s
    WHERE %s OR EXISTS (SELECT 1 FROM parent)
    ON CONFLICT DO NOTHING RETURNING owner_key, number)"""


class _Part:
    """The part of a statement that writes rows of one table: a list of values for each column.

    The driver remembers statements of up to 50 values, and an append with an op_id and the usage of its call has
    49, since the numbers of calls that are called *flat* are one list for all.
    """

    def __init__(
        self, columns: Columns[Any], *, replaces: bool = False, more: Sequence[str] = (), flat: Sequence[str] = ()
    ) -> None:
        table, names = columns.table, [*columns.names, *more]
        self._columns, self._width = columns, len(names)
        self._flat = [names.index(name) for name in flat]
        self._lists = [at for at, name in enumerate(names) if name not in flat]
        types = ["bytea" if name in more else type_of(table, name).partition(" ")[0] for name in names]
        lists = ", ".join(f"{'%b' if types[at] == 'bytea' else '%s'}::{types[at]}[]" for at in self._lists)
        given = [names[at] for at in self._lists]
        source = f"unnest({lists})"
        if flat:
            source = f"(SELECT %s::bigint[] AS flat) AS f, {source} WITH ORDINALITY"
            given.append("n")
        chosen = [
            f"flat[(n - 1) * {len(flat)} + {flat.index(name) + 1}]" if name in flat else f't."{name}"' for name in names
        ]
        self.text = f""",
new_{table.name} AS (
    INSERT INTO our.{table.name} (owner_key, number, {joined(names)})
    SELECT owner_key, number, {", ".join(chosen)} FROM fenced, {source} AS t ({joined(given)})"""
        if replaces:
            changed = ", ".join(f'"{name}" = excluded."{name}"' for name in names if name != table.key)
            self.text += f'\n    ON CONFLICT (owner_key, number, "{table.key}") DO UPDATE SET {changed}'
        self.text += ")"

    def values(self, context: str, rows: Iterable[Row], more: Sequence[object] = ()) -> list[object]:
        """Return the values for *rows* of *context*; *more*: those of one more column. O(characters)."""
        made = [write_row(self._columns, context, row) for row in rows]
        for row, value in zip(made, more, strict=False):
            row.append(value)
        flat = [[row[at] for row in made for at in self._flat]] if self._flat else []
        lists = [[*column] for column in zip(*made, strict=True)] or [[] for _ in range(self._width)]
        return [*flat, *(lists[at] for at in self._lists)]


_ENTRIES = _Part(ENTRIES)
_PAGES = _Part(PAGES, replaces=True)
_VIEWS = _Part(VIEWS, replaces=True)
_COMPACTIONS = _Part(COMPACTIONS, replaces=True)
_OPS = _Part(OPS, more=["op_key"])
_CALLS = _Part(CALLS, flat=["revision", "predicted", "input", "cached_read", "cached_written", "output"])
_TOOLS = """,
new_tools AS (
    INSERT INTO our.tools (owner_key, number, digest, text)
    SELECT owner_key, number, lists[n], lists[n + 1]
    FROM fenced, (SELECT %b::bytea[] AS lists) AS l, generate_series(1, cardinality(lists), 2) AS n
    ON CONFLICT DO NOTHING)"""
_DONE = """
SELECT number FROM fenced"""
_MORE = {
    "ops": _OPS.text,
    "calls": _CALLS.text,
    "tools": _TOOLS,
    "compaction": _VIEWS.text + _COMPACTIONS.text,
}
_COMMITS: Final = {
    (new, *more): (_INSERT if new else _UPDATE)
    + _ENTRIES.text
    + _PAGES.text
    + "".join(_MORE[each] for each in more)
    + _DONE
    for new in (False, True)
    for count in range(len(_MORE) + 1)
    for more in combinations(_MORE, count)
}
"""by whether the context is new, and the parts besides entries and pages"""

_OP_COLUMNS = joined(OPS.names)
SELECT_OP: Final = f"SELECT {_OP_COLUMNS} FROM our.op WHERE owner_key = %s AND number = %s AND op_key = %s"
_SELECT_OPS_BEFORE = f"SELECT {_OP_COLUMNS} FROM our.op WHERE owner_key = %s AND number = %s AND first <= %s"
_CLEAR_OP = "UPDATE our.op SET digest = %s, sum = %s WHERE owner_key = %s AND number = %s AND op_key = %s"
_SELECT_FORKS = "SELECT id FROM our.context WHERE parent_key = %s ORDER BY id"
_DELETE = {table: f"DELETE FROM our.{table} WHERE owner_key = %s AND number = %s RETURNING 1" for table in ROWS}
_MOVE = {table: f"UPDATE our.{table} SET owner_key = %s WHERE owner_key = %s AND number = %s" for table in ROWS}
_DELETE_VIEWS = "DELETE FROM our.view WHERE owner_key = %s AND number = %s AND seq = ANY(%s::bigint[])"
_DELETE_TICKETS = "DELETE FROM our.ticket WHERE key = %s"
_BURY = f"""
UPDATE our.entry SET {", ".join(f'"{name}" = %s' for name in ENTRIES.names[1:])}
WHERE owner_key = %s AND number = %s AND seq = %s RETURNING seq"""


def place_of(found: Sequence[Row]) -> Place:
    """Return the place in rows *found* by `BY_KEY` or `BY_NUMBER`."""
    place = Place(*next(iter(found), ()))
    return place._replace(parent=unescape(place.parent))


def apply(run_rows: Run, transition: Transition, place: Place, token: int) -> bool:
    """Write *transition* to the context at *place*, and return whether it follows what is stored. O(rows).

    It runs one statement, and one more for each table if the owner changes. It also returns False if the parent of
    a fork does not have its base.
    """
    record, context = transition.record, transition.record.id
    columns = dict(zip(CONTEXTS.names, write_row(CONTEXTS, "", record), strict=True))
    if place.number:
        after = owner_key(record.owner)
        if after != place.owner_key:
            for table in ROWS:
                run_rows(_MOVE[table], after, place.owner_key, place.number)
        values = [
            *(columns[name] for name in _CHANGING),
            token,
            after,
            place.number,
            transition.head,
            record.revision - 1,
        ]
    else:
        parent_key = None if record.parent is None else key_of(record.parent)
        values = [parent_key, record.base, *columns.values(), token, owner_key(record.owner), key_of(context)]
        values += [parent_key, record.parent is None]
    values += _ENTRIES.values(context, transition.entries)
    values += _PAGES.values(context, {page.index: page for page in transition.pages}.values())
    more = []
    if transition.ops:
        more.append("ops")
        values += _OPS.values(context, transition.ops, [key_of(op.op_id) for op in transition.ops])
    if transition.calls:
        calls, lists = pack_tools(transition.calls)
        more += ["calls", *(["tools"] if lists else [])]
        values += _CALLS.values(context, calls)
        values += [[*chain(*lists.items())]] if lists else []
    if transition.views or transition.compactions:
        more.append("compaction")
        values += _VIEWS.values(context, {view[0]: view for view in transition.views}.values())
        packed = [(*row[:-1], zlib.compress(row.text.encode())) for row in transition.compactions]
        values += _COMPACTIONS.values(context, {row[0]: row for row in packed}.values())
    return bool(run_rows(_COMMITS[(not place.number, *more)], *values))


def erase(run_rows: Run, erasure: Erasure) -> ErasedRows:
    """Remove what *erasure* names, and write its transitions. O(removed rows)."""
    gone = dict.fromkeys(ROWS, 0)
    places = _Places(run_rows)
    for context in sorted(erasure.contexts):  # sorted, so that two erasures can't deadlock
        places.of(context)
        run_rows(_DELETE_TICKETS, key_of(context))
        forks = run_rows(_SELECT_FORKS, key_of(context))
        check_forks(((unescape(fork), context) for (fork,) in forks), erasure.contexts)
    for context in erasure.contexts:
        at = places.of(context)
        for table in ROWS if at.number else ():
            gone[table] += len(run_rows(_DELETE[table], at.owner_key, at.number))
        places.forget(context)
    erased: set[tuple[int, int]] = set()
    for context, tombstone in erasure.entries:
        name, at = places.holder(context, tombstone.seq)
        columns = write_row(ENTRIES, name, tombstone)[1:]
        if not at.number or not run_rows(_BURY, *columns, at.owner_key, at.number, tombstone.seq):
            raise CorruptRecord(context, tombstone.seq, "it is missing")
        run_rows(_DELETE_VIEWS, at.owner_key, at.number, [tombstone.seq])
        erased.add((at.number, tombstone.seq))
        gone["entry"] += 1
    for transition in erasure.transitions:
        context = transition.record.id
        at = places.of(context)
        if at.number:
            gone["compaction"] += len(run_rows(_DELETE["compaction"], at.owner_key, at.number))
            gone["op"] += _clear_ops(run_rows, context, at, {seq for number, seq in erased if number == at.number})
            shown = [seq for number, seq in erased if places.holder(context, seq)[1].number == number]
            run_rows(_DELETE_VIEWS, at.owner_key, at.number, shown)
        check_revision(transition, at.head, at.revision)
        if not apply(run_rows, transition, at, secrets.randbits(63)):
            raise CorruptRecord(context, 0, "its record changed while it was locked")
    return ErasedRows(gone["context"], gone["entry"], gone["page"], gone["compaction"], gone["op"], scrubbed=False)


class _Places:
    """The places of contexts during an erasure; each context is locked when it is first used."""

    def __init__(self, run_rows: Run) -> None:
        self._run = run_rows
        self._known: dict[str, Place] = {}

    def of(self, context: str) -> Place:
        """Return the place of *context*. One statement, once."""
        if context not in self._known:
            run_rows = self._run
            self._known[context] = place_of(run_rows(_BY_KEY_LOCKED, key_of(context)))
        return self._known[context]

    def forget(self, context: str) -> None:
        """Treat *context* as missing."""
        self._known[context] = Place()

    def holder(self, context: str | None, seq: int) -> tuple[str, Place]:
        """Return the context that has entry *seq* of *context*: itself, or one that it was forked from."""
        while context is not None:
            at = self.of(context)
            if not at.number or seq >= at.head:
                break
            if seq >= at.base:
                return context, at
            context = at.parent
        return "", Place()


def _clear_ops(run_rows: Run, context: str, at: Place, seqs: set[int]) -> int:
    """Clear the digests of the ops of *context* that appended an entry of *seqs*; return how many. O(ops)."""
    if not seqs:
        return 0
    before = run_rows(_SELECT_OPS_BEFORE, at.owner_key, at.number, max(seqs))
    cleared = without_digests([read_row(OPS, context, context, row) for row in before], seqs)
    for op in cleared:
        run_rows(_CLEAR_OP, op.digest, write_row(OPS, context, op)[-1], at.owner_key, at.number, key_of(op.op_id))
    return len(cleared)
