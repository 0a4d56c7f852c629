"""The one plan: how a window that is too large fits its budget again.

    tools + system + contents + active + pending + framing  <=  window - reply

`fit` is a pure function with one ordered list of steps. Each step goes only as far as needed, and none is taken twice:

    1  archive closed pages, oldest first, the task last: down to the low watermark, or further if that does not fit;
       or condense them: the user's words stay, and go last
    2  let units of the open page leave, oldest first, down to the low watermark: a message, or a tool group
    3  fold the Contents Page below its ceiling, if that is enough: else clipping makes the room
    4  clip the results at the end evenly
    5  clip the other messages at the end, and the user's message, evenly
    6  show less of what the program told the model
    7  BudgetExceeded, which names the parts that can't be reduced

The newest messages are clipped only if the request does not fit otherwise, however large they are.

Pages leave in batches, because a provider bills the window again after each batch: one page per turn costs 5 to 12
times more under a prompt cache.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..errors import BudgetExceeded
from .clipping import SMALLEST

CONTENTS_FLOOR = 64  # tokens that the Contents Page may always have: one folded line, with its frame


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a window, in tokens, and of a compaction."""

    budget: int  # the window without the reply
    contents: int  # the ceiling of the Contents Page
    keep: float = 0.5
    """the share of the active part that a compaction leaves in the window, unless a size is given: 1 - κ"""
    active_pages: int | None = None  # how many closed pages may stay at most; None: the budget decides
    fewest: int = 1  # pages that stay, even above the watermark
    least: int = 0  # tokens of pages that stay, even above the watermark: a provider does not cache a shorter beginning
    words: int = 0
    """tokens of the user's words that condensed pages may keep, besides the watermark: above it, the oldest leave"""
    words_left: int = 0
    """tokens of them that stay then: each time, all that a provider has cached behind the contents is billed again"""


@dataclass(frozen=True, slots=True)
class ClosedPage:
    """A closed page in the window."""

    index: int
    tokens: int
    pinned: bool = False
    task: bool = False  # the context's first page: archived last
    words: int = 0  # tokens of the user's words on it, which a condensed page keeps; 0: it can't be condensed
    condensed: bool = False  # whether it shows only these


@dataclass(frozen=True, slots=True)
class Unit:
    """A part of a page that is never separated: a message, or a tool group."""

    tokens: int
    results: tuple[tuple[int, int], ...] = ()  # (seq, tokens) of the results that could be clipped
    others: tuple[tuple[int, int], ...] = ()  # the same of the other messages


@dataclass(frozen=True, slots=True)
class Occupancy:
    """The content of a window, in tokens."""

    system: int
    tools: int
    contents: int
    closed: tuple[ClosedPage, ...] = ()
    units: tuple[Unit, ...] = ()  # the open page, oldest first
    task: bool = False  # whether the first unit is the user's message, which stays
    movable: int = 0  # how many of the units behind it may leave: the model has seen them
    pinned: bool = False  # whether the open page is pinned: its units leave only if the request does not fit
    pending: tuple[Unit, ...] = ()  # messages that are rendered but not appended yet
    framing: int = 3
    segments: int = 0  # segments of the program
    told: int = 0  # what the program told the model, which stays when its page leaves

    @property
    def fixed(self) -> int:
        """Tokens that no compaction changes."""
        return self.system + self.segments + self.tools + self.framing

    @property
    def tokens(self) -> int:
        """Tokens of the whole request."""
        active = sum(page.tokens for page in self.closed) + sum(unit.tokens for unit in (*self.units, *self.pending))
        return self.fixed + self.contents + active


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of a compaction."""

    archive: tuple[int, ...] = ()  # indexes of closed pages, oldest first
    condense: tuple[int, ...] = ()  # indexes of closed pages that keep the user's words only, oldest first
    leave: int = 0  # how many units leave the open page, the oldest behind its user's message
    contents: int = 0  # the ceiling of the Contents Page in this compaction
    told: int = 0  # the ceiling of what the program told the model, behind it
    clips: tuple[tuple[int, int], ...] = ()  # (seq, tokens) of messages to clip


def fit(occupancy: Occupancy, limits: Limits, *, low: int | None = None) -> Plan:
    """Return the plan that brings *occupancy* within *limits*. O(pages and units in the window).

    Archiving stops when what is in the window besides the user's words has *low* tokens; default: the watermark of
    *limits*. BudgetExceeded if the window can't fit even when everything possible has left, is folded and clipped.
    """
    pending = sum(unit.tokens for unit in occupancy.pending)
    room = limits.budget - occupancy.fixed - limits.contents - occupancy.told - pending
    if low is None:
        low = int(limits.keep * max(0, room))
    active = sum(page.tokens for page in occupancy.closed) + sum(unit.tokens for unit in occupancy.units)

    chosen, condensed = _choose_pages(occupancy, limits, active, low, room)
    active -= sum(page.tokens for page in chosen) + sum(page.tokens - page.words for page in condensed)
    first, leave = int(occupancy.task), 0
    whole = active - _words(occupancy, without=chosen) - sum(page.words for page in condensed)
    for unit in occupancy.units[first : first + occupancy.movable]:
        stays = whole <= low or active - unit.tokens < limits.least or occupancy.pinned
        if active <= room and stays:
            break
        leave += 1
        whole, active = whole - unit.tokens, active - unit.tokens

    contents, told, over, saved = limits.contents, occupancy.told, active - room, 0
    clips: tuple[tuple[int, int], ...] = ()
    if over > 0:
        least = min(CONTENTS_FLOOR, limits.contents) if occupancy.contents or chosen or leave else 0
        units = occupancy.units[:first] + occupancy.units[first + leave :]
        results = [each for unit in (*units[first:], *occupancy.pending) for each in unit.results]
        others = [each for unit in (*units, *occupancy.pending) for each in unit.others]
        if over > contents - least:
            for messages in (results, others):
                more, extra = _clip_evenly(messages, over - saved)
                clips, saved = clips + more, saved + extra
        contents = max(least, contents - max(0, over - saved))
        told = max(0, told - max(0, over - saved - limits.contents + contents))
        over -= limits.contents - contents + occupancy.told - told
        if saved < over:
            closed = (ClosedPage(0, active - sum(unit.tokens for unit in units)),)
            raise _exceeded(replace(occupancy, contents=contents, closed=closed, units=units), limits, dict(clips))
    archived, kept = (tuple(sorted(page.index for page in pages)) for pages in (chosen, condensed))
    return Plan(archived, kept, leave, contents, told, clips)


def check(occupancy: Occupancy, limits: Limits) -> None:
    """Raise BudgetExceeded if *occupancy* does not fit after its plan: an id may be longer than a clip allows."""
    if occupancy.tokens > limits.budget:
        raise _exceeded(occupancy, limits, {})


def _exceeded(occupancy: Occupancy, limits: Limits, clips: Mapping[int, int]) -> BudgetExceeded:
    """Return the error that names the cost of each part; messages cost what their *clips* leave."""

    def left(units: Sequence[Unit]) -> int:
        messages = [each for unit in units for each in (*unit.results, *unit.others)]
        return sum(unit.tokens for unit in units) - sum(size - clips.get(seq, size) for seq, size in messages)

    parts = {
        "system": occupancy.system,
        "segments": occupancy.segments,
        "tools": occupancy.tools,
        "framing": occupancy.framing,
        "contents": occupancy.contents,
        "pinned": sum(page.tokens for page in occupancy.closed),
        "task": left(occupancy.units[: int(occupancy.task)]),
        "latest messages": left(occupancy.units[int(occupancy.task) :] + occupancy.pending),
    }
    return BudgetExceeded(limits.budget, parts)


def _choose_pages(
    occupancy: Occupancy, limits: Limits, active: int, low: int, room: int
) -> tuple[list[ClosedPage], list[ClosedPage]]:
    """Return the closed pages to archive, and those to condense: down to the watermark, or as far as needed."""
    order = [page for page in occupancy.closed if not page.pinned]
    order.sort(key=lambda page: page.task)  # stable: the oldest first, the task last
    pages = len(occupancy.closed) + bool(occupancy.units)
    most = closed = len(order)
    if limits.active_pages is not None and closed > limits.active_pages:
        most = int(limits.active_pages * limits.keep)
    words = sum(page.words for page in order if page.condensed)
    whole = active - _words(occupancy)
    chosen: list[ClosedPage] = []
    condensed: list[ClosedPage] = []
    for page in order:
        if page.condensed and closed <= most:
            continue
        enough = whole <= low or pages <= limits.fewest or active - page.tokens < limits.least
        if closed <= most and active <= room and enough:
            break
        keeps = page.words and not page.condensed and closed <= most and (page.task or page.words <= limits.words)
        (condensed if keeps else chosen).append(page)
        left = page.words if keeps else 0
        words += left - page.words * page.condensed
        whole, active = whole - page.tokens * (not page.condensed), active - page.tokens + left
        closed -= 1
        pages -= not keeps
    target = limits.words if words <= limits.words else limits.words_left
    for page in order:
        stays = active <= room and (words <= target or page.task)
        if (page.condensed or page in condensed) and page not in chosen and not stays:
            chosen.append(page)
            words, active = words - page.words, active - page.words
    return chosen, [page for page in condensed if page not in chosen]


def _words(occupancy: Occupancy, without: Sequence[ClosedPage] = ()) -> int:
    """Return the tokens of the user's words that stay: the open page's, and those of condensed pages."""
    opened = sum(unit.tokens for unit in occupancy.units[: int(occupancy.task)])
    return opened + sum(page.words for page in occupancy.closed if page.condensed and page not in without)


def _clip_evenly(messages: list[tuple[int, int]], over: int) -> tuple[tuple[tuple[int, int], ...], int]:
    """Return clips of *messages* to one limit that saves *over* tokens, and how many they save."""
    large = sorted((tokens for _, tokens in messages if tokens > SMALLEST), reverse=True)
    limit = SMALLEST
    for count in range(1, len(large) + 1):
        following = large[count] if count < len(large) else SMALLEST
        if sum(large[:count]) - count * following >= over:
            limit = max(SMALLEST, (sum(large[:count]) - over) // count)
            break
    clips = tuple((seq, limit) for seq, tokens in messages if tokens > limit)
    return clips, sum(tokens - limit for _, tokens in messages if tokens > limit)
