"""What the gate saves, and what later calls miss, by kind of output.

    python -m benchmarks.gate --gates 800,1500 --half 0

For each result of a tool above the gate: its tokens, those of its digest, and of the identifiers that a later call of
the same run names and the result has, how many the digest shows in a piece, names in a mark, or lacks, unless another
message before the call has them. Odd and even runs are two halves: choose on one, confirm on the other.
"""

import argparse
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from memci.segments.gate import digest_spans, show_digest
from memci.text.digest import kind_of
from memci.text.language.identifiers import identifiers, needed
from memci.tokens import counter_for

from . import conversation as recorded
from .conversation import Message, texts

NAMES = ("terminal", "repair", "coding", "airline")
_ENTRY = re.compile(
    r"\s*[-dlcbps][rwxsStT-]{9}\s|\s*(?:[\w.@+-]*/)+[\w.@+ -]*(?::\d+)?(?:[:(]|\s|$)|\s*[\w@+-]+\.\w{1,5}\s*$"
)
_CELLS = re.compile(r"\t|\s\|\s|\||,|;|\s{2,}")
_COUNTED = ("results", "tokens", "digest", "needs", "named", "lost")


def runs(name: str) -> list[Sequence[Message]]:
    """Return the runs of the recorded conversation *name*, none if it is not here."""
    whole: recorded.Conversation | None = getattr(recorded, name)()
    if whole is None:
        return []
    return [whole.messages[a:b] for a, b in pairwise(sorted({*whole.starts, 0, len(whole.messages)}))]


def finer_kind(text: str) -> str:
    """Return the kind of *text*; of one without a kind of its own, whether it is a listing, a table or a log."""
    kind = kind_of(text)
    if kind != "text":
        return kind
    lines = [line[:400] for line in text.split("\n") if line.strip()]
    seen = lines[:: max(1, len(lines) // 60)]
    if sum(_ENTRY.match(line) is not None for line in seen) > 0.5 * len(seen):
        return "listing"
    ((cut, often),) = Counter(len(_CELLS.findall(line)) for line in seen).most_common(1) or [(0, 0)]
    if cut > 1 and len(seen) > 3 and often > 0.6 * len(seen):
        return "table"
    repeated = len({re.sub(r"\d+|\b[0-9a-f]{8,}\b", "0", line.strip()) for line in lines[:400]})
    return "log" if repeated < 0.7 * len(lines[:400]) else "text"


def measure(run: Sequence[Message], gate: int, found: dict[str, Counter[str]]) -> None:
    """Add to *found*, by kind, what a *gate* does to the results of *run*."""
    count = counter_for()
    calls: dict[str, Message] = {}
    before: list[str] = []
    gated: list[tuple[int, str, Message, tuple[int, ...]]] = []
    for at, message in enumerate(run):
        for call in message.get("tool_calls") or ():
            for word in set(needed(call["function"]["arguments"])) - {""}:
                _look(word, before, gated, found)
            calls[call["id"]] = call
        before.append("\n".join(texts(message)))
        if message["role"] == "tool" and message["tool_call_id"] in calls and count(before[-1]) > gate:
            told = [each for each in run[:at] if each["role"] == "user"]
            spans = digest_spans(message, gate, calls[message["tool_call_id"]], told, count)
            if spans is not None:
                kind = finer_kind(before[-1])
                gated.append((at, kind, message, spans))
                digest = show_digest(message, spans, 1, at + 1)["content"]
                found[kind].update(results=1, tokens=count(before[-1]), digest=count(digest))


def _look(
    word: str,
    before: Sequence[str],
    gated: Sequence[tuple[int, str, Message, tuple[int, ...]]],
    found: dict[str, Counter[str]],
) -> None:
    """Count whether *word*, which a call names, is shown by the digests of the results that have it."""
    holders = [each for each in gated if word in before[each[0]]]
    places = {each[0] for each in holders}
    elsewhere = any(word in text for at, text in enumerate(before) if at not in places)
    for _, kind, message, spans in holders if identifiers(word) else ():
        text = message["content"]
        pairs = [*zip(spans[::2], spans[1::2], strict=True)]
        shown = elsewhere or any(word in text[a:b] for a, b in pairs if a >= 0)
        named = not shown and any(word in text[~a:b] for a, b in pairs if a < 0)
        found[kind].update(needs=1, named=named, lost=not (shown or named))


def _rows(found: dict[str, Counter[str]]) -> Iterator[str]:
    for kind, counts in sorted(found.items()):
        yield f"| {kind} | " + " | ".join(f"{counts[name]:,}" for name in _COUNTED) + " |"


def main() -> None:
    """Print a table for each conversation and gate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gates", default="800")
    parser.add_argument("--half", type=int, choices=(0, 1))
    asked = parser.parse_args()
    for name in NAMES:
        chosen = runs(name)[asked.half :: 2] if asked.half is not None else runs(name)
        for gate in map(int, asked.gates.split(",")):
            found: dict[str, Counter[str]] = defaultdict(Counter)
            for run in chosen:
                measure(run, gate, found)
            if found:
                print(f"{name}, gate {gate}, {len(chosen)} runs\n| kind | {' | '.join(_COUNTED)} |")
                print("\n".join(_rows(found)))


if __name__ == "__main__":
    main()
