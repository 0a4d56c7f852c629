"""The rules of the tiers: their sizes and thresholds.

    Rules(capacity=10, promoted=5.0)

Most defaults come from the papers that the fields name.
"""

from dataclasses import dataclass
from datetime import UTC, tzinfo

from .episodes import THRESHOLD
from .heat import PROMOTED, Order


@dataclass(frozen=True, slots=True)
class Rules:
    """Sizes and thresholds of the tiers."""

    capacity: int = 10
    """pages of the short-term queue"""
    batch: int = 3
    """pages that leave it together when it is full: a quarter, as the three-layer design's 50 of 200"""
    episodes: int = 2000
    """how many there may be (the paper: 200)"""
    threshold: float = THRESHOLD
    """likeness at which a topic joins an episode (the paper)"""
    promoted: float = PROMOTED
    """heat since its last analysis at which an episode is analysed"""
    accesses: int = 10
    """accesses at which an episode's concepts enter the graph"""
    order: Order = "heat"
    """which episodes are evicted: the coldest, or those accessed least often"""
    silence_seconds: float = 6 * 3600.0
    """after which a conversation is over, and its pages enter the queue, wherever they are shown still"""
    zone: tzinfo = UTC
    """where days begin, for daily summaries"""
