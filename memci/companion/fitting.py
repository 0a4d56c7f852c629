"""Fitting: the beginning of a text that costs no more than it may as a quotation.

    fitted("I prefer aisle seats because …", 5, count)     "I prefer aisle…"

This module knows nothing of what the text is.
"""

from collections.abc import Callable

from ..text.sanitize import quoted

_WIDEST = 16
"""characters that a token has at most, as good as always"""


def fitted(text: str, room: int, count: Callable[[str], int]) -> str:
    """Return *text*, or its beginning with "…", so that it costs at most *room* tokens as a quotation. O(room)."""
    size = min(len(text), max(1, room) * _WIDEST)
    shown = text if size == len(text) else text[:size] + "…"
    while size > 1 and (cost := count(quoted(shown))) > room:
        size = max(1, min(size - 1, size * room // cost))
        shown = text[:size].rstrip() + "…"
    return shown
