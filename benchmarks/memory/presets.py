"""Presets: a day of talk with the rules of each design, and what every tier holds in the end.

    300 exchanges between morning and evening, a search after every fifth    ──▶  memoryos · layers · events

A stand-in for a model answers each step. This module knows nothing of what a document says.
"""

from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from memci import Context, EphemeralStorage
from memci.memory import Rules, TieredMemory
from memci.memory.inspect import overview

from ..models.standin import StandIn
from .talks import Talks

PRESETS = ("memoryos", "layers", "events")
TURNS, ASKED = 300, 5
_BEGAN = datetime(2026, 1, 1, 7, tzinfo=UTC)


def held(preset: str, turns: int = TURNS, played: Callable[[int], None] = lambda _turn: None) -> dict[str, Any]:
    """Return what each tier holds after a day with the rules of *preset*."""
    now = [_BEGAN]
    talks = Talks()
    with closing(EphemeralStorage()) as store:
        rules = Rules(preset=preset)
        memory = TieredMemory(store, owner="you", rules=rules, chat=StandIn(), clock=lambda: now[0].timestamp())  # noqa: PLW0108 -- it changes
        left = []
        with Context.open(store, "day", owner="you", window=4_000, memory=memory) as context:
            for turn, (_, page) in enumerate(islice(talks.pages(), turns), start=1):
                now[0] += timedelta(minutes=3)
                context.append_turn(*page, at=now[0])
                context.render()
                if turn % ASKED == 0:
                    context.flush()
                    context.search_memory(talks.question(page))
                    left.append(overview(memory).counts.short)
                played(turn)
            context.end_session()
            context.flush()
            seen = overview(memory)
            facts = len(seen.user_facts), len(seen.assistant_facts)
            weights = [each.importance for each in seen.events]
            return {
                "queue, at most": max(left),
                "queue": seen.counts.short,
                "pages in episodes": seen.counts.mid,
                "episodes": seen.counts.episodes,
                "largest episode": max((each.length for each in seen.episodes), default=0),
                "chains": seen.counts.chains,
                "most accesses of one": max((each.access_count for each in seen.episodes), default=0),
                "facts of the user, of the assistant": f"{facts[0]}, {facts[1]}",
                "traits, profile version": f"{len(seen.profile.traits)}, {seen.profile.version}",
                "concepts": seen.counts.concepts,
                "events, least importance": f"{len(seen.events)}, {min(weights, default=0)}",
                "days": len(seen.days),
                "conversations": len(seen.profile.conversations),
                "turns, and those of the last strategy": f"{seen.profile.turns}, {seen.profile.strategy_turns}",
            }
