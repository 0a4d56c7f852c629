"""The rules of the tiers: every size, threshold and weight of the designs that this memory unites.

    Rules(capacity=20)                    a setting of your own; the others have the defaults
    Rules(preset="layers", batch=20)      the values of a design; explicit values win

Rules are checked when they are made, and stored with the owner: commands and other workers use the stored ones, and a
change takes effect at the next step. The presets are the values of three designs:

    memoryos    short, mid and long term, moved by heat (MemoryOS, arXiv 2506.06326, and its code)
    layers      a message buffer, fragments, and a graph of what is used often
    events      events and days, profiles with a strategy
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from ...errors import InvalidSetting, brief

Order = Literal["heat", "lfu"]
Preset = Literal["memoryos", "layers", "events"]
Pages = Annotated[int, Field(ge=1, le=1_000_000)]
Share = Annotated[float, Field(ge=0, le=1)]
Weight = Annotated[float, Field(ge=0, le=1_000)]
Step = Literal["page", "topics", "analysis", "concepts", "day", "conversation", "strategy"]

_DIMENSIONS: Final = tomllib.loads((Path(__file__).parents[2] / "_data" / "dimensions.toml").read_text("utf-8"))
DIMENSIONS: Final = tuple[str, ...](_DIMENSIONS["ours"])

PRESETS: Final[Mapping[str, Mapping[str, Any]]] = {
    "memoryos": {
        "batch": 1,
        "order": "lfu",
        "threshold": 0.6,
        "found_facts": 5,
        "fact_score": 0.1,
        "dimensions": tuple(_DIMENSIONS["memoryos"]),
    },
    "layers": {"capacity": 200, "batch": 50},
    "events": {},
}
"""the values of each design that are not the defaults"""


class Rules(BaseModel):
    """Sizes, thresholds and weights of the tiers.

        >>> Rules(preset="layers", batch=20).capacity
        200

    Raises:
        InvalidSetting: If a value is wrong; it names the first one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    preset: Preset | None = None  # the design whose values are taken where none is given
    capacity: Pages = 10  # pages in the short-term queue (the code of MemoryOS; the paper 7, the layers 200 messages)
    batch: Pages = 3  # pages that leave the full queue together: a quarter, as in the layers (50 of 200)
    gap_seconds: float = Field(default=6 * 3600.0, gt=0)
    """seconds between two pages from which a new chain begins: a night, and not a lunch"""
    silence_seconds: float = Field(default=6 * 3600.0, gt=0)
    """seconds of silence that end a conversation and put its pages into the queue, even if a window still shows them"""
    episodes: Pages = 2000  # episodes that are kept at most (the code of MemoryOS; the paper 200)
    order: Order = "heat"
    """which episodes are evicted: the coldest (the paper), or the least often accessed (the code of MemoryOS)"""
    threshold: float | None = Field(default=None, ge=-1, le=1_000)
    """cosine + `keyword_weight` · Jaccard index, from which a chain joins an episode (MemoryOS: 0.6). None: it joins
    the one that stands out among all by its words, with any embedder (`memci.memory.tiers.episodes`)"""
    keyword_weight: Weight = 1.0  # weight of the Jaccard index of the keywords (MemoryOS)
    candidates: Pages = 5
    """episodes with which a chain is compared if there is a `threshold`: the nearest by vector (MemoryOS)"""
    visit_weight: Weight = 1.0  # weight of a visit in the heat (MemoryOS: alpha)
    length_weight: Weight = 1.0  # weight of a page in the heat (MemoryOS: beta)
    recency_weight: Weight = 1.0  # weight of a visit just now in the heat (MemoryOS: gamma)
    tau_seconds: float = Field(default=1e7, gt=0)
    """seconds in which recency falls to 37 % (the paper on MemoryOS; 116 days)"""
    promoted: Weight = 5.0  # heat since its last analysis from which an episode is analysed (MemoryOS)
    accesses: Pages = 10  # accesses from which the concepts of an episode enter the graph (the layers)
    facts: Pages = 100  # facts of each list that are kept at most (MemoryOS)
    found_facts: Annotated[int, Field(ge=0, le=1_000)] = 3
    """facts that a search returns at most, so that messages have the room (MemoryOS: 5; its code 20 of each kind)"""
    fact_score: Share = 0.5
    """score from which a fact is returned: half of these are relevant; of those between 0.1 (MemoryOS) and 0.25, 3 %"""
    found_pages: Pages = 7  # messages that the companion asks of a search at most (MemoryOS)
    event_interval: Pages = 5  # pages after which days are updated and events collected (the events)
    event_importance: Share = 0.5  # importance up to which events are dropped (the events)
    conversations: Pages = 5  # summaries of conversations that stay in the profile (the events)
    strategy_interval: Pages = 10  # turns after which a new strategy is due (the events)
    strategy_messages: Pages = 20  # messages from which a strategy is derived (the events)
    dimensions: tuple[Annotated[str, Field(min_length=1, max_length=60)], ...] = Field(
        default=DIMENSIONS, min_length=1, max_length=200
    )
    """dimensions of traits in the profile"""
    prompts: Mapping[Step, Annotated[str, Field(min_length=1, max_length=20_000)]] = Field(default_factory=dict)
    """system messages for a model's steps, in place of those of `memci.memory.consolidation.prompts`: each must ask for
    the same JSON"""
    zone: str = "UTC"  # time zone of the days of daily summaries, as "Europe/Oslo"

    def __init__(self, **given: Any) -> None:
        preset = given.get("preset")
        values = PRESETS[preset] if isinstance(preset, str) and preset in PRESETS else {}
        try:
            super().__init__(**{**values, **given})
        except ValidationError as error:
            first = error.errors()[0]
            name = str(first["loc"][0]) if first["loc"] else "rules"
            raise InvalidSetting(name, f"{first['msg']}, got {brief(first.get('input'))}") from None

    @field_validator("dimensions", mode="before")
    @classmethod
    def _listed(cls, given: object) -> object:
        return tuple(given) if isinstance(given, list) else given

    @field_validator("dimensions")
    @classmethod
    def _different(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        kept = tuple(" ".join(each.lower().split()) for each in given)
        if "" in kept or len(set(kept)) < len(kept):
            raise ValueError("the dimensions must be different names")
        return kept

    @field_validator("zone")
    @classmethod
    def _known(cls, zone: str) -> str:
        try:
            ZoneInfo(zone)
        except (ValueError, OSError, LookupError):
            raise ValueError("expected the name of a time zone") from None
        return zone

    @property
    def tzinfo(self) -> ZoneInfo:
        """The time zone of the days."""
        return ZoneInfo(self.zone)


DEFAULTS: Final = Rules()
