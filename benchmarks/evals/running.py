"""A run: each system is told each dialogue, and asked its questions one by one, several at a time.

    for row in answers(systems, dialogues, limits, model): …     {"system": "memci", "dialogue": "conv-26", …}

A question that the endpoint does not answer is a row with an error and without an answer: it is counted, never scored,
and asked again by the next run. When too many fail one after the other, the run stops. This module knows nothing of
scores.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from typing import Any

from memci.errors import ModelError
from memci.llm import ChatModel

from . import prompt
from .calls import Kept, Meter
from .dialogues import Asked, Dialogue
from .systems import Limits, System, count

ENOUGH = 20
"""failures in a row after which a run stops: the endpoint is down, or refuses"""


class Stopped(Exception):
    """The endpoint did not answer any more."""


@dataclass(frozen=True, slots=True)
class Models:
    """Who answers, and who does a memory's work."""

    answering: Kept
    memory: ChatModel
    improving: bool = False
    """whether memci's memory has a model, too; a baseline that can't work without one has it anyway"""


Made = Callable[[Limits], System]
NEEDS_MODEL = frozenset({"memoryos"})


def answers(
    systems: Mapping[str, Made],
    dialogues: Sequence[Dialogue],
    limits: Limits,
    models: Models,
    *,
    workers: int = 4,
    watch: Callable[[str, str], None] = lambda _system, _dialogue: None,
) -> Iterator[dict[str, Any]]:
    """Yield a row for each dialogue that a system was told, and one for each question, in the order they come.

    Args:
        systems: What makes each, by name.
        dialogues: With the questions that are to be asked.
        limits: What each system may use.
        models: Who answers.
        workers: Questions that are asked at a time.
        watch: Called with the names of a system and a dialogue before the one is told the other.

    Raises:
        Stopped: If 20 questions in a row were not answered, or a memory that needs a model did not get its answers: one
            that lacks some of its work is not asked.
    """
    failures = 0
    with ThreadPoolExecutor(workers) as pool:
        for dialogue in dialogues:
            for name, make in systems.items():
                watch(name, dialogue.name)
                for row in _of_one(name, make, dialogue, limits, models, pool, 2 * workers):
                    yield row
                    if "question" not in row:
                        continue
                    failures = failures + 1 if row["error"] else 0
                    if failures >= ENOUGH:
                        pool.shutdown(wait=False, cancel_futures=True)
                        raise Stopped(f"{failures} questions in a row were not answered: {row['error']}")


def _of_one(
    name: str, make: Made, dialogue: Dialogue, limits: Limits, models: Models, pool: ThreadPoolExecutor, ahead: int
) -> Iterator[dict[str, Any]]:
    meter = Meter(models.memory)
    works = models.improving or name in NEEDS_MODEL
    system = make(replace(limits, chat=meter if works else None))
    try:
        began = time.perf_counter()
        try:
            system.tell(dialogue)
        except ModelError as error:
            raise Stopped(f"the memory {name!r} could not be told {dialogue.name}: {error}") from error
        left = [system.details().get(name, 0) for name in ("waiting", "set_aside")]
        if any(left) and meter.totals["failed"]:
            raise Stopped(f"the memory {name!r} got no answers for {sum(left)} of its jobs in {dialogue.name}")
        told = {"seconds": round(time.perf_counter() - began, 2), "pages": len(dialogue.pages)}
        yield {
            "system": name,
            "dialogue": dialogue.name,
            "told": {**told, "messages": len(dialogue.lines), "work": meter.spent, "details": system.details()},
        }
        waiting: set[Future[dict[str, Any]]] = set()
        for asked in dialogue.asked:
            began = time.perf_counter()
            recalled = system.recall(asked.text)
            row = {
                "system": name,
                "dialogue": dialogue.name,
                "question": asked.number,
                "category": asked.category,
                "evidence": in_sight(dialogue, asked, recalled.notes),
                "notes": count(recalled.notes),
                "clipped": recalled.clipped,
                "recall_seconds": round(time.perf_counter() - began, 4),
            }
            waiting.add(pool.submit(_answered, row, dialogue, asked, recalled.notes, models.answering))
            if len(waiting) >= ahead:
                first = next(as_completed(waiting))
                waiting.remove(first)
                yield first.result()
        for done in as_completed(waiting):
            yield done.result()
    finally:
        system.close()


def in_sight(dialogue: Dialogue, asked: Asked, notes: str) -> float | None:
    """Return the share of the evidence that *notes* hold, word for word; None where no evidence is named."""
    if not asked.evidence:
        return None
    return sum(dialogue.lines[number].text in notes for number in asked.evidence) / len(asked.evidence)


def _answered(row: dict[str, Any], dialogue: Dialogue, asked: Asked, notes: str, model: Kept) -> dict[str, Any]:
    try:
        reply, seconds = model.timed(prompt.messages(dialogue, asked, notes), step="answer")
    except ModelError as error:
        return row | {"error": type(error).__name__, "answer": None}
    usage = {"prompt": reply.usage.prompt, "completion": reply.usage.completion, "cached": reply.usage.cached}
    answer = prompt.resolved(dialogue, asked, reply.text)
    return row | {"error": None, "answer": answer, "finish": reply.finish, "seconds": seconds, **usage}
