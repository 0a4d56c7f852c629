"""Cells: a peer's setting × a conversation × a window × warm or with expiry × the price of a cached token.

    ahead     memci costs less, and at least as much evidence stands in its requests
    dearer    as much evidence, but the peer costs less
    less      memci costs less, and has less evidence: neither is ahead
    behind    the peer costs less, and has more evidence

A peer that is over its budget in more than 2 % of its calls has no cell, nor has a window into which the whole
conversation fits: there, nothing is managed. Evidence is what stands verbatim or on a
line. This module knows nothing of how anything was measured.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from .sight import PLACES

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


def merged(figures: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the mean over phases of each system, conversation and window."""
    groups: defaultdict[tuple[str, str, int], list[dict[str, Any]]] = defaultdict(list)
    for each in figures:
        groups[each["system"], each["conversation"], each["window"]].append(each)
    return [_mean(of) for of in groups.values()]


def _mean(of: Sequence[dict[str, Any]]) -> dict[str, Any]:
    needed = sum(each["needed"] for each in of)
    return {
        **{name: of[0][name] for name in ("system", "conversation", "window")},
        "phases": len(of),
        "costs": {terms: fmean(each["costs"][terms] for each in of) for terms in of[0]["costs"]},
        **{name: fmean(each[name] for each in of) for name in _MEANS},
        **{place: sum(each[place] for each in of) / needed if needed else 0 for place in PLACES},
        "needed": needed,
    }


_MEANS = ("own", "own_calls", "over", "orphans", "lost", "tokens", "median_over_floor", "mean_over_floor", "calls")


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
        each = _mean([mine[system, conversation, window, phase] for phase in at])
        whole = [mine["full history", conversation, window, phase] for phase in at]
        if system.startswith("memci ") or each["over"] > OVER or _mean(whole)["over"] <= OVER:
            continue
        for terms, cost in each["costs"].items():
            read, _, expiry = terms.partition("/")
            name = f"memci {preset}, r {read}{', kept' * (expiry == 'warm')}"
            if all((name, conversation, window, phase) in mine for phase in at):
                ours = _mean([mine[name, conversation, window, phase] for phase in at])
                evidence, shown = (one["verbatim"] + one["line"] + listed * one["listed"] for one in (each, ours))
                paid = cost + (each["own"] if own_calls else 0)
                found.append(Cell(system, conversation, window, terms, paid, evidence, ours["costs"][terms], shown))
    return found


def verdicts(of: Iterable[Cell]) -> Counter[str]:
    """Return how many cells have each verdict."""
    return Counter(cell.verdict for cell in of)
