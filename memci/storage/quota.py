"""Quotas: how much the contexts of one owner may hold, in a store around any other one.

    QuotaStorage(SQLiteStorage("agent.db"), Quota(messages=10_000, bytes=50 * 2**20))

    append ──▶ what the owner has + what comes ≤ the quota?  ──▶ commit       else QuotaExceeded: nothing has changed

What an owner has is counted once, from the records of the owner's contexts; if bytes are limited, from their messages,
too. Then each append adds to it. What other processes append is seen every `_RECOUNTED` appends, and before anything is
refused.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Final, NamedTuple

from ..errors import InvalidSetting, QuotaExceeded
from ..rows import ContextRecord, OpRow
from .around import StorageAround
from .protocol import ErasedRows, Erasure, Storage, Transition

_RECOUNTED: Final = 100
"""appends of an owner after which contexts are listed again; more, if the owner has more contexts"""
_REMEMBERED: Final = 10_000
"""owners of whom it is remembered what they have"""


class Quota(NamedTuple):
    """What all contexts of an owner may hold together; None: no limit. What forks share is counted once."""

    bytes: int | None = None
    """of messages, as they are stored"""
    messages: int | None = None
    pages: int | None = None
    """that were ever begun"""


class _Held(NamedTuple):
    """What a context holds."""

    revision: int = 0
    head: int = 0
    bytes: int = 0
    messages: int = 0
    pages: int = 0
    read: int = 0
    """the revision at which all its messages were read"""


@dataclass(slots=True)
class _Owner:
    """What the contexts of an owner hold. A commit that adds to it holds the lock."""

    lock: Lock = field(default_factory=Lock)
    contexts: dict[str, _Held] = field(default_factory=dict)
    left: int = 0
    """appends until contexts are listed again"""
    total: Counter[str] = field(default_factory=Counter)
    """bytes, messages and pages of all contexts"""

    def put(self, context: str, held: _Held) -> None:
        """Note what a context holds now."""
        before = self.contexts.get(context, _Held())
        for name in Quota._fields:
            self.total[name] += getattr(held, name) - getattr(before, name)
        self.contexts[context] = held


class QuotaStorage(StorageAround):
    """Refuses appends by which an owner would have more than a quota.

    Several processes that write for one owner may exceed it together, by what they append within 100 appends of each.

    Args:
        storage: Any store.
        quota: What each owner may have; or a function that returns it for an owner.

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

        Raises:
            QuotaExceeded: If it appends messages, and the owner would have more than the quota.
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
        """Remove what *erasure* names. What is left is counted with the next append."""
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
        """Count what the contexts of *owner* hold that changed; *whole*: messages that were erased, too."""
        before, owner.contexts, owner.total = owner.contexts, {}, Counter()
        for record in self._storage.contexts(owner=name):
            held = before.get(record.id, _Held())
            if held.revision != record.revision or (whole and held.read != record.revision):
                held = self._count_context(record, _Held() if whole else held, quota)
            owner.put(record.id, held)
        owner.left = max(_RECOUNTED, len(owner.contexts))

    def _count_context(self, record: ContextRecord, before: _Held, quota: Quota) -> _Held:
        size, first = before.bytes, max(before.head, record.base)
        if quota.bytes is not None:
            size += sum(len(row.body) for row in self._storage.entries(record.id, first, record.head))
        read = before.read if before.head else record.revision
        return _Held(record.revision, record.head, size, record.head - record.base, record.next_page - 1, read)

    @staticmethod
    def _over(owner: _Owner, transition: Transition, quota: Quota) -> tuple[str, int, int] | None:
        """Return which limit *transition* would exceed, what the owner would have then, and the limit."""
        before = owner.contexts.get(transition.record.id, _Held())
        after = _after(before, transition)
        for name, limit in quota._asdict().items():
            held = owner.total[name] - getattr(before, name) + getattr(after, name)
            if limit is not None and held > limit:
                return name, held, limit
        return None


def _after(before: _Held, transition: Transition) -> _Held:
    """Return what a context holds after *transition*."""
    record = transition.record
    size = before.bytes + sum(len(row.body) for row in transition.entries)
    read = record.revision if before.read == before.revision == record.revision - 1 else before.read
    return _Held(record.revision, record.head, size, record.head - record.base, record.next_page - 1, read)
