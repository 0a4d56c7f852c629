"""What a context tells of itself: what an append stored, what happened, where its tokens and its pages are.

    system 1,339 + tools 180 + contents 901 + active 3,870 + framing 3 = 6,293 of 7,000

This module knows nothing of how any of it comes about.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import add
from typing import NamedTuple

from ..chapters.chapter import Entry
from ..memory.backend import Work
from ..messages import Message
from ..storage.protocol import CallRow
from ..tokens import REQUEST_TOKENS
from ..window.window import Window

RATIO_CEILING = 1.3
"""The most that reported tokens raise the predicted ones by; beyond it, something was not counted."""


class Receipt(NamedTuple):
    """What an append stored."""

    page: int
    """the page of the last message; 0 if there was none"""
    entries: tuple[Entry, ...]
    """the handle of each message"""
    seq: int
    """the sequence number of the first message; messages are numbered from 0, without gaps"""
    op_id: str | None = None
    duplicate: bool = False
    """the op_id was known: nothing was stored again"""


class CallsCost(NamedTuple):
    """What the calls of the model cost together, in tokens, as their provider reported it."""

    calls: int = 0
    input: int = 0
    """of the requests, with what the provider's cache kept"""
    cached_read: int = 0
    cached_written: int = 0
    output: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """A context at one moment. All sizes are tokens, of the counter named."""

    tokens: dict[str, int]
    """per part: system, tools, contents, active, open, framing"""
    total: int
    """of the request as it stands"""
    budget: int
    """what it may cost: the window without the reply"""
    window: int
    counter: str
    exact: bool
    """whether the counts are the provider's own, up to framing"""
    ratio: float
    """reported to predicted tokens, a median of the last requests"""
    turn: int
    pages: dict[str, int]
    """how many per place: open, active, archived (a line of their own), folded, unloaded, undone, erased"""
    messages: int
    """how many were ever appended"""
    compactions: int
    cached_last: float
    """the share of the last rendering that was a prefix of the one before, of 1"""
    cached: float
    """the same over all renderings since the context was opened"""
    cost: CallsCost
    """of all calls whose usage was given to an append; `Context.calls` has each"""
    warnings: tuple[str, ...] = ()
    work: Work | None = None
    """what the memory's model did and cost, and what waits for it; None without one"""
    set_aside: int = 0
    """pages that the memory could not take, as far as it was used since the context was opened; `flush` tries them"""


@dataclass(slots=True)
class CacheMeter:
    """Keeps count of how much of each rendering is, from its beginning, the same as the one before.

    A window draws its lists again when something in them changes, and only extends them otherwise. So what stands in
    the same lists needs no look: only around a compaction are two renderings compared.
    """

    sent: int = 0
    kept: int = 0
    cost: CallsCost = field(default_factory=CallsCost)
    counted: int = 0
    """the revision of the last call in it"""
    last: float = 0.0
    _lists: tuple[list[Message], list[Message]] = ([], [])
    """what the last rendering began with: the front of the window, and its active pages"""
    _rest: tuple[Message, ...] = ()
    """the messages behind that: pending ones, or the memory page and what followed it"""
    _standing: int = 0
    """how many messages were before them"""
    _cost: int = 0

    def rendered(self, window: Window, view: list[Message], rest: int, cost: int) -> None:
        """Note the rendering *view* of *window*, which costs *cost*; *rest* messages at its end are not just appended.

        O(*rest*); after a compaction O(messages in the window).
        """
        front, active = self._lists
        if front is window.front and active is window.active.view:
            same = _alike(self._rest, view[self._standing :]) if self._rest else 0
            kept = self._cost - sum(map(window.weigh, self._rest[same:]))
        else:
            same = _alike((*front, *active[: self._standing - len(front)], *self._rest), view)
            system = len(window.system.view)
            kept = window.fixed + sum(map(window.weigh, view[system:same])) if same >= max(system, 1) else 0
        self.sent += cost
        self.kept += kept
        self.last = kept / cost
        self._lists = window.front, window.active.view
        self._standing = len(view) - rest
        self._rest = tuple(view[self._standing :])
        self._cost = cost

    def add(self, calls: Iterable[CallRow]) -> None:
        """Add up what *calls* cost, which follow those before. O(calls)."""
        for each in calls:
            cost = (1, each.input, each.cached_read, each.cached_written, each.output)
            self.cost, self.counted = CallsCost(*map(add, self.cost, cost)), each.revision


def _alike(before: Sequence[Message], now: Sequence[Message]) -> int:
    """Return how many messages the two have in common at their beginning."""
    pairs = zip(before, now, strict=False)
    return next((at for at, (old, new) in enumerate(pairs) if old != new), min(len(before), len(now)))


def report(window: Window, meter: CacheMeter, work: Work | None = None, set_aside: int = 0) -> Report:
    """Return what *window* and *meter* know, the *work* of the memory's model, and how many pages it *set_aside*.

    O(messages in the window).
    """
    active, contents = window.active, window.contents
    opened = active.open_tokens
    counts = {
        "open": int(active.open is not None),
        "active": len(active.closed),
        "archived": len(contents.lines),
        "folded": sum(len(each.pages) for each in contents.ranges),
    }
    state = window.state
    counts["unloaded"] = window.record.next_page - 1 - state.undone - state.erased - sum(counts.values())
    counts["undone"], counts["erased"] = state.undone, state.erased
    warnings = []
    clipped = sum(1 for node in active.messages if node.clip)
    if clipped:
        warnings.append(f"{clipped} messages stand clipped in the window: each names the call that reads all of it")
    if not window.count.exact:
        warnings.append(f"tokens are counted as {window.count.name}, which is not the model's own vocabulary")
    latest = sorted(state.ratios)[len(state.ratios) // 2] if state.ratios else 1.0
    if latest > RATIO_CEILING:
        warnings.append(f"the provider reports {latest:.2f} times the tokens counted: were all tools passed to render?")
    if work is not None and work.set_aside:
        warnings.append(f"{work.set_aside} jobs of the memory's model failed five times and were set aside")
    if set_aside:
        warnings.append(
            f"{set_aside} pages could not be fed to the memory and were set aside: flush() tries them again"
        )
    return Report(
        tokens={
            "system": window.system.tokens,
            "tools": window.own_tools + state.tools,
            "contents": contents.tokens,
            "active": active.messages.tokens - opened,
            "open": opened,
            "framing": REQUEST_TOKENS,
        },
        total=window.tokens,
        budget=window.limits.budget,
        window=window.settings.window,
        counter=window.count.name,
        exact=window.count.exact,
        ratio=window.ratio,
        turn=window.record.turn,
        pages=counts,
        messages=window.record.head,
        compactions=state.compactions,
        cached_last=meter.last,
        cached=meter.kept / meter.sent if meter.sent else 0.0,
        cost=meter.cost,
        warnings=tuple(warnings),
        work=work,
        set_aside=set_aside,
    )
