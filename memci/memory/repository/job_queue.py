"""Jobs: what a model is still to make better, as rows of the store.

    enqueue ──▶ due ──▶ claim: tries + 1, due again in 10 minutes ──▶ finish: gone
                                        │                         ──▶ fail: due after 30 s, 1 min, 2 min, 4 min
                                        └ its process died: due again     5 tries: set aside

A job is there before anything is done for it, and goes in the transaction that keeps what came of it: it may be done
twice, and never not at all. Whoever does one checks its ground again before it writes, so that twice changes nothing.
A model that is away is no fault of a job: all jobs of the owner wait for it then. A job holds ids, no text, but for
what is to be saved word by word. This module knows nothing of what the kinds mean.
"""

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final

import apsw

from .store import MemoryStore, fetched

MOST: Final = 1_000
"""jobs of an owner that may wait"""
TRIES: Final = 5
VISIBLE_SECONDS: Final = 600.0
"""after which a job whose process died, or is that slow, is due again"""
FIRST_SECONDS: Final = 30.0
LONGEST_SECONDS: Final = 3_600.0
SAVE: Final = "save"
"""the kind that needs no model: its body tells what, and of which page"""
_NEVER: Final = 9e15


@dataclass(frozen=True, slots=True)
class Job:
    """A job that was claimed."""

    id: int
    kind: str
    subject: int
    """what it is about, by the id that its kind has"""
    version: int
    """counts how often there was news for it"""
    tries: int
    """with this one"""
    away: int
    """how often the model was not there for it"""
    body: str


@dataclass(frozen=True, slots=True)
class Saving:
    """What is to be saved."""

    id: int
    context: str
    index: int
    text: str
    about: str
    at: float | None


@dataclass(frozen=True, slots=True)
class Queue:
    """How many jobs there are."""

    waiting: int = 0
    set_aside: int = 0
    skipped: int = 0


def enqueue(connection: apsw.Connection, owner: int, kind: str, subject: int = 0, body: str = "") -> bool:
    """Let a job wait, once; with another *body* there is news for it. Return False if too many wait. O(1).

    One that was set aside, and for which a simpler form was found, is tried again: it is about something else now.
    """
    known = fetched(
        connection, "SELECT 1 FROM memory_job WHERE owner = ? AND kind = ? AND subject = ?", owner, kind, subject
    )
    if not known and _full(connection, owner):
        return False
    connection.execute(
        "INSERT INTO memory_job(owner, kind, subject, due, body) VALUES (?, ?, ?, 0, ?) "
        "ON CONFLICT(owner, kind, subject) DO UPDATE SET version = version + 1, tries = 0, away = 0, due = 0, "
        "error = '', body = excluded.body WHERE body <> excluded.body OR (due IS NULL AND tries <= ?)",
        (owner, kind, subject, body, TRIES),
    )
    return True


def known(store: MemoryStore, owner: int, kind: str, subject: int) -> bool:
    """Tell whether a job waits, or was set aside for good."""
    return store.has_jobs and bool(store.read_rows(_KNOWN, owner, kind, subject, TRIES))


_KNOWN = """
SELECT 1 FROM memory_job WHERE owner = ? AND kind = ? AND subject = ? AND (due IS NOT NULL OR tries > ?)"""


def skip(connection: apsw.Connection, owner: int) -> None:
    """Count a job that was not taken."""
    connection.execute(
        "INSERT INTO memory_queue(owner, skipped) VALUES (?, 1) ON CONFLICT(owner) DO UPDATE SET skipped = skipped + 1",
        (owner,),
    )


def claim(store: MemoryStore, owner: int, now: float) -> Job | None:
    """Take the oldest job that is due, None if none is; it is counted as tried."""
    if not due(store, owner, now):
        return None
    with store.change() as connection:
        rows = fetched(connection, _CLAIM, now + VISIBLE_SECONDS, owner, now, SAVE)
    return Job(*rows[0]) if rows else None


def due(store: MemoryStore, owner: int, now: float) -> bool:
    """Tell whether a job is due, and none is held back. One query."""
    return store.has_jobs and bool(store.read_rows(_DUE, owner, now, SAVE, owner, now))


_CLAIM = """
UPDATE memory_job SET tries = tries + 1, due = ? WHERE id = (
    SELECT id FROM memory_job WHERE owner = ? AND due <= ? AND kind <> ? ORDER BY id LIMIT 1)
RETURNING id, kind, subject, version, tries, away, body"""
_DUE = """
SELECT 1 FROM memory_job WHERE owner = ? AND due <= ? AND kind <> ?
AND NOT EXISTS (SELECT 1 FROM memory_queue WHERE owner = ? AND until > ?) LIMIT 1"""


def finish(connection: apsw.Connection, job: Job) -> None:
    """Note that a job is done; if there was news meanwhile, it is due again."""
    connection.execute("DELETE FROM memory_job WHERE id = ? AND version = ?", (job.id, job.version))
    connection.execute("UPDATE memory_job SET tries = 0, due = 0 WHERE id = ? AND due IS NOT NULL", (job.id,))


def fail(connection: apsw.Connection, job: Job, now: float, error: str, *, at_once: bool = False) -> None:
    """Note that a job failed, and why (a name, no text): it is due later, or *at_once* if its ground moved."""
    later = 0.0 if at_once else now + _pause(job.tries)
    connection.execute("UPDATE memory_job SET due = ?, error = ? WHERE id = ?", (later, error, job.id))


def set_aside(connection: apsw.Connection, job: Job, error: str = "", *, undone: bool = False) -> None:
    """Let a job be, since it failed too often; *undone*: no simpler form of it could be done either."""
    connection.execute(
        "UPDATE memory_job SET due = NULL, tries = ?, error = CASE ? WHEN '' THEN error ELSE ? END WHERE id = ?",
        (TRIES + undone, error, error, job.id),
    )


def release(connection: apsw.Connection, job: Job, now: float) -> None:
    """Put a job back that could not be tried; that does not count."""
    connection.execute(
        "UPDATE memory_job SET tries = max(0, tries - 1), due = ? WHERE id = ? AND due IS NOT NULL",
        (now + FIRST_SECONDS, job.id),
    )


def hold(connection: apsw.Connection, owner: int, job: Job, now: float) -> None:
    """Hold all jobs of *owner* back for a while: the model is away. That does not count as a try."""
    connection.execute(
        "UPDATE memory_job SET tries = max(0, tries - 1), away = away + 1, due = ? WHERE id = ? AND due IS NOT NULL",
        (now + _pause(job.away + 1), job.id),
    )
    (row,) = fetched(
        connection,
        "INSERT INTO memory_queue(owner, away) VALUES (?, 1) ON CONFLICT(owner) DO UPDATE SET away = away + 1 "
        "RETURNING away",
        owner,
    )
    connection.execute("UPDATE memory_queue SET until = ? WHERE owner = ?", (now + _pause(row[0]), owner))


def answered(connection: apsw.Connection, owner: int) -> None:
    """Note that the model is there."""
    connection.execute("UPDATE memory_queue SET until = 0, away = 0 WHERE owner = ? AND away > 0", (owner,))


def queue(store: MemoryStore, owner: int) -> Queue:
    """Return how many jobs of *owner* there are. O(jobs)."""
    if not store.has_jobs:
        return Queue()
    ((waiting, aside),) = store.read_rows("SELECT count(due), count(*) FROM memory_job WHERE owner = ?", owner)
    skipped = store.read_rows("SELECT skipped FROM memory_queue WHERE owner = ?", owner)
    return Queue(waiting, aside - waiting, skipped[0][0] if skipped else 0)


def save(connection: apsw.Connection, owner: int, saving: Saving, *, known: bool) -> bool:
    """Let a text wait to be saved: until its page is *known*. Return False if too many wait."""
    if len(fetched(connection, _SAVES, owner)) >= MOST:
        return False
    body = [saving.context, saving.index, saving.text, saving.about, saving.at]
    connection.execute(
        "INSERT INTO memory_job(owner, kind, subject, due, body) SELECT ?, ?, coalesce(max(subject), 0) + 1, ?, ? "
        "FROM memory_job WHERE owner = ? AND kind = ?",
        (owner, SAVE, 0.0 if known else _NEVER, json.dumps(body, ensure_ascii=False), owner, SAVE),
    )
    return True


def savable(connection: apsw.Connection, owner: int, context: str, index: int) -> None:
    """Note that a page is known: what is to be saved of it can be. O(what waits to be saved)."""
    own = [
        each.id
        for each in _savings(fetched(connection, _SAVES, owner))
        if (each.context, each.index) == (context, index)
    ]
    connection.executemany("UPDATE memory_job SET due = 0 WHERE id = ?", [(each,) for each in own])


def savings(store: MemoryStore, owner: int, *, now: bool = False) -> list[Saving]:
    """Return what is to be saved, the oldest first; with *now*, only what can be. O(what waits to be saved)."""
    rows = store.read_rows(_SAVES, owner) if store.has_jobs else []
    return _savings([row for row in rows if row[2] <= 0 or not now])


def take(connection: apsw.Connection, saving: Saving) -> bool:
    """Take out what is to be saved, and tell whether it was there still."""
    connection.execute("DELETE FROM memory_job WHERE id = ?", (saving.id,))
    return bool(connection.changes())


def savers(store: MemoryStore, context: str) -> list[str]:
    """Return the names of the owners for whom something of a context is to be saved. O(what waits to be saved)."""
    rows = store.read_rows(_ALL_SAVES) if store.has_jobs else []
    return list(dict.fromkeys(name for name, body in rows if json.loads(body)[0] == context))


def forget_jobs(connection: apsw.Connection, owner: int, context: str | None, indexes: Collection[int] | None) -> None:
    """Remove what is to be saved of pages, of a context, or of all; of an owner, all jobs and what was counted."""
    if context is None and indexes is None:
        connection.execute("DELETE FROM memory_job WHERE owner = ?", (owner,))
        connection.execute("DELETE FROM memory_queue WHERE owner = ?", (owner,))
        connection.execute("DELETE FROM memory_spent WHERE owner = ?", (owner,))
        return
    gone = [
        (each.id,)
        for each in _savings(fetched(connection, _SAVES, owner))
        if each.context == context and (indexes is None or each.index in indexes)
    ]
    connection.executemany("DELETE FROM memory_job WHERE id = ?", gone)


_SAVES = "SELECT id, body, due FROM memory_job WHERE owner = ? AND kind = 'save' ORDER BY id"
_ALL_SAVES = """
SELECT o.name, j.body FROM memory_job AS j JOIN memory_owner AS o ON o.nr = j.owner WHERE j.kind = 'save'"""


def _savings(rows: Iterable[tuple[Any, ...]]) -> list[Saving]:
    return [Saving(row[0], *json.loads(row[1])) for row in rows]


_WAITING = "SELECT count(*) FROM memory_job WHERE owner = ? AND due IS NOT NULL AND kind <> 'save'"


def _full(connection: apsw.Connection, owner: int) -> bool:
    ((waiting,),) = fetched(connection, _WAITING, owner)
    return bool(waiting >= MOST)


def _pause(times: int) -> float:
    return float(min(LONGEST_SECONDS, FIRST_SECONDS * 2 ** (max(1, times) - 1)))
