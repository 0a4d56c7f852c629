"""How much a sentence matters: a sum of signals, from 0 to 1.

    "I got married last Saturday!"     a turn of life, about oneself, with a date       0.7
    "Did I get married?"               a question                                       0.2
    "Nice weather."                                                                     0

Only turns of life and business matter. Names, dates, ids and strong words add to them, questions take away. English,
Chinese, Japanese and Korean. This module knows nothing of who says it, or of what is kept.
"""

import re

from .patterns import pattern
from .salience import salient
from .sentences import simplified

SCANNED = 10_000
"""characters of a text that are looked at"""


def importance(text: str) -> float:
    """Return how much a sentence matters, from 0 to 1. O(characters)."""
    lowered = simplified(text[:SCANNED]).lower().replace("’", "'")
    wide = bool(_WIDE.search(lowered))
    if not _TURNS.search(lowered):
        return 0.0
    weight = 0.45
    weight += 0.2 if _STRESSED.search(lowered) else 0.0
    weight += 0.15 if _PERSONAL.search(lowered) else 0.0
    weight += 0.1 if _DATED.search(lowered) else 0.0
    weight += 0.1 if any(rank <= 2 for rank, _ in salient(text[:SCANNED], errors=False)) else 0.0
    weight += 0.1 if _FELT.search(lowered) else 0.0
    weight -= 0.4 if _QUESTION.search(lowered) else 0.0
    weight -= 0.1 if len(text) < (6 if wide else 16) else 0.0
    weight -= 0.2 if _UNREAL.search(lowered) else 0.0
    return round(min(1.0, max(0.0, weight)), 2)


_WIDE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
_TURNS, _STRESSED, _PERSONAL, _DATED, _FELT, _UNREAL, _QUESTION = (
    pattern("importance", key) for key in ("turns", "stressed", "personal", "dated", "felt", "unreal", "question")
)
