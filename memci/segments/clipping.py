"""Clipping: the view of a message that is too large for its window.

    Traceback (most recent call last): …
    [… 41,200 tokens elided: recall_page(index=12, entry=7) …]
    … ConnectionResetError: [Errno 104]

A text keeps its head and its tail. Long values inside tool arguments become a marker, so that the arguments stay valid
JSON. An opaque block is kept whole or left out whole. The store keeps every byte.
"""

import functools
import json
from bisect import bisect_right
from collections.abc import Callable

from ..messages import FAILED, Message, tool_calls

SMALLEST = 176  # tokens to which a message can be clipped at least: 64 of head, 64 of tail, the marker and the framing

_ARGUMENT = 24  # tokens up to which a value inside arguments is left as it is: its marker would cost about as much
_PLAIN = frozenset({"role", "content", "tool_calls", "tool_call_id", "name", FAILED})


def clip_message(
    message: Message,
    limit: int,
    *,
    page: int,
    ordinal: int,
    count: Callable[[str], int],
    weigh: Callable[[Message], int],
) -> Message:
    """Return a view of *message* that costs about *limit* tokens. It costs more only if its skeleton alone does.

    *count* returns the tokens of a text, *weigh* those of a message, framing included. The marker names *page* and
    *ordinal*.
    """
    call = f"recall_page(index={page}, entry={ordinal})"
    count = functools.lru_cache(maxsize=None)(count)  # every cap counts the same texts
    content = message.get("content")
    parts = len(content) if isinstance(content, list) else int(bool(content))
    pieces = max(1, parts + len(tool_calls(message)))
    cap = limit
    view = message
    for _ in range(12):
        view = _cap(message, cap, call, count, weigh)
        cost = weigh(view)
        if cost <= limit:
            return view
        cap = max(1, min(cap - (cost - limit) // pieces - 8, cap * 7 // 8))
    return _thin(view, limit, call, weigh)


def head_within(text: str, tokens: int, count: Callable[[str], int], *, size: int, least: int = 0) -> str:
    """Return a head of *text* that costs at most *tokens*, but has *least* characters in any case.

    It counts only a few heads of at most *size* characters, never the whole text.
    """
    while size > least:
        cost = count(text[:size])
        if cost <= tokens:
            break
        size = max(least, min(size - 1, size * max(least, tokens) // cost))
    return text[:size]


def _thin(view: Message, limit: int, call: str, weigh: Callable[[Message], int]) -> Message:
    """Leave out small parts that are too many: opaque keys, then parts from the middle of the content."""
    view = {key: value for key, value in view.items() if key in _PLAIN}
    parts = view.get("content")
    if not isinstance(parts, list):
        return view
    marker = {"type": "text", "text": f"[… {len(parts):,} parts, some elided: {call} …]"}

    def thinner(kept: int) -> Message:
        return {**view, "content": [*parts[:kept], marker, *parts[len(parts) - kept :]]}

    return thinner(bisect_right(range(len(parts) // 2 + 1), limit, lo=1, key=lambda kept: weigh(thinner(kept))) - 1)


def _cap(
    message: Message, cap: int, call: str, count: Callable[[str], int], weigh: Callable[[Message], int]
) -> Message:
    view: Message = {}
    for key, value in message.items():
        if key == "content" and isinstance(value, str):
            view[key] = _shorten(value, cap, call, count)
        elif key == "content" and isinstance(value, list):
            view[key] = [_clip_part(part, cap, call, count, weigh) for part in value]
        elif key == "tool_calls" and value:
            view[key] = [_clip_call(each, cap, call, count) for each in value]
        elif key in _PLAIN or count(json.dumps(value, ensure_ascii=False)) <= cap:
            view[key] = value
    return view


def _shorten(text: str, cap: int, call: str, count: Callable[[str], int]) -> str:
    total = count(text)
    if total <= cap:
        return text
    kept = max(0, cap - 40) // 2
    size = min(len(text), len(text) * kept // total)
    head = head_within(text, kept, count, size=size).rstrip()
    tail = head_within(text[::-1], kept, count, size=size).rstrip()[::-1]
    elided = max(1, total - count(head) - count(tail))
    return f"{head}\n[… {elided:,} tokens elided: {call} …]\n{tail}"


def _clip_part(
    part: Message, cap: int, call: str, count: Callable[[str], int], weigh: Callable[[Message], int]
) -> Message:
    if part["type"] == "text":
        return {**part, "text": _shorten(part["text"], cap, call, count)}
    if weigh({"role": "user", "content": [part]}) <= cap:  # an image costs by formula: its bytes are not tokens
        return part
    return {"type": "text", "text": f"[{part['type']} elided: {call}]"}


def _clip_call(each: Message, cap: int, call: str, count: Callable[[str], int]) -> Message:
    kind, field = ("custom", "input") if each.get("type") == "custom" else ("function", "arguments")
    body = each[kind]
    text = body[field]
    total = count(text)
    if total <= cap:
        return each
    if kind == "custom":
        return {**each, kind: {**body, field: _shorten(text, cap, call, count)}}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    marked = value
    for longest in (cap // 2, cap // 4, _ARGUMENT, 0):
        marked = _mark(value, max(longest, 0), call, count)
        if count(_json(marked)) <= cap:
            break
    else:
        marked = {"elided": f"[elided {total:,} tokens, {call}]"}
    return {**each, kind: {**body, field: _json(marked)}}


def _json(value: object) -> str:
    """Return *value* as JSON; half of a surrogate pair stays an escape, since no client can send it otherwise."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value)
    return text


def _mark(value: object, longest: int, call: str, count: Callable[[str], int]) -> object:
    if isinstance(value, str):
        cost = count(value)
        return value if cost <= longest else f"[elided {cost:,} tokens, {call}]"
    if isinstance(value, dict):
        return {key: _mark(each, longest, call, count) for key, each in value.items()}
    if isinstance(value, list):
        return [_mark(each, longest, call, count) for each in value]
    return value
