"""Heat: how much an episode is used.

    heat = alpha · visits + beta · length + gamma · recency          recency = exp(-(now - last visit) / tau)

    visits   0 ──────▶ 3 ──────▶ 7            lifetime heat: all of it. The coldest episodes are evicted.
                       └ analysed             heat since the analysis: what came after it, here 4 visits.
                                              At `PROMOTED` or above, an episode is analysed (again).

One counter for both would make the episode that was just found most valuable the next one to be evicted. Recency is at
most 1, as much as a single visit: it breaks ties. Heat is reckoned from what is stored and is never stored itself.
The paper writes N_visit, L_interaction and R_recency (arXiv 2506.06326).

This module knows nothing of episodes, pages or where they are stored.
"""

import heapq
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Literal

PROMOTED = 5.0
"""the heat since the analysis at which an episode is analysed (the paper's threshold)"""


@dataclass(frozen=True, slots=True)
class Heat:
    """What a visit, a page and recency weigh."""

    alpha: float = 1.0
    beta: float = 1.0
    gamma: float = 1.0
    tau_seconds: float = 1e7
    """the time in which recency falls to 37 %; infinite: it never falls"""


PAPER = Heat()
"""arXiv 2506.06326: alpha = beta = gamma = 1, tau = 1e7 seconds (116 days)"""
RELEASED = Heat(tau_seconds=24 * 3600.0)
"""the released MemoryOS package: weights of 1, a time constant of 24 hours"""
EVALUATION = Heat(alpha=0.8, beta=0.8, gamma=1e-4, tau_seconds=math.inf)
"""the LoCoMo evaluation of MemoryOS: it takes the decay between now and now, so its recency is always 1"""


def recency(last_visit: float, now: float, tau_seconds: float) -> float:
    """Return 1 for a visit just now, towards 0 with time; a visit that lies in the future counts as now."""
    return math.exp(-max(0.0, now - last_visit) / tau_seconds)


def heat(weights: Heat, visits: float, length: float, last_visit: float, now: float) -> float:
    """Return the heat of what was visited *visits* times, has *length* pages and was last visited at *last_visit*."""
    warmth = weights.alpha * visits + weights.beta * length
    return warmth + weights.gamma * recency(last_visit, now, weights.tau_seconds)


@dataclass(frozen=True, slots=True)
class Warmth:
    """What is stored of an episode's use, and both heats of it."""

    visits: int = 0
    length: int = 0
    """pages"""
    last_visit: float = 0.0
    """in seconds since 1970 UTC"""
    access_count: int = 0
    analysed_visits: int = 0
    """the visits up to the last analysis"""
    analysed_length: int = 0

    def lifetime(self, now: float, weights: Heat = PAPER) -> float:
        """Return the heat of everything that ever happened to it: by this it is evicted."""
        return heat(weights, self.visits, self.length, self.last_visit, now)

    def since_analysis(self, now: float, weights: Heat = PAPER) -> float:
        """Return the heat of what happened since the last analysis, 0 if nothing did: by this it is promoted."""
        visits = max(0, self.visits - self.analysed_visits)
        length = max(0, self.length - self.analysed_length)
        return heat(weights, visits, length, self.last_visit, now) if visits or length else 0.0

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
    weights: Heat = PAPER,
    changed: Collection[int] = (),
) -> list[int]:
    """Return which episodes to evict so that *capacity* are left, coldest first. O(n log n).

    Args:
        episodes: Every episode by its id.
        capacity: How many may stay.
        now: In seconds since 1970 UTC.
        order: "heat": the lowest lifetime heat goes first; "lfu": the least often accessed.
        weights: For the heat.
        changed: Ids of episodes that changed since the last maintenance: they stay, even if too many are left then.
    """
    excess = len(episodes) - capacity
    kept = frozenset(changed)

    def coldness(key: int) -> tuple[float, float, float, int]:
        own = episodes[key]
        warmth = own.lifetime(now, weights)
        return (own.access_count if order == "lfu" else warmth, warmth, own.last_visit, key)

    return heapq.nsmallest(excess, (key for key in episodes if key not in kept), key=coldness) if excess > 0 else []


class Hottest:
    """A heap of ids, hottest on top, in which a change is one push: what it outdates is skipped when it comes up.

        push(7, 4.0)  push(9, 3.0)  push(7, 1.0)      heap   7:4.0  9:3.0  7:1.0
        peek() = (9, 3.0)                                    └ outdated, dropped

    Equal heat: the lower id first.
    """

    __slots__ = ("_heap", "_live")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, int]] = []
        """(-heat, id, version)"""
        self._live: dict[int, tuple[float, int]] = {}
        """id to (-heat, version): the entry that counts"""

    def __len__(self) -> int:
        return len(self._live)

    def __contains__(self, key: object) -> bool:
        return key in self._live

    def push(self, key: int, warmth: float, version: int = 0) -> None:
        """Set the heat of *key*; a version below the one that is known changes nothing. O(log n) amortised."""
        known = self._live.get(key)
        if known is not None and version < known[1]:
            return
        self._live[key] = (-warmth, version)
        heapq.heappush(self._heap, (-warmth, key, version))
        self._compact()

    def discard(self, key: int) -> None:
        """Take *key* out, if it is there. O(1) amortised."""
        self._live.pop(key, None)
        self._compact()

    def peek(self, current: Callable[[int], float] | None = None) -> tuple[int, float] | None:
        """Return the hottest id and its heat, None if there is none. O(log n) amortised.

        Args:
            current: The heat of an id as it is now. Heat only falls between two pushes, so that a top which cooled
                down is pushed again with what it has, until one stays on top.
        """
        while self._heap:
            negative, key, version = self._heap[0]
            if self._live.get(key) != (negative, version):
                heapq.heappop(self._heap)
                continue
            now = -negative if current is None else min(current(key), -negative)
            if now >= -negative:
                return key, -negative
            self._live[key] = (-now, version)
            heapq.heapreplace(self._heap, (-now, key, version))
        return None

    def pop(self, current: Callable[[int], float] | None = None) -> tuple[int, float] | None:
        """Take the hottest id out and return it with its heat, None if there is none. O(log n) amortised."""
        top = self.peek(current)
        if top is not None:
            heapq.heappop(self._heap)
            del self._live[top[0]]
        return top

    def _compact(self) -> None:
        if len(self._heap) > 2 * len(self._live) + 16:
            self._heap = [(negative, key, version) for key, (negative, version) in self._live.items()]
            heapq.heapify(self._heap)

    def _check(self) -> None:
        entries = set(self._heap)
        live = {(negative, key, version) for key, (negative, version) in self._live.items()}
        assert live <= entries, "what counts is in the heap"
        assert len(self._heap) <= 2 * len(self._live) + 17, "outdated entries are bounded"
