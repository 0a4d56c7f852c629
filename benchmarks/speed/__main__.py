"""Measure the speed: `python -m benchmarks.speed`, with `--quick` for a first look.

The figures are printed, and appended to results/speed.jsonl with commit and machine; a quick run is not kept.
This module knows nothing of how anything is measured.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

from memci.tokens import counter_for, message_tokens

from ..conversation import Conversation, airline, synthetic
from ..results import CONSOLE, HERE, headline, keep, line, progress, record, table
from .growth import LAST, STORES, growth
from .imports import imports
from .memory import SETTLING, ephemeral, memory
from .opening import opening

_QUICK = {"turns": (200, 2_000), "pages": (200, 1_000), "last": 200}
_WHOLE = {"turns": (1_000, 10_000, 100_000), "pages": (10_000, 100_000), "last": LAST}
_PARTS = ("growth", "memory", "imports")


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Measure what the *arguments* say (default: those of the command line), print it, keep it and return it."""
    options = _options(arguments)
    sizes: dict[str, Any] = _QUICK if options.quick else _WHOLE
    turns: tuple[int, ...] = options.turns or sizes["turns"]
    pages: tuple[int, int] = options.pages or sizes["pages"]
    last = min(sizes["last"], turns[0])
    conversation = (None if options.synthetic else airline()) or synthetic()
    figures: dict[str, Any] = {"conversation": shape(conversation, turns=min(2_000, turns[-1]))}
    with tempfile.TemporaryDirectory(dir=options.folder) as name, progress() as bar:
        folder = Path(name)
        if "growth" in options.parts:
            figures["growth"] = []
            for store in options.stores:
                figures["growth"].append(
                    growth(
                        conversation,
                        folder,
                        store=store,
                        marks=turns,
                        window=options.window,
                        pauses=options.pauses,
                        last=last,
                        played=line(bar, f"{store}: turns", turns[-1]),
                    )
                )
        if "memory" in options.parts:
            path = folder / "pages.db"
            figures["memory"] = memory(
                conversation,
                path,
                pages=pages,
                window=options.window,
                settling=min(SETTLING, pages[0] // 2),
                played=line(bar, "pages in a file", pages[1]),
            )
            figures["opening"] = opening(path)
            figures["ephemeral"] = ephemeral(conversation, pages=pages[0], window=options.window)
        if "imports" in options.parts:
            figures["imports"] = imports(3 if options.quick else 10)
    chosen = {"turns": turns, "pages": pages, "stores": options.stores, "window": options.window, "last": last}
    chosen |= {"pauses": True} if options.pauses else {}
    result = record(chosen, figures)
    keep(result, log=None if options.quick else options.results / "speed.jsonl", file=options.json)
    show(result)
    return result


def shape(conversation: Conversation, *, turns: int) -> dict[str, Any]:
    """Return the name of *conversation*, and what a turn of it holds on average."""
    count = counter_for()
    played = [message for _, turn in zip(range(turns), conversation.turns(), strict=False) for message in turn]
    return {
        "name": conversation.name,
        "messages_per_turn": round(len(played) / turns, 3),
        "tokens_per_turn": round(sum(message_tokens(message, count) for message in played) / turns, 1),
    }


def show(result: dict[str, Any]) -> None:
    """Print the tables of *result*."""
    figures = result["figures"]
    said = figures["conversation"]
    CONSOLE.print(f"\n{headline(result)}", highlight=False)
    CONSOLE.print(
        f"conversation: {said['name']}, {said['messages_per_turn']} messages and {said['tokens_per_turn']} tokens a"
        f" turn, varied; window {result['options']['window']:,}\n",
        highlight=False,
    )
    rows = []
    for run in figures.get("growth", ()):
        for mark in run["marks"]:
            turns = str(mark["turns"])
            grown = run["growth"].get(turns), run["growth_over_floor"].get(turns)
            rows.append(
                (
                    run["store"],
                    f"{mark['turns']:,}",
                    *(f"{mark[key]:,.1f}" for key in ("median", "mean", "p99", "render", "floor")),
                    f"{mark['times_floor']:.2f}",
                    *("–" if value is None else f"{value:.2f}" for value in grown),
                    *(f"{mark[key]:,.0f}" for key in ("wall_median", "wall_p99", "compactions", "idle")),
                )
            )
    if rows:
        columns = ("store", "turns", "median", "mean", "p99", "render", "floor", "× floor", "growth", "÷ floor")
        note = (
            f"The last {result['options']['last']:,} turns before each mark. growth: of the median, over the first row"
        )
        title = "append_turn + render, CPU µs per turn (wall: by the clock)"
        table(title, (*columns, "wall", "wall p99", "compactions", "idle"), rows, note=note)
    rows = []
    if "memory" in figures:
        kept, ram, again = figures["memory"], figures["ephemeral"], figures["opening"]
        rows += [
            ("RAM per archived page, SQLite", f"{kept['ram_per_page']:,.1f} B", "4 B"),
            ("disk per page ÷ its raw JSON", f"{kept['disk_times_json']:.2f} ({kept['disk_per_page']:,.0f} B)", "1.1"),
            ("RAM ÷ raw JSON, ephemeral", f"{ram['ram_times_json']:.2f} ({ram['ram_per_page']:,.0f} B a page)", "1.3"),
            (f"open + render, {again['pages']:,} pages, warm", f"{again['open_ms']:.2f} ms", "2 ms"),
            ("recall_page of an archived page", f"{again['recall_us']:,.0f} µs", "100 µs"),
        ]
    if "imports" in figures:
        rows.append(("import memci", "{wall_ms:.0f} ms ({cpu_ms:.0f} ms CPU)".format(**figures["imports"]), "150 ms"))
    if rows:
        table("size, opening, import", ("what", "measured", "at most"), rows)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description="Measure the speed of a context.")
    parser.add_argument("--turns", type=_numbers, help="marks, rising (default 1000,10000,100000)")
    parser.add_argument("--pages", type=_numbers, help="two numbers of archived pages (default 10000,100000)")
    parser.add_argument("--stores", type=_names(STORES), default=STORES, help=",".join(STORES))
    parser.add_argument("--parts", type=_names(_PARTS), default=_PARTS, help=",".join(_PARTS))
    parser.add_argument("--window", type=int, default=8_000, help="in tokens (default 8000)")
    parser.add_argument("--pauses", action="store_true", help="prepare compactions between turns, counted apart")
    parser.add_argument("--quick", action="store_true", help="small sizes; the figures are not kept")
    parser.add_argument("--synthetic", action="store_true", help="play the made-up conversation")
    parser.add_argument("--folder", type=Path, help="where stores put their files (default: the temporary folder)")
    parser.add_argument("--results", type=Path, default=HERE, help="where figures are kept")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    return parser.parse_args(arguments)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(sorted(int(part) for part in text.split(",")))


def _names(known: tuple[str, ...]) -> Any:
    def names(text: str) -> tuple[str, ...]:
        chosen = tuple(text.split(","))
        if not set(chosen) <= set(known):
            raise argparse.ArgumentTypeError(f"known are {', '.join(known)}")
        return chosen

    return names


if __name__ == "__main__":
    main()
