"""The settings of a context: checked at the door, stored with it, the stored value standing for what is not given.

    Settings(window=32_000)                      reply 4,000 · contents 4,800 · archive_share 0.5
    Settings(window=32_000, preset="economy")    archives 3/4 of the active pages at once: cheaper, less verbatim

Presets are settings that belong together, by name:

    balanced    a compaction archives half of the active pages: the default
    economy     three quarters: cheaper, less of the conversation verbatim
    verbatim    a quarter: more of it verbatim, dearer
    original    a page a turn, and the unload rules every turn: as the design that this library grew from has it

Nothing here knows what the settings do.
"""

import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .errors import InvalidSetting

Preset = Literal["balanced", "economy", "verbatim", "original"]

PRESETS: dict[str, dict[str, Any]] = {
    "balanced": {},
    "economy": {"archive_share": 0.75},
    "verbatim": {"archive_share": 0.25},
    "original": {
        "archive_share": 0.0,
        "active_pages": 5,
        "never_recalled": 10,
        "stale": 20,
        "contents_tokens": 2_000,
        "every_turn": True,
    },
}


class Settings(BaseModel):
    """What a context was opened with. Tokens are of the context's counter, turns are closed interactions."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    window: int = Field(ge=256, le=100_000_000)
    """the model's context length, in tokens"""
    reply: int = Field(default=0, ge=0)
    """tokens kept free for the model's answer; default min(4,096, window / 8)"""
    model: str | None = None
    preset: Preset = "balanced"
    archive_share: float = Field(default=0.5, ge=0.0, le=1.0)
    """κ: the share of the active pages that a compaction archives"""
    active_pages: int | None = Field(default=None, ge=1)
    """n: how many closed pages stay verbatim at most; None: the budget decides"""
    contents_tokens: int = Field(default=0, ge=0)
    """the ceiling of the Contents Page; default 15 % of the window"""
    standing_tokens: int = Field(default=0, ge=0)
    """what the user's standing instructions may cost; default min(600, 5 % of the window)"""
    never_recalled: int | None = Field(default=None, ge=1)
    """m: turns after which a page that was never recalled is unloaded; None: never"""
    stale: int | None = Field(default=None, ge=1)
    """p: turns without a further recall after which a page is unloaded; None: never"""
    every_turn: bool = False
    """whether the rules run every turn, at the prompt cache's cost, instead of at compactions only"""
    remember: bool = False
    """whether what the memory finds for a turn is shown in front of it"""
    notice: bool = True
    """whether the model is told of the archive and is offered `recall_page`"""


def settings(given: dict[str, object], stored: str | None) -> tuple[Settings, dict[str, object]]:
    """Return the settings, and what was set to come to them: what was *given*, over what is *stored* (as JSON).

    Only what was set is stored: the rest follows from the window and the preset, also from new ones. A new preset
    takes the place of what was set one by one.

    Raises:
        InvalidSetting: Naming the first argument that makes no sense.
    """
    given = {key: value for key, value in given.items() if value is not None}
    before: dict[str, object] = json.loads(stored) if stored is not None else {}
    if "preset" in given:
        before = {
            key: value for key, value in before.items() if key in {"window", "reply", "model", "notice", "remember"}
        }
    chosen = before | given
    if "window" not in chosen:
        raise InvalidSetting("window", "a new context needs its window: the model's context length in tokens")
    try:
        return _filled(chosen), chosen
    except ValidationError as error:
        first = error.errors()[0]
        raise InvalidSetting(str(first["loc"][0]), f"{first['msg']}, got {first.get('input')!r:.80}") from None


def _filled(chosen: dict[str, object]) -> Settings:
    """Return *chosen* with what the preset says, and what follows from the window."""
    base = Settings.model_validate({key: value for key, value in chosen.items() if key in {"window", "preset"}})
    window = base.window
    preset = dict(PRESETS[base.preset])
    preset["contents_tokens"] = min(preset.get("contents_tokens", window * 15 // 100), window // 4)
    follows = {"reply": min(4_096, window // 8), "standing_tokens": min(600, window // 20)}
    made = Settings.model_validate(follows | preset | chosen)
    if made.reply >= window:
        raise InvalidSetting("reply", f"{made.reply:,} tokens for the answer leave nothing of a window of {window:,}")
    if made.contents_tokens > window // 2:
        raise InvalidSetting("contents_tokens", f"{made.contents_tokens:,} is more than half of a window of {window:,}")
    return made
