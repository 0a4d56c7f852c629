"""What 1,000 calls cost in dollars, at the prices of models of today: `python -m benchmarks.peers --money MODEL,…`.

    | system        | airline, 32,000: claude-… · gpt-… | terminal, 64,000: claude-… · gpt-… |
    | memci economy | 1.29 · 1.83 (1.00)                | …                                  |
    | full history  | over                              |                                    |

memci knows the prices, the cache's lifetime and the pauses, an hour before each run or session; a summary is written by
the same model. Tokens are counted with one vocabulary for all models, so a model's own count differs, for all systems
alike. Answers to the user are not in it: they cost the same whatever manages the context.
"""

from collections.abc import Callable, Sequence
from typing import Any

from memci.model_catalog import prices_source
from memci.settings import Preset

from ..cache.bills import terms
from ..cache.data import TASKS, Replay
from ..cache.manager import Manager, Setting, memci
from ..cache.prefix import billing_of
from ..cache.replay import play
from ..results import markdown
from .compare import OVER
from .frameworks.plain import PEERS

PRESETS: tuple[Preset, ...] = ("economy", "balanced")
_CALLS, _MILLION = 1_000, 1e6


def dollars(played: dict[str, Any], model: str) -> float | None:
    """Return what 1,000 calls of *played* cost at the prices of *model*; None if its requests exceed the window."""
    price = billing_of(model).input
    if price is None or played["over"] > OVER:
        return None
    name = terms(model, "expires")
    return _CALLS * (played["costs"][name] + played["recalls"][name] + played["own"]) * price / _MILLION


def priced(replay: Replay, window: int, models: Sequence[str]) -> list[dict[str, Any]]:
    """Return the dollars of each system that needs no framework, for each model, and the evidence that it shows."""
    makes = {f"memci {preset}": [memci(preset, model) for model in models] for preset in PRESETS}
    makes |= {name: [make] * len(models) for name, make in PEERS.items()}
    return [_row(name, models, replay, window, each) for name, each in makes.items()]


def _row(
    system: str, models: Sequence[str], replay: Replay, window: int, makes: Sequence[Callable[[Setting], Manager]]
) -> dict[str, Any]:
    """Return a row; where all of *makes* are the same, one play is billed at all prices."""
    once = len(set(makes)) == 1
    played = [
        play(replay, make, budget=window, billings=models if once else (model,))
        for make, model in zip(makes[:1] if once else makes, models, strict=False)
    ]
    prices = {model: dollars(played[0 if once else at], model) for at, model in enumerate(models)}
    shown = [round(each["verbatim"] / max(1, each["needed"]), 3) for each in played]
    where = {"conversation": replay.conversation.name, "window": window, "calls": played[0]["calls"]}
    return {"system": system, **where, "dollars": prices, "verbatim": shown}


def written(rows: Sequence[dict[str, Any]], models: Sequence[str]) -> str:
    """Return *rows* as a table in Markdown: dollars for each model, and the evidence that is verbatim."""
    places = list(dict.fromkeys((row["conversation"], row["window"]) for row in rows))
    found = {(row["system"], row["conversation"], row["window"]): row for row in rows}
    heads = [f"{name}, {window:,}: {' · '.join(models)}" for name, window in places]
    lines = []
    for system in dict.fromkeys(row["system"] for row in rows):
        cells = []
        for place in places:
            row = found[system, *place]
            costs = ["–" if (cost := row["dollars"][model]) is None else f"{cost:.2f}" for model in models]
            cells.append("over" if {*costs} == {"–"} else f"{' · '.join(costs)} ({min(row['verbatim']):.2f})")
        lines.append((system, *cells))
    return markdown(("system", *heads), lines) + f"\n\nPrices: {prices_source()}\n"


def windows_of(name: str) -> tuple[int, ...]:
    """Return the windows that the table has of the conversation *name*."""
    return (64_000,) if name in TASKS else (32_000,)
