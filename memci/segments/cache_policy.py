"""The cache policy: when a window is compacted, and how far, so that the provider's bill is smallest.

    trigger   the size of a request from which on pages leave          |■■■■■■■■■■■■■■■■■■|········ budget
    warm      what the active pages keep then                          |■■■■■■|
    cold      what they keep when the prompt cache has expired anyway  |■■■|

A compaction bills everything behind its cut again, so it goes far and comes rarely. A cold one is nearly free: the
request is billed whole in any case. `levels` is a pure function of values. This module knows nothing of messages,
clocks or storage.
"""

from math import sqrt
from typing import NamedTuple

from ..model_catalog import CachePricing

EVERY = 64
"""messages after which a context is looked at again"""
KNOWN = 20
"""uses from which on it is known what an agent needs; a chat without tools shows none"""
PAUSE_SECONDS = 300.0
"""of silence, after which another task may begin; a cache that lives shorter ends it before"""
GAPS = 3
"""gaps from which on it is known whether an agent needs what was before them"""
FAR = 0.1
"""the share of uses behind a gap up to which nothing from before a gap is kept: dates and sums recur by chance"""
_SLACK = 1.1
"""how far above a bound a level stays, so that the next message does not cross it"""
_FEW = 4_000
"""tokens that are enough of the recent past for an agent whose needs were seen"""
_LONG, _TASK = 4_800, 0.85
"""the same where gaps part the tasks, and the share of the room that it is at most: what a long task needs stays in a
small room, too"""
_LISTED = 3
"""one in so many tokens of the Contents Page is left where hardly anything from before a gap was needed: its lines are
read in each request, and written again at each compaction"""
_LARGE, _MORE = 600, 1.75
"""tokens that a call adds from which on lines take the place of a chat's pages, each a small part of its page, and
how many times as many lines there are then"""
_LINES, _TENTH = 2_700, 0.1
"""tokens of lines for what is not known to be needless, in a budget of ten times that: read at the price of the cache,
a line costs little, and a folded page has none"""
_FOLDED = 0.8
"""the share of its ceiling that the Contents Page has at least once it was folded, about"""
_AFTER = 0.15
"""the share of the room that they are at most after a gap, if hardly anything from before a gap was needed so far"""


class CacheUse(NamedTuple):
    """What was seen of a context, as it is stored in its state."""

    grow: float = 0.0
    """tokens that a model call adds, a moving mean; 0: not seen yet"""
    uses: int = 0
    """tool calls with an argument that stands in an earlier message, and recalls"""
    far: int = 0
    """those of which the latest such message is behind the last gap"""
    gaps: int = 0
    """how often there was a pause, or another model"""
    gap: int = 0
    """the head at the last gap: messages before it are behind it"""
    counted: int = 0
    """the head up to which messages were looked at"""
    stamped: bool = False
    """whether the last append was dated by the context's own clock"""


UNSEEN = CacheUse()
"""of a new context"""


class Levels(NamedTuple):
    """What the policy decides, in tokens, and why."""

    trigger: int
    """the request's size above which a compaction is due"""
    warm: int
    """what the active pages keep in it"""
    cold: int | None
    """what they keep after a gap; None: a gap changes nothing"""
    forgets: bool
    """whether they do so though the prompt cache is still there, since what was before a gap is not needed after it"""
    contents: int
    """what the Contents Page may cost"""
    least: int
    """what the active pages keep in any case, if it fits: a shorter request is not cached"""
    reason: str


def cost(pricing: CachePricing, cached: int, total: int) -> float:
    """Return what a request of *total* tokens costs, *cached* of which are known, in input tokens that are not cached.

    >>> cost(CachePricing(), 9_000, 10_000)
    2150.0
    """
    cached -= cached % max(1, pricing.granularity)
    if cached < pricing.minimum:
        cached = 0
    new = (pricing.write if total >= pricing.minimum else 1.0) * (total - cached)
    return pricing.factor(total) * (pricing.read * cached + new)


def levels(
    preset: str,
    share: float | None,
    pricing: CachePricing,
    use: CacheUse,
    *,
    budget: int,
    fixed: int,
    ceiling: int,
    contents: int,
    chosen: bool = False,
) -> Levels:
    """Return the levels of a window of *budget* tokens.

    With a *share* (κ) that the settings fix, a compaction leaves 1 - κ of the room, and a gap changes nothing.
    Otherwise, with read price r and write price w in input tokens, and the least prefix M that is cached:

        known    = uses ≥ 20
        forgets  = known, with 3 gaps and at most 10 % far uses
        more     = economy, not known, no ceiling chosen: grow / 600, at least 1, at most 1.75; else 1
        ceiling  = more times the given one, with such an economy at least min(2,700, budget / 10), in either case at
                   most (budget - fixed) / 4; economy that forgets: a third
        room     = budget - fixed - ceiling
        least    = 1.1 M - fixed - min(contents, 0.8 ceiling), at most room / 2: no page leaves that would leave less
        floor    = economy: min(4,000, room / 3) if known, else room / 10; balanced: room / 2
                   with uses and gaps: min(4,800, 0.85 room), balanced: at least room / 2
                   at least that
        trigger  = economy and known: fixed + ceiling + floor + max(floor, √(2 (w - r) (floor + ceiling) grow / r));
                   else the budget
        cold     = economy: 0.4 room / more, 0 if it forgets; balanced: 0.5 room, min(4,000, 0.15 room) if it forgets

    The square root is the size at which the cost of a compaction, (w - r) (floor + ceiling) spread over the calls until
    the next one, equals what carrying the pages costs until then, r for each token and call: the classic order quantity
    (Harris, "How many parts to make at once", 1913).

    Args:
        preset: "economy", or another one, which is taken as "balanced".
        share: κ, or None if the policy decides.
        pricing: What the provider's prompt cache costs.
        use: What was seen of the context.
        budget: Of the whole request.
        fixed: Tokens that no compaction changes: system, tools, framing.
        ceiling: What the Contents Page may cost.
        contents: What it costs now.
        chosen: Whether its ceiling was chosen, so that it is never more.
    """
    if share is not None:
        room = max(0, budget - fixed - ceiling)
        return Levels(budget, int((1 - share) * room), None, False, ceiling, 0, f"a share of {share:g} leaves")
    economy, known = preset == "economy", use.uses >= KNOWN
    forgets = known and use.gaps >= GAPS and use.far <= FAR * use.uses
    more = 1.0
    if economy and forgets:
        ceiling //= _LISTED
    elif economy and not known and not chosen:
        more = min(_MORE, max(1.0, use.grow / _LARGE))
        wanted = max(more * ceiling, min(_LINES, _TENTH * budget))
        ceiling = int(max(ceiling, min(wanted, (budget - fixed) / 4)))
    room = max(0, budget - fixed - ceiling)
    least = max(0, min(int(_SLACK * pricing.minimum) - fixed - min(contents, int(_FOLDED * ceiling)), room // 2))
    floor = (min(_FEW, room / 3) if known else 0.1 * room) if economy else 0.5 * room
    if use.uses and use.gaps:
        floor = max(floor, min(_LONG, _TASK * room))
    floor = max(floor, least)
    trigger: float = budget
    if economy and known:
        saved = max(0.0, pricing.write - pricing.read) / max(pricing.read, 0.01)
        spread = sqrt(2 * saved * (floor + ceiling) * use.grow)
        trigger = min(budget, fixed + ceiling + floor + max(floor, spread))
    cold = (0.4 / more if economy else 0.5) * room
    if forgets:
        cold = 0 if economy else min(_FEW, _AFTER * room)
    needs = f"{use.far} of {use.uses} uses behind {use.gaps} gaps" if known else "its needs are not known yet"
    reason = f"{'economy' if economy else 'balanced'}: {needs}"
    return Levels(int(trigger), int(floor), max(int(cold), least), forgets, ceiling, least, reason)
