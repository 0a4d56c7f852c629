"""Where the values come from that an agent calls its tools with: are they still in sight?

    1,024 tokens:   [ found by search, 25 % ][ the last messages, 75 % ]   →   book(user="mia_li_3668", …)
                       "mia_li_3668" was said forty messages ago                 in sight or not

Of the values that were said before the call, the share that stands in either part. What is searched for is what an
agent has at hand: what the user said last, the tool's name besides, or what the user said before, too. This module
knows nothing of ranking.
"""

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any

import numpy as np
import orjson

from memci.formats.utterance import entry_text
from memci.memory.retrieval.ranking import Query, Weights, rank

from .shelf import Shelf
from .systems import count
from .tasks import Line, Talk

BUDGETS = (1024, 2048)
RECENT = 0.75
_SHORTEST = 3
_FRAME = 4
"""tokens that a message costs besides its text"""


def in_sight(talks: Sequence[Talk], *, weights: Weights | None = None) -> dict[str, dict[int, float]]:
    """Return the shares by budget: of the last messages alone, and with a search for each kind of question."""
    found: dict[str, dict[int, list[bool]]] = {}
    for talk in talks:
        shelf, costs = Shelf(), list[int]()  # of what was said before a call: a search can know no more
        users: list[str] = []
        for number, line in enumerate(talk.lines):
            texts = [passage.text for passage in shelf.passages]
            for name, values in _calls(line, "\n".join(texts)):
                last = users[-1] if users else ""
                asked = {
                    "recent": "",
                    "last": last,
                    "last two": " ".join(users[-2:]),
                    "tool and last": f"{name} {last}",
                }
                for how, question in asked.items():
                    order = _order(shelf, question, weights) if question else []
                    for budget in BUDGETS:
                        chosen = _chosen(order, costs, budget, 1.0 if how == "recent" else RECENT)
                        seen = "\n".join(texts[place] for place in chosen)
                        found.setdefault(how, {}).setdefault(budget, []).extend(value in seen for value in values)
            added = shelf.add([(number, line.message)], page=number)
            costs += [count(shelf.passages[place].text) + _FRAME for place in added]
            if line.message["role"] == "user":
                users.append(entry_text(line.message))
    return {how: {budget: round(100 * fmean(each), 1) for budget, each in of.items()} for how, of in found.items()}


def _order(shelf: Shelf, asked: str, weights: Weights | None) -> list[int]:
    scores = rank(Query.of(asked), shelf.postings, shelf.layout, weights=weights).scores
    return [place for place in np.argsort(-scores, kind="stable")[:100].tolist() if scores[place] > 0]


def _chosen(order: Sequence[int], costs: Sequence[int], budget: int, share: float) -> list[int]:
    start, spent = len(costs), 0
    while start and spent + costs[start - 1] <= budget * share:
        start -= 1
        spent += costs[start]
    chosen = list(range(start, len(costs)))
    for place in order:
        if place < start and spent + costs[place] <= budget:
            spent += costs[place]
            chosen.append(place)
    return chosen


def _calls(line: Line, before: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the tools that a message calls, each with the values of its arguments that were said *before*."""
    for call in line.message.get("tool_calls") or ():
        values = tuple(each for each in _values(call["function"]["arguments"]) if each in before)
        if values:
            yield call["function"]["name"], values


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
