"""Measure what a memory costs: `python -m benchmarks.memory`, with `--quick` for a first look.

    python -m benchmarks.memory --heat heat.svg      draw the heat of some episodes instead
    python -m benchmarks.memory --months months.png  live three months instead, and draw them: results/months.jsonl
    python -m benchmarks.memory --presets            live a day with the rules of each design instead

The figures are printed, and appended to results/memory.jsonl with commit and machine; a quick run is not kept. This
module knows nothing of how anything is measured.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

from ..results import CONSOLE, HERE, headline, keep, line, progress, record, table
from .felt import felt
from .heat import drawn, warmed
from .months import DAYS, draw, lived
from .presets import PRESETS, TURNS, held
from .searching import searched
from .telling import ADMITTED, LAST, Telling, owners, size

_WHOLE: dict[str, Any] = {"pages": (1_000, 10_000, 100_000), "owners": (100, 10_000), "turns": 400, "asked": 200}
_QUICK: dict[str, Any] = {"pages": (300, 1_000), "owners": (50,), "turns": 80, "asked": 60}
_PARTS = ("pages", "owners", "felt")
_EACH = 10
"""pages of each of many owners"""
_PAUSE = 0.07
"""seconds: the worker begins after 0.05"""


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Measure what the *arguments* say (default: those of the command line), print it, keep it and return it."""
    options = _options(arguments)
    if options.heat is not None:
        options.heat.parent.mkdir(parents=True, exist_ok=True)
        options.heat.write_text(drawn(warmed()), encoding="utf-8")
        return {}
    if options.months is not None:
        return _months(options)
    if options.presets:
        return _presets()
    sizes = _QUICK if options.quick else _WHOLE
    pages, many = options.pages or sizes["pages"], options.owners or sizes["owners"]
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as name, progress() as bar:
        folder = Path(name)
        if "pages" in options.parts:
            figures["pages"] = _pages(
                folder / "pages.db", pages, options, sizes["asked"], line(bar, "pages", pages[-1])
            )
        if "owners" in options.parts:
            figures["owners"] = []
            for count in many:
                path = folder / f"owners-{count}.db"
                asked = owners(path, count, _EACH, line(bar, f"{count:,} owners", count))
                step = max(1, count // (5 * sizes["asked"]))
                found = searched(path, asked[::step], _EACH * count)
                figures["owners"].append({"owners": count, **found, **_sizes(path, _EACH * count)})
        if "felt" in options.parts:
            turns = options.turns or sizes["turns"]
            figures["felt"] = [
                felt(folder, turns=turns, pause=pause, played=line(bar, "turns", turns)) for pause in (0.0, _PAUSE)
            ]
    chosen = {"pages": pages, "owners": many, "last": options.last, "admitted": options.admitted}
    result = record(chosen, figures)
    keep(result, log=None if options.quick else options.results / "memory.jsonl", file=options.json)
    show(result)
    return result


def _months(options: argparse.Namespace) -> dict[str, Any]:
    """Live three months (with `--quick` a week), keep the figures and draw them."""
    days = 8 if options.quick else DAYS
    with tempfile.TemporaryDirectory(dir=options.folder) as name, progress() as bar:
        figures = lived(Path(name), days, line(bar, "days", days))
    result = record({"days": days}, figures)
    keep(result, log=None if options.quick else options.results / "months.jsonl", file=options.json)
    columns = (
        "day",
        "mid",
        "evicted",
        "promoted",
        "episodes",
        "facts",
        "events",
        "talk_ms",
        "maintenance_ms",
        "search_ms",
    )
    weekly = [tuple(f"{row[name]:,}" for name in columns) for row in figures["days"][6::7]]
    note = f"recall among ten, by age in days: {figures['recall_at_10']}"
    table("months, a row per week", columns, weekly, note=note)
    draw(figures, options.months)
    return result


def _presets() -> dict[str, Any]:
    """Live a day with the rules of each design, and print what every tier holds."""
    with progress() as bar:
        found = {name: held(name, played=line(bar, name, TURNS)) for name in PRESETS}
    rows = [(row, *(str(found[name][row]) for name in PRESETS)) for row in found[PRESETS[0]]]
    table(f"what every tier holds after a day of {TURNS} exchanges", ("", *PRESETS), rows)
    return found


def show(result: dict[str, Any]) -> None:
    """Print the tables of *result*."""
    CONSOLE.print(f"\n{headline(result)}\n", highlight=False)
    figures = result["figures"]
    if "pages" in figures:
        keys = ("observe_ms", "admit_ms", "maintain_ms", "longest_maintenance_ms", "floor_ms")
        told = [
            (
                f"{each['pages']:,}",
                *("–" if each[key] is None else f"{each[key]:,.2f}" for key in keys),
                f"{each['observed_per_second']:,.0f} ({each['observe_times_floor']:.1f})",
                "–"
                if each["admitted_per_second"] is None
                else f"{each['admitted_per_second']:,.0f} ({each['whole_times_floor']:.1f})",
            )
            for each in figures["pages"]
        ]
        columns: tuple[str, ...] = (
            "pages",
            "observe",
            "admit",
            "maintain",
            "longest",
            "floor",
            "observed/s",
            "all tiers/s",
        )
        note = "CPU ms per page; in brackets: times the floor, which is the same texts in a plain FTS5 table"
        table("telling", columns, told, note=note)
    kept = [_row(f"{each['pages']:,} of one", each) for each in figures.get("pages", ())]
    kept += [_row(f"{each['pages']:,} of {each['owners']:,}", each) for each in figures.get("owners", ())]
    if kept:
        columns = ("pages of owners", "cold", "first", "again", "p99", "numpy", "÷ numpy", "RAM/page", "file/page")
        note = "ms. RAM: of the process, over all pages. file: the memory's part, and that of the pages themselves"
        table("searching", columns, kept, note=note)
    if "felt" in figures:
        turns = [
            (
                f"{1e3 * each['pause']:.0f} ms",
                *(f"{each[side][key]:,.0f}" for side in ("null", "memory") for key in ("median", "mean", "p99")),
                *(f"{each[f'{key}_ratio']:.2f}" for key in ("median", "mean", "p99")),
                str(each["refused"]),
            )
            for each in figures["felt"]
        ]
        columns = ("pause", "none: µs", "mean", "p99", "memory: µs", "mean", "p99", "ratio", "mean", "p99", "refused")
        table("append_turn + render, without a memory and with it", columns, turns)


def _row(label: str, each: dict[str, Any]) -> tuple[str, ...]:
    return (
        label,
        *(f"{each[key]:,.2f}" for key in ("cold_ms", "first_ms", "ms", "p99_ms", "numpy_ms", "times_numpy")),
        f"{each['ram_per_page']:,.0f} B",
        f"{each['memory_per_page']:,.0f} + {each['raw_per_page']:,.0f} B",
    )


def _pages(path: Path, marks: tuple[int, ...], options: argparse.Namespace, asked: int, told: Any) -> list[Any]:
    telling = Telling(path, told)
    found = []
    for mark in marks:
        figures = telling.up_to(mark, last=min(options.last, marks[0]), admitted=options.admitted)
        found.append({**figures, **searched(path, telling.questions(asked), mark), **_sizes(path, mark)})
    telling.close()
    return found


def _sizes(path: Path, pages: int) -> dict[str, float]:
    taken = size(path)
    return {
        "memory_per_page": round(taken["memory"] / pages, 1),
        "raw_per_page": round((taken["file"] - taken["memory"]) / pages, 1),
    }


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description="Measure what a memory costs.")
    parser.add_argument("--pages", type=_numbers, help="marks, rising (default 1000,10000,100000)")
    parser.add_argument("--owners", type=_numbers, help="numbers of owners, of 10 pages each (default 100,10000)")
    parser.add_argument("--turns", type=int, help="turns with and without a memory (default 400)")
    parser.add_argument("--last", type=int, default=LAST, help=f"pages measured before a mark (default {LAST})")
    parser.add_argument(
        "--admitted", type=int, default=ADMITTED, help=f"in all tiers from the first (default {ADMITTED})"
    )
    parser.add_argument("--parts", type=_parts, default=_PARTS, help=",".join(_PARTS))
    parser.add_argument("--heat", type=Path, help="draw the heat of some episodes into this file, and nothing else")
    parser.add_argument("--months", type=Path, help="live three months and draw them into this PNG, and nothing else")
    parser.add_argument("--presets", action="store_true", help="live a day with the rules of each design, nothing else")
    parser.add_argument("--quick", action="store_true", help="small sizes; the figures are not kept")
    parser.add_argument("--folder", type=Path, help="where stores put their files (default: the temporary folder)")
    parser.add_argument("--results", type=Path, default=HERE, help="where figures are kept")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    return parser.parse_args(arguments)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(sorted(int(part) for part in text.split(",")))


def _parts(text: str) -> tuple[str, ...]:
    chosen = tuple(text.split(","))
    if not set(chosen) <= set(_PARTS):
        raise argparse.ArgumentTypeError(f"known are {', '.join(_PARTS)}")
    return chosen


if __name__ == "__main__":
    main()
