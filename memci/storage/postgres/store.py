"""Contexts in Postgres: a commit is on the server's disk when it returns.

    commit     one statement, fenced by head and revision; it is a transaction by itself
               if the connection is lost: the record's tokens show whether it arrived; if not, it is sent again
               if the server stays away: CommitUnknown; repeat an append with its op_id
    reads      one statement each, or one for each batch, so that a slow reader blocks no one

The store remembers the owner and the number of contexts, so that statements name both: a cluster that is split by owner
then asks one node. Threads may share a store; after fork() it must be opened again.
"""

import secrets
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from ...errors import CommitUnknown, CorruptRecord, StorageUnavailable
from ...rows import CallRow, CompactionRow, ContextRecord, EntryRow, OpRow, PageRow, PageState, Ticket
from ..columns import CALLS, CHAIN, COMPACTIONS, CONTEXTS, ENTRIES, OPS, PAGES, VIEWS, Row, joined, read_entry
from ..protocol import ErasedRows, Erasure, Transition
from ..table_storage import Place, TableStorage
from ..validation import check, check_parent, check_revision, check_text
from .audit import AuditTable
from .damage import damage
from .database import ConnectionLost, Database, Duplicate
from .rows import escape, key_of, owner_key, read_call, read_compaction, read_context, read_row, unescape, unescaped
from .schema import REWRITE
from .write import BY_KEY, BY_NUMBER, SELECT_OP, Run, apply, erase, place_of

_BATCH_ROWS = 256  # rows of one query: enough that a round trip costs little for each
_REMEMBERED = 100_000  # contexts whose owner and number are kept in RAM: some MB

_WIDTH = len(CONTEXTS.names)
_RECORD = joined(CONTEXTS.names, "x")
_COMPACTION = joined(COMPACTIONS.names)
_LOAD = f"""
SELECT x.owner_key, x.number, {_RECORD}, {joined(COMPACTIONS.names, "c")}
FROM our.context AS x LEFT JOIN LATERAL (
    SELECT {_COMPACTION} FROM our.compaction AS n
    WHERE n.owner_key = x.owner_key AND n.number = x.number AND n.revision <= x.revision
    ORDER BY n.revision DESC LIMIT 1
) AS c ON true WHERE x.key = %s"""
_CONTEXTS = f"SELECT {_RECORD} FROM our.context AS x"
_ALL = " ORDER BY left(id, 256), id LIMIT %s"
_AFTER = "(left(id, 256), id) > (left(%s, 256), %s)"
_OWNED = "owner_key = %s AND owner = %s"
_SELECT_CONTEXTS = {
    "all": _CONTEXTS + _ALL,
    "all after": f"{_CONTEXTS} WHERE {_AFTER}" + _ALL,
    "owned": f"{_CONTEXTS} WHERE {_OWNED}" + _ALL,
    "owned after": f"{_CONTEXTS} WHERE {_OWNED} AND {_AFTER}" + _ALL,
}
_SELECT_FORKS = f"{_CONTEXTS} WHERE x.parent_key = %s ORDER BY id"
_VIEW = {f"view {name}": name for name in VIEWS.names[1:]}
_BATCH = f"""
SELECT {joined([*ENTRIES.names, *_VIEW])} FROM (
    SELECT e.*, {", ".join(f'v."{name}" AS "{shown}"' for shown, name in _VIEW.items())},
    sum(octet_length(e.body)) OVER (ORDER BY e.seq ROWS UNBOUNDED PRECEDING) - octet_length(e.body) AS before
    FROM our.entry AS e LEFT JOIN our.view AS v ON v.owner_key = %s AND v.number = %s AND v.seq = e.seq
    WHERE e.owner_key = %s AND e.number = %s AND e.seq >= %s AND e.seq < %s"""
_BATCH_END = f" ORDER BY e.seq LIMIT {_BATCH_ROWS}) AS batch WHERE before < {2**20} ORDER BY seq"
_SELECT_ENTRIES = _BATCH + _BATCH_END
_SELECT_ENTRIES_AT = _BATCH + " AND e.seq = ANY(%s::bigint[])" + _BATCH_END
_SELECT_CONTAINING = _BATCH + " AND position(%b::bytea IN e.body) > 0" + _BATCH_END
_PAGES = f"""
SELECT {joined(PAGES.names)} FROM our.page WHERE owner_key = %s AND number = %s AND index >= %s AND index < %s"""
_PAGES_END = f" ORDER BY index LIMIT {_BATCH_ROWS}"
_SELECT_PAGES = {
    "all": _PAGES + _PAGES_END,
    "active": _PAGES + " AND state = 0" + _PAGES_END,
    "state": _PAGES + " AND state = %s" + _PAGES_END,
    "at": _PAGES + " AND index = ANY(%s::bigint[])" + _PAGES_END,
}
_SELECT_COMPACTION = f"""
SELECT {_COMPACTION} FROM our.compaction
WHERE owner_key = %s AND number = %s AND revision < %s AND head <= %s ORDER BY revision DESC LIMIT {CHAIN}"""
_SELECT_OPS = f"SELECT {joined(OPS.names)} FROM our.op WHERE owner_key = %s AND number = %s ORDER BY first, op_id"
_SELECT_CALLS = f"""
SELECT {joined(CALLS.names, "c")}, t.text FROM our.call AS c
LEFT JOIN our.tools AS t ON t.owner_key = c.owner_key AND t.number = c.number AND t.digest = c.tools
WHERE c.owner_key = %s AND c.number = %s AND c.revision > %s ORDER BY c.revision LIMIT {_BATCH_ROWS}"""
# A queue is rows, and no lock of a session, so that it works behind a pooler. A power cut may lose tickets: their
# transactions do not wait for the disk; `set_config` is a part of each statement, since nothing lasts in a session.
_FIELDS = joined(Ticket._fields)
_VALUES = ", ".join(["%s"] * len(Ticket._fields))
_TICKETS = f"SELECT {_FIELDS} FROM our.ticket"
_SELECT_TICKETS = {"all": _TICKETS + " ORDER BY number", "one": _TICKETS + " WHERE key = %s ORDER BY number"}
# The number is given under a lock that ends with the transaction: tickets that are visible first have lower numbers.
_ADD_TICKET = f"""
WITH early AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true), pg_advisory_xact_lock(%s))
INSERT INTO our.ticket (number, key, {_FIELDS})
SELECT nextval('our.ticket_number'), %s, {_VALUES} FROM early ON CONFLICT DO NOTHING RETURNING 1"""
# It names the whole old row: of two replacements, the second finds no row.
_EXACT = f"""
FROM (SELECT set_config('synchronous_commit', 'off', true) AS it) AS early WHERE early.it = 'off' AND key = %s
AND ({_FIELDS}) = ({_VALUES}) RETURNING 1"""
_CHANGE_TICKET = f"UPDATE our.ticket SET (key, {_FIELDS}) = (%s, {_VALUES})" + _EXACT
_REMOVE_TICKET = "DELETE FROM our.ticket USING" + _EXACT.replace("FROM (", "(", 1)


class PostgresStorage(TableStorage):
    """Keeps contexts in a schema of a Postgres database, for many processes on many machines.

    Args:
        url: A URL of libpq, such as `postgresql://ada@db.example/agents`; `?schema=` may name the schema.
        schema: The schema, made if it is missing; default: that of the URL, else "memci".
        pool_size: Maximum of open connections; each call needs one for some milliseconds.
        wait_seconds: Time that a call waits for a free connection, and for a server that restarts.
        statement_timeout_seconds: Time after which the server cancels a statement: `StorageBusy`.
        prepare: Whether statements are prepared on the server; None: unless a pooler of transactions is detected.
        read_only: Whether nothing is written, and a missing schema is an error.

    Raises:
        InvalidSetting: If the URL or an argument is not valid, or the driver is not installed.
        StorageUnavailable: If the server can't be reached, or has no store and *read_only* is given.
        SchemaTooNew: If a later memci made the tables.
    """

    def __init__(
        self,
        url: str,
        *,
        schema: str | None = None,
        pool_size: int = 8,
        wait_seconds: float = 10.0,
        statement_timeout_seconds: float = 30.0,
        prepare: bool | None = None,
        read_only: bool = False,
    ) -> None:
        bounds = pool_size, wait_seconds, statement_timeout_seconds
        self.database = Database(url, schema, *bounds, prepare=prepare, read_only=read_only)
        self._seconds = wait_seconds
        self._known: dict[str, tuple[int, int]] = {}
        """owner and number of contexts; those of an erased context find no rows"""
        self.audit_log = AuditTable(self.database)
        try:
            self.database.prepare()
        except BaseException:
            self.database.close()
            raise

    def load(self, context: str) -> tuple[ContextRecord, str | None] | None:
        """Return the record and the last compaction of *context*, or None if there is no such context. One query."""
        check_text("id", context)
        found = self.database.read_rows(_LOAD, key_of(context))
        if not found:
            return None
        [[owner, number, *columns]] = found
        self._remember(context, owner, number)
        record, compaction = read_context(columns[:_WIDTH]), columns[_WIDTH:]
        return record, None if compaction[0] is None else read_compaction(context, tuple(compaction)).text

    def commit(self, transition: Transition) -> OpRow | None:
        """Apply *transition* and return None, or return the row of its op if it is stored. One query, O(rows).

        CommitUnknown if the connection was lost, and no other one was found within `wait_seconds`.
        """
        check(transition)
        record, token = transition.record, secrets.randbits(63)
        op_id = None if transition.op is None else transition.op.op_id
        until = time.monotonic() + self._seconds
        place, lost = self._recall_place(record.id), False
        while True:
            try:
                if not place.number:
                    self._check(transition, place)
                if self._write(transition, place, token):
                    return None
            except ConnectionLost as error:
                if time.monotonic() > until:
                    raise CommitUnknown(op_id, str(error)) from error
                lost = True
            except Duplicate as error:
                known = None if op_id is None else self.op(record.id, op_id)
                if known is None:
                    raise CorruptRecord(record.id, transition.head, f"a row is there already: {error}") from error
                return known
            try:
                place = self._place(record.id)
                if lost and place.token_of(record.revision) == token:
                    return None  # the commit had arrived
                known = None if op_id is None else self.op(record.id, op_id)
            except StorageUnavailable as error:
                if lost:
                    raise CommitUnknown(op_id, str(error)) from error
                raise
            if known is not None:
                return known
            if lost and place.revision >= record.revision and place.token_of(record.revision) is None:
                raise CommitUnknown(op_id, "the connection was lost, and others have written much since")
            self._check(transition, place)

    def compactions(self, context: str, *, head: int | None = None) -> Iterator[CompactionRow]:
        """Yield the compactions, newest first, as the protocol says. A query for `CHAIN`."""
        check_text("id", context)
        return self._compactions(context, 2**62 if head is None else head)

    def ops(self, context: str) -> Iterator[OpRow]:
        """Yield the ops by their first seq. O(ops) in memory."""
        return iter([read_row(OPS, context, context, row) for row in self._rows(context, _SELECT_OPS)])

    def op(self, context: str, op_id: str) -> OpRow | None:
        """Return one op. One query."""
        check_text("op_id", op_id)
        return next(
            (read_row(OPS, context, context, row) for row in self._rows(context, SELECT_OP, key_of(op_id))), None
        )

    def calls(self, context: str, *, after: int = 0) -> Iterator[CallRow]:
        """Yield the calls of the model, oldest first; one that is added meanwhile may be among them."""
        check_text("id", context)
        return self._calls(context, after)

    def contexts(
        self, *, owner: str | None = None, after: str | None = None, limit: int | None = None
    ) -> Sequence[ContextRecord]:
        """Return records by id: of *owner* or of all, those with an id above *after*, at most *limit*. One query."""
        for name, text in (("owner", owner), ("after", after)):
            check_text(name, text or "")
        which = "all" if owner is None else "owned"
        values: list[object] = [] if owner is None else [owner_key(owner), escape(owner)]
        if after is not None:
            which += " after"
            values += [escape(after)] * 2
        return [read_context(row) for row in self.database.read_rows(_SELECT_CONTEXTS[which], *values, limit)]

    def forks(self, context: str) -> Sequence[ContextRecord]:
        """Return the records of the contexts that were forked from *context*, by id. One query."""
        check_text("id", context)
        return [read_context(row) for row in self.database.read_rows(_SELECT_FORKS, key_of(context))]

    def erase(self, erasure: Erasure) -> ErasedRows:
        """Remove what *erasure* names. O(removed rows).

        The bytes stay in the files of the tables until `Erasure()` writes them again, which locks each table and takes
        O(bytes). It first waits for transactions that may read them, and writes nothing if one stays open. The log of
        the server, its archive and its replicas may keep them (docs/scale.md).
        """
        if not any(erasure):
            if not self.database.outlast():
                return ErasedRows(scrubbed=False)
            for table in REWRITE:
                self.database.run_alone(REWRITE[table])
            return ErasedRows(scrubbed=True)
        for transition in erasure.transitions:
            check(transition)
        try:
            gone = self.database.transaction(lambda run: erase(run, erasure))
        except ConnectionLost as error:
            raise CommitUnknown(None, str(error)) from error
        for context in erasure.contexts:
            self._known.pop(context, None)
        return gone

    def tickets(self, context: str | None = None) -> Sequence[Ticket]:
        """Return the queue for the lock of *context*, or of all contexts. One query, O(tickets)."""
        if context is None:
            found = self.database.read_rows(_SELECT_TICKETS["all"])
        else:
            check_text("id", context)
            found = self.database.read_rows(_SELECT_TICKETS["one"], key_of(context))
        return [Ticket._make(unescape(each) if isinstance(each, str) else each for each in row) for row in found]

    def replace_ticket(self, old: Ticket | None, new: Ticket | None) -> bool:
        """Replace *old* by *new*, or add *new* behind all others. One query; not synced.

        If the connection is lost meanwhile, the queue is read: either *new* is there, or *old* is gone.
        """
        until, one = time.monotonic() + self._seconds, new or old
        assert one is not None, "a ticket is added, replaced or removed"
        while True:
            try:
                if old is None:
                    lock = int.from_bytes(key_of(one.context)[:8], "big", signed=True)
                    self.database.change_rows(_ADD_TICKET, lock, *_columns(one))
                    return True
                if new is None:
                    return bool(self.database.change_rows(_REMOVE_TICKET, *_columns(old)))
                return bool(self.database.change_rows(_CHANGE_TICKET, *_columns(new), *_columns(old)))
            except ConnectionLost:
                there = self.tickets(one.context)
                if new in there or (new is None and old not in there):
                    return True
                if old is not None and old not in there:
                    return False
                if time.monotonic() > until:
                    raise

    def damage(self) -> list[str]:
        """Return problems of the rows, and whether the server has found damaged pages. O(rows)."""
        return damage(self.database)

    def close(self) -> None:
        """Close all connections."""
        self.database.close()

    def _write(self, transition: Transition, place: Place, token: int) -> bool:
        """Write *transition*, and return whether it follows the stored revision."""
        if not place.number or place.owner_key == owner_key(transition.record.owner):
            return apply(self.database.change_rows, transition, place, token)

        def work(run: Run) -> bool:
            if not apply(run, transition, place, token):
                raise _Behind
            return True

        try:
            written = self.database.transaction(work)
        except _Behind:
            return False
        self._known.pop(transition.record.id, None)
        return written

    def _check(self, transition: Transition, place: Place) -> None:
        """Raise the reason why *transition* can't follow *place*, if there is one."""
        check_revision(transition, place.head, place.revision)
        record = transition.record
        if not place.number and record.parent is not None:
            parent = self._place(record.parent)
            check_parent(record, parent.head if parent.number else None)

    def _remember(self, context: str, owner: int, number: int) -> None:
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[context] = owner, number

    def _recall_place(self, context: str) -> Place:
        """Return the remembered place of *context*, or read it."""
        known = self._known.get(context)
        return self._place(context) if known is None else Place(known[1], owner_key=known[0])

    def _place(self, context: str) -> Place:
        """Read the place of *context*. One query."""
        check_text("id", context)
        known = self._known.get(context)
        found = [] if known is None else self.database.read_rows(BY_NUMBER, *known)
        place = place_of(found or self.database.read_rows(BY_KEY, key_of(context)))
        if place.number:
            self._remember(context, place.owner_key, place.number)
        else:
            self._known.pop(context, None)
        return place

    def _rows(self, context: str, statement: str, *values: object) -> list[Row]:
        """Return the rows of *statement* about *context*, by its remembered place. One query or two."""
        place = self._recall_place(context)
        if not place.number:
            return []
        found = self.database.read_rows(statement, place.owner_key, place.number, *values)
        if not found:  # no rows, or the context was made again or has another owner
            now = self._place(context)
            if now.number and (now.owner_key, now.number) != (place.owner_key, place.number):
                return self.database.read_rows(statement, now.owner_key, now.number, *values)
        return found

    def _pages(self, context: str, indexes: Sequence[int], state: PageState | None) -> Iterator[PageRow]:
        which = {None: "all", PageState.ACTIVE: "active"}.get(state, "state") if isinstance(indexes, range) else "at"
        while indexes:
            values: list[object] = [[*indexes]] if which == "at" else [int(state or 0)] if which == "state" else []
            found = self._rows(context, _SELECT_PAGES[which], indexes[0], indexes[-1] + 1, *values)
            for row in found:
                yield read_row(PAGES, context, context, row)
            indexes = indexes[bisect_right(indexes, found[-1][0]) :] if len(found) == _BATCH_ROWS else ()

    def _scan(
        self, context: str, shown: Place, name: str, holder: Place, seqs: Sequence[int], containing: bytes | None
    ) -> Iterator[EntryRow]:
        """Yield entries of *name*, with the views of *context*: the same one, or a fork."""
        while seqs:
            bounds = (shown.owner_key, shown.number, holder.owner_key, holder.number, seqs[0], seqs[-1] + 1)
            if containing is not None:
                found = self.database.read_rows(_SELECT_CONTAINING, *bounds, containing)
            elif isinstance(seqs, range):
                found = self.database.read_rows(_SELECT_ENTRIES, *bounds)
            else:
                found = self.database.read_rows(_SELECT_ENTRIES_AT, *bounds, list(seqs))
            for at, row in enumerate(found):
                if containing is None and row[0] != seqs[at]:
                    raise CorruptRecord(context, seqs[at], "it is missing")
                yield read_entry(context, name, context, unescaped(ENTRIES, row))
            if not found and containing is None:
                raise CorruptRecord(context, seqs[0], "it is missing")
            seqs = seqs[bisect_right(seqs, found[-1][0]) :] if found else ()

    def _calls(self, context: str, after: int) -> Iterator[CallRow]:
        while found := self._rows(context, _SELECT_CALLS, after):
            for row in found:
                yield read_call(context, row)
            after = found[-1][0]

    def _compactions(self, context: str, head: int) -> Iterator[CompactionRow]:
        before = 2**62
        while found := self._rows(context, _SELECT_COMPACTION, before, head):
            for row in found:
                compaction = read_compaction(context, row)
                yield compaction
            before = compaction.revision


def _columns(ticket: Ticket) -> tuple[object, ...]:
    return key_of(ticket.context), *(escape(each) if isinstance(each, str) else each for each in ticket)


class _Behind(Exception):
    """The transition does not follow the stored revision."""
