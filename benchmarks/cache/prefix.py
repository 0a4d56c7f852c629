"""Prefixes: how much of a rendering is, from its beginning, byte for byte the one before, and what that costs.

    before    system | contents | a b c d e
    now       system | contents | a b c d e f g          kept: all but f g
    now       system | contents'| d e f g                kept: the system prompt

Messages are compared as JSON and counted one by one; what the context says of itself is not asked. So the bill and
`memci.Context.report` check each other, to 1 % (`tests/test_benchmarks.py`). A message counts
as kept only if all of it is. This module knows nothing of contexts.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

import orjson

from memci.model_catalog import pricing_of, reads_breakpoints
from memci.tokens import TokenCounter, message_tokens

from ..conversation import Message


@dataclass(frozen=True, slots=True)
class Billing:
    """How a provider bills a request whose beginning it has seen, in tokens that no cache has a part in."""

    write: float = 1.25
    """a token that goes into the cache"""
    read: float = 0.1
    """a token that comes out of it"""
    minimum: int = 1_024
    """tokens of the shortest prefix that is cached"""
    step: int = 1
    """tokens: a cached prefix ends at a multiple of it"""
    marked: bool = False
    """whether only what was marked is cached: the system prompt, the contents, the whole request"""
    lifetime: float = 300.0
    """seconds that a prefix is cached after a request"""
    steps: tuple[tuple[int, float], ...] = ()
    """(tokens, factor): a request of more tokens costs so many times as much"""
    input: float | None = None
    """dollars for a million tokens; None: unknown"""

    def price(self, kept: float, total: float) -> float:
        """Return what a request of *total* tokens costs, *kept* of which it has in common with the one before."""
        kept -= kept % self.step
        kept = kept if kept >= self.minimum else 0
        factor = max((factor for above, factor in self.steps if total > above), default=1.0)
        return factor * (self.read * kept + (self.write if total >= self.minimum else 1.0) * (total - kept))


BILLINGS = {
    "marked": Billing(marked=True),
    "automatic": Billing(write=1.0, step=128),
    "half": Billing(write=1.0, read=0.5, step=128),
    "large": Billing(minimum=4_096, marked=True),
}
"""Anthropic's with breakpoints, OpenAI's gpt-5 and gpt-4o, and Anthropic's models with a minimum of 4,096"""


def billing_of(name: str) -> Billing:
    """Return the billing *name*, or that of the model *name*, at the prices that memci has of it."""
    if name in BILLINGS:
        return BILLINGS[name]
    prices = pricing_of(name)
    given = asdict(prices)
    given["step"] = max(1, given.pop("granularity"))
    return Billing(**given, marked="claude" in name or reads_breakpoints(name))


@dataclass(slots=True)
class Prefixes:
    """Compares renderings as they come."""

    count: TokenCounter
    known: dict[bytes, int] = field(default_factory=dict)
    """tokens of each message, by its bytes"""
    before: list[bytes] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)
    """messages of the rendering before at which a stable part ended"""
    breaks: int = 0
    """how often a rendering did not begin with the whole one before"""

    def compare(self, rendering: Sequence[Message], *, stable: int = 1, tools: int = 0) -> tuple[int, int, int]:
        """Return how many tokens of *rendering* were kept, how many up to a mark, and all its tokens. O(messages).

        Args:
            stable: Where to mark: messages after which nothing is a summary.
            tools: Tokens of tools, which are in front, and always the same.
        """
        now = [orjson.dumps(message) for message in rendering]
        same = next((at for at, (a, b) in enumerate(zip(self.before, now, strict=False)) if a != b), None)
        shared = min(len(self.before), len(now)) if same is None else same
        self.breaks += shared < len(self.before)
        marked = max((mark for mark in self.marks if mark <= shared), default=0)
        self.before, self.marks = now, [1, stable, len(now)]
        costs = [self._cost(raw, message) for raw, message in zip(now, rendering, strict=True)]
        kept, up_to_mark = (tools * bool(end) + sum(costs[:end]) for end in (shared, marked))
        return kept, up_to_mark, tools + sum(costs)

    def _cost(self, raw: bytes, message: Message) -> int:
        if raw not in self.known:
            self.known[raw] = message_tokens(message, self.count)
        return self.known[raw]
