"""What needs no framework: the whole history, a sliding window, drop-and-forget; and what a peer is.

Each is given the turns of a conversation, and gives what it would send to the model. This module knows nothing of
prices.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from memci.tokens import TokenCounter, message_tokens

from ...conversation import Message, texts
from ..script import Script


@dataclass(slots=True)
class Setting:
    """What every peer is given: the same budget, the same exact counter, the same script for summaries."""

    system: str
    budget: int
    count: TokenCounter
    script: Script
    known: dict[str, int] = field(default_factory=dict)

    @property
    def room(self) -> int:
        """The tokens that are left beside the system prompt."""
        return self.budget - self.cost({"role": "system", "content": self.system}) - 3

    def cost(self, message: Message) -> int:
        """Return the tokens of *message*; what was counted before costs a look."""
        key = f"{message['role']}|{'|'.join(texts(message))}"
        if key not in self.known:
            self.known[key] = message_tokens(message, self.count)
        return self.known[key]


class Peer(Protocol):
    """A context manager that is driven from outside."""

    def call(self, turn: Sequence[Message]) -> list[Message]:
        """Take *turn*, and return the messages that the next model call is given, the system prompt apart."""
        ...


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


PEERS: dict[str, Callable[[Setting], Peer]] = {
    "full history": Full,
    "sliding window": Window,
    "drop and forget, half": lambda setting: Window(setting, 0.5),
}
