"""Are the weights chosen well, or only for these talks? Each talk is scored with weights that the others chose.

    fold 1:   choose on 41 43 47 49   ──▶   score 26
    fold 2:   choose on 26 43 47 49   ──▶   score 41   …

Choosing goes weight by weight, from words alone, by what is found: 0.2 R@5 + 0.3 R@10 + 0.1 R@20 + 0.1 of each budget.
The notes are in every choice, so that nothing is chosen that long texts pay for. This module knows nothing of what
weights mean.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

import numpy as np

from memci.memory.retrieval.layout import Borrowing
from memci.memory.retrieval.ranking import Query, Weights, rank

from .measure import shares
from .shelf import Shelf
from .systems import cost
from .tasks import Talk

_PARTS = (0.0, 0.2, 0.3, 0.1, 0.1, 0.1, 0.1, 0.1, 0.0, 0.0, 0.0, 0.0)
GRID: dict[str, tuple[float, ...]] = {
    "beside": (0.0, 0.25, 0.5, 0.7),
    "further": (0.0, 0.2, 0.35, 0.5),
    "asked": (0.0, 0.2, 0.35, 0.5),
    "whole": (0.0, 0.25, 0.5),
    "saturation": (0.6, 1.0, 1.5, 2.0),
    "spread": (0.0, 0.2, 0.5),
    "question": (0.0, 0.08, 0.15, 0.3),
    "speaker": (0.0, 0.4, 0.9, 1.4),
    "name": (0.0, 0.2, 1.0),
    "when": (0.0, 0.25, 0.5, 0.8),
    "date": (0.0, 0.6, 1.2, 1.8),
}
"""what is tried of each weight, in this order, twice over"""
PLAIN = (
    Weights(saturation=1.2, question=0.0, speaker=0.0, name=1.0, when=0.0, date=0.0, lecture=0.0),
    Borrowing(0.0, 0.0, 0.0, 0.0, 0.0),
)
Choice = tuple[Weights, Borrowing]


class Bench:
    """Talks that are taken in once, to be scored with many weights."""

    def __init__(self, talks: Sequence[Talk]) -> None:
        self._held = []
        for talk in talks:
            shelf = Shelf()
            for number, line in enumerate(talk.lines):
                shelf.add([(number, line.message)], page=number, at=line.at)
            entry = np.array([passage.entry for passage in shelf.passages])
            costs = [cost(line.message.get("content") or "", line.message.get("name", "")) for line in talk.lines]
            self._held.append((shelf, entry, costs, [(each, Query.of(each.text)) for each in talk.questions]))

    def rows(self, number: int, choice: Choice) -> list[list[float]]:
        """Return what is found of each question of talk *number*."""
        weights, borrowing = choice
        shelf, entry, costs, questions = self._held[number]
        if shelf.layout.borrowing != borrowing:
            shelf.layout.borrowing = borrowing
            shelf.layout._lend(np.arange(len(shelf.layout)))
        rows = []
        for question, query in questions:
            scores = rank(query, shelf.postings, shelf.layout, weights=weights).scores
            order = np.argsort(-scores, kind="stable")[:300]
            rows.append(shares(list(dict.fromkeys(entry[order].tolist())), question, costs))
        return rows

    def value(self, numbers: Sequence[int], choice: Choice) -> float:
        """Return how good *choice* is for some talks: from 0 to 100."""
        found = np.array([row for number in numbers for row in self.rows(number, choice)]).mean(axis=0)
        return float(100 * found @ np.array(_PARTS))


def chosen(bench: Bench, numbers: Sequence[int], *, tried: Callable[[], None]) -> Choice:
    """Return the weights that some talks choose, one weight after another."""
    best = PLAIN
    value = bench.value(numbers, best)
    for name, values in (*GRID.items(), *GRID.items()):
        for each in values:
            other = _with(best, name, each)
            if other != best and (worth := bench.value(numbers, other)) > value + 0.02:
                best, value = other, worth
        tried()
    return best


def folds(talks: Sequence[Talk], besides: Sequence[Talk], *, tried: Callable[[], None]) -> list[dict[str, Any]]:
    """Return per talk what is found with the weights that the others chose, and with the ones that are shipped."""
    bench = Bench([*talks, *besides])
    more = range(len(talks), len(talks) + len(besides))
    figures = []
    for held, talk in enumerate(talks):
        choice = chosen(bench, [each for each in range(len(talks)) if each != held] + list(more), tried=tried)
        row = {"talk": talk.name, "questions": len(talk.questions), "weights": _plain(choice)}
        for name, each in (("plain", PLAIN), ("chosen", choice), ("shipped", (Weights(), Borrowing()))):
            found = [round(100 * fmean(column), 1) for column in zip(*bench.rows(held, each), strict=True)]
            row[name] = found[:8]
        figures.append(row)
    return figures


def _with(choice: Choice, name: str, value: float) -> Choice:
    weights, borrowing = choice
    if name in Borrowing.__slots__:
        return weights, replace(borrowing, **{name: value})
    return replace(weights, **{name: value}), borrowing


def _plain(choice: Choice) -> dict[str, float]:
    return {name: getattr(part, name) for part in choice for name in part.__slots__ if name in GRID}
