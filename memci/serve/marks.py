"""Marks of the prompt cache in a client's list: left out to compare lists, and put back at their places of now.

    request 7    … user ▮                        compared:  … user
    request 8    … user  assistant  user ▮       sent:      the list that memci shows, with the client's marks of now

Clients mark their newest messages, so a mark moves with each request. While a text is marked, it is a list with one
part.

A call of old (`function_call`, and a result of the role `function`) is read as one of a tool, with the name of the
function as its id, and sent as the client wrote it.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any, Final

from ..formats import breakpoints
from ..formats.identity import MARKS
from ..messages import Item

_NESTED: Final = ("content", "output")
_MARKS: Final = {
    "openai_chat": breakpoints.CHAT,
    "openai_responses": breakpoints.RESPONSES,
    "anthropic": breakpoints.ANTHROPIC,
}


def canonical(item: Item) -> Item:
    """Return *item* without marks, a list of one text as that text, a call of old as one of a tool. O(parts)."""
    made = {key: value for key, value in item.items() if key not in MARKS}
    match made:
        case {"role": "function", "name": str(name)}:
            made |= {"role": "tool", "tool_call_id": name}
        case {"function_call": {"name": str(name), **more}} if not made.get("tool_calls"):
            made["tool_calls"] = [{"id": name, "type": "function", "function": {"name": name, **more}}]
            del made["function_call"]
    for key in _NESTED:
        if isinstance(made.get(key), list):
            made[key] = [canonical(part) if isinstance(part, dict) else part for part in made[key]]
    match made.get("content"):
        case [{"type": "text" | "input_text", "text": str(text), **more}] if not more and "role" in made:
            made["content"] = text
    return made


def count(value: Any) -> int:
    """Return the number of marks in *value*, at any depth of lists and contents. O(parts)."""
    if isinstance(value, list):
        return sum(map(count, value))
    if not isinstance(value, dict):
        return 0
    return len(MARKS & value.keys()) + sum(count(value.get(key)) for key in _NESTED)


def restore(format: str, view: Sequence[Item], listed: Sequence[Item], fixed: int) -> list[Item]:  # noqa: A002
    """Return *view* with the items of *listed* as the client wrote them, with its marks. O(items).

    Other items keep memci's marks if the client marks anything, up to four in all; *fixed* marks are elsewhere. If the
    client marked its newest message, the newest item of the view has a mark.
    """
    mark = _MARKS[format]
    functions = {str(call.get("name")) for item in listed if isinstance(call := item.get("function_call"), dict)}
    originals: defaultdict[str, list[Item]] = defaultdict(list)
    for item in listed:
        originals[json.dumps(canonical(item))].append(item)
    items: list[Item] = []
    ours: list[int] = []
    for at in range(len(view) - 1, -1, -1):
        plain = canonical(view[at])
        known = originals.get(json.dumps(plain))
        items.append(known.pop() if known else _of_old(plain if count(view[at]) else view[at], functions))
        if count(view[at]) and not count(items[-1]):
            ours.append(at)
    items.reverse()
    wanted = fixed + count(list(listed))
    room = breakpoints.MOST - fixed - count(items) if wanted else 0
    newest = len(items) - 1
    if listed and count(listed[-1]) and not count(items[-1:]) and newest not in ours:
        ours.insert(0, newest)
    for at in ours[: max(0, room)]:
        items[at] = mark.lasting(items[at + 1 :]).on(items[at])
    return items


def _of_old(item: Item, functions: Collection[str]) -> Item:
    """Return *item* as a call of old, or as its result, if it is one of *functions*."""
    made = {key: value for key, value in item.items() if key not in {"tool_calls", "tool_call_id"}}
    match item:
        case {"role": "tool", "tool_call_id": name} if name in functions:
            return {**made, "role": "function", "name": name}
        case {"tool_calls": [{"id": name, "function": body}]} if name in functions:
            return {**made, "function_call": body}
    return item
