"""Detection of a value's format by its keys and types.

    {"role": "user", "parts": […]}                                            gemini
    {"role": "user", "content": [{"type": "tool_result", …}]}                 anthropic
    {"type": "function_call", "call_id": "c1", …}                             openai_responses
    {"role": "user", "content": "Hi"}                                         None: all formats but Gemini's share it
    {"object": "response", "output": […]}                                     openai_responses, and its items

A whole answer of a client's call is taken apart into its items; fields that are not sent again (its id, its usage) are
left out.
"""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ..messages import PARTS, Item, parts_of
from . import anthropic, gemini, openai_chat, openai_responses
from .envelope import filled, written

_TYPES: Final = {
    name: re.compile("|".join(types))
    for name, types in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")).items()
}
"""what the types and keys of each kind are like"""
_SHARED: Final = {anthropic.NAME: {"text"}, openai_responses.NAME: {"refusal", "input_audio"}}
"""types of parts that a format has besides Chat Completions"""
_NOT_SENT: Final = frozenset({"parsed", "parsed_arguments", "parsed_output"})
"""fields that the SDKs' helpers add to an answer"""


def format_of(item: Mapping[str, Any]) -> str | None:
    """Return the format of *item*, None if it may as well be a message of Chat Completions. O(parts)."""
    kind, content = item.get("type"), item.get("content")
    if isinstance(item.get("parts"), list) or item.get("role") == "model":
        return gemini.NAME
    if item.get("role") == "tool":
        return openai_chat.NAME
    if kind == "message":
        return openai_responses.NAME
    if isinstance(kind, str) and _TYPES["items"].fullmatch(kind):
        return openai_responses.NAME
    parts = [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
    kinds = [part.get("type") for part in parts if not isinstance(part.get("thinking"), list)]  # a list is Mistral's
    types = [each for each in kinds if isinstance(each, str)]
    if any(map(_TYPES[openai_responses.NAME].fullmatch, types)):
        return openai_responses.NAME
    return anthropic.NAME if any(map(_TYPES[anthropic.NAME].fullmatch, types)) else None


def is_of_chat(item: Mapping[str, Any], default: str) -> bool:
    """Return whether *item*, which may be of *default* by its keys, has parts that Chat Completions declares alone."""
    parts = [part for part in parts_of(item.get("content")) if isinstance(part, Mapping)]
    own = PARTS - _SHARED.get(default, PARTS)
    return any(isinstance(part.get("thinking"), list) or part.get("type") in own for part in parts)


def undeclared(form: str, item: Mapping[str, Any]) -> str | None:
    """Return the path in *item*, of the user or of a tool, to the first block whose type *form* does not declare.

    None if there is none, and for the model's items: it may know blocks that memci does not. O(blocks).
    """
    if item.get("role") in ("assistant", "model"):
        return None
    if form == gemini.NAME:
        known = _TYPES[gemini.NAME].fullmatch
        parts = [part for part in parts_of(item.get("parts")) if isinstance(part, Mapping)]
        strange = (
            at for at, part in enumerate(parts) if not any(known(str(key).replace("_", "").lower()) for key in part)
        )
        return next((f"parts[{at}]" for at in strange), None)
    key = "output" if item.get("type") in ("function_call_output", "custom_tool_call_output") else "content"
    blocks = item.get(key)
    for at, block in enumerate(blocks if isinstance(blocks, list) else ()):
        if not isinstance(block, Mapping):
            continue  # its reader refuses it
        kind = block.get("type")
        if not (_declares(form, kind) if isinstance(kind, str) else form == openai_chat.NAME):
            return f"{key}[{at}].type"
        if kind == "tool_result" and (inner := undeclared(form, block)) is not None:
            return f"{key}[{at}].{inner}"
    return None


def _declares(form: str, kind: str) -> bool:
    if form == openai_chat.NAME:
        return kind in PARTS
    return any(each.fullmatch(kind) for each in (_TYPES["beside"], _TYPES[form]))


def unwrapped(value: Item) -> tuple[str | None, list[Item]]:
    """Return the format of *value* and its items: the items of a whole answer, else *value* itself. O(parts)."""
    output, content, choices = value.get("output"), value.get("content"), value.get("choices")
    if value.get("object") == "response" and isinstance(output, list):
        silent = {"type": "message", "role": "assistant", "content": []}
        return openai_responses.NAME, [_sent(each) for each in output if isinstance(each, dict)] or [silent]
    if value.get("type") == "message" and isinstance(content, list) and "stop_reason" in value:
        return anthropic.NAME, [{"role": value.get("role"), "content": [_sent(block) for block in content]}]
    candidates, blocked = value.get("candidates"), value.get("promptFeedback", value.get("prompt_feedback"))
    if isinstance(candidates, list) or (blocked is not None and "role" not in value):
        first = candidates[0] if candidates else None
        return gemini.NAME, [(first.get("content") if isinstance(first, dict) else None) or {"role": "model"}]
    first = next(iter(choices), {}) if isinstance(choices, list) else None
    if isinstance(first, dict) and ("message" in first or value.get("object") == "chat.completion"):
        return openai_chat.NAME, [_completed(_sent(first.get("message") or {}))]
    return format_of(value), [value]


def _completed(message: Item) -> Item:
    """Return the *message* of an answer with what a server left out: not every one that is compatible fills all."""
    calls: list[Item] = [{"id": "", "type": "function"} | filled(call) for call in parts_of(message.get("tool_calls"))]
    for call in calls:
        if call["type"] == "function":
            body = {"name": "", "arguments": ""} | filled(call.get("function"))
            call["function"] = {**body, "arguments": written(body["arguments"])}
    return {"role": "assistant", "content": None} | message | ({"tool_calls": calls} if calls else {})


def _sent(item: Item) -> Item:
    """Return *item*, with its parts, without fields that are not sent again."""
    if not isinstance(item, dict):
        return item
    kept = {key: value for key, value in item.items() if key not in _NOT_SENT}
    if isinstance(kept.get("content"), list):
        kept["content"] = [_sent(part) for part in kept["content"]]
    return kept
