"""Metrics for Prometheus: counters of one gateway since it started, and what a store looks like now.

    memci_gateway_requests_total{format="anthropic",view="rewritten"} 41
    memci_store_locks{state="waiting"} 2

They contain no text of a conversation, no name and no key.
"""

import shutil
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Final

from ..memory.inspect import queued
from ..storage import Storage
from ..storage.locks import find_living
from ..storage.opening import is_url

_HELP: Final = {
    "requests": "Requests by format; view: untouched, rewritten, or passed (memci did not read it).",
    "upstream": "Answers of the provider, by status.",
    "refused": "Requests that were not sent on, by status.",
    "tool_calls": "Calls of memci's tools that were answered inside.",
    "forks": "Lists that differed from a stored one, and got a context of their own.",
    "tokens": "Tokens that the provider reported, by kind.",
    "gate_tokens": "Tokens that digests of large results saved in requests.",
}
_STORE: Final = {
    "locks": "Locks of conversations, by state.",
    "lock_age_seconds": "For how long the oldest lock is held.",
    "jobs": "Jobs of the memories' models, by state.",
    "bytes": "Size of the store's files.",
    "free_bytes": "Free space on their disk.",
}
BUCKETS: Final = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""seconds; the ends of the buckets, from a small window to a large one on a slow disk"""


class Metrics:
    """Counts events of one process."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._added = dict.fromkeys(BUCKETS, 0)
        self._seconds = 0.0
        self._requests = 0

    def count(self, name: str, by: int = 1, **labels: object) -> None:
        """Add *by* to the counter *name* with these *labels*."""
        self._counts[name, ",".join(f'{key}="{value}"' for key, value in labels.items())] += by

    def add_wait(self, seconds: float) -> None:
        """Count a request that waited *seconds* for memci before it was sent."""
        self._seconds += seconds
        self._requests += 1
        for bound in BUCKETS:
            self._added[bound] += seconds <= bound

    def text(self) -> str:
        """Return all counters as text."""
        lines = []
        for name, about in _HELP.items():
            lines += [f"# HELP memci_gateway_{name}_total {about}", f"# TYPE memci_gateway_{name}_total counter"]
            found = sorted(each for each in self._counts if each[0] == name)
            lines += [f"memci_gateway_{name}_total{{{labels}}} {self._counts[name, labels]}" for _, labels in found]
        name, buckets = "memci_gateway_added_seconds", [*self._added.items(), ("+Inf", self._requests)]
        lines += [f"# HELP {name} What memci added before a request was sent.", f"# TYPE {name} histogram"]
        lines += [f'{name}_bucket{{le="{bound}"}} {requests}' for bound, requests in buckets]
        return "\n".join([*lines, f"{name}_sum {self._seconds:.6f}", f"{name}_count {self._requests}", ""])


def store_text(storage: Storage, place: str) -> str:
    """Return the locks and queues of *storage*, and the disk below its file or folder *place*, as text. O(tickets).

    The first ticket of a context holds its lock; the age is that of the oldest lock. A database has no disk here.
    """
    tickets = find_living(storage.tickets())
    held = {each.context: each.since for each in reversed(tickets)}
    waiting, aside = queued(storage)
    age = max(0.0, time.time() - min(held.values())) if held else 0.0
    found: list[tuple[str, str, float]] = [
        ("locks", '{state="held"}', len(held)),
        ("locks", '{state="waiting"}', len(tickets) - len(held)),
        ("lock_age_seconds", "", age),
        ("jobs", '{state="waiting"}', waiting),
        ("jobs", '{state="set aside"}', aside),
    ]
    path = Path(place)
    if not is_url(place) and path.exists():
        files = path.rglob("*") if path.is_dir() else path.parent.glob(f"{path.name}*")
        size = 0
        for each in files:
            with suppress(OSError):  # a log may be removed meanwhile
                size += each.stat().st_size
        found += [("bytes", "", size), ("free_bytes", "", shutil.disk_usage(path).free)]
    lines = []
    for name in dict.fromkeys(name for name, _, _ in found):
        lines += [f"# HELP memci_store_{name} {_STORE[name]}", f"# TYPE memci_store_{name} gauge"]
        lines += [f"memci_store_{name}{labels} {value:.12g}" for each, labels, value in found if each == name]
    return "\n".join([*lines, ""])
