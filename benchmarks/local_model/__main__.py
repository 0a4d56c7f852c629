"""Drive every step of memci with a small model over a real server: `make local-model`.

    28 turns    plain appends, while the model describes pages, names topics, learns, relates, sums up
    10 turns    a companion: analysis, tools and answers, half of them streamed
     2 turns    a model that calls tools by the text protocol ATTP

The model is far too small for these prompts. So this shows nothing of quality: it shows what a real server does, and
that bad answers harm nothing. The run fails if a text of a prompt lands in the memory, if a step was not reached, if a
message or an extracted line differs from those of a context without a model, or if an append waited for the model.
This module knows nothing of how the server runs.
"""

import argparse
import json
import re
import sqlite3
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from memci import Context, Policy, SQLiteStorage
from memci.companion import Companion
from memci.errors import ModelError
from memci.llm import Call, Chat
from memci.llm.usage import Spent
from memci.memory.consolidation.prompts import days, episodes, facts, pages, strategy
from memci.memory.tiered_memory import TieredMemory
from memci.memory.tiers.rules import Rules
from memci.text.language.salience import ids
from memci.tools import attp

from ..results import CONSOLE, HERE, headline, keep, record, table
from .server import MODEL, serving

STEPS = ("page", "topics", "analysis", "concepts", "day", "conversation", "strategy")
PROMPTS = (
    pages.PROMPT,
    episodes.THEMES_PROMPT,
    facts.FACTS_PROMPT,
    facts.RELATIONS_PROMPT,
    days.DAY_PROMPT,
    days.CONVERSATION_PROMPT,
    strategy.PROMPT,
)
SLOWEST_SECONDS = 0.5
"""of an append: a call of the model takes seconds"""
_SAMPLING = {"repeat_penalty": 1.15, "repeat_last_n": 256}
"""else it says one thing over and over, up to the bound"""
_RULES = Rules(capacity=3, batch=3, promoted=0.5, accesses=2)
"""so that every step is due within few turns"""
_BEGAN = datetime(2026, 3, 2, 9, tzinfo=UTC)
_SUBJECTS = (
    ("the flight to Oslo", "Anna", "booking OI5L9G", "moved to May 27"),
    ("the dog Bello", "Dr. Weber", "invoice V-2210", "paid with 84 euros"),
    ("the new kitchen", "Mr. Lindqvist", "offer K7731", "delivered in week 14"),
    ("the marathon in June", "coach Mira", "start number 4411", "reached in 4 hours"),
)
_WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
_CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
_PAST_CALL = (
    {"role": "assistant", "content": None, "tool_calls": [_CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "12 degrees, rain"},
    {"role": "assistant", "content": "It rains in Oslo."},
)


def main(arguments: list[str] | None = None) -> int:
    """Run it, print and keep the figures, and return the number of checks that failed."""
    options = _options(arguments)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        address = stack.enter_context(serving(options.threads))
        figures = _Run(Path(name), address, options, stack).figures()
    figures["seconds"] = round(time.perf_counter() - began)
    given = {"turns": options.turns, "tokens": options.tokens, "threads": options.threads, "model": MODEL}
    result = record(given, figures)
    keep(result, log=options.results / "local_model.jsonl" if options.keep else None, file=None)
    _show(result)
    return sum(not held for held in figures["checks"].values())


class _Run:
    """One run: a context that only appends, beside one without a model; one of a companion; one for ATTP."""

    def __init__(self, folder: Path, address: str, options: argparse.Namespace, stack: ExitStack) -> None:
        self._options = options
        self._calls: list[Call] = []
        self._memory_chat, self._chat = (
            Chat(MODEL, base_url=address, max_tokens=options.tokens, extra=_SAMPLING, on_call=self._called)
            for _ in range(2)
        )
        self._file = folder / "a.db"
        self._store = stack.enter_context(closing(SQLiteStorage(self._file, durability="fast")))
        memory = TieredMemory(self._store, owner="ada", rules=_RULES, chat=self._memory_chat)
        self._memory = memory
        opened = {"owner": "ada", "memory": memory, "system": "You are a kind assistant."}
        # pages of the first one leave its contents page, and enter the tiers
        policies = {"past": Policy(never_recalled=1), "main": None}
        self._kept = [
            Context.open(self._store, id=id_, window=32_000, policy=policy, **opened)
            for id_, policy in policies.items()
        ]
        self._talk = Context.open(self._store, id="talk", window=4_000, **opened)
        plain = stack.enter_context(closing(SQLiteStorage(folder / "b.db", durability="fast")))
        self._plain = [
            stack.enter_context(Context.open(plain, id=id_, window=32_000, policy=policy, system=opened["system"]))
            for id_, policy in policies.items()
        ]
        self._appends: list[float] = []
        self._attp: Counter[str] = Counter()
        self._pieces = 0
        self._answers: Counter[str] = Counter()
        self._forged = 0

    def figures(self) -> dict[str, Any]:
        """Play all turns, wait for the jobs of the model, and return what became of them."""
        until = time.monotonic() + 60 * self._options.minutes
        companion = Companion(self._talk, self._chat, tools=[_WEATHER], functions={"weather": lambda **_: "12 °C"})
        self._talk.append_turn("What is the weather in Oslo?", *_PAST_CALL, at=_BEGAN)
        for number, (at, asked, told) in enumerate(_turns(self._options.turns)):
            kind = ("respond", "stream")[number // 4 % 2] if number % 4 == 3 else "append"
            kind = "attp" if number % 20 == 19 else kind
            if kind == "append":
                self._appended(at, asked, told)
            elif kind == "attp":
                self._protocol(asked, at)
            else:
                self._answered(companion, kind, asked, at)
            self._talk.search_memory(asked, k=3)
            CONSOLE.print(f"turn {number + 1}: {kind}, {len(self._calls)} calls so far", highlight=False)
        worker = threading.Thread(target=self._flushed, daemon=True)
        worker.start()
        worker.join(max(1.0, until - time.monotonic()))
        work = self._talk.report().work
        assert work is not None, "the memory has a model"
        found = self._found(work.spent)
        began = time.perf_counter()
        for each in (*self._kept, self._talk):
            each.close()
        self._memory.close()
        found["close_seconds"] = round(time.perf_counter() - began, 3)
        found["waiting"], found["set_aside"] = work.waiting, work.set_aside
        return found

    def _flushed(self) -> None:
        for each in (*self._kept, self._talk) * 2:
            each.flush()
            for what, who, *_ in _SUBJECTS:  # what is found becomes hot
                self._talk.search_memory(f"{what} {who}", k=8)

    def _called(self, call: Call) -> None:
        self._calls.append(call)
        how = call.error or call.finish
        CONSOLE.print(f"  {call.step}: {call.seconds:.1f} s, {call.usage.completion} tokens, {how}", highlight=False)

    def _appended(self, at: datetime, asked: str, told: str) -> None:
        done = {"role": "tool", "tool_call_id": "c1", "content": f"found: {told}"}
        messages = (
            [{"role": "user", "content": asked}, _PAST_CALL[0]]
            if len(self._appends) % 2 == 0
            else [done, {"role": "assistant", "content": told}]
        )
        which = int(len(self._appends) >= 2 * round(self._options.turns * 0.175))
        ours, plain = self._kept[which], self._plain[which]
        began = time.perf_counter()
        ours.append_turn(*messages, at=at)
        ours.render(strict=False)
        self._appends.append(time.perf_counter() - began)
        plain.append_turn(*messages, at=at)
        if len(self._appends) % 2 == 0:
            ours.archive(keep=0)
            plain.archive(keep=0)

    def _answered(self, companion: Companion, kind: str, asked: str, at: datetime) -> None:
        try:
            if kind == "stream":
                with companion.stream(asked, at=at) as stream:
                    seen = list(stream)
                self._pieces += len(seen)
                text = "".join(seen)
            else:
                text = companion.respond(asked, at=at).text
        except ModelError as error:
            self._answers[f"{kind}: {type(error).__name__}"] += 1
        else:
            self._answers[kind] += 1
            self._forged += len(re.findall(r"<\s*/?\s*memci", text))

    def _protocol(self, asked: str, at: datetime) -> None:
        tools = self._talk.functions
        messages = [{"role": "system", "content": attp.describe(tools)}, {"role": "user", "content": asked}]
        for _ in range(3):
            try:
                text = self._chat(messages, step="attp").text
            except ModelError as error:
                self._attp[type(error).__name__] += 1
                return
            reply = attp.parse(text)
            self._attp["final" if reply.final else "call"] += 1
            messages.append({"role": "assistant", "content": text})
            if reply.final:
                break
            messages.append({"role": "user", "content": attp.run(reply, tools)})
        self._talk.append_turn(*messages[1:2], {"role": "assistant", "content": text or "…"}, at=at)

    def _found(self, spent: Mapping[str, Spent]) -> dict[str, Any]:
        """Compare what is stored with what was said, and return the figures and the checks."""
        pairs = [*zip(self._kept, self._plain, strict=True)]
        same = all([*ours.messages()] == [*plain.messages()] for ours, plain in pairs)
        noted = {
            (each.id, index)
            for each in self._kept
            for index in self._memory.summaries(each.id, [page.index for page in each.pages()])
        }
        ours, theirs = (
            {key: block for each in side for key, block in _blocks(each).items()} for side in (self._kept, self._plain)
        )
        unharmed = any(ours) and all(
            all(piece in "\n".join(ours[key]) for line in theirs[key] for piece in ids(line))
            if key in noted
            else ours[key] == theirs[key]
            for key in ours.keys() & theirs.keys()
        )
        landed = _landed(self._file)
        steps = {name: _shares(each) for name, each in sorted(spent.items())}
        theirs_too = {f"companion: {name}": _shares(each) for name, each in self._chat.ledger.steps.items()}
        tokens = sum(call.usage.completion for call in self._calls)
        return {
            "steps": steps | theirs_too,
            "attp": dict(self._attp),
            "answers": dict(self._answers),
            "pieces": self._pieces,
            "tokens_a_second": round(tokens / max(1.0, sum(call.seconds for call in self._calls)), 1),
            "append_ms": {"median": _ms(self._appends, 0.5), "largest": _ms(self._appends, 1.0)},
            "pages": {"in the contents": len(ours), "described by the model": len(noted)},
            "failures": dict(Counter(call.error for call in self._calls if call.error)),
            "checks": {
                "no text of a prompt landed": not landed,
                "every step was reached": set(STEPS) <= spent.keys()
                and {"analysis", "chat"} <= {name.removeprefix("companion: ") for name in theirs_too},
                "ATTP and streams were used": bool(self._attp) and self._pieces > 0,
                "all messages are unharmed": same,
                "all extracted lines are unharmed": unharmed,
                "no append waited": max(self._appends) < SLOWEST_SECONDS,
                "no frame was imitated": self._forged == 0,
            },
        } | ({"landed": landed} if landed else {})


def _turns(count: int) -> Iterator[tuple[datetime, str, str]]:
    """Yield turns: when it was, a question and an answer, long enough to need a line of their own."""
    at = _BEGAN
    for number in range(count):
        what, who, record_, done = _SUBJECTS[number // 5 % len(_SUBJECTS)]
        at += timedelta(hours=14 if number and number % 8 == 0 else 0, minutes=20)
        asked = (
            f"About {what}: could you look at {record_}-{number} for me once more, please? I talked to {who} "
            f"yesterday, and I would like to know what it costs, {120 + number}.50 euros or more, and whether it can "
            f"be {done}."
        )
        told = (
            f"Of course. I looked at {record_}-{number}: {who} has confirmed it, it costs {120 + number}.50 euros, "
            f"and it can be {done}. I wrote that down for {what}, and I will remind you two days before, so that "
            "nothing is missed."
        )
        yield at, asked, told


def _blocks(context: Context) -> dict[tuple[str, int], list[str]]:
    """Return the lines of each page of the contents, after everything that can leave the window has left it."""
    context.archive(keep=0)
    text = "\n".join(
        str(message["content"]) for message in context.render(strict=False) if message["role"] != "assistant"
    )
    found: dict[tuple[str, int], list[str]] = {}
    blocks = re.findall(r"<memci:contents [^>]*>\n(.*?)\n</memci:contents", text, re.DOTALL)
    for line in "\n".join(blocks).splitlines():
        if head := re.match(r"#(\d+) ", line):
            found[context.id, int(head[1])] = []
        if found:
            found[[*found][-1]].append(line)
    return found


def _landed(file: Path) -> list[str]:
    """Return the quotations of prompts that stand in what the memory keeps of a model's answers."""
    quoted = {each for prompt in PROMPTS for each in re.findall('"([^"]*)"', prompt) if each.count(" ") > 2}
    with closing(sqlite3.connect(file)) as rows:
        kept = _words("\n".join(str(body) for (body,) in rows.execute("SELECT body FROM memory_item")))
    return sorted(each for each in quoted if f" {_words(each)} " in f" {kept} ")


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _shares(spent: Spent) -> dict[str, Any]:
    usable = spent.calls - spent.failed - spent.rejected
    return {
        "calls": spent.calls,
        "usable": usable,
        "share": round(usable / max(1, spent.calls), 2),
        "prompt": spent.prompt,
        "completion": spent.completion,
    }


def _ms(seconds: Sequence[float], share: float) -> float:
    ordered = sorted(seconds)
    return round(1e3 * ordered[min(len(ordered) - 1, int(share * len(ordered)))], 1)


def _show(result: dict[str, Any]) -> None:
    figures = result["figures"]
    CONSOLE.print(f"\n{headline(result)}\n", highlight=False)
    rows = [
        (name, *(f"{each[key]:,}" for key in ("calls", "usable")), f"{each['share']:.0%}", f"{each['completion']:,}")
        for name, each in figures["steps"].items()
    ]
    note = f"{figures['seconds']} s; {figures['tokens_a_second']} tokens a second; appends: {figures['append_ms']} ms"
    table("answers of a model that is too small", ("step", "calls", "usable", "share", "tokens"), rows, note=note)
    CONSOLE.print(json.dumps({key: figures[key] for key in figures if key not in {"steps", "checks"}}), highlight=False)
    for name, held in figures["checks"].items():
        CONSOLE.print(f"{'held  ' if held else 'FAILED'} {name}", highlight=False)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.local_model", description="Bad answers, a real server.")
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--tokens", type=int, default=256, help="of an answer, at most (max_tokens)")
    parser.add_argument("--threads", type=int, default=1, help="of the server")
    parser.add_argument("--minutes", type=float, default=45, help="then jobs that wait are left")
    parser.add_argument("--keep", action="store_true", help="append the figures to results/local_model.jsonl")
    parser.add_argument("--results", type=Path, default=HERE)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
