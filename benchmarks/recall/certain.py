"""How well an answer tells how sure it is: questions that nobody answered beside those with an answer.

    search_memory(question, k=5).certainty    ──▶   of pairs of one with an answer and one without, how often is the
                                                    former surer (.5: chance); of those that say 80 %, how many have
                                                    their evidence among the five

This module knows nothing of how certainty comes about.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from .tasks import UNANSWERED, Talk
from .whole import Whole

_STEPS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.01)
_FIRST = 5


def certain(talks: Sequence[Talk], *, asked: Callable[[int], None]) -> dict[str, Any]:
    """Return how sure answers are, and how often they are right. *asked* hears how many questions were asked."""
    sure: list[tuple[float, bool, bool]] = []
    """certainty, whether there is an answer, whether it was found"""
    for talk in talks:
        system = Whole()
        system.add(talk)
        for question in talk.questions:
            numbers, certainty = system.answer(question.text, _FIRST)
            there = question.kind != UNANSWERED
            sure.append((certainty, there, there and not question.evidence.isdisjoint(numbers)))
            asked(len(sure))
        system.close()
    return {
        "questions": len(sure),
        "unanswered": sum(not there for _, there, _ in sure),
        "pairs": _share([each for each, there, _ in sure if there], [each for each, there, _ in sure if not there]),
        "steps": [
            {"from": low, "questions": len(right), "found": round(100 * sum(right) / len(right), 1)}
            for low, high in pairwise(_STEPS)
            if (right := [found for each, _, found in sure if low <= each < high])
        ],
    }


def _share(higher: Sequence[float], lower: Sequence[float]) -> float:
    """Return in which share of pairs the one of *higher* is above; ties count half (the area under the curve)."""
    above = sum((one > other) + 0.5 * (one == other) for one in higher for other in lower)
    return round(above / max(1, len(higher) * len(lower)), 3)
