"""Measure what encryption costs: `python -m benchmarks.encryption [--turns 3000]`.

    turn 1   plain: append, render     encrypted: append, render      CPU time of the thread, in alternation
    …
    turn n   the same; then opening, recalling, searching, and the size of the files

Both contexts are in SQLite files, take the same turns and have a memory. The figures are printed, and appended to
results/encryption.jsonl. This module knows nothing of ciphers.
"""

import argparse
import gc
import secrets
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from memci import Context, SQLiteStorage
from memci.memory import NullMemory, TieredMemory
from memci.storage import EncryptedStorage, Storage

from .conversation import synthetic
from .results import CONSOLE, HERE, headline, keep, record, table

KINDS = ("plain", "encrypted")


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Measure what the *arguments* say (default: those of the command line), print it, keep it and return it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.encryption")
    parser.add_argument("--turns", type=int, default=3_000)
    parser.add_argument("--pages", type=int, default=1_000, help="of the memory")
    parser.add_argument("--reads", type=int, default=200, help="how often each kind of reading is measured")
    parser.add_argument("--discard", action="store_true", help="do not keep the figures")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        figures = turns(Path(folder), options.turns, options.reads) | remembered(
            Path(folder), options.pages, options.reads
        )
    result = record({"turns": options.turns, "pages": options.pages, "reads": options.reads}, figures)
    keep(result, log=None if options.discard else HERE / "encryption.jsonl", file=None)
    CONSOLE.print(headline(result))
    rows = [
        [name, f"{plain:,.1f}", f"{sealed:,.1f}", f"{sealed / plain:.2f}"] for name, (plain, sealed) in figures.items()
    ]
    table("what encryption costs", ["CPU µs, or kB", "plain", "encrypted", "×"], rows)
    return result


def opened(folder: Path, kind: str, key: bytes) -> Storage:
    """Return a store of a *kind*."""
    storage = SQLiteStorage(folder / f"{kind}.db", durability="fast")
    return EncryptedStorage(storage, key) if kind == "encrypted" else storage


def turns(folder: Path, count: int, reads: int) -> dict[str, tuple[float, float]]:
    """Return what a turn, an opening and a recall cost in each kind of store, without a memory."""
    key = secrets.token_bytes(32)
    stores = [opened(folder, kind, key) for kind in KINDS]
    contexts = [Context.open(store, "a", window=8_000, memory=NullMemory(), clock=None) for store in stores]
    spent: dict[str, list[list[float]]] = {"append": [[], []], "render": [[], []], "open": [[], []], "recall": [[], []]}

    def measured(name: str, at: int, work: Callable[[], Any]) -> Any:
        start = time.thread_time()
        made = work()
        spent[name][at].append(time.thread_time() - start)
        return made

    for number, turn in enumerate(islice(synthetic().turns(), count)):
        for at in (0, 1) if number % 2 else (1, 0):
            measured("append", at, lambda at=at, turn=turn: contexts[at].append_turn(*turn))
            measured("render", at, contexts[at].render)
    pages = sum(contexts[0].report().pages.values())
    for number in range(reads):
        for at in (0, 1) if number % 2 else (1, 0):
            measured("recall", at, lambda at=at, page=1 + number * pages // reads: contexts[at].recall_page(page))
            contexts[at].close()
            contexts[at] = measured(
                "open", at, lambda at=at: Context.open(stores[at], "a", memory=NullMemory(), clock=None)
            )
    for at in (0, 1):
        contexts[at].close()
        stores[at].close()
    whole = [1e6 * (sum(spent["append"][at]) + sum(spent["render"][at])) / count for at in (0, 1)]
    figures = {"a turn: append and render": (whole[0], whole[1])}
    figures |= {name: (1e6 * median(spent[name][0]), 1e6 * median(spent[name][1])) for name in ("append", "render")}
    figures["open a context"] = (1e6 * median(spent["open"][0]), 1e6 * median(spent["open"][1]))
    figures["recall a page"] = (1e6 * median(spent["recall"][0]), 1e6 * median(spent["recall"][1]))
    figures["a turn in the file, kB"] = sizes(folder, count)
    return figures


def remembered(folder: Path, count: int, reads: int) -> dict[str, tuple[float, float]]:
    """Return what the memory of *count* pages costs in each kind of store."""
    key = secrets.token_bytes(32)
    inner = folder / "memory"
    inner.mkdir()
    fed: list[float] = []
    first: list[float] = []
    later: list[float] = []
    for kind in ("warm", *KINDS):  # the first one loads what all of them need
        with closing(opened(inner, kind, key)) as store, Context.open(store, "a", window=8_000, clock=None) as context:
            start = time.process_time()
            for number, turn in enumerate(islice(synthetic().turns(), count)):
                question = f"What of {turn[0].get('content') or number}?"
                context.append_turn(question, {"role": "assistant", "content": f"Number {number}."})
            context.flush()
            fed.append(1e6 * (time.process_time() - start) / count)
        opening = []
        for _ in range(1 + reads // 50):
            with closing(opened(inner, kind, key)) as store, closing(TieredMemory(store, owner="a")) as memory:
                gc.collect()
                spent = []
                for number in range(reads + 1):
                    start = time.thread_time()
                    memory.search(f"What was number {number * 7 % count}, and its reservation?", k=5)
                    spent.append(time.thread_time() - start)
            opening.append(spent[0])
        first.append(1e6 * median(opening))
        later.append(1e6 * median(spent[1:]))
    return {
        "a page, appended and remembered": (fed[1], fed[2]),
        "the first search of a store": (first[1], first[2]),
        "a search": (later[1], later[2]),
        "a page with its memory in the file, kB": sizes(inner, count),
    }


def sizes(folder: Path, count: int) -> tuple[float, float]:
    """Return the size of the files of each kind, in kB for each of *count*."""
    found = [sum(each.stat().st_size for each in folder.glob(f"{kind}.db*")) / 1e3 / count for kind in KINDS]
    return found[0], found[1]


if __name__ == "__main__":
    main()
