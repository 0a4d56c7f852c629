"""Identity: what makes two messages the same one, however a framework writes it.

    {"role": "user", "content": "Hi"}
    {"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": {…}}]}      the same

It is the role, the text, the media, and the names and arguments of calls. Marks of the cache, the order of keys, ids,
fields without a value, how JSON is written, the white space around an answer, and thoughts are no difference, since
frameworks change them.
"""

import json
from hashlib import blake2b
from typing import Any

from ..messages import Message, call_body, parts_of, tool_calls

MARKS = frozenset({"cache_control", "prompt_cache_breakpoint"})  # keys of the marks of the cache
_BESIDE = MARKS | {"annotations", "detail"}  # keys of a part that are no content
_URLS = str.maketrans("-_", "+/", "=")  # from the base64 of URLs to the standard one, without the padding


def identity(message: Message) -> bytes:
    """Return 16 bytes that are equal for two messages that are the same one. O(bytes)."""
    role = message["role"]
    texts, others = [], []
    for part in parts_of(message.get("content")):
        if part.get("type") in {"text", "refusal"}:
            texts.append(str(part.get("text", part.get("refusal"))))
        else:
            others.append(unmarked(part))
    text = "\n".join([*filter(None, texts), *filter(None, [message.get("refusal")])])
    calls = [
        [(body := call_body(call)).get("name"), value_of(body.get("arguments", body.get("input")))]
        for call in tool_calls(message)
    ]
    told = [
        role,
        message.get("name") if role == "user" else None,
        value_of(text) if role == "tool" else text.strip() if role == "assistant" else text,
        others,
        calls,
    ]
    return blake2b(json.dumps(told, sort_keys=True).encode(), digest_size=16).digest()


def unmarked(part: object) -> object:
    """Return *part* without marks of the cache, its data in one form of base64. O(bytes)."""
    if isinstance(part, dict):
        return {key: unmarked(value) for key, value in part.items() if key not in _BESIDE}
    if isinstance(part, list):
        return [unmarked(each) for each in part]
    if isinstance(part, str) and len(part) > 64:
        return part.translate(_URLS)
    return part


def value_of(text: Any) -> object:
    """Return the value of *text* if it is JSON, else *text*; the same one for all ways to write it. O(characters).

    Clients leave out fields without a value, and those in JavaScript read each number as a float, and write 5.0 as 5.
    """
    try:
        return json.loads(text, object_pairs_hook=_filled, parse_float=_number, parse_int=_number)
    except (TypeError, ValueError, RecursionError):
        return text


def _filled(fields: list[tuple[str, object]]) -> dict[str, object]:
    return {key: value for key, value in fields if value is not None}


def _number(digits: str) -> float:
    number = float(digits)
    return int(number) if number.is_integer() else number
