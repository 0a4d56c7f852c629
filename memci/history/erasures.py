"""Erasures as jobs: the audit log says which began, with the rows that each removes, and how each ended.

    {"action":"erase", "context":…, "page":2, …, "pages":1, "entries":4, …, "job":"5f0c21aa", "process":…}
    {"action":"erased", "job":"5f0c21aa", "physical":"done", "memory":"done"}

The rows go in one transaction. A kill or a full disk may leave the rest, that is bytes in files and what the memory
knows: the job has no second line then, and `finish_erasures` or the next opening for writing does it. A repeated
erasure finds its receipt here. A job that the store "refused", or that a kill ended before its transaction, removed
nothing.
"""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..errors import StorageError
from ..storage import Storage
from ..storage.audit import AuditedStorage, AuditLog, audit, mark
from ..storage.locks import has_ended, this_process

_COUNTS = ("contexts", "pages", "entries", "compactions", "ops")


@dataclass(frozen=True, slots=True)
class ErasureReceipt:
    """How many rows an erasure removed, by kind, and whether it is complete."""

    contexts: int  # contexts that were removed whole
    pages: int
    """pages without any message left, counted in each context that showed them; their numbers are not used again"""
    entries: int  # messages, and answers that quoted them
    compactions: int  # stored snapshots of windows; they held earlier Contents Pages
    ops: int  # digests of appends with an `op_id`
    physical: str
    """"done": no byte is left in the store's own files. "pending": another reader still uses an older state of them, or
    the disk is full, or the file has more than 512 MB and is not rewritten at once; call `finish_erasures` later"""
    memory: Literal["done", "pending"] = "done"
    """"done": the memory has forgotten it. "pending": the memory could not be reached, and is told with the next change
    of the context; or its file is still to be scrubbed, as above"""

    @property
    def done(self) -> bool:
        """Whether nothing is left to do."""
        return self.physical == self.memory == "done"


def begin_erasure(storage: object, receipt: ErasureReceipt, **subject: str | int | None) -> str:
    """Log that an erasure of *subject* begins, which removes what *receipt* says; return the name of the job."""
    job = secrets.token_hex(4)
    counts = {name: getattr(receipt, name) for name in _COUNTS}
    audit(storage, "erase", **subject, **counts, job=job, process=this_process())
    return job


def end_erasure(storage: object, job: str, receipt: ErasureReceipt) -> ErasureReceipt:
    """Log how the erasure *job* ended, and return its receipt: the job is pending if that fails."""
    try:
        audit(storage, "erased", job=job, physical=receipt.physical, memory=receipt.memory)
    except StorageError:
        return replace(receipt, physical="pending")
    return receipt


def find_erasure(storage: object, **subject: str | int | None) -> tuple[str, ErasureReceipt] | None:
    """Return the newest job that erased *subject*, and its receipt; None if the log has none. O(log).

    A job of several pages names the first and the last: it answers for a page between them that no other job names.
    What was erased in a context that was itself erased later does not count: its name may be another one's now.
    """
    wanted = {name: mark(value) if isinstance(value, str) else value for name, value in subject.items()}
    context, owner, page = wanted.get("context"), wanted.get("owner"), wanted.get("page")
    found = among = None
    for job, (line, receipt) in _jobs(storage).items():
        whole = line.get("page") is None and line.get("context", context) == context and line.get("owner") == owner
        others = {name for name, value in wanted.items() if line.get(name) != value}
        if not others:
            found = job, receipt
        elif whole:
            found = among = None
        elif others == {"page"} and page in range(line["page"], line.get("last", 0) + 1):
            among = job, receipt
    return found or among


def unfinished_erasures(storage: object) -> Iterator[tuple[str, bool, Mapping[str, Any]]]:
    """Yield the jobs that left something to do, whether a kill ended each, and its line. O(log)."""
    for job, (line, receipt) in _jobs(storage).items():
        if not receipt.done:
            yield job, "ended" not in line and (not line["process"] or has_ended(line["process"])), line


def owners_before(storage: Storage) -> dict[str, set[str]]:
    """Return which owners in *storage* had other contexts before, by the mark of each context. O(log + contexts)."""
    found: dict[str, set[str]] = {}
    if lines := [line for line in _lines(storage, "before") if "context" in line]:
        owners = {mark(record.owner): record.owner for record in storage.contexts()}
        for line in lines:
            if (before := owners.get(line["before"])) is not None:
                found.setdefault(line["context"], set()).add(before)
    return found


def was_erasure_killed(storage: object) -> bool:
    """Return whether a kill left an erasure unfinished. Only the first call for a handle of a store looks. O(log)."""
    log = getattr(storage, "audit_log", None)
    if getattr(log, "looked", True) or not isinstance(storage, AuditedStorage):
        return False
    storage.audit_log.looked = True
    return any(killed for _, killed, _ in unfinished_erasures(storage))


def _jobs(storage: object) -> dict[str, tuple[Mapping[str, Any], ErasureReceipt]]:
    """Return the line and the receipt of each job, oldest first. A line that can't be read is no job's."""
    found: dict[str, tuple[Mapping[str, Any], ErasureReceipt]] = {}
    for line in _lines(storage, "job"):
        with suppress(KeyError, TypeError):
            job = line["job"]
            if line["action"] == "erase":
                counts = {name: line[name] for name in _COUNTS}
                found[job] = line, ErasureReceipt(**counts, physical="pending", memory="pending")
            elif line["action"] == "refused":
                del found[job]
            else:
                begun, receipt = found[job]
                ended = replace(receipt, physical=line["physical"], memory=line["memory"])
                found[job] = {**begun, "ended": True}, ended
    return found


def _lines(storage: object, name: str) -> Iterator[Mapping[str, Any]]:
    """Yield the lines of the log of *storage* that have the field *name*, oldest first. O(log)."""
    log = storage.audit_log if isinstance(storage, AuditedStorage) else None
    yield from log.with_field(name) if isinstance(log, AuditLog) else ()
