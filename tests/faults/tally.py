"""What a fault harness is, and what it tells of its run.

    harness.run(Order(seed=7, aim=2_000, seconds=30, workers=2), tell)  ──▶  Tally(runs=2_000, violations=[])

A run ends when its aim is reached or its time is over, whichever comes first. All that it draws by chance comes from
its seed. This module knows nothing of any fault.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol


class Order(NamedTuple):
    """How much to run."""

    seed: int
    aim: int
    """runs after which the harness stops (each harness says what a run is)"""
    seconds: float
    """time after which it stops"""
    workers: int = 2
    """processes that may run side by side"""


@dataclass
class Tally:
    """What a run showed."""

    name: str
    unit: str
    """what one run is, in the plural: "power cuts", "failing system calls" """
    runs: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    """how often what happened: runs per mode and store, calls refused, turns acknowledged"""
    violations: list[str] = field(default_factory=list)
    """a sentence for each promise that was broken, with all that is needed to see it again"""


Tell = Callable[[int], None]
"""called with the number of runs so far; what it draws is not the harness's business"""


class Harness(Protocol):
    """One way to make things go wrong."""

    name: str
    unit: str
    short: int
    """runs that the short tier aims at"""
    long: int
    """runs that the long tier aims at"""

    def run(self, order: Order, tell: Tell) -> Tally:
        """Make things go wrong, and return what was seen. Never raises for a broken promise."""
        ...
