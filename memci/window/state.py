"""The small facts of one context that are neither messages nor pages, as they are stored with it.

    Memo(nonce="5f0c21aa", pins=(3,), ratios=(1.02, 1.03))  ──▶  JSON, a row's column  ──▶  the same

This module knows nothing of messages or of what the facts are used for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from .outbox import Runs, posted

RATIOS = 8
"""Requests whose reported tokens are compared with the predicted ones."""
WAITING = 256
"""How many ids of interrupted calls are remembered, so that a late result is recognised without a search."""


@dataclass(frozen=True, slots=True)
class Memo:
    """The small facts of a context that are neither messages nor pages; bounded by the window."""

    nonce: str
    tools: int = 0
    """tokens of the tools of the last rendering"""
    ratios: tuple[float, ...] = ()
    """reported to predicted tokens of the last requests, newest last"""
    pins: tuple[int, ...] = ()
    relist: tuple[int, ...] = ()
    """pages that were recalled and get a line of their own at the next edition"""
    waiting: tuple[str, ...] = ()
    """ids of the latest calls that were interrupted"""
    editions: int = 0
    task: int | None = None
    """the context's first page"""
    undone: int = 0
    """how many pages were taken back"""
    erased: int = 0
    """how many pages are gone on request"""
    since: int = 0
    """the head from which on earlier states can be seen: that of the fork, or of the last erasure"""
    outbox: Runs = ()
    """pages that changed their fate, which the memory has not been told of: unloaded, undone, erased, split"""

    recollection: tuple[int, str] | None = None
    """the memory page of an open page: its index, and what was found for it"""

    def posting(self, indexes: Iterable[int]) -> Memo:
        """Return the memo with *indexes* in the outbox. O(outbox)."""
        return replace(self, outbox=posted(self.outbox, indexes))

    def dumps(self) -> str:
        """Return the memo as JSON."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def loads(cls, text: str) -> Memo:
        """Return the memo that `dumps` wrote."""
        fields = json.loads(text)
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()
        }
        values["outbox"] = tuple((first, last) for first, last in fields.get("outbox", ()))
        return cls(**values)
