"""What a query costs as a memory grows: the dialogues over and over, with other figures and some words of each loop.

This module knows nothing of what is found.
"""

import time
from collections.abc import Callable, Sequence
from random import Random
from statistics import median, quantiles
from typing import Any

import numpy as np

from memci.memory.retrieval.ranking import Query, rank

from .shelf import Shelf
from .tasks import Talk

SIZES = (1_000, 10_000, 100_000)


def growth(
    talks: Sequence[Talk], *, sizes: Sequence[int] = SIZES, played: Callable[[int], None]
) -> list[dict[str, Any]]:
    """Return the milliseconds of a query, parsed and ranked, at each of *sizes* passages."""
    random = Random(6_04)
    shelf = Shelf()
    questions = [question.text for talk in talks for question in talk.questions]
    figures = []
    context = 0
    for size in sorted(sizes):
        while len(shelf.layout) < size:
            talk = talks[context % len(talks)]
            for number, line in enumerate(talk.lines):
                said = (
                    f"{line.message['content']} {_word(random)} {_word(random)}" if context else line.message["content"]
                )
                shelf.add([(number, line.message | {"content": said})], page=number, at=line.at, context=context)
            context += 1
            played(len(shelf.layout))
        asked = random.sample(questions, min(200, len(questions)))
        for text in asked:  # the arrays of postings are made on first use: a store has them
            rank(Query.of(text), shelf.postings, shelf.layout)
        times = []
        for text in asked:
            began = time.perf_counter()
            np.argpartition(-rank(Query.of(text), shelf.postings, shelf.layout).scores, 10)
            times.append(1e3 * (time.perf_counter() - began))
        figures.append({"passages": len(shelf.layout), "ms": median(times), "p99": quantiles(times, n=100)[98]})
    return figures


def _word(random: Random) -> str:
    return "".join(random.choices("bdfgklmnprst", k=2)) + random.choice("aeiou") + str(random.randrange(10_000))
