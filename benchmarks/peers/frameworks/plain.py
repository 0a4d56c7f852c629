"""What needs no framework: the whole history, a sliding window, drop-and-forget.

This module knows nothing of prices.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ...cache.manager import Manager, Setting
from ...conversation import Message


@dataclass(slots=True)
class Full:
    """Everything, always."""

    setting: Setting
    messages: list[Message] = field(default_factory=list)

    def call(self, turn: Sequence[Message]) -> list[Message]:
        """Take *turn*."""
        self.messages += turn
        return list(self.messages)


@dataclass(slots=True)
class Window:
    """The newest messages that fit; above the budget they are cut to a *share* of it, and begin with no result."""

    setting: Setting
    share: float = 1.0
    messages: list[Message] = field(default_factory=list)

    def call(self, turn: Sequence[Message]) -> list[Message]:
        """Take *turn*."""
        self.messages += turn
        costs = [self.setting.cost(message) for message in self.messages]
        size, cut = sum(costs), 0
        goal = self.setting.room if size <= self.setting.room else self.share * self.setting.room
        while cut < len(costs) - 1 and size > goal:
            size -= costs[cut]
            cut += 1
        while cut and cut < len(costs) - 1 and self.messages[cut]["role"] == "tool":
            cut += 1
        del self.messages[:cut]
        return list(self.messages)


PEERS: dict[str, Callable[[Setting], Manager]] = {
    "full history": Full,
    "sliding window": Window,
    "drop and forget, half": lambda setting: Window(setting, 0.5),
}
