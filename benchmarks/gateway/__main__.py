"""Measure the gateway: `python -m benchmarks.gateway`, `--quick` for a first look.

A coding agent's session of 200 calls goes through each format's real client, directly and through the gateway, which
runs in a process of its own. The model is a script: it answers what was recorded. If a command names a file or a
variable that stood in the conversation and is not in the request any more, the script searches the memory for it first,
as a page fault would. The figures are printed, and appended to results/gateway.jsonl with commit and machine. This
module knows nothing of how costs are computed.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from statistics import quantiles
from time import perf_counter
from typing import Any

from memci.tokens import counter_for
from tests.serve.gateway.kit import FORMATS, Talk
from tests.serve.gateway.upstream import Said, Upstream

from ..results import CONSOLE, HERE, headline, keep, line, progress, record, table
from .billing import NAMES, Bill
from .session import Step, session


class Script:
    """The model: it answers the recorded steps in their order, and searches for what it can't see."""

    def __init__(self, steps: list[Step], count: Any) -> None:
        self.steps = steps
        self.at = 0
        self.direct = True
        self.past = ""
        """all that was said so far"""
        self.bills = {True: Bill(count), False: Bill(count)}
        self.faults = self.found = self.rewritten = 0
        self.first = 0.0
        """when the first byte of a stream was sent"""

    def __call__(self, seen: Any) -> Said:
        step = self.steps[self.at]
        self.bills[self.direct].add(seen.format, seen.json)
        answer = Said(step.text, ((step.call, "read", {"command": step.command}),))
        if not self.direct and "search_memory" in seen.tools:
            shown = seen.body.decode()
            missing = sorted(name for name in step.needs if name in self.past and name not in shown)
            self.rewritten += not seen.results or "memci:" not in seen.results[-1]
            if seen.results and "memci:" in seen.results[-1] and self.asked:
                self.found += self.asked in "".join(seen.results)
                self.asked = ""
            elif missing:
                self.faults += 1
                self.asked = missing[0]
                query = {"query": missing[0], "since": None, "until": None}
                answer = Said("", ((f"m_{self.at}_{self.faults}", "search_memory", query),))
        self.first = perf_counter()
        return answer

    asked = ""


class Clock:
    """Times a request, from its last byte that is ready to the first of its answer."""

    seconds = 0.0
    _began = 0.0

    def begin(self, _request: object) -> None:
        self._began = perf_counter()

    def end(self, _response: object) -> None:
        self.seconds = perf_counter() - self._began


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Measure what the *arguments* say (default: those of the command line), print it, keep it and return it."""
    options = _options(arguments)
    calls = 30 if options.quick else options.calls
    steps = session(calls)
    if steps is None:
        CONSOLE.print("skipped, the traces are not here; set MEMCI_DATA to their folder")
        return {}
    cells = []
    with progress() as bar:
        for form, preset in product(options.formats, options.presets):
            played = line(bar, f"{form}, {preset}", calls)
            cells.append(_measured(form, steps, options.window, preset, played))
    chosen = {"window": options.window, "presets": options.presets, "calls": calls}
    result = record(chosen, {"gateway": cells})
    keep(result, log=None if options.quick else options.results / "gateway.jsonl", file=options.json)
    show(result)
    return result


def show(result: dict[str, Any]) -> None:
    """Print the tables of *result*."""
    CONSOLE.print(f"\n{headline(result)}\n", highlight=False)
    cells = result["figures"]["gateway"]
    rows = [
        (
            each["format"],
            each["preset"],
            f"{each['untouched']}",
            f"{each['refusals']}",
            f"{each['largest'][0]:,} → {each['largest'][1]:,}",
            *(f"{each['cost'][name][0]:,} → {each['cost'][name][1]:,}" for name in NAMES),
            f"{each['searches']:.3f}",
            f"{each['found']} of {each['faults']}",
        )
        for each in cells
    ]
    columns = ("format", "preset", "untouched", "refused", "largest", *NAMES, "searches a call", "found")
    note = "cost: tokens without a cache, per call of the client; directly → through the gateway"
    table("what the provider gets", columns, rows, note=note)
    rows = [
        (
            each["format"],
            each["preset"],
            *(
                f"{each[part][at]:.1f}"
                for part in ("added", "added_untouched", "added_rewritten", "first")
                for at in (0, 1)
            ),
        )
        for each in cells
    ]
    parts = ("all", "untouched", "rewritten", "first byte")
    columns = ("format", "preset", *(f"{part}, {name}" for part in parts for name in ("p50", "p99")))
    table("what the gateway adds, in ms", columns, rows, note="first byte: of a stream, behind the provider's")


def _measured(
    form: str, steps: list[Step], window: int, preset: str, played: Callable[[int], object]
) -> dict[str, Any]:
    """Play *steps* through *form*'s client, and return the figures."""
    script = Script(steps, counter_for("gpt-4o"))
    added: list[tuple[bool, float]] = []
    first: list[float] = []
    with (
        Upstream(script) as provider,
        _serving(provider.url, window, preset) as url,
        Talk(form, url, marks=True) as through,
    ):
        http = through.client._client
        clock = Clock()
        http.event_hooks["request"].append(clock.begin)
        http.event_hooks["response"].append(clock.end)
        for number, step in enumerate(steps):
            script.at = number
            if number:
                _give(through, steps[number - 1])
            if step.task is not None:
                through.items.append({"role": "user", "content": step.task})
                script.past += step.task
            script.direct = False
            through.ask()
            raw, took = through.sent[-1], clock.seconds
            untouched = provider.seen[-1].body == raw
            script.direct = True
            http.post(f"{provider.url}{provider.seen[-1].path}", content=raw)
            added.append((untouched, (took - clock.seconds) * 1_000))
            provider.seen.clear()
            through.sent.clear()
            script.past += step.command + step.output
            played(number + 1)
            if number % 4 == 0:
                first.append(_first_byte(script, form, provider.url, url, through))
    refusals = len(provider.problems)
    bills = script.bills
    return {
        "format": form,
        "preset": preset,
        "untouched": sum(untouched for untouched, _ in added),
        "refusals": refusals,
        "largest": [bills[True].largest, bills[False].largest],
        "cost": {name: [round(bills[way].spent[name] / len(steps)) for way in (True, False)] for name in NAMES},
        "searches": round(script.faults / len(steps), 4),
        "faults": script.faults,
        "found": script.found,
        "added": _p50_p99([took for _, took in added]),
        "added_untouched": _p50_p99([took for untouched, took in added if untouched]),
        "added_rewritten": _p50_p99([took for untouched, took in added if not untouched]),
        "first": _p50_p99(first),
    }


def _give(talk: Talk, step: Step) -> None:
    """Append the output of *step* to the list of *talk*."""
    match talk.format:
        case "openai_chat":
            talk.items.append({"role": "tool", "tool_call_id": step.call, "content": step.output})
        case "openai_responses":
            talk.items.append({"type": "function_call_output", "call_id": step.call, "output": step.output})
        case _:
            block = {"type": "tool_result", "tool_use_id": step.call, "content": step.output}
            talk.items.append({"role": "user", "content": [block]})


def _first_byte(script: Script, form: str, provider: str, gateway: str, talk: Talk) -> float:
    """Return by how many ms the first byte of a stream comes later through the gateway, in another conversation."""
    listed = "input" if form == "openai_responses" else "messages"
    body = {"model": "gpt-4o", "stream": True, "max_tokens": 9, listed: [{"role": "user", "content": "Hi"}]}
    path = {"openai_chat": "chat/completions", "openai_responses": "responses", "anthropic": "messages"}[form]
    bills, direct = script.bills, script.direct
    script.bills, script.direct, took = {True: Bill(len), False: Bill(len)}, True, []
    for url in (provider, gateway):
        with talk.client._client.stream("POST", f"{url}/v1/{path}", json=body) as answer:
            parts = answer.iter_raw()
            next(parts)
            took.append(perf_counter() - script.first)
            for _ in parts:
                pass
    script.bills, script.direct = bills, direct
    return (took[1] - took[0]) * 1_000


def _p50_p99(values: list[float]) -> list[float]:
    if len(values) < 2:
        return [0.0, 0.0]
    cuts = quantiles(values, n=100, method="inclusive")
    return [round(cuts[49], 2), round(cuts[98], 2)]


@contextmanager
def _serving(upstream: str, window: int, preset: str) -> Iterator[str]:
    """Run the gateway as a process, and give its address."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "memci", "serve", f"{folder}/agents.db", "--upstream", upstream]
        command += ["--port", "0", "--window", str(window), "--preset", preset]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            yield process.stderr.readline().split()[1]
        finally:
            process.terminate()
            process.communicate()


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gateway", description="Measure the gateway.")
    parser.add_argument("--window", type=int, default=32_000, help="in tokens")
    parser.add_argument("--calls", type=int, default=200, help="calls of the client")
    parser.add_argument("--presets", type=lambda text: tuple(text.split(",")), default=("balanced", "economy"))
    parser.add_argument("--formats", type=lambda text: tuple(text.split(",")), default=FORMATS)
    parser.add_argument("--quick", action="store_true", help="30 calls; not kept")
    parser.add_argument("--results", type=Path, default=HERE, help="where figures are kept")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
