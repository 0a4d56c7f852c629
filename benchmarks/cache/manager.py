"""What manages a context: it is given the turns of a conversation, and gives what it would send to the model.

    turn ─▶ Manager.call ─▶ the messages of the next model call, the system prompt apart

memci is driven like its peers: a context with a window, a preset, and the provider's prices. This module knows nothing
of how requests are billed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from memci import CachePricing, Context, EphemeralStorage, Policy
from memci.settings import Preset
from memci.tokens import TokenCounter, message_tokens

from ..conversation import Message, texts
from .prefix import BILLINGS
from .script import Script
from .sight import key

_DAY_SECONDS = 86_400.0


@dataclass(slots=True)
class Setting:
    """What every manager is given: the same budget, the same exact counter, the same script for summaries."""

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
        name = f"{message['role']}|{'|'.join(texts(message))}"
        if name not in self.known:
            self.known[name] = message_tokens(message, self.count)
        return self.known[name]


class Manager(Protocol):
    """A context manager that is driven from outside."""

    def call(self, turn: Sequence[Message]) -> list[Message]:
        """Take *turn*, and return the messages that the next model call is given, the system prompt apart."""
        ...


@dataclass(slots=True)
class Memci:
    """A context; `at` is the time of the next turn, None where the context is to know no time."""

    setting: Setting
    policy: Policy
    clock: bool = True
    at: datetime | None = None
    context: Any = field(init=False)
    pages: dict[str, int] = field(default_factory=dict)
    """the page of each message"""
    own: frozenset[int] | None = None
    """the pages that have a line of their own in the contents; None: not asked since the last turn"""

    def __post_init__(self) -> None:
        given = {"system": self.setting.system, "window": self.setting.budget, "policy": self.policy, "reply": 0}
        self.context = Context.open(EphemeralStorage(), id="bench", clock=None, **given)

    def call(self, turn: Sequence[Message]) -> list[Message]:
        """Take *turn*."""
        self.own = None
        receipt = self.context.append_turn(*turn, at=self.at if self.clock else None)
        self.pages.update((key(message), entry.page) for message, entry in zip(turn, receipt.entries, strict=True))
        return self.context.render(strict=False)[1:]  # type: ignore[no-any-return]

    def listed(self, each: str) -> bool:
        """Return whether the message of the key *each* is on a page that has a line of its own in the contents."""
        if self.own is None:
            self.own = frozenset(page.index for page in self.context.pages() if page.where == "archived")
        return self.pages.get(each) in self.own


def memci(
    preset: Preset, billing: str = "marked", *, kept: bool = False, clock: bool = True
) -> Callable[[Setting], Manager]:
    """Return what makes a context of memci with *preset*.

    It knows the prices of *billing*, how long the cache lives (if it is *kept*: a day), and the time, unless it has no
    *clock*.
    """
    bill, lifetime = BILLINGS[billing], _DAY_SECONDS if kept else CachePricing().lifetime
    pricing = CachePricing(
        read=bill.read, write=bill.write, minimum=bill.minimum, granularity=bill.step, lifetime=lifetime
    )
    return lambda setting: Memci(setting, Policy(preset=preset, pricing=pricing), clock)
