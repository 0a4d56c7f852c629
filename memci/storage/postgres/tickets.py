"""The queues for the locks of contexts in Postgres: rows, and no lock of a session, so that they work behind a pooler.

    add       the number is given under a lock that ends with the transaction: tickets that are visible first have lower
              numbers
    replace   one statement that names the whole old row: of two replacements, the second finds no row

A power cut may lose tickets, so these transactions do not wait for the disk: each statement executes `set_config` for
itself.
"""

import time
from collections.abc import Sequence

from ...rows import Ticket
from ..columns import joined
from .database import ConnectionLost, Database
from .rows import escape, key_of, read_ticket

_FIELDS = joined(Ticket._fields)
_VALUES = ", ".join(["%s"] * len(Ticket._fields))
_TICKETS = f"SELECT {_FIELDS} FROM our.ticket"
_SELECT_TICKETS = {"all": _TICKETS + " ORDER BY number", "one": _TICKETS + " WHERE key = %s ORDER BY number"}
_ADD_TICKET = f"""
WITH early AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true), pg_advisory_xact_lock(%s))
INSERT INTO our.ticket (number, key, {_FIELDS})
SELECT nextval('our.ticket_number'), %s, {_VALUES} FROM early ON CONFLICT DO NOTHING RETURNING 1"""
_EXACT = f"""
FROM (SELECT set_config('synchronous_commit', 'off', true) AS it) AS early WHERE early.it = 'off' AND key = %s
AND ({_FIELDS}) = ({_VALUES}) RETURNING 1"""
_CHANGE_TICKET = f"UPDATE our.ticket SET (key, {_FIELDS}) = (%s, {_VALUES})" + _EXACT
_REMOVE_TICKET = "DELETE FROM our.ticket USING" + _EXACT.replace("FROM (", "(", 1)


def tickets(database: Database, context: str | None) -> Sequence[Ticket]:
    """Return the queue of *context*, or of all contexts. One query, O(tickets)."""
    if context is None:
        return [read_ticket(row) for row in database.read_rows(_SELECT_TICKETS["all"])]
    return [read_ticket(row) for row in database.read_rows(_SELECT_TICKETS["one"], key_of(context))]


def replace_ticket(database: Database, old: Ticket | None, new: Ticket | None) -> bool:
    """Replace *old* by *new*, and return whether *old* was there. One query.

    If the connection is lost meanwhile, read the queue: either *new* is there, or *old* is gone.
    """
    until = time.monotonic() + database.wait_seconds
    one = new or old
    while True:
        try:
            if old is None and new is not None:
                lock = int.from_bytes(key_of(new.context)[:8], "big", signed=True)
                database.change_rows(_ADD_TICKET, lock, *_columns(new))
                return True
            if old is not None and new is not None:
                return bool(database.change_rows(_CHANGE_TICKET, *_columns(new), *_columns(old)))
            return old is not None and bool(database.change_rows(_REMOVE_TICKET, *_columns(old)))
        except ConnectionLost:
            there = [] if one is None else tickets(database, one.context)
            if new in there or (new is None and old not in there):
                return True
            if old is not None and old not in there:
                return False
            if time.monotonic() > until:
                raise


def _columns(ticket: Ticket) -> tuple[object, ...]:
    return key_of(ticket.context), *(escape(each) if isinstance(each, str) else each for each in ticket)
