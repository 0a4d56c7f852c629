"""Rules of the tiers: their sizes and thresholds, and the steps that a model may take over.

    Rules(capacity=10, promoted=5.0)

This module knows nothing of when they are asked.
"""

from dataclasses import dataclass, field
from datetime import UTC, tzinfo

from .chains import Continuity, continuity
from .events import Events, events
from .facts import Extractor as FactExtractor
from .facts import facts
from .heat import PAPER, PROMOTED, Heat, Order
from .profile import Profiler, profiled
from .relations import Extractor as RelationExtractor
from .relations import relations
from .topics import Topics, topics
from .traits import Strategist, strategy


@dataclass(frozen=True, slots=True)
class Rules:
    """Sizes and thresholds of the tiers, and the steps that a model may take over."""

    capacity: int = 10
    """pages of the short-term queue"""
    batch: int = 3
    """pages that leave it together when it is full: a quarter, as the three-layer design's 50 of 200"""
    episodes: int = 2000
    """how many there may be (the paper: 200)"""
    threshold: float = 0.6
    """likeness at which a topic joins an episode (the paper)"""
    promoted: float = PROMOTED
    """heat since its last analysis at which an episode is analysed"""
    accesses: int = 10
    """accesses at which an episode's concepts enter the graph"""
    order: Order = "heat"
    """which episodes are evicted: the coldest, or those accessed least often"""
    heat: Heat = PAPER
    continuity: Continuity = field(default_factory=continuity)
    topics: Topics = topics
    facts: FactExtractor = facts
    profiler: Profiler = profiled
    strategist: Strategist = strategy
    relations: RelationExtractor = relations
    events: Events = events
    zone: tzinfo = UTC
    """where days begin, for daily summaries"""
