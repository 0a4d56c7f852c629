"""Measure what a server pays: `python -m benchmarks.servers`, with `--quick` for a first look.

The figures are printed, and appended to results/servers.jsonl with commit and machine; a quick run is not kept. This
module knows nothing of how anything is measured.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

from ..memory.talks import Talks
from ..results import CONSOLE, HERE, headline, keep, line, progress, record, table
from .cycles import OWNERS, TURNS, cycles
from .load import load

_KINDS = ("one", "grows", "many")


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Measure what the *arguments* say (default: those of the command line), print it, keep it and return it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.servers", description="Measure what a server pays.")
    parser.add_argument("--quick", action="store_true", help="300 cycles and 160 requests; the figures are not kept")
    parser.add_argument("--parts", default="cycles,load", help="cycles,load")
    parser.add_argument("--kinds", default=",".join(_KINDS), help=",".join(_KINDS))
    parser.add_argument("--cycles", type=int, help="default 10000")
    parser.add_argument("--requests", type=int, help="of each row (default 1600)")
    parser.add_argument("--clients", default="1,4,16", help="how many at a time (default 1,4,16)")
    parser.add_argument("--turns", type=int, help=f"of one owner at first (default {TURNS})")
    parser.add_argument("--owners", type=int, help=f"many of them (default {OWNERS})")
    options = parser.parse_args(arguments)
    count = options.cycles or (300 if options.quick else 10_000)
    requests = options.requests or (160 if options.quick else 1_600)
    turns = options.turns or (60 if options.quick else TURNS)
    owners = options.owners or (50 if options.quick else OWNERS)
    figures: dict[str, Any] = {}
    talks = Talks()
    with tempfile.TemporaryDirectory() as name, progress() as bar:
        if "cycles" in options.parts:
            figures["cycles"] = [
                cycles(Path(name), talks, kind, count, turns=turns, owners=owners, played=line(bar, kind, count))
                for kind in options.kinds.split(",")
            ]
        if "load" in options.parts:
            figures["load"] = [
                load(Path(name), talks, durability, kind, clients, requests)
                for durability in ("full", "fast")
                for kind in ("threads", "tasks")
                for clients in map(int, options.clients.split(","))
            ]
    result = record(
        {"cycles": count, "requests": requests, "clients": options.clients, "turns": turns, "owners": owners}, figures
    )
    keep(result, log=None if options.quick else HERE / "servers.jsonl", file=None)
    show(result)
    return result


def show(result: dict[str, Any]) -> None:
    """Print the tables of *result*."""
    CONSOLE.print(f"\n{headline(result)}\n", highlight=False)
    figures = result["figures"]
    rows = [
        (
            each["kind"],
            f"{each['cycles']:,}",
            f"{each['ms']:.1f}",
            f"{each['slope']:,.0f}",
            *(f"{each[key]:,.1f}" for key in ("first_mb", "last_mb", "closed_mb")),
            *("{} → {}".format(*each[key]) for key in ("files", "threads")),
        )
        for each in figures.get("cycles", ())
    ]
    columns = ("cycles", "", "ms", "B per cycle", "MB at first", "at last", "closed", "files", "threads")
    table("open, render, append, search, close", columns, rows, note="ms: median; MB of the process")
    rows = [
        (
            f"{each['durability']}, {each['kind']}",
            str(each["clients"]),
            *(f"{each[key]:,.1f}" for key in ("requests_per_second", "p50_ms", "p99_ms", "cpu_ms")),
        )
        for each in figures.get("load", ())
    ]
    table(
        "open, append, render, append, close", ("SQLite", "clients", "per second", "p50 ms", "p99 ms", "CPU ms"), rows
    )


if __name__ == "__main__":
    main()
