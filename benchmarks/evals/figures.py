"""The figures of a run, and the tables that show them: per category by number, and what it cost.

    figures(rows, dialogues)      {"memci": {"categories": {"1": {"questions": 282, "f1": …}}, "all": …, "cost": …}}

Categories have numbers and no names, since MemoryOS's paper names them otherwise than LoCoMo's file numbers them.
A question without an answer is in no mean, and is counted. This module knows nothing of how answers came about.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from ..results import table
from .dialogues import Asked, Dialogue
from .metrics import scored

SCORES = ("f1", "bleu1", "f1_sets")


def figures(rows: Sequence[Mapping[str, Any]], dialogues: Sequence[Dialogue]) -> dict[str, Any]:
    """Return the figures of each system: percents, tokens and seconds; means are over questions."""
    asked = {(dialogue.name, each.number): each for dialogue in dialogues for each in dialogue.asked}
    names = list(dict.fromkeys(row["system"] for row in rows))
    return {name: _of_system([row for row in rows if row["system"] == name], asked) for name in names}


def show(found: Mapping[str, Any], *, scripted: bool) -> None:
    """Print the tables."""
    numbers = sorted({number for each in found.values() for number in each["categories"]})
    whose = "scripted: no model's scores" if scripted else "F1 / BLEU-1"
    rows = []
    for name, each in found.items():
        shares = [each["categories"].get(number) for number in numbers]
        cells = [f"{of['f1']:.1f} / {of['bleu1']:.1f}" if of else "–" for of in (*shares, each["all"])]
        rows.append((name, *cells, _number(each["macro"]), _number(each["all"] and each["all"]["f1_sets"])))
    columns = ("system", *(f"category {number}" for number in numbers), "all", "mean", "F1 of sets")
    note = (
        "all: of all questions; mean: F1, of the categories, which weighs a small one like a large one; F1 of sets: as "
        "MemoryOS's evaluation computes it, of all questions"
    )
    table(f"LoCoMo question answering ({whose})", columns, rows, note=note)
    rows = []
    for name, each in found.items():
        cost = each["cost"]
        rows.append(
            (
                name,
                _number(each["evidence"]),
                f"{cost['notes']:,.0f}",
                f"{cost['prompt']:,.0f}",
                f"{cost['completion']:,.1f}",
                f"{cost['memory_calls']:.2f}",
                f"{cost['memory_tokens']:,.0f}",
                f"{cost['tell_seconds']:,.1f}",
                f"{1e3 * cost['recall_seconds']:,.1f}",
                f"{cost['answer_seconds']:.2f}",
                f"{each['clipped']}",
                f"{each['empty']}",
                f"{each['errors']}",
            )
        )
    columns = ("system", "evidence", "notes", "prompt", "answer", "calls", "tokens", "told s", "ms", "s")
    note = (
        "evidence: % of it in the notes, word for word; notes, prompt, answer: tokens per question, in one call each; "
        "calls, tokens: the memory's own work, per turn of both people; told s: to take in a dialogue; ms: to recall; "
        "s: to answer; clipped: questions whose notes were cut; empty: answers without text, scored 0; errors: "
        "questions without an answer, not scored"
    )
    table("what it costs", (*columns, "clipped", "empty", "errors"), rows, note=note)


def _of_system(rows: Sequence[Mapping[str, Any]], asked: Mapping[tuple[str, int], Asked]) -> dict[str, Any]:
    told = [row["told"] for row in rows if "told" in row]
    questions = [row for row in rows if "question" in row]
    answered = [row for row in questions if row["error"] is None]
    by_category: dict[str, list[dict[str, float]]] = {}
    for row in answered:
        question = asked[row["dialogue"], row["question"]]
        scores = scored(question.category, row["answer"], question.gold)
        by_category.setdefault(str(question.category), []).append(scores)
    categories = {number: _means(scores) for number, scores in sorted(by_category.items())}
    pages = sum(each["pages"] for each in told)
    work = [step for each in told for step in each["work"].values()]
    errors = [row["error"] for row in questions if row["error"]]
    return {
        "categories": categories,
        "all": _means([each for scores in by_category.values() for each in scores]) if answered else None,
        "macro": round(fmean(each["f1"] for each in categories.values()), 2) if categories else None,
        "evidence": _percent([row["evidence"] for row in questions if row["evidence"] is not None]),
        "questions": len(questions),
        "errors": len(errors),
        "kinds_of_errors": {kind: errors.count(kind) for kind in sorted(set(errors))},
        "empty": sum(not row["answer"].strip() for row in answered),
        "clipped": sum(row["clipped"] for row in questions),
        "cost": {
            "notes": _mean(questions, "notes"),
            "prompt": _mean(answered, "prompt"),
            "completion": _mean(answered, "completion"),
            "cached": _mean(answered, "cached"),
            "answer_seconds": _mean(answered, "seconds"),
            "recall_seconds": _mean(questions, "recall_seconds"),
            "tell_seconds": _mean(told, "seconds"),
            "memory_calls": round(sum(step["calls"] for step in work) / pages, 3) if pages else 0.0,
            "memory_tokens": round(sum(step["prompt"] + step["completion"] for step in work) / pages, 1)
            if pages
            else 0.0,
            "memory_failures": sum(step["failed"] for step in work),
            "turns": pages,
            "messages": sum(each["messages"] for each in told),
        },
        "details": [each["details"] for each in told],
    }


def _means(scores: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    return {"questions": len(scores), **{name: _percent([each[name] for each in scores]) for name in SCORES}}


def _percent(shares: Sequence[float]) -> float | None:
    return round(100 * fmean(shares), 2) if shares else None


def _mean(rows: Sequence[Mapping[str, Any]], name: str) -> float:
    return round(fmean(row[name] for row in rows), 4) if rows else 0.0


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"
