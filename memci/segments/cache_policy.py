"""The cache policy: the sizes at which to compact, and down to which, so that the provider's bill is smallest.

    trigger   the size of a request above which pages leave              |■■■■■■■■■■■■■■■■■■|········ budget
    warm      the size of the active pages afterwards                    |■■■■■■|
    cold      the same when the provider's cache has expired anyway      |■■■|

After a compaction everything behind its cut is billed again, so a compaction goes far and comes rarely. A cold one is
nearly free: the request is billed whole in any case. `levels` is a pure function of values.
"""

from math import sqrt
from typing import NamedTuple

from ..model_catalog import CachePricing

# `benchmarks/cache` measures these constants: the cost of calls, and how much of what they need is shown.
EVERY, SOON = 64, 16
"""messages after which the uses of a context are counted again; and while too few are known and it may matter"""
KNOWN = 20  # uses from which on the needs of an agent count as known; a chat without tools has none
PAUSE_SECONDS = 300.0
"""seconds of silence after which another task may begin; a cache that expires sooner ends the task sooner"""
GAPS = 3
"""gaps from which on it is known whether an agent needs what was said before a gap, and ends of tasks that the text
told from which on a pause is none"""
FAR = 0.07
"""share of uses from before a gap up to which the policy forgets what was before it: dates and sums recur by chance,
4 % where gaps end tasks; where people pause in the middle of tasks it is 13 %"""
_SLACK = 1.1  # factor by which a level stays above a bound, so that the next message does not cross it
_FEW = 4_500  # tokens of the recent past that are enough for an agent whose needs are known
_MANY = 6_000  # the same for the balanced preset, which trades less of what is needed for cost
_LONG, _TASK = 4_800, 0.85
"""the same where gaps separate tasks, and at most this share of the room: a long task needs its own past, also in a
small room"""
_LISTED = 3
"""the ceiling of the Contents Page is divided by this if little from before a gap was needed: its lines are read in
each request, and written again at each compaction"""
_LINES, _SHARE = 4_800, 0.13
"""tokens of lines while the needs are unknown, and their largest share of the budget: read from the cache, a
line costs little, and a folded page has none; with a larger share too little stays verbatim in a small window"""
_FOLDED = 0.8  # share of its ceiling that a folded Contents Page has at least, about
_PROSE, _BRIEF = 300, 0.5
"""tokens that a call adds from which on an unknown need is one of a chat with long answers: the user's words stay, and
few of the answers; and the share of the ceiling that the lines of the others need then"""
_NEWEST = 0.05  # share of the room that such a chat keeps whole
_WORDS, _KNOWN_WORDS = 0.45, 0.03
"""share of the budget that the user's words may take on condensed pages: most of what a chat needs later was said by
the user; an agent needs results of tools, and of the words those of its task"""
_UNUSED, _PAUSED = 0.2, 0.35
"""of the room of an economy whose needs are not known: the share beside the floor that is never filled, and what stays
after a gap; both cost 7 to 10 % less, for .02 to .04 less of what is needed of dialogues: with .3 a summary shows more
"""
_AGAIN = 0.75
"""share of the floor of an agent whose needs are known that stays after a gap in which they do not end: such gaps come
often, and each request after one is billed whole; with half, 2 % of what an agent needs was lost"""
_AFTER = 0.15  # share of the room that active pages have at most after a gap, if little from before a gap was needed


class CacheUse(NamedTuple):
    """How a context used its past so far, as stored in its state."""

    grow: float = 0.0
    """tokens that a model call adds, a moving mean; 0: none was seen yet"""
    uses: int = 0
    """tool calls with an argument from an earlier message, and recalls"""
    far: int = 0
    """those whose argument was last said before the last gap"""
    gaps: int = 0
    """how often there was a pause, or another model"""
    breaks: tuple[int, ...] = (0,)
    """the heads at the gaps since the last count, behind that at the one before; 0: at none"""
    counted: int = 0
    """the head up to which messages were counted"""
    stamped: bool = False
    """whether the last append was dated by the context's own clock"""
    ends: int = 0
    """how many of the gaps were ends of tasks that the text told"""
    acts: bool = False
    """whether a tool was called"""

    @property
    def gap(self) -> int:
        """The head at the last gap; 0: there was none."""
        return self.breaks[-1]


UNSEEN = CacheUse()  # of a new context


class Levels(NamedTuple):
    """The decision of the policy, in tokens, and its reason."""

    trigger: int
    """size of the request above which a compaction is due"""
    warm: int
    """size of the active pages after it"""
    cold: int | None
    """the same after a gap; None: a gap changes nothing"""
    forgets: bool
    """True: drop old pages after a gap even if the cache is still warm, because they are not used"""
    contents: int
    """ceiling of the Contents Page"""
    words: int
    """size of the user's words that condensed pages may keep, besides the active pages"""
    least: int
    """size of the active pages that stays in any case, if it fits: a shorter request is not cached"""
    soonest: int
    """size of the request below which no count of uses lowers the trigger"""
    reason: str


def cost(pricing: CachePricing, cached: int, total: int) -> float:
    """Return the cost of a request of *total* tokens, *cached* of which are in the cache, in uncached input tokens.

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

        budget   = economy: at most the first step of the price, from which on each token costs more
        known    = uses ≥ 20
        forgets  = known, with 3 gaps and at most 7 % far uses
        prose    = economy, not known, grow ≥ 300: a chat with long answers
        ceiling  = the given one, or if none was chosen, with prose half of it, for another economy that is not known
                   at least min(4,800, 0.13 budget), at most (budget - fixed) / 4; economy that forgets: a third
        room     = budget - fixed - ceiling
        least    = 1.1 M - fixed - min(contents, 0.8 ceiling), at most room / 2: a page stays if less would be left
        floor    = known: economy min(4,500, room / 3), balanced min(6,000, room / 2); else economy room / 10, with
                   prose room / 20, balanced room / 2; with uses and gaps at least min(4,800, 0.85 room); at least that
        trigger  = known or prose: fixed + ceiling + floor + max(floor, √(2 (w - r) (floor + ceiling) grow / r)), beside
                   the user's words; else the budget, in economy without a fifth of what the floor leaves of the room
        words    = prose: 0.45 budget, known: 0.03 budget, 0 if it forgets; else 0
        soonest  = fixed + twice the smallest floor that known needs, or prose, may have: above it uses are counted soon
        cold     = prose: floor; else economy 0.35 room, at most half of the floor if known, 0 if it forgets;
                   balanced: 0.5 room, min(4,500, 0.15 room) if it forgets

    The square root is the size at which the cost of a compaction, (w - r) (floor + ceiling) spread over the calls until
    the next one, equals what carrying the pages costs until then, r for each token and call: the classic order quantity
    (Harris, "How many parts to make at once", 1913).

    Another *preset* than "economy" is taken as "balanced". *fixed*: tokens that no compaction changes; *ceiling* and
    *contents*: those that the Contents Page may have, and has. A ceiling that the user has *chosen* is never exceeded.
    """
    if share is not None:
        warm = int((1 - share) * max(0, budget - fixed - ceiling))
        return Levels(budget, warm, None, False, ceiling, 0, 0, budget, f"a share of {share:g} leaves")
    economy, known = preset == "economy", use.uses >= KNOWN
    if economy:
        dearer = [above for above, factor in pricing.steps if factor > 1 and above > 2 * (fixed + ceiling)]
        budget = min([budget, *dearer])
    forgets = known and use.gaps >= GAPS and use.far <= FAR * use.uses
    prose = economy and not known and use.grow >= _PROSE
    if economy and forgets:
        ceiling //= _LISTED
    elif prose and not chosen:
        ceiling = int(_BRIEF * ceiling)
    elif economy and not known and not chosen:
        ceiling = int(max(ceiling, min(_LINES, _SHARE * budget, (budget - fixed) / 4)))
    room = max(0, budget - fixed - ceiling)
    least = max(0, min(int(_SLACK * pricing.minimum) - fixed - min(contents, int(_FOLDED * ceiling)), room // 2))
    enough = min(_FEW, room / 3) if economy else min(_MANY, 0.5 * room)
    floor = enough if known else (_NEWEST if prose else 0.1) * room if economy else 0.5 * room
    soonest = int(fixed + 2 * min(enough, _NEWEST * room if economy else enough))
    if use.uses and use.gaps:
        floor = max(floor, min(_LONG, _TASK * room))
    floor = max(floor, least)
    trigger = budget - economy * _UNUSED * (room - floor)
    if known or prose:
        saved = max(0.0, pricing.write - pricing.read) / max(pricing.read, 0.01)
        spread = sqrt(2 * saved * (floor + ceiling) * use.grow)
        trigger = min(budget, fixed + ceiling + floor + max(floor, spread))
    words = 0.0 if forgets else _KNOWN_WORDS if known else _WORDS * prose
    cold = min(_AGAIN * floor if economy and known else room, (_PAUSED if economy else 0.5) * room)
    cold = floor if prose else min(cold, floor) if known else cold
    if forgets:
        cold = 0 if economy else min(_FEW, _AFTER * room)
    needs = f"{use.far} of {use.uses} uses behind {use.gaps} gaps" if known else "its needs are not known yet"
    reason = f"{'economy' if economy else 'balanced'}: {needs}"
    cold = max(int(cold), least)
    return Levels(int(trigger), int(floor), cold, forgets, ceiling, int(words * budget), least, soonest, reason)
