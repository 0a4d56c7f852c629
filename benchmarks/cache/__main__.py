"""Measure what a prompt cache keeps, and what a call costs: `python -m benchmarks.cache`, `--quick` for a first look.

The figures are printed beside the design's goals, and appended to results/cache.jsonl with commit and machine; a quick
run is not kept. This module knows nothing of how anything is measured.
"""

import argparse
from itertools import product
from pathlib import Path
from typing import Any, get_args

from memci.settings import Preset

from ..conversation import airline, chats, dialogues
from ..results import CONSOLE, HERE, headline, keep, line, progress, record, table
from .prefix import BILLINGS
from .replay import PRESETS, Cell, replay

GOALS = {
    ("airline", 8_000, "marked", False, True): 600,
    ("airline", 8_000, "marked", True, True): 750,
    ("airline", 32_000, "marked", False, True): 730,
    ("airline", 32_000, "marked", True, True): 910,
    ("airline", 128_000, "marked", False, True): 730,
    ("airline", 128_000, "marked", True, True): 910,
    ("airline", 8_000, "marked", False, False): 870,
    ("airline", 32_000, "marked", False, False): 1_250,
    ("airline", 128_000, "marked", False, False): 1_250,
    ("airline", 8_000, "large", False, True): 1_680,
    ("airline", 8_000, "large", True, True): 1_740,
    ("dialogues", 8_000, "marked", False, False): 580,
    ("dialogues", 8_000, "marked", True, True): 850,
    ("dialogues", 32_000, "marked", False, False): 1_850,
    ("dialogues", 32_000, "marked", True, True): 2_850,
    ("chats", 8_000, "marked", False, False): 1_700,
    ("chats", 8_000, "marked", True, True): 1_760,
    ("chats", 32_000, "marked", False, False): 3_250,
    ("chats", 32_000, "marked", True, True): 3_320,
}
"""what the design asks of "economy" """

_SOURCES = {"airline": airline, "dialogues": dialogues, "chats": chats}
_TIMES = ((False, False), (False, True), (True, False), (True, True))
"""whether the cache expires in a pause, and whether the context knows the time"""


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Measure what the *arguments* say (default: those of the command line), print it, keep it and return it."""
    options = _options(arguments)
    windows: tuple[int, ...] = options.windows or ((8_000,) if options.quick else (8_000, 32_000, 128_000))
    times = _TIMES[:1] if options.quick else _TIMES
    calls = options.calls or (400 if options.quick else None)
    figures: list[dict[str, Any]] = []
    missing = []
    with progress() as bar:
        for name in options.conversations:
            conversation = _SOURCES[name]()
            if conversation is None:
                missing.append(name)
                continue
            total = min(calls or 10**9, sum(1 for _ in conversation.calls()))
            for window, preset, billing, (expires, clock) in product(windows, options.presets, options.billings, times):
                cell = Cell(window, preset, billing, expires, clock)
                what = f"{name}, {window:,}, {preset}, {billing}"
                figures.append(
                    replay(conversation, cell, calls=calls, reply=options.reply, played=line(bar, what, total))
                )
    for name in missing:
        CONSOLE.print(f"{name}: skipped, the conversations are not here; set MEMCI_DATA to their folder")
    chosen = {"windows": windows, "presets": options.presets, "reply": options.reply, "calls": calls}
    result = record(chosen, {"replays": figures})
    if figures:
        keep(result, log=None if options.quick else options.results / "cache.jsonl", file=options.json)
        show(result)
    return result


def show(result: dict[str, Any]) -> None:
    """Print the table of *result*."""
    CONSOLE.print(f"\n{headline(result)}\n", highlight=False)
    rows = []
    for each in result["figures"]["replays"]:
        key = (each["conversation"], each["window"], each["billing"], each["expires"], each["clock"])
        goal = GOALS.get(key) if each["preset"] == "economy" else None
        places = each["evidence"]
        rows.append(
            (
                each["conversation"],
                f"{each['window']:,}",
                each["preset"],
                each["billing"],
                "expires" if each["expires"] else "warm",
                "clock" if each["clock"] else "–",
                f"{each['cost']:,}",
                "–" if goal is None else f"{goal:,}",
                f"{each['kept']:.3f}",
                f"{places['verbatim']:.3f}" if places.get("arguments") else "–",
                f"{each['mean_tokens']:,}",
                f"{each['compactions']:,}",
                f"{each['over']}",
            )
        )
    columns = ("conversation", "window", "preset", "billing", "cache", "time", "cost", "goal", "kept", "evidence")
    note = "cost: per model call, in tokens without a cache. evidence: arguments of calls that stood verbatim in front"
    table("what a model call costs", (*columns, "tokens", "compactions", "over"), rows, note=note)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cache", description="Measure what a prompt cache keeps, and what a call costs."
    )
    parser.add_argument("--windows", type=lambda text: tuple(int(part) for part in text.split(",")), help="in tokens")
    parser.add_argument("--presets", type=lambda text: tuple(text.split(",")), default=PRESETS, help=",".join(PRESETS))
    parser.add_argument(
        "--billings", type=lambda text: tuple(text.split(",")), default=("marked",), help=",".join(BILLINGS)
    )
    parser.add_argument("--conversations", type=lambda text: tuple(text.split(",")), default=tuple(_SOURCES))
    parser.add_argument("--calls", type=int, help="how many calls each (default: all there are)")
    parser.add_argument("--reply", type=int, default=0, help="tokens kept free for the answer; -1: as a context does")
    parser.add_argument("--quick", action="store_true", help="400 calls of the smallest window; not kept")
    parser.add_argument("--results", type=Path, default=HERE, help="where figures are kept")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    options = parser.parse_args(arguments)
    known = (("presets", get_args(Preset)), ("conversations", tuple(_SOURCES)), ("billings", tuple(BILLINGS)))
    for name, names in known:
        if not set(getattr(options, name)) <= set(names):
            parser.error(f"--{name}: known are {', '.join(names)}")
    if options.reply < 0:
        options.reply = None
    return options


if __name__ == "__main__":
    main()
