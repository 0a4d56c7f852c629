"""Marks of the prompt cache in a client's list: left out where lists are compared, and put back where they stand now.

    request 7    … user ▮                        compared:  … user
    request 8    … user  assistant  user ▮       sent:      the list that memci shows, with the client's marks of now

Clients mark their newest messages, so that a mark moves on with each request, and a text becomes a list with one part
while it is marked. This module knows nothing of windows.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

from ..formats import breakpoints
from ..messages import Item

_KEYS: Final = {"cache_control", "prompt_cache_breakpoint"}
_NESTED: Final = ("content", "output")
_MARKS: Final = {
    "openai_chat": breakpoints.CHAT,
    "openai_responses": breakpoints.RESPONSES,
    "anthropic": breakpoints.ANTHROPIC,
}


def canonical(item: Item) -> Item:
    """Return *item* without marks, and with a text in place of a list that has this one text only. O(parts)."""
    made = {key: value for key, value in item.items() if key not in _KEYS}
    for key in _NESTED:
        if isinstance(made.get(key), list):
            made[key] = [canonical(part) if isinstance(part, dict) else part for part in made[key]]
    match made.get("content"):
        case [{"type": "text" | "input_text", "text": str(text), **more}] if not more and "role" in made:
            made["content"] = text
    return made


def count(value: Any) -> int:
    """Return how many marks stand in *value*, at any depth of lists and contents. O(parts)."""
    if isinstance(value, list):
        return sum(map(count, value))
    if not isinstance(value, dict):
        return 0
    return len(_KEYS & value.keys()) + sum(count(value.get(key)) for key in _NESTED)


def restored(format: str, view: Sequence[Item], listed: Sequence[Item], fixed: int) -> list[Item]:  # noqa: A002
    """Return *view* with the items of *listed* as the client wrote them, with its marks. O(items).

    What is in the view only keeps memci's marks if the client marks anything, as far as four allow; *fixed* marks
    stand elsewhere. If the client marked its newest message, the newest one of the view has a mark.
    """
    mark = _MARKS[format]
    originals: defaultdict[str, list[Item]] = defaultdict(list)
    for item in listed:
        originals[json.dumps(canonical(item))].append(item)
    items: list[Item] = []
    ours: list[int] = []
    for at in range(len(view) - 1, -1, -1):
        plain = canonical(view[at])
        known = originals.get(json.dumps(plain))
        items.append(known.pop() if known else plain if count(view[at]) else view[at])
        if count(view[at]) and not count(items[-1]):
            ours.append(at)
    items.reverse()
    wanted = fixed + count(list(listed))
    room = breakpoints.MOST - fixed - count(items) if wanted else 0
    newest = len(items) - 1
    if listed and count(listed[-1]) and not count(items[-1:]) and newest not in ours:
        ours.insert(0, newest)
    for at in ours[: max(0, room)]:
        items[at] = mark.on(items[at])
    return items
