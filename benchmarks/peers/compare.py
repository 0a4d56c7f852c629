"""Cells: a peer's setting × a conversation × a window × the pauses × the price of a cached token.

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
from ..results import markdown

SYSTEM = "system", "conversation", "window"
"""what the beginnings of which a mean is taken have in common"""
OVER = 0.02
"""the share of calls over budget up to which a setting has cells"""
EVIDENCE = (("verbatim", "line", "listed"), ("verbatim", "line"), ("verbatim",))
"""what counts as shown: also a page with a line of its own, from which memci recalls it; only what a request says of
it; only its own words"""
TOLD = {"warm": ", kept", "expires": "", "drawn": ", drawn"}
"""by the kind of pauses, the end of the name of memci that knows them"""
EQUAL = 0.002
"""how much less evidence is still equal"""


class Cell(NamedTuple):
    """One comparison."""

    peer: str
    conversation: str
    window: int
    terms: str
    """the price of a cached token, and the kind of pauses: "0.1/warm" """
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


def cells(figures: Sequence[dict[str, Any]], preset: str, *, places: Sequence[str] = EVIDENCE[0]) -> list[Cell]:
    """Return all cells of *preset*, each the mean over the phases that the peer was played in. Everything is billed.

    Args:
        preset: Of memci.
        places: Where what is needed counts as shown.
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
            read, _, pause = terms.partition("/")
            name = f"memci {preset}, r {read}{TOLD[pause]}"
            same = [mine.get((name, conversation, window, phase), {}) for phase in at]
            if all(one and one.get("runs") == each.get("runs") for one in same):
                ours = mean(same)
                evidence, shown = (sum(one[place] for place in places) for one in (each, ours))
                mine_paid = ours["costs"][terms] + ours["recalls"][terms]
                found.append(Cell(system, conversation, window, terms, cost + each["own"], evidence, mine_paid, shown))
    return found


def verdicts(of: Iterable[Cell]) -> Counter[str]:
    """Return how many cells have each verdict."""
    return Counter(cell.verdict for cell in of)


def listed(figures: Sequence[dict[str, Any]]) -> str:
    """Return all cells of "economy" as a table in Markdown, with the verdict for each kind of evidence."""
    every = [cells(figures, "economy", places=places) for places in EVIDENCE]
    rows = []
    for whole, lined, exact in zip(*every, strict=True):
        where = lined.conversation, f"{lined.window:,}", lined.terms, lined.peer
        sizes = f"{lined.cost:,.0f}", f"{lined.evidence:.3f}", f"{lined.memci:,.0f}", f"{lined.shown:.3f}"
        rows.append((*where, *sizes, " · ".join(each.verdict for each in (whole, lined, exact))))
    columns = ("conversation", "window", "price/pauses", "peer", "costs", "shows", "memci costs", "shows", "verdicts")
    return _ABOUT + markdown(columns, sorted(rows)) + "\n"


def summed(figures: Sequence[dict[str, Any]], preset: str) -> str:
    """Return a table in Markdown: of each conversation and window, and of all, how many cells have which verdict."""
    names = ("ahead", "dearer", "less", "behind")
    every = [cells(figures, preset, places=places) for places in EVIDENCE]
    rows = []
    for where in (*dict.fromkeys((cell.conversation, cell.window) for cell in every[0]), None):
        counts = [verdicts(cell for cell in of if where in {None, (cell.conversation, cell.window)}) for of in every]
        label = "all" if where is None else f"{where[0]}, {where[1]:,}"
        rows.append((label, counts[0].total(), *(count[name] for count in counts for name in names)))
    heads = [f"{places[-1]}: {name}" if name == names[0] else name for places in EVIDENCE for name in names]
    return markdown((preset, "cells", *heads), rows)


_ABOUT = """# The cells

`python -m benchmarks.peers --cells FILE` writes it: what a call costs, everything billed, in uncached tokens, and the
share of the evidence that is shown, of a peer and of memci's `economy`. The verdicts: with pages that have a line of
their own as evidence, without these, and with what is verbatim only.

"""
