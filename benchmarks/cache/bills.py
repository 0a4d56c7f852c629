"""Bills: what the requests of a manager cost under each price, with each kind of pauses between them.

    warm       no pause outlasts the cache
    expires    an hour before each run or session, 5 seconds before each other call
    drawn      before each message of a user as long as people take: a log-normal, median 75 s, 14 % over 5 minutes

A request after a pause that outlasts the cache is new, whole. This module knows nothing of managers.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from itertools import product
from math import log
from random import Random
from statistics import fmean

from memci.tokens import TokenCounter

from ..conversation import Message
from .prefix import BILLINGS, Prefixes, billing_of

PAUSES = ("warm", "expires", "drawn")
PAUSE = timedelta(hours=1)
CALL = timedelta(seconds=5)
RECALL = 400
"""tokens that a recall adds to a request"""
_MEDIAN, _SIGMA = 75.0, 1.283
"""seconds, and the deviation of their logarithm: 14 % are longer than 300 seconds"""


def terms(billing: str, pause: str) -> str:
    """Return the name of a billing, by the price of a token that is read from the cache, and of a kind of pauses."""
    return f"{BILLINGS[billing].read if billing in BILLINGS else billing}/{pause}"


def pauses(random: Random, *, paused: bool, talks: bool) -> dict[str, timedelta]:
    """Return each kind of pause before a call: *paused*, before a run or session; *talks*, before a user's message."""
    drawn = timedelta(seconds=max(CALL.seconds, random.lognormvariate(log(_MEDIAN), _SIGMA))) if talks else CALL
    return {"warm": CALL, "expires": PAUSE if paused else CALL, "drawn": drawn}


class Bills:
    """The costs of the requests so far, under each of several billings."""

    def __init__(self, count: TokenCounter, billings: Sequence[str]) -> None:
        self.sizes: list[int] = []
        """tokens of each request"""
        self._billings = {name: billing_of(name) for name in billings}
        self._prefixes = Prefixes(count)
        self._spent: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
        self._recalled = dict.fromkeys(billings, 0.0)

    @property
    def breaks(self) -> int:
        """How often a request did not begin with the whole one before."""
        return self._prefixes.breaks

    def begin(self) -> None:
        """Begin another context, of which no cache has anything."""
        self._prefixes.before = []

    def request(self, messages: Sequence[Message], *, stable: int, tools: int, after: dict[str, timedelta]) -> int:
        """Bill a request *after* a pause, and return its tokens. *stable* and *tools*: as in `Prefixes.compare`."""
        *kept, total = self._prefixes.compare(messages, stable=stable, tools=tools)
        for (name, billing), pause in product(self._billings.items(), PAUSES):
            read = kept[billing.marked] if after[pause].total_seconds() <= billing.lifetime else 0
            self._spent[terms(name, pause)].append((billing.price(read, total), read))
        self.sizes.append(total)
        return total

    def recall(self) -> None:
        """Bill a recall: the last request again, which the cache has by now, and a page."""
        for name, billing in self._billings.items():
            self._recalled[name] += billing.price(self.sizes[-1], self.sizes[-1] + RECALL)

    @property
    def figures(self) -> dict[str, dict[str, float]]:
        """Means of a call, by the names of `terms`: costs without recalls, what of the requests was kept, recalls."""
        calls, tokens = len(self.sizes), sum(self.sizes)
        every = {terms(name, pause): self._recalled[name] for name, pause in product(self._billings, PAUSES)}
        return {
            "costs": {name: fmean(cost for cost, _ in each) for name, each in self._spent.items()},
            "kept": {name: sum(kept for _, kept in each) / tokens for name, each in self._spent.items()},
            "recalls": {name: recalled / calls for name, recalled in every.items()},
        }
