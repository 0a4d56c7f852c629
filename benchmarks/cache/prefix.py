"""Prefixes: how much of a rendering is, from its beginning, byte for byte the one before.

    before    system | contents | a b c d e
    now       system | contents | a b c d e f g          kept: all but f g
    now       system | contents'| d e f g                kept: the system prompt

Messages are compared as JSON and counted one by one; what the context says of itself is not asked. A message counts
as kept only if all of it is. This module knows nothing of contexts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import orjson

from memci.tokens import TokenCounter, message_tokens

from ..conversation import Message

WRITE = 1.25
"""what a token costs that goes into the cache, in tokens that don't"""
READ = 0.1
"""what a token costs that comes out of it"""


@dataclass(slots=True)
class Prefixes:
    """Compares renderings as they come."""

    count: TokenCounter
    known: dict[bytes, int] = field(default_factory=dict)
    """tokens of each message, by its bytes"""
    before: list[bytes] = field(default_factory=list)

    def compare(self, rendering: Sequence[Message]) -> tuple[int, int]:
        """Return the tokens of *rendering* that were kept, and all its tokens. O(messages)."""
        now = [orjson.dumps(message) for message in rendering]
        same = next((at for at, (a, b) in enumerate(zip(self.before, now, strict=False)) if a != b), None)
        shared = min(len(self.before), len(now)) if same is None else same
        self.before = now
        costs = [self._cost(raw, message) for raw, message in zip(now, rendering, strict=True)]
        return sum(costs[:shared]), sum(costs)

    def _cost(self, raw: bytes, message: Message) -> int:
        if raw not in self.known:
            self.known[raw] = message_tokens(message, self.count)
        return self.known[raw]


def price(kept: float, total: float) -> float:
    """Return what a request costs, in tokens that no cache has a part in."""
    return READ * kept + WRITE * (total - kept)
