"""Presets: settings that belong together, by name.

    balanced    an edition archives half of the active pages: the default
    economy     three quarters: cheaper, less of the conversation verbatim
    verbatim    a quarter: more of it verbatim, dearer
    original    a page a turn, and the unload rules every turn: as the design that this library grew from has it

Nothing here knows what the settings do.
"""

from typing import Any, Literal

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
