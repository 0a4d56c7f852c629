"""The changes of a context in Postgres, as statements.

    commit    one statement: WITH fenced AS (UPDATE … WHERE head = … AND revision = …), then all rows, if it was fenced
              one round trip, one transaction, no lock that outlives it; another writer was first ──▶ no row comes back
    erase     a transaction: contexts go whole, entries become tombstones, compactions before go

A commit has a random number, and a record the numbers of its last commits: after a lost connection they say whether
the commit arrived. This module knows nothing of connections.
"""

import zlib
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import Any, Final

import orjson

from ...errors import CorruptRecord
from ..codec import ORJSON, digest
from ..protocol import ErasedRows, Erasure, Transition
from ..validation import (
    all_calls,
    all_compactions,
    all_ops,
    check_forks,
    crc,
    without_digests,
)
from .rows import (
    Row,
    call_crc,
    entry_crc,
    escaped,
    key_of,
    op_crc,
    owner_key,
    packed_crc,
    page_crc,
    plain,
    read_op,
    record_crc,
)

Run = Callable[..., list[Row]]
"""runs a statement with its values, and returns its rows"""

PLACE = "owner_key, nr, parent, base, head, revision, tokens"
BY_KEY: Final = f"SELECT {PLACE} FROM our.context WHERE key = %s"
BY_NUMBER: Final = f"SELECT {PLACE} FROM our.context WHERE owner_key = %s AND nr = %s"
_BY_KEY_LOCKED = BY_KEY + " FOR UPDATE"

_UPDATE = """
WITH fenced AS (
    UPDATE our.context SET owner = %s, settings = %s, state = %s, head = %s, next_page = %s, turn = %s,
    open_page = %s, revision = %s, tokens = (ARRAY[%s::bigint] || tokens)[1:16], crc = %s
    WHERE owner_key = %s AND nr = %s AND head = %s AND revision = %s RETURNING owner_key, nr)"""
_INSERT = """
WITH parent AS MATERIALIZED (SELECT 1 FROM our.context WHERE key = %s AND head >= %s FOR KEY SHARE),
fenced AS (
    INSERT INTO our.context (owner, settings, state, head, next_page, turn, open_page, revision, tokens, crc,
    owner_key, key, id, parent, parent_key, base)
    SELECT %s, %s, %s, %s, %s, %s, %s, %s, ARRAY[%s::bigint], %s, %s, %s, %s, %s, %s, %s
    WHERE %s OR EXISTS (SELECT 1 FROM parent)
    ON CONFLICT DO NOTHING RETURNING owner_key, nr)"""
_TURN = """,
entries AS (
    INSERT INTO our.entry (owner_key, nr, seq, tokens, clip, quotes_page, quotes_entry, crc, codec, digest, at, body)
    SELECT owner_key, nr, t.* FROM fenced, unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[],
    %s::bigint[], %s::bigint[], %s::smallint[], %b::bytea[], %s::text[], %b::bytea[]) AS t),
pages AS (
    INSERT INTO our.page (owner_key, nr, index, first_seq, end_seq, turn, state, cut, continues, archived_turn,
    recall_count, last_recalled_turn, crc)
    SELECT owner_key, nr, t.* FROM fenced, unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[],
    %s::smallint[], %s::text[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[]) AS t
    ON CONFLICT (owner_key, nr, index) DO UPDATE SET first_seq = excluded.first_seq, end_seq = excluded.end_seq,
    turn = excluded.turn, state = excluded.state, cut = excluded.cut, continues = excluded.continues,
    archived_turn = excluded.archived_turn, recall_count = excluded.recall_count,
    last_recalled_turn = excluded.last_recalled_turn, crc = excluded.crc)"""
_OPS = """,
ops AS (
    INSERT INTO our.op (owner_key, nr, op_key, first_seq, crc, digest, op_id, entries)
    SELECT owner_key, nr, t.* FROM fenced, unnest(%b::bytea[], %s::bigint[], %s::bigint[], %b::bytea[], %s::text[],
    %s::text[]) AS t)"""
_CALLS = """,
calls AS (
    INSERT INTO our.call (owner_key, nr, revision, seq, turn, predicted, input, cached_read, cached_written, output,
    crc, at, model, tools)
    SELECT owner_key, nr, revision, seq, turn, tokens[n * 5 - 4], tokens[n * 5 - 3], tokens[n * 5 - 2],
    tokens[n * 5 - 1], tokens[n * 5], crc, at, model, tools
    FROM fenced, (SELECT %s::bigint[] AS tokens) AS c, unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[],
    %s::text[], %s::text[], %b::bytea[]) WITH ORDINALITY AS t (revision, seq, turn, crc, at, model, tools, n))"""
_TOOLS = """,
tools AS (
    INSERT INTO our.tools (owner_key, nr, digest, text)
    SELECT owner_key, nr, lists[n], lists[n + 1]
    FROM fenced, (SELECT %b::bytea[] AS lists) AS l, generate_series(1, cardinality(lists), 2) AS n
    ON CONFLICT DO NOTHING)"""
_EDIT = """,
views AS (
    INSERT INTO our.view (owner_key, nr, seq, tokens, clip, crc)
    SELECT owner_key, nr, t.* FROM fenced, unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[]) AS t
    ON CONFLICT (owner_key, nr, seq) DO UPDATE SET tokens = excluded.tokens, clip = excluded.clip, crc = excluded.crc),
compactions AS (
    INSERT INTO our.compaction (owner_key, nr, revision, head, turn, crc, packed)
    SELECT owner_key, nr, t.* FROM fenced, unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[],
    %b::bytea[]) AS t
    ON CONFLICT (owner_key, nr, revision) DO UPDATE SET head = excluded.head, turn = excluded.turn,
    crc = excluded.crc, packed = excluded.packed)"""
_DONE = """
SELECT nr FROM fenced"""
_MORE = {"ops": _OPS, "calls": _CALLS, "tools": _TOOLS, "edit": _EDIT}
_COMMITS: Final = {
    (new, *more): (_INSERT if new else _UPDATE) + _TURN + "".join(_MORE[each] for each in more) + _DONE
    for new in (False, True)
    for count in range(len(_MORE) + 1)
    for more in combinations(_MORE, count)
}
"""by whether the context is new, and what is written besides the turn: the driver remembers statements of up to
50 parameters; an append with an op_id and the usage of its call has 50"""

SELECT_OP: Final = """
SELECT op_id, digest, first_seq, entries, crc FROM our.op WHERE owner_key = %s AND nr = %s AND op_key = %s"""
_SELECT_OPS_BEFORE = """
SELECT op_id, digest, first_seq, entries, crc FROM our.op WHERE owner_key = %s AND nr = %s AND first_seq <= %s"""
_CLEAR_OP = "UPDATE our.op SET digest = %s, crc = %s WHERE owner_key = %s AND nr = %s AND op_key = %s"
_SELECT_FORKS = "SELECT id FROM our.context WHERE parent_key = %s ORDER BY id"
_TABLES = ("entry", "page", "compaction", "view", "op", "call", "tools", "context")
_DELETE = {table: f"DELETE FROM our.{table} WHERE owner_key = %s AND nr = %s RETURNING 1" for table in _TABLES}
_MOVE = {table: f"UPDATE our.{table} SET owner_key = %s WHERE owner_key = %s AND nr = %s" for table in _TABLES}
_DELETE_VIEWS = "DELETE FROM our.view WHERE owner_key = %s AND nr = %s AND seq = ANY(%s::bigint[])"
_DELETE_TICKETS = "DELETE FROM our.ticket WHERE key = %s"
_BURY = """
UPDATE our.entry SET tokens = %s, clip = %s, quotes_page = %s, quotes_entry = %s, at = %s, crc = %s, codec = %s,
digest = %s, body = %s
WHERE owner_key = %s AND nr = %s AND seq = %s RETURNING seq"""


class Place:
    """Where the rows of a context are, and how far it was when this was read; `nr` is 0 if there is none."""

    __slots__ = ("base", "head", "nr", "owner_key", "parent", "revision", "tokens")

    def __init__(
        self,
        owner_key: int = 0,
        nr: int = 0,
        parent: str | None = None,
        base: int = 0,
        head: int = 0,
        revision: int = 0,
        tokens: Sequence[int] = (),
    ) -> None:
        self.owner_key, self.nr = owner_key, nr
        self.parent, self.base = plain(parent), base
        self.head, self.revision, self.tokens = head, revision, tokens

    def token_of(self, revision: int) -> int | None:
        """Return the number of the commit that made *revision*, None if it is not known any more."""
        back = self.revision - revision
        return self.tokens[back] if 0 <= back < len(self.tokens) else None


def place_of(found: Sequence[Row]) -> Place:
    """Return the place in the rows that were *found* by `BY_KEY` or `BY_NUMBER`."""
    return Place(*found[0]) if found else Place()


def apply(run_rows: Run, transition: Transition, place: Place, token: int) -> bool:
    """Write *transition* to the context at *place*, and return whether it follows what is stored. O(rows).

    It is one statement; one more for each table if the owner changes. A parent that does not reach its fork's base
    is False as well.
    """
    record = transition.record
    changing = (
        *(escaped(each) for each in (record.owner, record.settings, record.state)),
        *(record.head, record.next_page, record.turn, record.open_page, record.revision, token, record_crc(record)),
    )
    parts: list[object] = [*changing]
    if place.nr:
        after = owner_key(record.owner)
        if after != place.owner_key:
            for table in _TABLES:
                run_rows(_MOVE[table], after, place.owner_key, place.nr)
        parts += [after, place.nr, transition.head, record.revision - 1]
    else:
        parent_key = None if record.parent is None else key_of(record.parent)
        parts[:0] = [parent_key, record.base]
        parts += [owner_key(record.owner), key_of(record.id), escaped(record.id), escaped(record.parent), parent_key]
        parts += [record.base, record.parent is None]
    more = []
    parts += _turn(transition)
    if transition.op or transition.ops:
        more.append("ops")
        parts += _ops(transition)
    if transition.call or transition.calls:
        calls, lists = _calls(transition)
        more += ["calls", *(["tools"] if lists else [])]
        parts += calls + lists
    if transition.views or transition.compaction is not None or transition.history:
        more.append("edit")
        parts += _edit(transition)
    return bool(run_rows(_COMMITS[(not place.nr, *more)], *parts))


def erase(run_rows: Run, erasure: Erasure, follow: Callable[[Transition, Place], None]) -> ErasedRows:
    """Remove what *erasure* names; *follow* writes its transitions. O(rows that go)."""
    gone = dict.fromkeys(_TABLES, 0)
    places = _Places(run_rows)
    for context in sorted(erasure.contexts):  # in one order, so that two erasures do not wait for each other
        places.of(context)
        run_rows(_DELETE_TICKETS, key_of(context))
        forks = run_rows(_SELECT_FORKS, key_of(context))
        check_forks(((plain(fork), context) for (fork,) in forks), erasure.contexts)
    for context in erasure.contexts:
        at = places.of(context)
        for table in _TABLES if at.nr else ():
            gone[table] += len(run_rows(_DELETE[table], at.owner_key, at.nr))
        places.forget(context)
    erased: set[tuple[int, int]] = set()
    for context, tombstone in erasure.entries:
        name, at = places.holder(context, tombstone.seq)
        small = (tombstone.tokens, tombstone.clip, *(tombstone.quotes or (None, None)), escaped(tombstone.at))
        whole = (*small, entry_crc(name, tombstone), tombstone.codec, tombstone.digest, tombstone.body)
        if not at.nr or not run_rows(_BURY, *whole, at.owner_key, at.nr, tombstone.seq):
            raise CorruptRecord(context, tombstone.seq, "it is missing")
        run_rows(_DELETE_VIEWS, at.owner_key, at.nr, [tombstone.seq])
        erased.add((at.nr, tombstone.seq))
        gone["entry"] += 1
    for transition in erasure.transitions:
        context = transition.record.id
        at = places.of(context)
        if at.nr:
            gone["compaction"] += len(run_rows(_DELETE["compaction"], at.owner_key, at.nr))
            gone["op"] += _clear_ops(run_rows, context, at, {seq for nr, seq in erased if nr == at.nr})
            shown = [seq for nr, seq in erased if places.holder(context, seq)[1].nr == nr]
            run_rows(_DELETE_VIEWS, at.owner_key, at.nr, shown)
        follow(transition, at)
    return ErasedRows(gone["context"], gone["entry"], gone["page"], gone["compaction"], gone["op"], scrubbed=False)


class _Places:
    """Where contexts are while some are erased: each is locked when it is first asked for."""

    def __init__(self, run_rows: Run) -> None:
        self._run = run_rows
        self._known: dict[str, Place] = {}

    def of(self, context: str) -> Place:
        """Return where *context* is. One statement, once."""
        if context not in self._known:
            run_rows = self._run
            self._known[context] = place_of(run_rows(_BY_KEY_LOCKED, key_of(context)))
        return self._known[context]

    def forget(self, context: str) -> None:
        """Take *context* for gone."""
        self._known[context] = Place()

    def holder(self, context: str | None, seq: int) -> tuple[str, Place]:
        """Return the context that holds entry *seq* of *context*: itself, or one that it was forked from."""
        while context is not None:
            at = self.of(context)
            if not at.nr or seq >= at.head:
                break
            if seq >= at.base:
                return context, at
            context = at.parent
        return "", Place()


def _clear_ops(run_rows: Run, context: str, at: Place, seqs: set[int]) -> int:
    """Remove the digests of the ops of *context* that appended an entry of *seqs*; return how many. O(ops)."""
    if not seqs:
        return 0
    before = run_rows(_SELECT_OPS_BEFORE, at.owner_key, at.nr, max(seqs))
    cleared = without_digests([read_op(context, row) for row in before], seqs)
    for op in cleared:
        run_rows(_CLEAR_OP, op.digest, op_crc(context, op), at.owner_key, at.nr, key_of(op.op_id))
    return len(cleared)


def _turn(transition: Transition) -> list[object]:
    """Return the columns of entries and pages: a list of values for each column."""
    context = transition.record.id
    entries = [
        (
            *(row.seq, row.tokens, row.clip, *(row.quotes or (None, None)), entry_crc(context, row), row.codec),
            *(row.digest, escaped(row.at), row.body),
        )
        for row in transition.entries
    ]
    pages = [
        (
            *(page.index, page.first, page.end, page.turn, int(page.state)),
            None if page.cut is None else orjson.dumps(page.cut).decode(),
            *(page.continues, page.archived_turn, page.recall_count, page.last_recalled_turn, page_crc(context, page)),
        )
        for page in {page.index: page for page in transition.pages}.values()
    ]
    return [*_columns(entries, 10), *_columns(pages, 11)]


def _ops(transition: Transition) -> list[object]:
    """Return the columns of ops."""
    context = transition.record.id
    ops = [
        (
            *(key_of(op.op_id), op.first, op_crc(context, op), op.digest),
            *(escaped(op.op_id), orjson.dumps(op.entries).decode()),
        )
        for op in all_ops(transition)
    ]
    return [*_columns(ops, 6)]


def _calls(transition: Transition) -> tuple[list[object], list[object]]:
    """Return the columns of calls of the model, their tokens in one list, and lists of tools behind their digests."""
    context = transition.record.id
    calls, costs, lists = [], [], {}
    for row in all_calls(transition):
        text = None if row.tools is None else row.tools.encode()
        tools = None if text is None else digest(ORJSON, text)
        if tools is not None:
            lists[tools] = text
        costs += [row.predicted, row.input, row.cached_read, row.cached_written, row.output]
        written = call_crc(context, row, tools)
        calls.append((row.revision, row.seq, row.turn, written, escaped(row.at), escaped(row.model), tools))
    return [costs, *_columns(calls, 7)], [[each for pair in lists.items() for each in pair]] if lists else []


def _edit(transition: Transition) -> list[object]:
    """Return the columns of views and compactions."""
    context = transition.record.id
    views = [(seq, tokens, clip, crc(context, seq, tokens, clip)) for seq, tokens, clip in transition.views]
    compactions = []
    for row in all_compactions(transition):
        packed = zlib.compress(row.text.encode())
        written = packed_crc(context, row.revision, row.head, row.turn, packed)
        compactions.append((row.revision, row.head, row.turn, written, packed))
    last = [{each[0]: each for each in rows}.values() for rows in (views, compactions)]
    return [*_columns(list(last[0]), 4), *_columns(list(last[1]), 5)]


def _columns(rows: Sequence[Row], width: int) -> Iterable[list[Any]]:
    """Return the columns of *rows* as lists: *width* empty ones if there are no rows."""
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(width)]
