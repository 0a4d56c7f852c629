"""Heat: how much an episode is used.

    heat = visits + length + recency          recency = exp(-(now - last visit) / 1e7 s)

    visits   0 ──────▶ 3 ──────▶ 7            lifetime heat: all of it. The coldest episodes are evicted.
                       └ analysed             heat since the analysis: what came after it, here 4 visits.
                                              At `PROMOTED` or above, an episode is analysed (again).

One counter for both would evict the episode that was just found most valuable. Recency is at most 1, as much as a
single visit. Heat is never stored itself. The paper (arXiv 2506.06326) writes alpha · N_visit + beta · L_interaction +
gamma · R_recency, with alpha = beta = gamma = 1, and tau = 1e7 seconds.
"""

import heapq
import math
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from typing import Literal

PROMOTED = 5.0
"""the heat since the analysis at which an episode is analysed (the paper's threshold)"""


TAU_SECONDS = 1e7
"""the time in which recency falls to 37 %: 116 days"""


def heat(visits: float, length: float, last_visit: float, now: float) -> float:
    """Return the heat of what was visited *visits* times, has *length* pages and was last visited at *last_visit*.

    Recency is 1 for a visit just now, and falls towards 0; a visit that lies in the future counts as now.
    """
    return visits + length + math.exp(-max(0.0, now - last_visit) / TAU_SECONDS)


@dataclass(frozen=True, slots=True)
class Warmth:
    """What is stored of an episode's use (length in pages, times in seconds since 1970 UTC), and both heats of it."""

    visits: int = 0
    length: int = 0
    last_visit: float = 0.0
    access_count: int = 0
    analysed_visits: int = 0
    """the visits up to the last analysis"""
    analysed_length: int = 0

    def lifetime(self, now: float) -> float:
        """Return the heat of everything that ever happened to it: by this it is evicted."""
        return heat(self.visits, self.length, self.last_visit, now)

    def since_analysis(self, now: float) -> float:
        """Return the heat of what happened since the last analysis, 0 if nothing did: by this it is promoted."""
        visits = max(0, self.visits - self.analysed_visits)
        length = max(0, self.length - self.analysed_length)
        return heat(visits, length, self.last_visit, now) if visits or length else 0.0

    def visited(self, now: float) -> "Warmth":
        """Return it after one more visit by a search."""
        last = max(self.last_visit, now)
        return replace(self, visits=self.visits + 1, access_count=self.access_count + 1, last_visit=last)

    def grown(self, pages: int, now: float) -> "Warmth":
        """Return it after *pages* joined, which counts as one visit."""
        last = max(self.last_visit, now)
        return replace(self, visits=self.visits + 1, length=self.length + pages, last_visit=last)

    def analysed(self, sent: "Warmth") -> "Warmth":
        """Return it after the analysis of what it was when it was *sent*: what came meanwhile still counts."""
        visits = max(self.analysed_visits, sent.visits)
        return replace(self, analysed_visits=visits, analysed_length=max(self.analysed_length, sent.length))


Order = Literal["heat", "lfu"]


def coldest(
    episodes: Mapping[int, Warmth],
    capacity: int,
    *,
    now: float,
    order: Order = "heat",
    changed: Set[int] = frozenset(),
) -> list[int]:
    """Return which episodes (by id) to evict so that *capacity* are left, coldest first. O(n log n).

    In the *order* "heat" the lowest lifetime heat goes first, in "lfu" the least often accessed. What *changed* since
    the last maintenance stays, even if too many are left then.
    """
    excess = len(episodes) - capacity

    def coldness(key: int) -> tuple[float, float, float, int]:
        own = episodes[key]
        warmth = own.lifetime(now)
        return (own.access_count if order == "lfu" else warmth, warmth, own.last_visit, key)

    return heapq.nsmallest(excess, (key for key in episodes if key not in changed), key=coldness) if excess > 0 else []
