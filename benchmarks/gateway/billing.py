"""What a request costs: how much of it the provider has seen before, by what it was sent.

    tools and system | item | item | item …        compared piece by piece, as JSON, with the request before

A provider that wants marks keeps a beginning up to where one stood. This module knows nothing of the gateway.
"""

import json
from collections.abc import Mapping
from typing import Any

from memci.serve import marks
from memci.tokens import TokenCounter

from ..cache.prefix import BILLINGS

_FRONT = ("tools", "system", "instructions")
_LISTS = {"openai_chat": "messages", "openai_responses": "input", "anthropic": "messages"}
NAMES = ("marked", "automatic", "half")
"""the billing models"""


class Bill:
    """Adds up what requests cost, under each billing model, in tokens that no cache has a part in."""

    def __init__(self, count: TokenCounter) -> None:
        self._count = count
        self._known: dict[str, int] = {}
        self._before: list[str] = []
        self._marks: list[int] = []
        self.spent = dict.fromkeys(NAMES, 0.0)
        self.tokens = 0
        self.largest = 0

    def add(self, format: str, body: Mapping[str, Any]) -> None:  # noqa: A002
        """Add a request."""
        items = body[_LISTS[format]]
        pieces = [json.dumps([marks.canonical({"content": body.get(key)}) for key in _FRONT])]
        pieces += [json.dumps(marks.canonical(item)) for item in items]
        costs = [self._cost(piece) for piece in pieces]
        same = [a == b for a, b in zip(self._before, pieces, strict=False)]
        shared = same.index(False) if False in same else len(same)
        marked = max((mark for mark in self._marks if mark <= shared), default=0)
        total = sum(costs)
        for name, spent in self.spent.items():
            billing = BILLINGS[name]
            self.spent[name] = spent + billing.price(sum(costs[: marked if billing.marked else shared]), total)
        placed = [at for at, item in enumerate(items, 1) if marks.count(item)]
        self._marks = [1, *(at + 1 for at in placed)] if placed else [1, len(pieces)]
        self._before = pieces
        self.tokens += total
        self.largest = max(self.largest, total)

    def _cost(self, piece: str) -> int:
        if piece not in self._known:
            self._known[piece] = self._count(piece)
        return self._known[piece]
