"""Chains: pages that go on from one another, and the one summary that they share.

    #3 ──▶ #4 ──▶ #5     #6 ──▶ #7          #6 is about something else, or came days later
    └── chain of #3 ──┘  └─ #6 ─┘
        "Flight to Oslo · … (1 more) · Seat on that flight"

The summary of a chain is held once, by the chain, so that a new page costs O(1). It is made of the pages' own titles
and never of an earlier summary: nothing drifts. (MemoryOS, arXiv 2506.06326, has dialogue chains with a meta summary;
its code rewrites the summary from the summary, and copies it into every page of the chain.)

This module knows nothing of how pages are stored or embedded.
"""

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ...messages import text_of
from ...text.language.keywords import folded, jaccard
from ...text.summarize import one_line
from ..backend import PageRecord

Vector: TypeAlias = npt.NDArray[np.float32]

POINT_COLUMNS = 72
MOST_POINTS = 6
GAP_SECONDS = 6 * 3600.0
"""a page that comes later than this begins another chain; pages without times have no gap"""
_LEAST_COSINE = 0.5
"""of the page vectors"""
_LEAST_OVERLAP = 0.2
"""Jaccard index of the keywords"""
_SHARED = 2
"""as many keywords in common are enough, too"""
_JOINT = " · "


@dataclass(frozen=True, slots=True, eq=False)
class PageFeatures:
    """What is compared of a page."""

    text: str
    title: str = ""
    """its summary in one line"""
    keywords: tuple[str, ...] = ()
    vector: Vector | None = None
    """of unit length; None: not embedded yet"""
    at: float | None = None
    """in seconds since 1970 UTC; None: not known"""


def page_text(page: PageRecord) -> str:
    """Return what is said on *page*, a line for each message: the one text of it that is embedded. O(characters).

    Answers of tools and quotes of other pages are left out, unless there is nothing else.
    """
    own = [(message, text_of(message)) for ordinal, message in page.entries if ordinal not in page.quotes]
    spoken = [
        f"{message.get('name') or message['role']}: {text}" for message, text in own if _speaks(message["role"], text)
    ]
    return "\n".join(spoken or [text for _, text in own if text.strip()])


def _speaks(role: str, text: str) -> bool:
    return role != "tool" and bool(text.strip())


def cosine(some: Vector | None, other: Vector | None) -> float:
    """Return the cosine of two vectors, 0 if one is missing, zero, not finite or of another dimension. O(dimension)."""
    if some is None or other is None or some.shape != other.shape or not some.size:
        return 0.0
    one, two = some.astype(np.float64), other.astype(np.float64)
    if not (np.isfinite(one).all() and np.isfinite(two).all()):
        return 0.0
    scale = float(np.linalg.norm(one) * np.linalg.norm(two))
    if not np.isfinite(scale) or scale == 0:
        return 0.0
    return float(np.clip(one @ two / scale, -1.0, 1.0))


def continues(before: PageFeatures, after: PageFeatures) -> bool:
    """Return whether a page goes on from the one before: alike by vectors or keywords, and no long gap between them."""
    if before.at is not None and after.at is not None and abs(after.at - before.at) > GAP_SECONDS:
        return False
    if cosine(before.vector, after.vector) >= _LEAST_COSINE:
        return True
    common = {folded(word) for word in before.keywords} & {folded(word) for word in after.keywords}
    return len(common - {""}) >= _SHARED or jaccard(before.keywords, after.keywords) >= _LEAST_OVERLAP


@dataclass(frozen=True, slots=True)
class ChainSummary:
    """What a chain is about: how it began, and how it went on lately."""

    pages: int = 0
    points: tuple[str, ...] = ()
    """titles of pages: the first one, and the latest"""
    skipped: int = 0
    """titles between the first and the latest ones that are not shown any more"""
    about: str = ""
    """what it is about, as a model said last; "" if none did"""

    def __str__(self) -> str:
        if self.about:
            return self.about
        first, rest = self.points[:1], self.points[1:]
        gap = [f"… ({self.skipped} more)"] if self.skipped else []
        return _JOINT.join([*first, *gap, *rest])

    def updated(self, title: str) -> "ChainSummary":
        """Return it with one more page, by its own *title*. O(1), of bounded length."""
        point = one_line(title, POINT_COLUMNS) if title.strip() else ""
        if not point or point in self.points:
            return replace(self, pages=self.pages + 1)
        points = (*self.points, point)
        if len(points) <= MOST_POINTS:
            return replace(self, pages=self.pages + 1, points=points)
        return ChainSummary(self.pages + 1, (points[0], *points[2:]), self.skipped + 1, self.about)
