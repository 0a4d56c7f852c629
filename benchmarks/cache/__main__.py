"""Measure what a call costs, and what was in sight: `python -m benchmarks.cache`, `--quick` for a first look.

    --goals     only what the design has a goal for, over three beginnings of each conversation
    --show      the newest figures, beside the goals; nothing is measured

The figures are appended to results/cache.jsonl with commit and machine; a quick run is not kept. This module knows
nothing of how anything is measured.
"""

import argparse
import json
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, get_args

from memci.settings import Preset

from ..results import CONSOLE, HERE, headline, keep, line, progress, record, table
from .bills import PAUSES, terms
from .data import NAMES, TASKS, replay_of
from .manager import memci
from .prefix import BILLINGS
from .replay import merged, play

PRESETS: tuple[Preset, ...] = ("economy", "balanced")
WINDOWS, TASK_WINDOWS = (8_000, 16_000, 32_000, 128_000), (64_000, 200_000)
KNOWS = {"nothing": (), "pauses": ("expires",), "all": ("warm",), "drawn": ("drawn",)}
"""what memci is told, and with which pauses it is told right: no time, right or not; the fixed pauses; a cache that
outlives each pause; pauses that were drawn"""
CELL = "conversation", "window", "preset", "billing", "knows"
"""what the beginnings of which a mean is taken have in common"""


class Goal(NamedTuple):
    """What the design asks of "economy"."""

    cost: int
    evidence: float = 0.0
    listed: bool = True
    """whether a page's own line is evidence, too"""


GOALS = {
    ("airline", 8_000, "marked", "all", "warm"): Goal(600, 0.99, listed=False),
    ("airline", 8_000, "marked", "pauses", "expires"): Goal(750, 0.99, listed=False),
    ("airline", 32_000, "marked", "all", "warm"): Goal(730, 0.99, listed=False),
    ("airline", 32_000, "marked", "pauses", "expires"): Goal(910, 0.99, listed=False),
    ("airline", 128_000, "marked", "all", "warm"): Goal(730, 0.99, listed=False),
    ("airline", 128_000, "marked", "pauses", "expires"): Goal(910, 0.99, listed=False),
    ("airline", 8_000, "large", "all", "warm"): Goal(1_680),
    ("airline", 8_000, "large", "pauses", "expires"): Goal(1_740),
    ("dialogues", 8_000, "marked", "all", "warm"): Goal(580, 0.31, listed=False),
    ("dialogues", 8_000, "marked", "nothing", "expires"): Goal(1_000, 0.31, listed=False),
    ("dialogues", 8_000, "marked", "pauses", "expires"): Goal(850, 0.25, listed=False),
    ("dialogues", 32_000, "marked", "all", "warm"): Goal(1_850, 0.86),
    ("dialogues", 32_000, "marked", "pauses", "expires"): Goal(2_850, 0.86),
    ("chats", 8_000, "marked", "all", "warm"): Goal(1_700, 0.46),
    ("chats", 8_000, "marked", "pauses", "expires"): Goal(1_760, 0.46),
    ("airline", 8_000, "marked", "nothing", "warm"): Goal(720, 0.98, listed=False),
    ("airline", 32_000, "marked", "nothing", "warm"): Goal(820, 0.98, listed=False),
    ("airline", 32_000, "marked", "drawn", "drawn"): Goal(1_800, 0.98, listed=False),
    ("chats", 16_000, "marked", "all", "warm"): Goal(2_150, 0.6, listed=False),
    ("chats", 16_000, "marked", "pauses", "expires"): Goal(2_270, 0.6, listed=False),
    ("chats", 32_000, "marked", "all", "warm"): Goal(3_000, 0.8, listed=False),
    ("chats", 32_000, "marked", "pauses", "expires"): Goal(3_080, 0.8, listed=False),
}
"""by conversation, window, billing, what memci knows, and the kind of pauses"""


def main(arguments: list[str] | None = None) -> list[dict[str, Any]]:
    """Measure what the *arguments* say (default: those of the command line), print it, keep it and return it."""
    options = _options(arguments)
    log = options.results / "cache.jsonl"
    if options.show:
        found = newest(log)
        show(found)
        return found
    calls = options.calls or (400 if options.quick else None)
    figures: list[dict[str, Any]] = []
    with progress() as bar:
        for name in options.conversations:
            whole = replay_of(name)
            if whole is None:
                CONSOLE.print(f"{name}: skipped, the conversations are not here; set MEMCI_DATA to their folder")
                continue
            replay = whole.first(options.runs)
            total = min(calls or 10**9, sum(1 for _ in replay.conversation.calls()))
            known = ("nothing",) if options.quick or name in TASKS else KNOWS
            windows = options.windows or (TASK_WINDOWS if name in TASKS else WINDOWS)
            for window, preset, billing, knows in product(windows, options.presets, options.billings, known):
                if options.goals and not any((name, window, billing, knows, pause) in GOALS for pause in PAUSES):
                    continue
                make = memci(preset, billing, kept=knows == "all", clock=knows != "nothing", drawn=knows == "drawn")
                for phase in range(options.phases):
                    moved = line(bar, f"{name}, {window:,}, {preset}, {billing}", total)
                    rotated = replay.rotated(phase, options.phases)
                    played = play(rotated, make, budget=window, billings=(billing,), calls=calls, played=moved)
                    chosen = {"preset": preset, "billing": billing, "knows": knows, "phase": phase}
                    figures.append(chosen | played | {"sizes": []})
    if figures:
        chosen = {name: getattr(options, name) for name in ("windows", "presets", "phases", "runs")} | {"calls": calls}
        result = record(chosen, {"replays": figures})
        keep(result, log=None if options.quick else log, file=options.json)
        show([each | {"headline": headline(result)} for each in figures])
    return figures


def newest(log: Path) -> list[dict[str, Any]]:
    """Return the newest figures of each cell and beginning, with the commit they are of."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for text in log.read_text(encoding="utf-8").splitlines() if log.is_file() else ():
        result = json.loads(text)
        for each in result["figures"]["replays"]:
            if "recalls" in each:  # before, neither notice nor tools nor recalls were billed
                found[tuple(each[name] for name in (*CELL, "phase"))] = each | {"headline": headline(result)}
    return list(found.values())


def show(figures: list[dict[str, Any]]) -> None:
    """Print the table of *figures*: of each cell the mean over its beginnings."""
    for text in sorted({each["headline"] for each in figures}):
        CONSOLE.print(text, highlight=False)
    rows = []
    for each, pause in product(merged(figures, *CELL), PAUSES):
        name = terms(each["billing"], pause)
        if pause not in (KNOWS[each["knows"]] or PAUSES):
            continue  # it would be told wrong
        cost = each["costs"][name] + each["recalls"][name]
        key = (*(each[part] for part in CELL if part != "preset"), pause)
        goal = GOALS.get(key) if each["preset"] == "economy" else None
        shown = each["verbatim"], each["verbatim"] + each["line"], each["verbatim"] + each["line"] + each["listed"]
        wanted = f"{goal.cost:,}" if goal else "–"
        if goal and goal.evidence:
            wanted += f" · {goal.evidence:g}{' +l' * goal.listed}"
        met = goal and cost <= goal.cost and shown[2 * goal.listed] >= goal.evidence
        rows.append(
            (
                each["conversation"],
                f"{each['window']:,}",
                each["preset"],
                each["billing"],
                pause,
                each["knows"],
                f"{cost:,.0f}",
                wanted,
                "–" if goal is None else "met" if met else "missed",
                *(f"{share:.3f}" if each["needed"] else "–" for share in shown),
                f"{each['tokens']:,.0f}",
                f"{each['breaks']:.0f}",
            )
        )
    columns = ("talk", "window", "preset", "bill", "cache", "told", "cost", "goal", "", "shown", "+ line", "+ own line")
    note = "cost: of a call, all of it, in uncached tokens. breaks: calls whose beginning was not the request before"
    table("what a model call costs", (*columns, "tokens", "breaks"), rows, note=note)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cache", description="Measure what a call costs, and what was in sight."
    )
    names = lambda text: tuple(text.split(","))  # noqa: E731 -- a type of three options
    parser.add_argument("--windows", type=lambda text: tuple(map(int, text.split(","))), help="in tokens")
    parser.add_argument("--presets", type=names, default=PRESETS, help=",".join(get_args(Preset)))
    parser.add_argument("--billings", type=names, default=("marked",), help=",".join(BILLINGS))
    parser.add_argument("--conversations", type=names, default=NAMES[:3], help=",".join(NAMES))
    parser.add_argument("--phases", type=int, default=1, help="beginnings to take the mean of")
    parser.add_argument("--runs", type=int, help="only the first of them: runs, dialogues, chats or tasks")
    parser.add_argument("--calls", type=int, help="how many calls each (default: all there are)")
    parser.add_argument("--quick", action="store_true", help="400 calls of the smallest window; not kept")
    parser.add_argument("--goals", action="store_true", help="what has a goal, over three beginnings")
    parser.add_argument("--show", action="store_true", help="measure nothing")
    parser.add_argument("--results", type=Path, default=HERE, help="where figures are kept")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    options = parser.parse_args(arguments)
    for name, known in (("presets", get_args(Preset)), ("conversations", NAMES), ("billings", tuple(BILLINGS))):
        if not set(getattr(options, name)) <= set(known):
            parser.error(f"--{name}: known are {', '.join(known)}")
    options.windows = options.windows or ((8_000,) if options.quick else None)
    if options.goals:
        options.presets, options.billings, options.phases = PRESETS[:1], ("marked", "large"), 3
    return options


if __name__ == "__main__":
    main()
