"""Spending: the calls and tokens of a memory's model for each turn of a conversation, by step.

    dialogue ──▶ a real context, flushed every few turns ──▶ report().work.spent ──▶ per turn

This module knows nothing of what the answers are worth.
"""

import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from memci import Context

from ..conversation import Message
from .standin import StandIn

_WINDOW = 2_000
"""tokens: few, so that most pages leave the window and pass through all tiers"""
_FLUSHED = 5
"""turns"""
_ASKED = 4
"""turns after which something is searched, so that episodes are used"""
Turn = tuple[str | None, Sequence[Message]]
"""its time (ISO 8601), and its messages"""


def spent(dialogues: Sequence[Sequence[Turn]], played: Callable[[int], object] = lambda _: None) -> dict[str, Any]:
    """Return calls and tokens for each turn of *dialogues*, by step and in all."""
    calls: Counter[str] = Counter()
    prompts: Counter[str] = Counter()
    completions: Counter[str] = Counter()
    turns = rejected = waiting = 0
    for dialogue in dialogues:
        with tempfile.TemporaryDirectory() as folder, _context(Path(folder) / "a.db") as context:
            for number, (at, messages) in enumerate(dialogue, 1):
                context.append_turn(*messages, at=at)
                if number % _ASKED == 0:
                    context.search_memory(str(messages[0]["content"])[:200] or "what was said", k=5)
                if number % _FLUSHED == 0:
                    context.flush()
                turns += 1
                played(turns)
            context.flush()
            work = context.report().work
            assert work is not None, "the context has a model"
            waiting += work.waiting + work.set_aside
            for step, each in work.spent.items():
                calls[step] += each.calls
                prompts[step] += each.prompt
                completions[step] += each.completion
                rejected += each.rejected
    steps = {
        step: {
            "calls": round(calls[step] / turns, 3),
            "prompt": round(prompts[step] / turns, 1),
            "completion": round(completions[step] / turns, 1),
        }
        for step in sorted(calls, key=lambda step: -calls[step])
    }
    return {
        "turns": turns,
        "calls": round(sum(calls.values()) / turns, 2),
        "tokens": round((sum(prompts.values()) + sum(completions.values())) / turns, 1),
        "steps": steps,
        "rejected": rejected,
        "left": waiting,
    }


def _context(path: Path) -> Context:
    return Context.open(path, id="a", system="You remember.", window=_WINDOW, chat=StandIn())
