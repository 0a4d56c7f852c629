"""The small facts of one context that are neither messages nor pages, as they are stored with it.

    WindowState(nonce="5f0c21aa", pins=(3,), ratios=(1.02, 1.03))  ──▶  JSON, a row's column  ──▶  the same

This module knows nothing of messages or of what the facts are used for.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from ..segments.cache_policy import UNSEEN, CacheUse
from .outbox import Runs, add_pages

RATIOS = 8
"""Requests whose reported tokens are compared with the predicted ones."""
WAITING = 256
"""How many ids of interrupted calls are remembered, so that a late result is recognised without a search."""

_ENCODER = json.JSONEncoder(separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class WindowState:
    """The small facts of a context that are neither messages nor pages; bounded by the window."""

    nonce: str
    tools: int = 0
    """tokens of the tools of the last rendering"""
    ratios: tuple[float, ...] = ()
    """reported to predicted tokens of the last requests, newest last"""
    pins: tuple[int, ...] = ()
    relist: tuple[int, ...] = ()
    """pages that were recalled and get a line of their own at the next compaction"""
    waiting: tuple[str, ...] = ()
    """ids of the latest calls that were interrupted"""
    compactions: int = 0
    task: int | None = None
    """the context's first page"""
    undone: int = 0
    """how many pages were taken back"""
    erased: int = 0
    """how many pages are gone on request"""
    since: int = 0
    """the head from which on earlier states can be seen: that of the fork, or of the last erasure"""
    outbox: Runs = ()
    """pages that changed since the memory got them: undone, erased, closed behind later ones; open: to be forgotten"""

    rewritten: int = 0
    """the first seq of the page that was open when a compaction last changed what stands in front of it"""
    cache: CacheUse = UNSEEN
    """what the cache policy has seen of the context"""
    recollection: tuple[int, str] | None = None
    """the memory page of an open page: its index, and what was found for it"""

    def posting(self, indexes: Collection[int]) -> WindowState:
        """Return the state with *indexes* in the outbox. O(outbox)."""
        if not indexes:
            return self
        return replace(self, outbox=add_pages(self.outbox, indexes))

    def without(self, pages: Collection[int]) -> WindowState:
        """Return the state without the marks of *pages*, which are not shown any more. O(pins + relisted pages)."""
        return replace(
            self,
            pins=tuple(index for index in self.pins if index not in pages),
            relist=tuple(index for index in self.relist if index not in pages),
            task=None if self.task is not None and self.task in pages else self.task,  # None in a range is O(range)
        )

    def dumps(self) -> str:
        """Return the state as JSON."""
        return _ENCODER.encode({key: getattr(self, key) for key in self.__slots__})

    @classmethod
    def loads(cls, text: str) -> WindowState:
        """Return the state that `dumps` wrote."""
        fields = json.loads(text)
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()
        }
        values["cache"] = CacheUse(*fields.get("cache", ()))
        values["outbox"] = tuple((first, last) for first, last in fields.get("outbox", ()))
        return cls(**values)
