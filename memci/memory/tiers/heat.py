"""Heat: how much an episode is used.

    heat = visits + length + recency          recency = exp(-(now - last visit) / 1e7 s)

    visits   0 ──────▶ 3 ──────▶ 7            lifetime heat: all of it. The coldest episodes are evicted.
                       └ analysed             heat since the analysis: what came after it, here 4 visits.
                                              At 5 or above, an episode is analysed (again).

With one counter for both, an analysis would make a valuable episode the coldest. Recency is at most 1, as much as a
single visit. Only the counters are stored, not the heat. The paper (arXiv 2506.06326) has alpha · N_visit + beta ·
L_interaction + gamma · R_recency, with alpha = beta = gamma = 1, and tau = 1e7 seconds: `Rules`
has them.
"""

import heapq
import math
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace

from .rules import DEFAULTS, Rules


def heat(visits: float, length: float, last_visit: float, now: float, rules: Rules = DEFAULTS) -> float:
    """Return the heat after so many *visits*, with *length* pages and the last visit at *last_visit*.

    Recency is 1 for a visit just now, and falls towards 0; a visit in the future counts as now.
    """
    recency = math.exp(-max(0.0, now - last_visit) / rules.tau_seconds)
    return rules.visit_weight * visits + rules.length_weight * length + rules.recency_weight * recency


@dataclass(frozen=True, slots=True)
class Warmth:
    """The counters of an episode (length in pages, times in seconds since 1970 UTC), and both heats."""

    visits: int = 0
    length: int = 0
    last_visit: float = 0.0
    access_count: int = 0
    analysed_visits: int = 0  # visits up to the last analysis
    analysed_length: int = 0

    def lifetime(self, now: float, rules: Rules = DEFAULTS) -> float:
        """Return the heat over its whole life, which decides about eviction."""
        return heat(self.visits, self.length, self.last_visit, now, rules)

    def since_analysis(self, now: float, rules: Rules = DEFAULTS) -> float:
        """Return the heat since the last analysis, which decides about the next one; 0 without visits and pages."""
        visits = max(0, self.visits - self.analysed_visits)
        length = max(0, self.length - self.analysed_length)
        return heat(visits, length, self.last_visit, now, rules) if visits or length else 0.0

    def visited(self, now: float) -> "Warmth":
        """Return the counters after one more visit by a search."""
        last = max(self.last_visit, now)
        return replace(self, visits=self.visits + 1, access_count=self.access_count + 1, last_visit=last)

    def grown(self, pages: int, now: float, *, new: bool = False) -> "Warmth":
        """Return the counters after *pages* joined, each of which counts as a visit, but the first of a *new* episode.

        MemoryOS hands over one page at a time: so the size of a batch does not change the heat.
        """
        last = max(self.last_visit, now)
        return replace(self, visits=self.visits + pages - new, length=self.length + pages, last_visit=last)

    def joined(self, other: "Warmth", now: float) -> "Warmth":
        """Return the sums of both counters, with one more visit: another episode joined."""
        names = ("visits", "length", "access_count", "analysed_visits", "analysed_length")
        sums = {name: getattr(self, name) + getattr(other, name) for name in names}
        last = max(self.last_visit, other.last_visit, now)
        return Warmth(**{**sums, "visits": sums["visits"] + 1}, last_visit=last)

    def analysed(self, sent: "Warmth") -> "Warmth":
        """Return the counters after an analysis of its state *sent*: later visits and pages are not analysed yet."""
        visits = max(self.analysed_visits, sent.visits)
        return replace(self, analysed_visits=visits, analysed_length=max(self.analysed_length, sent.length))


def coldest(
    episodes: Mapping[int, Warmth],
    rules: Rules,
    *,
    now: float,
    changed: Set[int] = frozenset(),
) -> list[int]:
    """Return the episodes (by id) to evict so that no more remain than *rules* say, coldest first. O(n log n).

    In the order "heat" the lowest lifetime heat goes first, in "lfu" the least often accessed. Episodes that *changed*
    since the last maintenance stay, even if too many remain.
    """
    excess = len(episodes) - rules.episodes

    def coldness(key: int) -> tuple[float, float, float, int]:
        own = episodes[key]
        warmth = own.lifetime(now, rules)
        return (own.access_count if rules.order == "lfu" else warmth, warmth, own.last_visit, key)

    return heapq.nsmallest(excess, (key for key in episodes if key not in changed), key=coldness) if excess > 0 else []
