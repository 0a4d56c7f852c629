"""One file on a disk whose power may fail: its writes, its syncs, and what is left of it.

    write  write  sync │ write  write ╎ cut here      before the sync: all; since then: any subset, each torn between
                                                      sectors of 512 bytes, the size grown or not
    sync fails                                        its pages of memory are taken for kept, and are not, until the
                                                      same page is written to again and synced

This module knows nothing of names or folders.
"""

import random
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

SECTOR = 512
PAGE = 4096
_NEVER = 2**62


@dataclass(slots=True)
class Change:
    """One write, or a cut to the size *offset* if it has no bytes."""

    at: int
    offset: int
    content: bytes | None
    kept: int = _NEVER
    """when it was synced"""


class Whole(NamedTuple):
    """A file as it was synced."""

    at: int
    changes: int
    content: bytes


@dataclass(slots=True)
class File:
    """An inode with bytes."""

    changes: list[Change] = field(default_factory=list)
    wholes: list[Whole] = field(default_factory=lambda: [Whole(-1, 0, b"")])
    _waiting: list[Change] = field(default_factory=list)
    _stranded: dict[int, list[Change]] = field(default_factory=dict)
    """by memory page: what a sync failed to keep; the system takes it for kept until the page is written to again"""

    def change(self, at: int, offset: int, content: bytes | None) -> None:
        """Take a write, or a cut."""
        self.changes.append(Change(at, offset, content))
        self._waiting.append(self.changes[-1])
        for page in range(offset // PAGE, (offset + max(len(content or b""), 1) - 1) // PAGE + 1):
            self._waiting += self._stranded.pop(page, ())

    def sync(self, at: int, *, failed: bool) -> None:
        """Keep what was written; or, *failed*, strand it."""
        if failed:
            self._strand()
            return
        for change in self._waiting:
            change.kept = at
        if self._waiting and not self._stranded:
            content = bytearray(self.wholes[-1].content)
            for change in self.changes[self.wholes[-1].changes :]:
                _apply(content, change)
            self.wholes.append(Whole(at, len(self.changes), bytes(content)))
        self._waiting = []

    def _strand(self) -> None:
        cuts: list[Change] = []
        for change in self._waiting:
            if change.content is None:
                cuts.append(change)  # a size is of the file system's own journal, and waits for the next sync
                continue
            pieces = list(_split(change, PAGE))
            place = next(place for place, each in enumerate(self.changes) if each is change)
            self.changes[place : place + 1] = pieces
            for piece in pieces:
                self._stranded.setdefault(piece.offset // PAGE, []).append(piece)
        self._waiting = cuts

    def survives(self, cut: int, draw: random.Random) -> bytes:
        """Return what is there after a cut of the power."""
        whole = self.wholes[bisect_left(self.wholes, cut, key=lambda each: each.at) - 1]
        changes = self.changes[whole.changes : bisect_left(self.changes, cut, key=lambda each: each.at)]
        if not changes:
            return whole.content
        content = bytearray(whole.content)
        lost = [number for number, each in enumerate(changes) if each.kept >= cut]
        way = draw.choice(("none", "all", "some", "torn", "but one", "first", "last torn"))
        only = draw.choice(lost) if lost else 0
        for number, change in enumerate(changes):
            if change.kept < cut or way == "all" or (way == "but one" and number != only):
                _apply(content, change)
            elif way == "torn" or (way == "last torn" and number == lost[-1]):
                _tear(content, change, draw)
            elif way == "last torn" or (way == "first" and number < only) or (way == "some" and draw.random() < 0.5):
                _apply(content, change)
        return bytes(content)


def _apply(content: bytearray, change: Change) -> None:
    end = change.offset + len(change.content or b"")
    if len(content) < end:
        content.extend(bytes(end - len(content)))
    if change.content is None:
        del content[change.offset :]
    else:
        content[change.offset : end] = change.content


def _tear(content: bytearray, change: Change, draw: random.Random) -> None:
    """Apply some sectors of *change*; the size may have grown without the bytes."""
    if change.content is None:
        if draw.random() < 0.5:
            _apply(content, change)
        return
    end = change.offset + len(change.content)
    if draw.random() < 0.5 and len(content) < end:
        content.extend(bytes(end - len(content)))
    for piece in _split(change, SECTOR):
        if draw.random() < 0.5:
            _apply(content, piece)


def _split(change: Change, size: int) -> Iterator[Change]:
    """Yield the parts of a write that lie in each run of *size* bytes of the file."""
    content = change.content or b""
    start, end = change.offset, change.offset + len(content)
    while start < end:
        stop = min(end, (start // size + 1) * size)
        yield Change(change.at, start, content[start - change.offset : stop - change.offset], change.kept)
        start = stop
