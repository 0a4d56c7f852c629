"""The one plan: how a window that is too large fits its budget again.

    tools + system + contents + active + pending + framing  <=  window - reply

`fit` is a pure function with one ordered list of steps. Each step goes only as far as needed, and none is taken twice:

    1  archive closed pages, oldest first, the task last: down to the low watermark, or further if that does not fit
    2  split the open page: cut whole units out behind its user's message, down to the low watermark
    3  fold the Contents Page below its ceiling, if that is enough: else what is clipped makes the room
    4  clip the results at the tail evenly
    5  clip the other messages at the tail, and the user's message, evenly
    6  BudgetExceeded, which says what can't be reduced

So the newest messages are whole as long as the request fits with them, whatever share of it they are.

Archiving goes in batches because each one re-bills the window: one page per turn costs 5 to 12 times more under a
provider's prompt cache. This module knows nothing of messages, chapters or storage.
"""

from dataclasses import dataclass

from ..errors import BudgetExceeded
from .clipping import SMALLEST

CONTENTS_FLOOR = 64
"""Tokens that the Contents Page may always have."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a window may cost, in tokens, and how far a compaction goes."""

    budget: int
    """the window without the reply"""
    contents: int
    """the ceiling of the Contents Page"""
    keep: float = 0.5
    """the share of the active part that a compaction leaves in the window, unless a size is asked for: 1 - κ"""
    active_pages: int | None = None
    """how many closed pages may stay at most; None: the budget decides"""
    fewest: int = 1
    """pages at which the watermark stops"""
    least: int = 0
    """tokens of pages below which the watermark stops: a provider caches no shorter beginning"""


@dataclass(frozen=True, slots=True)
class ClosedPage:
    """A closed page in the window."""

    index: int
    tokens: int
    pinned: bool = False
    task: bool = False
    """the context's first page: archived last"""


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of the open page that is never separated: a message, or a tool group."""

    tokens: int
    results: tuple[tuple[int, int], ...] = ()
    """(seq, tokens) of the results that could be clipped"""
    others: tuple[tuple[int, int], ...] = ()
    """the same of the other messages"""


@dataclass(frozen=True, slots=True)
class Occupancy:
    """What is in the window, in tokens."""

    system: int
    tools: int
    contents: int
    closed: tuple[ClosedPage, ...] = ()
    units: tuple[Unit, ...] = ()
    """the open page, oldest first"""
    task: bool = False
    """the first unit is the user's message, which stays"""
    movable: int = 0
    """how many units behind it may be split off"""
    pending: tuple[Unit, ...] = ()
    """what is rendered but not appended yet"""
    framing: int = 3

    @property
    def fixed(self) -> int:
        """Tokens that no compaction changes."""
        return self.system + self.tools + self.framing

    @property
    def tokens(self) -> int:
        """Tokens of the whole request."""
        active = sum(page.tokens for page in self.closed) + sum(unit.tokens for unit in (*self.units, *self.pending))
        return self.fixed + self.contents + active


@dataclass(frozen=True, slots=True)
class Plan:
    """What a compaction does."""

    archive: tuple[int, ...] = ()
    """indexes of closed pages, oldest first"""
    split: int = 0
    """how many units to cut out of the open page, behind its user's message"""
    contents: int = 0
    """the ceiling of the Contents Page in this compaction"""
    clips: tuple[tuple[int, int], ...] = ()
    """(seq, tokens) of messages to clip"""


def fit(occupancy: Occupancy, limits: Limits, *, low: int | None = None) -> Plan:
    """Return the plan that brings *occupancy* within *limits*. O(pages and units in the window).

    The active pages may keep *low* tokens, if archiving alone reaches that; default: the watermark.

    Raises:
        BudgetExceeded: If the window can't fit even when everything possible is archived, split, folded and clipped.
    """
    pending = sum(unit.tokens for unit in occupancy.pending)
    room = limits.budget - occupancy.fixed - limits.contents - pending
    if low is None:
        low = int(limits.keep * max(0, room))
    active = sum(page.tokens for page in occupancy.closed) + sum(unit.tokens for unit in occupancy.units)

    chosen = _archived(occupancy, limits, active, low, room)
    active -= sum(page.tokens for page in chosen)
    first = int(occupancy.task)
    split = 0
    if active > room:
        for unit in occupancy.units[first : first + occupancy.movable]:
            if active <= min(low, room):
                break
            split += 1
            active -= unit.tokens

    contents, over = limits.contents, active - room
    clips: tuple[tuple[int, int], ...] = ()
    if over > 0:
        least = min(CONTENTS_FLOOR, limits.contents) if occupancy.contents or chosen or split else 0
        rest = (*occupancy.units[first + split :], *occupancy.pending)
        results = [each for unit in rest for each in unit.results]
        others = [each for unit in (*occupancy.units[:first], *rest) for each in unit.others]
        saved = 0
        if over > contents - least:
            clips, saved = _clips(results, over)
            if saved < over:
                more, extra = _clips(others, over - saved)
                clips, saved = clips + more, saved + extra
        contents = max(least, contents - max(0, over - saved))
        over -= limits.contents - contents
        if saved < over:
            pinned = active + pending - sum(unit.tokens for unit in (*occupancy.units[:first], *rest))
            latest = sum(unit.tokens for unit in rest) - saved
            raise _exceeded(occupancy, limits, contents=contents, pinned=pinned, latest=latest)
    return Plan(tuple(sorted(page.index for page in chosen)), split, contents, clips)


def check(occupancy: Occupancy, limits: Limits) -> None:
    """Raise BudgetExceeded if *occupancy* does not fit after its plan: an id may be more than a clip leaves."""
    if occupancy.tokens > limits.budget:
        latest = sum(unit.tokens for unit in (*occupancy.units[int(occupancy.task) :], *occupancy.pending))
        pinned = sum(page.tokens for page in occupancy.closed)
        raise _exceeded(occupancy, limits, contents=occupancy.contents, pinned=pinned, latest=latest)


def _exceeded(occupancy: Occupancy, limits: Limits, *, contents: int, pinned: int, latest: int) -> BudgetExceeded:
    """Return the error that says what each part costs."""
    parts = {
        "system": occupancy.system,
        "tools": occupancy.tools,
        "framing": occupancy.framing,
        "contents": contents,
        "pinned": pinned,
        "task": sum(unit.tokens for unit in occupancy.units[: int(occupancy.task)]),
        "latest messages": latest,
    }
    return BudgetExceeded(limits.budget, parts)


def _archived(occupancy: Occupancy, limits: Limits, active: int, low: int, room: int) -> list[ClosedPage]:
    """Return the closed pages to archive: by count and by tokens down to the watermark, else as far as needed."""
    order = [page for page in occupancy.closed if not page.pinned]
    order.sort(key=lambda page: page.task)  # stable: the oldest first, the task last
    pages = len(occupancy.closed) + bool(occupancy.units)
    most = closed = len(order)
    if limits.active_pages is not None and closed > limits.active_pages:
        most = int(limits.active_pages * limits.keep)
    chosen: list[ClosedPage] = []
    for page in order:
        enough = active <= low or pages <= limits.fewest or active - page.tokens < limits.least
        if closed <= most and active <= room and enough:
            break
        chosen.append(page)
        active -= page.tokens
        closed -= 1
        pages -= 1
    return chosen


def _clips(messages: list[tuple[int, int]], over: int) -> tuple[tuple[tuple[int, int], ...], int]:
    """Return the even limit for *messages* that saves *over* tokens, as clips, and what it saves."""
    large = sorted((tokens for _, tokens in messages if tokens > SMALLEST), reverse=True)
    limit = SMALLEST
    for count in range(1, len(large) + 1):
        following = large[count] if count < len(large) else SMALLEST
        if sum(large[:count]) - count * following >= over:
            limit = max(SMALLEST, (sum(large[:count]) - over) // count)
            break
    clips = tuple((seq, limit) for seq, tokens in messages if tokens > limit)
    return clips, sum(tokens - limit for _, tokens in messages if tokens > limit)
