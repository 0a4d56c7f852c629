"""Measure what the model of a memory costs: `python -m benchmarks.models`, with `--quick` for a first look.

    waiting     append_turn + render without a model, and with models that answer at once, after 30 s, never
    spending    calls and tokens of the memory's model for each turn, by step

A stand-in answers instead of a model. The figures are printed, and appended to results/models.jsonl with commit and
machine; those of a quick run are not kept. This module knows nothing of how anything is measured.
"""

import argparse
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from ..conversation import Message
from ..memory.talks import Talks
from ..recall.tasks import dialogues
from ..results import CONSOLE, HERE, headline, keep, line, progress, record, table
from .spending import Turn, spent
from .waiting import waited

_PARTS = ("waiting", "spending")
_PAUSES = (0.0, 0.07)
"""seconds between turns: the worker begins after 0.05"""
_PAPER = {"calls": 4.9, "tokens": 3_874}
"""per answer, of MemoryOS (arXiv 2506.06326, table 3)"""


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Measure the parts that the *arguments* name (default: the command line's); print, keep and return the figures."""
    options = _options(arguments)
    turns = options.turns or (80 if options.quick else 400)
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name, progress() as bar:
        if "waiting" in options.parts:
            figures["waiting"] = []
            for pause in _PAUSES:
                folder = Path(name, f"{pause}")
                folder.mkdir()
                figures["waiting"].append(waited(folder, turns=turns, pause=pause, played=line(bar, "turns", turns)))
        if "spending" in options.parts:
            talks = _dialogues(1 if options.quick else None)
            total = sum(len(talk) for talk in talks)
            figures["spending"] = spent(talks, line(bar, "turns of dialogues", total))
            figures["spending"]["dialogues"] = len(talks)
    result = record({"turns": turns, "parts": options.parts}, figures)
    keep(result, log=None if options.quick else options.results / "models.jsonl", file=options.json)
    show(result)
    return result


def show(result: dict[str, Any]) -> None:
    """Print the tables of *result*."""
    CONSOLE.print(f"\n{headline(result)}\n", highlight=False)
    figures = result["figures"]
    rows = []
    for each in figures.get("waiting", ()):
        for name in ("none", "answers", "30 s", "never"):
            side = each[name]
            ratios = [f"{side[f'{key}_ratio']:.2f}" if name != "none" else "–" for key in ("median", "p99")]
            times = [f"{side[key]:,.0f}" for key in ("median", "mean", "p99")]
            rows.append((f"{1e3 * each['pause']:.0f} ms", name, *times, *ratios, str(side["calls"])))
    if rows:
        columns = ("pause", "model", "µs", "mean", "p99", "÷ none", "p99 ÷ none", "calls done")
        refused = sum(each["refused"] for each in figures["waiting"])
        largest = max(each["largest"] for each in figures["waiting"])
        note = f"largest rendering {largest:,} of {figures['waiting'][0]['budget']:,} tokens; refused: {refused}"
        table("append_turn + render", columns, rows, note=note)
    if "spending" in figures:
        spending = figures["spending"]
        steps = [
            (step, f"{each['calls']:.2f}", f"{each['prompt']:,.0f}", f"{each['completion']:,.0f}")
            for step, each in spending["steps"].items()
        ]
        tokens = [sum(each[key] for each in spending["steps"].values()) for key in ("prompt", "completion")]
        steps.append(("all", f"{spending['calls']:.2f}", *(f"{each:,.0f}" for each in tokens)))
        steps.append(("MemoryOS, as published", f"{_PAPER['calls']:.1f}", f"{_PAPER['tokens']:,} in all", ""))
        note = f"{spending['turns']:,} turns of {spending['dialogues']} dialogues; answers of a stand-in"
        table("memory work per turn", ("step", "calls", "prompt", "completion"), steps, note=note)


def _dialogues(most: int | None) -> list[list[Turn]]:
    """Return dialogues as turns: recorded ones, or generated ones where those are missing."""
    talks = dialogues("roles")[:most]
    if not talks:
        source = islice(Talks().pages(), 200)
        return [[(at.isoformat(), messages) for at, messages in source]]
    found: list[list[Turn]] = []
    for talk in talks:
        turns: list[tuple[str | None, list[Message]]] = []
        for each in talk.lines:
            if not turns or each.message["role"] == "user":
                turns.append((None if each.at is None else datetime.fromtimestamp(each.at, UTC).isoformat(), []))
            turns[-1][1].append(each.message)
        found.append(list(turns))
    return found


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.models", description="What a memory's model costs.")
    parser.add_argument("--turns", type=int, help="turns with each kind of model (default 400)")
    parser.add_argument("--parts", type=_parts, default=_PARTS, help=",".join(_PARTS))
    parser.add_argument("--quick", action="store_true", help="small sizes; the figures are not kept")
    parser.add_argument("--results", type=Path, default=HERE, help="where figures are kept")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    return parser.parse_args(arguments)


def _parts(text: str) -> tuple[str, ...]:
    chosen = tuple(text.split(","))
    if not set(chosen) <= set(_PARTS):
        raise argparse.ArgumentTypeError(f"known are {', '.join(_PARTS)}")
    return chosen


if __name__ == "__main__":
    main()
