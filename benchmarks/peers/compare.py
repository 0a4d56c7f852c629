"""Cells: a peer's setting × a conversation × a window × warm or with expiry × the price of a cached token.

    ahead     memci costs less, and at least as much evidence stands in its requests
    dearer    as much evidence, but the peer costs less
    less      memci costs less, and has less evidence: neither is ahead
    behind    the peer costs less, and has more evidence

A peer that is over its budget in more than 2 % of its calls has no cell, nor has a window into which the whole
conversation fits: there, nothing is managed (the full history is played to know). This module knows nothing of how
anything was measured.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ..cache.replay import mean

SYSTEM = "system", "conversation", "window"
"""what the beginnings of which a mean is taken have in common"""
OVER = 0.02
"""the share of calls over budget up to which a setting has cells"""
EQUAL = 0.002
"""how much less evidence is still equal"""


class Cell(NamedTuple):
    """One comparison."""

    peer: str
    conversation: str
    window: int
    terms: str
    """the price of a cached token, and whether the cache expires: "0.1/warm" """
    cost: float
    """of the peer, its own model calls included"""
    evidence: float
    memci: float
    """what memci costs"""
    shown: float
    """memci's evidence"""

    @property
    def verdict(self) -> str:
        """Whether memci is ahead."""
        equal, cheaper = self.shown >= self.evidence - EQUAL, self.memci < self.cost
        return ("ahead" if cheaper else "dearer") if equal else ("less" if cheaper else "behind")


def cells(
    figures: Sequence[dict[str, Any]], preset: str, *, own_calls: bool = True, listed: bool = False
) -> list[Cell]:
    """Return all cells of *preset*, each the mean over the phases that the peer was played in.

    Args:
        preset: Of memci.
        own_calls: Whether what a peer's summaries cost counts.
        listed: Whether a page that is listed on a line of its own, word for word or not, is evidence.
    """
    mine = {(each["system"], each["conversation"], each["window"], each["phase"]): each for each in figures}
    phases: defaultdict[tuple[str, str, int], list[int]] = defaultdict(list)
    for system, conversation, window, phase in mine:
        phases[system, conversation, window].append(phase)
    found = []
    for (system, conversation, window), at in phases.items():
        each = mean([mine[system, conversation, window, phase] for phase in at])
        whole = [one["over"] for phase in at if (one := mine.get(("full history", conversation, window, phase)))]
        if system.startswith("memci ") or each["over"] > OVER or max(whole, default=0) <= OVER:
            continue
        for terms, cost in each["costs"].items():
            read, _, expiry = terms.partition("/")
            name = f"memci {preset}, r {read}{', kept' * (expiry == 'warm')}"
            if all((name, conversation, window, phase) in mine for phase in at):
                ours = mean([mine[name, conversation, window, phase] for phase in at])
                evidence, shown = (one["verbatim"] + one["line"] + listed * one["listed"] for one in (each, ours))
                paid = cost + (each["own"] if own_calls else 0)
                found.append(Cell(system, conversation, window, terms, paid, evidence, ours["costs"][terms], shown))
    return found


def verdicts(of: Iterable[Cell]) -> Counter[str]:
    """Return how many cells have each verdict."""
    return Counter(cell.verdict for cell in of)
