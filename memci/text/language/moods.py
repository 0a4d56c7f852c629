"""The mood of a text, by its words.

    "so happy!"  ──▶  positive       "I am not happy", "楽しくない"  ──▶  negative       "happy and sad"  ──▶  mixed

What stands after a "not" counts for the other side. This module knows nothing of who says it, or of days.
"""

import re
from collections.abc import Iterable
from typing import Literal

from .patterns import alternatives, pattern
from .sentences import simplified

SCANNED = 10_000
"""characters of a text that are looked at"""

Mood = Literal["positive", "negative", "mixed", "neutral"]


def mood(texts: Iterable[str]) -> Mood:
    """Return the mood of *texts* by their words; "not good" is bad. O(characters)."""
    return mood_of(*feelings(texts))


def mood_of(good: int, bad: int) -> Mood:
    """Return the mood of a text with *good* words of a good mood and *bad* words of a bad one."""
    if good + bad == 0:
        return "neutral"
    if good >= 2 * bad:
        return "positive"
    return "negative" if bad >= 2 * good else "mixed"


def feelings(texts: Iterable[str]) -> tuple[int, int]:
    """Count the words of a good mood in *texts*, and of a bad one. O(characters)."""
    counts = [0, 0]
    for text in texts:
        lowered = simplified(text[:SCANNED]).lower().replace("’", "'")
        for side, words in enumerate((_GOOD, _BAD)):
            for match in words.finditer(lowered):
                denied = _DENIES.search(lowered, max(0, match.start() - 14), match.start()) or _UNDOES.match(
                    lowered, match.end()
                )
                counts[1 - side if denied else side] += 1
    return counts[0], counts[1]


_GOOD, _BAD, _UNDOES = (pattern("moods", key) for key in ("good", "bad", "undoes"))
_DENIES = re.compile(f"(?:{alternatives('moods', 'denies')})$")
