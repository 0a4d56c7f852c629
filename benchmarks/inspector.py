"""The inspector beside the library: whether it shows the numbers that the context itself counted, turn by turn.

    python -m benchmarks.inspector --turns 1000 --window 8000 --preset economy

Each set of recorded conversations is played through a context on SQLite with tools and usage of an odd provider, with
recalls, pins, messages taken back. A turn is what happens between two model calls. What `Context.report` says after
each is compared with what the inspector then says of it; and what it said at the close of each interaction, with what
the inspector says of that interaction at the end. Every difference is printed, and counted.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import fields
from itertools import islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from memci import BudgetExceeded, Context, Policy, SQLiteStorage
from memci.context.report import Report
from memci.memory import NullMemory
from memci.serve.inspector.inspected import InspectedContext
from memci.serve.inspector.past_request import past_request
from memci.serve.inspector.timeline import TURNS, window_sizes
from memci.serve.inspector.views import Views

from . import conversation as recorded
from .conversation import Conversation, Message, folder
from .recall.tasks import meetings, notes, people

OF_THE_HANDLE = {"cached_last", "cached", "spent", "money", "warnings", "work", "set_aside"}
"""fields of a report that its handle measured since it was opened: another handle can't know them"""
SHOWN = 8
"""differences of a kind that are printed"""
TOOLS = [{"type": "function", "function": {"name": "look_up", "description": "Look a booking up. " * 9}}]
NOTED: Message = {"role": "assistant", "content": "Noted."}
"""the answer to people who talk with one another, or tell what is so"""
Parts = dict[str, int]


def sets() -> Iterator[Conversation]:
    """Yield all recorded conversations, those of a set end to end, and a made-up one."""
    known = (recorded.airline, recorded.dialogues, recorded.chats, recorded.coding, recorded.terminal, recorded.repair)
    yield from (found for each in known if (found := each()) is not None)
    for name, talks in ("realtalk", people()), ("qmsum", meetings()), ("bfcl", notes()):
        if talks:
            said = (line.message for talk in talks for line in talk.lines)
            yield Conversation(name, "You take notes.", tuple(each for message in said for each in (message, NOTED)))
    path = folder()
    if path is not None and (file := path / "madial" / "zh-dialogue.json").is_file():
        yield Conversation("madial", "你是一位朋友。", tuple(_chinese(file)))
    yield recorded.synthetic()


def _chinese(file: Path) -> Iterator[Message]:
    for line in file.read_text(encoding="utf-8").splitlines():
        for said in json.loads(line)["dialogue"] if line.strip() else ():
            who, _, text = said.strip().partition(">:")
            if text:
                yield {"role": "assistant" if who == "<Assistant" else "user", "content": text.strip('"')}


class Unused:
    """A memory that finds nothing, but whose tool is offered, as that of a usual program."""

    def __getattr__(self, name: str) -> Any:
        return getattr(NullMemory(), name)


class Comparison:
    """What the inspector says of one context, beside what the context says."""

    def __init__(self, storage: SQLiteStorage, context: Context) -> None:
        self._views, self._context = Views(storage, turns=10**6), context
        self._storage = storage
        self.compared = 0
        self.different: Counter[str] = Counter()
        self._closed: dict[int, Report] = {}

    def now(self, *, whole: bool) -> None:
        """Compare the size that is shown now; *whole*: also the report, the request, the calls and the pages."""
        report = self._context.report()
        self._closed[report.turn] = report
        inspected = InspectedContext(self._storage, self._context.id)
        at = f"turn {report.turn}, message {report.messages}"
        for size in window_sizes(inspected, report.turn, report.turn):  # none if its only page was taken back
            self.compare("picture now", at, _parts_of(size), _parts(report))
        if whole:
            shown = Views(self._storage, only=inspected, turns=3).window({"id": self._context.id}).values
            for field in fields(Report):
                if field.name not in OF_THE_HANDLE:
                    name = field.name
                    self.compare(f"now {name}", at, getattr(shown["report"], name), getattr(report, name))
            self.compare("budget", at, shown["budget"], report.budget)
            self._request(inspected, report, at)
            self._lists(report, at)

    def end(self) -> None:
        """Compare what is shown of every interaction with what was said at its close."""
        inspected = InspectedContext(self._storage, self._context.id)
        sizes = self._views.window({"id": self._context.id}).values["sizes"]
        self.compare("turns", "end", {size.turn for size, _ in sizes} - self._closed.keys(), set())
        made = 0
        for size, _ in sizes:
            made += size.compactions
            report = self._closed.get(size.turn)
            if report is not None:
                self.compare("picture", f"turn {size.turn}", _parts_of(size), _parts(report))
                self.compare("compactions", f"turn {size.turn}", made, report.compactions)
        for turn in sorted(self._closed)[:: max(1, len(self._closed) // 100)]:
            self._request(inspected, self._closed[turn], f"turn {turn}")

    def _request(self, inspected: InspectedContext, report: Report, at: str) -> None:
        for form in ("openai_chat", "anthropic"):
            found = past_request(inspected, report.turn, form)
            self.compare(f"request as {form}", at, sum(found.tokens), report.total)

    def _lists(self, report: Report, at: str) -> None:
        query = {"id": self._context.id}
        costs = self._views.costs(query).values
        calls = self._context.calls(limit=100_000)
        for (each, _), call in zip(costs["calls"], calls[-TURNS:], strict=True):
            self.compare("call", at, each, call)
        self.compare("sum of calls", at, costs["report"].cost, report.cost)
        for size in costs["closed"].values():
            if size.turn in self._closed:
                self.compare("close of a call's turn", f"turn {size.turn}", size.total, self._closed[size.turn].total)
        [row] = self._views.conversations({"q": self._context.id}).values["rows"]
        counts = row["messages"], row["pages"], row["compactions"], row["turns"]
        self.compare(
            "list", at, counts, (report.messages, sum(report.pages.values()), report.compactions, report.turn + 1)
        )
        pages = list(self._context.pages())
        self.compare(
            "pages", at, dict(Counter(page.where for page in pages)), {k: n for k, n in report.pages.items() if n}
        )
        for info in pages[-1:] + pages[len(pages) // 2 :][:1]:
            shown = self._views.page({**query, "n": str(info.index)}).values
            self.compare("page", f"{at}, page {info.index}", shown["page"], info)

    def compare(self, what: str, at: str, shown: object, counted: object) -> None:
        """Count, and print, a difference of *what* is *shown* from what was *counted*."""
        self.compared += 1
        if shown != counted:
            self.different[what] += 1
            if self.different[what] <= SHOWN:
                print(f"  {what}, {at}:\n    shown   {shown!s:.400}\n    counted {counted!s:.400}", flush=True)


def _parts(report: Report) -> Parts:
    tokens = report.tokens
    fixed = sum(tokens.get(part, 0) for part in ("system", "segments", "tools", "framing"))
    return {"system": fixed, **{part: tokens[part] for part in ("contents", "active", "open")}, "total": report.total}


def _parts_of(size: Any) -> Parts:
    return {part: getattr(size, part) for part in ("system", "contents", "active", "open", "total")}


def play(chosen: Conversation, turns: int, window: int, preset: Any, every: int) -> Comparison:
    """Play *turns* of the conversation *chosen*, and compare; the request and the lists after each of *every* turns."""
    random = Random(chosen.name)
    with TemporaryDirectory() as made, closing(SQLiteStorage(str(Path(made, "desk.db")))) as storage:
        options: dict[str, Any] = {
            "memory": Unused(),
            "window": window,
            "policy": Policy(preset=preset),
            "model": "gpt-5",
        }
        with Context.open(storage, "desk", owner="desk", system=chosen.system, **options) as context:
            compared = Comparison(storage, context)
            for number, turn in enumerate(islice(chosen.turns(), turns)):
                for message in turn:
                    answer = message["role"] == "assistant"
                    if answer:
                        _render(context)
                    context.append_turn(message, usage=_usage(random, context.report()) if answer else None)
                    compared.now(whole=answer and number % every == every - 1)
                if _act(context, random):
                    compared.now(whole=False)
            compared.end()
    return compared


def _usage(random: Random, report: Report) -> dict[str, Any]:
    """Return what a provider might report of the request of *report*: it counts a little more."""
    told = int(report.total * random.uniform(1.0, 1.1))
    cached = {"cached_tokens": int(told * report.cached_last)}
    return {"prompt_tokens": told, "completion_tokens": random.randint(5, 300), "prompt_tokens_details": cached}


def _render(context: Context) -> None:
    """Render; what is pinned is let go if nothing else fits beside it."""
    try:
        context.render(tools=TOOLS, strict=False)
    except BudgetExceeded:
        for page in context.pages():
            if page.pinned:
                context.unpin(page.index)
        context.render(tools=TOOLS, strict=False)


def _act(context: Context, random: Random) -> bool:
    """Sometimes do what programs do beside talking, and return whether it was done."""
    last = context.report().turn
    drawn = random.random()
    if not last or drawn >= 0.14:
        return False
    there = [page.index for page in context.pages() if page.where != "undone"]
    with suppress(BudgetExceeded):  # too much is pinned already
        if drawn < 0.1:
            context.recall_page(random.choice(there))
        elif drawn < 0.12:
            context.pin(random.choice(there))
        elif drawn < 0.13:
            context.archive()
        else:
            context.undo()
    return True


def main(arguments: Sequence[str] | None = None) -> None:
    """Print per set how many numbers were compared, and how many differ."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--turns", type=int, default=1_000, help="turns of each set (default: 1,000)")
    parser.add_argument("--every", type=int, default=20, help="requests and lists after so many (default: 20)")
    parser.add_argument("--window", type=int, default=8_000)
    parser.add_argument("--preset", default="balanced")
    parser.add_argument("--sets", default="", help="names, separated by commas (default: all)")
    options = parser.parse_args(arguments)
    chosen = [each for each in options.sets.split(",") if each]
    for each in sets():
        if not chosen or each.name in chosen:
            found = play(each, options.turns, options.window, options.preset, options.every)
            wrong = ", ".join(f"{count:,} of {what}" for what, count in found.different.items()) or "none"
            print(f"{each.name:10} {options.turns:,} turns, {found.compared:,} numbers, different: {wrong}", flush=True)


if __name__ == "__main__":
    main()
