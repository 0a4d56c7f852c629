"""Replays: a conversation through a context, each rendering compared with the one before.

    append_turn ─▶ render ─▶ compare        a model call each; whole cycles only, from a compaction to a compaction:
    |  filling  |  compaction … compaction … compaction  |  rest  |
                '────────── measured ──────────'

While a window fills for the first time nothing is ever lost, which says nothing of how the layout does: those turns are
left out, where there is a compaction. This module knows nothing of how renderings are compared.
"""

from collections.abc import Callable
from itertools import islice
from statistics import fmean
from typing import Any

from memci import Context, EphemeralStorage, Policy
from memci.history.events import Event
from memci.settings import Preset
from memci.tokens import counter_for

from ..conversation import Conversation
from .prefix import Prefixes, price

PRESETS: tuple[Preset, ...] = ("balanced", "economy", "verbatim", "original")


def replay(
    conversation: Conversation,
    *,
    window: int,
    preset: Preset,
    turns: int,
    reply: int | None = 0,
    played: Callable[[int], object] = lambda _turns: None,
) -> dict[str, Any]:
    """Play *turns* turns, and return the share that was kept, the cost per turn, and the size of a rendering.

    Args:
        reply: Tokens kept free for the answer; 0 makes the window the budget, as in the design's figures.
        played: Called with the number of turns played, now and then.
    """
    compactions = [0]

    def noticed(event: Event) -> None:
        compactions[0] += event.kind == "compaction"

    context = Context.open(
        EphemeralStorage(),
        id="bench",
        system=conversation.system,
        window=window,
        policy=Policy(preset=preset),
        reply=reply,
        on_event=noticed,
    )
    prefixes = Prefixes(counter_for())
    seen: list[tuple[int, int]] = []
    began: list[int] = []
    for number, turn in enumerate(islice(conversation.turns(varied=False), turns)):
        earlier = compactions[0]
        context.append_turn(*turn)
        rendering = context.render()
        if compactions[0] > earlier:
            began.append(number)
        seen.append(prefixes.compare(rendering))
        played(number + 1)
    report = context.report()
    context.close()
    measured = seen[began[0] : began[-1]] if len(began) > 1 else seen[1:]
    kept, total = (sum(each[part] for each in measured) for part in (0, 1))
    return {
        "conversation": conversation.name,
        "window": window,
        "preset": preset,
        "reply": reply,
        "turns": turns,
        "measured_turns": len(measured),
        "compactions": compactions[0],
        "hit": round(kept / total, 4),
        "mean_tokens": round(total / len(measured)),
        "highest_tokens": max(total for _, total in seen),
        "cost_per_turn": round(fmean(price(*each) for each in measured)),
        "cost_without_cache": round(total / len(measured)),
        "own_meter": round(report.cached, 4),
    }
