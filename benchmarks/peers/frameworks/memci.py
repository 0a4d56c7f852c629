"""memci itself, driven like its peers: a context with a window, a preset, and the provider's prices.

This module knows nothing of how its requests are billed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memci import CachePricing, Context, EphemeralStorage, Policy
from memci.settings import Preset

from ...cache.prefix import Billing
from ...conversation import Message
from ..sight import key
from .plain import Setting


@dataclass(slots=True)
class Memci:
    """A context; `at` is the time of the next turn, None where the context is to know no time."""

    setting: Setting
    preset: Preset
    billing: Billing
    clock: bool = True
    lifetime: float = CachePricing().lifetime
    at: datetime | None = None
    context: Any = field(init=False)
    pages: dict[str, int] = field(default_factory=dict)
    """the page of each message"""

    def __post_init__(self) -> None:
        bill = self.billing
        known = {"minimum": bill.minimum, "granularity": bill.step, "lifetime": self.lifetime}
        pricing = CachePricing(read=bill.read, write=bill.write, **known)  # type: ignore[arg-type]
        self.context = Context.open(
            EphemeralStorage(),
            id="bench",
            system=self.setting.system,
            window=self.setting.budget,
            policy=Policy(preset=self.preset, pricing=pricing),
            reply=0,
            clock=None,
        )

    def call(self, turn: Sequence[Message]) -> list[Message]:
        """Take *turn*."""
        receipt = self.context.append_turn(*turn, at=self.at if self.clock else None)
        self.pages.update((key(message), entry.page) for message, entry in zip(turn, receipt.entries, strict=True))
        return self.context.render(strict=False)[1:]  # type: ignore[no-any-return]

    def listed(self) -> Callable[[str], bool]:
        """Return what says whether the message of a key is on a page that has a line of its own in the contents."""
        own = {page.index for page in self.context.pages() if page.where == "archived"}
        return lambda each: self.pages.get(each) in own
