"""Clipping: the view of a message that is too large for its window.

    Traceback (most recent call last): …
    [… 41,200 tokens elided: recall_page(index=12, entry=7) …]
    … ConnectionResetError: [Errno 104]

A text keeps its head and its tail. Long values inside tool arguments become a marker, so that the arguments stay valid
JSON. An opaque block is kept whole or left out whole. The store keeps every byte. This module knows nothing of pages
beyond their numbers, nor of why a message is clipped.
"""

import functools
import json
from bisect import bisect_right
from collections.abc import Callable

from ..messages import Message, tool_calls

SMALLEST = 176
"""The least tokens that a message can be clipped to: 64 of head, 64 of tail, the marker and the framing."""

_ARGUMENT = 24
"""A value inside arguments is left as it is up to this many tokens."""
_PLAIN = frozenset({"role", "content", "tool_calls", "tool_call_id", "name"})


def clipped(
    message: Message,
    limit: int,
    *,
    page: int,
    ordinal: int,
    count: Callable[[str], int],
    weigh: Callable[[Message], int],
) -> Message:
    """Return a view of *message* that costs about *limit* tokens. It costs more only if its skeleton alone does.

    *count* gives the tokens of a text, *weigh* those of a message, framing included. *page* and *ordinal* stand in the
    marker.
    """
    call = f"recall_page(index={page}, entry={ordinal})"
    count = functools.lru_cache(maxsize=None)(count)  # the same texts are counted for every cap
    content = message.get("content")
    parts = len(content) if isinstance(content, list) else int(bool(content))
    pieces = max(1, parts + len(tool_calls(message)))
    cap = limit
    view = message
    for _ in range(12):
        view = _capped(message, cap, call, count, weigh)
        cost = weigh(view)
        if cost <= limit:
            return view
        cap = max(1, min(cap - (cost - limit) // pieces - 8, cap * 7 // 8))
    return _thinned(view, limit, call, weigh)


def head_within(text: str, tokens: int, count: Callable[[str], int], *, size: int, least: int = 0) -> str:
    """Return a head of *text* that costs at most *tokens*, but has *least* characters in any case.

    Only a few heads of at most *size* characters are counted, never the whole text.
    """
    while size > least:
        cost = count(text[:size])
        if cost <= tokens:
            break
        size = max(least, min(size - 1, size * max(least, tokens) // cost))
    return text[:size]


def _thinned(view: Message, limit: int, call: str, weigh: Callable[[Message], int]) -> Message:
    """Leave out what is small but too many: opaque keys, then parts from the middle of the content."""
    view = {key: value for key, value in view.items() if key in _PLAIN}
    parts = view.get("content")
    if not isinstance(parts, list):
        return view
    marker = {"type": "text", "text": f"[… {len(parts):,} parts, some elided: {call} …]"}

    def thinner(kept: int) -> Message:
        return {**view, "content": [*parts[:kept], marker, *parts[len(parts) - kept :]]}

    return thinner(bisect_right(range(len(parts) // 2 + 1), limit, lo=1, key=lambda kept: weigh(thinner(kept))) - 1)


def _capped(
    message: Message, cap: int, call: str, count: Callable[[str], int], weigh: Callable[[Message], int]
) -> Message:
    view: Message = {}
    for key, value in message.items():
        if key == "content" and isinstance(value, str):
            view[key] = _shortened(value, cap, call, count)
        elif key == "content" and isinstance(value, list):
            view[key] = [_part(part, cap, call, count, weigh) for part in value]
        elif key == "tool_calls" and value:
            view[key] = [_call(each, cap, call, count) for each in value]
        elif key in _PLAIN or count(json.dumps(value, ensure_ascii=False)) <= cap:
            view[key] = value
    return view


def _shortened(text: str, cap: int, call: str, count: Callable[[str], int]) -> str:
    total = count(text)
    if total <= cap:
        return text
    kept = max(0, cap - 40) // 2
    size = min(len(text), len(text) * kept // total)
    head = head_within(text, kept, count, size=size).rstrip()
    tail = head_within(text[::-1], kept, count, size=size).rstrip()[::-1]
    elided = max(1, total - 2 * kept)
    return f"{head}\n[… {elided:,} tokens elided: {call} …]\n{tail}"


def _part(part: Message, cap: int, call: str, count: Callable[[str], int], weigh: Callable[[Message], int]) -> Message:
    if part["type"] == "text":
        return {**part, "text": _shortened(part["text"], cap, call, count)}
    if weigh({"role": "user", "content": [part]}) <= cap:  # an image costs by formula: its bytes are not tokens
        return part
    return {"type": "text", "text": f"[{part['type']} elided: {call}]"}


def _call(each: Message, cap: int, call: str, count: Callable[[str], int]) -> Message:
    kind, field = ("custom", "input") if each.get("type") == "custom" else ("function", "arguments")
    body = each[kind]
    text = body[field]
    total = count(text)
    if total <= cap:
        return each
    if kind == "custom":
        return {**each, kind: {**body, field: _shortened(text, cap, call, count)}}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    marked = value
    for longest in (cap // 2, cap // 4, _ARGUMENT, 0):
        marked = _marked(value, max(longest, 0), call, count)
        if count(_json(marked)) <= cap:
            break
    else:
        marked = {"elided": f"[elided {total:,} tokens, {call}]"}
    return {**each, kind: {**body, field: _json(marked)}}


def _json(value: object) -> str:
    """Return *value* as JSON; half of a surrogate pair stays an escape, since no client can send it as it is."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value)
    return text


def _marked(value: object, longest: int, call: str, count: Callable[[str], int]) -> object:
    if isinstance(value, str):
        cost = count(value)
        return value if cost <= longest else f"[elided {cost:,} tokens, {call}]"
    if isinstance(value, dict):
        return {key: _marked(each, longest, call, count) for key, each in value.items()}
    if isinstance(value, list):
        return [_marked(each, longest, call, count) for each in value]
    return value
