"""Replays: a conversation through a context, each rendering compared with the one before and billed.

    append_turn ─▶ render ─▶ compare, bill        a model call each
    ── pause ──    the provider has forgotten the prompt, if the cache expires; the context knows, if it has a clock

Every call of the conversation counts, those that fill the window first among them: an agent pays for them, too. This
module knows nothing of how renderings are compared.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from statistics import fmean
from typing import Any, NamedTuple

from memci import CachePricing, Context, EphemeralStorage, Policy
from memci.history.events import Event
from memci.settings import Preset
from memci.tokens import counter_for

from ..conversation import Conversation
from .evidence import Evidence
from .prefix import BILLINGS, Prefixes

PRESETS: tuple[Preset, ...] = ("balanced", "economy", "verbatim", "original")
PAUSE = timedelta(hours=1)
CALL = timedelta(seconds=5)


class Cell(NamedTuple):
    """What is replayed, but for the conversation."""

    window: int
    preset: Preset
    billing: str = "marked"
    """one of `BILLINGS`"""
    expires: bool = False
    """whether the provider forgets the prompt in each pause"""
    clock: bool = True
    """whether the context is told the time"""


def replay(
    conversation: Conversation,
    cell: Cell,
    *,
    calls: int | None = None,
    reply: int | None = 0,
    played: Callable[[int], object] = lambda _calls: None,
) -> dict[str, Any]:
    """Play *calls* calls at most, and return what they cost, what was kept, and where the evidence was.

    Args:
        reply: Tokens kept free for the answer; 0 makes the window the budget.
        played: Called with the number of calls played, now and then.
    """
    billing = BILLINGS[cell.billing]
    compactions = [0]
    now = datetime(2026, 1, 1, tzinfo=UTC)

    def noticed(event: Event) -> None:
        compactions[0] += event.kind == "compaction"

    context = Context.open(
        EphemeralStorage(),
        id="bench",
        system=conversation.system,
        window=cell.window,
        policy=Policy(
            preset=cell.preset,
            pricing=CachePricing(
                read=billing.read, write=billing.write, minimum=billing.minimum, granularity=billing.step
            ),
        ),
        reply=reply,
        clock=None,
        on_event=noticed,
    )
    prefixes, evidence = Prefixes(counter_for(), billing.marked), Evidence(conversation.system)
    seen: list[tuple[int, int]] = []
    rendering: list[Any] = []
    for number, (paused, turn) in enumerate(conversation.calls()):
        if number == calls:
            break
        if rendering and turn[0]["role"] == "assistant":
            evidence.needed(turn[0], rendering, len(context._parts.window.front))
        evidence.said(turn, paused=paused)
        now += PAUSE if paused else CALL
        context.append_turn(*turn, at=now if cell.clock else None)
        rendering = context.render(strict=False)
        seen.append(prefixes.compare(rendering, forgotten=paused and cell.expires))
        played(number + 1)
    report = context.report()
    context.close()
    kept, total = (sum(each[part] for each in seen) for part in (0, 1))
    return {
        "conversation": conversation.name,
        **cell._asdict(),
        "reply": reply,
        "calls": len(seen),
        "compactions": compactions[0],
        "cost": round(fmean(billing.price(*each) for each in seen)),
        "kept": round(kept / total, 4),
        "mean_tokens": round(total / len(seen)),
        "highest_tokens": max(total for _, total in seen),
        "over": sum(total > cell.window for _, total in seen),
        "evidence": evidence.shares(),
        "uses": report.use._asdict(),
    }
