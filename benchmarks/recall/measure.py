"""How much of the evidence a system finds: among the first k messages, and within a budget of tokens.

    measured(system, talks)         {"at": {10: 79.2}, "within": {1024: 87.2}, "hit": {5: …}, "ms": 0.3, "kinds": …}

Per question the share of its evidence, and the mean of all questions. This module knows nothing of how anything is
found.
"""

import time
from collections.abc import Callable, Sequence
from itertools import accumulate
from statistics import fmean, median
from typing import Any

from .systems import Budgeted, System, cost
from .tasks import Question, Talk

FIRST = (1, 5, 10, 20)
BUDGETS = (512, 1024, 2048, 4096)
_DEPTH = 300
"""messages that a search is asked for: more than any budget holds"""


def measured(make: Callable[[], System], talks: Sequence[Talk]) -> dict[str, Any]:
    """Return the shares that the system finds in *talks*, each in a system of its own, and its time per question."""
    rows: list[tuple[str, list[float]]] = []
    times: list[float] = []
    for talk in talks:
        system = make()
        system.add(talk)
        costs = [cost(line.message.get("content") or "", line.message.get("name", "")) for line in talk.lines]
        budgeted = system.within if isinstance(system, Budgeted) else None
        for question in talk.questions:
            began = time.perf_counter()
            order = system.search(question.text, _DEPTH if budgeted is None else max(FIRST))
            times.append(time.perf_counter() - began)
            row = shares(order, question, costs)
            if budgeted is not None:
                row[len(FIRST) : len(FIRST) + len(BUDGETS)] = [
                    share(budgeted(question.text, budget), question) for budget in BUDGETS
                ]
            rows.append((question.kind, row))
        if isinstance(system, Budgeted):
            system.close()
    kinds = {kind: _means([row for of, row in rows if of == kind]) for kind in dict(rows)}
    return {**_means([row for _, row in rows]), "questions": len(rows), "ms": median(times) * 1e3, "kinds": kinds}


def shares(order: Sequence[int], question: Question, costs: Sequence[int]) -> list[float]:
    """Return the shares of the evidence among the first, within the budgets, and whether any is among the first."""
    wanted = question.evidence
    sums = list(accumulate(costs[number] for number in order))
    reached = [*FIRST, *(sum(total <= budget for total in sums) for budget in BUDGETS)]
    found = [share(order[:k], question) for k in reached]
    return [*found, *(float(not wanted.isdisjoint(order[:k])) for k in FIRST)]


def share(found: Sequence[int], question: Question) -> float:
    """Return how much of the evidence is among *found*: from 0 to 1."""
    return len(question.evidence.intersection(found)) / len(question.evidence)


def _means(rows: Sequence[Sequence[float]]) -> dict[str, Any]:
    means = [round(100 * fmean(column), 1) for column in zip(*rows, strict=True)]
    first, within = means[: len(FIRST)], means[len(FIRST) : len(FIRST) + len(BUDGETS)]
    hits = means[len(FIRST) + len(BUDGETS) :]
    return {
        "at": dict(zip(FIRST, first, strict=True)),
        "within": dict(zip(BUDGETS, within, strict=True)),
        "hit": dict(zip(FIRST, hits, strict=True)),
    }
