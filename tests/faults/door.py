"""The door: whatever is offered to memci is taken and can be used, or is refused with an error that says what it is.

    seed 7 ──▶ seed 7000000, messages   40 messages of any form ──▶ taken: rendered, found, exported, erased; or refused
               seed 7000001, replies    40 replies of any form  ──▶ answered, or refused

Every error that reaches a caller is a `MemciError`. One run is one case; a seed makes forty. `Door.again(7000001)` is
that seed again. `Natives` offers the items of each provider's own form (`native_targets`). This module knows nothing of
what is offered (`door_values`) and to what (`door_targets`).
"""

import warnings
from collections.abc import Callable

from . import door_targets, native_targets
from .door_targets import CASES
from .fuzz import Fuzz, Targets, Tried, tried, tried_all
from .tally import Order, Tally, Tell

TARGETS: Targets = {
    "messages": (door_targets.messages, 200),
    "replies": (door_targets.replies, 500),
    "arguments": (door_targets.arguments, 290),
    "exports": (door_targets.exports, 10),
}
"""each target, and how many of a thousand seeds go to it"""


NATIVES: Targets = {"natives": (native_targets.natives, 1)}


class Door(Fuzz):
    """Offers one value after another."""

    name = "door"
    unit = "offered values"
    short = 20_000
    long = 1_000_000
    size = 40
    targets = TARGETS

    def __init__(self, batch: Callable[[range, float], Tried] | None = None) -> None:
        super().__init__(batch or offered)

    def run(self, order: Order, tell: Tell) -> Tally:
        """Offer values until *order* is done, and return what they broke."""
        tally = super().run(order._replace(aim=-(-order.aim // CASES)), lambda runs: tell(runs * CASES))
        tally.runs *= CASES
        return tally

    @classmethod
    def again(cls, seed: int) -> str | None:
        """Offer the values of one *seed* again."""
        return tried(seed, cls.targets)[1]


class Natives(Door):
    """Offers one native item after another."""

    name = "natives"
    unit = "offered items"
    short = 4_000
    long = 300_000
    size = 10
    targets = NATIVES

    def __init__(self) -> None:
        super().__init__(offered_natives)


def offered(seeds: range, until: float) -> Tried:
    """Offer the values of *seeds*, as far as the time goes."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the model")  # any name may be offered
        return tried_all(seeds, until, TARGETS)


def offered_natives(seeds: range, until: float) -> Tried:
    """Offer the items of *seeds*, as far as the time goes."""
    return tried_all(seeds, until, NATIVES)
