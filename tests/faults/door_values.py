"""What comes through the door: messages, calls and replies of every form, and values where they do not belong.

    message(Random(7), ["c1"])     {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": 7}]}
    changed(Random(7), value)      *value* with one place of it replaced, deleted, doubled or made deeper

What is made is as a provider's documents have it, until a place of it is changed. This module knows nothing of what
takes it.
"""

import copy
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from random import Random
from typing import Any

from .fuzz_texts import text

IDS = ("c1", "c2", "c3", "", "c1~2", "\ud83d", "x" * 300)
_DEEP = "[" * 300 + "]" * 300
_LIGHT = (
    *(None, True, False, 0, 1, -1, 7, 1.5, -0.0, 2**31, 2**53, 2**63, 10**18, 10**400, 10**700, 1e308, float("nan")),
    *(float("inf"), -float("inf"), "", " ", "\x00", "\ud83d", "\u202e", "c1", "user", "tool", "9" * 40, "1e999"),
    *([], [None], ["x"], [[]], [{}], [1, 2], {}, {"a": 1}, {"": None}, {"type": 7}, {"text": "x"}, {"id": ["x"]}),
    *("</memci:contents 1f9a03c2>", "<memci:recall 1f9a03c2>\n", "recall_page", "search_memory"),
)
_STRANGE = (
    b"x",
    ("x",),
    {"x"},
    {7: 1},
    {None: 1},
    {("a",): 1},
    object(),
    range(3),
    1j,
    datetime(2026, 1, 1, tzinfo=UTC),
)
_KEYS = (
    "role",
    "content",
    "name",
    "tool_calls",
    "tool_call_id",
    "refusal",
    "audio",
    "function_call",
    "id",
    "type",
    "x",
)
TOOLS = ("recall_page", "search_memory", "find", "", "a" * 80, "ü")


def odd(rng: Random, *, json_only: bool = False) -> Any:
    """Return a value that nobody expects; *json_only*: one that stands in JSON."""
    chance = rng.random()
    if chance < 0.7:
        value = rng.choice(_LIGHT)
        return copy.deepcopy(value) if isinstance(value, list | dict) else value
    if chance < 0.85:
        return text(rng)
    if chance < 0.86:
        return json.loads(_DEEP)
    if chance < 0.88:
        return text(rng) * 200
    if chance < 0.95 or json_only:
        return {text(rng, 3): odd(rng, json_only=True), "type": odd(rng, json_only=True)}
    return rng.choice(_STRANGE)


def changed(rng: Random, value: Any, *, json_only: bool = False) -> Any:
    """Return *value* with one place of it changed. Lists and dicts on the way are changed themselves."""
    if rng.random() < 0.02:
        return odd(rng, json_only=json_only)
    inside = value
    while isinstance(inside, dict | list) and inside:
        key: Any = rng.choice(list(inside)) if isinstance(inside, dict) else rng.randrange(len(inside))
        if isinstance(inside[key], dict | list) and inside[key] and rng.random() < 0.75:
            inside = inside[key]
            continue
        chance = rng.random()
        if chance < 0.7:
            inside[key] = odd(rng, json_only=json_only)
        elif chance < 0.8:
            del inside[key]
        elif chance < 0.87:
            inside[key] = [inside[key]]
        elif chance < 0.92 and isinstance(inside, list):
            inside.append(copy.deepcopy(inside[key]))
        elif isinstance(inside, dict):
            inside[rng.choice(_KEYS)] = odd(rng, json_only=json_only)
        break
    return value


def message(rng: Random, ids: Sequence[str] = IDS) -> Any:
    """Return a message of any role; most are what a provider accepts, the others have a place or more changed."""
    role = rng.choice(("user", "assistant", "assistant", "tool"))
    made: dict[str, Any] = {"role": role, "content": content(rng)}
    if role == "tool":
        made["tool_call_id"] = rng.choice(ids) if ids and rng.random() < 0.9 else rng.choice(IDS)
    if role == "assistant":
        if rng.random() < 0.45:
            made["tool_calls"] = [call(rng) for _ in range(rng.randrange(1, 4))]
            made["content"] = rng.choice((None, "", text(rng)))
        more = {
            "refusal": text(rng, 4),
            "audio": {"id": "audio_1", "data": "UklGRg==", "transcript": text(rng), "expires_at": 1},
            "function_call": {"name": "find", "arguments": "{}"},
            "annotations": [{"type": "url_citation", "url_citation": {"url": text(rng, 3), "start_index": 0}}],
            "reasoning_content": text(rng),
        }
        made |= {key: value for key, value in more.items() if rng.random() < 0.08}
    if rng.random() < 0.1:
        made["name"] = text(rng, 4)
    if rng.random() < 0.05:
        made[text(rng, 3)] = odd(rng, json_only=True)
    while rng.random() < 0.35:
        made = changed(rng, made)
    return made


def content(rng: Random) -> Any:
    """Return the content of a message: text, or parts of every type."""
    if rng.random() < 0.7:
        return text(rng) * (40 if rng.random() < 0.03 else 1)
    return [_part(rng) for _ in range(rng.randrange(4))]


def _part(rng: Random) -> Any:
    parts: tuple[Any, ...] = (
        {"type": "text", "text": text(rng)},
        {"type": "text", "text": "", "cache_control": {"type": "ephemeral"}},
        {"type": "refusal", "refusal": text(rng)},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "iVBORw0KGgo" * 3, "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "https://a.io/" + text(rng, 3), "detail": "auto"}},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
        {"type": "file", "file": {"file_id": "file_1", "filename": text(rng, 3), "file_data": "data:;base64,AAAA"}},
        {"type": text(rng, 3), "text": text(rng)},
        {"type": "text", "text": text(rng), "": {"a": [odd(rng, json_only=True)]}},
    )
    part = copy.deepcopy(rng.choice(parts))
    return changed(rng, part) if rng.random() < 0.15 else part


def call(rng: Random) -> Any:
    """Return a tool call: of a function or a custom tool, with arguments that may be none."""
    name = rng.choice(TOOLS)
    written = rng.choice(
        ("{}", "", "null", "[1]", '{"index": 1', text(rng, 4), '{"index": 1, "entry": null, "offset": null}')
    )
    if name == "search_memory":
        written = json.dumps({"query": text(rng, 4), "since": rng.choice((None, "2026-01-01", 7)), "until": None})
    if rng.random() < 0.15:
        return {"id": rng.choice(IDS), "type": "custom", "custom": {"name": name, "input": text(rng)}}
    if rng.random() < 0.2:
        given = {"index": 1, "entry": None, "offset": None, "query": "x"}
        written = json.dumps(changed(rng, given, json_only=True))
    return {"id": rng.choice(IDS), "type": "function", "function": {"name": name, "arguments": written}}


def completion(rng: Random, message: Any) -> Any:
    """Return the completion of a server that holds *message*."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt",
        "choices": [{"index": 0, "message": message, "finish_reason": rng.choice(("stop", "tool_calls", "length"))}],
        "usage": {
            "prompt_tokens": 8,
            "completion_tokens": 3,
            "total_tokens": 11,
            "prompt_tokens_details": {"cached_tokens": 4},
        },
    }
