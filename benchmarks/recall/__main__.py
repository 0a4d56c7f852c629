"""Measure what a memory finds again: `python -m benchmarks.recall`, with `--quick` for a first look.

The figures are printed beside the design's targets, and appended to results/recall.jsonl with commit and machine; a
quick run is not kept. This module knows nothing of how anything is measured.
"""

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from memci.memory.retrieval.hash_embedder import HashEmbedder
from memci.memory.retrieval.ranking import Weights

from ..results import CONSOLE, HERE, headline, keep, line, progress, record, table
from .certain import certain
from .growth import SIZES, growth
from .many import many
from .many import talks as many_talks
from .measure import BUDGETS, FIRST, measured
from .provenance import BUDGETS as SIGHTS
from .provenance import in_sight
from .sentences import Remembered, sentences
from .systems import FTS5, Fused, Grams, Ours, Ranked, Recent, System, TwoStage, UserWords, Vectors, Windows, Words
from .tasks import Talk, chats, dialogues, lives, meetings, notes, people, statements, traces
from .tiers import of_personas, tiers
from .whole import Whole

TARGETS: dict[str, dict[str, dict[int, float]]] = {
    "dialogues": {"at": {10: 79}, "within": {512: 82, 1024: 87, 2048: 91.5, 4096: 94.5}},
    "pairs": {"at": {10: 78}},
    "chats": {"at": {10: 61}, "within": {4096: 81}},
    "notes": {"hit": {5: 92}},
    "traces": {"sight": {1024: 87, 2048: 96.8}},
}
"""what the design asks of memci without a model; with one: dialogues 81 at 10, 86 and 91 within 1,024 and 2,048"""
_ASKED = ("dialogues", "pairs", "people", "meetings", "chats", "statements", "lives", "notes")
_CHEAP = (
    "FTS5",
    "BM25",
    "BM25, the user's",
    "BM25, windows of 3",
    "BM25, windows of 12",
    "BM25 and windows of 3, ranks",
    "characters and pairs",
)
"""rivals that need no model"""
_STEPS: dict[str, float] = {"clauses": 0, "listing": 0, "packed": 1, "similar": 0}
"""steps of an answer, and the weight that switches each off"""
_PRIORS = dict.fromkeys(("user", "question", "speaker", "presence", "when", "date", "fresh"), 0.0)
"""what counts in a score, and the weight that switches each off"""


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Measure what the *arguments* say (default: those of the command line), print it, keep it and return it."""
    options = _options(arguments)
    sources: dict[str, list[Talk]] = {
        "dialogues": dialogues(options.form),
        "pairs": dialogues("roles"),
        "people": people(),
        "meetings": meetings(),
        "chats": chats(),
        "statements": statements(),
        "lives": lives(),
        "notes": notes(),
        "traces": traces(),
    }
    if options.certain:  # nothing else
        sources = {name: [] for name in sources}
    step = 20 if options.quick else 1
    sources = {
        name: [replace(talk, questions=talk.questions[::step]) for talk in talks] for name, talks in sources.items()
    }
    for name, talks in sources.items():
        if not talks and not options.certain:
            CONSOLE.print(f"{name}: skipped, the conversations are not here; set MEMCI_DATA to their folder")
    figures: dict[str, Any] = {}
    with progress() as bar:
        questions = [question.text for name in _ASKED for talk in sources[name] for question in talk.questions]
        systems = _ablations() if options.ablate else _systems(None if options.quick else options.model, questions)
        for name in _ASKED:
            if sources[name]:
                reached = line(bar, name, len(systems))
                figures[name] = {}
                for done, (label, make) in enumerate(systems.items(), start=1):
                    figures[name][label] = measured(make, sources[name])
                    reached(done)
        if not options.certain:
            figures["many"] = many(most=1 if options.quick else None)
        if sources["traces"]:
            figures["traces"] = in_sight(sources["traces"])
            if options.ablate:
                off = in_sight(sources["traces"], weights=Weights(fresh=0))
                figures["traces"] |= {f"{how}, without fresh": each for how, each in off.items() if how != "recent"}
        if options.ablate:
            figures["tiers"] = {
                name: tiers(sources[name]) for name in ("dialogues", "people", "chats") if sources[name]
            } | {"many": tiers([talk for talk, _ in many_talks()]), "personas": of_personas()}
        if sources["dialogues"] and not options.quick and not options.ablate:
            sizes = [size for size in SIZES if size <= options.largest]
            reached = line(bar, "growth", max(sizes))
            figures["growth"] = growth(sources["dialogues"], sizes=sizes, played=reached)
        if asked := dialogues(options.form, unanswered=True) if options.certain else []:
            count = line(bar, "certain", sum(len(talk.questions) for talk in asked))
            figures["certain"] = certain(asked, asked=count)
    chosen = {
        "form": options.form,
        "ablate": options.ablate,
        "model": bool(options.model) and not options.quick,
        "largest": options.largest,
    }
    result = record(chosen, figures)
    if figures:
        keep(result, log=None if options.quick else options.results / "recall.jsonl", file=options.json)
        show(result)
    return result


def show(result: dict[str, Any]) -> None:
    """Print the tables of *result*."""
    CONSOLE.print(f"\n{headline(result)}\n", highlight=False)
    figures = result["figures"]
    for name in _ASKED[:-1]:
        if name in figures:
            _show_evidence(name, figures[name])
    if "many" in figures:
        rows = [(label, *(f"{share:.1f}" for share in each.values())) for label, each in figures["many"].items()]
        columns = ("system", *next(iter(figures["many"].values())))
        table("many: needed messages whose answer is shown within 2,048 tokens", columns, rows)
    if "notes" in figures:
        rows = [
            (
                label,
                *(f"{each['hit'][k]:.1f}" for k in FIRST),
                *(f"{of['hit'][5]:.1f}" for of in each["kinds"].values()),
            )
            for label, each in figures["notes"].items()
        ]
        kinds = list(next(iter(figures["notes"].values()))["kinds"])
        columns = ("system", *(f"hit@{k}" for k in FIRST), *(f"{kind} @5" for kind in kinds))
        table("notes: questions with evidence among the first", columns, rows, note="target of memci: hit@5 92")
    if "traces" in figures:
        rows = [(how, *(f"{of[budget]:.1f}" for budget in SIGHTS)) for how, of in figures["traces"].items()]
        note = "recent: the last messages fill it; else 75 % of it, and a search the rest. target: 87 and 96.8"
        table(
            "traces: values in sight", ("searched for", *(f"{budget:,} tokens" for budget in SIGHTS)), rows, note=note
        )
    for name, of in figures.get("tiers", {}).items():
        rows = [(kind, *(str(each) for each in figure.values())) for kind, figure in of.items()]
        columns = ("kind of question", *next(iter(of.values())))
        note = "the share of needed statements that messages alone show, and what each tier adds (95 % of the chances)"
        table(f"{name}: needed statements within 1,024 tokens", columns, rows, note=note)
    if "growth" in figures:
        rows = [(f"{each['passages']:,}", f"{each['ms']:.2f}", f"{each['p99']:.2f}") for each in figures["growth"]]
        table("a query", ("passages", "ms", "p99"), rows)
    if "certain" in figures:
        found = figures["certain"]
        rows = [(f"{each['from']:.1f}", f"{each['questions']:,}", f"{each['found']:.1f}") for each in found["steps"]]
        note = f"a question with an answer is surer than one without in {found['pairs']:.3f} of all pairs"
        table("how sure an answer is", ("from", "questions", "% found"), rows, note=note)


def _show_evidence(name: str, found: dict[str, Any]) -> None:
    columns = ("system", *(f"R@{k}" for k in FIRST), *(f"{budget:,}" for budget in BUDGETS))
    rows = [
        (label, *(f"{share:.1f}" for share in (*each["at"].values(), *each["within"].values())), f"{each['ms']:.2f}")
        for label, each in found.items()
    ]
    wants = TARGETS.get(name, {})
    aims = [str(wants.get(part, {}).get(k, "–")) for part, of in (("at", FIRST), ("within", BUDGETS)) for k in of]
    table(
        f"{name}: evidence found among the first messages, and within tokens",
        (*columns, "ms"),
        [("target", *aims, "1"), *rows],
        note="ms: per question, without embedding it. memci: a context with its memory in a file, and 20 messages; the "
        "others are in RAM. flat index: what it ranks by",
    )
    ours = {label: each for label, each in found.items() if label.startswith("memci")}
    if "memci" in found and (rivals := [each for label, each in found.items() if label in _CHEAP]):
        parts = [(part, k) for part, of in (("at", FIRST), ("within", BUDGETS)) for k in of]
        ahead = (found["memci"][part][k] - max(each[part][k] for each in rivals) for part, k in parts)
        table(
            f"{name}: memci beside the best that needs no model",
            columns[:-1],
            [("ahead by", *map("{:+.1f}".format, ahead))],
        )
    rows = [
        (f"{label}, {kind}", *(f"{share:.1f}" for share in (*of["at"].values(), *of["within"].values())))
        for label, each in ours.items()
        for kind, of in each["kinds"].items()
    ]
    table(f"{name} by kind of question", columns, rows)


def _systems(model: Path | None, questions: list[str]) -> dict[str, Callable[[], System]]:
    spelling = Remembered(HashEmbedder())
    spelling(questions)  # so that no search is timed with it
    systems: dict[str, Callable[[], System]] = {
        "last messages": Recent,
        "FTS5": FTS5,
        "BM25": Words,
        "BM25, the user's": UserWords,
        "BM25, windows of 3": lambda: Windows(3),
        "BM25, windows of 12": lambda: Windows(12),
        "BM25 and windows of 3, ranks": lambda: Ranked(Words(), Windows(3)),
        "two stages": TwoStage,
        "spelling vectors": lambda: Vectors(spelling),
        "memci": Whole,
        "flat index": Ours,
        "characters and pairs": Grams,
    }
    if model is not None:
        near = sentences(model)
        near(questions)
        systems |= {
            "sentence vectors": lambda: Vectors(near),
            "BM25 + sentences, ranks": lambda: Fused(near, "ranks"),
            "BM25 + sentences, z": lambda: Fused(near, "deviations"),
            "memci + sentences": lambda: Whole(near),
            "flat index + sentences": lambda: Ours(near),
        }
    return systems


def _ablations() -> dict[str, Callable[[], System]]:
    """Return what searches with one step switched off at a time: those of an answer in memci, priors in its ranking."""
    systems: dict[str, Callable[[], System]] = {"memci": Whole}
    for name, off in _STEPS.items():
        systems[f"memci without {name}"] = lambda name=name, off=off: Whole(weights=replace(Weights(), **{name: off}))
    systems["flat index"] = Ours
    for name, off in _PRIORS.items():
        systems[f"without {name}"] = lambda name=name, off=off: Ours(weights=replace(Weights(), **{name: off}))
    return systems


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recall", description="Measure what is found again.")
    parser.add_argument(
        "--form", choices=("names", "roles", "transcript"), default="names", help="how two are told apart"
    )
    parser.add_argument("--model", type=Path, help="the folder of a sentence model (see docs/memory.md)")
    parser.add_argument("--certain", action="store_true", help="whether answers know how sure they are")
    parser.add_argument("--ablate", action="store_true", help="memci only, with one step switched off at a time")
    parser.add_argument("--largest", type=int, default=max(SIZES), help="passages that a query is timed with at most")
    parser.add_argument("--quick", action="store_true", help="no model, no growth, every twentieth question; not kept")
    parser.add_argument("--results", type=Path, default=HERE, help="where figures are kept")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
