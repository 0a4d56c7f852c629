"""The gate: a large result of a tool is shown as a digest from its first rendering on, and recalled whole.

    tool   9,570 tokens of grep   ──▶   head, what the call and the task name, tail, and recall_page(…) for the rest

It is decided once, when the result is appended, and stored with it. So what a provider has cached stays
as it is, whatever the settings are later.
"""

import json
from collections.abc import Callable, Iterable

from ..messages import Enveloped, Message, text_of
from ..text.digest import Spans, choose, show
from ..text.language.identifiers import identifiers, needed

_SHARE = 0.6
"""share of the gate that a digest costs: a result that barely exceeds the gate must save more than a recall costs"""
_PLAIN = frozenset(
    {"message", "text", "image", "tool_result", "function_call_output", "input_text", "input_image", "output_text"}
)
"""types of native items and blocks that a digest may stand for: it is sent as a text"""


def digest_spans(
    message: Message, gate: int, call: Message, told: Iterable[Message], count: Callable[[str], int]
) -> Spans | None:
    """Return the spans of a digest of *message*, a result of *call*; None if it has no large text, is an error, or more
    than a text with images.

    What *call* asks for, and what the user *told*, is kept as far as there is room. O(characters).
    """
    text = _bulk(message)
    tokens = count(text)
    if tokens <= gate or not _is_plain(message.native.items if isinstance(message, Enveloped) else None):
        return None
    body = call.get("function") or {"arguments": json.dumps(call.get("custom", {}).get("input"))}
    asked = {*needed(body["arguments"]), *(word for each in told for word in identifiers(text_of(each)))}
    return choose(text, int(_SHARE * gate), count, asked, tokens=tokens)


def show_digest(message: Message, spans: Spans, page: int, ordinal: int) -> Message:
    """Return the view of *message* that shows only *spans* of its largest text. O(characters)."""
    call = f"recall_page(index={page}, entry={ordinal})"
    bulk = _bulk(message) if message["role"] == "tool" else ""
    if not bulk:  # of a made-up file
        return message
    digest = show(bulk, spans, call)
    content = message["content"]
    if isinstance(content, list):
        at = next(at for at, part in enumerate(content) if part.get("text") == bulk)
        content = [*content[:at], {**content[at], "text": digest}, *content[at + 1 :]]
    else:
        content = digest
    return {**{key: value for key, value in message.items() if key != "reasoning"}, "content": content}


def _bulk(message: Message) -> str:
    content = message["content"]
    texts = [content] if isinstance(content, str) else [part["text"] for part in content if part["type"] == "text"]
    return max(texts, key=len, default="")


def _is_plain(value: object) -> bool:
    """Return whether a native *value* is a result of text and images, and no error. O(its blocks)."""
    if isinstance(value, list):
        return all(map(_is_plain, value))
    if not isinstance(value, dict):
        return True
    if value.get("is_error") or value.get("type", "text") not in _PLAIN:
        return False
    return all(_is_plain(value.get(key)) for key in ("content", "output"))
