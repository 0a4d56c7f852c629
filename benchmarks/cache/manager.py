"""What manages a context: it is given the turns of a conversation, and gives what it would send to the model.

    turn ─▶ Manager.call ─▶ the messages of the next model call, the system prompt apart

memci is driven like its peers: a context with a window, a preset, and the provider's prices. This module knows nothing
of how requests are billed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol, runtime_checkable

from memci import CachePricing, Context, EphemeralStorage, Policy
from memci.settings import Preset
from memci.tokens import TokenCounter, message_tokens, tools_tokens

from ..conversation import Message, texts
from .prefix import billing_of
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


@runtime_checkable
class Threaded(Manager, Protocol):
    """A manager that is told where a task begins."""

    def begin(self) -> None:
        """Begin another task."""
        ...


@dataclass(slots=True)
class Memci:
    """A context; `at` is the time of the next turn.

    It sends its own system message, with a notice, and its tools, `tools` tokens.
    """

    setting: Setting
    policy: Policy
    clock: bool = True
    """whether the context is told the time"""
    drawn: bool = False
    """whether it is told the pauses that were drawn, and not the fixed ones"""
    at: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    context: Any = field(init=False)
    pages: dict[str, int] = field(default_factory=dict)
    """the page of each message"""
    own: frozenset[int] | None = None
    """the pages that have a line of their own in the contents; None: not asked since the last turn"""
    system: Message = field(init=False)
    """the system message of the last request"""
    tools: int = field(init=False)

    def __post_init__(self) -> None:
        given = {"system": self.setting.system, "window": self.setting.budget, "policy": self.policy, "reply": 0}
        self.context = Context.open(EphemeralStorage(), id="bench", clock=None, **given)
        self.tools = tools_tokens(self.context.tools, self.setting.count)

    def call(self, turn: Sequence[Message]) -> list[Message]:
        """Take *turn*."""
        self.own = None
        receipt = self.context.append_turn(*turn, at=self.at if self.clock else None)
        self.pages.update((key(message), entry.page) for message, entry in zip(turn, receipt.entries, strict=True))
        self.system, *view = self.context.render(strict=False)
        return view

    @property
    def stable(self) -> int:
        """How many messages of the last request memci marks as stable: see `Context.request`."""
        return 1 + int(self.context._parts.window.stable[0])

    def listed(self, each: str) -> bool:
        """Return whether the message of the key *each* is on a page that has a line of its own in the contents."""
        if self.own is None:
            self.own = frozenset(page.index for page in self.context.pages() if page.where == "archived")
        return self.pages.get(each) in self.own


def memci(
    preset: Preset, billing: str = "marked", *, kept: bool = False, clock: bool = True, drawn: bool = False
) -> Callable[[Setting], Manager]:
    """Return what makes a context of memci with *preset*.

    It knows the prices of *billing*, how long the cache lives (if it is *kept*: a day), and the time, unless it has no
    *clock*: with fixed pauses, or those that were *drawn*.
    """
    bill = billing_of(billing)
    pricing = CachePricing(
        read=bill.read,
        write=bill.write,
        minimum=bill.minimum,
        granularity=bill.step,
        lifetime=_DAY_SECONDS if kept else bill.lifetime,
        steps=bill.steps,
        input=bill.input,
    )
    return lambda setting: Memci(setting, Policy(preset=preset, pricing=pricing), clock, drawn)
