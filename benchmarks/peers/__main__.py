"""Measure memci beside its peers: `make peers`, or `python -m benchmarks.peers` where requirements.txt is installed.

    --data airline --windows 8000      a part; parts are appended to results/peers.jsonl, by system and conversation
    --show                             the tables of the newest figures of all parts
    --plot docs/img                    the same as pictures

This module knows nothing of how anything is measured.
"""

import argparse
import importlib
import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

from memci.settings import Preset
from memci.tokens import counter_for

from ..cache.data import NAMES, replay_of
from ..cache.manager import Manager, Setting, memci
from ..cache.prefix import BILLINGS
from ..cache.replay import merged, play, terms
from ..cache.sight import PLACES
from ..results import CONSOLE, HERE, headline, keep, record, table
from .bound import clairvoyant
from .compare import SYSTEM, cells, verdicts
from .frameworks.plain import PEERS

_MODULES = ("langchain", "llamaindex", "openai_agents", "strands_agents", "pydantic", "microsoft")
_PRESETS: tuple[Preset, ...] = ("economy", "balanced")
_PRICES = {0.1: "marked", 0.5: "half"}
"""the price of a token that is read from the cache, and the billing that has it"""
_SLOW = {"AutoGen, tokens": 8_000, "Agent Framework": 8_000, "LlamaIndex": 32_000}
"""the largest windows of peers, unless they are named: there they take hundreds of times as long as counting"""
_DRAWN = 32_000
"""the window that is drawn over time"""
_WINDOWS = (8_000, 32_000, 128_000)


def main(arguments: list[str] | None = None) -> list[dict[str, Any]]:
    """Measure what the *arguments* say, keep it, and return the newest figures of all parts."""
    options = _options(arguments)
    log = options.results / ("peers-names.jsonl" if options.names else "peers.jsonl")
    if not (options.show or options.plot):
        systems = _systems(options.peers)
        for name in options.data:
            replay = replay_of(name)
            if replay is None:
                CONSOLE.print(f"{name}: skipped, the conversations are not here; set MEMCI_DATA to their folder")
                continue
            for window in options.windows:
                for system, make in systems.items():
                    largest = min((_SLOW[each] for each in _SLOW if system.startswith(each)), default=window)
                    if window > largest and not options.peers:
                        continue
                    figures = []
                    for phase in range(options.phases):
                        rotated = replay.rotated(phase, options.phases)
                        played = play(
                            rotated,
                            make,
                            budget=window,
                            billings=tuple(_PRICES.values()),
                            calls=options.calls,
                            names=options.names,
                        )
                        sizes = played["sizes"][::5] if window == _DRAWN else []
                        figures.append({"system": system, "phase": phase, **played, "sizes": sizes})
                    chosen = {"phases": options.phases, "calls": options.calls, "names": options.names}
                    keep(record(chosen, {"replays": figures}), log=log, file=None)
                    CONSOLE.print(f"{name}, {window:,}, {system}", highlight=False)
    found = newest(log)
    if options.plot:
        from .plots import draw

        draw(found, options.plot)
    show(found)
    return found


def newest(log: Path) -> list[dict[str, Any]]:
    """Return the newest figures of each system, conversation, window and phase, with the commit they are of."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for line in log.read_text(encoding="utf-8").splitlines() if log.is_file() else ():
        result = json.loads(line)
        for each in result["figures"]["replays"]:
            where = each["system"], each["conversation"], each["window"], each["phase"]
            found[where] = each | {"headline": headline(result)}
    return list(found.values())


def show(figures: list[dict[str, Any]]) -> None:
    """Print the tables of *figures*."""
    found = merged(figures, *SYSTEM)
    for line in sorted({each["headline"] for each in figures}):
        CONSOLE.print(line, highlight=False)
    rows = []
    for each in sorted(found, key=lambda each: (each["conversation"], each["window"], each["costs"]["0.1/expires"])):
        costs = (each["costs"][terms(read, expires=old)] for read, old in product(_PRICES, (False, True)))
        shares = (f"{each[place]:.3f}" for place in PLACES)
        rows.append(
            (
                each["system"],
                each["conversation"],
                f"{each['window']:,}",
                *(f"{cost + each['own']:,.0f}" for cost in costs),
                f"{each['own']:,.0f}",
                *(f"{100 * each[name]:.1f}" for name in ("over", "orphans", "lost")),
                *shares,
                f"{each['tokens']:,.0f}",
                f"{each['mean_over_floor']:.1f}",
            )
        )
    columns = ("system", "data", "window", ".1 warm", ".1 expiring", ".5 warm", ".5 expiring", "own calls")
    more = ("over %", "orphans %", "lost %", *PLACES, "tokens", "× floor")
    table("what a model call costs", (*columns, *more), rows)
    for name in sorted({each["conversation"] for each in found} & {"airline", "coding"}):
        if replay := replay_of(name):
            for read, old in product(_PRICES, (False, True)):
                bound = clairvoyant(replay, BILLINGS[_PRICES[read]], expires=old, count=counter_for())
                what = f"{name}, {terms(read, expires=old)}: with all evidence verbatim"
                CONSOLE.print(f"{what}, a call costs {bound:,.0f} at least")
    for preset in _PRESETS:
        for own, listed in product((True, False), (False, True)):
            of = cells(figures, preset, own_calls=own, listed=listed)
            counts = verdicts(of)
            shares = ", ".join(f"{name} {counts[name]}" for name in ("ahead", "dearer", "less", "behind"))
            what = f"{'with' if own else 'without'} own calls, {'with' if listed else 'without'} what is listed"
            CONSOLE.print(f"{preset}, {what}: {len(of)} cells: {shares}", highlight=False)


def _systems(chosen: tuple[str, ...] | None) -> dict[str, Callable[[Setting], Manager]]:
    """Return what makes each system: memci with each preset and price, and the peers; a missing framework is named."""
    found = {
        f"memci {preset}, r {read:g}{', kept' * kept}": memci(preset, billing, kept=kept)
        for preset in _PRESETS
        for read, billing in _PRICES.items()
        for kept in (False, True)
    }
    found |= {f"memci {preset}, no clock": memci(preset, clock=False) for preset in _PRESETS}
    found |= PEERS
    for name in _MODULES:
        try:
            found |= importlib.import_module(f".frameworks.{name}", __package__).PEERS
        except ImportError as missing:
            CONSOLE.print(f"{name}: skipped, {missing}; `make peers` installs the frameworks")
    return {name: make for name, make in found.items() if not chosen or any(part in name for part in chosen)}


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description="Measure memci beside its peers.")
    names = lambda text: tuple(text.split(","))  # noqa: E731 -- a type of three options
    parser.add_argument("--data", type=names, default=NAMES, help=",".join(NAMES))
    parser.add_argument("--windows", type=lambda text: tuple(map(int, text.split(","))), default=_WINDOWS)
    parser.add_argument("--peers", type=names, help="parts of their names (default: all)")
    parser.add_argument("--phases", type=int, default=1, help="beginnings to take the mean of")
    parser.add_argument("--names", action="store_true", help="summaries whose half are identifiers; kept apart")
    parser.add_argument("--calls", type=int, help="how many calls each (default: all there are)")
    parser.add_argument("--results", type=Path, default=HERE, help="where figures are kept")
    parser.add_argument("--show", action="store_true", help="measure nothing")
    parser.add_argument("--plot", type=Path, help="measure nothing, and draw into this folder")
    options = parser.parse_args(arguments)
    if not set(options.data) <= set(NAMES):
        parser.error(f"--data: known are {', '.join(NAMES)}")
    return options


if __name__ == "__main__":
    main()
