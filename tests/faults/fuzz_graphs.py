"""Tool calls and results in any order: twice, never, before their calls, under the ids of others.

    user · assistant (c1, c1, c2) · tool c2 · tool c9 · user · tool c1    ──▶  refused: no call c9

What is taken has to be kept exactly, and shown as three providers accept it. This module knows nothing of how a context
pairs them.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from memci import Context, EphemeralStorage
from memci.errors import BudgetExceeded, InvalidMessage, OpenToolGroup
from tests.machine import chat_grammars

from .fuzz_texts import opened, outcomes, said, text


def graphs(
    rng: Random, render: Callable[..., list[dict[str, Any]]] = Context.render, window: int | None = None
) -> str | None:
    """Whatever calls and results are appended: refused for a reason, or kept exactly and shown as providers accept."""
    context = opened(EphemeralStorage(), window or rng.choice((1_000, 1_400, 4_000)))
    kept: list[Any] = []
    made: set[str] = set()
    graph = _graph(rng)
    while graph:
        chunk = [graph.pop(0) for _ in range(min(len(graph), rng.randrange(1, 5)))]
        orphans = _orphans(chunk, made)
        try:
            context.append_turn(*chunk, opens_page=rng.random() < 0.8)
        except InvalidMessage as refusal:
            if not orphans:
                return f"{chunk!r:.600} behind {kept!r:.600} is refused: {refusal}"
            continue
        if orphans:
            return f"{chunk!r:.600} is taken, with results that no call asked for"
        kept += chunk
        made |= set(_ids(chunk))
        found = _shown(context, render)
        if found is not None:
            return f"{found} after {kept!r:.1500}"
    return None if list(context.messages()) == kept else f"{kept!r:.1500} is not what was kept"


def _shown(context: Context, render: Callable[..., list[dict[str, Any]]]) -> str | None:
    try:
        loose = render(context, strict=False)
    except BudgetExceeded as refusal:
        return f"{refusal}"
    waiting = _waiting(loose)
    try:
        strict = render(context)
    except OpenToolGroup as refusal:
        return None if waiting and refusal.missing else f"refused, but nothing waits: {refusal}"
    if waiting:
        return f"{waiting} wait for results in what is shown"
    outcomes["graphs: renderings"] += 1
    if strict != loose:
        return "strict and not are two renderings"
    found = chat_grammars.problems(strict)
    return found[0] if found else None


def _waiting(shown: Sequence[dict[str, Any]]) -> list[str]:
    waiting: list[str] = []
    for message in shown:
        if message["role"] == "tool":
            if message["tool_call_id"] in waiting:
                waiting.remove(message["tool_call_id"])
        elif not str(message.get("content")).startswith("<memci:late-result "):
            waiting = [call["id"] for call in message.get("tool_calls") or []]
    return waiting


def _ids(chunk: Sequence[dict[str, Any]]) -> Iterator[str]:
    return (call["id"] for message in chunk for call in message.get("tool_calls") or [])


def _orphans(chunk: Sequence[dict[str, Any]], made: set[str]) -> bool:
    known = set(made)
    for message in chunk:
        if message["role"] == "tool" and message["tool_call_id"] not in known:
            return True
        known |= set(_ids([message]))
    return False


def _graph(rng: Random) -> list[dict[str, Any]]:
    names = ["c1", "c2", "c3", "", "c1~2", text(rng, 2)]
    graph: list[dict[str, Any]] = []
    for _ in range(rng.randrange(1, 6)):
        graph += [said(rng, "user")] * (rng.random() < 0.7)
        calls = [rng.choice(names) for _ in range(rng.randrange(5))]
        results = [
            {"role": "tool", "tool_call_id": each if rng.random() < 0.9 else rng.choice(names), **_content(rng)}
            for each in calls
            if rng.random() < 0.9
        ]
        results += results[:1] * (rng.random() < 0.1)
        if rng.random() < 0.5:
            rng.shuffle(results)
        if calls:
            asked = [
                {
                    "id": each,
                    "type": "function",
                    "function": {"name": "find", "arguments": json.dumps({"q": text(rng, 4)[:99]})},
                }
                for each in calls
            ]
            graph.append({"role": "assistant", "content": rng.choice((None, text(rng, 5))), "tool_calls": asked})
        graph += results
        graph += [said(rng, "assistant")] * (rng.random() < 0.6)
    if rng.random() < 0.2:
        graph.insert(rng.randrange(len(graph) + 1), graph.pop(rng.randrange(len(graph)))) if graph else None
    return graph


def _content(rng: Random) -> dict[str, Any]:
    return {"content": text(rng, 10) * (rng.randrange(1, 80) if rng.random() < 0.1 else 1)}
