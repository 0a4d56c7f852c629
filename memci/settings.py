"""The settings of a context: given by the caller, checked, and stored with the context.

    Policy(preset="economy")                     given by the caller; None: the stored value
    Settings(window=32_000)                      in effect: reply 4,000 · contents 1,200 · fewest 1

Presets are settings that belong together, by name:

    balanced    a compaction keeps half of the room verbatim, after a gap as much as is still needed: the default
    economy     a compaction keeps as little as the prompt cache's price suggests: cheapest, less of it verbatim
    verbatim    a compaction archives a quarter of the active pages: more of it verbatim, at a higher cost
    original    a page leaves each turn, each of its entries gets a line, and the unload rules run each turn: the design
                from which this library grew

A caller's settings are stored. All others follow from the model, the window and the preset.
"""

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .errors import InvalidSetting, brief, suggesting
from .messages import Format
from .model_catalog import CachePricing, known_window, name_hint, pricing_of
from .rows import PageRow

CONTENTS_CEILING = 1_200
"""tokens of the Contents Page, at most, by default: 15 % of a window of 8,000; benchmarks/LOG.md has the comparison"""

Preset = Literal["balanced", "economy", "verbatim", "original"]

PRESETS: dict[str, dict[str, Any]] = {
    "balanced": {"gate": 2_500},
    "economy": {"gate": 800},
    "verbatim": {"archive_share": 0.25},
    "original": {
        "archive_share": 0.0,
        "active_pages": 5,
        "never_recalled": 10,
        "stale": 20,
        "contents_tokens": 2_000,
        "every_turn": True,
        "every_entry": True,
    },
}

Dates = Literal["borders", "compacted", "never"]
Language = Literal["en", "zh"]

_KEPT: Final = {"window", "reply", "model", "format", "zone", "dates", "notice", "language", "remember", "pricing"}
"""settings that belong to no preset: a new preset does not change them"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How a context uses its window. None: the stored value, or in a new context the default.

        >>> Policy(preset="economy", never_recalled=50).preset
        'economy'

    The values are checked when a context is opened with them. Tokens are counted by the context's counter. A turn is
    one interaction, from a user's message to the next one.
    """

    preset: Preset | None = field(default=None, kw_only=False)
    """settings that belong together: "balanced" (default), "economy", "verbatim" or "original"; a new preset replaces
    the stored values of the settings below"""
    archive_share: float | None = None
    """the share of the active pages that a compaction archives, 0 to 1; default: the preset's, and for "balanced" and
    "economy" what the price of the prompt cache suggests (`memci.segments.cache_policy`)"""
    fewest: int | None = None
    """how many active pages a compaction leaves at least, if they fit; default 1"""
    active_pages: int | None = None
    """how many closed pages stay verbatim at most; default: as many as fit"""
    contents_tokens: int | None = None
    """the ceiling of the Contents Page, in tokens; default 10 % of the budget, at most 1,200. For "economy" at most
    4,800 as long as the use of old pages is not known, or 1.75 times the default in a chat of large messages, if that
    is more; and a third of it if pages from before a gap are not used"""
    instruction_tokens: int | None = None
    """tokens for the user's lasting instructions ("always answer in French"), which stay in the window verbatim;
    default min(600, 5 % of the window), 0 shows none"""
    gate: int | None = None
    """tokens, from 200, above which a result of a tool is shown as a digest from the beginning, with the call that
    reads the rest; 0: all are shown whole. Default 2,500, for "economy" 800, for "verbatim" and "original" 0. A change
    concerns later appends only"""
    never_recalled: int | None = None
    """turns after which an archived page that was never recalled is unloaded; default: never"""
    stale: int | None = None
    """turns without a recall after which a page that was recalled before is unloaded; default: never"""
    rules: Sequence[Callable[[Iterable[PageRow], int], Collection[int]]] | None = None
    """unload rules of your own (`memci.chapters.unload.UnloadRule`) instead of those two; they are not stored: pass
    them at every open"""
    remember: bool | None = None
    """whether pages that the memory finds for a turn are shown before that turn, in at most 3 % of the window; default
    False, since the provider then bills all text behind them again each turn"""
    dates: Dates | None = None
    """whether the rendering tells when its parts were said, as far as that is known: "borders" (default), where a day
    or a session begins; "compacted", the same, but only once pages have left; "never" """
    notice: bool | None = None
    """whether the model reads a notice about the archive, and is offered `recall_page` and `search_memory`; default
    True"""
    language: Language | None = None
    """the language of the notice and of these tools' descriptions, that of the conversation: "en" (default) or "zh" """
    pricing: CachePricing | None = None
    """the prices of the provider's prompt cache; default: those of the model (`memci.model_catalog.pricing_of`)"""

    @property
    def given(self) -> dict[str, object]:
        """The settings that are given and stored, by name."""
        names = (field.name for field in fields(self) if field.name not in {"rules", "pricing"})
        found: dict[str, object] = {name: value for name in names if (value := getattr(self, name)) is not None}
        return found if self.pricing is None else found | {"pricing": asdict(self.pricing)}

    def check(self) -> None:
        """Raise InvalidSetting if *pricing* or *rules* have the wrong type."""
        if not isinstance(self.pricing, CachePricing | None):
            raise InvalidSetting("pricing", f"expected a CachePricing, got {brief(self.pricing)}")
        if self.rules is not None and not (
            isinstance(self.rules, Sequence) and not isinstance(self.rules, str) and all(map(callable, self.rules))
        ):
            raise InvalidSetting("rules", f"expected a list of unload rules (callables), got {brief(self.rules)}")


Policy.__init__ = suggesting(Policy.__init__)  # type: ignore[method-assign]


class Settings(BaseModel):
    """The settings in effect in an open context: those of `Policy`, with all defaults filled in.

    Tokens are counted by the context's counter. Turns are closed interactions.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    window: int = Field(ge=256, le=100_000_000)  # the model's context length, in tokens
    reply: int = Field(default=0, ge=0)  # tokens kept free for the model's answer
    model: str | None = None
    format: Format = "openai_chat"
    """the format in which messages are rendered, and read where they look alike in several formats"""
    zone: str | None = None  # the zone of times that come without one; None: UTC
    dates: Dates = "borders"
    preset: Preset = "balanced"
    archive_share: float | None = Field(default=None, ge=0.0, le=1.0)
    fewest: int = Field(default=1, ge=1)
    active_pages: int | None = Field(default=None, ge=1)
    contents_tokens: int = Field(default=0, ge=0)
    contents_chosen: bool = True  # whether the caller gave it; False: it follows from the window
    instruction_tokens: int = Field(default=0, ge=0)
    gate: Literal[0] | Annotated[int, Field(ge=200)] = 0  # tokens above which a result is shown as a digest; 0: none is
    never_recalled: int | None = Field(default=None, ge=1)
    stale: int | None = Field(default=None, ge=1)
    every_turn: bool = False
    """whether the rules run every turn, which breaks the prompt cache, and not only at compactions"""
    every_entry: bool = False
    """whether each entry of an archived page has a line, and pages leave by last use, instead of folding"""
    remember: bool = False
    notice: bool = True
    language: Language = "en"
    pricing: CachePricing = CachePricing()  # the prices of the prompt cache: given, or those of the model


def settings(given: dict[str, object], stored: str | None) -> tuple[Settings, dict[str, object]]:
    """Return the settings in effect, and those to store: *given* ones replace *stored* ones (as JSON).

    Only given settings are stored. The others follow from the model, the window and the preset, also when these change:
    the window of a known model is not stored, so it changes with the model. A new preset replaces the stored settings
    that belong to it. InvalidSetting if an argument is wrong; it names the first one.
    """
    given = {key: value for key, value in given.items() if value is not None}
    before: dict[str, object] = {} if stored is None else json.loads(stored)
    if "preset" in given:
        before = {key: value for key, value in before.items() if key in _KEPT}
    chosen = before | given
    model = chosen.get("model")
    window = chosen["window"] if "window" in chosen else known_window(model) if isinstance(model, str) else None
    if window is None:
        why = f": that of {model!r:.60} is not known{name_hint(model)}" if isinstance(model, str) else ""
        raise InvalidSetting("window", f"pass the model's context length in tokens{why}")
    whole = {**chosen, "window": window}
    try:
        if (text := _as_json(whole)) is not None:
            return _fill(text), chosen
        Settings.model_validate(whole)
    except ValidationError as error:
        first = error.errors()[0]
        raise InvalidSetting(str(first["loc"][0]), f"{first['msg']}, got {brief(first.get('input'))}") from None
    odd = [name for name, value in given.items() if _as_json(value) is None] or [*given]  # the whole is a level deeper
    raise InvalidSetting(odd[0], f"expected a value that JSON has, got {brief(given[odd[0]])}")


def _as_json(value: object) -> str | None:
    """Return *value* as JSON; None if JSON does not have it."""
    try:
        return json.dumps(value)
    except Exception:  # noqa: BLE001 -- of another type, of too many digits, nested too deep, or with code that fails
        return None


@lru_cache(maxsize=256)  # the contexts of a program have few different ones, and each is opened many times
def _fill(given: str) -> Settings:
    """Return the *given* settings (JSON) with the values of the preset, and those that follow from the window."""
    chosen: dict[str, object] = json.loads(given)
    base = Settings.model_validate({key: value for key, value in chosen.items() if key in {"window", "preset"}})
    window = base.window
    preset = dict(PRESETS[base.preset])
    model, pricing = chosen.get("model"), chosen.get("pricing")
    follows: dict[str, object] = {"reply": min(4_096, window // 8), "instruction_tokens": min(600, window // 20)}
    if pricing is None:
        follows["pricing"] = pricing_of(model if isinstance(model, str) else None)
    if isinstance(pricing, dict):
        try:
            chosen = {**chosen, "pricing": CachePricing(**pricing)}
        except TypeError:
            raise InvalidSetting("pricing", f"expected the fields of a CachePricing, got {brief(pricing)}") from None
    made = Settings.model_validate(follows | preset | chosen)
    if "contents_tokens" not in chosen:
        most = min(CONTENTS_CEILING, max(0, window - made.reply) // 10)
        most = min(preset.get("contents_tokens", most), window // 4)
        made = made.model_copy(update={"contents_tokens": most, "contents_chosen": False})
    if made.reply >= window:
        raise InvalidSetting("reply", f"{made.reply:,} tokens for the answer leave nothing of a window of {window:,}")
    if made.contents_tokens > window // 2:
        raise InvalidSetting("contents_tokens", f"{made.contents_tokens:,} is more than half of a window of {window:,}")
    return made
