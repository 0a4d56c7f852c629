"""Measure what a prompt cache keeps: `python -m benchmarks.cache`, with `--quick` for a first look.

The figures are printed beside the design's, and appended to results/cache.jsonl with commit and machine; a quick run is
not kept. This module knows nothing of how anything is measured.
"""

import argparse
from pathlib import Path
from typing import Any, get_args

from memci.settings import Preset

from ..conversation import airline, dialogues
from ..results import CONSOLE, HERE, headline, keep, line, progress, record, table
from .replay import PRESETS, replay

DESIGN = {
    ("airline", 8_000): {"balanced": (0.929, 1156), "economy": (0.942, 953), "original": (0.256, 6348)},
    ("airline", 32_000): {"balanced": (0.980, 3072), "economy": (0.984, 2535), "original": (0.081, 30597)},
    ("airline", 128_000): {"balanced": (0.995, 10575), "economy": (0.996, 8891), "original": (0.012, 130211)},
    ("dialogues", 8_000): {"balanced": (0.967, 860), "economy": (0.975, 700), "original": (0.0, 8290)},
    ("dialogues", 32_000): {"balanced": (0.992, 2710), "economy": (0.994, 2279), "original": (0.0, 32758)},
    ("dialogues", 128_000): {"balanced": (0.998, 9948)},
}
"""hit and cost per turn that the design's prototype came to; its "original" filled the window, ours keeps 5 pages"""

_SOURCES = {"airline": airline, "dialogues": dialogues}
_LOOPS = 6
"""how many times a window's worth of tokens is played at least"""


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Measure what the *arguments* say (default: those of the command line), print it, keep it and return it."""
    options = _options(arguments)
    windows: tuple[int, ...] = options.windows or ((8_000,) if options.quick else (8_000, 32_000, 128_000))
    figures: list[dict[str, Any]] = []
    missing = []
    with progress() as bar:
        for name in options.conversations:
            conversation = _SOURCES[name]()
            if conversation is None:
                missing.append(name)
                continue
            once = sum(1 for message in conversation.messages if message["role"] == "assistant")
            for window in windows:
                turns = options.turns or (400 if options.quick else max(once, _LOOPS * window // _TOKENS[name]))
                figures += [
                    replay(
                        conversation,
                        window=window,
                        preset=preset,
                        turns=turns,
                        reply=options.reply,
                        played=line(bar, f"{name}, {window:,}, {preset}", turns),
                    )
                    for preset in options.presets
                ]
    for name in missing:
        CONSOLE.print(f"{name}: skipped, the conversations are not here; set MEMCI_DATA to their folder")
    chosen = {"windows": windows, "presets": options.presets, "reply": options.reply, "turns": options.turns}
    result = record(chosen, {"replays": figures})
    if figures:
        keep(result, log=None if options.quick else options.results / "cache.jsonl", file=options.json)
        show(result)
    return result


_TOKENS = {"airline": 196, "dialogues": 90}
"""about what a turn adds"""


def show(result: dict[str, Any]) -> None:
    """Print the table of *result*."""
    CONSOLE.print(f"\n{headline(result)}\n", highlight=False)
    rows = []
    for each in result["figures"]["replays"]:
        hit, cost = DESIGN.get((each["conversation"], each["window"]), {}).get(each["preset"], (None, None))
        rows.append(
            (
                each["conversation"],
                f"{each['window']:,}",
                each["preset"],
                f"{each['hit']:.3f}",
                "–" if hit is None else f"{hit:.3f}",
                f"{each['cost_per_turn']:,}",
                "–" if cost is None else f"{cost:,}",
                f"{each['mean_tokens']:,}",
                f"{each['highest_tokens']:,}",
                f"{each['compactions']:,}",
                f"{each['turns']:,}",
                f"{each['own_meter']:.3f}",
            )
        )
    columns = ("conversation", "window", "preset", "kept", "design", "cost", "design", "tokens", "highest")
    note = "cost: per model call, in tokens without a cache; write 1.25, read 0.1. meter: what report() says, all turns"
    table("share kept of each rendering", (*columns, "compactions", "turns", "meter"), rows, note=note)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cache", description="Measure what a prompt cache keeps."
    )
    parser.add_argument("--windows", type=lambda text: tuple(int(part) for part in text.split(",")), help="in tokens")
    parser.add_argument("--presets", type=lambda text: tuple(text.split(",")), default=PRESETS, help=",".join(PRESETS))
    parser.add_argument("--conversations", type=lambda text: tuple(text.split(",")), default=tuple(_SOURCES))
    parser.add_argument("--turns", type=int, help="how many turns each (default: six windows full, or all there are)")
    parser.add_argument("--reply", type=int, default=0, help="tokens kept free for the answer; -1: as a context does")
    parser.add_argument("--quick", action="store_true", help="400 turns of the smallest window; not kept")
    parser.add_argument("--results", type=Path, default=HERE, help="where figures are kept")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    options = parser.parse_args(arguments)
    for name, known in (("presets", get_args(Preset)), ("conversations", tuple(_SOURCES))):
        if not set(getattr(options, name)) <= set(known):
            parser.error(f"--{name}: known are {', '.join(known)}")
    if options.reply < 0:
        options.reply = None
    return options


if __name__ == "__main__":
    main()
