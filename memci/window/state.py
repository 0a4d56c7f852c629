"""The small facts of one context that are neither messages nor pages; they are stored with its record.

They are bounded by the window, whatever the size of the archive.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, Final, Literal, NamedTuple

from orjson import JSONEncodeError, dumps

from ..rows import ContextRecord
from ..segments.cache_policy import UNSEEN, CacheUse
from ..segments.own import ShownSegments
from .outbox import Runs, add_pages

CLOCKS = 8  # models whose last calls are remembered: more than a router chooses among within the lifetime of a cache
RATIOS = 8
"""Requests whose reported tokens are compared with the predicted ones. Their median is used: single odd reports do not
matter."""
LEARNED = 100  # facts that programs may store with a context: as many as a memory holds of a person
WAITING = 256
"""How many ids of interrupted calls are remembered, so that a late result is recognised without a search. It is more
than a model calls at once."""

DROPPED = 512  # dropped instructions that are remembered: many more than stand at once

ELSEWHERE: Final = ("recollection", "segments")
"""the fields with words of other contexts: only the context itself has them, in its record"""


_Learned = tuple[int, Literal["user", "assistant"], str, float | None, str, Literal["fact", "relationship"]]


class WindowState(NamedTuple):
    """The small facts of a context that are neither messages nor pages; bounded by the window."""

    nonce: str
    tools: int = 0  # tokens of the tools of the last rendering
    ratios: tuple[float, ...] = ()  # reported to predicted tokens of the last requests, newest last
    refused: float = 1.0  # the ratio at which the provider refused a request as too long; 1.0: it never did
    pins: tuple[int, ...] = ()
    dropped: Runs = ()
    """marks of instructions that the caller dropped (`memci.chapters.instructions.mark_of`), newest last"""
    relist: tuple[int, ...] = ()  # pages that were recalled and get a line of their own at the next compaction
    waiting: tuple[str, ...] = ()  # ids of the latest calls that were interrupted
    compactions: int = 0
    task: int | None = None  # the context's first page
    undone: int = 0  # how many pages were taken back
    erased: int = 0  # how many pages are gone on request
    erasures: int = 0  # how often something was erased: a handle that has read another number shows what is gone
    since: int = 0  # the head at the fork, or at the last erasure: states before it can't be shown
    outbox: Runs = ()
    """pages that changed since they were fed to the memory: undone, erased, closed after later ones; the memory forgets
    those that are open"""

    rewritten: int = 0
    """the first seq of the page that was open when a compaction last changed the window before that page"""
    lead: int = 0  # the seq before which messages stand in front of the Contents Page: those of the first page
    cache: CacheUse = UNSEEN  # the counts of the cache policy
    clocks: tuple[tuple[str, float | None, int], ...] = ()
    """models that were in use before the present one, when each was called last (seconds since 1970), and the head
    then; newest last"""
    learned: tuple[_Learned, ...] = ()
    """facts that programs had stored, or removed: the fields of `memci.memory.backend.Learned`"""
    recollection: tuple[int, str] | None = None
    """the memory page of an open page: the index of the open page, and the text that was found"""

    segments: ShownSegments | None = None
    """what segments of the program show; None: none was shown yet"""

    def alone(self) -> WindowState:
        """Return the state without words of other contexts."""
        bare: dict[str, Any] = {name: None for name in ELSEWHERE if _has_words(getattr(self, name))}
        return self._replace(**bare)

    def handed_over(self) -> WindowState:
        """Return the state for another owner: with words of the context's own messages only."""
        return self.alone()._replace(learned=())

    def posting(self, indexes: Collection[int]) -> WindowState:
        """Return the state with *indexes* in the outbox. O(outbox)."""
        return self._replace(outbox=add_pages(self.outbox, indexes))

    def without(self, pages: Collection[int]) -> WindowState:
        """Return the state without the marks of *pages*, which are no longer shown. O(pins + relisted pages)."""
        return self._replace(
            pins=tuple(index for index in self.pins if index not in pages),
            relist=tuple(index for index in self.relist if index not in pages),
            learned=tuple(each for each in self.learned if each[0] not in pages),
            dropped=tuple(mark for mark in self.dropped if mark[0] not in pages),
            task=None if self.task is not None and self.task in pages else self.task,  # None in a range is O(range)
        )

    def dumps(self) -> str:
        """Return the state as JSON."""
        fields = self._asdict()
        try:
            return dumps(fields, tuple).decode()
        except JSONEncodeError:  # half of a surrogate pair
            return json.dumps(fields, separators=(",", ":"))

    @classmethod
    def loads(cls, text: str) -> WindowState:
        """Return the state that `dumps` wrote."""
        values: dict[str, Any] = {key: _as_tuples(value) for key, value in json.loads(text).items()}
        return cls(**values | {"cache": CacheUse(*values.get("cache", ()))})


def _as_tuples(value: object) -> object:
    """Return *value*, which JSON gave, with tuples in the place of lists."""
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


def _has_words(value: object) -> bool:
    return any(map(_has_words, value)) if isinstance(value, tuple) else isinstance(value, str) and value != ""


def alone(record: ContextRecord, *, handed_over: bool = False) -> ContextRecord:
    """Return *record* without words of other contexts in its state, *handed_over* for another owner. O(state).

    An encrypted one stays as it is.
    """
    if record.encrypted:
        return record
    state = WindowState.loads(record.state)
    bare = state.handed_over() if handed_over else state.alone()
    return record if bare == state else record._replace(state=bare.dumps())
