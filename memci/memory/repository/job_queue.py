"""The job queue of one owner: the steps that wait for a model, as rows of the store.

    enqueue ──▶ due ──▶ claim: tries + 1, due again in 10 minutes ──▶ finish: gone
                                        │                         ──▶ fail: due after 30 s, 1 min, 2 min, 4 min
                                        └ its process died: due again     5 tries: set aside

A job is stored before it is started, and removed in the transaction that stores its result: it is done at least once.
A step checks again what it read before it writes, so that doing it twice changes nothing. If the model is away, no job
has failed: all jobs of the owner wait. A job holds ids and no text, but for a fact that is to be saved word by word.
This module knows nothing of what the kinds mean.
"""

import json
from collections.abc import Collection
from typing import Final, NamedTuple

from ..backend import Work
from .store import MemoryStore, OwnerTable

MOST: Final = 1_000
"""jobs of an owner that may wait"""
TRIES: Final = 5
VISIBLE_SECONDS: Final = 600.0
"""after which a job is due again whose process died or is too slow"""
FIRST_SECONDS: Final = 30.0
LONGEST_SECONDS: Final = 3_600.0
SAVE: Final = "save"
"""the kind that needs no model: its body says what is to be saved, and of which page"""


class Job(NamedTuple):
    """A job that was claimed."""

    id: int
    kind: str
    subject: int
    """the id of what it is about"""
    version: int
    """counts how often its body changed"""
    tries: int
    """with this one"""
    away: int
    """how often the model was not there for it"""
    body: str


class Saving(NamedTuple):
    """A fact that is to be saved, and the page that says it."""

    id: int
    context: str
    index: int  # type: ignore[assignment]  # hides tuple.index, which no one asks of a row
    text: str
    about: str
    at: float | None


class JobQueue(OwnerTable):
    """The jobs of one owner. Whatever writes is called within a change of the store, but for `claim`."""

    def enqueue(self, kind: str, subject: int = 0, body: str = "") -> bool:
        """Add a job, once; another *body* makes a known one due again. Return False if too many wait. O(1).

        A job that was set aside and done without the model is tried again: it is about something else now.
        """
        key = self._owner.nr, kind, subject
        known = self._store.read_value("SELECT 1 FROM memory_job WHERE owner = ? AND kind = ? AND subject = ?", *key)
        if not known and (self._store.read_value(_WAITING, self._owner.nr) or 0) >= MOST:
            return False
        self._store.execute(_ENQUEUE, *key, body, TRIES)
        return True

    def known(self, kind: str, subject: int) -> bool:
        """Return whether a job waits, or was set aside for good."""
        return self._there and bool(self._store.read_rows(_KNOWN, self._owner.nr, kind, subject, TRIES))

    def skip(self) -> None:
        """Count a job that was not added."""
        self._store.execute(_SKIP, self._owner.nr)

    def claim(self, now: float) -> Job | None:
        """Take the oldest job that is due, None if none is; it counts as tried. One transaction."""
        if not self.due(now):
            return None
        with self._store.change():
            rows = self._store.read_rows(_CLAIM, now + VISIBLE_SECONDS, self._owner.nr, now, SAVE)
        return Job(*rows[0]) if rows else None

    def due(self, now: float) -> bool:
        """Return whether a job is due, and none is held back. One query."""
        nr = self._owner.nr
        return self._there and bool(self._store.read_rows(_DUE, nr, now, SAVE, nr, now))

    def finish(self, job: Job) -> None:
        """Remove a job that is done; if its body changed meanwhile, it is due again."""
        self._store.execute("DELETE FROM memory_job WHERE id = ? AND version = ?", job.id, job.version)
        self._store.execute("UPDATE memory_job SET tries = 0, due = 0 WHERE id = ? AND due IS NOT NULL", job.id)

    def fail(self, job: Job, now: float, error: str, *, at_once: bool = False) -> None:
        """Note why a job failed (a name, no text): it is due later, or *at_once* if its data had changed."""
        later = 0.0 if at_once else now + _pause(job.tries)
        self._store.execute("UPDATE memory_job SET due = ?, error = ? WHERE id = ?", later, error, job.id)

    def set_aside(self, job: Job, error: str = "", *, undone: bool = False) -> None:
        """Leave a job that failed too often; *undone*: it could not be done without the model either."""
        self._store.execute(
            "UPDATE memory_job SET due = NULL, tries = ?, error = CASE ? WHEN '' THEN error ELSE ? END WHERE id = ?",
            *(TRIES + undone, error, error, job.id),
        )

    def release(self, job: Job, now: float) -> None:
        """Put a job back that could not be tried; that is not counted."""
        self._store.execute(_RELEASE, now + FIRST_SECONDS, 0, job.id)

    def hold(self, job: Job, now: float) -> None:
        """Hold all jobs back for a while: the model is away. That is not counted as a try."""
        self._store.execute(_RELEASE, now + _pause(job.away + 1), 1, job.id)
        self._store.execute(_AWAY, self._owner.nr)
        away = self._store.read_value("SELECT away FROM memory_queue WHERE owner = ?", self._owner.nr) or 0
        self._store.execute("UPDATE memory_queue SET until = ? WHERE owner = ?", now + _pause(away), self._owner.nr)

    def answered(self) -> None:
        """Note that the model answers."""
        self._store.execute("UPDATE memory_queue SET until = 0, away = 0 WHERE owner = ? AND away > 0", self._owner.nr)

    def counts(self) -> Work:
        """Return how many jobs there are; what they cost is in the usage ledger. O(jobs)."""
        if not self._there:
            return Work()
        nr = self._owner.nr
        ((waiting, all_),) = self._store.read_rows("SELECT count(due), count(*) FROM memory_job WHERE owner = ?", nr)
        skipped = self._store.read_value("SELECT skipped FROM memory_queue WHERE owner = ?", nr) or 0
        return Work(waiting, all_ - waiting, skipped)

    def save(self, saving: Saving) -> bool:
        """Let a fact wait to be saved until its page is known. Return False if too many wait."""
        if len(self.savings()) >= MOST:
            return False
        text = self._seal(saving.text, "fact to be saved", saving.context, saving.index)
        body = json.dumps(saving._replace(text=text)[1:], ensure_ascii=False)
        self._store.execute(_SAVE, self._owner.nr, SAVE, body, self._owner.nr, SAVE)
        return True

    def savings(self) -> list[Saving]:
        """Return the facts that wait to be saved, the oldest first."""
        rows = self._store.read_rows(_SAVES, self._owner.nr) if self._there else []
        kept = [Saving(id_, *json.loads(body)) for id_, body in rows]
        return [each._replace(text=self._unseal(each.text, "fact to be saved", *each[1:3])) for each in kept]

    def take(self, saving: Saving) -> bool:
        """Remove a fact that waits to be saved, and return whether it was still there."""
        return bool(self._store.execute("DELETE FROM memory_job WHERE id = ?", saving.id))

    def forget(self, context: str | None, indexes: Collection[int] | None) -> None:
        """Remove the facts that wait of pages, or of a context; of the whole owner all jobs and what was counted."""
        if context is None and indexes is None:
            self._store.execute("DELETE FROM memory_job WHERE owner = ?", self._owner.nr)
            self._store.execute("DELETE FROM memory_queue WHERE owner = ?", self._owner.nr)
            self._store.execute("DELETE FROM memory_spent WHERE owner = ?", self._owner.nr)
            return
        for each in self.savings():
            if each.context == context and (indexes is None or each.index in indexes):
                self.take(each)

    @property
    def _there(self) -> bool:
        return self._store.has_jobs


def savers(store: MemoryStore, context: str) -> list[str]:
    """Return the names of the owners for whom a fact of *context* waits to be saved. O(facts that wait)."""
    rows = store.read_rows(_ALL_SAVES) if store.has_jobs else []
    return list(dict.fromkeys(name for name, body in rows if json.loads(body)[0] == context))


def _pause(times: int) -> float:
    return float(min(LONGEST_SECONDS, FIRST_SECONDS * 2 ** (max(1, times) - 1)))


_ENQUEUE = """
INSERT INTO memory_job(owner, kind, subject, due, body) VALUES (?, ?, ?, 0, ?)
ON CONFLICT(owner, kind, subject) DO UPDATE SET version = memory_job.version + 1, tries = 0, away = 0, due = 0,
error = '', body = excluded.body
WHERE memory_job.body <> excluded.body OR (memory_job.due IS NULL AND memory_job.tries <= ?)"""
_KNOWN = """
SELECT 1 FROM memory_job WHERE owner = ? AND kind = ? AND subject = ? AND (due IS NOT NULL OR tries > ?)"""
_SKIP = """
INSERT INTO memory_queue(owner, skipped) VALUES (?, 1)
ON CONFLICT(owner) DO UPDATE SET skipped = memory_queue.skipped + 1"""
_CLAIM = """
UPDATE memory_job SET tries = tries + 1, due = ? WHERE id = (
    SELECT id FROM memory_job WHERE owner = ? AND due <= ? AND kind <> ? ORDER BY id LIMIT 1
    /*! FOR UPDATE SKIP LOCKED */)
RETURNING id, kind, subject, version, tries, away, body"""
_DUE = """
SELECT 1 FROM memory_job WHERE owner = ? AND due <= ? AND kind <> ?
AND NOT EXISTS (SELECT 1 FROM memory_queue WHERE owner = ? AND until > ?) LIMIT 1"""
_RELEASE = """
UPDATE memory_job SET tries = CASE WHEN tries > 0 THEN tries - 1 ELSE 0 END, due = ?, away = away + ?
WHERE id = ? AND due IS NOT NULL"""
_AWAY = """
INSERT INTO memory_queue(owner, away) VALUES (?, 1) ON CONFLICT(owner) DO UPDATE SET away = memory_queue.away + 1"""
_SAVE = """
INSERT INTO memory_job(owner, kind, subject, due, body) SELECT ?, ?, coalesce(max(subject), 0) + 1, 0, ?
FROM memory_job WHERE owner = ? AND kind = ?"""
_SAVES = "SELECT id, body FROM memory_job WHERE owner = ? AND kind = 'save' ORDER BY id"
_ALL_SAVES = """
SELECT o.name, j.body FROM memory_job AS j JOIN memory_owner AS o ON o.nr = j.owner WHERE j.kind = 'save'"""
_WAITING = "SELECT count(*) FROM memory_job WHERE owner = ? AND due IS NOT NULL AND kind <> 'save'"
