"""Evidence: whether what an agent needs for its next call still stands in front of it.

    called      cancel(reservation="HAT136")
    said in     a message of the same run            verbatim · on a line of the contents · gone (a search may find it)

An argument counts if it stands in an earlier message of the same run, and not in the system prompt. This module knows
nothing of contexts.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..conversation import Message, texts

_LEAST = 4
_DIGITS = 3


@dataclass(slots=True)
class Evidence:
    """Counts where the arguments of calls stood."""

    system: str
    run: list[str] = field(default_factory=list)
    """what was said in this run"""
    found: Counter[str] = field(default_factory=Counter)

    def said(self, turn: Sequence[Message], *, paused: bool) -> None:
        """Add *turn*; after a pause a new run begins."""
        if paused:
            self.run = []
        self.run += (text for message in turn for text in texts(message))

    def needed(self, call: Message, rendering: Sequence[Message], contents: int) -> None:
        """Count what *call* needs, where *rendering* was shown, the first *contents* messages of which are no pages."""
        parts: tuple[str, str] | None = None
        for leaf in leaves(call):
            if leaf in self.system or not any(leaf in text for text in self.run):
                continue
            if parts is None:
                parts = _joined(rendering[contents:]), _joined(rendering[:contents])
            self.found["verbatim" if leaf in parts[0] else "line" if leaf in parts[1] else "gone"] += 1

    def shares(self) -> dict[str, float]:
        """Return the share of each place, and how many arguments counted."""
        total = self.found.total()
        return {
            "arguments": total,
            **{place: round(self.found[place] / total, 4) for place in ("verbatim", "line", "gone") if total},
        }


def _joined(messages: Sequence[Message]) -> str:
    return "\n".join(text for message in messages for text in texts(message))


def leaves(call: Message) -> Iterator[str]:
    """Yield the texts and numbers among the arguments of the calls in *call*."""
    left: list[Any] = [json.loads(each["function"]["arguments"]) for each in call.get("tool_calls") or ()]
    while left:
        value = left.pop()
        if isinstance(value, dict | list):
            left += value.values() if isinstance(value, dict) else value
        elif isinstance(value, str) and len(value) >= _LEAST:
            yield value
        elif type(value) in {int, float} and sum(map(str.isdigit, str(value))) >= _DIGITS:
            yield str(value)
