"""The settings of a context: checked at the door, stored with it, the stored value standing for what is not given.

    Settings(window=32_000)                      reply 4,000 · contents 4,800 · archive_share 0.5
    Settings(window=32_000, preset="economy")    archives 3/4 of the active pages at once: cheaper, less verbatim

Nothing here knows what the settings do.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from .errors import InvalidSetting

Preset = Literal["balanced", "economy", "verbatim", "original"]

_PRESETS: dict[str, dict[str, object]] = {
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
    """κ: the share of the active pages that an edition archives"""
    active_pages: int | None = Field(default=None, ge=1)
    """n: how many closed pages stay verbatim at most; None: the budget decides"""
    contents_tokens: int = Field(default=0, ge=0)
    """the ceiling of the Contents Page; default 15 % of the window"""
    never_recalled: int | None = Field(default=None, ge=1)
    """m: turns after which a page that was never recalled is unloaded; None: never"""
    stale: int | None = Field(default=None, ge=1)
    """p: turns without a further recall after which a page is unloaded; None: never"""
    every_turn: bool = False
    """whether the rules run every turn, at the prompt cache's cost, instead of at editions only"""
    notice: bool = True
    """whether the model is told of the archive and is offered `recall_page`"""

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, values: dict[str, object]) -> dict[str, object]:
        preset = values.get("preset") or "balanced"
        filled = {**_PRESETS.get(str(preset), {}), **{key: value for key, value in values.items() if value is not None}}
        window = filled.get("window")
        if isinstance(window, int):
            filled.setdefault("reply", min(4_096, window // 8))
            filled.setdefault("contents_tokens", window * 15 // 100)
        return filled

    @model_validator(mode="after")
    def _fits(self) -> "Settings":
        if self.reply >= self.window:
            raise ValueError(f"reply: {self.reply:,} tokens leave nothing of a window of {self.window:,}")
        return self


def settings(given: dict[str, object], stored: str | None) -> Settings:
    """Return the settings that were *given*, over those that are *stored* (as JSON), over the defaults.

    What follows from the window (`reply`, `contents_tokens`) follows a new window; a new preset starts afresh.

    Raises:
        InvalidSetting: Naming the first argument that makes no sense.
    """
    given = {key: value for key, value in given.items() if value is not None}
    before: dict[str, object] = {}
    if stored is not None:
        before = Settings.model_validate_json(stored).model_dump(exclude_defaults=True)
        if "window" in given:
            before = _without_defaults(before)
        if "preset" in given:
            before = {key: value for key, value in before.items() if key in {"window", "model", "notice"}}
    if "window" not in given and "window" not in before:
        raise InvalidSetting("window", "a new context needs its window: the model's context length in tokens")
    try:
        return Settings.model_validate(before | given)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else "settings"
        raise InvalidSetting(name, f"{first['msg']}, got {first.get('input')!r:.80}") from None


def _without_defaults(before: dict[str, object]) -> dict[str, object]:
    """Drop what only followed from the window, so that it follows the new one."""
    plain = Settings.model_validate({"window": before["window"], "preset": before.get("preset", "balanced")})
    followed = {key for key in ("reply", "contents_tokens") if before.get(key) == getattr(plain, key)}
    return {key: value for key, value in before.items() if key not in followed}
