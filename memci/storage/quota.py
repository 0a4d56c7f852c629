"""Quotas: how much the contexts of one owner may hold, in a store around any other one.

    append ──▶ stored + new ≤ quota?  ──▶ commit       else QuotaExceeded, and nothing has changed

The usage of an owner is counted once from the records of its contexts, and from their messages if bytes are limited.
Each append then adds to it. Before a refusal messages are read, since those that were erased do not count. Appends of
other processes are counted every `_RECOUNTED` appends, and before a refusal.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Final, NamedTuple

from ..errors import InvalidSetting, QuotaExceeded
from ..rows import ContextRecord, OpRow
from .around import StorageAround
from .codec import ERASED, SEALED
from .protocol import ErasedRows, Erasure, Storage, Transition

_RECOUNTED: Final = 100
"""Appends of an owner between two counts, or its number of contexts, if that is larger: a count then costs each append
one record at most."""
_REMEMBERED: Final = 10_000  # owners whose usage is kept in RAM: some MB


class Quota(NamedTuple):
    """Limits for all contexts of an owner together; None: no limit. Messages that forks share count once."""

    bytes: int | None = None  # of messages, as they are stored
    messages: int | None = None
    pages: int | None = None  # pages that were ever begun


class _Held(NamedTuple):
    """The usage of one context."""

    revision: int = 0
    head: int = 0
    bytes: int = 0
    messages: int = 0
    pages: int = 0
    read: int = 0  # the revision at which all its messages were last read


@dataclass(slots=True)
class _Owner:
    """The usage of one owner. A commit holds the lock while it adds to it."""

    lock: Lock = field(default_factory=Lock)
    contexts: dict[str, _Held] = field(default_factory=dict)
    left: int = 0  # appends until the next count
    total: Counter[str] = field(default_factory=Counter)  # bytes, messages and pages of all contexts

    def put(self, context: str, held: _Held) -> None:
        """Set the usage of one context."""
        before = self.contexts.get(context, _Held())
        for name in Quota._fields:
            self.total[name] += getattr(held, name) - getattr(before, name)
        self.contexts[context] = held


class QuotaStorage(StorageAround):
    """Refuses appends that would exceed the quota of their owner.

    Several processes that write for one owner may exceed it together, by what each appends between two counts.

    Args:
        storage: Any store.
        quota: The limits of each owner, or a function that returns those of an owner.

    Raises:
        InvalidSetting: If a limit is not a number from 0.
    """

    def __init__(self, storage: Storage, quota: Quota | Callable[[str], Quota]) -> None:
        super().__init__(storage)
        self._quota = quota
        self._owners: dict[str, _Owner] = {}
        self._quota_of("")

    def commit(self, transition: Transition) -> OpRow | None:
        """Apply *transition*, as the protocol says. O(rows); the first time O(contexts, or messages, of the owner).

        QuotaExceeded if it appends messages that would exceed the quota.
        """
        record = transition.record
        quota = self._quota_of(record.owner)
        if not transition.entries or not any(limit is not None for limit in quota):
            return self._storage.commit(transition)
        if len(self._owners) >= _REMEMBERED:
            self._owners.clear()
        owner = self._owners.setdefault(record.owner, _Owner())
        with owner.lock:
            if owner.left <= 0 or (transition.head and record.id not in owner.contexts):
                self._count(owner, record.owner, quota)
            if self._over(owner, transition, quota):
                self._count(owner, record.owner, quota, whole=True)
                over = self._over(owner, transition, quota)
                op = transition.op
                if over and (op is None or self._storage.op(record.id, op.op_id) is None):
                    raise QuotaExceeded(record.owner, *over)
            known = self._storage.commit(transition)
            if known is None:
                owner.put(record.id, _after(owner.contexts.get(record.id, _Held()), transition))
                owner.left -= 1
            return known

    def erase(self, erasure: Erasure) -> ErasedRows:
        """Remove what *erasure* names. The next append counts again."""
        gone = self._storage.erase(erasure)
        self._owners.clear()
        return gone

    def _quota_of(self, owner: str) -> Quota:
        quota = self._quota(owner) if callable(self._quota) else self._quota
        for name, limit in quota._asdict().items():
            if limit is not None and (type(limit) is not int or limit < 0):
                raise InvalidSetting(name, f"expected a number from 0, or None for no limit, got {limit!r:.60}")
        return quota

    def _count(self, owner: _Owner, name: str, quota: Quota, *, whole: bool = False) -> None:
        """Count the contexts of *owner* that changed; *whole*: also those of which messages were erased."""
        before, owner.contexts, owner.total = owner.contexts, {}, Counter()
        for record in self._storage.contexts(owner=name):
            held = before.get(record.id, _Held())
            if held.revision != record.revision or (whole and held.read != record.revision):
                held = self._count_context(record, _Held() if whole else held, quota, whole=whole)
            owner.put(record.id, held)
        owner.left = max(_RECOUNTED, len(owner.contexts))

    def _count_context(self, record: ContextRecord, before: _Held, quota: Quota, *, whole: bool) -> _Held:
        first = max(before.head, record.base)
        size, messages = before.bytes, before.messages + record.head - first
        reads = quota.bytes is not None or (whole and quota.messages is not None)
        if reads:
            for row in self._storage.entries(record.id, first, record.head):
                size += len(row.body)
                messages -= row.codec % SEALED == ERASED
        read = record.revision if reads and not before.head else before.read
        return _Held(record.revision, record.head, size, messages, record.next_page - 1, read)

    @staticmethod
    def _over(owner: _Owner, transition: Transition, quota: Quota) -> tuple[str, int, int] | None:
        """Return the limit that *transition* would exceed: its name, the usage then, and the limit."""
        before = owner.contexts.get(transition.record.id, _Held())
        after = _after(before, transition)
        for name, limit in quota._asdict().items():
            held = owner.total[name] - getattr(before, name) + getattr(after, name)
            if limit is not None and held > limit:
                return name, held, limit
        return None


def _after(before: _Held, transition: Transition) -> _Held:
    """Return the usage of a context after *transition*."""
    record = transition.record
    size = before.bytes + sum(len(row.body) for row in transition.entries)
    read = record.revision if before.read == before.revision == record.revision - 1 else before.read
    messages = before.messages + len(transition.entries)
    return _Held(record.revision, record.head, size, messages, record.next_page - 1, read)
