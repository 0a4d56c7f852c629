"""Measure memci beside its peers: `make peers`, or `python -m benchmarks.peers` where requirements.txt is installed.

    --data airline --windows 8000      a part; parts are appended to results/peers.jsonl, by system and conversation
    --runs 20                          only the first runs, dialogues, chats or tasks of each
    --show                             the tables of the newest figures of all parts
    --cells benchmarks/cells.md        all cells, as a table
    --money claude-sonnet-5-5,…        what 1,000 calls cost, in dollars, at the prices of these models
    --plot docs/img                    the same as pictures

This module knows nothing of how anything is measured.
"""

import argparse
import importlib
import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from time import monotonic
from typing import Any

from memci.settings import Preset
from memci.tokens import counter_for

from ..cache.__main__ import TASK_WINDOWS
from ..cache.bills import PAUSES, terms
from ..cache.data import NAMES, TASKS, replay_of
from ..cache.manager import Manager, Setting, memci
from ..cache.prefix import BILLINGS
from ..cache.replay import merged, play
from ..cache.sight import PLACES
from ..results import CONSOLE, HERE, headline, keep, markdown, record
from . import money
from .bound import clairvoyant
from .compare import SYSTEM, TOLD, listed, summed
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
_TIMED = tuple(told for told in TOLD.values() if told)
"""ends of the names of systems that know other pauses: in a single task there are none"""


def main(arguments: list[str] | None = None) -> list[dict[str, Any]]:
    """Measure what the *arguments* say, keep it, and return the newest figures of all parts."""
    options = _options(arguments)
    if options.money:
        return _money(options)
    log = options.results / ("peers-names.jsonl" if options.names else "peers.jsonl")
    if not (options.show or options.plot or options.cells):
        systems = _systems(options.peers)
        for name in options.data:
            whole = replay_of(name)
            if whole is None:
                CONSOLE.print(f"{name}: skipped, the conversations are not here; set MEMCI_DATA to their folder")
                continue
            replay = whole.first(options.runs)
            for window in options.windows or (TASK_WINDOWS if name in TASKS else _WINDOWS):
                for system, make in systems.items():
                    largest = min((_SLOW[each] for each in _SLOW if system.startswith(each)), default=window)
                    if (window > largest and not options.peers) or (name in TASKS and system.endswith(_TIMED)):
                        continue
                    begun = monotonic()
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
                        figures.append(
                            {"system": system, "phase": phase, "runs": options.runs, **played, "sizes": sizes}
                        )
                    chosen = {name: getattr(options, name) for name in ("phases", "calls", "names", "runs")}
                    keep(record(chosen, {"replays": figures}), log=log, file=None)
                    CONSOLE.print(f"{name}, {window:,}, {system}: {monotonic() - begun:.0f} s", highlight=False)
    found = newest(log)
    if options.plot:
        from .plots import draw

        draw(found, options.plot)
    show(found)
    if options.cells:
        options.cells.write_text(listed(found), encoding="utf-8")
    return found


def _money(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure, keep and print what 1,000 calls cost in dollars."""
    rows = []
    for name in options.data:
        if (whole := replay_of(name)) is not None:
            for window in options.windows or money.windows_of(name):
                rows += money.priced(whole.first(options.runs), window, options.money)
                CONSOLE.print(f"{name}, {window:,}", highlight=False)
    if rows:
        keep(record({"runs": options.runs}, {"money": rows}), log=options.results / "money.jsonl", file=None)
        CONSOLE.print(money.written(rows, options.money), highlight=False, markup=False, soft_wrap=True)
    return rows


def newest(log: Path) -> list[dict[str, Any]]:
    """Return the newest figures of each system, conversation, window and phase, with the commit they are of."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for line in log.read_text(encoding="utf-8").splitlines() if log.is_file() else ():
        result = json.loads(line)
        for each in result["figures"]["replays"]:
            if "recalls" not in each:
                continue  # before, neither notice nor tools nor recalls were billed
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
        bills = [terms(billing, pause) for billing, pause in product(_PRICES.values(), PAUSES)]
        costs = (each["costs"][bill] + each["recalls"][bill] for bill in bills)
        shares = (f"{each[place]:.3f}" for place in PLACES)
        rows.append(
            (
                each["system"],
                each["conversation"],
                f"{each['window']:,}",
                *(f"{cost + each['own']:,.0f}" for cost in costs),
                f"{each['own'] + each['recalls']['0.1/expires']:,.0f}",
                *(f"{100 * each[name]:.1f}" for name in ("over", "orphans", "lost")),
                *shares,
                f"{each['tokens']:,.0f}",
                f"{each['mean_over_floor']:.1f}",
            )
        )
    prices = [f"{read:g} {pause}" for read, pause in product(_PRICES, PAUSES)]
    columns = ("system", "data", "window", *prices, "of which own")
    more = ("over %", "orphans %", "lost %", *PLACES, "tokens", "× floor")
    CONSOLE.print(markdown((*columns, *more), rows), highlight=False, markup=False, soft_wrap=True)
    for name in sorted({each["conversation"] for each in found} & {"airline", "coding"}):
        if replay := replay_of(name):
            for billing, pause in product(_PRICES.values(), PAUSES[:2]):
                old = pause == "expires"
                bound = clairvoyant(replay, BILLINGS[billing], expires=old, count=counter_for())
                what = f"{name}, {terms(billing, pause)}: with all evidence verbatim"
                CONSOLE.print(f"{what}, a call costs {bound:,.0f} at least")
    for preset in _PRESETS:
        CONSOLE.print(summed(figures, preset), highlight=False, markup=False, soft_wrap=True)


def _systems(chosen: tuple[str, ...] | None) -> dict[str, Callable[[Setting], Manager]]:
    """Return what makes each system: memci with each preset and price, and the peers; a missing framework is named."""
    found = {
        f"memci {preset}, r {read:g}{told}": memci(preset, billing, kept=pause == "warm", drawn=pause == "drawn")
        for preset in _PRESETS
        for read, billing in _PRICES.items()
        for pause, told in TOLD.items()
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
    parser.add_argument(
        "--windows",
        type=lambda text: tuple(map(int, text.split(","))),
    )
    parser.add_argument("--peers", type=names, help="parts of their names (default: all)")
    parser.add_argument("--phases", type=int, default=1, help="beginnings to take the mean of")
    parser.add_argument("--names", action="store_true", help="summaries whose half are identifiers; kept apart")
    parser.add_argument("--money", type=names, help="what 1,000 calls cost at the prices of these models, in dollars")
    parser.add_argument("--cells", type=Path, help="write all cells to this file, as a table")
    parser.add_argument("--runs", type=int, help="only the first runs, dialogues, chats or tasks of each")
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
