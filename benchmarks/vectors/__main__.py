"""Measure embedders and the index of vectors: `python -m benchmarks.vectors`, with `--quick` for a first look.

Medians of the wall clock, one thread, vectors in made-up groups. The figures are printed, and appended to
results/vectors.jsonl; a quick run is not kept. This module knows nothing of recall on real questions.
"""

import argparse
from pathlib import Path
from typing import Any

from ..results import CONSOLE, HERE, headline, keep, line, progress, record, table
from .embedding import embedding
from .searching import searching


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Measure what the *arguments* say (default: those of the command line), print it, keep it and return it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.vectors", description="Measure the search of vectors.")
    parser.add_argument("--sizes", type=_numbers, help="rows (default 1000,3000,10000,30000,100000)")
    parser.add_argument("--dimensions", type=_numbers, default=(384, 1024), help="default 384,1024")
    parser.add_argument("--model", type=Path, help="the folder of a model for SentenceEmbedder")
    parser.add_argument("--quick", action="store_true", help="small sizes; the figures are not kept")
    parser.add_argument("--results", type=Path, default=HERE, help="where figures are kept")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    options = parser.parse_args(arguments)
    sizes = options.sizes or ((1_000, 3_000) if options.quick else (1_000, 3_000, 10_000, 30_000, 100_000))
    figures: dict[str, Any] = {"embedding": embedding(options.model, texts=100 if options.quick else 2_000)}
    figures["searching"] = []
    with progress() as bar:
        for dimension in options.dimensions:
            for size in sizes:
                done = line(bar, f"{size:,} × {dimension:,}", size)
                figures["searching"].append(searching(size, dimension))
                done(size)
    result = record({"sizes": sizes, "dimensions": options.dimensions}, figures)
    keep(result, log=None if options.quick else options.results / "vectors.jsonl", file=options.json)
    show(result)
    return result


def show(result: dict[str, Any]) -> None:
    """Print the tables of *result*."""
    CONSOLE.print(f"\n{headline(result)}\n", highlight=False)
    rows = [
        [name, f"{row['texts_per_second']:,.0f}", f"{row['one_ms']:.2f}"]
        for name, row in result["figures"]["embedding"].items()
    ]
    table("embedding texts of 200 characters", ["embedder", "texts/s", "a question, ms"], rows)
    columns = ("product_ms", "scores_ms", "add_us")
    rows = [
        [
            f"{row['rows']:,} × {row['dimension']:,}",
            *(f"{row[key]:,.3f}" for key in columns),
        ]
        for row in result["figures"]["searching"]
    ]
    table("search, ms", ["rows", "product", "scores", "add µs"], rows, note="add: per row")


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(sorted(int(part) for part in text.split(",")))


if __name__ == "__main__":
    main()
