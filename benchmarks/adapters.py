"""The same task of 60 turns with tools through a framework, with and without memci: what its model was sent.

    .venv-adapters/langchain/bin/python -m benchmarks.adapters langchain

Prints two lines of the table in docs/adapters/index.md: the largest request, all requests together, what they cost
under a prompt cache, and the final answer. The model is scripted, over real HTTP; `make adapter-langchain` sets the
environment up. This module knows nothing of frameworks.
"""

import argparse
import asyncio
import importlib
import tempfile
from pathlib import Path

from memci.testing.llm.server import ModelServer
from memci.tokens import counter_for, tools_tokens

from .cache.prefix import BILLINGS, Prefixes

TURNS, WINDOW = 60, 8_000


def main() -> None:
    """Run the task and print the lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("adapter", help="its name in tests/adapters, as openai-agents")
    name = parser.parse_args().adapter
    module = importlib.import_module(f"tests.adapters.adapter_{name.replace('-', '_')}")
    for title, kind in (("alone", module.Plain), ("with memci", module.Plain.__base__)):
        print(f"| {name} | {title} | " + " | ".join(measured(kind)) + " |")


def measured(kind: type) -> list[str]:
    """Return what *kind* of driver made of the task: peak, sum, costs, answer."""
    count = counter_for("gpt-4o")
    with ModelServer(kind.play) as server, tempfile.TemporaryDirectory() as folder:
        driver = kind(Path(folder) / "agent.db", server.base_url, WINDOW)
        answer = asyncio.run(task(driver))
        driver.close()
        sizes, costs = [], dict.fromkeys(("automatic", "half"), 0.0)
        prefixes = Prefixes(count)
        for request in server.requests:
            schemas = tools_tokens(request.body.get("tools", []), count, "gpt-4o")
            kept, _, total = prefixes.compare(request.messages, tools=schemas)
            sizes.append(total)
            for billing in costs:
                costs[billing] += BILLINGS[billing].price(kept, total)
    return [f"{max(sizes):,}", f"{sum(sizes):,}", *(f"{cost:,.0f}" for cost in costs.values()), answer]


async def task(driver) -> str:
    """Ask for two things in each turn, and say goodbye."""
    for number in range(TURNS - 1):
        await driver.say("a", f"look up kiwi{number}, plum{number}")
    return await driver.say("a", "say goodbye")


if __name__ == "__main__":
    main()
