"""The job queue of one owner: steps that wait for a model, as rows.

    enqueue ──▶ due ──▶ claim: tries + 1, due again in 10 minutes ──▶ finish: removed
                                        │                         ──▶ fail: due after 30 s, 1 min, 2 min, 4 min
                                        └ its process died: due again     5 tries: set aside

A job is stored before it starts, and removed in the transaction that stores its result: it is done at least once. A
step checks what it read before it writes, so that doing it twice changes nothing. If the model is unavailable, this is
no failure: all jobs of the owner wait. A job has ids and no text.
"""

from typing import Final, NamedTuple

from ..backend import Work
from .store import OwnerTable

MOST: Final = 1_000  # jobs of an owner that may wait: a bound for a store whose model is never available
TRIES: Final = 5  # failures after which a job is set aside: with the pauses, some eight minutes of trying
VISIBLE_SECONDS: Final = 600.0
"""after which a claimed job is due again: longer than a slow local model needs for a step"""
FIRST_SECONDS: Final = 30.0  # pause after the first failure; each further one doubles it
LONGEST_SECONDS: Final = 3_600.0  # longest pause: a model that returns is used within an hour


class Job(NamedTuple):
    """A job that was claimed."""

    id: int
    kind: str
    subject: int  # id of the row that it is about
    version: int  # number of changes of its body
    tries: int  # number of tries, including this one
    body: str


class JobQueue(OwnerTable):
    """The jobs of one owner. Call all methods that write within a change of the store, except `claim`."""

    def enqueue(self, kind: str, subject: int = 0, body: str = "") -> bool:
        """Add a job, if it is not there; another *body* makes it due again. Return False if too many wait. O(1).

        A job that was set aside after it was done without the model is tried again, since its data is new.
        """
        key = self._owner.nr, kind, subject
        known = self._store.read_value("SELECT 1 FROM memory_job WHERE owner = ? AND kind = ? AND subject = ?", *key)
        if not known and (self._store.read_value(_WAITING, self._owner.nr) or 0) >= MOST:
            return False
        self._store.execute(_ENQUEUE, *key, body, TRIES)
        return True

    def known(self, kind: str, subject: int) -> bool:
        """Return whether a job waits, or was set aside for good."""
        return bool(self._store.read_rows(_KNOWN, self._owner.nr, kind, subject, TRIES))

    def skip(self) -> None:
        """Count a job that was not added."""
        self._store.execute(_SKIP, self._owner.nr)

    def claim(self, now: float) -> Job | None:
        """Claim the oldest job that is due, which counts as a try; return None if none is due. One transaction."""
        if not self.due(now):
            return None
        with self._store.change():
            rows = self._store.read_rows(_CLAIM, now + VISIBLE_SECONDS, self._owner.nr, now)
        return Job(*rows[0]) if rows else None

    def due(self, now: float) -> bool:
        """Return whether a job is due and the queue is not held. One query."""
        nr = self._owner.nr
        return bool(self._store.read_rows(_DUE, nr, now, nr, now))

    def finish(self, job: Job) -> None:
        """Remove a job that is done; if its body has changed meanwhile, make it due again."""
        self._store.execute("DELETE FROM memory_job WHERE id = ? AND version = ?", job.id, job.version)
        self._store.execute("UPDATE memory_job SET tries = 0, due = 0 WHERE id = ? AND due IS NOT NULL", job.id)

    def fail(self, job: Job, now: float, *, at_once: bool = False) -> None:
        """Have a job that failed done again later, or *at_once* if its data had changed."""
        later = 0.0 if at_once else now + _pause(job.tries)
        self._store.execute("UPDATE memory_job SET due = ? WHERE id = ?", later, job.id)

    def set_aside(self, job: Job, *, undone: bool = False) -> None:
        """Set a job aside that failed too often; *undone*: it could not be done without the model either."""
        self._store.execute("UPDATE memory_job SET due = NULL, tries = ? WHERE id = ?", TRIES + undone, job.id)

    def release(self, job: Job, now: float) -> None:
        """Return a job that could not be tried. This does not count as a try."""
        self._store.execute(_RELEASE, now + FIRST_SECONDS, job.id)

    def hold(self, job: Job, now: float) -> None:
        """Hold all jobs for a while, since the model is unavailable. This does not count as a try."""
        self._store.execute(_RELEASE, now, job.id)
        away = self._store.insert_row(_AWAY, self._owner.nr)
        self._store.execute("UPDATE memory_queue SET until = ? WHERE owner = ?", now + _pause(away), self._owner.nr)

    def answered(self) -> None:
        """Release the jobs that are held, since the model answers."""
        self._store.execute("UPDATE memory_queue SET until = 0, away = 0 WHERE owner = ? AND away > 0", self._owner.nr)

    def counts(self) -> Work:
        """Return the numbers of jobs; the costs are in the usage ledger. O(jobs)."""
        nr = self._owner.nr
        rows = self._store.read_rows("SELECT count(due), count(*) FROM memory_job WHERE owner = ?", nr)
        waiting, all_ = rows[0] if rows else (0, 0)
        skipped = self._store.read_value("SELECT skipped FROM memory_queue WHERE owner = ?", nr) or 0
        return Work(waiting, all_ - waiting, skipped)

    def clear(self) -> None:
        """Remove all jobs, counters and costs."""
        for statement in _CLEAR:
            self._store.execute(statement, self._owner.nr)


def _pause(times: int) -> float:
    return float(min(LONGEST_SECONDS, FIRST_SECONDS * 2 ** (max(1, times) - 1)))


_ENQUEUE = """
INSERT INTO memory_job(owner, kind, subject, due, body) VALUES (?, ?, ?, 0, ?)
ON CONFLICT(owner, kind, subject) DO UPDATE SET
version = memory_job.version + 1, tries = 0, due = 0, body = excluded.body
WHERE memory_job.body <> excluded.body OR (memory_job.due IS NULL AND memory_job.tries <= ?)"""
_KNOWN = """
SELECT 1 FROM memory_job WHERE owner = ? AND kind = ? AND subject = ? AND (due IS NOT NULL OR tries > ?)"""
_SKIP = """
INSERT INTO memory_queue(owner, skipped) VALUES (?, 1)
ON CONFLICT(owner) DO UPDATE SET skipped = memory_queue.skipped + 1"""
_CLAIM = """
UPDATE memory_job SET tries = tries + 1, due = ? WHERE id = (
    SELECT id FROM memory_job WHERE owner = ? AND due <= ? ORDER BY id LIMIT 1
    /*! FOR UPDATE SKIP LOCKED */)
RETURNING id, kind, subject, version, tries, body"""
_DUE = """
SELECT 1 FROM memory_job WHERE owner = ? AND due <= ?
AND NOT EXISTS (SELECT 1 FROM memory_queue WHERE owner = ? AND until > ?) LIMIT 1"""
_RELEASE = """
UPDATE memory_job SET tries = CASE WHEN tries > 0 THEN tries - 1 ELSE 0 END, due = ?
WHERE id = ? AND due IS NOT NULL"""
_AWAY = """
INSERT INTO memory_queue(owner, away) VALUES (?, 1)
ON CONFLICT(owner) DO UPDATE SET away = memory_queue.away + 1 RETURNING away"""
_CLEAR = (
    "DELETE FROM memory_job WHERE owner = ?",
    "DELETE FROM memory_queue WHERE owner = ?",
    "DELETE FROM memory_spent WHERE owner = ?",
)
_WAITING = "SELECT count(*) FROM memory_job WHERE owner = ? AND due IS NOT NULL"
