"""Where the values come from that an agent calls its tools with: are they still in sight?

    1,024 tokens:   [ found by search, 25 % ][ the last messages, 75 % ]   →   book(user="mia_li_3668", …)
                       "mia_li_3668" was said forty messages ago                 in sight or not

Of the values that were said before the call, the share that stands in either part. What is searched for is what an
agent has at hand: what the user said last, the tool's name besides, or what the user said before, too. This module
knows nothing of ranking.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
import orjson

from memci.memory.retrieval.passages import entry_text
from memci.memory.retrieval.ranking import Query, Weights, rank

from .shelf import Shelf
from .systems import count
from .tasks import Line, Talk

BUDGETS = (1024, 2048)
RECENT = 0.75
_SHORTEST = 3
_FRAME = 4
"""tokens that a message costs besides its text"""


@dataclass(frozen=True, slots=True)
class _Call:
    first: int
    """passages from there on are not said yet"""
    values: tuple[str, ...]
    asked: dict[str, str]


def in_sight(talks: Sequence[Talk], *, weights: Weights | None = None) -> dict[str, dict[int, float]]:
    """Return the shares by budget: of the last messages alone, and with a search for each kind of question."""
    found: dict[str, dict[int, list[bool]]] = {}
    for talk in talks:
        shelf = Shelf()
        for number, line in enumerate(talk.lines):
            shelf.add([(number, line.message)], page=number)
        texts = [passage.text for passage in shelf.passages]
        costs = [count(text) + _FRAME for text in texts]
        for call in _calls(talk.lines, shelf):
            for how in ("recent", *call.asked):
                order = _order(shelf, call.asked[how], call.first, weights) if how in call.asked else []
                for budget in BUDGETS:
                    share = RECENT if how in call.asked else 1.0
                    seen = "\n".join(texts[place] for place in _chosen(order, costs, call.first, budget, share))
                    found.setdefault(how, {}).setdefault(budget, []).extend(value in seen for value in call.values)
    return {how: {budget: round(100 * fmean(each), 1) for budget, each in of.items()} for how, of in found.items()}


def _order(shelf: Shelf, asked: str, first: int, weights: Weights | None) -> list[int]:
    scores = rank(Query.of(asked), shelf.postings, shelf.layout, weights=weights).scores[:first]
    return [place for place in np.argsort(-scores, kind="stable")[:100].tolist() if scores[place] > 0]


def _chosen(order: Sequence[int], costs: Sequence[int], first: int, budget: int, share: float) -> list[int]:
    start, spent = first, 0
    while start and spent + costs[start - 1] <= budget * share:
        start -= 1
        spent += costs[start]
    chosen = list(range(start, first))
    for place in order:
        if place < start and spent + costs[place] <= budget:
            spent += costs[place]
            chosen.append(place)
    return chosen


def _calls(lines: Sequence[Line], shelf: Shelf) -> Iterator[_Call]:
    first: dict[int, int] = {}
    for position, passage in enumerate(shelf.passages):
        first.setdefault(passage.entry, position)
    said: list[str] = []
    users: list[str] = []
    for number, line in enumerate(lines):
        for call in line.message.get("tool_calls") or ():
            before = "\n".join(said)
            values = tuple(each for each in _values(call["function"]["arguments"]) if each in before)
            if values:
                last, name = users[-1] if users else "", call["function"]["name"]
                asked = {"last": last, "last two": " ".join(users[-2:]), "tool and last": f"{name} {last}"}
                yield _Call(first[number], values, asked)
        text = entry_text(line.message)
        said.append(text)
        if line.message["role"] == "user":
            users.append(text)


def _values(arguments: str) -> list[str]:
    found: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            for each in value.values():
                walk(each)
        elif isinstance(value, list):
            for each in value:
                walk(each)
        elif value is not None and not isinstance(value, bool) and len(str(value)) >= _SHORTEST:
            found.append(str(value))

    walk(orjson.loads(arguments))
    return list(dict.fromkeys(found))
