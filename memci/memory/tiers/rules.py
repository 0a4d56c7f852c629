"""The rules of the tiers: sizes and thresholds, most of them from the papers that they name.

    Rules(capacity=10, promoted=5.0)

A caller passes them to `TieredMemory`.
"""

from dataclasses import dataclass
from datetime import UTC, tzinfo

from .episodes import THRESHOLD
from .heat import PROMOTED, Order


@dataclass(frozen=True, slots=True)
class Rules:
    """Sizes and thresholds of the tiers."""

    capacity: int = 10  # pages in the short-term queue (MemoryOS: 7)
    batch: int = 3  # pages that leave the full queue together: a quarter, as in the three-layer design (50 of 200)
    episodes: int = 2000  # episodes that are kept at most (MemoryOS: 200)
    threshold: float = THRESHOLD  # likeness from which a topic joins an episode (MemoryOS)
    promoted: float = PROMOTED  # heat since its last analysis from which an episode is analysed (MemoryOS)
    accesses: int = 10  # accesses from which the concepts of an episode enter the graph (the three-layer design)
    order: Order = "heat"  # which episodes are evicted: the coldest, or the least often accessed
    silence_seconds: float = 6 * 3600.0
    """silence that ends a conversation and puts its pages into the queue, even if a window still shows them"""
    zone: tzinfo = UTC  # time zone of the days of daily summaries
