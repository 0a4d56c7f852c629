"""Breakpoints: where the stable parts of a request end, for providers whose cache wants them marked.

    system ▮  contents ▮  closed pages ▮  the open page …          at most three: one of the four is the caller's

This module knows nothing of a provider but the mark that Anthropic reads.
"""

from collections.abc import Collection, Sequence
from typing import Any, Final

from ..messages import Item

MOST: Final = 4
"""marks that a request of Anthropic's may have"""
_OWN: Final = MOST - 1
_MARK: Final = {"type": "ephemeral"}
_UNMARKABLE: Final = frozenset({"thinking", "redacted_thinking"})


def marked(items: Sequence[Item], stable: Collection[int], *, used: int) -> list[Item]:
    """Return *items* with a mark at the last block of each position in *stable*, the last ones first. O(items).

    *used* marks stand elsewhere already; those that the caller made count, too, and stay.
    """
    marked_items = list(items)
    room = _OWN - used - sum(_marks(item) for item in items)
    for position in sorted(set(stable), reverse=True)[: max(0, room)]:
        marked_items[position] = mark(items[position])
    return marked_items


def mark(item: Item) -> Item:
    """Return *item* with a mark at its last block that can have one."""
    content: Any = item["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    for at in range(len(blocks) - 1, -1, -1):
        if blocks[at].get("type") not in _UNMARKABLE:
            blocks[at] = {**blocks[at], "cache_control": _MARK}
            return {**item, "content": blocks}
    return item


def _marks(item: Item) -> int:
    content = item.get("content")
    return sum("cache_control" in block for block in content) if isinstance(content, list) else 0
